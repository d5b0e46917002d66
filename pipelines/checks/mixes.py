"""Shares of a release by rounds of injection: as many questions as a tolerance allows, the rest refused."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pipelines.checks.sets import Signature
from schemas.base import Rejection


def fill_mix(available: Mapping[int, int], shares: Mapping[int, float], tolerance: float) -> dict[int, int]:
    """Return how many of each kind to keep: most in all, each share within the tolerance, then nearest to the shares.

    Args:
        available: rows of each kind; kinds without a share are not kept.
        shares: wanted of each kind; they sum to 1.
        tolerance: largest difference of a share.
    """
    for total in range(sum(available.get(kind, 0) for kind in shares), 0, -1):
        least = {kind: max(0, math.ceil((share - tolerance) * total - 1e-9)) for kind, share in shares.items()}
        most = {
            kind: min(available.get(kind, 0), math.floor((share + tolerance) * total + 1e-9))
            for kind, share in shares.items()
        }
        if sum(most.values()) >= total and all(least[kind] <= most[kind] for kind in shares):
            return _spread(total, least, most, shares)
    return dict.fromkeys(shares, 0)


def list_short_rounds(available: Mapping[int, int], shares: Mapping[int, float], tolerance: float) -> Iterator[str]:
    """Yield each number of rounds with too few questions for its share, in words, and what that costs the release.

    Args:
        available: questions by number of rounds.
        shares: wanted of each number; they sum to 1.
        tolerance: largest difference of a share.
    """
    total = sum(available.values())
    kept = sum(fill_mix(available, shares, tolerance).values())
    for number, share in shares.items():
        found = available.get(number, 0)
        if found < (share - tolerance) * total - 1e-9:
            yield (
                f"{found:,} of {total:,} questions have {number} rounds, {found / total:.1%} where injections.weights "
                f"wants {share:.1%} within {tolerance:.1%} (releases.rounds_tolerance): at most {kept:,} of all can be "
                "released; raise its share of injections.draws, or seeds.limit"
            )


def _spread(
    total: int, least: Mapping[int, int], most: Mapping[int, int], shares: Mapping[int, float]
) -> dict[int, int]:
    """Return numbers between bounds that sum to a total, each step to the kind that lacks most of its share."""
    kept = dict(least)
    while sum(kept.values()) < total:
        open_kinds = [kind for kind in shares if kept[kind] < most[kind]]
        kept[max(open_kinds, key=lambda kind: (shares[kind] * total - kept[kind], -kind))] += 1
    return kept


def refuse_rounds(
    signatures: Sequence[Signature], shares: Mapping[int, float], tolerance: float
) -> dict[str, Rejection]:
    """Refuse questions of a number of rounds beyond its share; of each number the first questions stay.

    Args:
        signatures: of the rows kept so far; earlier ones come first.
        shares: by number of rounds; empty is no limit.
        tolerance: largest difference of a share.
    """
    if not shares:
        return {}
    kinds: defaultdict[int, list[Signature]] = defaultdict(list)
    for signature in signatures:
        kinds[signature.rounds].append(signature)
    counted = Counter({kind: len(found) for kind, found in kinds.items()})
    kept = fill_mix(counted, shares, tolerance)
    told = ", ".join(f"{counted[kind]} of {kind}" for kind in sorted(counted))
    return {
        signature.record_id: Rejection(
            record_id=signature.record_id,
            reason="rounds-over-share",
            detail=f"{kept.get(kind, 0)} questions of {kind} rounds fill their share; there are {told}",
        )
        for kind, found in kinds.items()
        for signature in found[kept.get(kind, 0) :]
    }
