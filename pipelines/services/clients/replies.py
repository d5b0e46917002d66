"""The reply store: every reply under the hash of the exact request, shared by all processes of a host.

One SQLite file in WAL mode: a recorded reply survives kill -9 and a power cut. An ask is noted before its request is
sent, and a failure when the request ends with an error. So ``asks`` minus ``replies`` minus ``failures`` is the number
of requests in flight at a crash, and a reply that was paid twice shows in the count.

Group commit: one thread writes, and all rows that wait go into one transaction. While it commits, the next rows gather,
so 256 requests in flight cost little more than one. A caller continues after COMMIT, or gets the error.

Cache epochs: ``--fresh-replies ROLE`` requests a role's replies again and deletes nothing. ``replies/fresh.json`` maps
roles to epochs. An epoch above 0 is part of the identity of the role's backend, so the keys of replies and of stages
change with it.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from pydantic import PositiveInt, TypeAdapter

from pipelines.errors import ConfigError, CorruptInput, ServiceError, Unavailable
from pipelines.files import check_shared_memory, explain_os_error, write_text

MOST_CALLERS = 512
"""Callers whose rows go into one transaction at most."""
CHUNK = 64
"""Rows of one statement at most; SQLite releases the interpreter's lock once a statement."""
PATIENCE = 120.0
"""Seconds that other processes may hold the file before the callers get an error."""

Row = tuple[str | int, ...]


class Table(Enum):
    """A table that is appended to: its name with the columns of a row, and what happens to a second row of a key."""

    ASKS = ("asks (key, backend, asked)", "")
    REPLIES = ("replies (key, backend, recorded, bytes, reply)", "ON CONFLICT (key) DO NOTHING")
    FAILURES = ("failures (key, backend, failed, error)", "")


Outcome = bool | str | None
"""Whether all rows were new; or the reply that was looked up, None if the store has none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows of one caller for one table; they are written only if the store has no reply of the key ``wanted``."""

    table: Table
    rows: Sequence[Row]
    waiter: asyncio.Future[Outcome] | None
    wanted: str = ""


@dataclass(slots=True)
class GroupWriter:
    """The only writer of a store in this process; ``name`` is the store's in messages.

    The fields belong to the thread of the event loop; the writing thread sees the connection and one batch at a time. A
    process may run several loops, one after the other.
    """

    connection: sqlite3.Connection
    name: str
    patience: float = PATIENCE
    _waiting: list[Entry] = field(default_factory=list)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "reply-writer"))
    _draining: asyncio.Task[None] | None = None
    _closed: bool = False

    async def write(self, table: Table, rows: Sequence[Row]) -> bool:
        """Write rows and return once they are durable; a caller that is cancelled meanwhile also waits for that.

        Returns:
            Whether all rows of the transaction were new; False means that some key had a row already, which stays.

        Raises:
            Unavailable: if the disk is full, or other processes hold the file for too long.
            CorruptInput: if the file is damaged.
        """
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._add(Entry(table, rows, waiter))
        try:
            return bool(await asyncio.shield(waiter))
        except asyncio.CancelledError:
            # The rows are on their way, and the next look-up must find them.
            await asyncio.gather(waiter, return_exceptions=True)
            raise

    def look_up(self, key: str, asks: Sequence[Row]) -> asyncio.Future[Outcome]:
        """Find the reply of a key; if there is none, the result is None and the asks are durable.

        The future fails with the errors of :meth:`write`.
        """
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._add(Entry(Table.ASKS, asks, waiter, key))
        return waiter

    def post(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows soon, without waiting; rows that cannot be written are dropped."""
        self._add(Entry(table, rows, None))

    def close(self) -> None:
        """Write what waits, end the thread and close the connection; a second call does nothing."""
        self._closed = True
        if self._waiting:
            self._thread.submit(self._commit, self._waiting)
            self._waiting = []
        self._thread.shutdown()
        self.connection.close()

    def _add(self, entry: Entry) -> None:
        if self._closed:
            raise Unavailable(f"{self.name}: it is closed")
        self._waiting.append(entry)
        loop, task = asyncio.get_running_loop(), self._draining
        # A task of an earlier loop has ended with it; the batch that it left is still written, in order.
        if task is None or task.done() or task.get_loop() is not loop:
            self._draining = loop.create_task(self._drain())

    async def _drain(self) -> None:
        """Have batches committed in the thread until no rows wait."""
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_CALLERS], self._waiting[MOST_CALLERS:]
            committing = asyncio.wrap_future(self._thread.submit(self._commit, batch))
            while not committing.done():
                # A loop that ends cancels this task, but its callers wait for their rows.
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([committing])
            error = committing.exception()
            for index, entry in enumerate(batch):
                if entry.waiter is None or entry.waiter.done():
                    continue
                if error is not None:
                    entry.waiter.set_exception(error)
                else:
                    entry.waiter.set_result(committing.result()[index])

    def _commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        """Serve a batch in one transaction; return the outcome of each caller."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                found = self._find([entry.wanted for entry in batch if entry.wanted])
                new = self._write([entry for entry in batch if entry.wanted not in found])
                return [found.get(entry.wanted) if entry.wanted else new for entry in batch]
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise explain_sqlite_error(error, self.name) from error
            finally:
                self._roll_back()

    def _find(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the replies there are; outside a transaction, so that no other process's writing delays it."""
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
        # A paid reply must survive a power cut, an ask only kill -9.
        level = "FULL" if any(entry.table is Table.REPLIES for entry in batch) else "NORMAL"
        self.connection.execute(f"PRAGMA synchronous={level}")
        self.connection.execute("BEGIN IMMEDIATE")
        rows = {table: [row for entry in batch if entry.table is table for row in entry.rows] for table in Table}
        new = all([self._insert(table, rows[table]) for table in Table])
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
            # If this fails too, the next transaction says so.
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another process holds the file."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def explain_sqlite_error(error: sqlite3.Error, name: str) -> Unavailable | CorruptInput:
    """Return the synth error that an SQLite error stands for.

    Raises:
        sqlite3.Error: the error itself if it concerns neither disk nor file: then it is a defect of synth.
    """
    if isinstance(error, sqlite3.OperationalError):
        return Unavailable(f"{name}: {error}; free space or end the other run, then run again")
    if type(error) is sqlite3.DatabaseError:
        return CorruptInput(
            f"{name}: {error}; move its file away to go on without it: all replies will be requested again"
        )
    raise error


FILE = "replies.db"
BUSY_SECONDS = 30.0
UNSENT = "unsent"
"""Failure of a request whose caller was cancelled after its ask was noted and before it was sent."""
TABLES = """
CREATE TABLE IF NOT EXISTS asks (key TEXT NOT NULL, backend TEXT NOT NULL, asked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, backend TEXT NOT NULL, recorded INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0, reply TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS failures (
    key TEXT NOT NULL, backend TEXT NOT NULL, failed INTEGER NOT NULL, error TEXT NOT NULL
);
"""
ADDED = (("asks", "asked"), ("replies", "recorded"), ("replies", "bytes"))
"""Columns that the first stores lacked; 0 means not known."""


@dataclass(slots=True)
class ReplyStore:
    """Replies of one workspace. Open one a process with :func:`open_replies`."""

    reader: sqlite3.Connection
    writer: GroupWriter
    flights: dict[str, asyncio.Future[str | None]] = field(default_factory=dict)
    """Requests in flight by key; the same request meanwhile waits for the reply, None if its caller was cancelled."""

    def read(self, key: str) -> str | None:
        """Return the recorded reply, or None.

        Raises:
            Unavailable: if the file cannot be read now.
            CorruptInput: if it is damaged.
        """
        row = self._select("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    async def note_asks(self, keys: Sequence[str], backend: str) -> None:
        """Note one request that answers several keys, before it is sent."""
        now = int(time.time())
        await self.writer.write(Table.ASKS, [(key, backend, now) for key in keys])

    async def record(self, replies: Mapping[str, str], backend: str) -> None:
        """Record replies by key, all or none; the first reply of a key stays."""
        await self.writer.write(Table.REPLIES, [_make_row(key, backend, reply) for key, reply in replies.items()])

    def note_failure(self, keys: Sequence[str], backend: str, error: str) -> None:
        """Note that a request ended with an error, so that it does not count as one that a crash cut off."""
        now = int(time.time())
        self.writer.post(Table.FAILURES, [(key, backend, now, error) for key in keys])

    def count(self) -> tuple[int, int]:
        """Return how many requests were sent and how many replies are recorded."""
        (asks,) = self._select("SELECT count(*) FROM asks", ()).fetchone()
        (replies,) = self._select("SELECT count(*) FROM replies", ()).fetchone()
        return int(asks), int(replies)

    async def recall(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None = None
    ) -> tuple[str, bool]:
        """Return the recorded reply, or request and record it; the returned reply is durable.

        Args:
            key: hash of the backend's identity and the exact request.
            backend: identity, kept with the reply for pruning.
            ask: sends the request; called only on a miss, after the ask is durable.
            permit: called before anything is noted; the ServiceError that it raises ends the request on a miss.

        Returns:
            The reply, and whether it was recorded before or came from the same request in flight.

        Raises:
            Unavailable: if the store cannot be read or written now.
            CorruptInput: if its file is damaged.
        """
        while (flight := self.flights.get(key)) is not None:
            reply = await asyncio.shield(flight)
            if reply is not None:
                return reply, True
        flight = self.flights[key] = asyncio.get_running_loop().create_future()
        try:
            reply, recorded = await self._send(key, backend, ask, permit)
        except BaseException as error:
            if isinstance(error, Exception):
                flight.set_exception(error)
                # Marks the error as retrieved: asyncio warns of errors that no caller waits for.
                flight.exception()
            else:
                # Only this caller was cancelled: the next one that waits sends the request.
                flight.set_result(None)
            raise
        finally:
            del self.flights[key]
        flight.set_result(reply)
        return reply, recorded

    def close(self) -> None:
        """Write what waits and close the file."""
        self.writer.close()
        self.reader.close()

    async def _send(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None
    ) -> tuple[str, bool]:
        """Look the reply up, or note the ask, send the request and record its reply, each durable before the next."""
        forbidden: ServiceError | None = None
        try:
            if permit is not None:
                permit()
        except ServiceError as error:
            forbidden = error
        asks = [] if forbidden else [(key, backend, int(time.time()))]
        looking = self.writer.look_up(key, asks)
        try:
            found = await asyncio.shield(looking)
        except asyncio.CancelledError:
            (outcome,) = await asyncio.gather(looking, return_exceptions=True)
            if asks and outcome is None:
                self.note_failure([key], backend, UNSENT)
            raise
        if isinstance(found, str):
            return found, True
        if forbidden is not None:
            raise forbidden
        try:
            reply = await ask()
        except Exception as error:
            self.note_failure([key], backend, type(error).__name__)
            raise
        if await self.writer.write(Table.REPLIES, [_make_row(key, backend, reply)]):
            return reply, False
        # If another process was first, its reply is the one that will be replayed.
        return self.read(key) or reply, False

    def _select(self, statement: str, values: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            return self.reader.execute(statement, values)
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self.writer.name) from error


def open_replies(folder: Path) -> ReplyStore:
    """Open (or make) the reply store in a folder; a store of the first version gets its new columns.

    Raises:
        ConfigError: if the folder's file system cannot hold it.
        Unavailable: if the file cannot be opened or its disk is full.
    """
    writing = connect_replies(folder)
    reading = connect_replies(folder)
    reading.execute("PRAGMA query_only=ON")
    return ReplyStore(reading, GroupWriter(writing, f"reply store {folder / FILE}"))


def connect_replies(folder: Path) -> sqlite3.Connection:
    """Return a connection to the reply store in a folder, its tables made; each statement commits by itself.

    Raises:
        ConfigError: if the folder's file system cannot hold it.
        Unavailable: if the file cannot be opened or its disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_shared_memory(folder)
        connection = sqlite3.connect(folder / FILE, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            _begin_log(connection, folder)
            _make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection
    except sqlite3.Error as error:
        raise Unavailable(f"reply store in {folder}: {error}") from error
    except OSError as error:
        raise explain_os_error(error, f"reply store in {folder}") from error


def _begin_log(connection: sqlite3.Connection, folder: Path) -> None:
    """Turn the write-ahead log on, or wait while another process does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            # SQLite's own timeout does not cover this statement.
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise ConfigError(
            f"reply store in {folder}: its file system shares no memory between processes (journal mode {mode}); "
            "put the workspace on a local disk (--workspace)"
        )


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables and columns that are missing; a complete store is only read."""

    def list_columns(table: str) -> set[str]:
        return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}

    if list_columns("failures") and all(column in list_columns(table) for table, column in ADDED):
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement in TABLES.split(";"):
        connection.execute(statement)
    for table, column in ADDED:
        if column not in list_columns(table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    connection.execute("COMMIT")


def _make_row(key: str, backend: str, reply: str) -> Row:
    return key, backend, int(time.time()), len(reply.encode()), reply


EPOCHS = "fresh.json"
_EPOCHS = TypeAdapter(dict[str, PositiveInt])


def read_epochs(folder: Path) -> dict[str, int]:
    """Return the epochs of roles from a workspace's folder of replies; a role that is absent is in epoch 0.

    Raises:
        CorruptInput: if the file is damaged.
    """
    path = folder / EPOCHS
    if not path.is_file():
        return {}
    try:
        return _EPOCHS.validate_json(path.read_bytes(), strict=True)
    except ValueError as error:
        raise CorruptInput(f"{path}: damaged; it must map roles to numbers from 1; remove it and run again") from error


def renew(folder: Path, roles: Iterable[str]) -> dict[str, int]:
    """Begin a new epoch of each role and return all epochs; the caller has checked the roles.

    Raises:
        ConfigError: if no role is given, or the folder cannot be written.
        CorruptInput: if the file is damaged.
        Unavailable: if the disk is full.
    """
    renewed = set(roles)
    if not renewed:
        raise ConfigError("fresh replies: no role is given; name the roles to ask again")
    epochs = read_epochs(folder)
    epochs |= {role: epochs.get(role, 0) + 1 for role in renewed}
    try:
        write_text(folder / EPOCHS, json.dumps(epochs, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise explain_os_error(error, f"cache epochs in {folder}") from error
    return epochs


def name_epoch(identity: str, epoch: int) -> str:
    """Return a backend's identity in an epoch; epoch 0 is the identity itself."""
    return f"{identity}#{epoch}" if epoch else identity
