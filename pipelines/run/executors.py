"""Where the shards of a run are made: in this process, or as spans in a pool of workers that this process drives.

The driver follows what workers write, replaces those that are lost, and seals each stage in order.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import active_children
from typing import Protocol, Self
from uuid import uuid4

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError, GateNotMet, Unavailable, UnusableReplies
from pipelines.memory import count_cores
from pipelines.run.chains import ChainRunner, run_chain
from pipelines.run.progress import Reporter
from pipelines.run.runner import GRACE, PlannedStage, StageReport, find_shard, read_source, seal_planned, undo_replies
from pipelines.run.stage import JudgedStage
from pipelines.run.workers import (
    BEAT,
    ENDING,
    WORKERS,
    Span,
    SpanReport,
    WorkerSpec,
    make_spans,
    prepare_worker,
    run_span,
)
from pipelines.run.workspace import read_model
from pipelines.services.health import Health
from pipelines.services.traffic import follow_usage
from pipelines.stopping import holding_signals
from schemas.manifest import InputEntry, ShardSidecar, Usage

RESTARTS = 3
"""Times in a row that lost workers are replaced although no shard was made meanwhile."""


Executor = Callable[[WorkerSpec], AbstractContextManager[ChainRunner]]
"""Where the shards of a run are made: is ready for it until the context ends, which gives what runs its chains."""


def run_here(_: WorkerSpec) -> AbstractContextManager[ChainRunner]:
    """Run chains on one event loop of this process, all stages of a chain at once."""
    return nullcontext(run_chain)


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
        with holding_signals():
            self._executor = ProcessPoolExecutor(self.workers, WORKERS, prepare_worker, (ENDING,))

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        """Have a process run a span."""
        assert self._executor is not None
        with holding_signals():
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
    before: dict[str, set[str]]
    """Sidecars of each stage that were there when the run began."""
    seen: dict[str, set[str]]
    rows: Counter[str] = field(default_factory=Counter)
    healths: dict[str, Health] = field(default_factory=dict)
    error: Exception | None = None
    """The first that stopped a span."""
    lost: bool = False
    """Whether a worker process was lost."""
    unusable: set[str] = field(default_factory=set)
    ended: dict[str, float] = field(default_factory=dict)
    """When the last shard of each stage was seen, by the clock of ``time.monotonic``."""

    @classmethod
    def of(cls, chain: Sequence[PlannedStage], reporter: Reporter) -> Self:
        """Return the board of a chain that begins."""
        written = {plan.name: set(_list_written(plan)) for plan in chain}
        board = cls(chain, [reporter.fork() for _ in chain], written, {name: set(own) for name, own in written.items()})
        rows = sum(each.rows_out for each in read_source(chain[0]).shards if find_shard(chain[0], each) is None)
        for plan, own in zip(chain, board.reporters, strict=True):
            board.healths[plan.name] = Health(plan.name, plan.unusable)
            own.begin(plan.name, rows if plan is chain[0] else 0)
        return board

    def look(self) -> None:
        """Tell the rows of the shards that were written since the last look."""
        for plan, reporter in zip(self.chain, self.reporters, strict=True):
            for name in set(_list_written(plan)) - self.seen[plan.name]:
                self.seen[plan.name].add(name)
                sidecar = read_model(plan.folder.path / name, ShardSidecar)
                self.rows[plan.name] += sidecar.rows_in
                follow_usage(sidecar.usage)
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


def _list_written(plan: PlannedStage) -> list[str]:
    return [path.name for path in plan.folder.path.glob("part-*.json")]


@dataclass(slots=True)
class SpanExecutor:
    """Cuts chains into spans, has a pool make them, and seals the stages here."""

    pool: Pool

    @contextmanager
    def __call__(self, spec: WorkerSpec) -> Iterator[ChainRunner]:
        """Start the pool, and end it with the context: no worker outlives the run."""
        spec = replace(spec, stop=spec.root / f".stop-{uuid4().hex}")
        self.pool.open()
        try:
            yield partial(self._run_chain, spec)
        finally:
            try:
                self.pool.close()
            except KeyboardInterrupt:
                _kill_children()
                raise
            finally:
                spec.stop.unlink(missing_ok=True)

    def _run_chain(
        self,
        spec: WorkerSpec,
        chain: Sequence[PlannedStage],
        corpus: InputEntry,
        reporter: Reporter,
        end: Callable[[StageReport], None],
    ) -> None:
        board, began = ChainBoard.of(chain, reporter), time.monotonic()
        self._make_missing(spec, board)
        for plan, own in zip(chain, board.reporters, strict=True):
            manifest = seal_planned(plan, len(read_source(plan).shards), corpus)
            old = board.before[plan.name]
            fresh = (each.usage for each in manifest.shards if plan.folder.sidecar(each.shard).name not in old)
            seconds = board.ended.get(plan.name, began) - began
            report = StageReport.from_manifest(manifest, ran=True, seconds=seconds, usage=sum(fresh, Usage()))
            own.finish(report.summarise())
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
            # Amid a submit it has come before the span's future: the pool's end waits for that one.
            spec.stop.touch()
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
            done, late = wait(futures, timeout=GRACE + 5 * BEAT)
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
        return run_here
    if config.runtime.engine == "processes":
        return SpanExecutor(ProcessPool(config.runtime.workers or count_cores()))
    raise ConfigError(
        f"runtime.engine {config.runtime.engine}: `synth run` has local and processes; see `synth deploy`"
    )
