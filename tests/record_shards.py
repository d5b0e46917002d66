"""Running shards of one stage from given parts, without a plan: what tests and benchmarks of stages need."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from pipelines.run.progress import Reporter
from pipelines.run.runner import Batch, RecordRunner, read_batch, resting_collector, write_batches
from pipelines.run.shards import ShardRows
from pipelines.run.stage import RecordStage
from pipelines.run.workspace import StageFolder
from schemas.base import Record
from schemas.manifest import Usage


def run_record_shards(
    stage: RecordStage,
    folder: StageFolder,
    sources: Sequence[tuple[int, Path]],
    concurrency: int,
    reporter: Reporter | None = None,
) -> Usage:
    """Run shards of a record stage, each from a numbered part, and return what they used."""

    async def draw() -> AsyncIterator[Batch]:
        for shard, source in sources:
            yield await read_batch(stage, shard, source)

    with resting_collector():
        return asyncio.run(write_batches(stage, folder, draw(), concurrency, reporter or Reporter()))


async def process_records(
    stage: RecordStage, records: Sequence[Record], concurrency: int
) -> tuple[ShardRows, tuple[str, ...]]:
    """Run a stage over records in memory; return the rows in input order and the ids of the records that were kept."""
    batch = Batch(0, "", records)

    async def draw() -> AsyncIterator[Batch]:
        yield batch

    async def keep(_: Batch) -> None:
        """Leave the rows where they are."""

    await RecordRunner(stage, concurrency, draw(), keep).run()
    return batch.collect(stage.name)
