"""The stage protocol; run one shard; seal.

A stage is a frozen dataclass that decides rows and nothing else. Concurrency, files and conservation are here:
``rows_in = kept + rejected + failed`` is asserted for every shard before its sidecar exists.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.backends.metering import open_meter
from pipelines.errors import ConservationError, RecordFailed
from pipelines.files import replacing, write_text
from pipelines.ids import digest_file, digest_value
from pipelines.workspace import StageFolder
from schemas.arrow import make_table
from schemas.base import Failure, Record, Rejection, read_row
from schemas.manifest import FileEntry, InputEntry, Manifest, ModelEntry, ShardSidecar, Usage
from schemas.reasons import STAGE_REASONS

ROW_GROUP = 1000


class Stage(Protocol):
    """What every stage says of itself."""

    output: ClassVar[type[Record]]

    @property
    def name(self) -> str:
        """The stage's name: the dataset it makes."""

    @property
    def version(self) -> int:
        """Raised when the same input and parameters would give other rows."""

    def fingerprint(self) -> str:
        """Digest of everything that decides the output: parameters, prompt digests, identities of backends."""

    def prompts(self) -> dict[str, str]:
        """Prompt labels to file digests, for the manifest."""

    def models(self) -> tuple[ModelEntry, ...]:
        """Models by role, for the manifest."""


@runtime_checkable
class RecordStage(Stage, Protocol):
    """One record in, records or one rejection out; records do not know of each other."""

    input: ClassVar[type[Record]]

    async def __call__(self, record: Any) -> Sequence[Record] | Rejection:  # noqa: ANN401 - each stage narrows it
        """Process one record.

        Raises:
            RecordFailed: if this record cannot be processed; it becomes a failed row.
            ServiceError: if a backend is away; the shard stops and is resumed by the next run.
        """


@runtime_checkable
class DatasetStage(Stage, Protocol):
    """The whole dataset in, out of core; for quotas, duplicates and splits."""

    inputs: ClassVar[tuple[type[Record], ...]]

    def __call__(self, inputs: Sequence[Iterable[Any]]) -> Iterator[Record | Rejection | Failure]:
        """Process whole datasets; every row of ``inputs[0]`` must be accounted for in what is yielded."""


@runtime_checkable
class SourceStage(Stage, Protocol):
    """No dataset in: candidates come from the corpus."""

    def count_candidates(self) -> int:
        """Return how many candidates there are: the stage's ``rows_in``."""

    def __call__(self) -> Iterator[Record | Rejection | Failure]:
        """Yield each candidate exactly once, kept or refused."""


AnyStage = RecordStage | DatasetStage | SourceStage


@dataclass(slots=True)
class ShardRows:
    """What became of one shard's rows, in input order."""

    kept: list[Record] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)

    def add(self, row: Record | Rejection | Failure) -> None:
        """File one row where it belongs."""
        if isinstance(row, Rejection):
            self.rejected.append(row)
        elif isinstance(row, Failure):
            self.failed.append(row)
        else:
            self.kept.append(row)


def read_rows(path: Path, model: type[Record]) -> Iterator[Record]:
    """Yield a part's rows as records, batch by batch."""
    with pq.ParquetFile(path) as source:
        for batch in source.iter_batches(batch_size=ROW_GROUP):
            for row in batch.to_pylist():
                row.pop("key")
                yield read_row(model, row)


def read_parts(folder: StageFolder, model: type[Record]) -> Iterator[Record]:
    """Yield all kept rows of a sealed stage in shard order."""
    for path in sorted(folder.path.glob("part-*.parquet")):
        yield from read_rows(path, model)


async def process_records(stage: RecordStage, records: Sequence[Record], concurrency: int) -> tuple[ShardRows, int]:
    """Run a stage over records, at most ``concurrency`` at a time.

    Returns:
        The rows in input order whatever finished first, and how many records were kept.

    Raises:
        ServiceError: if a backend is away; the other records in flight are let finish, so that their replies are kept.
    """
    gate = asyncio.Semaphore(concurrency)

    async def process(record: Record) -> Sequence[Record] | Rejection | Failure:
        async with gate:
            try:
                return await stage(record)
            except RecordFailed as error:
                return Failure(record_id=record.record_id, error=error.error, detail=error.detail)

    outcomes = await asyncio.gather(*(process(record) for record in records), return_exceptions=True)
    rows, kept = ShardRows(), 0
    for record, outcome in zip(records, outcomes, strict=True):
        if isinstance(outcome, BaseException):
            raise outcome
        if isinstance(outcome, Rejection | Failure):
            rows.add(outcome)
            continue
        if not outcome:
            raise ConservationError(f"{stage.name}: {record.record_id} led to nothing, not even a rejection")
        kept += 1
        rows.kept.extend(outcome)
    return rows, kept


def run_record_shard(stage: RecordStage, folder: StageFolder, shard: int, source: Path, concurrency: int) -> None:
    """Run one shard of a record stage: one upstream part in, three files and a sidecar out."""
    started = time.monotonic()
    records = list(read_rows(source, stage.input))
    with open_meter() as meter:
        rows, kept = asyncio.run(process_records(stage, records, concurrency))
    write_shard(stage, folder, shard, ShardCount(len(records), kept, meter.usage, time.monotonic() - started), rows)


@dataclass(frozen=True, slots=True)
class ShardCount:
    """Row counts, usage and seconds of one shard."""

    rows_in: int
    kept: int
    usage: Usage
    seconds: float


def write_shard(stage: Stage, folder: StageFolder, shard: int, count: ShardCount, rows: ShardRows) -> None:
    """Write a shard's three files, then its sidecar.

    Raises:
        ConservationError: if rows were lost or invented, or a reason is not the stage's.
    """
    _check_conservation(stage, shard, count, rows)
    key = folder.path.name
    files = (
        _write_rows(folder.part(shard), make_table(stage.output, rows.kept, key)),
        _write_rows(folder.rejected(shard), make_table(Rejection, rows.rejected)),
        _write_rows(folder.failed(shard), make_table(Failure, rows.failed)),
    )
    sidecar = ShardSidecar(
        shard=shard,
        rows_in=count.rows_in,
        kept=count.kept,
        rejected=dict(sorted(Counter(row.reason for row in rows.rejected).items())),
        failed=len(rows.failed),
        rows_out=len(rows.kept),
        files=files,
        usage=count.usage,
        seconds=round(count.seconds, 3),
    )
    write_text(folder.sidecar(shard), sidecar.model_dump_json(indent=1) + "\n")


def _check_conservation(stage: Stage, shard: int, count: ShardCount, rows: ShardRows) -> None:
    out = count.kept + len(rows.rejected) + len(rows.failed)
    if count.rows_in != out:
        raise ConservationError(f"{stage.name} shard {shard}: {count.rows_in} rows in, {out} accounted for")
    strange = {row.reason for row in rows.rejected} - set(STAGE_REASONS[stage.name])
    if strange:
        raise ConservationError(f"{stage.name}: reasons {sorted(strange)} are not in its closed list")


def _write_rows(path: Path, table: pa.Table) -> FileEntry:
    with replacing(path) as temp:
        pq.write_table(table, temp, compression="zstd", compression_level=3, row_group_size=ROW_GROUP)
    return FileEntry(name=path.name, rows=table.num_rows, bytes=path.stat().st_size, sha256=digest_file(path))


def run_source_stage(stage: SourceStage, folder: StageFolder, shard_rows: int) -> int:
    """Run a stage that draws from the corpus and cut its kept rows into shards; refusals go with shard 0.

    Returns:
        How many shards were written, at least one.
    """
    started = time.monotonic()
    rows = ShardRows()
    with open_meter() as meter:
        for row in stage():
            rows.add(row)
    if len({row.record_id for row in rows.kept}) != len(rows.kept):
        raise ConservationError(f"{stage.name}: two kept rows share a record_id")
    seconds = time.monotonic() - started
    starts = range(0, max(len(rows.kept), 1), shard_rows)
    for shard, start in enumerate(starts):
        kept = rows.kept[start : start + shard_rows]
        cut = ShardRows(kept, rows.rejected, rows.failed) if shard == 0 else ShardRows(kept)
        rows_in = len(kept) + len(cut.rejected) + len(cut.failed)
        if shard == 0:
            rows_in = stage.count_candidates() - (len(rows.kept) - len(kept))
        usage, elapsed = (meter.usage, seconds) if shard == 0 else (Usage(), 0.0)
        write_shard(stage, folder, shard, ShardCount(rows_in, len(kept), usage, elapsed), cut)
    return len(starts)


def run_dataset_stage(stage: DatasetStage, folder: StageFolder, sources: Sequence[StageFolder]) -> int:
    """Run a stage that sees whole datasets; its output is one shard.

    Returns:
        1, the number of shards.

    Raises:
        ConservationError: if a row was made from no row of the first input.
    """
    started = time.monotonic()
    readers = [CountingReader(source, model) for source, model in zip(sources, stage.inputs, strict=True)]
    rows = ShardRows()
    with open_meter() as meter:
        for row in stage(readers):
            rows.add(row)
    parents = {find_parent(stage, row, readers[0].ids) for row in rows.kept}
    count = ShardCount(len(readers[0].ids), len(parents), meter.usage, time.monotonic() - started)
    write_shard(stage, folder, 0, count, rows)
    return 1


def find_parent(stage: Stage, row: Record, ids: set[str]) -> str:
    """Return the input row an output row belongs to: the one whose id it keeps, or its parent."""
    for candidate in (row.record_id, row.parent_id):
        if candidate in ids:
            return candidate
    raise ConservationError(f"{stage.name}: {row.record_id} was made from no row that came in")


@dataclass(slots=True)
class CountingReader:
    """Iterates a sealed stage's kept rows and remembers their ids."""

    folder: StageFolder
    model: type[Record]
    ids: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[Record]:
        """Yield the rows in shard order; may be iterated again."""
        for row in read_parts(self.folder, self.model):
            self.ids.add(row.record_id)
            yield row


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a stage's output comes from, for its manifest."""

    inputs: tuple[InputEntry, ...]
    config_digest: str
    git_commit: str


def seal_stage(stage: Stage, folder: StageFolder, shards: int, origin: Origin) -> Manifest:
    """Write the manifest over all sidecars: from now on the stage is complete.

    Raises:
        ConservationError: if a sidecar is missing.
    """
    sidecars = []
    for shard in range(shards):
        sidecar = folder.read_sidecar(shard)
        if sidecar is None:
            raise ConservationError(f"{stage.name}: shard {shard} of {shards} has no sidecar and cannot be sealed")
        sidecars.append(sidecar)
    rejected: Counter[str] = Counter()
    for sidecar in sidecars:
        rejected.update(sidecar.rejected)
    manifest = Manifest(
        stage=stage.name,
        stage_version=stage.version,
        key=folder.path.name,
        inputs=origin.inputs,
        prompts=stage.prompts(),
        models=stage.models(),
        config_digest=origin.config_digest,
        git_commit=origin.git_commit,
        rows_in=sum(sidecar.rows_in for sidecar in sidecars),
        kept=sum(sidecar.kept for sidecar in sidecars),
        rejected=dict(sorted(rejected.items())),
        failed=sum(sidecar.failed for sidecar in sidecars),
        rows_out=sum(sidecar.rows_out for sidecar in sidecars),
        usage=sum((sidecar.usage for sidecar in sidecars), Usage()),
        seconds=round(sum(sidecar.seconds for sidecar in sidecars), 3),
        shards=tuple(sidecars),
        digest=digest_value([[entry.name, entry.rows, entry.sha256] for s in sidecars for entry in s.files]),
    )
    write_text(folder.manifest, manifest.model_dump_json(indent=1) + "\n")
    return manifest
