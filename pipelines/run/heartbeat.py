"""The heartbeat of a process of a run: its file in the workspace, the metrics, and notes of what it waits for.

A thread writes them, so that they come also while a stage computes or waits. They are as cheap as a file every two
seconds: a row only adds to a count.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from pipelines.errors import CorruptInput
from pipelines.files import make_temp_path
from pipelines.run.jsonlog import find_json_log
from pipelines.run.metrics import write_metrics
from pipelines.run.progress import NONE, Arrived, Look, Piece, Reporter
from pipelines.run.underway import (
    ProcessProgress,
    Role,
    RunProgress,
    WaitProgress,
    WorkProgress,
    describe_waits,
    find_host,
    find_silence,
    merge_run,
    place_progress,
    read_runs,
)
from pipelines.run.workspace import Workspace
from pipelines.secrets import mask_keys
from pipelines.services.traffic import Traffic, Wait, open_traffic
from schemas.manifest import ShardSidecar

EVERY = 2.0
"""Seconds between two heartbeats."""
SUM_EVERY = 5
"""Heartbeats after which the metrics are written."""
LEAST_WAIT = 5.0
"""Seconds of a wait that are worth a note."""
SAY_AGAIN = 10.0
"""Fewest seconds between two notes of one wait."""


@dataclass(slots=True)
class WorkBoard:
    """The work of this process: what is under way, and by name what it did of each before."""

    stages: tuple[str, ...] = ()
    open: list[Piece] = field(default_factory=list)
    ended: dict[str, WorkProgress] = field(default_factory=dict)

    def leave(self, piece: Piece) -> None:
        """Take a piece from those that are under way."""
        if any(each is piece for each in self.open):
            self.open = [each for each in self.open if each is not piece]
            done = _describe_piece(piece, False)
            self.ended[piece.what] = self.ended[piece.what] + done if piece.what in self.ended else done

    def describe(self) -> tuple[WorkProgress, ...]:
        """Return all work, in the order in which it began."""
        found = dict(self.ended)
        for piece in self.open:
            work = _describe_piece(piece, True)
            found[piece.what] = found[piece.what] + work if piece.what in found else work
        return tuple(found.values())


def _describe_piece(piece: Piece, is_open: bool) -> WorkProgress:
    rows, shards = piece.find_backlog() if is_open else (0, 0)
    rate = piece.find_rate(time.monotonic()) if is_open else 0.0
    return WorkProgress(
        what=piece.what,
        unit=piece.unit,
        done=piece.done,
        total=piece.total,
        outcomes=dict(piece.outcomes),
        shards=piece.shards,
        backlog_rows=rows,
        backlog_shards=shards,
        rate=round(rate, 3),
        open=is_open,
    )


@dataclass(slots=True)
class FollowedReporter(Reporter):
    """Notes on a board what it passes on to another reporter."""

    inner: Reporter
    board: WorkBoard
    piece: Piece = field(default_factory=Piece)
    by_row: bool = False
    """Whether the rows of the piece are counted one by one."""

    def plan(self, stages: Sequence[str]) -> None:
        """Note the stages."""
        self.board.stages = tuple(stages)
        self.inner.plan(stages)

    def begin(self, what: str, total: int, unit: str, arrived: Arrived = lambda: (0, 0)) -> None:
        """Note the piece; one that was not finished has ended."""
        self.board.leave(self.piece)
        self.piece, self.by_row = Piece(what, total, unit, time.monotonic(), arrived), False
        self.board.open = [*self.board.open, self.piece]
        self.inner.begin(what, total, unit, arrived)

    def advance(self, done: int, outcome: str = "") -> None:
        """Count."""
        self.piece.done = done
        if outcome:
            self.by_row = True
            self.piece.outcomes[outcome] += 1
        self.inner.advance(done, outcome)

    def watch(self, describe: Callable[[], str]) -> None:
        """Pass it on."""
        self.inner.watch(describe)

    def note(self, text: str, passing: bool = False) -> None:
        """Pass it on."""
        self.inner.note(text, passing)

    def warn(self, text: str) -> None:
        """Pass it on."""
        self.inner.warn(text)

    def file_shard(self, sidecar: ShardSidecar) -> None:
        """Count it, and its rows where they were not counted one by one."""
        self.piece.shards += 1
        if not self.by_row:
            counts = {"kept": sidecar.kept, "rejected": sum(sidecar.rejected.values()), "failed": sidecar.failed}
            self.piece.outcomes.update(counts)
            self.piece.done += sidecar.rows_in
        self.inner.file_shard(sidecar)

    def finish(self, summary: str, counts: Mapping[str, float] = NONE) -> None:
        """Note the end."""
        self.board.leave(self.piece)
        self.inner.finish(summary, counts)

    def fork(self) -> "FollowedReporter":
        """Return a reporter for a piece beside this one's."""
        return FollowedReporter(self.inner.fork(), self.board)

    def showing(self, look: Look, log: Path) -> AbstractContextManager[None]:
        """Pass it on."""
        return self.inner.showing(look, log)


@dataclass(slots=True)
class ToldWaits:
    """When to repeat the note of each wait."""

    _due: dict[tuple[str, float], float] = field(default_factory=dict)
    """By place and beginning of a wait, the seconds after which its note is repeated."""

    def tell(self, waits: Iterable[Wait], reporter: Reporter) -> None:
        """Tell each wait every ten seconds, and less often as it grows long: batches take hours."""
        now = time.time()
        due = [wait for wait in waits if now - wait.since >= self._due.get((wait.place, wait.since), LEAST_WAIT)]
        if due:
            reporter.note(mask_keys(describe_waits(due, now)), passing=True)
        for wait in due:
            waited = now - wait.since
            self._due[wait.place, wait.since] = waited + max(SAY_AGAIN, waited / 4)


@contextmanager
def telling_waits(reporter: Reporter) -> Iterator[None]:
    """Tell what requests of the block wait for; for commands that are no run, and for a run before it has a name."""
    traffic, told, stop = Traffic(), ToldWaits(), threading.Event()

    def watch() -> None:
        while not stop.wait(EVERY):
            silent = find_silence(traffic.in_flight, traffic.moved, time.time())
            told.tell(traffic.list_waits() or silent, reporter)

    thread = threading.Thread(target=watch, name="waits", daemon=True)
    thread.start()
    try:
        with open_traffic(traffic):
            yield
    finally:
        stop.set()
        thread.join()


@dataclass(slots=True)
class Pulse:
    """Writes what a process does to its file, from a thread of its own, until it is stopped."""

    workspace: Workspace
    identity: ProcessProgress
    """What never changes of the file."""
    path: Path
    reporter: Reporter
    """Told what the run waits for."""
    board: WorkBoard = field(default_factory=WorkBoard)
    traffic: Traffic = field(default_factory=Traffic)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _refused: str = ""
    _others: tuple[ProcessProgress, ...] = ()
    """Of the run, as they were seen last."""
    _told: ToldWaits = field(default_factory=ToldWaits)

    def start(self) -> None:
        """Write the file and go on with it; a driver removes what killed processes have left."""
        if self.identity.role == "driver":
            self._try(lambda: clear_progress(self.workspace))
        self._try(lambda: self.write(False))
        if (log := find_json_log()) is not None:
            log.run = self.identity.run
        self._thread = threading.Thread(target=self.beat, name="progress", daemon=True)
        self._thread.start()

    @contextmanager
    def following(self) -> Iterator[Reporter]:
        """Count the requests of the block, and what the yielded reporter gets."""
        with open_traffic(self.traffic):
            yield FollowedReporter(self.reporter, self.board)

    def beat(self) -> None:
        """Write the file again and again until the process stops."""
        beats = 0
        while not self._stop.wait(EVERY):
            beats += 1
            self._try(lambda: self.write(False))
            if self.identity.role == "driver":
                self._try(self._look_around)
                if beats % SUM_EVERY == 0:
                    self._try(lambda: write_metrics(place_metrics(self.workspace), self.look()))

    def end(self) -> None:
        """Write the file for the last time; a driver then writes the metrics and removes the files of all."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._try(lambda: self.write(True))
        if self.identity.role == "driver":
            self._try(lambda: write_metrics(place_metrics(self.workspace), find_run(self.workspace, self.identity.run)))
            self._try(lambda: clear_progress(self.workspace))

    def write(self, ended: bool) -> None:
        """Write the file; it is no record, so it is not flushed to disk.

        Raises:
            OSError: if it cannot be written.
        """
        temp = make_temp_path(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temp.write_text(self.describe(ended).model_dump_json() + "\n", encoding="utf-8")
            temp.replace(self.path)
        finally:
            temp.unlink(missing_ok=True)

    def describe(self, ended: bool = False) -> ProcessProgress:
        """Return what this process does now."""
        traffic = self.traffic
        waits = (WaitProgress(**asdict(replace(w, cause=mask_keys(w.cause)))) for w in traffic.list_waits())
        update = {
            "heard": time.time(),
            "ended": ended,
            "stages": self.board.stages,
            "work": self.board.describe(),
            "in_flight": traffic.in_flight,
            "failures": traffic.failures,
            "moved": traffic.moved,
            "usage": traffic.usage,
            "waits": tuple(waits),
        }
        return self.identity.model_copy(update=update)

    def look(self) -> RunProgress:
        """Return the run: this process as it is now, the others as they were seen last."""
        return merge_run([self.describe(), *self._others])

    def _look_around(self) -> None:
        own, run = self.identity, find_run(self.workspace, self.identity.run)
        mine = (own.host, own.space, own.pid)
        self._others = tuple(each for each in run.processes if (each.host, each.space, each.pid) != mine) if run else ()
        self._told.tell(self.look().waits, self.reporter)

    def _try(self, act: Callable[[], None]) -> None:
        """Act; warn once of a refusal, as a run goes on without anybody to look at it."""
        try:
            act()
        except (OSError, CorruptInput) as error:
            if str(error) != self._refused:
                self._refused = str(error)
                self.reporter.warn(f"progress cannot be written: {error}")


def find_run(workspace: Workspace, name: str) -> RunProgress | None:
    """Return a run as its processes tell of it.

    Raises:
        CorruptInput: if a file is damaged.
    """
    return next((run for run in read_runs(workspace) if run.run == name), None)


def place_metrics(workspace: Workspace) -> Path:
    """Return the file of a workspace for Prometheus."""
    return workspace.logs / "metrics.prom"


def clear_progress(workspace: Workspace) -> None:
    """Remove the files of processes; for the holder of the workspace: nobody else runs in it."""
    for path in place_progress(workspace).glob("*"):
        path.unlink(missing_ok=True)


def start_pulse(
    workspace: Workspace, run: str, reporter: Reporter, recipe: str = "", role: Role = "driver", money: float = 0.0
) -> Pulse:
    """Begin the heartbeat of this process, until :meth:`Pulse.end`.

    Args:
        workspace: of the run. A driver holds it, and removes the files of processes when it begins and ends; the file
            of a worker stays for the driver's sums.
        run: its name, the same in all its processes; the part that names the workspace is not shown.
        reporter: gets what the followed one gets, and from a driver what all processes wait for.
        recipe: of the run.
        role: of this process.
        money: the most that the run may spend; 0 is no limit.
    """
    (host, space), run = find_host(), run.rpartition("/")[2]
    now = time.time()
    identity = ProcessProgress(
        run=run, recipe=recipe, role=role, host=host, space=space, pid=os.getpid(), started=now, money=money, heard=now
    )
    path = place_progress(workspace) / f"{quote(host, safe='')}-{os.getpid()}-{uuid4().hex[:4]}.json"
    pulse = Pulse(workspace, identity, path, reporter)
    pulse.start()
    return pulse


@contextmanager
def open_progress(
    workspace: Workspace, run: str, reporter: Reporter, recipe: str = "", money: float = 0.0
) -> Iterator[Reporter]:
    """Show others a run that this process drives, by what the yielded reporter receives, and write it to its log."""
    pulse = start_pulse(workspace, run, reporter, recipe, "driver", money)
    log = workspace.logs / f"{pulse.identity.run}.log"
    try:
        with reporter.showing(pulse.look, log), pulse.following() as followed:
            yield followed
    finally:
        pulse.end()
