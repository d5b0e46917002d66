"""What the pipeline accepts, held against everything that is true in the world: how many questions are wrong after all.

The first pass of each recipe is run again on the same seeds with the demands off by which UNKNOWN refuses: what it
accepts then, and how much of that is wrong, says what these demands cost and what they buy. Rows refused are not
counted for this: a fact that cannot be confirmed costs a walk another try long before it costs a row.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipelines.bench.pools import Pool
from pipelines.bench.shares import make_share
from pipelines.bench.truth import Truth, judge_question
from schemas.groundings import Grounding

ALLOWED = ((0.0, 0.0), (0.1, 0.02), (0.3, 0.04))
"""Share of unsound questions by missing rate that must not be reached; between two rates it grows in proportion."""
SHOWN = 5

Judged = tuple[str, Grounding]
"""What is wrong with a question, and the question."""


@dataclass(frozen=True, slots=True)
class Soundness:
    """How many of some accepted questions are wrong by the whole truth."""

    accepted: int
    defects: int
    rate: float
    """Share that is not sound; 0.0 of none."""
    interval: tuple[float, float]
    """95% Wilson interval of the share; questions of one world share entities, so that it is rather too narrow."""
    kinds: dict[str, int]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """What one recipe made of one world."""

    missing: float
    method: str
    seeds: int
    """Seeds asked, each as often as there are passes."""
    refused: int
    """Rows refused after the seeds, for any reason."""
    accepted: int
    defects: int
    rate: float
    interval: tuple[float, float]
    kinds: dict[str, int]
    examples: tuple[str, ...]
    asking: Soundness
    """The first pass alone."""
    trusting: Soundness
    """The first pass where UNKNOWN refuses nothing."""
    lost_to_unknown: int
    """Questions accepted less in the first than in the second of these; below zero where other walks led to more."""


@dataclass(frozen=True, slots=True)
class AcceptedRate:
    """All recipes of one missing rate against what is allowed."""

    missing: float
    accepted: int
    defects: int
    rate: float
    interval: tuple[float, float]
    allowed: float
    met: bool
    """Whether each recipe accepted something, and the share of defects is below the limit, which is none at 0."""
    shown: bool
    """Whether even the upper end of the interval is below the limit."""


def evaluate(pool: Pool) -> tuple[AcceptedRow, ...]:
    """Evaluate all questions of a pool, a row for each recipe."""
    truth = Truth(pool.world)
    judged = [
        [(judge_question(truth, question), question) for question in questions]
        for questions in (pool.questions, pool.first, pool.trusted)
    ]
    return tuple(_sum_up(pool, method, judged) for method in pool.reports)


def measure_rate(missing: float, rows: Sequence[AcceptedRow]) -> AcceptedRate:
    """Hold what all recipes accepted at a missing rate against what is allowed there."""
    here = [row for row in rows if row.missing == missing]
    share = make_share(sum(row.defects for row in here), sum(row.accepted for row in here))
    allowed = find_allowed(missing)
    below = share.share < allowed if allowed else share.count == 0
    return AcceptedRate(
        missing=missing,
        accepted=share.trials,
        defects=share.count,
        rate=share.share,
        interval=(share.low, share.high),
        allowed=allowed,
        met=below and bool(here) and all(row.accepted for row in here),
        shown=share.high < allowed,
    )


def find_allowed(missing: float) -> float:
    """Return the share of unsound questions that must not be reached at a missing rate; 0.0 allows none at all."""
    for (low, least), (high, most) in pairwise(ALLOWED):
        if missing <= high:
            return least + (most - least) * (missing - low) / (high - low)
    return ALLOWED[-1][1]


def _sum_up(pool: Pool, method: str, judged: Sequence[Sequence[Judged]]) -> AcceptedRow:
    own, first, trusting = (_count([each for each in rows if pool.find_method(each[1]) == method]) for rows in judged)
    reports = pool.reports[method]
    return AcceptedRow(
        missing=pool.missing,
        method=method,
        seeds=sum(funnel[0].rows_out for funnel in reports),
        refused=sum(sum(report.rejected.values()) for funnel in reports for report in funnel[1:]),
        accepted=own.accepted,
        defects=own.defects,
        rate=own.rate,
        interval=own.interval,
        kinds=own.kinds,
        examples=own.examples,
        asking=first,
        trusting=trusting,
        lost_to_unknown=trusting.accepted - first.accepted,
    )


def _count(judged: Sequence[Judged]) -> Soundness:
    kinds = Counter(kind for kind, _ in judged if kind)
    share = make_share(kinds.total(), len(judged))
    examples = tuple(f"{kind}: {question.text}" for kind, question in judged if kind)[:SHOWN]
    return Soundness(share.trials, share.count, share.share, (share.low, share.high), dict(kinds), examples)
