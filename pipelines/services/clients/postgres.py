"""The reply store in PostgreSQL, for the processes of several hosts; the tables are those of SQLite.

Claims are rows that name their owner: a number that each process draws, and that its session keeps locked. A claim
whose owner is not locked has ended. One lock a process is all that is needed, however many requests are in flight;
PostgreSQL's own locks on each key would fill its table of locks (6,400 by default) with one batch.

A connection that is lost is opened again, and a transaction of which nobody knows whether it was committed is looked
up by its number.
"""

import os
import re
import secrets
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread, main_thread
from typing import Any, ClassVar

from pipelines.errors import ConfigError, CorruptInput, SynthError, Unavailable, WorkspaceBusy
from pipelines.services.clients.replies import (
    PATIENCE,
    RETRY,
    Ledger,
    Row,
    StoreBusy,
    Table,
    open_row,
    try_patiently,
)
from pipelines.services.clients.turns import RUN_TABLES

try:
    import psycopg
    from psycopg import errors
except ImportError as error:
    raise ConfigError(f"replies.address: psycopg does not load ({error}): pip install 'synth[postgres]'") from error

CONNECT_SECONDS = 10
ALIVE: dict[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""When this side gives up a host that went without a word; libpq's names, the address may say otherwise."""
ALIVE_SERVER = """
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 60000
"""
"""When the server gives up this one, and its claims become free."""
OPENING = 15.0
"""Seconds that a database may be away when it is first asked for."""
TYPES = {"asked": "bigint", "recorded": "bigint", "bytes": "bigint", "failed": "bigint", "checksum": "bigint",
         "reply": "bytea"}  # fmt: skip
"""Types of columns that are no text. A reply is bytes, so that a damaged one can be read and named."""
CHECKED = "convert_to(key, 'UTF8'), convert_to(backend, 'UTF8'), reply, checksum"
TABLES = """
CREATE TABLE IF NOT EXISTS asks (key text NOT NULL, backend text NOT NULL, asked bigint NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
    key text PRIMARY KEY, backend text NOT NULL, recorded bigint NOT NULL,
    bytes bigint NOT NULL, reply bytea NOT NULL, checksum bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS failures (
    key text NOT NULL, backend text NOT NULL, failed bigint NOT NULL, error text NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (key text PRIMARY KEY, owner bigint NOT NULL, since timestamptz NOT NULL);
"""
MAKING = 5236981
"""Number of the lock that is held while tables are made: two processes that make one at once would fail."""
CLAIM = """
INSERT INTO claims (key, owner, since)
SELECT key, %(owner)s, clock_timestamp() FROM unnest(%(keys)s::text[]) AS key ORDER BY key
ON CONFLICT (key) DO UPDATE SET owner = EXCLUDED.owner, since = EXCLUDED.since
WHERE claims.owner = EXCLUDED.owner OR (
    NOT EXISTS (
        SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND (classid::bigint << 32 | objid::bigint) = claims.owner
    ) AND (
        claims.since > pg_postmaster_start_time()
        OR clock_timestamp() > pg_postmaster_start_time() + %(grace)s * interval '1 second'
    )
) RETURNING key
"""
"""Claims keys that are free or whose owner has ended, in one order, so that two processes never wait for each other."""
GRACE = 30.0
"""Seconds after the server's start in which the owners of older claims may come back for them."""
KEEP_SECONDS = 5.0
_NAMED = re.compile(r":(\w+)")
REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied", "not permitted")
"""What PostgreSQL says of an invalid address, for which waiting is no use."""


def resolve_address(address: str) -> str:
    """Return the connection string for libpq; ``env:NAME`` stands for that environment variable.

    Raises:
        ConfigError: if the variable is empty, or the address is invalid. The message does not quote it.
    """
    told = address
    if address.startswith("env:"):
        name = address.removeprefix("env:")
        if not (told := os.environ.get(name, "")):
            raise ConfigError(f"replies.address: the environment variable {name} is not set")
    try:
        psycopg.conninfo.conninfo_to_dict(told)
    except psycopg.ProgrammingError:
        # libpq quotes what it does not understand, which may be the password.
        raise ConfigError(
            "replies.address is no address of a PostgreSQL database; expected postgresql://user@host/database, "
            "with %40 for an @ in a password"
        ) from None
    return told


def name_place(address: str) -> str:
    """Return what messages call a database: its address without secrets."""
    told = psycopg.conninfo.conninfo_to_dict(address)
    return f"{told.get('host') or 'local'}/{told.get('dbname') or ''}"


@dataclass(slots=True)
class PostgresLedger(Ledger):
    """A connection to the database, opened when it is needed."""

    address: str
    name: str
    owner: int = field(default_factory=lambda: secrets.randbits(62))
    held: set[str] = field(default_factory=set)
    _connection: "psycopg.Connection[tuple[Any, ...]] | None" = None
    errors: ClassVar[type[Exception]] = psycopg.Error
    clock: ClassVar[str] = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
    greatest: ClassVar[str] = "greatest"

    @property
    def connection(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """The connection, opened again if it was lost; what was claimed is claimed again."""
        if self._connection is None or self._connection.closed:
            told = ALIVE | psycopg.conninfo.conninfo_to_dict(self.address)
            told |= {"connect_timeout": CONNECT_SECONDS, "application_name": "synth"}
            self._connection = psycopg.connect(autocommit=True, **told)
            self._connection.execute(ALIVE_SERVER)
            # Only what is paid for waits for the disk.
            self._connection.execute("SET synchronous_commit = off")
            # Shared: a session that was lost may live on for a while.
            self._connection.execute("SELECT pg_advisory_lock_shared(%s)", (self.owner,))
            if self.held:
                self.claim(list(self.held))
        return self._connection

    def select(self, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows; the clock is the server's."""
        cursor = self.connection.execute(_NAMED.sub(r"%(\1)s", statement), values)
        return cursor.fetchall() if cursor.description else []

    def find(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the replies there are."""
        if not keys:
            return {}
        statement = f"SELECT {CHECKED} FROM replies WHERE key = ANY(%s::text[])"
        rows = self.connection.cursor(binary=True).execute(statement, (list(keys),)).fetchall()
        return dict(open_row((key, backend, reply, checksum), self.name) for key, backend, reply, checksum in rows)

    @contextmanager
    def transaction(self, paid: bool) -> Iterator[None]:
        """Commit the block or none of it."""
        connection, level = self.connection, "SET LOCAL synchronous_commit = on; " if paid else ""
        begun = connection.execute(f"BEGIN; {level}SELECT pg_current_xact_id()::text")
        while begun.nextset():
            pass
        (number,) = begun.fetchone() or ("",)
        held = set(self.held)
        try:
            yield
        except BaseException:
            self.held = held
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError:
            if not self._was_committed(number):
                self.held = held
                raise

    def _was_committed(self, number: str) -> bool:
        """Whether a transaction was committed before the connection was lost."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                row = self.connection.execute("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()
                return row == ("committed",)
            except errors.InvalidParameterValue:
                # A number that was not given out yet: the server forgot the transaction in a crash.
                return False
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(RETRY)

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Claim requests."""
        rows = self.connection.execute(CLAIM, {"keys": list(keys), "owner": self.owner, "grace": GRACE}).fetchall()
        claimed = {str(key) for (key,) in rows}
        self.held |= claimed
        return claimed

    def release(self, keys: Iterable[str]) -> None:
        """End claims."""
        if ended := sorted(self.held.intersection(keys)):
            statement = "DELETE FROM claims WHERE key = ANY(%s::text[]) AND owner = %s"
            self.connection.execute(statement, (ended, self.owner))
            self.held.difference_update(ended)

    def insert(self, table: Table, rows: Sequence[Row]) -> bool:
        """Insert rows, in the order of their keys, so that two processes never wait for each other."""
        if not rows:
            return True
        target, conflict = table.value
        names = target.partition("(")[2].rstrip(")").split(", ")
        arrays = ", ".join(f"{'%b' if name == 'reply' else '%s'}::{TYPES.get(name, 'text')}[]" for name in names)
        columns = [list(column) for column in zip(*sorted(rows), strict=True)]
        values = [
            [str(cell).encode() for cell in column] if name == "reply" else column
            for name, column in zip(names, columns, strict=True)
        ]
        done = self.connection.execute(f"INSERT INTO {target} SELECT * FROM unnest({arrays}) {conflict}", values)
        return done.rowcount == len(rows)

    def explain(self, error: Exception) -> SynthError:
        """Return the synth error of one of PostgreSQL's."""
        assert isinstance(error, psycopg.Error)
        said = " ".join(str(error).split())
        if isinstance(error, errors.DiskFull | errors.OutOfMemory | errors.ConfigurationLimitExceeded):
            return Unavailable(f"{self.name}: {said}; free space, then run again")
        if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
            return CorruptInput(f"{self.name}: {said}; restore the database")
        if error.sqlstate is None and any(refusal in said for refusal in REFUSALS):
            return ConfigError(f"{self.name}: {said}; see replies.address")
        if isinstance(error, psycopg.OperationalError | errors.DeadlockDetected):
            return StoreBusy(f"{self.name}: {said}; see that it runs, then run again")
        if isinstance(error, errors.InsufficientPrivilege | errors.UndefinedTable | errors.UndefinedColumn):
            return ConfigError(f"{self.name}: {said}; replies.address needs a user who may make and change its tables")
        raise error

    def close(self) -> None:
        """Close the connection; all claims end."""
        if self._connection is not None:
            # They end with the connection, too; this leaves no rows behind.
            with suppress(psycopg.Error):
                self._connection.execute("DELETE FROM claims WHERE owner = %s", (self.owner,))
            self._connection.close()
        self.held.clear()


def open_postgres(address: str) -> PostgresLedger:
    """Connect to the database and make its tables.

    Raises:
        ConfigError: if the address is invalid, or the database refuses the user.
        Unavailable: if it is away.
    """
    told = resolve_address(address)
    ledger = PostgresLedger(told, f"reply store in PostgreSQL {name_place(told)}")
    try_patiently(ledger, lambda: _make_tables(ledger), OPENING)
    return ledger


def _make_tables(ledger: PostgresLedger) -> None:
    with ledger.transaction(paid=True):
        ledger.connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
        ledger.connection.execute(TABLES + RUN_TABLES)


def scan_replies(address: str) -> Iterator[tuple[Any, ...]]:
    """Yield every reply as it lies in the database: key, backend and reply as bytes, and the checksum.

    Raises:
        ConfigError, CorruptInput, Unavailable: as :func:`open_postgres`, and if the database ends amid the rows.
    """
    with closing(open_postgres(address)) as ledger:
        try:
            with ledger.transaction(paid=False), ledger.connection.cursor("scan", binary=True) as rows:
                yield from rows.execute(f"SELECT {CHECKED} FROM replies")
        except psycopg.Error as error:
            raise ledger.explain(error) from error


@contextmanager
def hold_claim(address: str, key: str, busy: str) -> Iterator[None]:
    """Hold a claim for the block, with a connection of its own.

    When another process has it, as after a long cut of the network, the main thread is interrupted as by Ctrl-C.

    Raises:
        WorkspaceBusy: with the text ``busy`` if another process holds it.
        Unavailable: if the database is away, or the claim was lost amid the block.
    """
    ledger, ended, lost = open_postgres(address), Event(), Event()

    def keep() -> None:
        # Nobody else uses the connection: it is looked after, so that a restart of the server does not end the claim.
        while not ended.wait(KEEP_SECONDS):
            with suppress(psycopg.Error):
                if not ledger.claim([key]):
                    lost.set()
                    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
                    return

    keeping = Thread(target=keep, name="claim-keeper", daemon=True)
    try:
        if not try_patiently(ledger, lambda: ledger.claim([key]), OPENING):
            raise WorkspaceBusy(busy)
        keeping.start()
        try:
            yield
        finally:
            ended.set()
            keeping.join()
            with suppress(psycopg.Error):
                ledger.release([key])
    except KeyboardInterrupt:
        if not lost.is_set():
            raise
        raise Unavailable(f"{ledger.name}: another process has taken over {key}; it goes on from here") from None
    finally:
        ledger.close()
