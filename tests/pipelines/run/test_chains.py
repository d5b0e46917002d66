"""Stages that run at once write what they would write one after another, and stop and go on together."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest

from pipelines.errors import GateNotMet, Unavailable
from pipelines.run.chains import link_stages, run_stages
from pipelines.run.progress import Reporter
from pipelines.run.runner import PlannedStage, StageReport, run_source_stage
from pipelines.run.shards import Origin, seal_stage
from pipelines.run.workspace import StageFolder
from schemas.base import Record, Rejection
from schemas.datasets import Seed
from schemas.manifest import InputEntry, ModelEntry
from tests.chaos.driving import digest_files
from tests.pipelines.run.test_runner import make_seed

CORPUS = InputEntry(name="corpus", key="corpus", digest="0" * 64)
SHARD_ROWS = 4
ROWS = 48
NAMES = ("paths", "questions", "rewrites")
REASONS = {"paths": "no-walk", "questions": "answer-untyped", "rewrites": "stands-alone"}
PATIENCE = 60.0
"""Seconds until a test gives up on what never comes."""


@dataclass
class Step:
    """A stage that refuses the pages of one remainder, and does before what a script says of a page."""

    name: str
    script: dict[int, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    begun: list[int] = field(default_factory=list)
    version: int = 1
    refused: int | None = None
    """Remainder of the pages that are refused; None for the stage's own."""
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
        await self.script.get(record.page_id, pause)()
        if record.page_id % 5 == (NAMES.index(self.name) if self.refused is None else self.refused):
            return Rejection(record_id=record.record_id, reason=REASONS[self.name])
        return (record,)


@dataclass
class Pages(Step):
    """The stage that the pages come from."""

    def count_candidates(self) -> int:
        return ROWS

    def __call__(self):
        yield from map(make_seed, range(ROWS))


async def pause() -> None:
    """Take a moment."""
    await asyncio.sleep(0.001)


async def fail() -> None:
    """Find that a service is away."""
    raise Unavailable("the model is away")


def wait_for(event: asyncio.Event) -> Callable[[], Awaitable[None]]:
    """Return what waits for an event of this very run."""
    return lambda: asyncio.wait_for(event.wait(), PATIENCE)


def tell(event: asyncio.Event) -> Callable[[], Awaitable[None]]:
    """Return what sets an event."""

    async def set_it() -> None:
        event.set()

    return set_it


def plan(root: Path, *scripts: dict[int, Callable[[], Awaitable[None]]], waits: str = "") -> list[PlannedStage]:
    """Return the pages, sealed, and a stage after them for each script."""
    folder = StageFolder(root / "stages" / "seeds" / "key")
    source = Pages("seeds")
    if folder.read_manifest() is None:
        seal_stage(source, folder, run_source_stage(source, folder, SHARD_ROWS), Origin((), "", ""))
    planned = [PlannedStage(source, "key", folder, (), "")]
    for name, script in zip(NAMES, scripts, strict=False):
        place = StageFolder(root / "stages" / name / "key")
        gathers = (planned[-1],) if name == waits else ()
        planned.append(PlannedStage(Step(name, script), "key", place, (planned[-1],), "", gathers, in_flight=4))
    return planned


def run(planned: Sequence[PlannedStage], end: Callable[[StageReport], None] = lambda _: None) -> list[StageReport]:
    """Run all stages."""
    return run_stages(planned, CORPUS, SHARD_ROWS, Reporter(), end)


def list_written(plan: PlannedStage) -> list[int]:
    """Return the shards of a stage that are done."""
    return [shard for shard in range(ROWS // SHARD_ROWS) if plan.folder.read_sidecar(shard) is not None]


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of three stages that ran one after another."""
    calm = tmp_path_factory.mktemp("calm")
    planned = plan(calm, {}, {}, {})
    for number in range(1, len(planned)):
        run(planned[number : number + 1])
    return digest_files(calm, "stages/**/*.parquet")


def test_a_shard_begins_when_the_shard_it_is_made_of_is_sealed(tmp_path):
    there = asyncio.Event()
    planned = plan(tmp_path, {ROWS - 1: wait_for(there)}, {}, {1: wait_for(there), 3: tell(there)})
    reports = run(planned)
    assert [report.stage for report in reports] == ["seeds", *NAMES]
    assert [report.ran for report in reports] == [False, True, True, True]


def test_stages_at_once_write_the_bytes_of_one_after_another(tmp_path, one_by_one):
    late = asyncio.Event()
    planned = plan(tmp_path / "at-once", {1: wait_for(late)}, {7: pause}, {ROWS - 1: tell(late)})
    run(planned)
    assert len(one_by_one) == 4 * 3 * ROWS // SHARD_ROWS
    assert digest_files(tmp_path / "at-once", "stages/**/*.parquet") == one_by_one


def test_manifests_are_written_in_order_each_after_its_inputs(tmp_path):
    planned, seen = plan(tmp_path, {}, {}, {}), []
    run(planned, lambda report: seen.append([each.folder.read_manifest() is not None for each in planned]))
    assert seen == [[True] + [True] * n + [False] * (3 - n) for n in range(4)]
    manifests = [each.folder.read_manifest() for each in planned]
    for before, after in pairwise(manifests):
        assert after.inputs[1].digest == before.digest
        assert after.rows_in == before.rows_out


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_service_away_in_one_stage_stops_all_and_a_later_run_goes_on_with_their_shards(tmp_path, one_by_one, where):
    scripts: list[dict[int, Callable[[], Awaitable[None]]]] = [{}, {}, {}]
    scripts[where] = {13: fail}
    planned = plan(tmp_path / "at-once", *scripts)
    with pytest.raises(Unavailable, match="the model is away"):
        run(planned)
    assert [each.folder.read_manifest() is not None for each in planned[where + 1 :]] == [False] * (3 - where)
    kept = [list_written(each) for each in planned[1:]]
    assert kept[0]
    again = plan(tmp_path / "at-once", {}, {}, {})
    run(again)
    for each, shards in zip(again[1:], kept, strict=True):
        pages = {page for shard in shards for page in range(4 * shard, 4 * shard + 4)}
        assert not pages & set(each.stage.begun)
    assert digest_files(tmp_path / "at-once", "stages/**/*.parquet") == one_by_one


def test_what_is_under_way_in_the_other_stages_is_let_finish(tmp_path):
    slow, under_way = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        under_way.set()
        await asyncio.wait_for(slow.wait(), PATIENCE)

    async def stop() -> None:
        await asyncio.wait_for(under_way.wait(), PATIENCE)
        asyncio.get_running_loop().call_later(0.2, slow.set)
        await fail()

    planned = plan(tmp_path, {ROWS - 1: stop}, {1: work})
    with pytest.raises(Unavailable):
        run(planned)
    assert 0 in list_written(planned[2])


def test_a_gate_after_one_stage_stops_those_that_follow(tmp_path):
    never = asyncio.Event()

    def end(report: StageReport) -> None:
        if report.stage == "paths":
            asyncio.get_running_loop().call_later(0.05, never.set)
            raise GateNotMet("paths: all rows failed")

    planned = plan(tmp_path, {}, {3: wait_for(never)})
    with pytest.raises(GateNotMet, match="all rows failed"):
        run(planned, end)
    assert [each.folder.read_manifest() is not None for each in planned] == [True, True, False]


def test_a_stage_that_waits_begins_when_its_whole_input_is_sealed(tmp_path):
    planned = plan(tmp_path, {}, {}, {}, waits="questions")
    assert [[each.name for each in chain] for chain in link_stages(planned)] == [
        ["seeds"], ["paths"], ["questions", "rewrites"]
    ]  # fmt: skip
    sealed = []

    async def look() -> None:
        sealed.append(planned[1].folder.read_manifest() is not None)

    planned[2].stage.script.update(dict.fromkeys(range(ROWS), look))
    run(planned)
    assert sealed
    assert all(sealed)


def test_a_stage_rests_while_the_one_after_it_has_enough_to_do(tmp_path):
    enough, seen = asyncio.Event(), []

    async def look() -> None:
        # Far longer than the stage before takes for all its rows.
        await asyncio.sleep(0.5)
        seen.append(len(planned[1].stage.begun))
        enough.set()

    planned = plan(tmp_path, {}, {1: look, 2: wait_for(enough), 3: wait_for(enough), 4: wait_for(enough)})
    run(planned)
    assert seen[0] <= ROWS - 8
    assert len(planned[1].stage.begun) == ROWS


def test_stages_that_are_named_alone_go_on_from_sealed_ones(tmp_path, one_by_one):
    planned = plan(tmp_path / "at-once", {}, {}, {})
    run(planned[:2])
    reports = run(planned)
    assert [report.ran for report in reports] == [False, False, True, True]
    assert planned[1].stage.begun.count(1) == 1
    assert digest_files(tmp_path / "at-once", "stages/**/*.parquet") == one_by_one


def test_an_interrupt_lets_every_stage_finish_what_is_under_way(tmp_path, one_by_one):
    slow, there = asyncio.Event(), asyncio.Event()

    def strike(loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(0.3, slow.set)
        os.kill(os.getpid(), signal.SIGINT)

    async def interrupt() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, strike, loop)
        there.set()
        await asyncio.wait_for(slow.wait(), PATIENCE)

    planned = plan(tmp_path / "at-once", {ROWS - 1: wait_for(there), ROWS - 2: wait_for(slow)}, {1: interrupt})
    # A process that was started in the background inherits that interrupts are ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(planned)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0 in list_written(planned[2])
    assert planned[2].folder.read_manifest() is None
    run(plan(tmp_path / "at-once", {}, {}, {}))
    assert digest_files(tmp_path / "at-once", "stages/**/*.parquet") == one_by_one
