"""The engine ``ray``: spans of a run as tasks of a Ray cluster that stands already.

Every host of the cluster has this package, sees the workspace under one path, and reaches the Prefect server and the
database of replies. Ray starts and schedules; nothing of ours does.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from prefect import Task

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError, Unavailable
from pipelines.run.workers import Span, SpanReport, WorkerSpec

OPTIONS: dict[str, Any] = {"num_cpus": 1, "max_retries": 0, "scheduling_strategy": "SPREAD"}
"""Of each task. The driver runs again what a lost worker left; Ray would run all of it, also what was refused."""

CONNECT_SECONDS = 10.0


@dataclass(slots=True)
class RayPool:
    """The workers of a Ray cluster; each span is a task run.

    Attributes:
        config: of the run.
        task: the task that makes a span.
        pass_on: ends a future as something with a ``result`` ended.
    """

    config: RunConfig
    task: Task[..., SpanReport]
    pass_on: "Callable[[TaskEnding, Future[SpanReport]], None]"
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
        _reach(address)
        quiet = {"log_to_driver": False, "logging_level": "WARNING"}
        runner = RayTaskRunner(address=address, init_kwargs=quiet)
        try:
            with _keeping_handlers():
                self._runner = runner.__enter__()
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise Unavailable(f"runtime.address {address}: no Ray cluster answers there: {error}") from error

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        """Have a worker of the cluster run a span."""
        from prefect_ray.context import remote_options

        # Not quoted, as for other runners: this one hands the quotes on.
        parameters = {"name": span.describe(), "spec": spec, "span": span}
        with remote_options(**OPTIONS):
            told = self._runner.submit(self.task, parameters)
        future = make_span_future()
        told.wrapped_future.future().add_done_callback(lambda done: self.pass_on(TaskEnding(done), future))
        return future

    def close(self) -> None:
        """Leave the cluster, which ends the workers of this run."""
        if self._runner is not None:
            self._runner.__exit__(None, None, None)
            self._runner = None


def make_span_future() -> "Future[SpanReport]":
    """Return the future of a span that was submitted.

    It counts as running, because a span is never cancelled: a worker may have begun it. It is asked to stop, and waited
    for until its requests in flight are recorded.
    """
    future: Future[SpanReport] = Future()
    future.set_running_or_notify_cancel()
    return future


def _check_engine(config: RunConfig) -> None:
    """Refuse what cannot work before anything is written.

    Raises:
        ConfigError: with what is missing.
    """
    if not config.runtime.address:
        raise ConfigError(
            "runtime.engine ray: runtime.address names no cluster; start one with `ray start --head` on a host and "
            "`ray start --address=HOST:6379` on the others, and name HOST:6379"
        )
    _check_reach(config)
    if not os.environ.get("PREFECT_API_URL"):
        raise ConfigError(
            "runtime.engine ray: PREFECT_API_URL is not set; workers tell their task runs to a Prefect server that "
            "every host reaches: start `prefect server start` and export its address on every host"
        )
    if find_spec("prefect_ray") is None or find_spec("ray") is None:
        raise ConfigError("runtime.engine ray: it is not installed; pip install 'synth[ray]' on every host")


def _check_reach(config: RunConfig) -> None:
    """Refuse what workers on other hosts could not reach; that they see the workspace, each checks itself.

    Raises:
        ConfigError: with what is to be set.
    """
    if not config.replies:
        raise ConfigError(
            "runtime.engine ray: replies is empty, and the hosts of a cluster cannot share an SQLite file; "
            "name a PostgreSQL database that every host reaches"
        )
    for role in config.roles:
        if config.models[role].serve.own:
            raise ConfigError(
                f"runtime.engine ray: models.{role}.serve.own starts a server that only this host reaches; start it "
                f"with `synth serve-model {role}` behind an address of your network, and name that as base_url"
            )


def _reach(address: str) -> None:
    """Return if something listens at an address; Ray itself tries for minutes.

    Raises:
        Unavailable: if nothing does.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise Unavailable(f"runtime.address {address}: no Ray cluster answers there: {error}") from error


@contextmanager
def _keeping_handlers() -> Iterator[None]:
    """Keep this process's handlers of signals: Ray sets one that exits amid the run."""
    is_main = threading.current_thread() is threading.main_thread()
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)} if is_main else {}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class TaskEnding:
    """How a task of the cluster ended."""

    done: "Future[Any]"

    def result(self) -> SpanReport:
        """Return the report.

        Raises:
            BrokenExecutor: if the worker was lost, or its host.
            Unavailable: if the task could not begin, as without a Prefect server.
            Exception: what the task run raised.
        """
        import ray

        try:
            state = self.done.result()
        except ray.exceptions.RayTaskError as error:
            raise Unavailable(f"a task of the Ray cluster did not begin: {error.cause}; run again to go on") from error
        except ray.exceptions.RayError as error:
            raise BrokenExecutor(f"a worker of the cluster was lost: {error}") from error
        report: SpanReport = state.result()
        return report
