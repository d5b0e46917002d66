"""The whole pipeline as a flow: ``synth run`` with its parameters, its endings and its bytes.

The loop is :func:`pipelines.run.loop.run_request`. What is Prefect's is where spans run and who hears how far the run
is: a task run is a span of a chain. Manifests decide what is done, so Prefect caches nothing and stores no results.
"""

import logging
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import Abort, TerminationSignal
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner
from prefect.utilities.annotations import quote

from flows.artifacts import publish_artifacts
from flows.cluster import RayPool, make_span_future
from flows.zombies import succeed
from pipelines.cli.naming import RunChoice, make_request
from pipelines.config.settings import RunConfig
from pipelines.errors import SynthError, WorkspaceBusy
from pipelines.memory import count_cores
from pipelines.run import progress
from pipelines.run.chains import run_chain
from pipelines.run.endings import naming_endings
from pipelines.run.executors import Executor, SpanExecutor
from pipelines.run.loop import run_request
from pipelines.run.progress import Reporter, read_progress
from pipelines.run.runner import PlannedStage, StageReport
from pipelines.run.workers import Span, SpanReport, WorkerSpec, list_missing, prepare_worker, run_span
from pipelines.run.workspace import Workspace
from pipelines.secrets import mask_keys
from pipelines.stopping import heeding_signals
from schemas.manifest import InputEntry

SKIPPED = "Skipped"
"""State of a run that met another one of its workspace, of the type Completed: automations see no failure."""
ENDINGS = {1: "GateNotMet", 2: "Misconfigured", 3: "Unavailable"}
"""States of the type Failed, by the code with which ``synth run`` ends; only after the last is it worth another try."""
_TASK: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "retries": 0, "task_run_name": "{name}"}
"""A span is not tried again by Prefect: the executor runs again what a lost worker left, and errors are final."""


@flow(name="synthesize", log_prints=True)
def synthesize(  # noqa: PLR0913 - the options of `synth run`
    workspace: str = "workspace",
    name: str = "",
    recipe: str = "",
    settings: list[str] | None = None,
    until: str = "",
    configs: list[str] | None = None,
    stages: list[str] | None = None,
    limit: int = 0,
    fresh_replies: list[str] | None = None,
    retry: list[str] | None = None,
) -> list[str] | State[Any]:
    """Run a recipe in a workspace and return the releases' folders; stages and shards that are done are skipped.

    Args:
        workspace: folder for everything a run makes.
        name: of the run; empty for the recipe's or the file's, or the last one where neither is given.
        recipe: shipped recipe; empty for that of the run, demo in an empty workspace.
        settings: keys to change, as ``section.key=value``.
        until: stop after this stage.
        configs: TOML files over the recipe, the last one uppermost.
        stages: run only these.
        limit: at most this many seeds; 0 is the recipe's own.
        fresh_replies: roles and tools that are asked anew.
        retry: ``failed``, ``unscored`` or reasons: rows that ended so are asked anew.

    Returns:
        The folders, or the state that says why not, by which a caller in Python meets the error itself.

    Raises:
        Abort: if the run was cancelled.
        TerminationSignal: if it was interrupted otherwise.
        ConservationError: or whatever else is a defect of synth.
    """
    try:
        # Prefect's own handler of SIGTERM would raise amid the loop, and requests in flight would be paid for nothing.
        with naming_endings(), heeding_signals():
            choice = RunChoice(name, recipe, tuple(map(Path, configs or ())), tuple(settings or ()), limit)
            request = make_request(choice, Path(workspace), until, stages or [], fresh_replies or [], retry or [])
            document = run_request(request, make_reporter(), choose_executor(request.config), note_holder)
            publish_artifacts(document)
            document.check_released()
    except WorkspaceBusy as error:
        return name_busy(error, Workspace(Path(workspace)), request.config.recipe)
    except SynthError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise name_interrupt() from error
        if error.exit_code not in ENDINGS:
            raise
        return name_ending(error)
    return [str(published.path) for published in document.releases]


def name_ending(error: SynthError) -> State[Any]:
    """Return the state of a run that ends early: an expected failure needs its words and no traceback."""
    said = mask_keys(str(error))
    error.args = (said,)
    return Failed(name=ENDINGS[error.exit_code], message=said, data=error)


def name_busy(error: WorkspaceBusy, workspace: Workspace, recipe: str) -> State[Any]:
    """Return the state of a run that met a busy workspace.

    Nothing is wrong if a run of the same recipe holds it: that makes what this one would have made. Another recipe's
    run, or another command, does not.
    """
    run = read_progress(workspace)
    # A holder writes its name a moment after it holds the workspace, and its recipe after that.
    maker = run.recipe if run and run.state == "running" else recipe
    if workspace.read_holder() in ("", "run") and maker == recipe:
        return Completed(name=SKIPPED, message=mask_keys(str(error)))
    return name_ending(error)


def name_interrupt() -> Abort | TerminationSignal:
    """Return what ends an interrupted run for Prefect, once what was in flight is recorded.

    Who cancels a run reports the state himself when the process is gone; otherwise the run has crashed.
    """
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID(str(flow_run.id))).state
    cancelled = state is not None and state.is_cancelling()
    return Abort("the run was cancelled") if cancelled else TerminationSignal(signal.SIGTERM)


def note_holder(workspace: Workspace) -> None:
    """Note that this flow run holds a workspace, and end the one before it for Prefect where its process died."""
    if closed := succeed(workspace, UUID(str(flow_run.id))):
        get_run_logger().info("flow run %s died in this workspace; it is set to Crashed", closed)


class RunLog(StringIO):
    """A stream whose lines go to a log, without keys."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__()
        self._log = log

    def write(self, text: str, /) -> int:
        """Log a line."""
        if text.strip():
            self._log(mask_keys(text.rstrip("\n")))
        return len(text)


def make_reporter() -> Reporter:
    """Return what tells the run's progress to Prefect's log."""
    # One line a request of Prefect's own client would hide ours.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return progress.make_reporter(RunLog(get_run_logger().info))


def choose_executor(config: RunConfig) -> Executor:
    """Return what makes shards as ``runtime.engine`` says, with a task run for each span."""
    if config.runtime.engine == "local":
        return lambda _: nullcontext(_run_chain)
    if config.runtime.engine == "ray":
        return SpanExecutor(RayPool(config, make_span, _pass_on))
    return SpanExecutor(TaskRunnerPool(config.runtime.workers or count_cores(), lambda: _make_processes(config)))


def _make_processes(config: RunConfig) -> TaskRunner[Any]:
    workers = config.runtime.workers or count_cores()
    return ProcessPoolTaskRunner(max_workers=workers, initializer=prepare_worker)


def _run_chain(
    chain: Sequence[PlannedStage], corpus: InputEntry, reporter: Reporter, end: Callable[[StageReport], None]
) -> None:
    """Run a chain in this process as one task run; what stops it is raised outside of Prefect, which would log it."""
    shards = list_missing(chain)
    if not shards:
        run_chain(chain, corpus, reporter, end)
        return
    span, errors = Span(tuple((plan.name, plan.key) for plan in chain), tuple(shards)), list[BaseException]()
    # Quoted: Prefect would walk through it in search of futures.
    run = quote(partial(run_chain, chain, corpus, reporter, end))
    make_chain(span.describe(), run, quote(errors), return_state=True)
    if errors:
        raise errors[0]


@task(**_TASK)
def make_chain(name: str, run: Callable[[], None], errors: list[BaseException]) -> State[None] | None:
    """Make the missing shards of a chain; one that is stopped, by whatever, is cancelled."""
    try:
        run()
    except BaseException as error:  # noqa: BLE001 - the flow raises it; here it is one line
        errors.append(error)
        return Cancelled(message=mask_keys(f"{type(error).__name__}: {error}"))
    return None


class SpanFailed(Exception):
    """Marks the task run of a span as failed, and carries its report to the driver."""

    def __init__(self, report: SpanReport) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return mask_keys(str(self.report.error))


@task(**_TASK)
def make_span(name: str, spec: WorkerSpec, span: Span) -> SpanReport:
    """Make a span in a worker process."""
    report = run_span(spec, span)
    if report.error is not None:
        raise SpanFailed(report)
    return report


@dataclass(slots=True)
class TaskRunnerPool:
    """Worker processes of a Prefect task runner; each span is a task run."""

    workers: int
    make_runner: Callable[[], TaskRunner[Any]]
    _runner: TaskRunner[Any] | None = None

    def open(self) -> None:
        """Start the runner."""
        self._runner = self.make_runner()
        self._runner.__enter__()

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        """Have a worker run a span as a task run."""
        assert self._runner is not None
        future = make_span_future()
        parameters = {"name": span.describe(), "spec": quote(spec), "span": quote(span)}
        self._runner.submit(make_span, parameters).add_done_callback(lambda told: _pass_on(told, future))
        return future

    def close(self) -> None:
        """End the runner's processes, each after its span."""
        if self._runner is not None:
            self._runner.__exit__(None, None, None)
            self._runner = None


def _pass_on(told: Any, future: "Future[SpanReport]") -> None:  # noqa: ANN401 - a Prefect future of any runner
    try:
        future.set_result(told.result())
    except SpanFailed as failed:
        future.set_result(failed.report)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        future.set_exception(error)
