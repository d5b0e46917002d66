"""Turns at services that the processes of a run share: a rate, a pause or a number of places holds for all together.

They are rows in the database of replies, so one host shares them by SQLite and several by PostgreSQL.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.services.clients.replies import Ledger, ReplyStore

_LOG = logging.getLogger(__name__)
FIRST_TRY, LAST_TRY, SLOWER = 0.01, 0.2, 1.5
"""Seconds between the first and the last tries to get a place at a service, and how much they grow."""


@dataclass(slots=True, eq=False)
class Turns:
    """The turns at services of this process among all processes of its run, as ``http.RateLimiter`` takes them.

    Places are claims, like those of requests: they end with their process.
    """

    run: str
    store: "ReplyStore"
    _places: set[str] = field(default_factory=set)
    """Places that this process has; they belong to the writing thread."""

    async def take_place(self, service: str, places: int) -> str:
        """Wait for one of the places of a service and return its name."""

        def claim(ledger: "Ledger") -> str:
            for place in (f"{self.run} {service} {number}" for number in range(places)):
                if place not in self._places and ledger.claim([place]):
                    self._places.add(place)
                    return place
            return ""

        pause = FIRST_TRY
        while True:
            claiming = asyncio.wrap_future(self.store.submit(claim))
            try:
                place = await asyncio.shield(claiming)
            except asyncio.CancelledError:
                (taken,) = await asyncio.gather(claiming, return_exceptions=True)
                if isinstance(taken, str) and taken:
                    self.leave(service, taken, 0.0)
                raise
            if place:
                return place
            await asyncio.sleep(pause)
            pause = min(pause * SLOWER, LAST_TRY)

    async def reserve(self, service: str, gap: float, longest: float) -> tuple[float, float]:
        """Take the next turn at a service, ``gap`` seconds before the one after it.

        Returns:
            Seconds until the turn, and seconds of the pause that the service asked for; above ``longest`` no turn is
            taken.
        """

        def take(ledger: "Ledger") -> tuple[float, float]:
            now, next_at, held_until = ledger.read_turn(self.run, service)
            at = max(now, next_at, held_until)
            if held_until - now <= longest:
                ledger.put_off(self.run, service, at + gap, held_until)
            return at - now, held_until - now

        return await asyncio.wrap_future(self.store.submit(take))

    async def read_hold(self, service: str) -> float:
        """Return the seconds that are left of the pause that a service asked for."""
        now, _, held = await asyncio.wrap_future(self.store.submit(lambda ledger: ledger.read_turn(self.run, service)))
        return held - now

    def hold(self, service: str, seconds: float) -> None:
        """Let no process ask a service for so many seconds."""
        self._tell(lambda ledger: ledger.put_off(self.run, service, 0.0, ledger.tell_time() + seconds))

    def leave(self, service: str, place: str, pause: float) -> None:
        """Leave a place at a service; no turn comes within the pause."""

        def release(ledger: "Ledger") -> None:
            self._places.discard(place)
            ledger.release([place])

        if pause:
            self._tell(lambda ledger: ledger.put_off(self.run, service, ledger.tell_time() + pause, 0.0))
        # On its own: a pause that cannot be written keeps no place.
        self._tell(release)

    def _tell(self, call: Callable[["Ledger"], None]) -> None:
        """Have the other processes told; no caller waits for it, so a failure is logged."""

        def log(error: BaseException | None) -> None:
            if error:
                _LOG.warning("the run's other processes were not told: %s", error)

        self.store.submit(call).add_done_callback(lambda done: log(done.exception()))
