"""Small numbers that a quality report is made of; all rounded, so that reports compare byte for byte."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

DIGITS = 4
Number = int | float
Table = dict[str, dict[str, Number]]
"""Named rows of named numbers."""


def share(part: int, whole: int) -> float:
    """Return ``part / whole``, 0.0 of nothing."""
    return round(part / whole, DIGITS) if whole else 0.0


def count_rows(flags: Iterable[bool]) -> dict[str, Number]:
    """Return in how many rows something holds, and their share of all."""
    told = list(flags)
    return {"rows": sum(told), "share": share(sum(told), len(told))}


def count_values(values: Iterable[str]) -> Table:
    """Return rows and share of each value, the most frequent first, then by name."""
    counts = Counter(values)
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {value: {"rows": rows, "share": share(rows, total)} for value, rows in ordered}


def describe_numbers(values: Sequence[Number]) -> dict[str, Number]:
    """Return count, min, median, 95th percentile (nearest rank) and max; only the count when there are none."""
    ordered = sorted(values)
    if not ordered:
        return {"n": 0}
    return {
        "n": len(ordered),
        "min": ordered[0],
        "median": ordered[math.ceil(len(ordered) * 0.5) - 1],
        "p95": ordered[math.ceil(len(ordered) * 0.95) - 1],
        "max": ordered[-1],
    }


def count_effective(values: Iterable[str]) -> float:
    """Return exp(entropy): how many equally frequent values would be as varied."""
    counts = Counter(values)
    total = sum(counts.values())
    shares = [counts[value] / total for value in sorted(counts)]
    return round(math.exp(-sum(part * math.log(part) for part in shares)), DIGITS) if shares else 0.0


def measure_gini(counts: Iterable[int]) -> float:
    """Return the Gini coefficient of use counts: 0.0 when all are used alike."""
    ordered = sorted(counts)
    total = sum(ordered)
    if not total:
        return 0.0
    ranked = sum(rank * value for rank, value in enumerate(ordered, 1))
    return round(2 * ranked / (len(ordered) * total) - (len(ordered) + 1) / len(ordered), DIGITS)


def measure_prior(answers: Iterable[tuple[Hashable, str]]) -> float:
    """Return the share of answers that whoever gives the most frequent other answer of the same group gets right.

    An answer does not vouch for itself, so a group of one is never guessed; a tie is drawn.

    Args:
        answers: group and answer of each row.
    """
    groups: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for group, answer in answers:
        groups[group][answer] += 1
    right = sum(map(_guess_most_frequent, groups.values()), 0.0)
    total = sum(counts.total() for counts in groups.values())
    return round(right / total, DIGITS) if total else 0.0


def _guess_most_frequent(counts: Counter[str]) -> float:
    """Return how many of a group's answers are expected right: only those of a single most frequent one can be."""
    ranked = sorted(counts.values(), reverse=True)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else 0
    if first - 1 > second:
        return float(first)
    tied = ranked.count(second) + 1 if second and first - 1 == second else 0
    return first / tied if tied else 0.0
