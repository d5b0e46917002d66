"""Running record stages: records of many shards in flight at once, on one event loop.

A shard is written when its last record is done, while records of the next ones are under way already, so that neither
a small shard nor one slow record leaves a service idle. A bound on the rows of unfinished shards keeps memory flat.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.backends.metering import open_meter
from pipelines.errors import (
    ConfigError,
    ConservationError,
    GateNotMet,
    RateLimited,
    RecordFailed,
    ServiceError,
    SynthError,
    Unavailable,
)
from pipelines.ids import digest_file
from pipelines.progress import Reporter, SilentReporter
from pipelines.shards import ShardInput, ShardRows, read_rows, write_shard
from pipelines.stage import PreparedStage, RecordStage
from pipelines.workspace import StageFolder
from schemas.base import Failure, Record, Rejection
from schemas.manifest import Usage

RATE_TRIES = 8
LONGEST_WAIT = 60.0
GRACE = 30.0
"""Seconds that requests under way get to finish after an interrupt, so that what is paid is kept."""
OPEN_ROWS = 8
"""Rows of unfinished shards at most, as a multiple of the records in flight; one shard is always taken."""

COLLECTOR = (50_000, 20, 50)
"""Thresholds of Python's collector while records are in flight; its own are (700, 10, 10)."""

Outcome = Sequence[Record] | Rejection | Failure
_STOPPING = (ServiceError, ConfigError, GateNotMet)
"""What fails every record alike: the others need not be asked."""


@dataclass(slots=True)
class Batch:
    """Records that are filed together, and what became of them so far."""

    shard: int
    source: str
    """sha256 of the part that the records were read from."""
    records: Sequence[Record]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    """By index of the record."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    """Of the stage's time, what passed since the batch before was done: over all batches they add up."""

    @property
    def done(self) -> bool:
        """Whether every record has ended."""
        return len(self.outcomes) == len(self.records)

    def collect(self, stage: str) -> tuple[ShardRows, tuple[str, ...]]:
        """Return the rows in input order whatever finished first, and the ids of the records that were kept.

        Raises:
            ConservationError: if a record led to nothing.
        """
        rows, kept = ShardRows(), list[str]()
        for index, record in enumerate(self.records):
            outcome = self.outcomes[index]
            if isinstance(outcome, Rejection | Failure):
                rows.add(outcome)
                continue
            if not outcome:
                raise ConservationError(f"{stage}: {record.record_id} led to nothing, not even a rejection")
            kept.append(record.record_id)
            rows.kept.extend(outcome)
        return rows, tuple(kept)


@dataclass(slots=True)
class RecordRunner:
    """Runs a record stage over batches, at most ``concurrency`` records at a time.

    When a service is away, a gate is not met or the run is interrupted, no further record is begun; those in flight
    are let finish, so that their replies are kept, and batches that get whole by that are filed.
    """

    stage: RecordStage
    concurrency: int
    batches: Iterator[Batch]
    file: Callable[[Batch], Awaitable[None]]
    reporter: Reporter = field(default_factory=SilentReporter)
    _current: Batch | None = None
    _next: int = 0
    _open: int = 0
    _done: int = 0
    _exhausted: bool = False
    _stopped: BaseException | None = None
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _marked: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        """Run to the end.

        Raises:
            ServiceError, ConfigError, GateNotMet: whatever stopped the run first.
            ConservationError: if a record led to nothing.
        """
        workers = [asyncio.create_task(self._work()) for _ in range(self.concurrency)]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            failed = [error for worker in done if (error := worker.exception()) is not None]
            if failed:
                self._stop(failed[0])
                await asyncio.wait(workers)
                # A full disk fails many: of errors that nobody looks at asyncio would print every traceback.
                await asyncio.gather(*workers, return_exceptions=True)
        except asyncio.CancelledError as interrupt:
            self._stop(interrupt)
            self.reporter.note("stopping: what is under way is let finish; interrupt again to drop it")
            await self._wind_up(workers)
            raise
        if self._stopped is not None:
            raise self._stopped

    async def _wind_up(self, workers: Sequence["asyncio.Task[None]"]) -> None:
        _, late = await asyncio.wait(workers, timeout=GRACE)
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _stop(self, cause: BaseException) -> None:
        if self._stopped is None:
            self._stopped = cause
        self._room.set()

    async def _work(self) -> None:
        while (turn := await self._take()) is not None:
            batch, index = turn
            try:
                outcome = await self._process(batch, batch.records[index])
            except _STOPPING as error:
                self._stop(error)
                return
            batch.outcomes[index] = outcome
            self._done += 1
            self.reporter.advance(self._done)
            if batch.done:
                await self._finish(batch)

    async def _take(self) -> tuple[Batch, int] | None:
        """Return the next record to process, or None when there is none to begin."""
        while self._stopped is None:
            batch = self._current
            if batch is not None and self._next < len(batch.records):
                self._next += 1
                return batch, self._next - 1
            if self._exhausted:
                return None
            if self._open >= OPEN_ROWS * self.concurrency:
                self._room.clear()
                await self._room.wait()
                continue
            await self._load()
        return None

    async def _load(self) -> None:
        batch = next(self.batches, None)
        self._exhausted = batch is None
        if batch is None:
            self._room.set()
            return
        self._current, self._next = batch, 0
        self._open += len(batch.records)
        if batch.done:
            await self._finish(batch)

    async def _finish(self, batch: Batch) -> None:
        now = time.monotonic()
        batch.seconds, self._marked = now - self._marked, now
        await self.file(batch)
        self._open -= len(batch.records)
        self._room.set()

    async def _process(self, batch: Batch, record: Record) -> Outcome:
        with open_meter() as meter:
            try:
                return await self._attempt(record)
            except RecordFailed as error:
                return Failure(record_id=record.record_id, error=error.error, detail=error.detail)
            except SynthError:
                raise
            except Exception as error:
                error.add_note(f"while {self.stage.name} processed {record.record_id}")
                raise
            finally:
                batch.usage += meter.usage

    async def _attempt(self, record: Record) -> Sequence[Record] | Rejection:
        """Call the stage; a service that asks to slow down is waited for, which counts as no failure."""
        for attempt in range(RATE_TRIES):
            try:
                return await self.stage(record)
            except RateLimited as error:
                await asyncio.sleep(min(error.retry_after or 2.0**attempt, LONGEST_WAIT))
        raise Unavailable(f"{self.stage.name}: still rate limited after {RATE_TRIES} tries at {record.record_id}")


async def process_records(
    stage: RecordStage, records: Sequence[Record], concurrency: int
) -> tuple[ShardRows, tuple[str, ...]]:
    """Run a stage over records in memory; return the rows in input order and the ids of the records that were kept."""
    batch = Batch(0, "", records)

    async def keep(_: Batch) -> None:
        """Leave the rows where they are."""

    await RecordRunner(stage, concurrency, iter([batch]), keep).run()
    return batch.collect(stage.name)


def run_record_shards(
    stage: RecordStage,
    folder: StageFolder,
    sources: Sequence[tuple[int, Path]],
    concurrency: int,
    reporter: Reporter | None = None,
) -> Usage:
    """Run shards of a record stage: of each one upstream part in, three files and a sidecar out.

    Args:
        stage: the stage.
        folder: where its shards are written.
        sources: number and upstream part of each shard.
        concurrency: most records in flight, of all shards together.
        reporter: told how many records are done.

    Returns:
        What was used by the shards that were written.

    Raises:
        ServiceError, ConfigError, GateNotMet: whatever stopped the run; shards that were whole by then are written.
    """
    used: list[Usage] = []
    begun: dict[int, Batch] = {}

    def begin() -> Iterator[Batch]:
        for batch in _read_batches(stage, sources):
            begun[batch.shard] = batch
            yield batch

    async def write(batch: Batch) -> None:
        rows, kept = batch.collect(stage.name)
        ids = tuple(record.record_id for record in batch.records)
        came = ShardInput(ids, kept, batch.source, batch.usage, batch.seconds)
        # Beside the loop: flushing to disk would hold up every request under way.
        await asyncio.to_thread(write_shard, stage, folder, batch.shard, came, rows)
        used.append(begun.pop(batch.shard).usage)

    try:
        with resting_collector():
            asyncio.run(RecordRunner(stage, concurrency, begin(), write, reporter or SilentReporter()).run())
    finally:
        # Replies of unfinished shards are recorded and will cost nothing when they are used: they were paid here.
        folder.note_stopped(sum((batch.usage for batch in begun.values()), Usage()))
    return sum(used, Usage())


@contextmanager
def resting_collector() -> Iterator[None]:
    """Let Python look for cycles rarely, and not among what there was before: a third of a request's time here.

    What records leave behind goes by its counts. Only the main thread changes it: the setting is the process's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _read_batches(stage: RecordStage, sources: Sequence[tuple[int, Path]]) -> Iterator[Batch]:
    for shard, source in sources:
        digest, records = digest_file(source), list(read_rows(source, stage.input))
        if isinstance(stage, PreparedStage):
            stage.prepare(records)
        yield Batch(shard, digest, records)
