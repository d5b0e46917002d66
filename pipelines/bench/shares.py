"""A share with its interval, as the benches print it."""

from dataclasses import dataclass

from pipelines.scoring.agreement import wilson_interval


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
