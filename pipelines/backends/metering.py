"""Counting what a shard asks for. The runner opens a meter; whoever asks adds to the one that is open."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from schemas.manifest import Usage


@dataclass(slots=True)
class Meter:
    """Running totals of one shard."""

    usage: Usage

    def add(self, usage: Usage) -> None:
        """Add one request's usage."""
        self.usage = self.usage + usage


_OPEN: ContextVar[Meter | None] = ContextVar("open_meter", default=None)


@contextmanager
def open_meter() -> Iterator[Meter]:
    """Count everything asked for inside, by this task and the tasks it starts."""
    meter = Meter(Usage())
    token = _OPEN.set(meter)
    try:
        yield meter
    finally:
        _OPEN.reset(token)


def count_usage(usage: Usage) -> None:
    """Add to the open meter; nothing is counted outside one."""
    meter = _OPEN.get()
    if meter is not None:
        meter.add(usage)
