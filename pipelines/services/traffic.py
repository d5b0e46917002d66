"""The requests of a process to all services: what they took so far, how many are in flight, and which wait for what.

Whoever shows a run's progress opens the traffic; requests add to the open one, and without one they cost nothing.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TypeVar

from schemas.manifest import Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wait:
    """What requests wait for: a service that gave no reply.

    Attributes:
        place: the service, such as its address.
        cause: why the last try gave no reply.
        since: when the first of them failed first, in seconds since 1970.
        requests: how many wait.
        until: when the first of them gives up, in seconds since 1970; 0 where that is not known.
    """

    place: str
    cause: str
    since: float
    requests: int = 1
    until: float = 0.0


@dataclass(slots=True)
class Traffic:
    """Running totals of a process; written by its event loop, read by any thread.

    Attributes:
        usage: of all requests that were answered.
        in_flight: requests that were sent and are not answered, those that wait to be sent again included.
        waiting: by request, what it waits for.
    """

    usage: Usage = field(default_factory=Usage)
    in_flight: int = 0
    waiting: dict[int, Wait] = field(default_factory=dict)

    def list_waits(self) -> list[Wait]:
        """Return what requests wait for now, a place each, the longest wait first."""
        # The list is made in one step: the event loop changes the dictionary meanwhile.
        return merge_waits(list(self.waiting.values()))


def merge_waits(waits: Iterable[Wait]) -> list[Wait]:
    """Return waits, one a place, with the latest cause and the first end; the longest wait first."""
    places: dict[str, Wait] = {}
    for wait in sorted(waits, key=lambda wait: -wait.since):
        known = places.get(wait.place, replace(wait, requests=0))
        until = min((end for end in (known.until, wait.until) if end), default=0.0)
        places[wait.place] = Wait(wait.place, known.cause, wait.since, known.requests + wait.requests, until)
    return sorted(places.values(), key=lambda wait: wait.since)


@contextmanager
def holding(variable: ContextVar[T | None], value: T) -> Iterator[T]:
    """Set a variable of the context for the block, and for the tasks and threads that it starts; yield its value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


_TRAFFIC: ContextVar[Traffic | None] = ContextVar("open_traffic", default=None)


def open_traffic(traffic: Traffic) -> AbstractContextManager[Traffic]:
    """Follow the requests of the block and of the tasks and threads that it starts."""
    return holding(_TRAFFIC, traffic)


def follow_usage(usage: Usage) -> None:
    """Add what a request took to the open traffic, if there is one."""
    if (traffic := _TRAFFIC.get()) is not None:
        traffic.usage = traffic.usage + usage


@contextmanager
def following_request() -> Iterator[None]:
    """Count the block as one request in flight."""
    traffic = _TRAFFIC.get()
    if traffic is None:
        yield
        return
    traffic.in_flight += 1
    try:
        yield
    finally:
        traffic.in_flight -= 1


@dataclass(slots=True)
class Waiting:
    """A request that may have to be sent again: from its first failure to the end of the block it waits."""

    _traffic: Traffic | None = field(default_factory=_TRAFFIC.get)
    _since: float = 0.0

    def __enter__(self) -> "Waiting":
        return self

    def note(self, place: str, cause: object, left: float = 0.0) -> None:
        """Say what is waited for, why the last try gave no reply, and in how many seconds it is given up, if it is."""
        if self._traffic is not None:
            now = time.time()
            self._since = self._since or now
            self._traffic.waiting[id(self)] = Wait(place, str(cause), self._since, 1, now + left if left else 0.0)

    @classmethod
    @contextmanager
    def on(cls, place: str, left: float) -> Iterator[None]:
        """Wait in the block for the reply to one request, which is given up in so many seconds."""
        with cls() as waiting:
            waiting.note(place, "no reply yet", left)
            yield

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._traffic is not None and self._since:
            self._traffic.waiting.pop(id(self), None)
