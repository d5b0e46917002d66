"""Intervals and agreement: how sure a measured share is, and how much two raters agree beyond chance."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import ConfigError


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share; no trials at all say nothing: (0.0, 1.0).

    Source: Wilson 1927, equation 3; ``z`` 1.96 is 95% confidence.

    Raises:
        ConfigError: if not 0 <= successes <= trials.
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

    Raises:
        ConfigError: if the labels do not pair up, or there are none.
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


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something was found among so many rows."""

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

    The interval takes the doubt about the judge's own rates into account (arXiv 2511.21140, adjusted interval). A judge
    that accepts right answers no more often than wrong ones says nothing: the accepted share, and 0.0 to 1.0.

    Args:
        accepted: answers that the judge took for right, of all.
        specificity: wrong answers that it did not take for right, of those of a calibration set.
        sensitivity: right answers that it did, of those of a calibration set.
        z: 1.96 is 95% confidence.

    Raises:
        ConfigError: if a rate has no trials, or more counts than trials.
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
    """Return a share and its trials with ``weight`` trials added, half of them found."""
    return (rate.count + weight / 2) / (rate.trials + weight), rate.trials + weight


def _clip(share: float) -> float:
    return min(max(share, 0.0), 1.0)
