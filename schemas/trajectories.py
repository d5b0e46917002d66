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


class Process(Nested):
    """What a process judge says of the way to an answer, each from 1 (poor) to 5 (OpenSearch-VL, figure 11)."""

    relevance: int
    progression: int
    evidence: int
    cross_modal: int
    score: float
    """Their mean."""
    judge: str


class Trajectory(Rollout):
    """An accepted rollout. ``record_id`` is the rollout's."""

    verdict: Verdict
    decided_by: str
    """``comparer`` or the judge that gave the verdict."""
    supports: tuple[Support, ...]
    process: Process | None = None
    """None where no process judge is configured."""
    loss: tuple[bool, ...] = ()
    """Whether a student is trained on each step; false for calls that failed and turns that are none."""
    tokens: int = 0
    """Length when trained on, pictures included: by the configured tokenizer, else an estimate from above."""
