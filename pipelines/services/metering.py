"""Usage of requests, their waiting times, and the budget of a run.

The runner opens a meter and a rollout opens a stopwatch; each request adds to the open one. The budget adds up a whole
run and refuses requests when a limit is reached.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import get_args

from pipelines.config.settings import Budgeted, ModelConfig
from pipelines.errors import BudgetSpent
from pipelines.services.traffic import follow_usage, holding
from schemas.manifest import Usage

MILLION = 1e6
HOUR = 3600.0


@dataclass(slots=True)
class Meter:
    """Running totals of one record or shard."""

    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class Stopwatch:
    """The seconds that replies took when they were first made, so that a replay reads the same time.

    Waits are added up in whole milliseconds, so the sum does not depend on their order. ``day`` is the latest day (UTC)
    of a reply, empty if all are scripted or local.
    """

    day: str = ""
    _milliseconds: int = 0

    @property
    def seconds(self) -> float:
        """Seconds waited so far."""
        return self._milliseconds / 1000.0

    def add(self, seconds: float, day: str) -> None:
        """Add one reply's wait and its day, empty for none."""
        self._milliseconds += round(seconds * 1000.0)
        self.day = max(self.day, day)


_METER: ContextVar[Meter | None] = ContextVar("open_meter", default=None)
_STOPWATCH: ContextVar[Stopwatch | None] = ContextVar("open_stopwatch", default=None)


def open_meter() -> AbstractContextManager[Meter]:
    """Count the requests of this task and the tasks it starts, inside the block."""
    return holding(_METER, Meter())


def count_usage(usage: Usage) -> None:
    """Add one request's usage to the open meter, if there is one, and to the traffic of the process."""
    follow_usage(usage)
    if (meter := _METER.get()) is not None:
        meter.usage = meter.usage + usage


def open_stopwatch() -> AbstractContextManager[Stopwatch]:
    """Add up the waits of this task and the tasks it starts, inside the block."""
    return holding(_STOPWATCH, Stopwatch())


def add_waited(seconds: float, day: str) -> None:
    """Add a reply's first waiting time and its day (empty for none) to the open stopwatch, if there is one."""
    if (stopwatch := _STOPWATCH.get()) is not None:
        stopwatch.add(seconds, day)


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a million tokens in, a million tokens out and a GPU-hour, in the currency of the configuration.

    ``share`` is what is paid of the prices of tokens: less than 1 in batches.
    """

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    gpu_hour: float = 0.0
    share: float = 1.0

    def charge(self, tokens_in: int, tokens_out: int, gpu_seconds: float) -> tuple[float, float]:
        """Return the price of what a request took, and the discount that is taken off already."""
        tokens = (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / MILLION
        return tokens * self.share + self.gpu_hour * gpu_seconds / HOUR, tokens * (1.0 - self.share)


BATCH_SHARE = 0.5
"""What a request in a batch costs of the prices of tokens, at every vendor."""


def make_price(model: ModelConfig) -> Price:
    """Return the prices of a model."""
    parts = (model.prices.get("input", 0.0), model.prices.get("output", 0.0), model.prices.get("gpu_hour", 0.0))
    return Price(*parts, share=BATCH_SHARE if model.mode == "batch" else 1.0)


@dataclass(slots=True)
class Budget:
    """What a run has spent of its limits; all models of the run share it.

    It is checked before a request and charged after its reply, so a run overshoots by at most the requests in flight.
    ``spent`` is what this process has, ``elsewhere`` what the run's other processes have; the reply store keeps it so.
    """

    limits: Mapping[Budgeted, float] = field(default_factory=dict)
    spent: Usage = field(default_factory=Usage)
    elsewhere: Usage = field(default_factory=Usage)

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return any(self.limits.values())

    def check(self) -> None:
        """Check that another request may be sent.

        Raises:
            BudgetSpent: naming each limit that is reached, with what was spent of it.
        """
        spent = self.spent + self.elsewhere
        money, most, most_hours = (self.limits.get(each, 0) for each in get_args(Budgeted))
        tokens, hours = spent.tokens_in + spent.tokens_out, spent.gpu_seconds / HOUR
        reached = []
        if 0 < money <= spent.cost:
            reached.append(f"{spent.cost:.4g} of {money:.4g} in money")
        if 0 < most <= tokens:
            reached.append(f"{tokens:,} of {most:,.0f} tokens")
        if 0 < most_hours <= hours:
            reached.append(f"{hours:.4g} of {most_hours:.4g} GPU-hours")
        if reached:
            raise BudgetSpent(", ".join(reached))

    def add(self, usage: Usage) -> None:
        """Count what a request took."""
        self.spent = self.spent + usage
