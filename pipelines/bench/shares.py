"""A share with its interval, as the benches print it."""

import math
from dataclasses import dataclass

from pipelines.scoring.agreement import wilson_interval

_STEPS = 50
_DOUBT = 0.05


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``trials`` with its 95% Wilson interval."""

    count: int
    trials: int
    share: float
    low: float
    high: float


def make_share(count: int, trials: int) -> Share:
    """Return a share with its interval; no trials give the share 0.0 and the interval 0 to 1."""
    return Share(count, trials, count / trials if trials else 0.0, *wilson_interval(count, trials))


def show_interval(share: Share) -> str:
    """Return an interval as text, such as ``0.951-1.000``."""
    return f"{share.low:.3f}-{share.high:.3f}"


def find_lower_bound(count: int, trials: int) -> float:
    """Return the one-sided 95% lower bound of a share: at it, so many or more are seen one time in twenty.

    Source: Clopper and Pearson 1934. All of 300 give 0.990, all of 150 give 0.980; no number of trials gives 1.
    """
    low, high = 0.0, count / trials if count else 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _sum_tail(count, trials, middle) < _DOUBT else (low, middle)
    return low


def _sum_tail(count: int, trials: int, share: float) -> float:
    """Return how probable ``count`` or more of ``trials`` are at a share above 0 and below 1."""
    if not 0.0 < share < 1.0:
        return float(share >= 1.0)
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1) - math.lgamma(missed + 1) - math.lgamma(trials - missed + 1)
            + missed * math.log1p(-share) + (trials - missed) * math.log(share)
        )
        for missed in range(trials - count + 1)
    )  # fmt: skip
