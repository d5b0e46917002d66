"""Amounts known within bounds: what a sample says of a whole, and how doubts add up when amounts are multiplied."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.scoring.agreement import wilson_interval

LEAST_GROUPS = 8
"""Groups of rows from which on their spread is trusted; fewer happen to agree too often."""
_Z = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """An amount with the bounds it lies between, 95% of the time where it was measured."""

    low: float
    middle: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether there is no doubt."""
        return self.low == self.middle == self.high

    def times(self, other: "Interval") -> "Interval":
        """Return the product of two amounts that have nothing to do with each other: relative doubts add as squares."""
        middle = self.middle * other.middle
        if not middle:
            return Interval(0.0, 0.0, self.high * other.high)
        down = math.hypot(_take_log(self.middle, self.low), _take_log(other.middle, other.low))
        up = math.hypot(_take_log(self.high, self.middle), _take_log(other.high, other.middle))
        return Interval(middle * math.exp(-down), middle, middle * math.exp(up))

    def scale(self, factor: float) -> "Interval":
        """Return the amount times a number that is known."""
        return Interval(self.low * factor, self.middle * factor, self.high * factor)

    def plus(self, other: "Interval") -> "Interval":
        """Return the sum; both may err in the same direction, so bounds add."""
        return Interval(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def less(self, known: float) -> "Interval":
        """Return what is left without a known part, never below nothing."""
        return Interval(max(self.low - known, 0.0), max(self.middle - known, 0.0), max(self.high - known, 0.0))

    def cap(self, most: float) -> "Interval":
        """Return the amount where it cannot be larger than a number."""
        return Interval(min(self.low, most), min(self.middle, most), min(self.high, most))

    def join(self, other: "Interval") -> "Interval":
        """Return this amount with the wider of both bounds."""
        return Interval(min(self.low, other.low), self.middle, max(self.high, other.high))


def make_exact(amount: float) -> Interval:
    """Return an amount without doubt."""
    return Interval(amount, amount, amount)


def make_bound(most: float) -> Interval:
    """Return an amount of which only the upper bound is known; the bound stands for the middle, too."""
    return Interval(0.0, most, most)


def bound_mean(total: float, trials: int, most: float) -> Interval:
    """Return the mean of amounts between 0 and ``most`` a trial, by their sum alone.

    No amounts within those bounds spread more than a share with the same mean, so the Wilson interval of that share
    holds for all of them.

    Args:
        total: sum over all trials; none gives 0 to ``most``.
        trials: how many there were.
        most: largest amount of one trial; a larger mean takes its place.
    """
    mean = total / trials if trials else 0.0
    most = max(most, mean)
    if not most:
        return make_exact(0.0)
    low, high = wilson_interval(min(round(total / most), trials), trials)
    return Interval(min(low * most, mean), mean, max(high * most, mean))


def estimate_ratio(amounts: Sequence[float], rows: Sequence[int]) -> Interval | None:
    """Return the amount a row from groups of rows, by how much the groups differ; None for too few groups.

    Groups are taken as drawn at random; rows of one group may be as alike as they like.
    Source: Cochran 1977, equation 6.13 (ratio estimator); Student's t by the expansion of Abramowitz and Stegun 26.7.5.
    """
    groups = [(amount, count) for amount, count in zip(amounts, rows, strict=True) if count]
    if len(groups) < LEAST_GROUPS:
        return None
    whole = sum(count for _, count in groups)
    ratio = sum(amount for amount, _ in groups) / whole
    squares = math.fsum((amount - ratio * count) ** 2 for amount, count in groups)
    spread = math.sqrt(squares * len(groups) / (len(groups) - 1)) / whole
    half = _find_quantile(len(groups) - 1) * spread
    return Interval(max(ratio - half, 0.0), ratio, ratio + half)


def _find_quantile(freedom: int) -> float:
    """Return Student's two-sided 95% quantile for at least a handful of degrees of freedom."""
    first = (_Z**3 + _Z) / (4 * freedom)
    return _Z + first + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def _take_log(larger: float, smaller: float) -> float:
    """Return the logarithm of a ratio of at least 1; infinite where the smaller one is 0."""
    return math.log(larger / smaller) if smaller > 0 else math.inf
