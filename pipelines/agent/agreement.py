"""Statistics of shares: intervals, agreement beyond chance, amounts with bounds."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share; (0.0, 1.0) for no trials.

    Source: Wilson 1927, equation 3; ``z`` 1.96 is 95% confidence.
    """
    if trials == 0:
        return 0.0, 1.0
    share, spread = successes / trials, z * z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    # The bounds are exactly 0 and 1 at the ends; rounding would leave 1e-17 there.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == trials else centre + half
    return low, high


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two raters' labels for the same rows; 1.0 is full agreement, 0.0 is chance.

    Where both raters use one and the same label throughout, kappa is undefined and 1.0 is returned.
    """
    count = len(first)
    observed = sum(one == other for one, other in zip(first, second, strict=True)) / count
    ones, others = Counter(first), Counter(second)
    expected = sum(ones[label] * others[label] for label in sorted(ones)) / (count * count)
    return 1.0 if expected == 1.0 else (observed - expected) / (1.0 - expected)


def fleiss_kappa(rows: Sequence[Sequence[str]]) -> float:
    """Return Fleiss' kappa of the labels that each row was given, by any two or more raters; 1.0 is full agreement.

    Rows may have different numbers of labels: a row's agreement is that of its pairs of labels, and chance that of all
    labels (Fleiss 1971, equations 3 to 7, where all rows have the same number). Where only one label is used, kappa is
    undefined and 1.0 is returned.
    """
    counts, total = [Counter(row) for row in rows], Counter(label for row in rows for label in row)
    observed = sum(measure_pairs(count) for count in counts) / len(counts)
    expected = sum((count / total.total()) ** 2 for count in total.values())
    return 1.0 if expected == 1.0 else (observed - expected) / (1.0 - expected)


def measure_pairs(labels: Counter[str]) -> float:
    """Return the share of pairs of labels that are equal; there must be two labels or more."""
    whole = labels.total()
    return sum(count * (count - 1) for count in labels.values()) / (whole * (whole - 1))


@dataclass(frozen=True, slots=True)
class Interval:
    """An amount with its bounds; a 95% interval where the amount was measured."""

    low: float
    middle: float
    high: float


def bound_mean(total: float, trials: int, most: float) -> Interval:
    """Return the mean of amounts between 0 and ``most`` a trial, by their sum alone.

    No amounts within those bounds spread more than a share with the same mean, so the Wilson interval of that share
    holds for all of them.
    """
    mean = total / trials if trials else 0.0
    most = max(most, mean)
    if not most:
        return Interval(0.0, 0.0, 0.0)
    low, high = wilson_interval(min(round(total / most), trials), trials)
    return Interval(min(low * most, mean), mean, max(high * most, mean))
