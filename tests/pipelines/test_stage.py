"""Running shards: rows are conserved, order is kept, and what exists is complete."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConservationError, CorruptInput, RateLimited, RecordFailed, Unavailable
from pipelines.run.runner import run_record_shards, run_source_stage
from pipelines.run.shards import Origin, ShardInput, ShardRows, read_parts, read_rows, seal_stage, write_shard
from pipelines.run.workspace import StageFolder
from schemas.base import Record, Rejection
from schemas.datasets import Seed
from schemas.manifest import ModelEntry

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
    ids = tuple(row.parent_id for row in rows.kept)
    write_shard(Source(), upstream, 0, ShardInput(ids, ids), rows)
    return upstream.part(0)


def test_every_row_in_ends_kept_rejected_or_failed(folder: StageFolder, source: Path) -> None:
    run_record_shards(Sieve(), folder, [(0, source)], concurrency=4)
    sidecar = folder.read_sidecar(0)
    assert sidecar is not None
    assert (sidecar.rows_in, sidecar.kept, sidecar.rejected, sidecar.failed) == (29, 17, {"no-walk": 8}, 4)


def test_rows_keep_their_order_whoever_answers_first(folder: StageFolder, source: Path) -> None:
    run_record_shards(Sieve(), folder, [(0, source)], concurrency=16)
    ids = [row.record_id for row in read_rows(folder.part(0), Seed)]
    assert ids == sorted(ids)


def test_concurrency_does_not_change_a_byte(tmp_path: Path, source: Path) -> None:
    folders = [StageFolder(tmp_path / "stages" / str(width) / "same-key") for width in (1, 32)]
    for folder, width in zip(folders, (1, 32), strict=True):
        run_record_shards(Sieve(), folder, [(0, source)], concurrency=width)
    assert folders[0].part(0).read_bytes() == folders[1].part(0).read_bytes()


def test_rows_carry_the_stage_key(folder: StageFolder, source: Path) -> None:
    run_record_shards(Sieve(), folder, [(0, source)], concurrency=1)
    assert set(pq.read_table(folder.part(0))["key"].to_pylist()) == {"0123456789abcdef"}


def test_a_record_that_leads_to_nothing_stops_the_run(folder: StageFolder, source: Path) -> None:
    with pytest.raises(ConservationError, match="led to nothing"):
        run_record_shards(Sieve(broken="loses"), folder, [(0, source)], concurrency=1)
    assert folder.read_sidecar(0) is None


def test_a_service_away_leaves_no_sidecar(folder: StageFolder, source: Path) -> None:
    with pytest.raises(Unavailable):
        run_record_shards(Sieve(broken="service"), folder, [(0, source)], concurrency=8)
    assert folder.read_sidecar(0) is None


@pytest.mark.parametrize(
    ("ids", "kept", "rejected"),
    [
        (("a", "b"), ("a",), ()),
        (("a",), ("a", "b"), ()),
        (("a", "b"), (), ("a", "a")),
        (("a", "a"), ("a",), ("a",)),
        (("a",), ("a",), ("a",)),
    ],
    ids=["lost", "invented", "one twice for one lost", "came in twice", "kept and refused"],
)
def test_rows_are_conserved_one_by_one_not_in_number(folder: StageFolder, ids, kept, rejected) -> None:
    rows = ShardRows(rejected=[Rejection(record_id=name, reason="no-walk") for name in rejected])
    with pytest.raises(ConservationError, match="accounted for"):
        write_shard(Sieve(), folder, 0, ShardInput(ids, kept), rows)
    assert folder.read_sidecar(0) is None


def test_a_reason_outside_the_closed_list_of_the_stage_is_refused(folder: StageFolder) -> None:
    rows = ShardRows(rejected=[Rejection(record_id="seed-1", reason="hub")])
    with pytest.raises(ConservationError, match="closed list"):
        write_shard(Sieve(), folder, 0, ShardInput(("seed-1",), ()), rows)


def test_a_service_away_is_asked_no_further(folder: StageFolder, source: Path) -> None:
    asked: list[int] = []

    @dataclass(frozen=True)
    class Away(Sieve):
        async def __call__(self, record: Seed) -> Sequence[Seed] | Rejection:
            asked.append(record.page_id)
            await asyncio.sleep(0)
            raise Unavailable("gone")

    with pytest.raises(Unavailable):
        run_record_shards(Away(), folder, [(0, source)], concurrency=4)
    assert len(asked) <= 4


def test_a_service_that_asks_to_slow_down_costs_no_row(folder: StageFolder, source: Path) -> None:
    waits = iter([True, True])

    @dataclass(frozen=True)
    class Slow(Sieve):
        async def __call__(self, record: Seed) -> Sequence[Seed] | Rejection:
            if next(waits, False):
                raise RateLimited("slowly", retry_after=0.001)
            return (record,)

    run_record_shards(Slow(), folder, [(0, source)], concurrency=2)
    sidecar = folder.read_sidecar(0)
    assert sidecar is not None
    assert (sidecar.kept, sidecar.failed) == (29, 0)


def test_two_rows_with_one_id_cannot_be_sealed(folder: StageFolder, source: Path) -> None:
    for shard in (0, 1):
        run_record_shards(Sieve(), folder, [(shard, source)], concurrency=1)
    with pytest.raises(ConservationError, match="two rows out have the id"):
        seal_stage(Sieve(), folder, 2, ORIGIN)


def test_rows_of_the_input_that_no_shard_read_are_missed(folder: StageFolder, source: Path) -> None:
    run_record_shards(Sieve(), folder, [(0, source)], concurrency=1)
    with pytest.raises(ConservationError, match="its input has 40 rows, its shards read 29"):
        seal_stage(Sieve(), folder, 1, Origin((), "", "", rows_in=40))


def test_parts_of_another_cut_are_neither_read_nor_kept(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "stages" / "seeds" / "key")
    run_source_stage(Source(), folder, shard_rows=2)
    shards = run_source_stage(Source(), folder, shard_rows=100)
    seal_stage(Source(), folder, shards, ORIGIN)
    assert len(list(read_parts(folder, Seed))) == 10
    assert [path.name for path in sorted(folder.path.glob("part-*.parquet"))] == ["part-00000.parquet"]


def test_a_damaged_part_says_what_to_remove(folder: StageFolder, source: Path) -> None:
    source.write_bytes(source.read_bytes()[:200])
    with pytest.raises(CorruptInput, match="remove the folder"):
        list(read_rows(source, Seed))


def test_a_source_stage_is_cut_into_shards_that_add_up(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "stages" / "seeds" / "key")
    shards = run_source_stage(Source(), folder, shard_rows=4)
    manifest = seal_stage(Source(), folder, shards, ORIGIN)
    assert shards == 3
    assert (manifest.rows_in, manifest.kept, manifest.rejected, manifest.rows_out) == (12, 10, {"hub": 2}, 10)


def test_a_source_stage_that_forgets_a_candidate_is_caught(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "stages" / "seeds" / "key")
    with pytest.raises(ConservationError, match="12 candidates in, 11 accounted for"):
        run_source_stage(Source(count=9), folder, shard_rows=100)


def test_a_stage_with_a_missing_shard_cannot_be_sealed(folder: StageFolder, source: Path) -> None:
    run_record_shards(Sieve(), folder, [(0, source)], concurrency=1)
    with pytest.raises(ConservationError, match="shard 1 of 2"):
        seal_stage(Sieve(), folder, 2, ORIGIN)
    assert folder.read_manifest() is None
