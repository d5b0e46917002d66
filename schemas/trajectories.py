"""Trajectories: rollouts that survived the rejection cascade, with support pointers."""

from typing import Literal

from schemas.base import Nested
from schemas.rollouts import Rollout

Verdict = Literal["correct", "incorrect", "unscored"]


class Support(Nested):
    """Where a name or the answer was seen: a step and a span of its observation's text."""

    what: str
    step: int
    start: int
    end: int


class Trajectory(Rollout):
    """An accepted rollout. ``record_id`` is the rollout's."""

    verdict: Verdict
    decided_by: str
    """``comparer`` or the judge that gave the verdict."""
    supports: tuple[Support, ...]
