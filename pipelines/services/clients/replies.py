"""The reply store: every reply under the hash of the exact request, shared by all processes of a host.

One SQLite file in WAL mode: a recorded reply survives kill -9 and a power cut. The store notes an ask before a request
is sent, and a failure when the request ends with an error. So ``asks`` minus ``replies`` minus ``failures`` is the
number of requests in flight at a crash, and a reply that was paid twice shows in the count.

Group commit: one thread writes, and all rows that wait go into one transaction. While it commits, the next rows gather,
so 256 requests in flight cost hardly more than one. A caller continues after COMMIT, or gets the error.

Checksums: a reply carries a checksum of its key, its backend and its text, which every reader checks: a byte that a
disk changed is a message, never a reply. ``synth replies repair`` saves the rest (``ledger.py``).

Cache epochs: ``--fresh-replies ROLE`` asks a role again and forgets nothing. ``replies/fresh.json`` maps roles to
epochs. An epoch above 0 is part of the identity of the role's backend, so the keys of replies and of stages change
together; older replies stay where they are.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import xxhash

from pipelines.checksums import read_note, seal_note
from pipelines.errors import ConfigError, CorruptInput, Damaged, ServiceError, Unavailable
from pipelines.files import check_shared_memory, explain_os_error, replacing, write_text

MOST_CALLERS = 512
"""Callers whose rows go into one transaction at most; the others wait for the next."""
CHUNK = 64
"""Rows of one statement at most. A statement releases the interpreter's lock once, however many rows it inserts."""
PATIENCE = 120.0
"""Seconds that other processes may hold the file before the callers get an error."""
PRIMARY_CODE = 0xFF
"""Mask of SQLite's primary error code."""

REPAIR = "say `synth replies repair`: it saves the rows that are whole and sets the others aside"
"""What a message of a damaged store advises; with --workspace where that is not the default."""
QUOTED = 120
"""Characters of SQLite's own words in a message."""

Row = tuple[str | int, ...]


class Table(Enum):
    """A table that is appended to: its name with the columns of a row, and what happens to a second row of a key."""

    ASKS = ("asks (key, backend, asked)", "")
    REPLIES = ("replies (key, backend, recorded, bytes, reply, checksum)", "ON CONFLICT (key) DO NOTHING")
    FAILURES = ("failures (key, backend, failed, error)", "")


Outcome = bool | str | None
"""Whether rows were new; or the reply that was looked up, None where the store has none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows of one caller for one table; ``waiter`` is None where no caller waits for them."""

    table: Table
    rows: Sequence[Row]
    waiter: asyncio.Future[Outcome] | None
    wanted: str = ""
    """Key of the reply that is looked up; the rows are written only if the store has no reply."""


@dataclass(slots=True)
class GroupWriter:
    """The one writer of a store in this process. No other code uses its connection.

    All fields belong to the thread of the event loop; the writing thread sees the connection and one batch at a time.
    A process may run several loops, one after the other.
    """

    connection: sqlite3.Connection
    name: str
    """The store's name in messages."""
    patience: float = PATIENCE
    _waiting: list[Entry] = field(default_factory=list)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "reply-writer"))
    _loop: asyncio.AbstractEventLoop | None = None
    _writing: bool = False
    _closed: bool = False

    async def write(self, table: Table, rows: Sequence[Row]) -> bool:
        """Write rows and return once they are durable; a caller that is cancelled meanwhile leaves after that, too.

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
            # The rows are on their way: the next look-up must find them.
            await asyncio.gather(waiter, return_exceptions=True)
            raise

    def look_up(self, key: str, asks: Sequence[Row]) -> asyncio.Future[Outcome]:
        """Find the reply of a key; the result is None where there is no reply, and then the asks are durable.

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
            self._submit(self._waiting)
            self._waiting = []
        self._thread.shutdown()
        self.connection.close()

    def _add(self, entry: Entry) -> None:
        if self._closed:
            raise Unavailable(f"{self.name}: it is closed")
        self._waiting.append(entry)
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The loop before has ended; a batch that it left is still written, in order.
            self._loop, self._writing = loop, False
        if not self._writing:
            self._writing = True
            loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Hand the rows that wait to the thread."""
        batch, self._waiting = self._waiting[:MOST_CALLERS], self._waiting[MOST_CALLERS:]
        self._writing = bool(batch)
        if batch:
            self._submit(batch)

    def _submit(self, batch: Sequence[Entry]) -> None:
        """Have a batch committed in the thread; then the loop is woken once for all its callers."""
        loop = self._loop

        def wake(done: Future[list[Outcome]]) -> None:
            # A loop that is closed has no callers left.
            with suppress(RuntimeError):
                if loop is not None:
                    loop.call_soon_threadsafe(self._finish, batch, done, loop)

        self._thread.submit(self._commit, batch).add_done_callback(wake)

    def _finish(self, batch: Sequence[Entry], done: "Future[list[Outcome]]", loop: asyncio.AbstractEventLoop) -> None:
        error = done.exception()
        for index, entry in enumerate(batch):
            if entry.waiter is None or entry.waiter.done():
                continue
            if error is not None:
                entry.waiter.set_exception(error)
            else:
                entry.waiter.set_result(done.result()[index])
        if loop is self._loop:
            self._begin()

    def _commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        """Serve a batch, its rows in one transaction; return the outcome of each caller."""
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
        """Return the replies there are; outside a transaction, so no other process's writing is waited for."""
        found: dict[str, str] = {}
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start : start + CHUNK]
            marks = ",".join("?" * len(chunk))
            rows = self.connection.execute(f"SELECT {CHECKED} FROM replies WHERE key IN ({marks})", chunk)
            found.update(open_row(row, self.name) for row in rows)
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
    return isinstance(error, sqlite3.OperationalError) and _read_code(error) == sqlite3.SQLITE_BUSY


def _read_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code; Python's own errors, such as of text that does not decode, have none: -1."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & PRIMARY_CODE


def explain_sqlite_error(error: sqlite3.Error, name: str, advice: str = REPAIR) -> Unavailable | CorruptInput:
    """Return the synth error that an SQLite error stands for; ``advice`` says what to do about a damaged file.

    Raises:
        sqlite3.Error: the error itself when it is neither of the disk nor of the file: then it is a defect of synth.
    """
    # SQLITE_ERROR of statements that are right: the file's own schema is not what it was.
    damaged = type(error) is sqlite3.DatabaseError or _read_code(error) in (-1, sqlite3.SQLITE_ERROR)
    if damaged:
        return CorruptInput(f"{name}: {' '.join(str(error).split())[:QUOTED]}; {advice}")
    if isinstance(error, sqlite3.OperationalError):
        return Unavailable(f"{name}: {error}; free space or end the other run, then run again")
    raise error


CheckedRow = tuple[bytes | None, bytes | None, bytes | None, int]
"""Key, backend and reply as they lie in the file, and the checksum of the three."""
CHECKED = "CAST(key AS BLOB), CAST(backend AS BLOB), CAST(reply AS BLOB), checksum"


def sum_row(key: bytes | None, backend: bytes | None, reply: bytes | None) -> int:
    """Return the checksum of a reply's row: xxh3 in 64 bits, as SQLite's signed integer."""
    hashed = xxhash.xxh3_64()
    for part in (key, backend, reply):
        hashed.update(part or b"")
        hashed.update(b"\0")
    return int.from_bytes(hashed.digest(), "big", signed=True)


def open_row(row: CheckedRow, name: str) -> tuple[str, str]:
    """Return key and reply of a row.

    Raises:
        CorruptInput: if the row is not as it was written.
    """
    key, backend, reply, checksum = row
    try:
        if checksum == sum_row(key, backend, reply):
            return (key or b"").decode(), (reply or b"").decode()
    except UnicodeDecodeError as error:
        raise CorruptInput(f"{name}: a row is no text; {REPAIR}") from error
    raise CorruptInput(f"{name}: a row is not as it was written; {REPAIR}")


def _choose_level(batch: Iterable[Entry]) -> str:
    """Return how a batch is flushed: a paid reply survives a power cut; an ask survives kill -9."""
    return "FULL" if any(entry.table is Table.REPLIES for entry in batch) else "NORMAL"


def _gather(batch: Iterable[Entry], table: Table) -> list[Row]:
    return [row for entry in batch if entry.table is table for row in entry.rows]


FILE = "replies.db"
BUSY_SECONDS = 30.0
UNSENT = "unsent"
"""In place of an error: the caller was cancelled after its ask was noted and before the request was sent."""
TABLES = """
CREATE TABLE IF NOT EXISTS asks (key TEXT NOT NULL, backend TEXT NOT NULL, asked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, backend TEXT NOT NULL, recorded INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0, reply TEXT NOT NULL, checksum INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS failures (
    key TEXT NOT NULL, backend TEXT NOT NULL, failed INTEGER NOT NULL, error TEXT NOT NULL
);
"""
ADDED = (("asks", "asked"), ("replies", "recorded"), ("replies", "bytes"), ("replies", "checksum"))
"""Columns that older stores lacked. 0 means not known: such a reply has no known day, and its size is measured."""
VERSION = 3
"""SQLite's ``user_version`` of a store with all of these tables and columns; older stores have 0."""
BACKUP = "replies-before-v3.db"
"""Copy of an older store from before its tables were changed; nothing reads it, and it may be removed."""


@dataclass(slots=True)
class ReplyStore:
    """Replies of one workspace. Open one a process with :func:`open_replies`."""

    reader: sqlite3.Connection
    writer: GroupWriter
    flights: dict[str, asyncio.Future[str | None]] = field(default_factory=dict)
    """Requests under way by key; the same request meanwhile waits for that reply, None if its caller was cancelled."""

    def read(self, key: str) -> str | None:
        """Return the recorded reply, or None.

        Raises:
            Unavailable: if the file cannot be read now.
            CorruptInput: if it is damaged.
        """
        row = self._select(f"SELECT {CHECKED} FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else open_row(row, self.writer.name)[1]

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
        """Return the recorded reply, or ask for it and record it; the returned reply is durable.

        Args:
            key: hash of the backend's identity and the exact request.
            backend: identity, kept with the reply for pruning.
            ask: sends the request; called only on a miss, after the ask is durable.
            permit: called before anything is noted; the ServiceError that it raises ends the request on a miss.

        Returns:
            The reply and whether it came from the recording, or from the same request under way.

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
                # Marks the error as seen: asyncio complains of errors that no other caller waits for.
                flight.exception()
            else:
                # Only this caller was cancelled: those that wait send the request again.
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
        """Look up, and else note the ask, send the request and record its reply, each durable before the next."""
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
        # Another process may have been first: what is returned must be what will be replayed.
        return self.read(key) or reply, False

    def _select(self, statement: str, values: tuple[str, ...]) -> sqlite3.Cursor:
        try:
            return self.reader.execute(statement, values)
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self.writer.name) from error


def open_replies(folder: Path) -> ReplyStore:
    """Open (or make) the reply store in a folder; an older one gets its new columns, and a copy from before.

    Raises:
        ConfigError: if the folder's file system cannot hold it.
        CorruptInput: if the file is damaged.
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
        CorruptInput: if the file is damaged.
        Unavailable: if the file cannot be opened or its disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_shared_memory(folder)
        return _connect(folder)
    except sqlite3.Error as error:
        raise explain_sqlite_error(error, f"reply store {folder / FILE}") from error
    except OSError as error:
        raise explain_os_error(error, f"reply store in {folder}") from error


def _connect(folder: Path) -> sqlite3.Connection:
    path = folder / FILE
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        _begin_log(connection, folder)
        if not _is_current(connection, path):
            _make_tables(connection, path)
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


def _is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether all tables are there; a store that says so and lacks one is damaged, and never begun anew."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    whole = not _list_missing(connection) and bool(connection.execute("PRAGMA table_info(failures)").fetchall())
    if version not in (0, VERSION) or (version == VERSION and not whole):
        raise CorruptInput(f"reply store {path}: its tables are not as they were made; {REPAIR}")
    return bool(version == VERSION)


def _list_missing(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return tables and columns that are not there."""
    columns = {table: connection.execute(f"PRAGMA table_info({table})").fetchall() for table, _ in ADDED}
    return [(table, column) for table, column in ADDED if column not in {row[1] for row in columns[table]}]


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; those of an older one get the columns they lack, after the file is copied."""
    connection.execute("BEGIN IMMEDIATE")
    before = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,)
    for statement in TABLES.split(";"):
        connection.execute(statement)
    missing = _list_missing(connection)
    if before and missing:
        _back_up(path)
    for table, column in missing:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    if ("replies", "checksum") in missing:
        connection.create_function("sum_row", 3, sum_row, deterministic=True)
        parts = ", ".join(CHECKED.split(", ")[:3])
        connection.execute(f"UPDATE replies SET checksum = sum_row({parts})")
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def set_aside(folder: Path, keys: Sequence[str]) -> int:
    """Keep recorded replies under other keys, so that their requests are sent again; return how many there were.

    Args:
        folder: the workspace's folder of replies.
        keys: of the requests; those without a reply are left out.

    Raises:
        Unavailable, CorruptInput: if the store cannot be written now, or is damaged.
    """
    parts = CHECKED.replace("CAST(key", "CAST(key || :mark").rpartition(",")[0]
    statement = f"UPDATE replies SET key = key || :mark, checksum = sum_row({parts}) WHERE key = :key"
    mark = f"-unusable-{time.time_ns()}"
    with closing(connect_replies(folder)) as connection:
        connection.create_function("sum_row", 3, sum_row, deterministic=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            done = [connection.execute(statement, {"mark": mark, "key": key}) for key in dict.fromkeys(keys)]
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, f"reply store {folder / FILE}") from error
    return sum(each.rowcount for each in done)


def _back_up(path: Path) -> None:
    """Copy a store beside itself as it is committed, its log included."""
    with (
        replacing(path.with_name(BACKUP)) as temp,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(temp)) as copy,
    ):
        source.backup(copy)


def _make_row(key: str, backend: str, reply: str) -> Row:
    text = reply.encode()
    return key, backend, int(time.time()), len(text), reply, sum_row(key.encode(), backend.encode(), text)


EPOCHS = "fresh.json"


def read_epochs(folder: Path) -> dict[str, int]:
    """Return the epoch of each role that was ever renewed; an absent role is in epoch 0.

    Args:
        folder: the workspace's folder of replies.

    Raises:
        CorruptInput: if the file is damaged.
    """
    path = folder / EPOCHS
    if not path.is_file():
        return {}
    try:
        epochs = json.loads(read_note(path))
    except (ValueError, Damaged) as error:
        raise CorruptInput(f"{path}: damaged; remove it and run again") from error
    if not isinstance(epochs, dict) or not all(_is_epoch(value) for value in epochs.values()):
        raise CorruptInput(f"{path}: damaged; it must map roles to numbers from 1; remove it and run again")
    return epochs


def renew(folder: Path, roles: Iterable[str]) -> dict[str, int]:
    """Begin a new epoch of each role and return all epochs; the caller has checked the roles.

    Raises:
        ConfigError: if no role is given, or the folder cannot be written.
        CorruptInput: if the file is damaged.
        Unavailable: if the disk is full.
    """
    renewed = sorted(set(roles))
    if not renewed:
        raise ConfigError("fresh replies: no role is given; name the roles to ask again")
    epochs = read_epochs(folder)
    for role in renewed:
        epochs[role] = epochs.get(role, 0) + 1
    try:
        write_text(folder / EPOCHS, seal_note(json.dumps(epochs, indent=1, sort_keys=True)))
    except OSError as error:
        raise explain_os_error(error, f"cache epochs in {folder}") from error
    return epochs


def name_epoch(identity: str, epoch: int) -> str:
    """Return a backend's identity in an epoch; epoch 0 is the identity itself."""
    return f"{identity}#{epoch}" if epoch else identity


def _is_epoch(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
