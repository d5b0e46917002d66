"""Checks of rollouts: what a right answer was come by (research/quality.md 1H, R1-R10)."""
