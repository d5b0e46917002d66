"""Intervals and agreement: how sure a measured share is, and how much two raters agree beyond chance."""

import math
from collections import Counter
from collections.abc import Sequence

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
