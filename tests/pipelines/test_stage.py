"""Running shards: rows are conserved, order is kept, and what exists is complete."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConservationError, RecordFailed, Unavailable
from pipelines.stage import (
    Origin,
    ShardCount,
    ShardRows,
    read_rows,
    run_record_shard,
    run_source_stage,
    seal_stage,
    write_shard,
)
from pipelines.workspace import StageFolder
from schemas.base import Record, Rejection
from schemas.manifest import ModelEntry, Usage
from schemas.seeds import Seed

ORIGIN = Origin((), "", "")


def make_seed(number: int) -> Seed:
    return Seed(
        record_id=f"seed-{number:04d}",
        parent_id=f"page:{number}",
        page_id=number,
        title=f"Page {number}",
        qid="",
        type="bridge",
        domain="Artifact",
        in_degree=number,
        sitelinks=-1,
        statements=-1,
        image="",
        split="sft",
    )


@dataclass(frozen=True)
class Sieve:
    """Keeps even pages, refuses multiples of three, fails on multiples of seven, and answers late on purpose."""

    name: str = "paths"
    version: int = 1
    input: ClassVar[type[Record]] = Seed
    output: ClassVar[type[Record]] = Seed
    broken: str = ""

    def fingerprint(self) -> str:
        return self.broken

    def prompts(self) -> dict[str, str]:
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        return ()

    async def __call__(self, record: Seed) -> Sequence[Seed] | Rejection:
        await asyncio.sleep(0.001 * (record.page_id % 5))
        if self.broken == "service":
            raise Unavailable("the model is away")
        if record.page_id % 7 == 0:
            raise RecordFailed("sevenfold", record.title)
        if record.page_id % 3 == 0:
            return Rejection(record_id=record.record_id, reason="no-walk")
        return () if self.broken == "loses" else (record,)


@dataclass(frozen=True)
class Source(Sieve):
    name: str = "seeds"
    count: int = 10

    def count_candidates(self) -> int:
        return 12

    def __call__(self):
        yield from (Rejection(record_id=f"page:{n}", reason="hub") for n in (100, 101))
        yield from (make_seed(n) for n in range(self.count))


@pytest.fixture
def folder(tmp_path: Path) -> StageFolder:
    return StageFolder(tmp_path / "stages" / "paths" / "0123456789abcdef")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    upstream = StageFolder(tmp_path / "stages" / "seeds" / "key")
    rows = ShardRows([make_seed(number) for number in range(1, 30)])
    write_shard(Source(), upstream, 0, ShardCount(29, 29, Usage(), 0.0), rows)
    return upstream.part(0)


def test_every_row_in_ends_kept_rejected_or_failed(folder: StageFolder, source: Path) -> None:
    run_record_shard(Sieve(), folder, 0, source, concurrency=4)
    sidecar = folder.read_sidecar(0)
    assert sidecar is not None
    assert (sidecar.rows_in, sidecar.kept, sidecar.rejected, sidecar.failed) == (29, 17, {"no-walk": 8}, 4)


def test_rows_keep_their_order_whoever_answers_first(folder: StageFolder, source: Path) -> None:
    run_record_shard(Sieve(), folder, 0, source, concurrency=16)
    ids = [row.record_id for row in read_rows(folder.part(0), Seed)]
    assert ids == sorted(ids)


def test_concurrency_does_not_change_a_byte(tmp_path: Path, source: Path) -> None:
    folders = [StageFolder(tmp_path / "stages" / str(width) / "same-key") for width in (1, 32)]
    for folder, width in zip(folders, (1, 32), strict=True):
        run_record_shard(Sieve(), folder, 0, source, concurrency=width)
    assert folders[0].part(0).read_bytes() == folders[1].part(0).read_bytes()


def test_rows_carry_the_stage_key(folder: StageFolder, source: Path) -> None:
    run_record_shard(Sieve(), folder, 0, source, concurrency=1)
    assert set(pq.read_table(folder.part(0))["key"].to_pylist()) == {"0123456789abcdef"}


def test_a_record_that_leads_to_nothing_stops_the_run(folder: StageFolder, source: Path) -> None:
    with pytest.raises(ConservationError, match="led to nothing"):
        run_record_shard(Sieve(broken="loses"), folder, 0, source, concurrency=1)
    assert folder.read_sidecar(0) is None


def test_a_service_away_leaves_no_sidecar(folder: StageFolder, source: Path) -> None:
    with pytest.raises(Unavailable):
        run_record_shard(Sieve(broken="service"), folder, 0, source, concurrency=8)
    assert folder.read_sidecar(0) is None


def test_invented_rows_are_refused(folder: StageFolder) -> None:
    with pytest.raises(ConservationError, match="5 rows in, 1 accounted for"):
        write_shard(Sieve(), folder, 0, ShardCount(5, 1, Usage(), 0.0), ShardRows([make_seed(1)]))


def test_a_reason_outside_the_closed_list_of_the_stage_is_refused(folder: StageFolder) -> None:
    rows = ShardRows(rejected=[Rejection(record_id="seed-1", reason="hub")])
    with pytest.raises(ConservationError, match="closed list"):
        write_shard(Sieve(), folder, 0, ShardCount(1, 0, Usage(), 0.0), rows)


def test_a_source_stage_is_cut_into_shards_that_add_up(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "stages" / "seeds" / "key")
    shards = run_source_stage(Source(), folder, shard_rows=4)
    manifest = seal_stage(Source(), folder, shards, ORIGIN)
    assert shards == 3
    assert (manifest.rows_in, manifest.kept, manifest.rejected, manifest.rows_out) == (12, 10, {"hub": 2}, 10)


def test_a_source_stage_that_forgets_a_candidate_is_caught(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "stages" / "seeds" / "key")
    with pytest.raises(ConservationError, match="12 rows in, 11 accounted for"):
        run_source_stage(Source(count=9), folder, shard_rows=100)


def test_a_stage_with_a_missing_shard_cannot_be_sealed(folder: StageFolder, source: Path) -> None:
    run_record_shard(Sieve(), folder, 0, source, concurrency=1)
    with pytest.raises(ConservationError, match="shard 1 of 2"):
        seal_stage(Sieve(), folder, 2, ORIGIN)
    assert folder.read_manifest() is None
