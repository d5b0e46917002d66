"""Group commit: rows from all event loops and threads, written by one thread, all that wait in one transaction.

Look-ups go the same way: the event loop never gives the interpreter's lock away to read a row, and a few statements
find what 256 requests ask for.

A writer that is idle commits at once; while it commits, the next rows gather, so that batches form under load alone and
256 requests in flight cost hardly more than one. Whoever waits is told after COMMIT, and told of every failure: neither
a full disk nor a defect of the thread leaves a caller waiting.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from pipelines.errors import CorruptInput, Unavailable

MOST_CALLERS = 512
"""Callers whose rows go into one transaction at most: the others wait for the next."""
CHUNK = 64
"""Rows of one statement at most. A statement gives the interpreter's lock away once, however many rows it inserts."""
IDLE = 1.0
"""Seconds after which a writer with nothing to do ends; the next row starts another."""
PATIENCE = 120.0
"""Seconds that other processes may hold the file before those who wait are told."""
PRIMARY_CODE = 0xFF
"""Mask of SQLite's primary error code."""

Row = tuple[str | int, ...]


class Table(Enum):
    """A table that is appended to: its name with the columns of a row, and what is done about a second row of a key."""

    ASKS = ("asks (key, backend, asked)", "")
    REPLIES = ("replies (key, backend, recorded, bytes, reply)", "ON CONFLICT (key) DO NOTHING")
    FAILURES = ("failures (key, backend, failed, error)", "")


Outcome = bool | str | None
"""Whether rows were new; or the reply that was looked up, None where there is none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows of one caller for one table; ``waiter`` is None where nobody waits for them."""

    table: Table
    rows: Sequence[Row]
    waiter: asyncio.Future[Outcome] | None
    wanted: str = ""
    """Key of the reply that is looked up; the rows are written only where there is none."""


@dataclass(slots=True)
class GroupWriter:
    """The one writer of a store in this process. Its connection is used by nobody else."""

    connection: sqlite3.Connection
    name: str
    """The store's name in messages."""
    patience: float = PATIENCE
    _waiting: list[Entry] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _closed: bool = False

    async def write(self, table: Table, rows: Sequence[Row]) -> bool:
        """Write rows and return once they are durable; a caller that is cancelled meanwhile leaves after that, too.

        Returns:
            Whether all rows of the transaction were new; False means that some key had a row already, which stays.

        Raises:
            Unavailable: if the disk is full, or others hold the file for too long.
            CorruptInput: if the file is damaged.
        """
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._add(Entry(table, rows, waiter))
        try:
            return bool(await asyncio.shield(waiter))
        except asyncio.CancelledError:
            # The rows are on their way: whoever looks next must find them.
            await asyncio.gather(waiter, return_exceptions=True)
            raise

    def look_up(self, key: str, asks: Sequence[Row]) -> asyncio.Future[Outcome]:
        """Find the reply of a key, None where there is none: then the asks are durable.

        The future fails with Unavailable if the disk is full, or others hold the file for too long, and with
        CorruptInput if it is damaged.
        """
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._add(Entry(Table.ASKS, asks, waiter, key))
        return waiter

    def post(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows soon, with nobody waiting; what cannot be written is let go."""
        self._add(Entry(table, rows, None))

    def close(self) -> None:
        """Write what waits, end the thread and close the connection; nothing happens a second time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        self.connection.close()

    def _add(self, entry: Entry) -> None:
        with self._changed:
            if self._closed:
                raise Unavailable(f"{self.name}: it is closed")
            self._waiting.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reply-writer", daemon=True)
                self._thread.start()
            else:
                self._changed.notify()

    def _work(self) -> None:
        batch: list[Entry] = []
        try:
            while batch := self._take():
                _settle(batch, self._commit(batch))
                # Callers hold errors, and those what they were raised in: a thread that waits keeps nothing alive.
                batch = []
        finally:
            # Only a defect comes here with rows in hand; nobody may wait for a thread that is gone.
            self._leave(batch)

    def _take(self) -> list[Entry]:
        """Return what waits; empty when the thread should end."""
        with self._changed:
            if not self._waiting and not self._closed:
                self._changed.wait(IDLE)
            if not self._waiting:
                self._thread = None
            taken, self._waiting = self._waiting[:MOST_CALLERS], self._waiting[MOST_CALLERS:]
            return taken

    def _leave(self, batch: list[Entry]) -> None:
        with self._changed:
            if self._thread is not threading.current_thread():
                return
            self._roll_back()
            left, self._waiting, self._thread = [*batch, *self._waiting], [], None
        _settle(left, Unavailable(f"{self.name}: its writer ended early; run again"))

    def _commit(self, batch: Sequence[Entry]) -> list[Outcome] | Exception:
        """Serve a batch, its rows in one transaction; return what each caller is told, or what stood in the way."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                found = self._find([entry.wanted for entry in batch if entry.wanted])
                new = self._write([entry for entry in batch if entry.wanted not in found])
                return [found.get(entry.wanted) if entry.wanted else new for entry in batch]
            except sqlite3.Error as error:
                self._roll_back()
                trouble = error
            if not is_busy(trouble) or time.monotonic() > deadline:
                return explain_sqlite_error(trouble, self.name)

    def _find(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the replies there are; outside a transaction, so that nobody's writing is waited for."""
        found: dict[str, str] = {}
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start : start + CHUNK]
            marks = ",".join("?" * len(chunk))
            found.update(self.connection.execute(f"SELECT key, reply FROM replies WHERE key IN ({marks})", chunk))
        return found

    def _write(self, batch: Sequence[Entry]) -> bool:
        """Write the rows of a batch in one transaction; return whether all of them were new."""
        if not any(entry.rows for entry in batch):
            return True
        self.connection.execute(f"PRAGMA synchronous={_choose_level(batch)}")
        self.connection.execute("BEGIN IMMEDIATE")
        new = all([self._insert(table, _gather(batch, table)) for table in Table])
        self.connection.execute("COMMIT")
        return new

    def _insert(self, table: Table, rows: list[Row]) -> bool:
        new, (columns, conflict) = True, table.value
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            marks = ",".join([f"({','.join('?' * len(chunk[0]))})"] * len(chunk))
            values = [value for row in chunk for value in row]
            done = self.connection.execute(f"INSERT INTO {columns} VALUES {marks} {conflict}", values)
            new = new and done.rowcount == len(chunk)
        return new

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            # Where this fails, too, the next transaction says so.
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process holds the file."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & PRIMARY_CODE == sqlite3.SQLITE_BUSY


def explain_sqlite_error(error: sqlite3.Error, name: str) -> Unavailable | CorruptInput:
    """Return the synth error that an SQLite error stands for.

    Raises:
        sqlite3.Error: the error itself when it is neither of the disk nor of the file: then it is a defect of synth.
    """
    if isinstance(error, sqlite3.OperationalError):
        return Unavailable(f"{name}: {error}; free space or end the other run, then run again")
    if type(error) is sqlite3.DatabaseError:
        return CorruptInput(f"{name}: {error}; move its file away to go on without it: then everything is asked again")
    raise error


def _choose_level(batch: Iterable[Entry]) -> str:
    """Return how a batch is flushed: a reply, which was paid for, outlives a power cut; an ask outlives kill -9."""
    return "FULL" if any(entry.table is Table.REPLIES for entry in batch) else "NORMAL"


def _gather(batch: Iterable[Entry], table: Table) -> list[Row]:
    return [row for entry in batch if entry.table is table for row in entry.rows]


def _settle(batch: Sequence[Entry], outcomes: Sequence[Outcome] | Exception) -> None:
    """Tell everyone who waits; an event loop is woken once for all its callers."""
    told = [outcomes] * len(batch) if isinstance(outcomes, Exception) else outcomes
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Outcome], Outcome | Exception]]] = {}
    for entry, outcome in zip(batch, told, strict=True):
        if entry.waiter is not None:
            loops.setdefault(entry.waiter.get_loop(), []).append((entry.waiter, outcome))
    for loop, waiters in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, waiters)
        except RuntimeError:
            # The loop is closed, and with it whoever waited there.
            continue


def _resolve(waiters: Iterable[tuple[asyncio.Future[Outcome], Outcome | Exception]]) -> None:
    for waiter, outcome in waiters:
        if waiter.done():
            continue
        if isinstance(outcome, Exception):
            waiter.set_exception(outcome)
        else:
            waiter.set_result(outcome)
