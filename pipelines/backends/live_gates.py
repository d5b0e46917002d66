"""Turns at a service: so many requests in flight, so many a second, and none while it wants to be left alone.

Shards may have an event loop each, in threads: all that changes here does so under a lock, and nothing is awaited
under it.
"""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from pipelines.errors import RateLimited

LONGEST_WAIT: Final = 60.0
"""Seconds that a request waits where a service asks to be left alone, if nothing else is said."""
_MOST_GATES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A request that waits for a place, woken in its own loop."""

    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]

    def wake(self) -> bool:
        """Let it in; return False if its loop is gone."""
        try:
            self.loop.call_soon_threadsafe(self._let_in)
        except RuntimeError:
            return False
        return True

    def _let_in(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


@dataclass(slots=True, eq=False)
class Gate:
    """Turns at one service.

    Attributes:
        name: of the service, for messages.
        rate: requests a second, at most.
        concurrency: requests in flight, at most.
        longest: seconds that a request waits where the service asks to be left alone; for longer, whoever asks is told.
        in_flight: how many there are.
    """

    name: str
    rate: float
    concurrency: int
    longest: float = LONGEST_WAIT
    in_flight: int = 0
    _next_at: float = 0.0
    """On the monotonic clock, as the next."""
    _held_until: float = 0.0
    _waiters: deque[_Waiter] = field(default_factory=deque, repr=False)
    _granted: set[_Waiter] = field(default_factory=set, repr=False)
    """Those that have a place and have not been told yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_idle(self) -> bool:
        """Whether nobody asks or waits, and nobody would have to."""
        return not self.in_flight and max(self._next_at, self._held_until) < time.monotonic()

    def hold(self, seconds: float) -> None:
        """Let nobody in for so many seconds: the service said so, and it meant all who ask."""
        with self._lock:
            self._held_until = max(self._held_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Wait for a turn; the block is the request.

        Raises:
            RateLimited: if the service wants to be left alone for longer than a request waits.
        """
        await self._take_place()
        try:
            await self._wait_turn()
            yield
        finally:
            self._give_place()

    async def _take_place(self) -> None:
        with self._lock:
            if self.in_flight < self.concurrency:
                self.in_flight += 1
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            self._waiters.append(waiter)
        try:
            await waiter.woken
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        with self._lock:
            self._granted.discard(waiter)

    def _leave(self, waiter: _Waiter) -> None:
        """Take out a waiter that was cancelled; a place that it had just got goes to the next."""
        with self._lock:
            if waiter not in self._granted:
                self._waiters.remove(waiter)
                return
            self._granted.discard(waiter)
        self._give_place()

    def _give_place(self) -> None:
        with self._lock:
            while self._waiters:
                waiter = self._waiters.popleft()
                if waiter.wake():
                    self._granted.add(waiter)
                    return
            self.in_flight -= 1

    async def _wait_turn(self) -> None:
        while True:
            await asyncio.sleep(self._draw_wait())
            # Somebody else may have been told to wait in the meantime.
            if time.monotonic() >= self._held_until:
                return

    def _draw_wait(self) -> float:
        with self._lock:
            now = time.monotonic()
            held = self._held_until - now
            if held > self.longest:
                raise RateLimited(f"{self.name} asked to be left alone for {held:.0f} s more", held)
            turn = max(now, self._next_at, self._held_until)
            self._next_at = turn + 1.0 / self.rate
            return turn - now


@dataclass(frozen=True, slots=True)
class Gates:
    """A gate a host; those that nobody needs are forgotten.

    Attributes:
        rate: requests a second at each, at most.
        concurrency: requests in flight at each, at most.
        longest: seconds that a request waits for one that asks to be left alone.
    """

    rate: float
    concurrency: int
    longest: float = LONGEST_WAIT
    by_host: OrderedDict[str, Gate] = field(default_factory=OrderedDict, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def find(self, host: str) -> Gate:
        """Return a host's gate."""
        with self.lock:
            gate = self.by_host.setdefault(host, Gate(host, self.rate, self.concurrency, self.longest))
            self.by_host.move_to_end(host)
            if len(self.by_host) > _MOST_GATES:
                self._forget()
            return gate

    def _forget(self) -> None:
        """Drop the gate that was asked for the longest time ago, if it is idle."""
        oldest = next(iter(self.by_host))
        if self.by_host[oldest].is_idle:
            del self.by_host[oldest]
        else:
            self.by_host.move_to_end(oldest)
