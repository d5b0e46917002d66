"""A run under way as others see it: a file for each of its processes in ``logs/progress``, on any host.

The files are read without a lock and are no record of anything: manifests are. A process that is killed leaves its file
behind, which by its age says that nobody writes it any more.
"""

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from pipelines.errors import ConfigError
from pipelines.run.workspace import Workspace, read_model
from pipelines.services.traffic import Wait, merge_waits
from schemas.manifest import Usage

SILENT = 30.0
"""Seconds without a heartbeat after which a process counts as silent; one comes every two."""
QUIET = 6.0
"""Seconds without the end of any request after which those in flight count as waiting."""
OUTCOMES = ("kept", "rejected", "failed")
Role = Literal["driver", "worker"]
ProcessState = Literal["running", "ended", "silent", "gone"]
STATES: tuple[ProcessState, ...] = ("running", "ended", "silent", "gone")


class ProgressModel(BaseModel, frozen=True, extra="ignore"):
    """Frozen; what a later version adds is not read."""


class WorkProgress(ProgressModel):
    """How far a process is with one stage, or one phase of the corpus."""

    what: str
    unit: str
    done: int
    total: int
    """0 where it is not known."""
    outcomes: dict[str, int] = {}
    """Rows by how they ended: kept, rejected, failed."""
    shards: int = 0
    """Shards that were written."""
    backlog_rows: int = 0
    """Rows that are there and not done."""
    backlog_shards: int = 0
    rate: float = 0.0
    """Units a second since it began; 0 where it is not under way."""
    open: bool
    """Whether it is under way."""

    def __add__(self, other: "WorkProgress") -> "WorkProgress":
        """Return what two processes did of the same work."""
        return WorkProgress(
            what=self.what,
            unit=self.unit,
            done=self.done + other.done,
            total=self.total + other.total,
            outcomes=dict(Counter(self.outcomes) + Counter(other.outcomes)),
            shards=self.shards + other.shards,
            backlog_rows=self.backlog_rows + other.backlog_rows,
            backlog_shards=self.backlog_shards + other.backlog_shards,
            rate=self.rate + other.rate,
            open=self.open or other.open,
        )

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at this rate; None where there is no rate or the whole is not known."""
        return max(self.total - self.done, 0) / self.rate if self.rate and self.total else None


class WaitProgress(ProgressModel):
    """What requests of a process wait for, as :class:`Wait` says."""

    place: str
    cause: str
    since: float
    requests: int
    until: float = 0.0


class ProcessProgress(ProgressModel):
    """The file of one process; times are seconds since 1970 by the clock of its host."""

    run: str
    recipe: str
    role: Role
    host: str
    space: str
    """Of the process's id: on one host another container may have the same id for another process."""
    pid: int
    started: float
    money: float = 0.0
    """The most that the run may spend; 0 is no limit."""
    heard: float
    """When it last wrote the file."""
    ended: bool = False
    stages: tuple[str, ...] = ()
    work: tuple[WorkProgress, ...] = ()
    in_flight: int = 0
    failures: int = 0
    moved: float = 0.0
    """When a request last ended, or the first of those in flight was sent."""
    usage: Usage = Usage()
    waits: tuple[WaitProgress, ...] = ()

    def find_state(self, now: float) -> ProcessState:
        """Return whether the process still writes its file."""
        if self.ended:
            return "ended"
        if (self.host, self.space) == find_host() and not is_alive(self.pid):
            return "gone"
        return "silent" if now - self.heard > SILENT else "running"


def find_silence(in_flight: int, moved: float, now: float) -> list[Wait]:
    """Return replies as what is waited for, where there are requests and none has ended for a while."""
    return [Wait("replies", "none has come", moved, in_flight)] if in_flight and now - moved >= QUIET else []


def find_host() -> tuple[str, str]:
    """Return the name of this host, and the name of the space that ids of processes have here; empty if unknown."""
    space = ""
    with suppress(OSError):
        # Only Linux has it.
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - it names no file
    return socket.gethostname(), space


def is_alive(pid: int) -> bool:
    """Return whether this host runs a process with an id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True)
class RunProgress:
    """A run, summed over its processes."""

    run: str
    recipe: str
    started: float
    stages: tuple[str, ...]
    processes: tuple[ProcessProgress, ...]
    now: float

    @property
    def is_alive(self) -> bool:
        """Whether a process of it still has a heartbeat."""
        return any(process.find_state(self.now) == "running" for process in self.processes)

    @property
    def heard(self) -> float:
        """When it was last heard of."""
        return max(process.heard for process in self.processes)

    @cached_property
    def work(self) -> tuple[WorkProgress, ...]:
        """What it does and did, in the order in which it began. Workers' rows are not counted a second time."""
        by_role: dict[Role, dict[str, WorkProgress]] = {"worker": {}, "driver": {}}
        for process in sorted(self.processes, key=lambda process: process.started):
            found = by_role[process.role]
            for work in process.work:
                found[work.what] = found[work.what] + work if work.what in found else work
        for what, whole in by_role["driver"].items():
            if (part := by_role["worker"].get(what)) is not None:
                # Workers know the spans that they have begun, the driver the whole.
                update = {"total": max(part.total, whole.total), "open": part.open or whole.open}
                by_role["worker"][what] = part.model_copy(update=update)
        return tuple((by_role["driver"] | by_role["worker"]).values())

    @property
    def usage(self) -> Usage:
        """What its requests took."""
        return sum((process.usage for process in self.processes), Usage())

    @property
    def in_flight(self) -> int:
        """Requests that are not answered yet, of processes that live."""
        return sum(process.in_flight for process in self._list_living())

    @property
    def failures(self) -> int:
        """Requests that ended with an error."""
        return sum(process.failures for process in self.processes)

    @property
    def waits(self) -> tuple[Wait, ...]:
        """What requests wait for, a place each, the longest wait first; replies, where nothing fails and none comes."""
        waits = (wait for process in self._list_living() for wait in process.waits)
        found = merge_waits(Wait(**wait.model_dump()) for wait in waits)
        moved = max((process.moved for process in self._list_living()), default=self.now)
        return tuple(found or find_silence(self.in_flight, moved, self.now))

    def find_stage(self) -> int:
        """Return the place of the first stage under way, from 1; 0 where none is."""
        open_ = {work.what for work in self.work if work.open}
        return next((place for place, stage in enumerate(self.stages, 1) if stage in open_), 0)

    def _list_living(self) -> list[ProcessProgress]:
        return [process for process in self.processes if process.find_state(self.now) == "running"]


def place_progress(workspace: Workspace) -> Path:
    """Return the folder of the files of processes."""
    return workspace.logs / "progress"


def read_runs(workspace: Workspace) -> list[RunProgress]:
    """Return the runs of which processes have left files, the latest first; more than one only after a kill.

    A file that cannot be read is left out, as one that a full disk left empty: it is no record.
    """
    processes: list[ProcessProgress] = []
    for path in sorted(place_progress(workspace).glob("[!.]*.json")):
        # Its process may end meanwhile.
        with suppress(OSError, ConfigError):
            processes.append(read_model(path, ProcessProgress))
    runs = {process.run: None for process in processes}
    found = [merge_run([process for process in processes if process.run == run]) for run in runs]
    return sorted(found, key=lambda run: -run.started)


def merge_run(processes: Sequence[ProcessProgress]) -> RunProgress:
    """Return the run of its processes, at least one."""
    first = min(processes, key=lambda process: (process.role == "worker", process.started))
    return RunProgress(first.run, first.recipe, first.started, first.stages, tuple(processes), time.time())


def describe_waits(waits: Iterable[Wait], now: float) -> str:
    """Return what is waited for, for reading; empty for nothing."""
    said = []
    for wait in waits:
        several = f", {wait.requests:,} requests" if wait.requests > 1 else ""
        end = f", until {time.strftime('%H:%M:%S', time.localtime(wait.until))} at most" if wait.until else ""
        said.append(f"waiting {now - wait.since:,.0f} s for {wait.place} ({wait.cause}{several}){end}")
    return "; ".join(said)
