"""What the processes of a run share beside replies: their turns at services, and what they have spent.

Both are rows in the database of replies, so one host shares them by SQLite and several by PostgreSQL. A rate, a pause
or a number of requests in flight that is set for a service holds for all processes of the run together.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from schemas.manifest import Usage

if TYPE_CHECKING:
    from pipelines.services.clients.replies import GroupWriter

_LOG = logging.getLogger(__name__)
RUN_TABLES = """
CREATE TABLE IF NOT EXISTS turns (
    run TEXT NOT NULL, service TEXT NOT NULL, next_at DOUBLE PRECISION NOT NULL, held_until DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run, service)
);
CREATE TABLE IF NOT EXISTS spent (
    run TEXT NOT NULL, process TEXT NOT NULL, cost DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL,
    gpu_seconds DOUBLE PRECISION NOT NULL, PRIMARY KEY (run, process)
);
"""
FIRST_TRY, LAST_TRY, SLOWER = 0.01, 0.2, 1.5
"""Seconds between the first and the last tries to get a place at a service, and how much they grow."""


class RunTables(ABC):
    """The tables of runs in a database of replies; SQL that SQLite and PostgreSQL read alike."""

    __slots__ = ()
    clock: ClassVar[str]
    """SQL of the time in seconds, the same for all processes of a run; ``:now`` is this host's."""
    greatest: ClassVar[str]
    """Name of the function that returns its greatest argument."""

    @abstractmethod
    def select(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Execute a statement with values named as ``:name`` and return its rows."""

    def forget_runs(self, run: str) -> None:
        """Remove the rows of earlier runs in the workspace of a run."""
        for table in ("turns", "spent"):
            statement = f"DELETE FROM {table} WHERE run LIKE :workspace AND run <> :run"
            self.select(statement, {"workspace": f"{run.partition('/')[0]}/%", "run": run})

    def reserve(self, run: str, service: str, gap: float, longest: float) -> tuple[float, float]:
        """Take the next turn at a service, ``gap`` seconds before the one after it.

        Returns:
            Seconds until the turn, and seconds of the pause that the service asked for; above ``longest`` no turn is
            taken.
        """
        statement = f"""
            INSERT INTO turns (run, service, next_at, held_until) VALUES (:run, :service, {self.clock} + :gap, 0.0)
            ON CONFLICT (run, service) DO UPDATE SET next_at = CASE
                WHEN turns.held_until - {self.clock} > :longest THEN turns.next_at
                ELSE {self.greatest}(turns.next_at, turns.held_until, {self.clock}) + :gap END
            RETURNING next_at - :gap - {self.clock}, held_until - {self.clock}
        """
        ((wait, held),) = self.select(statement, {"run": run, "service": service, "gap": gap, "longest": longest})
        return float(wait), float(held)

    def put_off(self, run: str, service: str, pause: float, hold: float) -> None:
        """Let no turn at a service come within ``pause`` seconds, nor within the ``hold`` that it asked for."""
        statement = f"""
            INSERT INTO turns (run, service, next_at, held_until)
            VALUES (:run, :service, {self.clock} + :pause, {self.clock} + :hold)
            ON CONFLICT (run, service) DO UPDATE SET
                next_at = {self.greatest}(turns.next_at, {self.clock} + :pause),
                held_until = {self.greatest}(turns.held_until, {self.clock} + :hold)
        """
        self.select(statement, {"run": run, "service": service, "pause": pause, "hold": hold})

    def read_hold(self, run: str, service: str) -> float:
        """Return the seconds that are left of the pause that a service asked for."""
        statement = f"SELECT held_until - {self.clock} FROM turns WHERE run = :run AND service = :service"
        ((held,),) = self.select(statement, {"run": run, "service": service})
        return float(held)

    def share(self, run: str, process: str, spent: Usage) -> Usage:
        """Note what a process has spent and return what the run's other processes have."""
        values = {"run": run, "process": process, "cost": spent.cost, "gpu_seconds": spent.gpu_seconds}
        self.select(
            "INSERT INTO spent (run, process, cost, tokens, gpu_seconds) "
            "VALUES (:run, :process, :cost, :tokens, :gpu_seconds) ON CONFLICT (run, process) DO UPDATE "
            "SET cost = EXCLUDED.cost, tokens = EXCLUDED.tokens, gpu_seconds = EXCLUDED.gpu_seconds",
            {**values, "tokens": spent.tokens_in + spent.tokens_out},
        )
        others = self.select(
            "SELECT coalesce(sum(cost), 0.0), CAST(coalesce(sum(tokens), 0) AS BIGINT), coalesce(sum(gpu_seconds), 0.0)"
            " FROM spent WHERE run = :run AND process <> :process",
            {"run": run, "process": process},
        )
        ((cost, tokens, gpu_seconds),) = others
        return Usage(cost=float(cost), tokens_in=int(tokens), gpu_seconds=float(gpu_seconds))


def _log_failure(done: "Future[None]") -> None:
    """Log why a message to the other processes failed: no caller waits for it."""
    if error := done.exception():
        _LOG.warning("the run's other processes were not told: %s", error)


@dataclass(slots=True, eq=False)
class Turns:
    """The turns at services of this process among all processes of its run, as ``http.RateLimiter`` takes them.

    Places are claims, like those of requests: they end with their process.
    """

    run: str
    writer: "GroupWriter"
    _places: set[str] = field(default_factory=set)
    """Places that this process has; they belong to the writing thread."""

    async def take_place(self, service: str, places: int) -> str:
        """Wait for one of the places of a service and return its name."""
        pause = FIRST_TRY
        while not (place := await self._try_place(service, places)):
            await asyncio.sleep(pause)
            pause = min(pause * SLOWER, LAST_TRY)
        return place

    async def reserve(self, service: str, gap: float, longest: float) -> tuple[float, float]:
        """Take the next turn at a service, as :meth:`RunTables.reserve` says."""
        tables = self.writer.ledger
        return await asyncio.wrap_future(self.writer.submit(lambda: tables.reserve(self.run, service, gap, longest)))

    async def read_hold(self, service: str) -> float:
        """Return the seconds that are left of the pause that a service asked for."""
        return await asyncio.wrap_future(self.writer.submit(lambda: self.writer.ledger.read_hold(self.run, service)))

    def hold(self, service: str, seconds: float) -> None:
        """Let no process ask a service for so many seconds."""
        held = self.writer.submit(lambda: self.writer.ledger.put_off(self.run, service, 0.0, seconds))
        held.add_done_callback(_log_failure)

    def leave(self, service: str, place: str, pause: float) -> None:
        """Leave a place at a service; no turn comes within the pause."""

        def release() -> None:
            self._places.discard(place)
            self.writer.ledger.release([place])

        if pause:
            put_off = self.writer.submit(lambda: self.writer.ledger.put_off(self.run, service, pause, 0.0))
            put_off.add_done_callback(_log_failure)
        # On its own: a pause that cannot be written keeps no place.
        self.writer.submit(release).add_done_callback(_log_failure)

    async def _try_place(self, service: str, places: int) -> str:
        """Claim a free place; return its name, or "" if all are taken."""

        def claim() -> str:
            names = [f"{self.run} {service} {number}" for number in range(places)]
            free = self.writer.ledger.claim([name for name in names if name not in self._places])
            place = min(free, default="")
            self.writer.ledger.release(free - {place})
            self._places |= {place} - {""}
            return place

        claiming = asyncio.wrap_future(self.writer.submit(claim))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            (place,) = await asyncio.gather(claiming, return_exceptions=True)
            if isinstance(place, str) and place:
                self.leave(service, place, 0.0)
            raise
