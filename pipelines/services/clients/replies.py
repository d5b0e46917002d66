"""The reply store: every reply under the hash of the exact request, shared by all processes of a host.

One SQLite file in WAL mode: a reply that was recorded survives kill -9 and a power cut. Before a request is sent an ask
is noted, and a request that ends with an error notes a failure. So ``asks`` minus ``replies`` minus ``failures`` is
what was in flight at a crash, and a reply paid twice shows as a count.

Group commit: rows from all event loops and threads, written by one thread, all that wait in one transaction.

Look-ups go the same way: the event loop never gives the interpreter's lock away to read a row, and a few statements
find what 256 requests ask for.

A writer that is idle commits at once; while it commits, the next rows gather, so that batches form under load alone and
256 requests in flight cost hardly more than one. Whoever waits is told after COMMIT, and told of every failure: neither
a full disk nor a defect of the thread leaves a caller waiting.

Generations of recorded replies: ``--fresh-replies ROLE`` asks a role anew and forgets nothing.

A workspace keeps ``replies/fresh.json``, from role to generation. A generation above 0 is part of the identity of the
role's backend, so keys of replies and keys of stages change together; older replies stay where they are.
"""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from pipelines.errors import ConfigError, CorruptInput, ServiceError, Unavailable
from pipelines.files import check_shared_memory, explain_os_error, write_text

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


GENERATIONS = "fresh.json"


def read_generations(folder: Path) -> dict[str, int]:
    """Return the generation of each role that was ever renewed; a role that is absent is in generation 0.

    Args:
        folder: the workspace's folder of replies.

    Raises:
        CorruptInput: if the file is damaged.
    """
    path = folder / GENERATIONS
    if not path.is_file():
        return {}
    try:
        generations = json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptInput(f"{path}: damaged; remove it and run again") from error
    if not isinstance(generations, dict) or not all(_is_generation(value) for value in generations.values()):
        raise CorruptInput(f"{path}: damaged: it should name roles with numbers from 1; remove it and run again")
    return generations


def renew(folder: Path, roles: Iterable[str]) -> dict[str, int]:
    """Begin a new generation of each role and return all generations; the caller has checked the roles.

    Raises:
        ConfigError: if no role is given, or the folder cannot be written.
        CorruptInput: if the file is damaged.
        Unavailable: if the disk is full.
    """
    renewed = sorted(set(roles))
    if not renewed:
        raise ConfigError("fresh replies: no role is given; name those that shall be asked anew")
    generations = read_generations(folder)
    for role in renewed:
        generations[role] = generations.get(role, 0) + 1
    try:
        write_text(folder / GENERATIONS, json.dumps(generations, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise explain_os_error(error, f"generations in {folder}") from error
    return generations


def name_generation(identity: str, fresh: int) -> str:
    """Return a backend's identity in a generation; generation 0 is the identity itself."""
    return f"{identity}#{fresh}" if fresh else identity


def _is_generation(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
