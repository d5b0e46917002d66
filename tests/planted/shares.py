"""Shares with their intervals, and typed words: what tables of the bench are made of."""

from dataclasses import dataclass

from pipelines.agent.agreement import wilson_interval
from pipelines.graph.answers import type_answer
from schemas.proofs import Answer


@dataclass(frozen=True, slots=True)
class Proportion:
    """``count`` of ``trials`` with its 95% Wilson interval."""

    count: int
    trials: int
    share: float
    low: float
    high: float


def make_share(count: int, trials: int) -> Proportion:
    """Return a share with its interval; no trials give the share 0.0 and the interval 0 to 1."""
    return Proportion(count, trials, count / trials if trials else 0.0, *wilson_interval(count, trials))


def show_interval(share: Proportion) -> str:
    """Return an interval as text, such as ``0.951-1.000``."""
    return f"{share.low:.3f}-{share.high:.3f}"


def type_text(text: str) -> Answer:
    """Return the answer that a word or name makes; a clean twin must have one."""
    answer = type_answer(text, "", "label")
    assert answer is not None, text
    return answer
