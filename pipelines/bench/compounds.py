"""Two defects in one question: does the one hide the other?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from pipelines.bench.catalogue import Operator, list_operators
from pipelines.bench.pools import Pool
from pipelines.bench.scenes import TRIES, Scene, Twins, draw_case, judge
from pipelines.bench.vocabulary import Vocabulary

COMBINED = ("D06", "D07", "D08", "D10", "D11")
"""Defects that leave the claim as it is, so that any two can be planted together."""
MENDED = ("D06", "D11")
"""Not planted together: another entity with another answer makes the picture needed again."""
LEAK = "D05"


@dataclass(frozen=True, slots=True)
class CompoundRow:
    """What became of two defects planted together."""

    first: str
    second: str
    titles: tuple[str, str]
    """Of both defects; a code may have several kinds."""
    pairs: int
    both: int
    """Questions in which both were named."""
    one: int
    none: int


def plant_compounds(pools: Sequence[Pool], words: Vocabulary, rng: Random, count: int) -> tuple[CompoundRow, ...]:
    """Plant every combination ``count`` times where questions admit it, each wiki defect with a leak besides."""
    operators = list_operators(*COMBINED)
    rows = []
    for (code, title, first), (other, besides, second) in combinations(operators, 2):
        if (code, other) == MENDED:
            continue
        found = [_judge_both(pools, first, second, words, rng) for _ in range(count)]
        rows.append(_sum_up((code, other), (title, besides), found))
    for code, title, operator in operators:
        found = [_judge_leak(pools, operator, words, rng) for _ in range(count)]
        rows.append(_sum_up((code, LEAK), (title, "the answer"), found))
    return tuple(rows)


def _sum_up(codes: tuple[str, str], titles: tuple[str, str], found: Sequence[int | None]) -> CompoundRow:
    counts = Counter(found)
    planted = len(found) - counts[None]
    return CompoundRow(*codes, titles, planted, counts[2], counts[1], counts[0])


def _judge_both(pools: Sequence[Pool], first: Operator, second: Operator, words: Vocabulary, rng: Random) -> int | None:
    """Return how many of two defects were named, None when no question admits both."""
    for _ in range(TRIES // 10):
        case = draw_case(pools, rng)
        twins = first(case, words, rng)
        others = second(case, words, rng) if twins is not None else None
        if twins is None or others is None or set(twins.defective.edits) & set(others.defective.edits):
            continue
        scene = Scene(
            case.claim,
            {**twins.defective.edits, **others.defective.edits},
            (*twins.defective.added, *others.defective.added),
        )
        return _count_named(case.pool, scene, (twins, others))
    return None


def _judge_leak(pools: Sequence[Pool], operator: Operator, words: Vocabulary, rng: Random) -> int | None:
    for _ in range(TRIES // 10):
        case = draw_case(pools, rng)
        twins = operator(case, words, rng)
        if twins is not None:
            text = f"{case.claim.text.rstrip('?')}, perhaps {case.claim.answer.surface}?"
            scene = replace(twins.defective, claim=replace(case.claim, text=text))
            return _count_named(case.pool, scene, (twins, replace(twins, codes=("answer-leak",))))
    return None


def _count_named(pool: Pool, scene: Scene, planted: Sequence[Twins]) -> int:
    codes = {result.code for result in judge(pool, scene)}
    return sum(bool(codes & set(twins.codes)) for twins in planted)
