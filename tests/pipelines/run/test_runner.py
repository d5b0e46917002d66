"""Running shards: rows are conserved, order is kept, and what exists is complete."""

import asyncio
import errno
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import ConservationError, GateNotMet, RateLimited, RecordFailed, Unavailable
from pipelines.run.runner import Batch, RecordRunner, run_dataset_stage, run_source_stage
from pipelines.run.shards import Origin, ShardInput, ShardRows, read_parts, read_rows, seal_stage, write_shard
from pipelines.run.workspace import StageFolder
from pipelines.services.metering import count_usage
from schemas.base import Record, Rejection
from schemas.datasets import Seed
from schemas.manifest import ModelEntry, Usage
from tests.record_shards import run_record_shards

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


def test_concurrency_does_not_change_a_byte(tmp_path: Path, source: Path) -> None:
    folders = [StageFolder(tmp_path / "stages" / str(width) / "same-key") for width in (1, 32)]
    for folder, width in zip(folders, (1, 32), strict=True):
        run_record_shards(Sieve(), folder, [(0, source)], concurrency=width)
    assert folders[0].part(0).read_bytes() == folders[1].part(0).read_bytes()


def test_a_record_that_leads_to_nothing_stops_the_run(folder: StageFolder, source: Path) -> None:
    with pytest.raises(ConservationError, match="produced neither a row nor a rejection"):
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


def test_a_source_stage_that_is_made_again_keeps_what_was_spent_on_it_and_files_of_others(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "stages" / "seeds" / "key")
    run_source_stage(Source(), folder, shard_rows=2)
    folder.note_stopped(Usage(calls=3, cost=0.5))
    (folder.path / "notes.txt").write_text("mine")
    shards = run_source_stage(Source(), folder, shard_rows=100)
    assert seal_stage(Source(), folder, shards, ORIGIN).stopped == Usage(calls=3, cost=0.5)
    assert (folder.path / "notes.txt").read_text() == "mine"


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


ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Script:
    """A stage that does with a record what a script says of its page, and remembers what was under way."""

    script: dict[int, object] = field(default_factory=dict)
    begun: list[int] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    name: str = "paths"
    version: int = 1
    input: ClassVar[type[Record]] = Seed
    output: ClassVar[type[Record]] = Seed

    def fingerprint(self) -> str:
        return ""

    def prompts(self) -> dict[str, str]:
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        return ()

    async def __call__(self, record: Seed) -> Sequence[Seed] | Rejection:
        self.begun.append(record.page_id)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            told = self.script.get(record.page_id)
            if isinstance(told, asyncio.Event):
                await told.wait()
            elif isinstance(told, Exception):
                raise told
            elif callable(told):
                await told()
            else:
                await asyncio.sleep(0)
            count_usage(Usage(calls=1, tokens_out=record.page_id))
            return (record,)
        finally:
            self.under_way -= 1


def cut(pages: Sequence[int], size: int) -> list[Batch]:
    """Return the pages as batches of a size."""
    starts = range(0, len(pages), size)
    return [Batch(n, "", [make_seed(page) for page in pages[i : i + size]]) for n, i in enumerate(starts)]


async def draw(batches: Iterable[Batch]) -> AsyncIterator[Batch]:
    """Yield batches as they are asked for."""
    for batch in batches:
        yield batch


async def linger() -> None:
    """Take as long as the shards that wait take to be read."""
    await asyncio.sleep(0.02)


def run(stage, batches, concurrency, filed=None):
    """Run batches in memory; return the numbers of those that were filed, in order."""
    numbers = [] if filed is None else filed

    async def file(batch: Batch) -> None:
        numbers.append(batch.shard)

    asyncio.run(RecordRunner(stage, concurrency, draw(batches), file).run())
    return numbers


def write_sources(tmp_path: Path, shards: int, rows: int) -> list[tuple[int, Path]]:
    """Write upstream parts of consecutive pages."""
    upstream = StageFolder(tmp_path / "stages" / "seeds" / "key")
    for shard in range(shards):
        kept = ShardRows([make_seed(page) for page in range(shard * rows, (shard + 1) * rows)])
        ids = tuple(row.parent_id for row in kept.kept)
        write_shard(Source(), upstream, shard, ShardInput(ids, ids), kept)
    return [(shard, upstream.part(shard)) for shard in range(shards)]


def test_a_slow_record_holds_up_its_own_shard_alone():
    slow = asyncio.Event()

    async def release() -> None:
        slow.set()

    stage = Script({0: slow, 11: release})
    assert run(stage, cut(range(12), 3), concurrency=2) == [1, 2, 3, 0]


def test_small_shards_fill_the_concurrency_together():
    stage = Script(dict.fromkeys(range(40), linger))
    run(stage, cut(range(40), 2), concurrency=16)
    assert stage.most == 16


def test_unfinished_shards_are_bounded_so_that_memory_is():
    slow, read = asyncio.Event(), []

    def note():
        for batch in cut(range(1000), 2):
            read.append(batch.shard)
            yield batch

    async def look() -> None:
        # The very first record waits; everything else ends at once.
        stage = Script({0: slow})
        filed = []

        async def file(batch: Batch) -> None:
            filed.append(batch.shard)

        running = asyncio.create_task(RecordRunner(stage, 2, draw(note()), file).run())
        for _ in range(3000):
            await asyncio.sleep(0)
        assert len(read) - len(filed) <= 9
        slow.set()
        await running
        assert sorted(filed) == list(range(500))

    asyncio.run(look())


@given(
    sizes=st.lists(st.integers(0, 6), max_size=8),
    width=st.integers(1, 9),
    fates=st.lists(st.sampled_from(["keep", "refuse", "fail"]), max_size=40),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_cut_and_the_width_every_record_ends_once_and_in_order(sizes, width, fates):
    pages = iter(range(1000))
    batches = [Batch(n, "", [make_seed(next(pages)) for _ in range(size)]) for n, size in enumerate(sizes)]

    class Fated(Script):
        async def __call__(self, record):
            await asyncio.sleep(0)
            fate = fates[record.page_id % len(fates)] if fates else "keep"
            if fate == "fail":
                raise RecordFailed("planned")
            refused = Rejection(record_id=record.record_id, reason="no-walk")
            return refused if fate == "refuse" else (record,)

    filed: list[int] = []
    run(Fated(), batches, width, filed)
    assert sorted(filed) == list(range(len(sizes)))
    for batch in batches:
        rows, kept = batch.collect("paths")
        ended = [*kept, *(row.record_id for row in rows.rejected), *(row.record_id for row in rows.failed)]
        assert sorted(ended) == [record.record_id for record in batch.records]
        assert [row.record_id for row in rows.kept] == list(kept) == sorted(kept)


@pytest.mark.parametrize("stopper", [Unavailable("the model is away"), GateNotMet("too many were unscored")])
def test_what_stops_a_run_begins_no_record_and_keeps_shards_that_get_whole(stopper):
    slow = asyncio.Event()

    async def stop() -> None:
        asyncio.get_running_loop().call_later(0.05, slow.set)
        raise stopper

    stage, filed = Script({1: slow, 2: stop}), []
    with pytest.raises(type(stopper)):
        run(stage, cut(range(100), 2), 3, filed)
    assert filed == [0]
    assert max(stage.begun) <= 4


def test_a_defect_of_a_stage_names_the_record_and_leaves_the_others_to_end():
    slow = asyncio.Event()

    async def break_down() -> None:
        asyncio.get_running_loop().call_later(0.05, slow.set)
        raise ZeroDivisionError("a defect")

    stage, filed = Script({1: slow, 2: break_down}), []
    with pytest.raises(ZeroDivisionError) as caught:
        run(stage, cut(range(10), 2), 3, filed)
    assert caught.value.__notes__ == ["while paths processed seed-0002"]
    assert filed == [0]


def test_shards_that_cannot_be_written_raise_one_error_and_print_none(caplog):
    async def file(batch: Batch) -> None:
        await asyncio.sleep(0.01 * (1 + batch.shard))
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(RecordRunner(Script(), 8, draw(cut(range(8), 2)), file).run())
    gc.collect()
    assert [record.name for record in caplog.records] == []


def test_a_shard_counts_only_what_its_own_records_used(tmp_path):
    folder = StageFolder(tmp_path / "stages" / "paths" / "key")
    used = run_record_shards(Script(), folder, write_sources(tmp_path, 3, 4), concurrency=5)
    sidecars = [folder.read_sidecar(shard) for shard in range(3)]
    assert [sidecar.usage.tokens_out for sidecar in sidecars] == [6, 22, 38]
    assert (used.calls, used.tokens_out) == (12, 66)


def test_what_a_stopped_run_paid_for_unfinished_shards_is_kept_for_the_manifest(tmp_path):
    folder, sources = StageFolder(tmp_path / "stages" / "paths" / "key"), write_sources(tmp_path, 2, 3)
    with pytest.raises(Unavailable):
        run_record_shards(Script({5: Unavailable("the model is away")}), folder, sources, concurrency=1)
    assert folder.read_sidecar(0).usage.tokens_out == 0 + 1 + 2
    assert folder.read_stopped().tokens_out == 3 + 4
    run_record_shards(Script(), folder, sources[1:], concurrency=1)
    manifest = seal_stage(Script(), folder, 2, Origin((), "", ""))
    assert (manifest.stopped.tokens_out, manifest.usage.tokens_out) == (7, 15)


def test_an_interrupt_lets_what_is_under_way_finish(tmp_path):
    """Sent to this process, as by Ctrl-C: the first shard's last record ends, its shard is written, no other begins."""
    folder, sources = StageFolder(tmp_path / "stages" / "paths" / "key"), write_sources(tmp_path, 3, 2)
    slow = asyncio.Event()

    def strike(loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(0.3, slow.set)
        os.kill(os.getpid(), signal.SIGINT)

    async def interrupt() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, strike, loop)
        await slow.wait()

    stage = Script({0: interrupt, 1: slow})
    # A process that was started in the background inherits that interrupts are ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_record_shards(stage, folder, sources, concurrency=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(stage.begun) == [0, 1]
    assert [row.page_id for row in read_rows(folder.part(0), Seed)] == [0, 1]
    assert folder.read_sidecar(1) is None


def test_a_second_interrupt_drops_what_is_under_way(tmp_path):
    program = f"""
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(ROOT)!r})
from pipelines.run.runner import Batch, RecordRunner
from tests.pipelines.run.test_runner import Script, cut, draw
async def file(batch): raise SystemExit("nothing is whole")
async def hang():
    print("waiting", flush=True)
    await asyncio.sleep(3600)
asyncio.run(RecordRunner(Script({{0: hang}}), 1, draw(cut(range(4), 2)), file).run())
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    started = time.monotonic()
    while child.poll() is None and time.monotonic() - started < 600:
        child.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, said = child.communicate()
    assert child.returncode == -signal.SIGINT, said
    assert "nothing is whole" not in said


@dataclass(frozen=True)
class Twins:
    """Makes two seeds of each, refuses multiples of three, and may lose a seed or keep a refused one."""

    name: str = "paths"
    version: int = 1
    inputs: ClassVar[tuple[type[Record], ...]] = (Seed,)
    output: ClassVar[type[Record]] = Seed
    lost: str = ""
    kept_too: str = ""

    def fingerprint(self) -> str:
        return ""

    def prompts(self) -> dict[str, str]:
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        return ()

    def __call__(self, inputs):
        for seed in inputs[0]:
            if seed.page_id % 3 == 0:
                yield Rejection(record_id=seed.record_id, reason="no-walk", detail="")
            if (seed.page_id % 3 and seed.record_id != self.lost) or seed.record_id == self.kept_too:
                for twin in "ab":
                    changes = {"record_id": f"{seed.record_id}-{twin}", "parent_id": seed.record_id}
                    yield seed.model_copy(update=changes)


def run_twins(tmp_path, stage, shard_rows=3):
    source, folder = StageFolder(tmp_path / "seeds"), StageFolder(tmp_path / "paths")
    source.path.mkdir(parents=True)
    seeds = [make_seed(number) for number in range(10)]
    ids = tuple(seed.record_id for seed in seeds)
    write_shard(replace(stage, name="seeds"), source, 0, ShardInput(ids, ids), ShardRows(list(seeds)))
    seal_stage(replace(stage, name="seeds"), source, 1, ORIGIN)
    count = run_dataset_stage(stage, folder, [source], shard_rows)
    return folder, count, seal_stage(stage, folder, count, Origin((), "", "", len(seeds)))


def test_a_stage_over_whole_datasets_is_cut_and_counts_each_row_once(tmp_path):
    folder, count, manifest = run_twins(tmp_path, Twins())
    assert count == 4
    assert (manifest.rows_in, manifest.kept, manifest.rejected, manifest.rows_out) == (10, 6, {"no-walk": 4}, 12)
    whole, count, _ = run_twins(tmp_path / "whole", Twins(), shard_rows=100)
    assert count == 1
    assert list(read_parts(folder, Seed)) == list(read_parts(whole, Seed))


@pytest.mark.parametrize("fault", [{"lost": "seed-0004"}, {"kept_too": "seed-0009"}, {"kept_too": "seed-0000"}])
def test_a_stage_over_whole_datasets_can_neither_lose_a_row_nor_count_it_twice(tmp_path, fault):
    with pytest.raises(ConservationError):
        run_twins(tmp_path, Twins(**fault))
