"""The reply store: every reply under the hash of the exact request, shared by all processes of a run.

The store is a database behind SQLAlchemy: one SQLite file for the processes of one host, or PostgreSQL for several
hosts. An ask is noted before its request is sent, and a reply is durable before it is used: both survive kill -9.

Group commit: one thread writes, and all that waits goes into one transaction; meanwhile the next callers gather.

Claims: whoever is to send a request claims its key first. Another process that wants the same key waits for the reply
in place of paying, too. A claim ends with its process, however that ends: each holds a lock that the others try.

Cache epochs: ``--fresh-replies ROLE`` asks a role again and forgets nothing. ``replies/fresh.json`` maps roles to
epochs. An epoch above 0 is part of the identity of the role's backend, so the keys of replies and of stages change
together; older replies stay where they are.
"""

import asyncio
import fcntl
import json
import os
import secrets
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Engine,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from pipelines.errors import ConfigError, CorruptInput, ServiceError, SynthError, Unavailable
from pipelines.files import check_shared_memory, explain_os_error, write_text
from pipelines.services.clients.turns import Turns
from pipelines.services.metering import Budget
from pipelines.services.traffic import Waiting
from schemas.manifest import Usage

T = TypeVar("T")
FILE = "replies.db"
ADDRESS = "address"
"""File of a workspace's folder of replies that says where they are; none for SQLite in the folder."""
EPOCHS = "fresh.json"
MOST_CALLERS = 512
"""Callers that share a transaction at most; the others wait for the next."""
PATIENCE = 120.0
"""Seconds that other processes may hold the database, or that it may be away, before the callers get an error."""
RETRY = 0.05
"""Seconds between two tries of a transaction."""
FIRST_LOOK, LAST_LOOK, SLOWER = 0.01, 5.0, 1.3
"""Seconds between the first and the last looks at a request that another process sends, and how much they grow."""
ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
"""When either side of PostgreSQL gives up the other that went without a word."""
GRACE = 30
"""Seconds after PostgreSQL's start in which the owners of claims may come back for them."""
WRITING = 5236981
"""Number of PostgreSQL's lock of the one transaction that writes at a time."""
REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied", "not permitted")
"""What PostgreSQL says of an invalid address, for which waiting is no use."""

METADATA = MetaData()


def _make_table(name: str, *columns: str, key: int = 1, numbers: str = "", fractions: str = "") -> Table:
    kinds = dict.fromkeys(numbers.split(), BigInteger) | dict.fromkeys(fractions.split(), Double)
    made = (
        Column(column, kinds.get(column, Text), primary_key=place < key, nullable=False, autoincrement=False)
        for place, column in enumerate(columns)
    )
    return Table(name, METADATA, *made)


ASKS = _make_table("asks", "key", "backend", "asked", key=0, numbers="asked")
REPLIES = _make_table("replies", "key", "backend", "recorded", "reply", numbers="recorded")
CLAIMS = _make_table("claims", "key", "owner", numbers="owner")
TURNS = _make_table("turns", "run", "service", "next_at", "held_until", key=2, fractions="next_at held_until")
SPENT = _make_table(
    "spent", "run", "process", "cost", "tokens", "gpu_seconds",
    key=2, numbers="process tokens", fractions="cost gpu_seconds",
)  # fmt: skip


class StoreBusy(Unavailable):
    """The database is held by others, or away for the moment: the same is tried again."""


class Ledger(ABC):
    """A database of replies, as the one thread that writes uses it; ``reader`` belongs to the event loop's thread."""

    def __init__(self, address: URL, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.owner = secrets.randbits(62)
        self.engine: Engine = create_engine(address, isolation_level="AUTOCOMMIT", connect_args=dict(options))
        event.listen(self.engine, "connect", lambda connection, _: self.prepare(connection))
        self.connection, self.reader = self.engine.connect(), self.engine.connect()
        with self.transaction():
            METADATA.create_all(self.connection)

    @abstractmethod
    def prepare(self, connection: Any) -> None:  # noqa: ANN401 - of either driver
        """Prepare a new connection."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that no other one writes beside."""

    @abstractmethod
    def is_gone(self, owner: int) -> bool:
        """Whether the process that made claims has ended."""

    @abstractmethod
    def tell_time(self) -> float:
        """Return the time in seconds, the same for all processes of a run."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the block or none of it; it survives a power cut."""
        try:
            self.begin()
            yield
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise

    def find(self, keys: Sequence[str], connection: Connection | None = None) -> dict[str, str]:
        """Return the replies there are."""
        statement = select(REPLIES.c.key, REPLIES.c.reply).where(REPLIES.c.key.in_(keys))
        return dict((connection or self.connection).execute(statement).tuples().all()) if keys else {}

    def look(self, keys: Sequence[str], connection: Connection) -> dict[str, str]:
        """Return the replies there are, outside a transaction."""
        try:
            return self.find(keys, connection)
        finally:
            # A connection that was lost is opened again after this.
            connection.rollback()

    def insert(self, table: Table, rows: Sequence[dict[str, object]]) -> None:
        """Append rows."""
        if rows:
            self.connection.execute(insert(table), rows)

    def record(self, replies: Mapping[str, tuple[str, str]]) -> None:
        """Record replies, by key with their backends, of which there are none yet."""
        now = int(time.time())
        rows = [{"key": key, "backend": told[0], "recorded": now, "reply": told[1]} for key, told in replies.items()]
        self.insert(REPLIES, rows)

    def rename(self, keys: Sequence[str], mark: str, before: int) -> int:
        """Give replies that were recorded until ``before`` other keys; return how many."""
        statement = update(REPLIES).where(REPLIES.c.key.in_(keys), REPLIES.c.recorded <= before)
        return self.connection.execute(statement.values(key=REPLIES.c.key + mark)).rowcount

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Claim keys inside a transaction; return those that no other process holds."""
        taken = dict(self.connection.execute(select(CLAIMS).where(CLAIMS.c.key.in_(keys))).tuples().all())
        gone = {owner for owner in {*taken.values()} - {self.owner} if self.is_gone(owner)}
        if gone:
            self.connection.execute(delete(CLAIMS).where(CLAIMS.c.owner.in_(gone)))
        taken = {key: owner for key, owner in taken.items() if owner not in gone}
        free = [key for key in dict.fromkeys(keys) if key not in taken]
        self.insert(CLAIMS, [{"key": key, "owner": self.owner} for key in free])
        return {*free, *(key for key, owner in taken.items() if owner == self.owner)}

    def release(self, keys: Sequence[str]) -> None:
        """End claims."""
        if keys:
            self.connection.execute(delete(CLAIMS).where(CLAIMS.c.key.in_(keys), CLAIMS.c.owner == self.owner))

    def forget_runs(self, run: str) -> None:
        """Remove what earlier runs in the workspace of a run shared."""
        with self.transaction():
            for table in (TURNS, SPENT):
                column, start = table.c.run, f"{run.partition('/')[0]}/"
                self.connection.execute(delete(table).where(column.startswith(start, autoescape=True), column != run))

    def read_turn(self, run: str, service: str) -> tuple[float, float, float]:
        """Return the time, when the next turn at a service comes, and until when the service asked for a pause."""
        found = self.connection.execute(
            select(TURNS.c.next_at, TURNS.c.held_until).filter_by(run=run, service=service)
        ).first()
        return (self.tell_time(), *(found or (0.0, 0.0)))

    def put_off(self, run: str, service: str, next_at: float, held_until: float) -> None:
        """Let no turn at a service come earlier."""
        _, *before = self.read_turn(run, service)
        values = {"next_at": max(before[0], next_at), "held_until": max(before[1], held_until)}
        self._replace(TURNS, {"run": run, "service": service}, values)

    def share(self, run: str, spent: Usage) -> Usage:
        """Note what this process has spent and return what the run's other processes have."""
        values = {"cost": spent.cost, "tokens": spent.tokens_in + spent.tokens_out, "gpu_seconds": spent.gpu_seconds}
        self._replace(SPENT, {"run": run, "process": self.owner}, values)
        sums = [func.coalesce(func.sum(SPENT.c[name]), 0) for name in values]
        others = select(*sums).where(SPENT.c.run == run, SPENT.c.process != self.owner)
        cost, tokens, gpu_seconds = self.connection.execute(others).one()
        return Usage(cost=float(cost), tokens_in=int(tokens), gpu_seconds=float(gpu_seconds))

    def _replace(self, table: Table, where: dict[str, object], values: dict[str, Any]) -> None:
        if not self.connection.execute(update(table).filter_by(**where).values(values)).rowcount:
            self.insert(table, [where | values])

    def close(self) -> None:
        """Close the database; all claims end."""
        with suppress(DBAPIError):
            self.connection.execute(delete(CLAIMS).where(CLAIMS.c.owner == self.owner))
        self.connection.close()
        self.reader.close()
        self.engine.dispose()


class SqliteLedger(Ledger):
    """A SQLite file in WAL mode."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        check_shared_memory(folder)
        self.folder = folder
        super().__init__(URL.create("sqlite", database=str(folder / FILE)), _name_file(folder), {})
        self._lock = os.open(self._find_lock(self.owner), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def prepare(self, connection: Any) -> None:  # noqa: ANN401
        """Turn the write-ahead log on, and wait where others write."""
        for statement in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {statement}")

    def begin(self) -> None:
        """Begin a transaction."""
        self.connection.exec_driver_sql("BEGIN IMMEDIATE")

    def is_gone(self, owner: int) -> bool:
        """Whether nobody locks the owner's file."""
        path = self._find_lock(owner)
        with suppress(FileNotFoundError), path.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            path.unlink(missing_ok=True)
        return True

    def tell_time(self) -> float:
        """Return the host's time."""
        return time.time()

    def close(self) -> None:
        """Close the file and leave the lock."""
        super().close()
        self._find_lock(self.owner).unlink(missing_ok=True)
        os.close(self._lock)

    def _find_lock(self, owner: int) -> Path:
        return self.folder / f"{owner}.lock"


class PostgresLedger(Ledger):
    """A PostgreSQL database, of which each connection shares the lock of its process."""

    def __init__(self, address: str) -> None:
        url = resolve_address(address)
        name = f"reply store in PostgreSQL {url.host or 'local'}/{url.database}"
        options = ALIVE | {"connect_timeout": 10, "application_name": "synth"}
        super().__init__(url.set(drivername="postgresql+psycopg"), name, options)

    def prepare(self, connection: Any) -> None:  # noqa: ANN401
        """Share the lock of this process."""
        connection.autocommit = True
        alive = "; ".join(f"SET {name.replace('keepalives', 'tcp_keepalives')} = {n}" for name, n in ALIVE.items())
        connection.execute(f"{alive}; SELECT pg_advisory_lock_shared({self.owner})")

    def begin(self) -> None:
        """Begin a transaction."""
        self.connection.exec_driver_sql(f"BEGIN; SELECT pg_advisory_xact_lock({WRITING})")

    def is_gone(self, owner: int) -> bool:
        """Whether no session has the owner's lock, and the server did not start just now."""
        return bool(
            self.connection.exec_driver_sql(
                f"SELECT clock_timestamp() > pg_postmaster_start_time() + interval '{GRACE} seconds' "
                f"AND pg_try_advisory_xact_lock({owner:d})"
            ).scalar()
        )

    def tell_time(self) -> float:
        """Return the server's time."""
        return float(self.connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one())


def resolve_address(address: str) -> URL:
    """Return the address of a PostgreSQL database; ``env:NAME`` stands for that environment variable.

    Raises:
        ConfigError: if the variable is empty, or the address is invalid. The message does not quote it.
    """
    told, name = address, address.removeprefix("env:")
    if name != address and not (told := os.environ.get(name, "")):
        raise ConfigError(f"replies: the environment variable {name} is not set")
    with suppress(ArgumentError, ValueError):
        url = make_url(told)
        if url.get_backend_name() in ("postgresql", "postgres"):
            return url
    raise ConfigError(
        "replies is no address of a PostgreSQL database; expected postgresql://user@host/database, with %40 "
        "for an @ in a password"
    )


def _name_file(folder: Path) -> str:
    return f"reply store {folder / FILE}"


def explain(error: DBAPIError | sqlite3.Error, name: str) -> SynthError:
    """Return what a database's error stands for; :class:`StoreBusy` if the same may succeed soon."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    said = f"{name}: {' '.join(str(cause).split())}"
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        if not isinstance(cause, sqlite3.OperationalError) or code is None:
            return CorruptInput(f"{said}; restore the file, or move it away and pay again")
        if code & 0xFF == sqlite3.SQLITE_BUSY:
            return StoreBusy(said)
        return Unavailable(f"{said}; free space, then run again")
    if any(refusal in said for refusal in REFUSALS) or getattr(cause, "sqlstate", None) == "42501":
        return ConfigError(f"{said}; replies needs a user who may make and change its tables")
    if not isinstance(error, OperationalError):
        raise error
    return StoreBusy(f"{said}; see that it runs, then run again")


def try_patiently(name: str, call: Callable[[], T], patience: float = PATIENCE) -> T:
    """Return what a call returns, tried again while others hold the database or it is away.

    Raises:
        Unavailable: if the disk is full, or the database is held or away for too long.
        CorruptInput: if it is damaged.
    """
    deadline = time.monotonic() + patience
    with Waiting() as waiting:
        while True:
            try:
                return call()
            except (DBAPIError, sqlite3.Error) as error:
                explained = explain(error, name)
                if not isinstance(explained, StoreBusy) or time.monotonic() > deadline:
                    raise explained from error
                waiting.note("the store of replies", explained, deadline - time.monotonic())
            time.sleep(RETRY)


def open_ledger(folder: Path, address: str = "") -> Ledger:
    """Open (or make) the database of replies of a workspace.

    Args:
        folder: the workspace's folder of replies.
        address: of a PostgreSQL database; empty for SQLite in the folder.

    Raises:
        ConfigError: if the folder's file system cannot hold it, or the address is invalid.
        CorruptInput: if the file is damaged.
        Unavailable: if the database cannot be opened or its disk is full.
    """
    try:
        if address:
            return try_patiently("reply store in PostgreSQL", lambda: PostgresLedger(address), 15.0)
        return try_patiently(_name_file(folder), lambda: SqliteLedger(folder))
    except OSError as error:
        raise explain_os_error(error, f"reply store in {folder}") from error
    except ModuleNotFoundError as error:
        raise ConfigError(f"replies: {error}: pip install 'synth[postgres]'") from error


Outcome = bool | str | ServiceError | None
"""The reply; None where the caller is to send the request, False where another process sends it; or why not."""


@dataclass(slots=True)
class Caller:
    """One who waits for a reply to be looked up, or to be recorded if there is one."""

    key: str
    backend: str
    waiter: asyncio.Future[Outcome]
    permit: Callable[[], None] | None = None
    """Called before a request is to be sent; the ServiceError that it raises is the outcome."""
    reply: str | None = None


@dataclass(slots=True)
class ReplyStore:
    """Replies of one workspace. Open one a process with :func:`open_replies`.

    One thread uses the ledger. All fields belong to the thread of the event loop; the writing thread sees one batch of
    callers at a time. A process may run several loops, one after the other.
    """

    ledger: Ledger
    run: str = ""
    """The run whose processes share turns and a budget; empty for this process alone."""
    budget: Budget | None = None
    """What the other processes have spent is noted in it with every transaction."""
    patience: float = PATIENCE
    turns: Turns | None = None
    """The turns at services that the processes of a run share; None outside a run."""
    flights: dict[str, asyncio.Future[str | None]] = field(default_factory=dict)
    """Requests under way by key; the same request meanwhile waits for that reply, None if its caller was cancelled."""
    _waiting: list[Caller] = field(default_factory=list)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "reply-writer"))
    _loop: asyncio.AbstractEventLoop | None = None
    _writing: bool = False
    _closed: bool = False
    _misses: bool = False
    """Whether the last batch wanted replies that there were not."""

    def read(self, key: str) -> str | None:
        """Return the recorded reply, or None; raises as :meth:`recall`."""
        return try_patiently(
            self.ledger.name, lambda: self.ledger.look([key], self.ledger.reader).get(key), self.patience
        )

    def count(self) -> tuple[int, int]:
        """Return how many requests were sent and how many replies are recorded."""
        counts = [select(func.count()).select_from(table).scalar_subquery() for table in (ASKS, REPLIES)]
        asks, replies = self.ledger.reader.execute(select(*counts)).one()
        return asks, replies

    def submit(self, call: Callable[[Ledger], T]) -> "Future[T]":
        """Have something done in the thread, in a transaction of its own."""
        if self._closed:
            raise Unavailable(f"{self.ledger.name}: it is closed")

        def run() -> T:
            with self.ledger.transaction():
                return call(self.ledger)

        return self._thread.submit(try_patiently, self.ledger.name, run, self.patience)

    async def retire(self, key: str, before: int) -> None:
        """Set the reply of a key aside if it was recorded until ``before``, in seconds of Unix: it is asked anew."""
        # Looked up in this thread first: most keys of a record that is asked anew have no reply yet.
        if self.read(key) is not None:
            mark = f"-retried-{time.time_ns()}"
            await asyncio.wrap_future(self.submit(lambda ledger: ledger.rename([key], mark, before)))

    async def recall(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None = None
    ) -> tuple[str, bool]:
        """Return the recorded reply, or ask for it and record it; the returned reply is durable.

        Args:
            key: hash of the backend's identity and the exact request.
            backend: identity, kept with the reply.
            ask: sends the request; called only on a miss, after the ask is durable.
            permit: called on a miss before anything is noted; the ServiceError that it raises ends the request.

        Returns:
            The reply and whether it came from the recording, or from the same request under way, here or in another
            process.

        Raises:
            Unavailable: if the store cannot be read or written now.
            CorruptInput: if it is damaged.
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
        """Write what waits and close the database; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._hand_over(self._waiting)
            self._thread.shutdown()
            self.ledger.close()

    async def _send(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None
    ) -> tuple[str, bool]:
        """Look up, and else note the ask, send the request and record its reply, each durable before the next."""
        pause = FIRST_LOOK
        with Waiting() as waiting:
            while (found := await self._wait(key, backend, permit)) is False:
                waiting.note("another process's request", "it wants the same reply")
                await asyncio.sleep(pause)
                pause = min(pause * SLOWER, LAST_LOOK)
        if isinstance(found, str):
            return found, True
        try:
            reply = await ask()
        except BaseException:
            self._release(key)
            raise
        # Another process may have been first: what is returned is what will be replayed.
        return str(await self._wait(key, backend, None, reply)), False

    async def _wait(
        self, key: str, backend: str, permit: Callable[[], None] | None, reply: str | None = None
    ) -> Outcome:
        """Wait for the transaction of a caller; who is cancelled meanwhile leaves after it, without a claim."""
        if self._closed:
            raise Unavailable(f"{self.ledger.name}: it is closed")
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append(Caller(key, backend, waiter, permit, reply))
        if loop is not self._loop:
            # The loop before has ended; a batch that it left is still written, in order.
            self._loop, self._writing = loop, False
        if not self._writing:
            self._writing = True
            loop.call_soon(self._begin)
        try:
            return await asyncio.shield(waiter)
        except asyncio.CancelledError:
            (outcome,) = await asyncio.gather(waiter, return_exceptions=True)
            if outcome is None:
                self._release(key)
            raise

    def _release(self, key: str) -> None:
        """End a claim without waiting; what cannot be written now ends with the process."""
        if not self._closed:
            self.submit(lambda ledger: ledger.release([key]))

    def _begin(self) -> None:
        """Hand the callers that wait to the thread."""
        batch, self._waiting = self._waiting[:MOST_CALLERS], self._waiting[MOST_CALLERS:]
        self._writing = bool(batch)
        self._hand_over(batch)

    def _hand_over(self, batch: Sequence[Caller]) -> None:
        """Have a batch committed in the thread; then the loop is woken once for all its callers."""
        loop = self._loop

        def wake(done: Future[list[Outcome]]) -> None:
            # A loop that is closed has no callers left.
            with suppress(RuntimeError):
                if loop is not None:
                    loop.call_soon_threadsafe(self._finish, batch, done, loop)

        if batch:
            serving = self._thread.submit(try_patiently, self.ledger.name, lambda: self._serve(batch), self.patience)
            serving.add_done_callback(wake)

    def _finish(self, batch: Sequence[Caller], done: "Future[list[Outcome]]", loop: asyncio.AbstractEventLoop) -> None:
        error = done.exception()
        for index, caller in enumerate(batch):
            outcome = error or done.result()[index]
            if caller.waiter.done():
                continue
            if isinstance(outcome, BaseException):
                caller.waiter.set_exception(outcome)
            else:
                caller.waiter.set_result(outcome)
        if loop is self._loop:
            self._begin()

    def _serve(self, batch: Sequence[Caller]) -> list[Outcome]:
        """Serve a batch in one transaction; return the outcome of each caller."""
        ledger, outcomes = self.ledger, dict[str, Outcome]()
        made = {caller.key: (caller.backend, caller.reply) for caller in batch if caller.reply is not None}
        if not made and not self._misses:
            # Outside a transaction, so no other process's writing is waited for.
            outcomes.update(ledger.look([caller.key for caller in batch], ledger.connection))
        if rest := [caller for caller in batch if caller.key not in outcomes]:
            with ledger.transaction():
                if self.run and self.budget is not None and self.budget.is_limited:
                    self.budget.elsewhere = ledger.share(self.run, self.budget.spent)
                outcomes.update(ledger.find([caller.key for caller in rest]))
                new = {key: told for key, told in made.items() if key not in outcomes}
                ledger.record(new)
                ledger.release(list(made))
                outcomes.update({key: reply for key, (_, reply) in new.items()})
                missing = [caller for caller in rest if caller.key not in outcomes]
                outcomes |= self._choose(missing)
            self._misses = bool(missing)
        return [outcomes[caller.key] for caller in batch]

    def _choose(self, missing: Sequence[Caller]) -> dict[str, Outcome]:
        """Note the requests that are to be sent now, and return the outcome of each caller."""
        if not missing:
            return {}
        outcomes: dict[str, Outcome] = {caller.key: False for caller in missing}
        claimed = self.ledger.claim(list(outcomes))
        for caller in missing:
            if caller.key in claimed:
                outcomes[caller.key] = _ask_permission(caller.permit)
        self.ledger.release([key for key in claimed if outcomes[key] is not None])
        now = int(time.time())
        asked = [caller for caller in missing if outcomes[caller.key] is None]
        self.ledger.insert(ASKS, [{"key": each.key, "backend": each.backend, "asked": now} for each in asked])
        return outcomes


def _ask_permission(permit: Callable[[], None] | None) -> ServiceError | None:
    try:
        if permit is not None:
            permit()
    except ServiceError as error:
        return error
    return None


def open_replies(folder: Path, address: str = "", run: str = "", budget: Budget | None = None) -> ReplyStore:
    """Open (or make) the reply store of a workspace.

    Args:
        folder: the workspace's folder of replies.
        address: of a PostgreSQL database; empty for SQLite in the folder.
        run: name of the run whose processes share turns and budget; empty for a process alone.
        budget: of this process, which learns what the others have spent.

    Raises:
        ConfigError: as :func:`open_ledger`, and if the workspace has replies in the other kind of store.
        CorruptInput, Unavailable: as :func:`open_ledger`.
    """
    before = read_address(folder)
    if bool(before) != bool(address) and (before or (folder / FILE).is_file()):
        raise ConfigError(
            f"the workspace's replies are in {before or folder / FILE}, and another store has none of them: all would "
            f"be paid again; set replies to that place, or remove {folder / (ADDRESS if before else FILE)} to "
            "begin a new store"
        )
    if address != before:
        write_text(folder / ADDRESS, f"{address}\n")
    ledger = open_ledger(folder, address)
    if not run:
        return ReplyStore(ledger, budget=budget)
    try_patiently(ledger.name, lambda: ledger.forget_runs(run))
    store = ReplyStore(ledger, run, budget)
    store.turns = Turns(run, store)
    return store


def set_aside(folder: Path, keys: Sequence[str]) -> int:
    """Keep recorded replies under other keys, so that their requests are sent again; return how many there were.

    Args:
        folder: the workspace's folder of replies.
        keys: of the requests; those without a reply are left out.

    Raises:
        Unavailable, CorruptInput: if the store cannot be written now, or is damaged.
    """
    now = time.time_ns()
    with closing(ReplyStore(open_ledger(folder, read_address(folder)))) as store:
        return store.submit(lambda ledger: ledger.rename(keys, f"-unusable-{now}", now)).result()


def read_address(folder: Path) -> str:
    """Return the address of a workspace's replies as it was configured; empty for SQLite in the folder."""
    path = folder / ADDRESS
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""


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
        return {str(role): int(epoch) for role, epoch in json.loads(path.read_bytes()).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptInput(f"{path}: damaged; remove it and run again") from error


def renew(folder: Path, roles: Iterable[str], address: str = "") -> dict[str, int]:
    """Begin a new epoch of each role and return all epochs; the caller has checked the roles.

    Args:
        folder: the workspace's folder of replies.
        roles: which are asked anew.
        address: of replies that other workspaces share: there the number is drawn, since theirs count from 1, too.

    Raises:
        ConfigError: if the folder cannot be written.
        CorruptInput: if the file is damaged.
        Unavailable: if the disk is full.
    """
    epochs = read_epochs(folder)
    for role in set(roles):
        epochs[role] = 1 + (secrets.randbits(48) if address else epochs.get(role, 0))
    try:
        write_text(folder / EPOCHS, json.dumps(epochs, indent=1, sort_keys=True))
    except OSError as error:
        raise explain_os_error(error, f"cache epochs in {folder}") from error
    return epochs


def name_epoch(identity: str, epoch: int) -> str:
    """Return a backend's identity in an epoch; epoch 0 is the identity itself."""
    return f"{identity}#{epoch}" if epoch else identity
