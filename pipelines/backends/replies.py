"""The reply store: every reply under the hash of the exact request, shared by all processes of a host.

One SQLite file in WAL mode: a reply that was recorded survives kill -9 and a power cut. Before a request is sent an ask
is noted, and a request that ends with an error notes a failure. So ``asks`` minus ``replies`` minus ``failures`` is
what was in flight at a crash, and a reply paid twice shows as a count.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.backends.group_commit import GroupWriter, Row, Table, explain_sqlite_error, is_busy
from pipelines.errors import ConfigError, ServiceError, Unavailable
from pipelines.files import explain_os_error
from pipelines.filesystems import check_shared_memory

FILE = "replies.db"
BUSY_SECONDS = 30.0
UNSENT = "unsent"
"""In place of an error: the asker was cancelled after its ask was noted and before the request was sent."""
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
"""Columns that the first stores lacked. 0 means not known: such a reply has no known day, and its size is measured."""


@dataclass(slots=True)
class ReplyStore:
    """Replies of one workspace. Open one a process with :func:`open_replies`; its threads and event loops share it."""

    reader: sqlite3.Connection
    writer: GroupWriter
    flights: dict[str, Future[str | None]] = field(default_factory=dict)
    """Requests under way by key: whoever asks the same meanwhile waits for that reply, None if its asker gave up."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the flights are changed, and while the reading connection is used."""

    def read(self, key: str) -> str | None:
        """Return the recorded reply, or None.

        Raises:
            Unavailable: if the file cannot be read now.
            CorruptInput: if it is damaged.
        """
        with self.lock:
            return self._look_up(key)

    async def note_asks(self, keys: Sequence[str], backend: str) -> None:
        """Note that one request is about to be sent that answers several keys."""
        now = int(time.time())
        await self.writer.write(Table.ASKS, [(key, backend, now) for key in keys])

    async def record(self, replies: Mapping[str, str], backend: str) -> None:
        """Record replies by key, all or none; the first reply of a key stays."""
        await self.writer.write(Table.REPLIES, [_make_row(key, backend, reply) for key, reply in replies.items()])

    def note_failure(self, keys: Sequence[str], backend: str, error: str) -> None:
        """Note that a request ended with an error, so that it does not pass for one that a crash cut off."""
        now = int(time.time())
        self.writer.post(Table.FAILURES, [(key, backend, now, error) for key in keys])

    def count(self) -> tuple[int, int]:
        """Return how many requests were sent and how many replies are recorded."""
        with self.lock:
            (asks,) = self._select("SELECT count(*) FROM asks", ()).fetchone()
            (replies,) = self._select("SELECT count(*) FROM replies", ()).fetchone()
        return int(asks), int(replies)

    async def recall(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None = None
    ) -> tuple[str, bool]:
        """Return the recorded reply, or ask for it and record it; what is returned is durable.

        Args:
            key: hash of the backend's identity and the exact request.
            backend: identity, kept beside the reply for pruning.
            ask: sends the request; called only on a miss, after the ask is durable.
            permit: called before anything is noted; the ServiceError that it raises ends the request on a miss.

        Returns:
            The reply and whether it came from the recording, or from the same request under way.

        Raises:
            Unavailable: if the store cannot be read or written now.
            CorruptInput: if its file is damaged.
        """
        while (flight := self._join(key)) is not None:
            reply = await asyncio.wrap_future(flight)
            if reply is not None:
                return reply, True
        return await self._fly(key, backend, ask, permit)

    def close(self) -> None:
        """Write what waits and close the file."""
        self.writer.close()
        with self.lock:
            self.reader.close()

    def _join(self, key: str) -> Future[str | None] | None:
        """Return the flight of a key to wait for, or None: then the flight is the caller's, from its look-up on."""
        with self.lock:
            flight = self.flights.get(key)
            if flight is None:
                mine = self.flights[key] = Future[str | None]()
                # From now on nobody who waits for it can cancel it.
                mine.set_running_or_notify_cancel()
            return flight

    async def _fly(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None
    ) -> tuple[str, bool]:
        try:
            reply, recorded = await self._send(key, backend, ask, permit)
        except BaseException as error:
            # An asker that was cancelled gave up for itself alone: those who wait ask again.
            self._land(key, error if isinstance(error, Exception) else None)
            raise
        self._land(key, reply)
        return reply, recorded

    def _land(self, key: str, outcome: str | Exception | None) -> None:
        with self.lock:
            flight = self.flights.pop(key)
        if isinstance(outcome, Exception):
            flight.set_exception(outcome)
        else:
            flight.set_result(outcome)

    async def _send(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None
    ) -> tuple[str, bool]:
        """Look up, and else note the ask, send the request and record its reply, each durable before the next."""
        forbidden = _find_refusal(permit)
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
        # Another process may have been first: what is returned must be what will be replayed.
        return self.read(key) or reply, False

    def _look_up(self, key: str) -> str | None:
        row = self._select("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def _select(self, statement: str, values: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            return self.reader.execute(statement, values)
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self.writer.name) from error


def _find_refusal(permit: Callable[[], None] | None) -> ServiceError | None:
    try:
        if permit is not None:
            permit()
    except ServiceError as error:
        return error
    return None


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
        return _connect(folder)
    except sqlite3.Error as error:
        raise Unavailable(f"reply store in {folder}: {error}") from error
    except OSError as error:
        raise explain_os_error(error, f"reply store in {folder}") from error


def _connect(folder: Path) -> sqlite3.Connection:
    path = folder / FILE
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        _begin_log(connection, folder)
        if not _is_current(connection):
            _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_log(connection: sqlite3.Connection, folder: Path) -> None:
    """Turn the write-ahead log on; of processes that make a store at once one does it while the others wait here.

    Raises:
        ConfigError: if the file system shares no memory.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself for this one.
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise ConfigError(
            f"reply store in {folder}: its file system shares no memory between processes (journal mode {mode}); "
            "put the workspace on a local disk (--workspace)"
        )


def _is_current(connection: sqlite3.Connection) -> bool:
    return not _list_missing(connection) and bool(connection.execute("PRAGMA table_info(failures)").fetchall())


def _list_missing(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return tables and columns that are not there."""
    columns = {table: connection.execute(f"PRAGMA table_info({table})").fetchall() for table, _ in ADDED}
    return [(table, column) for table, column in ADDED if column not in {row[1] for row in columns[table]}]


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in TABLES.split(";"):
        connection.execute(statement)
    for table, column in _list_missing(connection):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    connection.execute("COMMIT")


def _make_row(key: str, backend: str, reply: str) -> Row:
    return key, backend, int(time.time()), len(reply.encode()), reply
