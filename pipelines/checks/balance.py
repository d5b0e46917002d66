"""Shares that a data set keeps: evenly over categories, and of questions that need no search between two bounds.

Both are exact, and as many rows as the rule allows are kept.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.checks.sets import find_quota
from schemas.base import Rejection
from schemas.datasets import SearchNeed, Split
from schemas.reasons import MixReason

FREE: SearchNeed = "search-free"
ROUNDING = 1e-9


def share_out(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Return how many of each category are kept so that ``total`` are, as evenly as they allow (max-min fair).

    A category with fewer than its even part keeps all, and the others share what it leaves; what cannot be divided
    goes to the largest.
    """
    kept = dict.fromkeys(sorted(counts), 0)
    left = min(total, sum(counts.values()))
    for place, name in enumerate(sorted(counts, key=lambda name: (counts[name], name))):
        kept[name] = min(counts[name], left // (len(counts) - place))
        left -= kept[name]
    return kept


def sample(counts: Mapping[str, int], total: int, spread: float) -> dict[str, int]:
    """Return how many of each category are kept: at most ``total``, evenly, and none far more than others.

    Args:
        counts: of each category that there is.
        total: most that are kept.
        spread: largest share of a category, as a multiple of an even one.
    """
    even = share_out(counts, total)
    present = [count for count in even.values() if count]
    most = find_quota(present, min(1.0, spread / len(present))) if present else 0
    return {name: min(count, most) for name, count in even.items()}


def fit_mix(free: int, required: int, low: float, high: float) -> tuple[int, int]:
    """Return how many search-free and search-required questions are kept: the most whose share is within the bounds.

    The share is of search-free ones among both; (0, 0) if no selection fits. Of two that keep as many, the one with
    more search-required ones.
    """
    best = (0, 0)
    for kept in range(free + 1):
        most = required if low <= 0.0 else min(required, math.floor(kept * (1.0 - low) / low + ROUNDING))
        least = 0 if high >= 1.0 else math.inf if high <= 0.0 < kept else _divide(kept, high)
        if least <= most and kept + most > sum(best):
            best = (kept, most)
    return best


def _divide(kept: int, high: float) -> int:
    """Return the fewest search-required questions beside so many search-free ones."""
    return math.ceil(kept * (1.0 - high) / high - ROUNDING) if kept else 0


def narrow_bounds(bounds: tuple[float, float], part: float) -> tuple[float, float]:
    """Return bounds moved by a part of the way toward their middle; one that stands alone, toward the open end."""
    low, high = bounds
    goal = 0.0 if low <= 0.0 else 1.0 if high >= 1.0 else (low + high) / 2
    return low + part * (goal - low), high + part * (goal - high)


@dataclass(frozen=True, slots=True)
class Needed:
    """What a question counts for in the mix."""

    record_id: str
    split: Split
    search_need: SearchNeed


def refuse_mix(questions: Sequence[Needed], bounds: tuple[float, float]) -> dict[str, Rejection]:
    """Refuse what a split has too much of: search-free questions, or those that take a search (MMSearch-R1, 3.1).

    The bounds hold for the kept rows of each split whose need was measured; a question whose need was not counts for
    neither. Earlier questions are kept.

    Args:
        questions: in the order in which they are kept.
        bounds: least and largest share of search-free questions; (0, 1) refuses none.
    """
    if bounds == (0.0, 1.0):
        return {}
    refused: dict[str, Rejection] = {}
    found = Counter((each.split, each.search_need == FREE) for each in questions if each.search_need)
    left: dict[tuple[Split, bool], int] = {}
    for split in {split for split, _ in found}:
        left[split, True], left[split, False] = fit_mix(found[split, True], found[split, False], *bounds)
    for each in questions:
        mark = each.split, each.search_need == FREE
        if not each.search_need:
            continue
        if left[mark] > 0:
            left[mark] -= 1
            continue
        reason: MixReason = "search-free-over-share" if mark[1] else "search-required-over-share"
        detail = (
            f"of {each.split}, {found[each.split, True]} need no search and {found[each.split, False]} take one; "
            f"the share of the former must be {bounds[0]:.1%} to {bounds[1]:.1%}"
        )
        refused[each.record_id] = Rejection(record_id=each.record_id, reason=reason, detail=detail)
    return refused
