"""Spans of a run, and the worker processes that make them.

A span is a list of shards of a chain, which runs anywhere, on one event loop of one process. It is what is handed out,
a shard stays the unit of commit: sidecars say what is done, so a span that is run again makes only what is missing.

Workers write shards and never seal. They are asked to stop by a file in the workspace, which every host sees, and let
requests in flight finish.
"""

import asyncio
import atexit
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any

from pipelines.checks.quotas import Quotas
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, SynthError, UnusableReplies
from pipelines.run.assembly import Assembly
from pipelines.run.chains import Link, link_up, make_shards, run_together
from pipelines.run.progress import Reporter
from pipelines.run.runner import PlannedStage, find_shard, read_source, resting_collector
from pipelines.run.stage import JudgedStage
from pipelines.run.workspace import Workspace
from pipelines.services.health import Health, open_health
from pipelines.stopping import leave_signals
from schemas.manifest import InputEntry

SPANS = 4
"""Spans a worker: enough that none is idle for long at the end, few enough to be seen one by one."""


@dataclass(frozen=True, slots=True)
class Span:
    """Shards of a chain of stages.

    Attributes:
        stages: name and key of each stage of the chain, in order.
        shards: numbers of the shards, the same for each stage.
    """

    stages: tuple[tuple[str, str], ...]
    shards: tuple[int, ...]

    def describe(self) -> str:
        """Return the name of its task."""
        first, last = self.stages[0][0], self.stages[-1][0]
        chain = first if first == last else f"{first}-{last}"
        return f"{chain} {self.shards[0]:05d}-{self.shards[-1]:05d} ({len(self.shards)})"


def cut_spans(shards: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Cut shards into at most so many lists that are as long as one another; each shard is in exactly one."""
    count = min(most, len(shards))
    bounds = [len(shards) * number // count for number in range(count + 1)] if count else []
    return [tuple(shards[low:high]) for low, high in pairwise(bounds)]


def list_missing(chain: Sequence[PlannedStage]) -> list[int]:
    """Return the shards of a chain of which some stage has none that is made of its present input."""
    missing = []
    for source in read_source(chain[0]).shards:
        made: Any = source
        for plan in chain:
            made = made and find_shard(plan, made)
        if made is None:
            missing.append(source.shard)
    return missing


def make_spans(chain: Sequence[PlannedStage], workers: int) -> list[Span]:
    """Return what is missing of a chain as spans for so many workers."""
    stages = tuple((plan.name, plan.key) for plan in chain)
    return [Span(stages, shards) for shards in cut_spans(list_missing(chain), SPANS * workers)]


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What a worker needs to make any span of a run.

    Attributes:
        config: of the run.
        root: the workspace.
        last: last stage that is planned, empty for all.
        corpus: the run's corpus: the name of its folder and its digest.
        run: name of the run, as the workspace has it.
        stop: file in the workspace whose appearance asks workers to stop.
        quotas: of the round of drawing; None where no target size is set.
    """

    config: RunConfig
    root: Path
    last: str
    corpus: InputEntry
    run: str = ""
    stop: Path = field(default=Path())
    quotas: Quotas | None = None


@dataclass(slots=True)
class SpanReport:
    """How a span ended in its worker. Errors travel in it, so that what was read before them is not lost.

    Attributes:
        healths: the replies that each stage has read, by its name.
        scored: how many answers of a stage were unscored, of how many.
        error: what stopped it.
        unusable: stages of which too many replies were unusable.
    """

    healths: dict[str, Health] = field(default_factory=dict)
    scored: dict[str, tuple[int, int]] = field(default_factory=dict)
    error: Exception | None = None
    unusable: tuple[str, ...] = ()


BEAT = 1.0
"""Seconds between two looks at what workers have written, and whether they are to stop."""
ENDING = signal.SIGUSR1
"""What ends the workers of :data:`WORKERS`. Slurm, systemd and ``timeout`` send SIGTERM to all processes of a job."""


@dataclass(slots=True)
class _Place:
    """What a worker process has open: one assembly, kept for the spans of one run and closed at its end."""

    spec: WorkerSpec | None = None
    assembly: Assembly | None = None
    planned: Mapping[str, PlannedStage] = field(default_factory=dict)
    ending: signal.Signals = signal.SIGTERM
    """What asks the process to end after its requests in flight."""

    def open(self, spec: WorkerSpec) -> Mapping[str, PlannedStage]:
        """Return the stages of a run by name.

        Raises:
            ConfigError: if this host has no such corpus there, or lacks what the configuration needs.
        """
        if self.spec != spec:
            self.close()
            workspace = Workspace(spec.root)
            corpus = Corpus.open(workspace.corpora / spec.corpus.key)
            self.assembly = Assembly(spec.config, workspace, corpus, spec.quotas)
            self.assembly.roles.run = spec.run
            self.planned = {plan.name: plan for plan in self.assembly.plan_stages(spec.last)}
            self.spec = spec
        return self.planned

    def close(self) -> None:
        """Close the assembly."""
        if self.assembly is not None:
            self.assembly.close()
        self.spec = self.assembly = None


_PLACE = _Place()
atexit.register(_PLACE.close)


def run_span(spec: WorkerSpec, span: Span) -> SpanReport:
    """Make what is missing of a span in this process, on one event loop.

    The signal of :func:`prepare_worker` and the file ``spec.stop`` stop it: requests in flight finish and are recorded.
    The signal then ends the process too.
    """
    report = SpanReport()
    try:
        chain = find_chain(_PLACE.open(spec), span)
        with resting_collector():
            links = link_up(chain, Reporter())
            told = asyncio.run(_make_span(spec, links, span, report))
    except SynthError as error:
        report.error = error
        return report
    except Exception:  # noqa: BLE001 - whatever it is, the driver raises it; its class may not travel
        report.error = RuntimeError(f"a worker failed:\n{traceback.format_exc()}")
        return report
    if told:
        _PLACE.close()
        signal.signal(_PLACE.ending, signal.SIG_DFL)
        os.kill(os.getpid(), _PLACE.ending)
    return report


def find_chain(planned: Mapping[str, PlannedStage], span: Span) -> list[PlannedStage]:
    """Return the stages of a span as this process plans them.

    Raises:
        ConfigError: if a key is not the run's, so that nothing may be written under it.
    """
    for name, key in span.stages:
        own = planned[name].key if name in planned else "no such stage"
        if own != key:
            raise ConfigError(
                f"worker {socket.gethostname()}: {name} has the key {own} here and {key} in the run: its code, "
                "extras or weights are others; install what the run was started with"
            )
    return [planned[name] for name, _ in span.stages]


async def _make_span(spec: WorkerSpec, links: Sequence[Link], span: Span, report: SpanReport) -> bool:
    """Run a chain over a span's shards; return whether the process was asked to end."""
    if spec.stop.is_file():
        return False
    wanted = set(span.shards)
    links[0].take_all([shard for shard in read_source(links[0].plan).shards if shard.shard in wanted])
    work = asyncio.create_task(run_together([_make_link(link, report) for link in links]))
    told: list[bool] = []

    def end() -> None:
        told.append(True)
        _stop(work)

    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(_PLACE.ending, end)
    watch = asyncio.ensure_future(_watch_stop(spec.stop, work))
    await asyncio.wait([work])
    watch.cancel()
    if not work.cancelled() and (error := work.exception()):
        raise error
    return bool(told)


async def _make_link(link: Link, report: SpanReport) -> None:
    plan = link.plan
    watch = plan.stage.watch if isinstance(plan.stage, JudgedStage) else None
    before = watch.counts if watch else (0, 0)
    with open_health(plan.name, plan.unusable) as health:
        report.healths[plan.name] = health
        try:
            await make_shards(link)
        except UnusableReplies:
            report.unusable += (plan.name,)
            raise
        finally:
            if watch:
                report.scored[plan.name] = (watch.counts[0] - before[0], watch.counts[1] - before[1])


async def _watch_stop(stop: Path, work: "asyncio.Task[None]") -> None:
    while not stop.is_file():
        await asyncio.sleep(BEAT)
    _stop(work)


def _stop(work: "asyncio.Task[None]") -> None:
    """Have requests in flight finish; a second time would drop them."""
    if not work.cancelling():
        work.cancel()


class _Worker(SpawnProcess):
    """A process that a broken pool, which knows SIGTERM only, ends by :data:`ENDING`."""

    def terminate(self) -> None:
        """End the process after its requests in flight."""
        with suppress(ProcessLookupError):
            if self.pid is not None and self.is_alive():
                os.kill(self.pid, ENDING)


class _Workers(SpawnContext):
    Process = _Worker


WORKERS = _Workers()
"""Makes the processes of a pool whose driver heeds SIGTERM for them."""


def prepare_worker(ending: signal.Signals = signal.SIGTERM) -> None:
    """Make this process a worker, which this signal ends, and does when its driver is gone.

    Ctrl-C, a closed terminal and any other SIGTERM are its driver's to heed.
    """
    _PLACE.ending = ending
    if ending != signal.SIGTERM:
        # Not ignored: programs that it starts would ignore it, too.
        signal.signal(signal.SIGTERM, lambda *_: None)
    leave_signals()
    threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()


def _follow_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(BEAT)
    os.kill(os.getpid(), _PLACE.ending)
