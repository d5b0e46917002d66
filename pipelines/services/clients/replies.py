"""The reply store: every reply under the hash of the exact request, shared by all processes of a run.

The store is a database: one SQLite file for the processes of one host (:mod:`.sqlite`), or PostgreSQL for several hosts
(:mod:`.postgres`). A recorded reply survives kill -9 and a power cut. The store notes an ask before a request is sent,
and a failure when the request ends with an error. So ``asks`` minus ``replies`` minus ``failures`` is the number of
requests in flight at a crash, and a reply that was paid twice shows in the count.

Group commit: one thread writes, and all rows that wait go into one transaction. While it commits, the next rows gather,
so 256 requests in flight cost hardly more than one. A caller continues after COMMIT, or gets the error.

Claims: whoever is to send a request claims its key first. Another process that wants the same key waits for the reply
in place of paying, too. A claim ends with its process, however that ends.

Checksums: a reply carries a checksum of its key, its backend and its text, which every reader checks: a byte that a
disk changed is a message, never a reply. ``synth replies repair`` saves the rest (``ledger.py``).

Cache epochs: ``--fresh-replies ROLE`` asks a role again and forgets nothing. ``replies/fresh.json`` maps roles to
epochs. An epoch above 0 is part of the identity of the role's backend, so the keys of replies and of stages change
together; older replies stay where they are.
"""

import asyncio
import json
import secrets
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import ClassVar, TypeVar
from uuid import uuid4

import xxhash

from pipelines.errors import ConfigError, CorruptInput, ServiceError, SynthError, Unavailable
from pipelines.files import explain_os_error, write_text
from pipelines.services.clients.turns import RunTables, Turns
from pipelines.services.metering import Budget
from pipelines.services.traffic import Waiting

T = TypeVar("T")
MOST_CALLERS = 512
"""Callers whose rows go into one transaction at most; the others wait for the next."""
PATIENCE = 120.0
"""Seconds that other processes may hold the database, or that it may be away, before the callers get an error."""
RETRY = 0.05
"""Seconds between two tries of a transaction."""
FIRST_LOOK, LAST_LOOK, SLOWER = 0.01, 5.0, 1.3
"""Seconds between the first and the last looks at a request that another process sends, and how much they grow."""

REPAIR = "say `synth replies repair`: it saves the rows that are whole and sets the others aside"
"""What a message of a damaged store advises; with --workspace where that is not the default."""

Row = tuple[str | int, ...]


class Table(Enum):
    """A table that is appended to: its name with the columns of a row, and what happens to a second row of a key."""

    ASKS = ("asks (key, backend, asked)", "")
    REPLIES = ("replies (key, backend, recorded, bytes, reply, checksum)", "ON CONFLICT (key) DO NOTHING")
    FAILURES = ("failures (key, backend, failed, error)", "")


class StoreBusy(Unavailable):
    """The database is held by others, or away for the moment: the same transaction is tried again."""


class Ledger(RunTables):
    """A database of replies, as one thread uses it: SQLite or PostgreSQL."""

    __slots__ = ()
    name: str
    """The store's name in messages."""
    errors: ClassVar[type[Exception]]
    """The database's own errors."""

    @abstractmethod
    def find(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the replies there are, by key; CorruptInput where one is not as it was written."""

    @abstractmethod
    def transaction(self, paid: bool) -> AbstractContextManager[None]:
        """Commit the block or none of it; what is ``paid`` for survives a power cut, else kill -9."""

    @abstractmethod
    def claim(self, keys: Sequence[str]) -> set[str]:
        """Claim requests; return those that no other process sends now, also the ones that were claimed here before."""

    @abstractmethod
    def release(self, keys: Iterable[str]) -> None:
        """End claims; unknown ones are left out."""

    @abstractmethod
    def insert(self, table: Table, rows: Sequence[Row]) -> bool:
        """Insert rows; return whether all are new."""

    def count(self) -> tuple[int, int]:
        """Return how many requests were sent and how many replies are recorded."""
        ((asks, replies),) = self.select("SELECT (SELECT count(*) FROM asks), (SELECT count(*) FROM replies)", {})
        return int(asks), int(replies)

    @abstractmethod
    def explain(self, error: Exception) -> SynthError:
        """Return what one of the database's errors stands for; :class:`StoreBusy` if the same may succeed soon."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; all claims end."""


def try_patiently(ledger: Ledger, call: Callable[[], T], patience: float) -> T:
    """Return what a call of a ledger returns, tried again while others hold the database or it is away.

    Raises:
        Unavailable: if the disk is full, or the database is held or away for too long.
        CorruptInput: if it is damaged.
    """
    deadline = time.monotonic() + patience
    with Waiting() as waiting:
        while True:
            try:
                return call()
            except ledger.errors as error:
                explained = ledger.explain(error)
                if not isinstance(explained, StoreBusy) or time.monotonic() > deadline:
                    raise explained from error
                waiting.note("the store of replies", explained, deadline - time.monotonic())
            time.sleep(RETRY)


Outcome = bool | str | ServiceError | None
"""Of rows: whether they were new. Of a look-up: the reply; None if there is no reply and the caller sends the request;
False where another process sends it; or why it may not be sent."""


@dataclass(slots=True)
class Entry:
    """Rows of one caller for one table; ``waiter`` is None where no caller waits for them."""

    table: Table
    rows: Sequence[Row]
    waiter: asyncio.Future[Outcome] | None
    wanted: str = ""
    """Key of the reply that is looked up; the rows are written only if the request is to be sent."""
    ends: str = ""
    """Key of the request that has ended: its claim ends with the transaction."""
    permit: Callable[[], None] | None = None
    """Called before a request is to be sent; the ServiceError that it raises is the outcome."""


@dataclass(slots=True)
class GroupWriter:
    """The one writer of a store in this process. No other code uses its ledger.

    All fields belong to the thread of the event loop; the writing thread sees the ledger and one batch at a time.
    A process may run several loops, one after the other.
    """

    ledger: Ledger
    run: str = ""
    """The run whose processes share a budget; empty for this process alone."""
    budget: Budget | None = None
    """What the other processes have spent is noted in it with every transaction."""
    patience: float = PATIENCE
    _process: str = field(default_factory=lambda: uuid4().hex)
    _waiting: list[Entry] = field(default_factory=list)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "reply-writer"))
    _loop: asyncio.AbstractEventLoop | None = None
    _writing: bool = False
    _closed: bool = False

    async def write(self, table: Table, rows: Sequence[Row], ends: str = "") -> bool:
        """Write rows and return once they are durable; a caller that is cancelled meanwhile leaves after that, too.

        Args:
            table: of the rows.
            rows: all or none are written.
            ends: key of the request that has ended with them.

        Returns:
            Whether all rows of the transaction were new; False means that some key had a row already, which stays.

        Raises:
            Unavailable: if the disk is full, or the database is held or away for too long.
            CorruptInput: if it is damaged.
        """
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._add(Entry(table, rows, waiter, ends=ends))
        try:
            return bool(await asyncio.shield(waiter))
        except asyncio.CancelledError:
            # The rows are on their way: the next look-up must find them.
            await asyncio.gather(waiter, return_exceptions=True)
            raise

    def look_up(self, key: str, asks: Sequence[Row], permit: Callable[[], None] | None) -> asyncio.Future[Outcome]:
        """Find the reply of a key. Where there is none and no other process sends the request, it is claimed.

        The result is None then, and the asks are durable. The future fails with the errors of :meth:`write`.
        """
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._add(Entry(Table.ASKS, asks, waiter, key, permit=permit))
        return waiter

    def post(self, table: Table, rows: Sequence[Row], ends: str = "") -> None:
        """Write rows soon, without waiting; rows that cannot be written are dropped."""
        self._add(Entry(table, rows, None, ends=ends))

    def submit(self, call: Callable[[], T]) -> "Future[T]":
        """Have something else done in the thread, in a transaction of its own, tried again while the store is busy."""
        if self._closed:
            raise Unavailable(f"{self.ledger.name}: it is closed")

        def run() -> T:
            with self.ledger.transaction(paid=False):
                return call()

        return self._thread.submit(try_patiently, self.ledger, run, self.patience)

    def close(self) -> None:
        """Write what waits, end the thread and close the ledger; a second call does nothing."""
        self._closed = True
        if self._waiting:
            self._submit(self._waiting)
            self._waiting = []
        self._thread.shutdown()
        self.ledger.close()

    def _add(self, entry: Entry) -> None:
        if self._closed:
            raise Unavailable(f"{self.ledger.name}: it is closed")
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

        self._thread.submit(self._serve, batch).add_done_callback(wake)

    def _finish(self, batch: Sequence[Entry], done: "Future[list[Outcome]]", loop: asyncio.AbstractEventLoop) -> None:
        error = done.exception()
        for index, entry in enumerate(batch):
            if entry.waiter is None or entry.waiter.done():
                continue
            outcome = error or done.result()[index]
            if isinstance(outcome, BaseException):
                entry.waiter.set_exception(outcome)
            else:
                entry.waiter.set_result(outcome)
        if loop is self._loop:
            self._begin()

    def _serve(self, batch: Sequence[Entry]) -> list[Outcome]:
        """Commit a batch, tried again while the database is busy."""
        try:
            return try_patiently(self.ledger, lambda: self._commit(batch), self.patience)
        except SynthError:
            # The requests have ended, or were never sent, although that could not be written.
            with suppress(self.ledger.errors):
                self.ledger.release([entry.ends or entry.wanted for entry in batch])
            raise

    def _commit(self, batch: Sequence[Entry]) -> list[Outcome]:
        """Serve a batch, its rows in one transaction; return the outcome of each caller."""
        ledger = self.ledger
        # Outside a transaction, so no other process's writing is waited for.
        outcomes: dict[str, Outcome] = {**ledger.find([entry.wanted for entry in batch if entry.wanted])}
        rest, new = [entry for entry in batch if entry.wanted not in outcomes], True
        ended = [entry.ends for entry in batch if entry.ends]
        if any(entry.rows or entry.wanted for entry in rest):
            with ledger.transaction(any(entry.table is Table.REPLIES for entry in rest)):
                if self.run and self.budget is not None and self.budget.is_limited:
                    self.budget.elsewhere = ledger.share(self.run, self._process, self.budget.spent)
                outcomes |= self._choose(rest)
                rows = [entry for entry in rest if not entry.wanted or outcomes[entry.wanted] is None]
                new = all([ledger.insert(table, _gather(rows, table)) for table in Table])
                ledger.release(ended)
        elif ended:
            ledger.release(ended)
        return [outcomes[entry.wanted] if entry.wanted else new for entry in batch]

    def _choose(self, batch: Sequence[Entry]) -> dict[str, Outcome]:
        """Claim the requests that are looked up, and return the outcome of each."""
        wanted = [entry.wanted for entry in batch if entry.wanted]
        if not wanted:
            return {}
        claimed = self.ledger.claim(wanted)
        # Another process may have recorded a reply and ended its claim since the first look.
        found = self.ledger.find(list(claimed))
        outcomes: dict[str, Outcome] = {key: None if key in claimed else False for key in wanted}
        outcomes.update(found)
        for entry in batch:
            if entry.permit is not None and outcomes[entry.wanted] is None:
                outcomes[entry.wanted] = _ask_permission(entry.permit)
        if idle := [key for key in claimed if outcomes[key] is not None]:
            self.ledger.release(idle)
        return outcomes


def _ask_permission(permit: Callable[[], None]) -> ServiceError | None:
    try:
        permit()
    except ServiceError as error:
        return error
    return None


def _gather(batch: Iterable[Entry], table: Table) -> list[Row]:
    return [row for entry in batch if entry.table is table for row in entry.rows]


CheckedRow = tuple[bytes | None, bytes | None, bytes | None, int]
"""Key, backend and reply as they lie in the file, and the checksum of the three."""


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


UNSENT = "unsent"
"""In place of an error: the caller was cancelled after its ask was noted and before the request was sent."""


@dataclass(slots=True)
class ReplyStore:
    """Replies of one workspace. Open one a process with :func:`open_replies`."""

    reader: Ledger
    writer: GroupWriter
    turns: Turns | None = None
    """The turns at services that the processes of a run share; None outside a run."""
    flights: dict[str, asyncio.Future[str | None]] = field(default_factory=dict)
    """Requests under way by key; the same request meanwhile waits for that reply, None if its caller was cancelled."""

    def read(self, key: str) -> str | None:
        """Return the recorded reply, or None.

        Raises:
            Unavailable: if the store cannot be read now.
            CorruptInput: if it is damaged.
        """
        return self._read(lambda: self.reader.find([key]).get(key))

    async def note_asks(self, keys: Sequence[str], backend: str) -> None:
        """Note one request that answers several keys, before it is sent."""
        now = int(time.time())
        await self.writer.write(Table.ASKS, [(key, backend, now) for key in keys])

    async def record(self, replies: Mapping[str, str], backend: str) -> None:
        """Record replies by key, all or none; the first reply of a key stays."""
        await self.writer.write(Table.REPLIES, [_make_row(key, backend, reply) for key, reply in replies.items()])

    def note_failure(self, keys: Sequence[str], backend: str, error: str, ends: str = "") -> None:
        """Note that a request ended with an error, so that it does not count as one that a crash cut off."""
        now = int(time.time())
        self.writer.post(Table.FAILURES, [(key, backend, now, error) for key in keys], ends)

    def count(self) -> tuple[int, int]:
        """Return how many requests were sent and how many replies are recorded."""
        return self._read(self.reader.count)

    async def recall(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None = None
    ) -> tuple[str, bool]:
        """Return the recorded reply, or ask for it and record it; the returned reply is durable.

        Args:
            key: hash of the backend's identity and the exact request.
            backend: identity, kept with the reply for pruning.
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

    async def retire(self, key: str, before: int) -> None:
        """Set the reply of a key aside if it was recorded until ``before``, in seconds of Unix: it is asked anew.

        Raises:
            Unavailable, CorruptInput: if the store cannot be written now, or is damaged.
        """
        ledger, mark = self.writer.ledger, f"-retried-{time.time_ns()}"
        # Looked up in this thread first: most keys of a record that is asked anew have no reply yet.
        if self.read(key) is not None:
            await asyncio.wrap_future(self.writer.submit(lambda: _rename(ledger, [key], mark, before)))

    def close(self) -> None:
        """Write what waits and close the database."""
        self.writer.close()
        self.reader.close()

    async def _send(
        self, key: str, backend: str, ask: Callable[[], Awaitable[str]], permit: Callable[[], None] | None
    ) -> tuple[str, bool]:
        """Look up, and else note the ask, send the request and record its reply, each durable before the next."""
        pause = FIRST_LOOK
        with Waiting() as waiting:
            while (found := await self._look_up(key, backend, permit)) is False:
                waiting.note("another process's request", "it wants the same reply")
                await asyncio.sleep(pause)
                pause = min(pause * SLOWER, LAST_LOOK)
        if isinstance(found, str):
            return found, True
        try:
            reply = await ask()
        except BaseException as error:
            # Who is cancelled may have sent the request, and then it may be paid for: that is no failure.
            failed = [key] if isinstance(error, Exception) else []
            self.note_failure(failed, backend, type(error).__name__, ends=key)
            raise
        if await self.writer.write(Table.REPLIES, [_make_row(key, backend, reply)], ends=key):
            return reply, False
        # Another process may have been first: what is returned must be what will be replayed.
        return self.read(key) or reply, False

    async def _look_up(self, key: str, backend: str, permit: Callable[[], None] | None) -> Outcome:
        looking = self.writer.look_up(key, [(key, backend, int(time.time()))], permit)
        try:
            return await asyncio.shield(looking)
        except asyncio.CancelledError:
            (outcome,) = await asyncio.gather(looking, return_exceptions=True)
            if outcome is None:
                self.note_failure([key], backend, UNSENT, ends=key)
            raise

    def _read(self, call: Callable[[], T]) -> T:
        return try_patiently(self.reader, call, self.writer.patience)


def open_replies(folder: Path, address: str = "", run: str = "", budget: Budget | None = None) -> ReplyStore:
    """Open (or make) the reply store of a workspace.

    Args:
        folder: the workspace's folder of replies.
        address: of a PostgreSQL database; empty for SQLite in the folder.
        run: name of the run whose processes share turns and budget; empty for a process alone.
        budget: of this process, which learns what the others have spent.

    Raises:
        ConfigError: if the folder's file system cannot hold it, or the address is invalid.
        CorruptInput: if the file is damaged.
        Unavailable: if the database cannot be opened or its disk is full.
    """
    note_address(folder, address)
    reader, ledger = open_ledger(folder, address, reads=True), open_ledger(folder, address)
    if run:
        try_patiently(ledger, lambda: ledger.forget_runs(run), PATIENCE)
    writer = GroupWriter(ledger, run, budget)
    return ReplyStore(reader, writer, Turns(run, writer) if run else None)


def open_ledger(folder: Path, address: str, reads: bool = False) -> Ledger:
    """Open a database of replies, for reading alone or for everything; raises as :func:`open_replies`."""
    if address:
        from pipelines.services.clients.postgres import open_postgres

        return open_postgres(address)
    from pipelines.services.clients.sqlite import open_sqlite

    return open_sqlite(folder, reads)


def set_aside(folder: Path, keys: Sequence[str]) -> int:
    """Keep recorded replies under other keys, so that their requests are sent again; return how many there were.

    Args:
        folder: the workspace's folder of replies.
        keys: of the requests; those without a reply are left out.

    Raises:
        Unavailable, CorruptInput: if the store cannot be written now, or is damaged.
    """
    mark = f"-unusable-{time.time_ns()}"

    def rename(ledger: Ledger) -> int:
        with ledger.transaction(paid=True):
            return _rename(ledger, keys, mark)

    with closing(open_ledger(folder, read_address(folder))) as ledger:
        return try_patiently(ledger, lambda: rename(ledger), PATIENCE)


def _rename(ledger: Ledger, keys: Sequence[str], mark: str, before: int | None = None) -> int:
    """Give replies other keys, inside a transaction; those recorded after ``before`` keep theirs."""
    statement = "UPDATE replies SET key = :to, checksum = :checksum WHERE key = :key RETURNING key"
    count = 0
    for key, reply in ledger.find(list(dict.fromkeys(keys))).items():
        ((backend, recorded),) = ledger.select("SELECT backend, recorded FROM replies WHERE key = :key", {"key": key})
        if before is None or recorded <= before:
            checksum = sum_row(f"{key}{mark}".encode(), backend.encode(), reply.encode())
            ledger.select(statement, {"key": key, "to": f"{key}{mark}", "checksum": checksum})
            count += 1
    return count


def _make_row(key: str, backend: str, reply: str) -> Row:
    text = reply.encode()
    return key, backend, int(time.time()), len(text), reply, sum_row(key.encode(), backend.encode(), text)


ADDRESS = "address"
"""File of a workspace's folder of replies that says where they are; none for SQLite in the folder."""


def read_address(folder: Path) -> str:
    """Return the address of a workspace's replies as it was configured; empty for SQLite in the folder."""
    path = folder / ADDRESS
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""


def note_address(folder: Path, address: str) -> None:
    """Note where the replies of a workspace are, for commands that read no configuration.

    Raises:
        ConfigError: if they are in the other kind of store until now: all would be paid again.
    """
    before = read_address(folder)
    if before and not address:
        raise ConfigError(
            f"the workspace's replies are in PostgreSQL, {before}: set replies.address to it; or remove "
            f"{folder / ADDRESS} to begin a new store, and pay for all again"
        )
    from pipelines.services.clients.sqlite import FILE

    if address and not before and (folder / FILE).is_file():
        raise ConfigError(
            f"the workspace's replies are in {folder / FILE}, and PostgreSQL has none of them: all would be paid "
            "again; leave replies.address empty, or move that file away to begin a new store"
        )
    if address != before:
        write_text(folder / ADDRESS, f"{address}\n")


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
        epochs = json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptInput(f"{path}: damaged; remove it and run again") from error
    if not isinstance(epochs, dict) or not all(_is_epoch(value) for value in epochs.values()):
        raise CorruptInput(f"{path}: damaged; it must map roles to numbers from 1; remove it and run again")
    return epochs


def renew(folder: Path, roles: Iterable[str], address: str = "") -> dict[str, int]:
    """Begin a new epoch of each role and return all epochs; the caller has checked the roles.

    Args:
        folder: the workspace's folder of replies.
        roles: which are asked anew.
        address: of replies that other workspaces share: there the number is drawn, since theirs count from 1, too.

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
        epochs[role] = 1 + (secrets.randbits(48) if address else epochs.get(role, 0))
    try:
        write_text(folder / EPOCHS, json.dumps(epochs, indent=1, sort_keys=True))
    except OSError as error:
        raise explain_os_error(error, f"cache epochs in {folder}") from error
    return epochs


def name_epoch(identity: str, epoch: int) -> str:
    """Return a backend's identity in an epoch; epoch 0 is the identity itself."""
    return f"{identity}#{epoch}" if epoch else identity


def _is_epoch(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
