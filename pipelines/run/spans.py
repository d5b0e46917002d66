"""Spans: the shards of a chain cut into lists that run anywhere, each on one event loop of one process.

A span is the unit of dispatch, a shard stays the unit of commit: sidecars say what is done, so a span that is run again
makes only what is missing. Workers write shards and never seal; the process that drives the run seals each stage in
order. Workers are asked to stop by a file in the workspace, which every host sees, and let requests in flight finish.
"""

import asyncio
import atexit
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError, Damaged, GateNotMet, SynthError, Unavailable, UnusableReplies
from pipelines.run.assembly import Assembly
from pipelines.run.chains import ChainRunner, Link, link_up, make_shards, run_chain, run_together
from pipelines.run.corpora import count_cores, explain_copy, open_copy
from pipelines.run.heartbeat import Pulse, start_pulse
from pipelines.run.jsonlog import start_json_log
from pipelines.run.progress import Reporter, SilentReporter
from pipelines.run.runner import (
    GRACE,
    PlannedStage,
    StageReport,
    find_shard,
    read_source,
    resting_collector,
    seal_planned,
    undo_replies,
)
from pipelines.run.stage import JudgedStage
from pipelines.run.workspace import Workspace, read_model
from pipelines.services.health import Health, open_health
from schemas.manifest import InputEntry, ShardSidecar, Usage

SPANS = 4
"""Spans a worker: enough that none is idle for long at the end, few enough to be seen one by one."""
RESTARTS = 3
"""Times in a row that lost workers are replaced although no shard was made meanwhile."""
BEAT = 1.0
"""Seconds between two looks at what workers have written, and whether they are to stop."""


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
    """

    config: RunConfig
    root: Path
    last: str
    corpus: InputEntry
    run: str = ""
    stop: Path = field(default=Path())


class Executor(Protocol):
    """Where the shards of a run are made."""

    def begin(self, spec: WorkerSpec) -> AbstractContextManager[ChainRunner]:
        """Be ready for a run until the context ends, and yield what runs its chains."""


def _make_future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class SpanProgress:
    """A span of a chain that runs in this process, for what follows it on the same event loop."""

    span: Span
    left: set[int]
    """Shards that the chain's last stage is still to make."""
    begun: "asyncio.Future[None]" = field(default_factory=_make_future)
    ended: "asyncio.Future[None]" = field(default_factory=_make_future)

    def begin(self) -> None:
        """Note that a shard of some stage begins."""
        if not self.begun.done():
            self.begun.set_result(None)

    def finish(self, shard: int) -> None:
        """Note a shard that the chain's last stage has made."""
        self.left.discard(shard)
        if not self.left and not self.ended.done():
            self.ended.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Note what stopped the chain."""
        if not self.ended.done():
            self.ended.set_exception(error if isinstance(error, Exception) else Unavailable("interrupted"))


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs chains on one event loop of this process, all stages of a chain at once.

    Attributes:
        follow: shown each span from its first shard on, until ``ended`` has its result or the error that stopped it.
    """

    follow: Callable[[SpanProgress], Coroutine[Any, Any, None]] | None = None

    @contextmanager
    def begin(self, _: WorkerSpec) -> Iterator[ChainRunner]:
        """Yield what runs chains here."""
        yield run_chain if self.follow is None else partial(run_chain, around=self._follow_spans)

    @asynccontextmanager
    async def _follow_spans(self, links: Sequence[Link]) -> AsyncIterator[None]:
        spans = [SpanProgress(span, set(span.shards)) for span in make_spans([link.plan for link in links], 1)]
        by_shard = {shard: each for each in spans for shard in each.span.shards}
        for link in links:
            link.drawn = lambda shard: by_shard[shard].begin()
        links[-1].made = lambda shard: by_shard[shard].finish(shard) if shard in by_shard else None
        followers = [asyncio.create_task(self._follow_span(each)) for each in spans]
        try:
            yield
        except BaseException as error:
            for each in spans:
                each.fail(error)
            raise
        finally:
            await asyncio.gather(*followers, return_exceptions=True)

    async def _follow_span(self, progress: SpanProgress) -> None:
        await asyncio.wait([progress.begun, progress.ended], return_when=asyncio.FIRST_COMPLETED)
        if self.follow is not None and progress.begun.done():
            await self.follow(progress)
        await progress.ended


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


@dataclass(slots=True)
class _Place:
    """What a worker process has open: one assembly, kept for the spans of one run and closed at its end."""

    spec: WorkerSpec | None = None
    assembly: Assembly | None = None
    planned: Mapping[str, PlannedStage] = field(default_factory=dict)
    pulse: Pulse | None = None

    def open(self, spec: WorkerSpec) -> Mapping[str, PlannedStage]:
        """Return the stages of a run by name.

        Raises:
            ConfigError: if this host has another workspace there or no such corpus, or lacks what the configuration
                needs.
        """
        if self.spec != spec:
            self.close()
            workspace = Workspace(spec.root)
            _check_shared(workspace, spec.run)
            corpus = open_copy(spec.corpus, workspace, spec.config.runtime.corpora)
            self.assembly = Assembly(spec.config, workspace, corpus)
            self.assembly.roles.run = spec.run
            self.planned = {plan.name: plan for plan in self.assembly.plan_stages(spec.last)}
            if spec.config.runtime.log == "json":
                start_json_log()
            self.pulse = start_pulse(workspace, spec.run, SilentReporter(), spec.config.recipe, "worker")
            self.spec = spec
        return self.planned

    def close(self) -> None:
        """Close the assembly."""
        if self.assembly is not None:
            self.assembly.close()
        if self.pulse is not None:
            self.pulse.end()
        self.spec = self.assembly = self.pulse = None

    def follow(self) -> AbstractContextManager[Reporter]:
        """Tell others of the run what the reporter is told in the block, and count its requests."""
        return nullcontext(SilentReporter()) if self.pulse is None else self.pulse.following()


def _check_shared(workspace: Workspace, run: str) -> None:
    """Refuse a folder that is not the run's: budget and rates would be shared with nobody, and shards lost.

    Raises:
        ConfigError: with what the run needs.
    """
    held = workspace.read_run()
    if held != run:
        raise ConfigError(
            f"worker {socket.gethostname()}: workspace {workspace.root} is held by {held or 'no run'} here, and not by "
            f"{run}: all hosts need one shared folder under this path"
        )


_PLACE = _Place()
atexit.register(_PLACE.close)


def run_span(spec: WorkerSpec, span: Span) -> SpanReport:
    """Make what is missing of a span in this process, on one event loop.

    SIGTERM and the file ``spec.stop`` stop it: requests in flight finish and are recorded. The signal then ends the
    process too.
    """
    report = SpanReport()
    try:
        chain = find_chain(_PLACE.open(spec), span)
        with resting_collector(), _PLACE.follow() as reporter:
            links = link_up(chain, reporter)
            told = asyncio.run(_make_span(spec, links, span, report))
    except Exception as error:  # noqa: BLE001 - whatever it is, the driver raises it
        report.error = _carry(name_host(error, spec))
        return report
    if told:
        _PLACE.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
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


def name_host(error: Exception, spec: WorkerSpec) -> Exception:
    """Return an error, that of a file of this host's copy of the corpus as one that only this host can mend."""
    folder = Path(spec.config.runtime.corpora) / spec.corpus.key
    if spec.config.runtime.corpora and isinstance(error, Damaged) and folder in error.path.parents:
        return explain_copy(error, folder, Workspace(spec.root).corpora / spec.corpus.key)
    return error


def _carry(error: Exception) -> Exception:
    """Return an error as it can travel to another process, with its traceback unless it is one of ours."""
    if isinstance(error, SynthError):
        return error
    trace = "".join(traceback.format_exception(error))
    error.add_note(f"in a worker:\n{trace}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - any class may fail in its own way
        return RuntimeError(f"a worker failed:\n{trace}")
    return error


async def _make_span(spec: WorkerSpec, links: Sequence[Link], span: Span, report: SpanReport) -> bool:
    """Run a chain over a span's shards; return whether the process was told to end."""
    if spec.stop.is_file():
        return False
    wanted = set(span.shards)
    links[0].take_all([shard for shard in read_source(links[0].plan).shards if shard.shard in wanted])
    work = asyncio.ensure_future(run_together([_make_link(link, report) for link in links]))
    told: list[bool] = []

    def end() -> None:
        told.append(True)
        work.cancel()

    if threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
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
    with open_health(plan.name, plan.limits) as health:
        report.healths[plan.name] = health
        link.reporter.begin(plan.name, 0, "rows", link.count_pending)
        try:
            await make_shards(link)
        except UnusableReplies:
            report.unusable += (plan.name,)
            raise
        finally:
            if watch:
                report.scored[plan.name] = (watch.counts[0] - before[0], watch.counts[1] - before[1])
            link.reporter.finish("")


async def _watch_stop(stop: Path, work: "asyncio.Future[None]") -> None:
    while not stop.is_file():
        await asyncio.sleep(BEAT)
    work.cancel()


def prepare_worker() -> None:
    """Make this process a worker: Ctrl-C and a closed terminal are its driver's to heed; it ends when that is gone."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()


def _follow_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(BEAT)
    os.kill(os.getpid(), signal.SIGTERM)


class Pool(Protocol):
    """Worker processes that spans are handed to."""

    @property
    def workers(self) -> int:
        """How many spans run at once."""

    def open(self) -> None:
        """Start, or start anew after :meth:`close`."""

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        """Have a worker call :func:`run_span`; the future raises ``BrokenExecutor`` where the worker was lost."""

    def close(self) -> None:
        """End the workers, each after its span."""


@dataclass(slots=True)
class ProcessPool:
    """Processes of this machine."""

    workers: int
    _executor: ProcessPoolExecutor | None = None

    def open(self) -> None:
        """Start; processes begin with the first spans."""
        self._executor = ProcessPoolExecutor(self.workers, get_context("spawn"), prepare_worker)

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        """Have a process run a span."""
        assert self._executor is not None
        return self._executor.submit(run_span, spec, span)

    def close(self) -> None:
        """End the processes, each after its span."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)


@dataclass(slots=True)
class ChainBoard:
    """How far a chain is, by the shards that workers have written."""

    chain: Sequence[PlannedStage]
    reporters: Sequence[Reporter]
    before: dict[str, set[int]] = field(default_factory=dict)
    """Shards of each stage that were done when the run began."""
    rows: Counter[str] = field(default_factory=Counter)
    healths: dict[str, Health] = field(default_factory=dict)
    error: Exception | None = None
    """The first that stopped a span."""
    lost: bool = False
    """Whether a worker process was lost."""
    unusable: set[str] = field(default_factory=set)
    ended: dict[str, float] = field(default_factory=dict)
    """When the last shard of each stage was seen, by the clock of ``time.monotonic``."""
    _seen: dict[str, set[str]] = field(default_factory=dict)

    def begin(self) -> None:
        """Note what is done already."""
        rows = 0
        for plan in self.chain:
            self.healths[plan.name] = Health(plan.name, plan.limits)
            self.before[plan.name], self._seen[plan.name] = set(), set(self._list_written(plan))
        for source in read_source(self.chain[0]).shards:
            made: ShardSidecar | None = source
            rows += source.rows_out if find_shard(self.chain[0], source) is None else 0
            for plan in self.chain:
                made = find_shard(plan, made) if made else None
                self.before[plan.name] |= {made.shard} if made else set()
        for plan, reporter in zip(self.chain, self.reporters, strict=True):
            reporter.begin(plan.name, rows if plan is self.chain[0] else 0, "rows")

    def _list_written(self, plan: PlannedStage) -> list[str]:
        return [path.name for path in plan.folder.path.glob("part-*.json")]

    def look(self) -> None:
        """Tell the rows of the shards that were written since the last look."""
        for plan, reporter in zip(self.chain, self.reporters, strict=True):
            for name in set(self._list_written(plan)) - self._seen[plan.name]:
                self._seen[plan.name].add(name)
                sidecar = read_model(plan.folder.path / name, ShardSidecar)
                self.rows[plan.name] += sidecar.rows_in
                reporter.file_shard(sidecar)
                reporter.advance(self.rows[plan.name])
                self.ended[plan.name] = time.monotonic()

    def note(self, report: SpanReport) -> None:
        """Note how a span ended."""
        self.unusable |= set(report.unusable)
        self.error = self.error or report.error
        for name, health in report.healths.items():
            self.healths[name].merge(health)
            try:
                # Spans may be too short for any worker to see enough of a stage.
                self.healths[name].check(is_over=False)
            except UnusableReplies as error:
                self.error = self.error or error
                self.unusable.add(name)
        for plan in self.chain:
            if plan.name in report.scored and isinstance(plan.stage, JudgedStage) and plan.stage.watch:
                try:
                    plan.stage.watch.merge(report.scored[plan.name])
                except GateNotMet as error:
                    self.error = self.error or error

    def check(self) -> None:
        """Raise what stopped a span, when all spans have ended; undo what unusable replies have decided.

        Raises:
            UnusableReplies: also in place of a gate that such replies did not let pass.
        """
        if self.error is None or isinstance(self.error, GateNotMet):
            for plan in self.chain:
                try:
                    self.healths[plan.name].check()
                except UnusableReplies as error:
                    self.error = error
                    self.unusable.add(plan.name)
                    break
        for plan in self.chain:
            if plan.name in self.unusable:
                undo_replies(plan, self.healths[plan.name])
        if self.error is not None:
            raise self.error


@dataclass(slots=True)
class SpanExecutor:
    """Cuts chains into spans, has a pool make them, and seals the stages here."""

    pool: Pool

    @contextmanager
    def begin(self, spec: WorkerSpec) -> Iterator[ChainRunner]:
        """Start the pool, and end it with the context: no worker outlives the run."""
        spec = replace(spec, stop=spec.root / f".stop-{uuid4().hex}")
        self.pool.open()
        try:
            yield partial(self._run_chain, spec)
        finally:
            self.pool.close()
            spec.stop.unlink(missing_ok=True)

    def _run_chain(
        self,
        spec: WorkerSpec,
        chain: Sequence[PlannedStage],
        corpus: InputEntry,
        reporter: Reporter,
        end: Callable[[StageReport], None],
    ) -> None:
        board, began = ChainBoard(chain, [reporter.fork() for _ in chain]), time.monotonic()
        board.begin()
        self._make_missing(spec, board)
        for plan, own in zip(chain, board.reporters, strict=True):
            manifest = seal_planned(plan, len(read_source(plan).shards), corpus)
            fresh = (shard.usage for shard in manifest.shards if shard.shard not in board.before[plan.name])
            seconds = board.ended.get(plan.name, began) - began
            report = StageReport.from_manifest(manifest, ran=True, seconds=seconds, usage=sum(fresh, Usage()))
            own.finish(report.summarise(), report.count())
            end(report)

    def _make_missing(self, spec: WorkerSpec, board: ChainBoard) -> None:
        """Run spans until nothing is missing; the shards that lost workers leave are run again."""
        restarts, least = 0, -1
        while spans := make_spans(board.chain, self.pool.workers):
            missing = sum(len(span.shards) for span in spans)
            restarts = restarts + 1 if missing == least else 0
            if restarts > RESTARTS:
                raise Unavailable(
                    f"{spans[0].describe()}: worker processes end before a shard is made, {restarts} times in a row; "
                    "perhaps for want of memory: lower runtime.workers or runtime.concurrency and run it again"
                )
            if least >= 0:
                why = (
                    "a worker process was lost"
                    if board.lost
                    else f"{missing:,} shards are not made of what is there now"
                )
                board.reporters[0].note(f"{why}; what is missing is run again")
                board.lost = False
                self.pool.close()
                self.pool.open()
            least = missing
            self._run_spans(spec, spans, board)
            board.check()

    def _run_spans(self, spec: WorkerSpec, spans: Sequence[Span], board: ChainBoard) -> None:
        """Run spans and note how each ended; an error or an interrupt stops the others."""
        futures: set[Future[SpanReport]] = set()
        try:
            try:
                for span in spans:
                    futures.add(self.pool.submit(spec, span))
            except BrokenExecutor:
                board.lost = True
            while futures and board.error is None:
                done, futures = wait(futures, timeout=BEAT, return_when=FIRST_COMPLETED)
                board.look()
                self._collect(done, board)
        except KeyboardInterrupt:
            board.reporters[0].note("stopping: what is under way is let finish; interrupt again to drop it")
            raise
        finally:
            self._stop(spec, futures, board)

    def _stop(self, spec: WorkerSpec, futures: "set[Future[SpanReport]]", board: ChainBoard) -> None:
        """Ask the workers to stop and wait until they have; after their time, or another interrupt, end them."""
        if not futures:
            return
        try:
            spec.stop.touch()
            done, late = wait({future for future in futures if not future.cancel()}, timeout=GRACE + 5 * BEAT)
            self._collect(done, board)
        except KeyboardInterrupt:
            _kill_children()
            raise
        if late:
            _kill_children()

    def _collect(self, done: "set[Future[SpanReport]]", board: ChainBoard) -> None:
        for future in done:
            try:
                board.note(future.result())
            except BrokenExecutor:
                board.lost = True
            except CancelledError:
                continue  # it was never begun
            except Exception as error:  # noqa: BLE001 - whatever it is, the board raises it once all have stopped
                board.error = board.error or error


def _kill_children() -> None:
    for child in active_children():
        child.kill()


def make_executor(config: RunConfig) -> Executor:
    """Return what makes shards as ``runtime.engine`` says, without a Prefect server.

    Raises:
        ConfigError: if the engine is one that only the flow has.
    """
    if config.runtime.engine == "local":
        return LocalExecutor()
    if config.runtime.engine == "processes":
        return SpanExecutor(ProcessPool(config.runtime.workers or count_cores()))
    raise ConfigError(
        f"runtime.engine {config.runtime.engine}: `synth run` has local and processes; see `synth deploy`"
    )
