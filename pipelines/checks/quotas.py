"""Strata of target sizes: where a question belongs, what seeds are drawn for, and which rows are beyond a target."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from pipelines.checks.sets import Signature
from pipelines.config.settings import DIFFICULTIES, Dimension
from schemas.base import Rejection
from schemas.datasets import Enhancement, Split
from schemas.proofs import AnswerType

Stratum = tuple[str, ...]
"""The split, and a value for each dimension of ``targets.by``."""
OFTEN: Final = 0.5
"""Share of right attempts from which a question is solved often."""


class Attempts(Protocol):
    """Attempts at a question under one condition by one solver."""

    @property
    def attempts(self) -> int:
        """How many were made."""

    @property
    def unscored(self) -> int:
        """How many no judge decided."""

    @property
    def correct(self) -> int:
        """How many were right."""


@dataclass(frozen=True, slots=True, order=True)
class Aim:
    """What a seed is drawn for: all of a stratum that is known before the question is."""

    split: Split
    domain: str = ""
    """Of the seed; empty for any, the domains in turn."""
    hops: int = 0
    """Length of its path; 0 for any."""
    answer_type: AnswerType | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """So many seeds for one aim."""

    aim: Aim
    seeds: int


@dataclass(frozen=True, slots=True)
class Quotas:
    """The targets of a run as its stages see them, in its current round."""

    by: tuple[Dimension, ...]
    draws: tuple[tuple[Draw, ...], ...]
    """The seeds of each round so far."""
    questions: Mapping[Stratum, int]
    """Most questions of each stratum: those of sft become more or fewer rows, which their rollouts say."""
    rows: Mapping[Stratum, int] = field(default_factory=dict)
    """Most rows of dataset sft."""
    used: tuple[Mapping[tuple[str, str], int], ...] = ()
    """For each round how many questions of those before it share an answer, its entity or its relation, by split."""

    @property
    def decides(self) -> list[object]:
        """What is held of rows, as part of a stage's fingerprint; the seeds' stage knows the draws."""
        return [list(self.by), sorted(self.questions.items()), sorted(self.rows.items())]


def name_stratum(stratum: Stratum) -> str:
    """Return a stratum's name for a reader: ``sft: 2, Person``."""
    return ": ".join(filter(None, (stratum[0], ", ".join(stratum[1:]))))


def place_question(row: Enhancement, by: Sequence[Dimension]) -> Stratum:
    """Return the stratum of a question."""
    values: dict[Dimension, Any] = {
        "hops": len(row.proof.hops),
        "domain": row.domain,
        "answer_type": row.answer.type,
        "difficulty": grade_difficulty(row.cells),
    }
    return (row.split, *(str(values[dimension]) for dimension in by))


def grade_difficulty(cells: Sequence[Attempts]) -> str:
    """Return how often attempts were right, one of ``DIFFICULTIES``; without a scored attempt, never."""
    correct, scored = sum(cell.correct for cell in cells), sum(cell.attempts - cell.unscored for cell in cells)
    if not correct:
        return DIFFICULTIES[0]
    return DIFFICULTIES[2] if correct >= OFTEN * scored else DIFFICULTIES[1]


def find_aim(stratum: Stratum, by: Sequence[Dimension], known: Collection[Dimension]) -> Aim:
    """Return what seeds for a stratum are drawn for."""
    values = {dimension: value for dimension, value in zip(by, stratum[1:], strict=True) if dimension in known}
    return Aim(
        stratum[0],  # type: ignore[arg-type]
        values.get("domain", ""),
        int(values.get("hops", 0)),
        values.get("answer_type", ""),  # type: ignore[arg-type]
    )


def refuse_surplus(
    signatures: Sequence[Signature], strata: Mapping[str, Stratum], most: Mapping[Stratum, int]
) -> dict[str, Rejection]:
    """Return the rejections of what is beyond a target: what repeats a wording or an answer most goes first."""
    ranks = _rank_repeats(signatures)
    counts = Counter[Stratum]()
    refused = {}
    for place in sorted(range(len(signatures)), key=lambda place: (ranks[place], place)):
        record_id = signatures[place].record_id
        stratum = strata[record_id]
        counts[stratum] += 1
        if counts[stratum] > most.get(stratum, 0):
            detail = f"{name_stratum(stratum)}: {most.get(stratum, 0):,} wanted"
            refused[record_id] = Rejection(record_id=record_id, reason="over-target", detail=detail)
    return refused


def _rank_repeats(signatures: Sequence[Signature]) -> list[int]:
    seen = defaultdict[tuple[str, ...], int](int)
    ranks = []
    for each in signatures:
        keys = [
            (each.dataset, "skeleton", each.skeleton),
            (each.dataset, each.asked, each.answer_key),
            (each.split, "final", each.final),
        ]
        ranks.append(max(seen[key] for key in keys))
        for key in keys:
            seen[key] += 1
    return ranks


def cut_rows(
    questions: Sequence[Signature],
    trajectories: Mapping[str, Sequence[str]],
    quotas: Quotas,
    strata: Mapping[str, Stratum],
) -> dict[str, list[str]]:
    """Return the trajectories of each question that make rows of sft: each question's first, then each one's second."""
    left = Counter(dict(quotas.rows))
    taken: defaultdict[str, list[str]] = defaultdict(list)
    for number in range(max(map(len, trajectories.values()), default=0)):
        for each in questions:
            found = trajectories.get(each.record_id, ())
            stratum = strata[each.record_id]
            if number < len(found) and left[stratum] > 0:
                left[stratum] -= 1
                taken[each.record_id].append(found[number])
    return taken
