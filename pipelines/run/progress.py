"""Saying how far a run is: a panel on a terminal, a plain line every few seconds elsewhere. Always on stderr."""

import logging
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

from pipelines.run.jsonlog import JsonLines, find_json_log, log_event
from schemas.manifest import ShardSidecar

if TYPE_CHECKING:
    from pipelines.run.panel import Panel
    from pipelines.run.underway import RunProgress

LOG_EVERY = 5.0


Arrived = Callable[[], tuple[int, int]]
"""Returns how many rows and how many shards of a piece are there by now, done or not."""
Look = Callable[[], "RunProgress"]
"""Returns a run as it is now."""
NONE: Mapping[str, float] = MappingProxyType({})


class Reporter:
    """Receives the progress of a run, a piece of work at a time; this one says nothing."""

    def plan(self, stages: Sequence[str]) -> None:
        """Say which stages the run goes through, in order."""

    def begin(self, what: str, total: int, unit: str, arrived: Arrived = lambda: (0, 0)) -> None:
        """Start a piece of work; ``total`` 0 means unknown."""

    def advance(self, done: int, outcome: str = "") -> None:
        """Say how much of the piece is done by now, and how the last row ended: kept, rejected or failed."""

    def watch(self, describe: Callable[[], str]) -> None:
        """Show what this returns, unless it is empty, beside the counts of each piece from now on."""

    def note(self, text: str, passing: bool = False) -> None:
        """Say something while the piece goes on; ``passing``: a panel shows it anyway, as long as it is so."""

    def warn(self, text: str) -> None:
        """Say something that the user should look at."""

    def file_shard(self, sidecar: ShardSidecar) -> None:
        """Say that a shard of the piece is written."""

    def finish(self, summary: str, counts: Mapping[str, float] = NONE) -> None:
        """End the piece with one line, and with the numbers that it tells by name."""

    def fork(self) -> "Reporter":
        """Return a reporter for a piece beside this one's; both are shown in one line."""
        return self

    def showing(self, look: Look, log: Path) -> AbstractContextManager[None]:
        """Show a run while the block lasts, and write its lines to its log file."""
        return nullcontext()


class SilentReporter(Reporter):
    """Says nothing; for tests and workers."""


@dataclass(slots=True)
class Piece:
    """A piece of work under way."""

    what: str = ""
    total: int = 0
    unit: str = ""
    started: float = 0.0
    """By the clock of ``time.monotonic``."""
    arrived: Arrived = lambda: (0, 0)
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Rows by how they ended."""
    shards: int = 0
    """Shards that were written."""

    def find_backlog(self) -> tuple[int, int]:
        """Return how many rows and shards are there and not done."""
        rows, shards = self.arrived()
        return max(rows - self.done, 0), max(shards - self.shards, 0)

    def find_rate(self, now: float) -> float:
        """Return units a second since the piece began."""
        return self.done / max(now - self.started, 1e-9)

    def describe(self, now: float) -> str:
        """Return counts, rate and time left."""
        rate = self.find_rate(now)
        whole = f"/{self.total:,}" if self.total else ""
        line = f"{self.what:<14} {self.done:,}{whole} {self.unit}, {rate:,.0f}/s"
        if self.total and rate > 0:
            line += f", {max(self.total - self.done, 0) / rate:,.0f} s left"
        return line


@dataclass(slots=True)
class _Lines:
    """The pieces under way, and when a line of them was last written."""

    pieces: list[Piece] = field(default_factory=list)
    said: float = 0.0
    describe: Callable[[], str] = field(default=lambda: "")
    """Returns what a line adds to them."""
    panel: "Panel | None" = None
    log: logging.Logger | None = None
    """Into the run's file."""


@dataclass(slots=True)
class LogReporter(Reporter):
    """Plain lines: one when a piece ends, and one of all pieces under way every five seconds."""

    out: TextIO = field(default_factory=lambda: sys.stderr)
    live: bool = False
    """Rewrite one line in place, as on a terminal."""
    _lines: _Lines = field(default_factory=_Lines)
    _piece: Piece = field(default_factory=Piece)

    def fork(self) -> "LogReporter":
        """Return a reporter with its own piece in the same lines."""
        return LogReporter(self.out, self.live, self._lines)

    def begin(self, what: str, total: int, unit: str, arrived: Arrived = lambda: (0, 0)) -> None:
        """Remember the piece; one that was not finished is dropped."""
        self._drop()
        now = time.monotonic()
        self._piece = Piece(what, total, unit, now)
        if not self._lines.pieces:
            self._lines.said = now
        self._lines.pieces.append(self._piece)

    def advance(self, done: int, outcome: str = "") -> None:
        """Show counts, rate and time left, not more often than every five seconds (a tenth on a terminal)."""
        now, self._piece.done = time.monotonic(), done
        if now - self._lines.said < (0.1 if self.live and self._lines.panel is None else LOG_EVERY):
            return
        self._lines.said = now
        line = " | ".join(piece.describe(now) for piece in self._lines.pieces if piece.done or piece is self._piece)
        if beside := self._lines.describe():
            line += f"; {beside}"
        # A line that wraps cannot be rewritten in place.
        self._write(line[: shutil.get_terminal_size().columns - 1] if self.live else line, keep=not self.live)

    def watch(self, describe: Callable[[], str]) -> None:
        """Show what this returns from now on."""
        self._lines.describe = describe

    def note(self, text: str, passing: bool = False) -> None:
        """Say it on a line of its own."""
        self._write(f"{self._piece.what:<14} {text}".lstrip(), keep=not (passing and self._lines.panel))

    def warn(self, text: str) -> None:
        """Say it on a line that begins so."""
        self._write(f"{'warning':<14} {text}", keep=True)

    def finish(self, summary: str, counts: Mapping[str, float] = NONE) -> None:
        """Say how the piece ended; what is noted later is not of it."""
        self._drop()
        self._write(f"{self._piece.what:<14} {summary}", keep=True)
        self._piece = Piece()

    def _drop(self) -> None:
        self._lines.pieces[:] = [piece for piece in self._lines.pieces if piece is not self._piece]

    @contextmanager
    def showing(self, look: Look, log: Path) -> Iterator[None]:
        """Show a panel on a terminal; a log file that cannot be opened ends no run."""
        # Imported here: a worker shows nothing.
        from pipelines.run.jsonlog import open_run_log
        from pipelines.run.panel import open_panel

        with ExitStack() as held:
            try:
                self._lines.log = held.enter_context(open_run_log(log))
            except OSError as error:
                self.warn(f"no log is written: {error}")
            if self.live:
                self._lines.panel = held.enter_context(open_panel(self.out, look, log))
            try:
                yield
            finally:
                self._lines.log = self._lines.panel = None

    def _write(self, line: str, keep: bool) -> None:
        if self._lines.log is not None:
            self._lines.log.info("%s", line)
        if self._lines.panel is not None:
            if keep:
                self._lines.panel.say(line)
            return
        start = "\r\x1b[2K" if self.live else ""
        self.out.write(start + line + ("\n" if keep else ""))
        self.out.flush()


@dataclass(slots=True)
class JsonReporter(Reporter):
    """Logs an event a line: what begins, goes on every five seconds and ends, and each shard."""

    _piece: Piece = field(default_factory=Piece)
    _said: float = 0.0

    def fork(self) -> "JsonReporter":
        """Return a reporter with its own piece."""
        return JsonReporter()

    def plan(self, stages: Sequence[str]) -> None:
        """Log the stages."""
        log_event("stages", f"{len(stages)} stages", {"stages": list(stages)})

    def begin(self, what: str, total: int, unit: str, arrived: Arrived = lambda: (0, 0)) -> None:
        """Log that a piece begins."""
        self._said = time.monotonic()
        self._piece = Piece(what, total, unit, self._said, arrived)
        log_event("begin", f"{what} begins", {"stage": what, "total": total, "unit": unit})

    def advance(self, done: int, outcome: str = "") -> None:
        """Log how far the piece is, not more often than every five seconds."""
        now, self._piece.done = time.monotonic(), done
        if now - self._said < LOG_EVERY:
            return
        self._said, piece = now, self._piece
        rate, (rows, shards) = piece.find_rate(now), piece.find_backlog()
        left = round(max(piece.total - done, 0) / rate, 1) if piece.total and rate else None
        keys = {"stage": piece.what, "done": done, "total": piece.total, "unit": piece.unit, "rate": round(rate, 3)}
        more = {"seconds_left": left, "backlog_rows": rows, "backlog_shards": shards}
        log_event("progress", " ".join(piece.describe(now).split()), keys | more)

    def note(self, text: str, passing: bool = False) -> None:
        """Log a note."""
        log_event("note", text, self._name_stage())

    def warn(self, text: str) -> None:
        """Log a warning."""
        log_event("warning", text, self._name_stage(), logging.WARNING)

    def file_shard(self, sidecar: ShardSidecar) -> None:
        """Log a shard."""
        self._piece.shards += 1
        lost = sum(sidecar.rejected.values())
        keys = {"stage": self._piece.what, "shard": sidecar.shard, "rows_in": sidecar.rows_in, "kept": sidecar.kept}
        more = {"rejected": lost, "failed": sidecar.failed, "rows_out": sidecar.rows_out}
        log_event("shard", f"shard {sidecar.shard} is written", keys | more | {"seconds": round(sidecar.seconds, 3)})

    @contextmanager
    def showing(self, look: Look, log: Path) -> Iterator[None]:
        """Write the log to the run's file, too."""
        with ExitStack() as held:
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
                file = JsonLines(held.enter_context(log.open("a", encoding="utf-8")))
            except OSError as error:
                self.warn(f"no log is written: {error}")
            else:
                file.run = log.stem
                logging.root.addHandler(file)
                held.callback(logging.root.removeHandler, file)
            yield

    def finish(self, summary: str, counts: Mapping[str, float] = NONE) -> None:
        """Log how the piece ended."""
        log_event("end", summary, {**self._name_stage(), **counts})
        self._piece = Piece()

    def _name_stage(self) -> dict[str, str]:
        return {"stage": self._piece.what} if self._piece.what else {}


def make_reporter(out: TextIO | None = None) -> Reporter:
    """Return a reporter that suits the log of this process and the stream: JSON, live on a terminal, else plain."""
    if find_json_log() is not None:
        return JsonReporter()
    stream = out or sys.stderr
    # Some services for builds have terminals that nobody looks at.
    is_watched = os.environ.get("TERM") not in ("dumb", "unknown") and not os.environ.get("CI")
    return LogReporter(stream, live=stream.isatty() and is_watched)


@contextmanager
def timing() -> Iterator[list[float]]:
    """Give a list that holds the seconds spent inside once it is left."""
    spent: list[float] = []
    started = time.monotonic()
    try:
        yield spent
    finally:
        spent.append(time.monotonic() - started)
