"""Stages at once: a shard of a record stage begins when the shard that it is made of is sealed.

Record stages that follow one another are a chain. All stages of a chain run on one event loop, each with its own
records in flight, so that the services behind them work at the same time. Shard *i* of a stage is made of shard *i* of
the stage before and of nothing else, so the bytes are those of one stage after another. Manifests are written in the
order of the stages, each after all its shards and after its input's manifest. A stage rests while the one after it has
enough to do, which leaves the processor to stages whose services would wait for it.

A stage that sees whole datasets is on its own, and a chain ends before a stage that waits for its whole input.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from pipelines.run.progress import Reporter, timing
from pipelines.run.runner import (
    Batch,
    PlannedStage,
    StageReport,
    find_shard,
    is_current,
    read_batch,
    read_source,
    resting_collector,
    run_planned_whole,
    seal_planned,
    watching_replies,
    write_batches,
)
from pipelines.run.stage import RecordStage
from schemas.manifest import InputEntry, Manifest, ShardSidecar, Usage

ChainRunner = Callable[[Sequence[PlannedStage], InputEntry, Reporter, Callable[[StageReport], None]], None]
"""What makes the missing shards of a chain and seals its stages in order; :func:`run_chain` does it here."""


def run_stages(
    chosen: Sequence[PlannedStage],
    corpus: InputEntry,
    shard_rows: int,
    reporter: Reporter,
    end: Callable[[StageReport], None] = lambda _: None,
    run_links: "ChainRunner | None" = None,
) -> list[StageReport]:
    """Run what is missing of stages and seal them; sealed stages are skipped.

    Args:
        chosen: the stages in order.
        corpus: the first input of each.
        shard_rows: rows of a shard of a stage that draws from the corpus.
        reporter: gets the progress of all stages.
        end: gets the report of each stage that is sealed, in order; an error that it raises stops the run.
        run_links: runs the chains; None for this process.

    Returns:
        A report of each.

    Raises:
        ServiceError, ConfigError, GateNotMet: the first that stopped a stage; the others stop as after an interrupt.
    """
    reports: list[StageReport] = []

    def note(report: StageReport) -> None:
        reports.append(report)
        end(report)

    for chain in link_stages(chosen):
        sealed = chain[0].folder.read_manifest()
        if sealed is not None and not is_current(chain[0], sealed):
            reporter.note(f"{chain[0].name}: its input has other rows than it was made from; it is made again")
            chain[0].folder.unseal()
            sealed = None
        if sealed is not None:
            note(_skip(chain[0], sealed, reporter))
        elif isinstance(chain[0].stage, RecordStage):
            (run_links or run_chain)(chain, corpus, reporter, note)
        else:
            note(_run_whole(chain[0], corpus, shard_rows, reporter))
    return reports


def link_stages(chosen: Sequence[PlannedStage]) -> Iterator[list[PlannedStage]]:
    """Yield the stages in order: as a chain those that can run at once, every other one alone."""
    chain: list[PlannedStage] = []
    for plan in chosen:
        open_ = isinstance(plan.stage, RecordStage) and plan.folder.read_manifest() is None
        waits = any(link is source for link in chain for source in plan.gathers)
        if chain and not (open_ and not waits and plan.sources[0] is chain[-1]):
            yield chain
            chain = []
        chain.append(plan)
        if not open_:
            yield chain
            chain = []
    if chain:
        yield chain


def _skip(plan: PlannedStage, sealed: Manifest, reporter: Reporter) -> StageReport:
    report = StageReport.from_manifest(sealed, ran=False, seconds=0.0, usage=Usage())
    reporter.begin(plan.name)
    reporter.finish(report.summarise())
    return report


def _run_whole(plan: PlannedStage, corpus: InputEntry, shard_rows: int, reporter: Reporter) -> StageReport:
    reporter.begin(plan.name)
    with timing() as spent:
        manifest = seal_planned(plan, run_planned_whole(plan, shard_rows), corpus)
    report = StageReport.from_manifest(manifest, ran=True, seconds=spent[0], usage=manifest.usage)
    reporter.finish(report.summarise())
    return report


AHEAD = 2
"""Fewest shards that wait for a stage while the one before it rests."""


@dataclass(slots=True)
class Link:
    """A stage of a chain, with the shards that it is still to make."""

    plan: PlannedStage
    reporter: Reporter
    following: "Link | None" = None
    shards: int = 0
    """Shards of the input that came so far."""
    rows: int = 0
    """Rows of the shards to make."""
    began: float = 0.0
    """When the first of these came."""
    sealed: asyncio.Event = field(default_factory=asyncio.Event)
    _drawn: asyncio.Event = field(default_factory=asyncio.Event)
    _rows_waiting: int = 0
    _waiting: asyncio.Queue[tuple[ShardSidecar, float] | None] = field(default_factory=asyncio.Queue)

    def take(self, source: ShardSidecar) -> None:
        """Take a sealed shard of the input: it waits for its turn, or its own shard is done and goes on at once."""
        self.shards += 1
        done = find_shard(self.plan, source)
        if done is not None:
            self.pass_on(done)
            return
        now = time.monotonic()
        self.rows, self.began = self.rows + source.rows_out, self.began or now
        self._rows_waiting += source.rows_out
        self._waiting.put_nowait((source, now))

    def pass_on(self, done: ShardSidecar) -> None:
        """Give a shard that is done to the stage that follows."""
        if self.following is not None:
            self.following.take(done)

    def take_all(self, shards: Sequence[ShardSidecar]) -> None:
        """Take all shards of an input that there will be."""
        for shard in shards:
            self.take(shard)
        self.close()

    def close(self) -> None:
        """Say that the input is complete."""
        self._waiting.put_nowait(None)

    async def rest(self) -> None:
        """Return when fewer shards wait than would keep this stage busy."""
        while self._waiting.qsize() >= AHEAD and self._rows_waiting >= self.plan.in_flight:
            self._drawn.clear()
            await self._drawn.wait()

    async def draw(self) -> AsyncIterator[Batch]:
        """Yield the records of each shard that is still to be made, as its input comes."""
        stage, folder = cast(RecordStage, self.plan.stage), self.plan.sources[0].folder
        while (turn := await self._waiting.get()) is not None:
            source, arrived = turn
            if self.following is not None:
                await self.following.rest()
            self._rows_waiting -= source.rows_out
            self._drawn.set()
            part, note = folder.part(source.shard), self.plan.folder.retried(source.shard)
            batch = await read_batch(stage, source.shard, part, source.files[0].sha256, note)
            batch.arrived = arrived
            yield batch


def link_up(chain: Sequence[PlannedStage], reporter: Reporter) -> list[Link]:
    """Return the stages of a chain as links, each tied to the one that follows."""
    links = [Link(plan, reporter.fork()) for plan in chain]
    for link, following in pairwise(links):
        link.following = following
    return links


def run_chain(
    chain: Sequence[PlannedStage],
    corpus: InputEntry,
    reporter: Reporter,
    end: Callable[[StageReport], None],
) -> None:
    """Make the missing shards of a chain on one event loop of this process, and seal its stages in order.

    The input of the first stage is sealed. ``end`` gets the report of each stage that is sealed.

    Raises:
        ServiceError, ConfigError, GateNotMet: the first that stopped a stage; the others stop as after an interrupt.
    """
    links = link_up(chain, reporter)

    async def run() -> None:
        links[0].take_all(read_source(chain[0]).shards)
        turns = zip([None, *links], links, strict=False)
        await run_together([_run_link(link, before, corpus, end) for before, link in turns])

    with resting_collector():
        asyncio.run(run())


async def run_together(parts: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for all parts at once; the first error cancels the others and is raised when they have ended."""
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)
    except BaseExceptionGroup as several:
        first: BaseException = several
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from first.__cause__


async def make_shards(link: Link) -> Usage:
    """Make a link's shards as they come, and tell the one that follows when that was all; return what they used."""
    plan = link.plan
    stage = cast(RecordStage, plan.stage)
    usage = await write_batches(stage, plan.folder, link.draw(), plan.in_flight, link.reporter, link.pass_on)
    if link.following is not None:
        link.following.close()
    return usage


async def _run_link(link: Link, before: Link | None, corpus: InputEntry, end: Callable[[StageReport], None]) -> None:
    """Run a stage's shards as they come, and seal it after the stage before."""
    plan, began = link.plan, time.monotonic()
    link.reporter.begin(plan.name, link.rows if before is None else 0)
    with watching_replies(plan):
        usage = await make_shards(link)
    if before is not None:
        await before.sealed.wait()
    # In a thread: it reads the ids of all rows.
    manifest = await asyncio.to_thread(seal_planned, plan, link.shards, corpus)
    link.sealed.set()
    seconds = time.monotonic() - (link.began or began)
    report = StageReport.from_manifest(manifest, ran=True, seconds=seconds, usage=usage)
    link.reporter.finish(report.summarise())
    end(report)
