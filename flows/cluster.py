"""The engine ``ray``: spans of a run as tasks of a Ray cluster that stands already.

Every host of the cluster has this package, sees the workspace under one path, and reaches the Prefect server and the
database of replies. Ray starts and schedules; nothing of ours does.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from prefect import Task
from prefect.utilities.annotations import quote

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError, SynthError, Unavailable
from pipelines.run.spans import Span, SpanReport, WorkerSpec

OPTIONS: dict[str, Any] = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
"""Of each task. The driver runs again what a lost worker left; Ray would run all of it, also what was refused."""


@dataclass(slots=True)
class RayPool:
    """The workers of a Ray cluster; each span is a task run, whose report or loss ends its future."""

    config: RunConfig
    task: Task[..., SpanReport]
    _runner: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        _check_engine(self.config)

    @property
    def workers(self) -> int:
        """How many spans run at once: as set, or one for each core of the cluster."""
        import ray

        return self.config.runtime.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def open(self) -> None:
        """Connect to the cluster.

        Raises:
            Unavailable: if it does not answer.
        """
        from prefect_ray import RayTaskRunner

        address = self.config.runtime.address
        quiet = {"log_to_driver": False, "logging_level": "WARNING"}
        self._runner = RayTaskRunner(address=address, init_kwargs=quiet)
        try:
            with _keeping_handlers():
                self._runner.__enter__()
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise Unavailable(f"runtime.address {address}: no Ray cluster answers there: {error}") from error

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        """Have a worker of the cluster run a span."""
        from prefect_ray.context import remote_options

        # Quoted: Prefect would walk through them in search of futures.
        parameters = {"name": span.describe(), "spec": quote(spec), "span": quote(span)}
        with remote_options(**OPTIONS):
            told = self._runner.submit(self.task, parameters)
        future: Future[SpanReport] = Future()
        told.wrapped_future.future().add_done_callback(lambda done: _pass_on(done, future))
        return future

    def close(self) -> None:
        """Leave the cluster, which ends the workers of this run."""
        if self._runner is not None:
            self._runner.__exit__(None, None, None)
            self._runner = None


def _check_engine(config: RunConfig) -> None:
    """Refuse what cannot work before anything is written.

    Raises:
        ConfigError: with what is missing.
    """
    if find_spec("prefect_ray") is None or find_spec("ray") is None:
        raise ConfigError("runtime.engine ray: it is not installed; pip install 'synth[ray]' on every host")
    if not config.runtime.address:
        raise ConfigError(
            "runtime.engine ray: runtime.address names no cluster; start one with `ray start --head` on a host and "
            "`ray start --address=HOST:6379` on the others, and name HOST:6379"
        )
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigError(
            "runtime.engine ray: PREFECT_API_URL is not set; workers tell their task runs to a Prefect server that "
            "every host reaches: start `prefect server start` and export its address on every host"
        )


@contextmanager
def _keeping_handlers() -> Iterator[None]:
    """Keep this process's handlers of signals: Ray sets one that exits amid the run."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _pass_on(done: "Future[Any]", future: "Future[SpanReport]") -> None:
    """End a span's future as its task ended: by a report, or as lost with its worker."""
    import ray

    if not future.set_running_or_notify_cancel():
        return
    try:
        state = done.result()
        report = state.result(raise_on_failure=False)
    except (ray.exceptions.RayError, OSError) as error:
        future.set_exception(BrokenExecutor(f"a worker of the cluster was lost: {error}"))
        return
    future.set_result(report) if isinstance(report, SpanReport) else future.set_exception(_name_error(report))


def _name_error(error: Any) -> BaseException:  # noqa: ANN401 - whatever the task run ended with
    """Return why a task run made no report."""
    if isinstance(error, SynthError):
        return error
    return Unavailable(f"a task run ended without a report: {type(error).__name__}: {error}; run again to go on")
