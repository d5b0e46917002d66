"""Typed answer comparison, verdict parsing, agreement."""
