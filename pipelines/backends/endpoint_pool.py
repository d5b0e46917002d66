"""Waiting for a place at one of several addresses: first come, first served, by every event loop of the process."""

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pipelines.backends.endpoints import FIRST_LIMIT, Endpoint, Outcome, Ticket, choose_endpoint
from pipelines.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one address may be asked for.

    Attributes:
        concurrency: most requests in flight.
        patience: seconds that every address may be busy or away.
        gpus: behind it.
        pause: seconds of the first probe, or of the first wait where it names none; doubled each time.
    """

    concurrency: int
    patience: float
    gpus: float = 0.0
    pause: float = 1.0


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request that waits; woken by its future, in its own loop."""

    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]
    since: float
    avoided: Endpoint | None
    ticket: Ticket | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Alarm:
    """When and in which loop the pool looks again; one that another has replaced does nothing."""

    when: float
    loop: asyncio.AbstractEventLoop


@dataclass(slots=True, eq=False)
class EndpointPool:
    """The addresses of one model and who waits for them.

    Shards may have an event loop each, in threads, so that all that changes here does so under the lock; nothing is
    awaited under it.

    Attributes:
        name: the model's, for messages.
        endpoints: at least one.
        patience: seconds that all addresses may be busy or away before whoever waits is told.
        clock: seconds, never going back.
    """

    name: str
    endpoints: tuple[Endpoint, ...]
    patience: float
    clock: Callable[[], float] = time.monotonic
    _waiters: OrderedDict[_Waiter, None] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _alarm: _Alarm | None = None

    @property
    def answered(self) -> int:
        """Requests answered so far, by any address."""
        return sum(endpoint.answered for endpoint in self.endpoints)

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._waiters)

    async def take(self, since: float, avoided: Endpoint | None = None) -> Ticket:
        """Return a place at an address as soon as there is one. It must be given back.

        Args:
            since: when the request was first to be sent: patience begins no sooner.
            avoided: where it has just failed.

        Raises:
            Unavailable: if every address was busy or away for too long.
        """
        with self._lock:
            now = self.clock()
            chosen = None if self._waiters else choose_endpoint(self.endpoints, avoided, now)
            if chosen is not None:
                return chosen.take(now)
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future(), since, avoided)
            self._waiters[waiter] = None
            self._serve(now)
        try:
            await waiter.woken
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        if waiter.ticket is None:
            raise Unavailable(self._describe())
        return waiter.ticket

    def give_back(self, ticket: Ticket, outcome: Outcome) -> float:
        """End a request, let in who waits, and return its GPU-seconds."""
        with self._lock:
            now = self.clock()
            spent = ticket.endpoint.end(ticket, outcome, now)
            if self._waiters:
                self._serve(now)
            return spent

    def _leave(self, waiter: _Waiter) -> None:
        """Take out a waiter that was cancelled, its place, too, if it had just got one."""
        with self._lock:
            now = self.clock()
            if waiter.ticket is not None:
                waiter.ticket.endpoint.end(waiter.ticket, Outcome("unknown"), now)
            self._waiters.pop(waiter, None)
            self._serve(now)

    def _serve(self, now: float) -> None:
        """Give places to those who came first, and see to it that the next one is not forgotten."""
        while self._waiters:
            first = next(iter(self._waiters))
            chosen = choose_endpoint(self.endpoints, first.avoided, now)
            if chosen is None and not self._is_away(first.since, now):
                self._set_alarm(first, now)
                return
            self._waiters.popitem(last=False)
            first.ticket = chosen.take(now) if chosen is not None else None
            if not _wake(first) and first.ticket is not None:
                first.ticket.endpoint.end(first.ticket, Outcome("unknown"), now)

    def _is_away(self, since: float, now: float) -> bool:
        return all(endpoint.was_away(since, now, self.patience) for endpoint in self.endpoints)

    def _set_alarm(self, first: _Waiter, now: float) -> None:
        """Look again when time alone may have changed something; in the loop of who is first, for that one runs."""
        moments = [endpoint.find_next(now) for endpoint in self.endpoints]
        limit = max(first.since, *(endpoint.troubled_since for endpoint in self.endpoints)) + self.patience
        when = min(*moments, limit if limit > now else math.inf)
        if when == math.inf or (self._alarm and self._alarm.loop is first.loop and now < self._alarm.when <= when):
            return
        alarm = self._alarm = _Alarm(when, first.loop)
        _call(first.loop, lambda: first.loop.call_later(when - now, self._look_again, alarm))

    def _look_again(self, alarm: _Alarm) -> None:
        with self._lock:
            if alarm is self._alarm:
                self._alarm = None
                self._serve(self.clock())

    def _describe(self) -> str:
        said = "; ".join(f"{endpoint.url}: {endpoint.last_error}" for endpoint in self.endpoints)
        return f"model {self.name}: no address answered for {self.patience:g} s ({said}); run again later"


def make_pool(name: str, urls: tuple[str, ...], bounds: Bounds) -> EndpointPool:
    """Return a pool of addresses about which nothing is known yet.

    Args:
        name: the model's, for messages.
        urls: addresses.
        bounds: of each.
    """
    # Alone, an address has nobody to keep from working when it hangs.
    first = bounds.concurrency if len(urls) == 1 else min(bounds.concurrency, FIRST_LIMIT)
    endpoints = (Endpoint(url, bounds.concurrency, float(first), bounds.gpus, bounds.pause) for url in urls)
    return EndpointPool(name, tuple(endpoints), bounds.patience)


def _wake(waiter: _Waiter) -> bool:
    """Wake who waits; return False if its loop is gone."""
    return _call(waiter.loop, lambda: None if waiter.woken.done() else waiter.woken.set_result(None))


def _call(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> bool:
    """Act in a loop, at once if it is the running one; return False if it is closed."""
    try:
        # Every place is taken and given back in a loop.
        if asyncio.get_running_loop() is loop:
            act()
        else:
            loop.call_soon_threadsafe(act)
    except RuntimeError:
        return False
    return True
