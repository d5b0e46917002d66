"""One run: find the missing shards of each stage, run them, and seal the stage.

This process or its workers (:mod:`pipelines.run.workers`) run this. Only sidecars and manifests say what is done,
so a run can stop and resume anywhere, and writes the same bytes everywhere.

Records of many shards are in flight at once, on one event loop. A shard is written when its last record is done, while
records of the next shards are in flight, so neither a small shard nor a slow record leaves a service idle. A bound on
the rows of unfinished shards keeps memory flat. :mod:`pipelines.run.chains` runs several stages at once.
"""

import asyncio
import gc
import subprocess
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xxhash

from pipelines.errors import (
    ConfigError,
    ConservationError,
    GateNotMet,
    RateLimited,
    RecordFailed,
    SynthError,
    Unavailable,
    UnusableReplies,
)
from pipelines.files import TEMP_PREFIX, remove_whole
from pipelines.run.progress import Reporter
from pipelines.run.shards import (
    Origin,
    ShardInput,
    ShardRows,
    check_part,
    read_parts,
    read_rows,
    seal_stage,
    write_shard,
)
from pipelines.run.stage import AnyStage, DatasetStage, PreparedStage, RecordStage, SourceStage, Stage
from pipelines.run.workspace import StageFolder, read_model
from pipelines.services.clients.replies import set_aside
from pipelines.services.health import Health, open_health
from pipelines.services.metering import open_meter
from pipelines.services.renewal import renewing
from pipelines.services.traffic import Waiting
from schemas.base import Failure, Record, Rejection
from schemas.manifest import InputEntry, Manifest, PluginEntry, RetryNote, ShardSidecar, Usage
from schemas.reasons import STAGE_REASONS

REFUSED_ROWS = 20_000
"""Most refused rows of a source stage in memory, and in one shard."""


def run_source_stage(stage: SourceStage, folder: StageFolder, shard_rows: int) -> int:
    """Run a stage that draws from the corpus and cut its kept rows into shards; refused rows go with the first ones.

    A corpus has millions of candidates, so all rows wait on disk; each candidate takes 8 bytes of memory.

    Returns:
        How many shards were written, at least one.

    Raises:
        ConservationError: if the candidates are not each yielded once.
    """
    started = time.monotonic()
    _empty_folder(folder)
    seen = array("Q")
    with TemporaryDirectory(dir=folder.path, prefix=TEMP_PREFIX) as scratch:
        refused = WaitingRows(Path(scratch) / "refused", stage.output, REFUSED_ROWS)
        kept = WaitingRows(Path(scratch) / "kept", stage.output, shard_rows)
        with open_meter() as meter:
            for row in stage():
                (refused if isinstance(row, Rejection | Failure) else kept).add(row)
                candidate = row.record_id if isinstance(row, Rejection | Failure) else row.parent_id
                seen.append(xxhash.xxh3_64_intdigest(candidate.encode()))
        _check_candidates(stage, seen)
        seconds = time.monotonic() - started
        count = max(1, kept.finish(), refused.finish())
        for shard in range(count):
            cut = refused.read(shard)
            cut.kept.extend(kept.read(shard).kept)
            made = tuple(row.parent_id for row in cut.kept)
            ids = (*made, *(row.record_id for row in cut.rejected), *(row.record_id for row in cut.failed))
            spent = () if shard else (meter.usage, seconds)
            write_shard(stage, folder, shard, ShardInput(ids, made, "", *spent), cut)
    return count


def _check_candidates(stage: SourceStage, seen: "array[int]") -> None:
    distinct = len(np.unique(np.frombuffer(seen, dtype=np.uint64)))
    if distinct != len(seen) or len(seen) != stage.count_candidates():
        detail = f"{stage.count_candidates()} candidates in, {len(seen)} accounted for, {distinct} of them distinct"
        raise ConservationError(f"{stage.name}: {detail}")


@dataclass(slots=True)
class WaitingRows:
    """Rows of a source stage that wait on disk, in pieces of one size, until shards are written.

    The folder is made. A piece has at most ``size`` rows.
    """

    folder: Path
    model: type[Record]
    size: int
    pieces: int = 0
    held: list[Record | Rejection | Failure] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the folder."""
        self.folder.mkdir()

    def add(self, row: Record | Rejection | Failure) -> None:
        """Keep a row; those of a further round of drawing begin a piece, so that the shards before stay as they are."""
        if self.held and getattr(row, "round", 0) != getattr(self.held[-1], "round", 0):
            self._spill()
        self.held.append(row)
        if len(self.held) >= self.size:
            self._spill()

    def finish(self) -> int:
        """Return how many pieces there are."""
        if self.held:
            self._spill()
        return self.pieces

    def read(self, piece: int) -> ShardRows:
        """Return the rows of a piece, none beyond the last one."""
        rows, models = ShardRows(), {model.__name__: model for model in (self.model, Rejection, Failure)}
        if piece < self.pieces:
            with self._place(piece).open(encoding="utf-8") as source:
                for line in source:
                    name, _, body = line.partition(" ")
                    rows.add(models[name].model_validate_json(body))
        return rows

    def _spill(self) -> None:
        with self._place(self.pieces).open("w", encoding="utf-8") as out:
            for row in self.held:
                out.write(f"{type(row).__name__} {row.model_dump_json()}\n")
        self.pieces += 1
        self.held = []

    def _place(self, piece: int) -> Path:
        return self.folder / f"{piece:05}.jsonl"


def run_dataset_stage(stage: DatasetStage, folder: StageFolder, sources: Sequence[StageFolder], shard_rows: int) -> int:
    """Run a stage that sees whole datasets, and cut its kept rows into shards; refused rows go with the first ones.

    Its rows wait on disk, as those of a source stage; each row that came in takes its id of memory.

    Rows that come in are those of the first input, and of others of the same type.

    Returns:
        How many shards were written, at least one.

    Raises:
        ConservationError: if a row was made from none of them.
    """
    started = time.monotonic()
    _empty_folder(folder)
    readers = [CountingReader(source, model) for source, model in zip(sources, stage.inputs, strict=True)]
    with TemporaryDirectory(dir=folder.path, prefix=TEMP_PREFIX) as scratch:
        refused = WaitingRows(Path(scratch) / "refused", stage.output, REFUSED_ROWS)
        kept = WaitingRows(Path(scratch) / "kept", stage.output, shard_rows)
        with open_meter() as meter:
            for row in stage(readers):
                (refused if isinstance(row, Rejection | Failure) else kept).add(row)
        came = (reader.ids for reader in readers if reader.model is stage.inputs[0])
        left, gone, seconds = set(chain.from_iterable(came)), set[str](), time.monotonic() - started
        came_in, count = frozenset(left), max(1, kept.finish(), refused.finish())
        for shard in range(count):
            cut = refused.read(shard)
            cut.kept.extend(kept.read(shard).kept)
            # A row whose outputs lie in two shards is counted in the first; one that was refused, too, is one too many.
            parents = {find_parent(stage, row, came_in): None for row in cut.kept}
            made = tuple(parent for parent in parents if parent in left or parent in gone)
            refusals = [row.record_id for row in cut.rejected] + [row.record_id for row in cut.failed]
            gone.update(refusals)
            ids = (*made, *refusals)
            # What no shard accounts for is missed in the last one.
            left -= set(ids)
            lost = tuple(sorted(left)) if shard == count - 1 else ()
            spent = () if shard else (meter.usage, seconds)
            write_shard(stage, folder, shard, ShardInput((*ids, *lost), made, "", *spent), cut)
    return count


def _empty_folder(folder: StageFolder) -> None:
    """Remove the output of an interrupted run of a stage without shards, which cannot be resumed, but not its cost."""
    folder.path.mkdir(parents=True, exist_ok=True)
    for pattern in ("part-*", "rejected-*", "failed-*", f"{TEMP_PREFIX}*"):
        for path in folder.path.glob(pattern):
            remove_whole(path)


def find_parent(stage: Stage, row: Record, ids: frozenset[str]) -> str:
    """Return the input row an output row belongs to: the one whose id it keeps, or its parent."""
    for candidate in (row.record_id, row.parent_id):
        if candidate in ids:
            return candidate
    raise ConservationError(f"{stage.name}: {row.record_id} has a parent that did not come in")


@dataclass(slots=True)
class CountingReader:
    """Iterates a sealed stage's kept rows and remembers their ids."""

    folder: StageFolder
    model: type[Record]
    ids: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Record]:
        """Yield the rows in shard order; may be iterated again."""
        self.ids.clear()
        for row in read_parts(self.folder, self.model):
            self.ids.append(row.record_id)
            yield row


RATE_TRIES = 8
LONGEST_WAIT = 60.0
GRACE = 30.0
"""Seconds that requests in flight get to finish after an interrupt, so that paid replies are kept."""
OPEN_ROWS = 8
"""Most rows of unfinished shards, as a multiple of the records in flight; at least one shard is read."""

TURN = 0.005
"""Seconds for which a stage may begin records before the others have their turn on the event loop."""
COLLECTOR = (50_000, 20, 50)
"""Thresholds of Python's garbage collector while records are in flight; the default is (700, 10, 10)."""

Outcome = Sequence[Record] | Rejection | Failure


@dataclass(slots=True)
class Batch:
    """The records of a shard with their outcomes so far."""

    shard: int
    source: str
    """sha256 of the part that the records were read from."""
    records: Sequence[Record]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    """By index of the record."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    """Seconds since the previous batch was done; over all batches they add up to the time with records in flight."""
    arrived: float = 0.0
    """When its source was there, by the clock of ``time.monotonic``; 0 where nothing waited for it."""
    renewed: Mapping[str, int] = field(default_factory=dict)
    """Records that are asked again: until when (seconds of Unix) a reply is too old, by ``record_id``."""

    @property
    def done(self) -> bool:
        """Whether every record has ended."""
        return len(self.outcomes) == len(self.records)

    def collect(self, stage: str) -> tuple[ShardRows, tuple[str, ...]]:
        """Return the rows in input order, and the ids of the records that were kept.

        Raises:
            ConservationError: if a record produced nothing.
        """
        rows, kept = ShardRows(), list[str]()
        for index, record in enumerate(self.records):
            outcome = self.outcomes[index]
            if isinstance(outcome, Rejection | Failure):
                rows.add(outcome)
                continue
            if not outcome:
                raise ConservationError(f"{stage}: {record.record_id} produced neither a row nor a rejection")
            kept.append(record.record_id)
            rows.kept.extend(outcome)
        return rows, tuple(kept)


@dataclass(slots=True)
class RecordRunner:
    """Runs a record stage over batches, at most ``concurrency`` records at a time.

    If a service is away, a gate is not met or the run is interrupted, no further record is started; those in flight
    finish, so that their replies are kept, and batches that they complete are written.
    """

    stage: RecordStage
    concurrency: int
    batches: AsyncIterator[Batch]
    file: Callable[[Batch], Awaitable[None]]
    reporter: Reporter = field(default_factory=Reporter)
    _flying: set["asyncio.Task[None]"] = field(default_factory=set)
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _errors: list[BaseException] = field(default_factory=list)
    _feeding: "asyncio.Task[None] | None" = None
    _open: int = 0
    _done: int = 0
    _marked: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        """Run to the end.

        Raises:
            ServiceError, ConfigError, GateNotMet: the first error that stopped the run.
            ConservationError: if a record led to nothing.
        """
        self._feeding = feeding = asyncio.create_task(self._feed())
        try:
            while not feeding.done() or self._flying:
                await asyncio.wait({feeding, *self._flying})
            await asyncio.gather(feeding, return_exceptions=bool(self._errors))
        except asyncio.CancelledError:
            feeding.cancel()
            if self._open:
                self.reporter.note("stopping: what is under way is let finish; interrupt again to drop it")
                await asyncio.wait(self._flying, timeout=GRACE)
            for task in self._flying:
                task.cancel()
            await asyncio.gather(feeding, *self._flying, return_exceptions=True)
            raise
        if self._errors:
            raise self._errors[0]

    async def _feed(self) -> None:
        """Start the records of each batch as there is room for them."""
        slots, turned = asyncio.Semaphore(self.concurrency), time.monotonic()
        async for batch in self.batches:
            if not self._open:
                self._marked = max(self._marked, batch.arrived)
            self._open += len(batch.records)
            if batch.done:
                await self._finish(batch)
            for index in range(len(batch.records)):
                await slots.acquire()
                if time.monotonic() - turned > TURN:
                    await asyncio.sleep(0)  # let the other stages have the loop once in a while
                    turned = time.monotonic()
                task = asyncio.create_task(self._work(batch, index))
                self._flying.add(task)
                task.add_done_callback(self._flying.discard)
                task.add_done_callback(lambda _: slots.release())
            while self._open >= OPEN_ROWS * self.concurrency:
                self._room.clear()
                await self._room.wait()

    async def _work(self, batch: Batch, index: int) -> None:
        if self._errors:
            return
        try:
            outcome = await self._process(batch, batch.records[index])
            batch.outcomes[index] = outcome
            self._done += 1
            self.reporter.advance(self._done)
            if batch.done:
                await self._finish(batch)
        except Exception as error:  # noqa: BLE001 - raised by run() when what is in flight has ended
            self._errors.append(error)
            if self._feeding is not None:
                self._feeding.cancel()

    async def _finish(self, batch: Batch) -> None:
        now = time.monotonic()
        batch.seconds, self._marked = now - self._marked, now
        await self.file(batch)
        self._open -= len(batch.records)
        self._room.set()

    async def _process(self, batch: Batch, record: Record) -> Outcome:
        with open_meter() as meter, renewing(batch.renewed.get(record.record_id)):
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
        """Call the stage; wait and retry if a service rate-limits, which is no failure."""
        for attempt in range(RATE_TRIES):
            try:
                return await self.stage(record)
            except RateLimited as error:
                pause = min(error.retry_after or 2.0**attempt, LONGEST_WAIT)
                with Waiting() as waiting:
                    waiting.note(self.stage.name, f"{error}; asked again after {pause:,.0f} s")
                    await asyncio.sleep(pause)
        raise Unavailable(f"{self.stage.name}: still rate limited after {RATE_TRIES} tries at {record.record_id}")


async def write_batches(
    stage: RecordStage,
    folder: StageFolder,
    batches: AsyncIterator[Batch],
    concurrency: int,
    reporter: Reporter,
    written: Callable[[ShardSidecar], None] = lambda _: None,
) -> Usage:
    """Run batches as they are drawn and write each as a shard: three files and a sidecar.

    All shards together have at most ``concurrency`` records in flight. ``written`` gets the sidecar of each shard.

    Returns:
        What the written shards used.

    Raises:
        ServiceError, ConfigError, GateNotMet: the error that stopped the run; complete shards are written.
    """
    used, begun = list[Usage](), dict[int, Batch]()

    async def begin() -> AsyncIterator[Batch]:
        async for batch in batches:
            begun[batch.shard] = batch
            yield batch

    async def write(batch: Batch) -> None:
        rows, kept = batch.collect(stage.name)
        ids = tuple(record.record_id for record in batch.records)
        came = ShardInput(ids, kept, batch.source, batch.usage, batch.seconds)
        # In a thread: a flush to disk would block every request under way.
        sidecar = await asyncio.to_thread(write_shard, stage, folder, batch.shard, came, rows)
        folder.retried(batch.shard).unlink(missing_ok=True)
        used.append(begun.pop(batch.shard).usage)
        written(sidecar)

    try:
        await RecordRunner(stage, concurrency, begin(), write, reporter).run()
    finally:
        # Replies of unfinished shards are recorded and cost nothing when they are used again: they were paid here.
        folder.note_stopped(sum((batch.usage for batch in begun.values()), Usage()))
    return sum(used, Usage())


async def read_batch(stage: RecordStage, shard: int, source: Path, sealed: str = "", note: Path | None = None) -> Batch:
    """Read the part that a shard is made of, and get the stage ready for it.

    The part must have the sha256 ``sealed``, if one is given. The file ``note`` names records that are asked again,
    if it is there.

    Raises:
        CorruptInput: if the part has other bytes, or is damaged.
    """
    # In a thread: requests of other shards and stages are under way.
    digest, records = await asyncio.to_thread(_read_part, stage, source, sealed)
    if isinstance(stage, PreparedStage):
        stage.prepare(records)
    retry = read_model(note, RetryNote) if note is not None and note.is_file() else None
    return Batch(shard, digest, records, renewed=dict.fromkeys(retry.ids, retry.before) if retry else {})


def _read_part(stage: RecordStage, source: Path, sealed: str) -> tuple[str, list[Record]]:
    digest = check_part(source, sealed)
    return digest, list(read_rows(source, stage.input))


@contextmanager
def watching_replies(plan: "PlannedStage") -> Iterator[None]:
    """Watch what the models of a stage reply; where most is unusable, undo what the replies decided.

    Raises:
        UnusableReplies: also in place of a gate that such replies did not let pass.
    """
    with open_health(plan.name, plan.unusable) as health:
        try:
            try:
                yield
            except GateNotMet:
                health.check()
                raise
            health.check()
        except UnusableReplies:
            undo_replies(plan, health)
            raise


def undo_replies(plan: "PlannedStage", health: Health) -> None:
    """Forget a stage's shards and set its unusable replies aside, so that the next run asks them again."""
    plan.folder.reopen()
    set_aside(plan.folder.replies, health.list_unusable())


@contextmanager
def resting_collector() -> Iterator[None]:
    """Run the garbage collector rarely and freeze existing objects: it takes a third of a request's time.

    Reference counts free the objects of finished records.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


STAGE_ORDER = tuple(STAGE_REASONS)


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage of a run with its key, its folder and where its rows come from."""

    stage: AnyStage
    key: str
    folder: StageFolder
    sources: tuple["PlannedStage", ...]
    config_digest: str
    gathers: tuple["PlannedStage", ...] = ()
    """Stages whose whole output each of its shards reads: all of them must be sealed before one starts."""
    in_flight: int = 1
    """Most records under way at once."""
    unusable: float = 0.5
    """Share of requests without a usable reply with which the stage stops."""
    plugins: tuple[PluginEntry, ...] = ()
    """Those that decide its rows."""
    after: str = ""
    """Of a plugin's stage: the stage of ours that it follows, and that it is run and chosen with."""

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name

    @property
    def place(self) -> str:
        """The name of ours that ``--until`` and ``--stage`` choose it by."""
        return self.after or self.name


@dataclass(frozen=True, slots=True)
class StageReport:
    """What a stage did in this run, as ``synth run --json`` prints it."""

    stage: str
    key: str
    ran: bool
    """False when it was complete before: then calls, tokens and seconds are 0."""
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int
    seconds: float
    usage: Usage
    paid: float = 0.0
    """Cost of the stage over all runs, stopped runs included."""

    @classmethod
    def from_manifest(cls, manifest: Manifest, ran: bool, seconds: float, usage: Usage) -> "StageReport":
        """Return the report of a sealed stage."""
        same = {name: getattr(manifest, name) for name in ("stage", "key", "rows_in", "kept", "rejected", "failed")}
        paid = manifest.usage.cost + manifest.stopped.cost
        return cls(**same, rows_out=manifest.rows_out, ran=ran, seconds=round(seconds, 3), usage=usage, paid=paid)

    def summarise(self) -> str:
        """Return one line for the log."""
        line = f"{self.rows_in:,} in, {self.kept:,} kept, {sum(self.rejected.values()):,} rejected, "
        line += f"{self.failed:,} failed, {self.rows_out:,} out"
        if not self.ran:
            return line + " (done before)"
        return line + f", {self.seconds:.1f} s"

    def describe_reasons(self) -> str:
        """Return the rejection reasons with counts."""
        return ", ".join(f"{reason} {count:,}" for reason, count in self.rejected.items())


def select_stages(planned: Sequence[PlannedStage], until: str, only: Sequence[str]) -> list[PlannedStage]:
    """Return the stages to run.

    Args:
        planned: all stages of the recipe in order.
        until: last stage to run, empty for all.
        only: run just these, whose inputs must be complete; empty for all.

    Raises:
        ConfigError: if there is no such stage, nothing is left to run, or an input of a named stage is not complete.
    """
    check_stage_names([until, *only] if until else list(only))
    names = [plan.place for plan in planned]
    chosen = [plan for plan in planned if not only or plan.place in only]
    if until:
        if until not in names:
            has = ", ".join(dict.fromkeys(names))
            raise ConfigError(f"--until {until}: a run by this method has no such stage; it has {has}")
        chosen = [plan for plan in chosen if names.index(plan.place) <= names.index(until)]
    if not chosen:
        raise ConfigError(f"--until {until} comes before --stage {', '.join(only)}: nothing is left to run")
    running = {plan.name for plan in chosen}
    for plan in chosen:
        for source in (*plan.sources, *plan.gathers):
            if source.name not in running and source.folder.read_manifest() is None:
                raise ConfigError(
                    f"--stage {plan.name}: {source.name} is not complete under this configuration; "
                    f"run `synth run --until {source.place}` first"
                )
    return chosen


def find_last(until: str, only: Sequence[str]) -> str:
    """Return the last stage that is wanted; empty for all.

    Raises:
        ConfigError: if there is no such stage.
    """
    check_stage_names([until, *only] if until else only)
    return until or max(only, key=STAGE_ORDER.index, default="")


def check_stage_names(names: Sequence[str]) -> None:
    """Check stage names.

    Raises:
        ConfigError: naming the stages there are.
    """
    for name in names:
        if name not in STAGE_ORDER:
            raise ConfigError(f"stage {name!r} does not exist; there are: {', '.join(STAGE_ORDER)}")


def list_pending_shards(plan: PlannedStage) -> list[int]:
    """Return the shards of a record stage that are not done for the current input."""
    return [source.shard for source in read_source(plan).shards if find_shard(plan, source) is None]


def find_shard(plan: PlannedStage, source: ShardSidecar) -> ShardSidecar | None:
    """Return the sidecar of the shard that was made of a shard of the input, or None."""
    sidecar = plan.folder.read_sidecar(source.shard)
    return sidecar if sidecar is not None and sidecar.source == source.files[0].sha256 else None


def is_current(plan: PlannedStage, sealed: Manifest) -> bool:
    """Say whether a sealed stage was made from its inputs as they are now: a shard made again may have other bytes."""
    digests = {entry.name: entry.digest for entry in sealed.inputs}
    manifests = {source.name: source.folder.read_manifest() for source in plan.sources}
    return all(now is None or digests.get(name) == now.digest for name, now in manifests.items())


def read_source(plan: PlannedStage) -> Manifest:
    """Return the manifest of a stage's first input.

    Raises:
        ConfigError: if the input is not sealed.
    """
    manifest = plan.sources[0].folder.read_manifest()
    if manifest is None:
        raise ConfigError(f"{plan.name}: its input {plan.sources[0].name} is not complete")
    return manifest


def run_planned_whole(plan: PlannedStage, shard_rows: int) -> int:
    """Run a stage that is not cut into shards beforehand; return how many shards it wrote."""
    if isinstance(plan.stage, SourceStage):
        return run_source_stage(plan.stage, plan.folder, shard_rows)
    assert isinstance(plan.stage, DatasetStage)
    return run_dataset_stage(plan.stage, plan.folder, [source.folder for source in plan.sources], shard_rows)


def seal_planned(plan: PlannedStage, shards: int, corpus: InputEntry) -> Manifest:
    """Seal a stage whose shards are all done."""
    inputs = [corpus]
    for source in plan.sources:
        manifest = source.folder.read_manifest()
        if manifest is None:
            raise ConfigError(f"{plan.name}: its input {source.name} is not complete")
        inputs.append(InputEntry(name=source.name, key=source.key, digest=manifest.digest))
    origin = Origin(tuple(inputs), plan.config_digest, read_git_commit(), _count_rows_in(plan), plan.plugins)
    return seal_stage(plan.stage, plan.folder, shards, origin)


def _count_rows_in(plan: PlannedStage) -> int:
    """Return how many rows come into a stage from others; -1 where none do."""
    if not isinstance(plan.stage, DatasetStage):
        return read_source(plan).rows_out if plan.sources else -1
    models = plan.stage.inputs
    alike = (source for source, model in zip(plan.sources, models, strict=True) if model is models[0])
    return sum(manifest.rows_out for source in alike if (manifest := source.folder.read_manifest()) is not None)


@cache
def read_git_commit() -> str:
    """Return the commit of the code with ``+dirty`` for local changes; empty outside a git checkout."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
