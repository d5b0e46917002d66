"""Shares that a data set keeps: categories alike, kinds of questions within bounds; as many rows as a rule allows.

All are exact. Earlier questions are kept.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from pipelines.checks.sets import Signature, find_quota
from pipelines.errors import GateNotMet
from schemas.base import Rejection
from schemas.datasets import SearchNeed
from schemas.reasons import MixReason

FREE: SearchNeed = "search-free"
ROUNDING = 1e-9
Kind = TypeVar("Kind", bound=Hashable)
Bounds = tuple[float, float]
"""Least and largest share, 0 to 1."""


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
    """Return how many of each category are kept: at most ``total``, evenly, and none far more than others."""
    even = share_out(counts, total)
    present = [count for count in even.values() if count]
    most = find_quota(present, min(1.0, spread / len(present))) if present else 0
    return {name: min(count, most) for name, count in even.items()}


def fill_mix(
    available: Mapping[Kind, int], bounds: Mapping[Kind, Bounds], wanted: Mapping[Kind, float]
) -> dict[Kind, int]:
    """Return how many of each kind to keep: most in all, within their bounds, then nearest to the wanted shares."""
    whole = sum(available.get(kind, 0) for kind in bounds)
    for kind, (low, _) in bounds.items():
        if low > 0.0:
            whole = min(whole, math.floor((available.get(kind, 0) + ROUNDING) / low))
    for total in range(whole, 0, -1):
        least = {kind: max(0, math.ceil(low * total - ROUNDING)) for kind, (low, _) in bounds.items()}
        most = {
            kind: min(available.get(kind, 0), math.floor(high * total + ROUNDING)) for kind, (_, high) in bounds.items()
        }
        fits = all(least[kind] <= most[kind] for kind in bounds)
        if fits and sum(least.values()) <= total <= sum(most.values()):
            return _spread(total, least, most, wanted)
    return dict.fromkeys(bounds, 0)


def _spread(
    total: int, least: Mapping[Kind, int], most: Mapping[Kind, int], wanted: Mapping[Kind, float]
) -> dict[Kind, int]:
    kept = dict(least)
    while sum(kept.values()) < total:
        open_kinds = [kind for kind in kept if kept[kind] < most[kind]]
        kept[max(open_kinds, key=lambda kind: wanted[kind] * total - kept[kind])] += 1
    return kept


def narrow_bounds(bounds: Bounds, part: float) -> Bounds:
    """Return bounds moved by a part of the way toward their middle; one that stands alone, toward the open end."""
    low, high = bounds
    goal = 0.0 if low <= 0.0 else 1.0 if high >= 1.0 else (low + high) / 2
    return low + part * (goal - low), high + part * (goal - high)


def refuse_mix(signatures: Sequence[Signature], bounds: Bounds) -> dict[str, Rejection]:
    """Refuse what a split has too much of: search-free questions, or those that take a search (MMSearch-R1, 3.1).

    The bounds hold for the kept rows of each split whose need was measured; a question whose need was not counts for
    neither. Of two mixes that keep as many, the one with more questions that take a search is kept.
    """
    if bounds == (0.0, 1.0):
        return {}
    low, high = bounds
    refused: dict[str, Rejection] = {}
    found = Counter((each.split, each.search_need == FREE) for each in signatures if each.search_need)
    left = Counter[tuple[str, bool]]()
    for split in {split for split, _ in found}:
        available = {True: found[split, True], False: found[split, False]}
        kept = fill_mix(available, {True: bounds, False: (1.0 - high, 1.0 - low)}, {True: low, False: 1.0 - low})
        left.update({(split, free): count for free, count in kept.items()})
    for each in signatures:
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


def bound_rounds(shares: Mapping[int, float], tolerance: float) -> dict[int, Bounds]:
    """Return least and largest share of each number of rounds."""
    return {kind: (shares[kind] - tolerance, shares[kind] + tolerance) for kind in sorted(shares)}


def list_short_rounds(available: Mapping[int, int], shares: Mapping[int, float], tolerance: float) -> Iterator[str]:
    """Yield each number of rounds with too few questions for its share, in words, and what that costs the release."""
    total = sum(available.values())
    kept = sum(fill_mix(available, bound_rounds(shares, tolerance), shares).values())
    for number, share in shares.items():
        found = available.get(number, 0)
        if found < (share - tolerance) * total - ROUNDING:
            yield (
                f"{found:,} of {total:,} questions have {number} rounds, {found / total:.1%} where injections.weights "
                f"wants {share:.1%} within {tolerance:.1%}: at most {kept:,} of all can be "
                "released; raise its share of injections.draws, or seeds.limit"
            )


def refuse_rounds(
    signatures: Sequence[Signature], shares: Mapping[int, float], tolerance: float
) -> dict[str, Rejection]:
    """Refuse questions of a number of rounds of injection beyond its share; those of no round have no part in it."""
    kinds: defaultdict[int, list[Signature]] = defaultdict(list)
    for signature in signatures if shares else ():
        if signature.rounds:
            kinds[signature.rounds].append(signature)
    counted = {kind: len(kinds[kind]) for kind in sorted(kinds)}
    kept = fill_mix(counted, bound_rounds(shares, tolerance), shares)
    told = ", ".join(f"{counted.get(kind, 0)} of {kind}" for kind in sorted({*counted, *shares}))
    if counted and not sum(kept.values()):
        wanted = ", ".join(f"{share:.0%} of {kind}" for kind, share in sorted(shares.items()))
        raise GateNotMet(
            f"injections: of questions by number of rounds there are {told}, and none of "
            f"their selections is {wanted} within {tolerance:g}; change injections.weights, or make more of "
            "what is missing"
        )
    return {
        signature.record_id: Rejection(
            record_id=signature.record_id,
            reason="rounds-over-share",
            detail=f"{kept.get(kind, 0)} questions of {kind} rounds fill their share; there are {told}",
        )
        for kind, found in kinds.items()
        for signature in found[kept.get(kind, 0) :]
    }
