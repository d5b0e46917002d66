"""Statistics of shares: intervals, agreement beyond chance, correction for a judge's errors, amounts with bounds."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import ConfigError


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share; (0.0, 1.0) for no trials.

    Source: Wilson 1927, equation 3; ``z`` 1.96 is 95% confidence.
    """
    if not 0 <= successes <= trials:
        raise ConfigError(f"wilson_interval: {successes} successes of {trials} trials; allowed are 0 to trials")
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
    if len(first) != len(second) or not first:
        raise ConfigError(
            f"cohen_kappa: {len(first)} and {len(second)} labels; allowed are equal counts of at least one"
        )
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
    if not rows or min(map(len, rows)) < 2:
        raise ConfigError("fleiss_kappa: allowed are one row or more, of two labels or more each")
    counts, total = [Counter(row) for row in rows], Counter(label for row in rows for label in row)
    observed = sum(measure_pairs(count) for count in counts) / len(counts)
    expected = sum((count / total.total()) ** 2 for count in total.values())
    return 1.0 if expected == 1.0 else (observed - expected) / (1.0 - expected)


def measure_pairs(labels: Counter[str]) -> float:
    """Return the share of pairs of labels that are equal; there must be two labels or more."""
    whole = labels.total()
    return sum(count * (count - 1) for count in labels.values()) / (whole * (whole - 1))


@dataclass(frozen=True, slots=True)
class Rate:
    """A count among a number of rows."""

    count: int
    trials: int


@dataclass(frozen=True, slots=True)
class Corrected:
    """A share with its 95% interval after correction."""

    share: float
    low: float
    high: float


def correct_share(accepted: Rate, specificity: Rate, sensitivity: Rate, z: float = 1.96) -> Corrected:
    """Return the true share behind a share that a fallible judge accepted (Rogan and Gladen 1978).

    The interval includes the uncertainty of the judge's own rates (arXiv 2511.21140, adjusted interval). If the judge
    accepts right answers no more often than wrong ones, the result is the accepted share with the interval 0.0 to 1.0.
    """
    for rate in (accepted, specificity, sensitivity):
        if not 0 <= rate.count <= rate.trials or not rate.trials:
            raise ConfigError(f"correct_share: {rate.count} of {rate.trials}; allowed are 0 to trials, at least one")
    shares = [rate.count / rate.trials for rate in (accepted, specificity, sensitivity)]
    gain = shares[1] + shares[2] - 1
    p, p_size = _smooth(accepted, z * z)
    q0, q0_size = _smooth(specificity, 2)
    q1, q1_size = _smooth(sensitivity, 2)
    smooth_gain = q0 + q1 - 1
    if gain <= 0 or smooth_gain <= 0:
        return Corrected(shares[0], 0.0, 1.0)
    share = (p + q0 - 1) / smooth_gain
    doubt0, doubt1 = q0 * (1 - q0) / q0_size, q1 * (1 - q1) / q1_size
    centre = share + 2 * z * z * (share * doubt1 - (1 - share) * doubt0)
    half = z * math.sqrt(p * (1 - p) / p_size + (1 - share) ** 2 * doubt0 + share**2 * doubt1) / smooth_gain
    return Corrected(_clip((shares[0] + shares[1] - 1) / gain), _clip(centre - half), _clip(centre + half))


def _smooth(rate: Rate, weight: float) -> tuple[float, float]:
    return (rate.count + weight / 2) / (rate.trials + weight), rate.trials + weight


def _clip(share: float) -> float:
    return min(max(share, 0.0), 1.0)


LEAST_GROUPS = 8
"""Fewest groups of rows whose spread is trusted; fewer agree by chance too often."""
_Z = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """An amount with its bounds; a 95% interval where the amount was measured."""

    low: float
    middle: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the amount is known exactly."""
        return self.low == self.middle == self.high

    def times(self, other: "Interval") -> "Interval":
        """Return the product of two independent amounts: relative errors add as squares."""
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
        """Return the sum; the errors may have the same direction, so bounds add."""
        return Interval(self.low + other.low, self.middle + other.middle, self.high + other.high)

    def less(self, known: float) -> "Interval":
        """Return the amount minus a known part, at least 0."""
        return Interval(max(self.low - known, 0.0), max(self.middle - known, 0.0), max(self.high - known, 0.0))

    def cap(self, most: float) -> "Interval":
        """Return the amount, at most a number."""
        return Interval(min(self.low, most), min(self.middle, most), min(self.high, most))

    def join(self, other: "Interval") -> "Interval":
        """Return this amount with the wider of both bounds."""
        return Interval(min(self.low, other.low), self.middle, max(self.high, other.high))


def make_exact(amount: float) -> Interval:
    """Return an amount that is known exactly."""
    return Interval(amount, amount, amount)


def make_bound(most: float) -> Interval:
    """Return an amount of which only the upper bound is known; the bound is also its middle."""
    return Interval(0.0, most, most)


def bound_mean(total: float, trials: int, most: float) -> Interval:
    """Return the mean of amounts between 0 and ``most`` a trial, by their sum alone.

    No amounts within those bounds spread more than a share with the same mean, so the Wilson interval of that share
    holds for all of them.
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
    first = (_Z**3 + _Z) / (4 * freedom)
    return _Z + first + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def _take_log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf
