"""How far a run is: lines on stderr or bars on a terminal, a log, and one file that ``synth status`` reads."""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, TextIO

from pydantic import BaseModel

from pipelines.errors import SynthError
from pipelines.run.workspace import Workspace, read_model, write_model
from pipelines.secrets import mask_keys
from pipelines.services.traffic import Traffic, Wait, open_traffic

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

EVERY = 1.0
"""Seconds between two versions of the file."""
LOG_EVERY = 5.0
"""Seconds between two lines of the pieces under way."""
LEAST_WAIT, SAY_AGAIN = 5.0, 10.0
"""Seconds of a wait until its first note, and fewest seconds from one note to the next."""


@dataclass(slots=True)
class Piece:
    """A piece of work under way; ``total`` 0 is not known."""

    what: str = ""
    total: int = 0
    unit: str = "rows"
    done: int = 0
    task: "TaskID | None" = None

    def describe(self) -> str:
        """Return counts, such as ``paths 12/60 rows``."""
        return f"{self.what} {self.done:,}{f'/{self.total:,}' if self.total else ''} {self.unit}"


@dataclass(slots=True)
class Screen:
    """What the reporters of a process write to; without a stream, nothing."""

    out: TextIO | None = None
    bars: "Progress | None" = None
    log: TextIO | None = None
    pieces: list[Piece] = field(default_factory=list)
    said: float = field(default_factory=time.monotonic)

    def say(self, line: str) -> None:
        """Write a line to the stream and to the log."""
        if self.log is not None:
            with suppress(OSError):
                self.log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {mask_keys(line)}\n")
                self.log.flush()
        if self.bars is not None:
            self.bars.console.print(line, markup=False, highlight=False)
        elif self.out is not None:
            self.out.write(f"{line}\n")
            self.out.flush()

    def draw(self, piece: Piece) -> None:
        """Show how far a piece is: at once in its bar, and every five seconds in a line of all pieces."""
        if self.bars is not None and piece.task is not None:
            self.bars.update(piece.task, completed=piece.done)
        elif (now := time.monotonic()) - self.said >= LOG_EVERY:
            self.said = now
            self.say(" | ".join(each.describe() for each in self.pieces))


@dataclass(slots=True)
class Reporter:
    """Says how far a piece of work is, one after another."""

    screen: Screen = field(default_factory=Screen)
    piece: Piece = field(default_factory=Piece)

    def fork(self) -> Self:
        """Return a reporter for a piece beside this one's."""
        return type(self)(self.screen)

    def begin(self, what: str, total: int = 0, unit: str = "rows") -> None:
        """Start a piece; one that was not finished is dropped."""
        self._drop()
        self.piece = Piece(what, total, unit)
        if self.screen.bars is not None:
            self.piece.task = self.screen.bars.add_task(what, total=total or None)
        self.screen.pieces.append(self.piece)

    def advance(self, done: int) -> None:
        """Say how much of the piece is done by now."""
        self.piece.done = done
        self.screen.draw(self.piece)

    def note(self, text: str) -> None:
        """Say something while the piece goes on."""
        self.screen.say(f"{self.piece.what:<14} {text}".lstrip())

    def warn(self, text: str) -> None:
        """Say something that the user should look at."""
        self.screen.say(f"{'warning':<14} {text}")

    def finish(self, summary: str) -> None:
        """End the piece with one line."""
        self._drop()
        self.screen.say(f"{self.piece.what:<14} {summary}")
        self.piece = Piece()

    def _drop(self) -> None:
        self.screen.pieces[:] = [piece for piece in self.screen.pieces if piece is not self.piece]
        if self.screen.bars is not None and self.piece.task is not None:
            self.screen.bars.remove_task(self.piece.task)


def make_reporter(out: TextIO | None = None) -> Reporter:
    """Return a reporter that writes to a stream, stderr if none is given."""
    return Reporter(Screen(out or sys.stderr))


class StageProgress(BaseModel, frozen=True):
    """How far a piece of work is; ``total`` 0 is not known."""

    stage: str
    done: int
    total: int
    unit: str


class RunProgress(BaseModel, frozen=True):
    """``progress.json``: the last run that held a workspace; times are seconds since 1970."""

    run: str
    recipe: str
    pid: int
    host: str
    started: float
    written: float
    state: Literal["running", "stopped", "failed", "finished", "died"] = "running"
    error: str = ""
    stages: tuple[StageProgress, ...] = ()
    requests: int = 0
    recorded: int = 0
    in_flight: int = 0
    cost: float = 0.0
    waits: str = ""
    """What requests wait for."""


def read_progress(workspace: Workspace) -> RunProgress | None:
    """Return how far the last run is or came; None before any. One whose process is gone has died."""
    path = workspace.progress
    if not path.is_file():
        return None
    found = read_model(path, RunProgress)
    if found.state == "running" and found.host == socket.gethostname():
        try:
            os.kill(found.pid, 0)
        except ProcessLookupError:
            return found.model_copy(update={"state": "died"})
        except PermissionError:
            return found
    return found


@contextmanager
def following(reporter: Reporter) -> Iterator[Traffic]:
    """Count the requests of the block, and say what they wait for."""
    traffic = Traffic()
    with _repeating(_Waits(reporter, traffic).tell), open_traffic(traffic):
        yield traffic


@contextmanager
def following_run(reporter: Reporter, workspace: Workspace, run: str, recipe: str) -> Iterator[None]:
    """Show a run in the block: as bars on a terminal, in its log, and in the file of the workspace, which it holds."""
    screen, now = reporter.screen, time.time()
    first = RunProgress(run=run, recipe=recipe, pid=os.getpid(), host=socket.gethostname(), started=now, written=now)

    def write(state: str = "running", error: str = "") -> None:
        pieces = [StageProgress(stage=p.what, done=p.done, total=p.total, unit=p.unit) for p in list(screen.pieces)]
        usage, told = traffic.usage, {"state": state, "error": mask_keys(error), "written": time.time()}
        counts = {"requests": usage.calls, "recorded": usage.cached_calls, "cost": usage.cost}
        waits = mask_keys(describe_waits(traffic.list_waits(), time.time()))
        more = {"in_flight": traffic.in_flight, "stages": tuple(pieces), "waits": waits}
        # A disk that is full ends the run elsewhere; this is no record of anything.
        with suppress(OSError, SynthError):
            write_model(workspace.progress, first.model_copy(update=told | counts | more))

    with ExitStack() as held, following(reporter) as traffic:
        with suppress(OSError):
            workspace.logs.mkdir(parents=True, exist_ok=True)
            screen.log = held.enter_context((workspace.logs / f"{run or 'run'}.log").open("a", encoding="utf-8"))
        screen.bars = held.enter_context(_make_bars(screen.out)) if _is_watched(screen.out) else None
        try:
            with _repeating(write):
                yield
            write("finished")
        except KeyboardInterrupt:
            write("stopped")
            raise
        except BaseException as error:
            write("failed", str(error) or type(error).__name__)
            raise
        finally:
            screen.bars = screen.log = None


def _is_watched(out: TextIO | None) -> bool:
    # Some services for builds have terminals that nobody looks at.
    return bool(out and out.isatty()) and os.environ.get("TERM") not in ("dumb", "unknown") and not os.environ.get("CI")


def _make_bars(out: TextIO | None) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<14}", markup=False), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(file=out), transient=True, redirect_stdout=False)


@contextmanager
def _repeating(act: Callable[[], None]) -> Iterator[None]:
    """Act at once and then every second, in a thread, until the block ends."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(EVERY):
            act()

    act()
    thread = threading.Thread(target=repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass(slots=True)
class _Waits:
    """Tells what requests wait for: each wait after five seconds, then less and less often, as batches take hours."""

    reporter: Reporter
    traffic: Traffic
    due: dict[tuple[str, float], float] = field(default_factory=dict)
    """By place and beginning of a wait, the seconds after which it is told again."""

    def tell(self) -> None:
        now = time.time()
        for wait in self.traffic.list_waits():
            waited, key = now - wait.since, (wait.place, wait.since)
            if waited >= self.due.get(key, LEAST_WAIT):
                self.due[key] = waited + max(SAY_AGAIN, waited / 4)
                self.reporter.note(mask_keys(describe_waits([wait], now)))


def describe_waits(waits: list[Wait], now: float) -> str:
    """Return what is waited for, for reading; empty for nothing."""
    said = []
    for wait in waits:
        several = f", {wait.requests:,} requests" if wait.requests > 1 else ""
        end = f", until {time.strftime('%H:%M:%S', time.localtime(wait.until))} at most" if wait.until else ""
        said.append(f"waiting {now - wait.since:,.0f} s for {wait.place} ({wait.cause}{several}){end}")
    return "; ".join(said)


@contextmanager
def timing() -> Iterator[list[float]]:
    """Give a list that holds the seconds spent inside once it is left."""
    spent: list[float] = []
    started = time.monotonic()
    try:
        yield spent
    finally:
        spent.append(time.monotonic() - started)
