"""The reply store as one SQLite file in WAL mode, for all processes of one host.

Claims are locks on bytes of a file beside it, at the places that the keys' hashes name. They end with the process that
holds them, and they cost a system call each.
"""

import ctypes
import errno
import fcntl
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import xxhash

from pipelines.errors import ConfigError, CorruptInput, Unavailable
from pipelines.files import check_shared_memory, explain_os_error, replacing
from pipelines.services.clients.replies import REPAIR, Ledger, Row, StoreBusy, Table, open_row, sum_row
from pipelines.services.clients.turns import RUN_TABLES

FILE = "replies.db"
CLAIMS = "asking.lock"
"""File whose bytes are locked; it stays empty."""
CHUNK = 64
"""Rows of one statement at most. A statement releases the interpreter's lock once, however many rows it inserts."""
BUSY_SECONDS = 30.0
PRIMARY_CODE = 0xFF
"""Mask of SQLite's primary error code."""
QUOTED = 120
"""Characters of SQLite's own words in a message."""
CHECKED = "CAST(key AS BLOB), CAST(backend AS BLOB), CAST(reply AS BLOB), checksum"


class _Lock(ctypes.Structure):
    """Linux' ``struct flock`` of 64-bit machines."""

    _fields_ = (
        ("type", ctypes.c_short),
        ("whence", ctypes.c_short),
        ("start", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("process", ctypes.c_int32),
    )


@dataclass(slots=True)
class FileClaims:
    """Claims of this process among those of one host: locked bytes of a file."""

    path: Path
    held: set[str] = field(default_factory=set)
    _descriptor: int = -1
    _asked: _Lock = field(default_factory=lambda: _Lock(length=1))
    _pointer: Any = None

    def claim(self, keys: Iterable[str]) -> set[str]:
        """Claim keys; return those that no other process holds."""
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._pointer = ctypes.byref(self._asked)
        claimed = {key for key in keys if key in self.held or self._lock(key, fcntl.F_WRLCK)}
        self.held |= claimed
        return claimed

    def release(self, keys: Iterable[str]) -> None:
        """End claims; keys that are not held are left out."""
        for key in self.held.intersection(keys):
            self._lock(key, fcntl.F_UNLCK)
            self.held.discard(key)

    def close(self) -> None:
        """End all claims."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self.held.clear()

    def _lock(self, key: str, kind: int) -> bool:
        """Lock a key's byte or unlock it; return False if another process holds it."""
        place = xxhash.xxh3_64_intdigest(key.encode()) >> 2
        if sys.platform != "linux":
            return self._lock_file(place, kind)
        # Locks of the open file: others of the same process do not end them. The call neither waits nor gives up the
        # interpreter's lock, which would cost up to 5 ms a claim while the event loop is busy.
        self._asked.type, self._asked.start = kind, place
        if _LIBC.fcntl(self._descriptor, fcntl.F_OFD_SETLK, self._pointer) == 0:
            return True
        if (code := ctypes.get_errno()) in (errno.EAGAIN, errno.EACCES):
            return False
        raise explain_os_error(OSError(code, os.strerror(code), str(self.path)), f"claims in {self.path}")

    def _lock_file(self, place: int, kind: int) -> bool:
        command = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.lockf(self._descriptor, command, 1, place)
        except BlockingIOError:
            return False
        return True


_LIBC = ctypes.PyDLL(None, use_errno=True)


@dataclass(slots=True)
class SqliteLedger(Ledger):
    """A connection to the file."""

    connection: sqlite3.Connection
    name: str
    claims: FileClaims
    errors: ClassVar[type[Exception]] = sqlite3.Error
    clock: ClassVar[str] = ":now"
    greatest: ClassVar[str] = "max"

    def select(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows; the clock is that of the host since it was started."""
        return self.connection.execute(statement, values | {"now": time.monotonic()}).fetchall()

    def find(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the replies there are."""
        found: dict[str, str] = {}
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start : start + CHUNK]
            marks = ",".join("?" * len(chunk))
            rows = self.connection.execute(f"SELECT {CHECKED} FROM replies WHERE key IN ({marks})", chunk)
            found.update(open_row(row, self.name) for row in rows)
        return found

    @contextmanager
    def transaction(self, paid: bool) -> Iterator[None]:
        """Commit the block or none of it."""
        self.connection.execute(f"PRAGMA synchronous={'FULL' if paid else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        finally:
            if self.connection.in_transaction:
                # Where this fails, too, the next transaction says so.
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Claim requests."""
        return self.claims.claim(keys)

    def release(self, keys: Iterable[str]) -> None:
        """End claims."""
        self.claims.release(keys)

    def insert(self, table: Table, rows: Sequence[Row]) -> bool:
        """Insert rows; return whether all are new."""
        new, (columns, conflict) = True, table.value
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            marks = ",".join([f"({','.join('?' * len(chunk[0]))})"] * len(chunk))
            values = [value for row in chunk for value in row]
            done = self.connection.execute(f"INSERT INTO {columns} VALUES {marks} {conflict}", values)
            new = new and done.rowcount == len(chunk)
        return new

    def explain(self, error: Exception) -> Unavailable | CorruptInput:
        """Return the synth error of one of SQLite's."""
        assert isinstance(error, sqlite3.Error)
        explained = explain_sqlite_error(error, self.name)
        return StoreBusy(str(explained)) if is_busy(error) else explained

    def close(self) -> None:
        """Close the file; all claims end."""
        self.connection.close()
        self.claims.close()


def open_sqlite(folder: Path, reads: bool = False) -> SqliteLedger:
    """Open (or make) the store in a folder, its file for reading alone or for everything; raises as connecting does."""
    connection = connect_replies(folder)
    if reads:
        connection.execute("PRAGMA query_only=ON")
    else:
        connection.executescript(RUN_TABLES)
    return SqliteLedger(connection, f"reply store {folder / FILE}", FileClaims(folder / CLAIMS))


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
    except UnicodeDecodeError as error:
        # SQLite's own message quotes a damaged schema, byte by byte.
        raise explain_sqlite_error(sqlite3.DatabaseError(str(error)), f"reply store {folder / FILE}") from error
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


def _back_up(path: Path) -> None:
    """Copy a store beside itself as it is committed, its log included."""
    with (
        replacing(path.with_name(BACKUP)) as temp,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(temp)) as copy,
    ):
        source.backup(copy)
