"""Saying how far a run is: a live bar on a terminal, a plain log line every few seconds elsewhere. Always on stderr."""

import logging
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TextIO

from pipelines.run.jsonlog import find_json_log, log_event
from schemas.manifest import ShardSidecar

LOG_EVERY = 5.0


Arrived = Callable[[], tuple[int, int]]
"""Returns how many rows and how many shards of a piece are there by now, done or not."""
NONE: Mapping[str, float] = MappingProxyType({})


class Reporter(Protocol):
    """Receives the progress of a run, a piece of work at a time."""

    def plan(self, stages: Sequence[str]) -> None:
        """Say which stages the run goes through, in order."""

    def begin(self, what: str, total: int, unit: str, arrived: Arrived = lambda: (0, 0)) -> None:
        """Start a piece of work; ``total`` 0 means unknown."""

    def advance(self, done: int, outcome: str = "") -> None:
        """Say how much of the piece is done by now, and how the last row ended: kept, rejected or failed."""

    def watch(self, describe: Callable[[], str]) -> None:
        """Show what this returns, unless it is empty, beside the counts of each piece from now on."""

    def note(self, text: str) -> None:
        """Say something while the piece goes on."""

    def warn(self, text: str) -> None:
        """Say something that the user should look at."""

    def file_shard(self, sidecar: ShardSidecar) -> None:
        """Say that a shard of the piece is written."""

    def finish(self, summary: str, counts: Mapping[str, float] = NONE) -> None:
        """End the piece with one line, and with the numbers that it tells by name."""

    def fork(self) -> "Reporter":
        """Return a reporter for a piece beside this one's; both are shown in one line."""


@dataclass(slots=True)
class SilentReporter:
    """Says nothing; for tests and workers."""

    def plan(self, stages: Sequence[str]) -> None:
        """Say nothing."""

    def begin(self, what: str, total: int, unit: str, arrived: Arrived = lambda: (0, 0)) -> None:
        """Say nothing."""

    def advance(self, done: int, outcome: str = "") -> None:
        """Say nothing."""

    def watch(self, describe: Callable[[], str]) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def warn(self, text: str) -> None:
        """Say nothing."""

    def file_shard(self, sidecar: ShardSidecar) -> None:
        """Say nothing."""

    def finish(self, summary: str, counts: Mapping[str, float] = NONE) -> None:
        """Say nothing."""

    def fork(self) -> "SilentReporter":
        """Return this one."""
        return self


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
    """What is told beside them."""


@dataclass(slots=True)
class LogReporter(SilentReporter):
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
        if now - self._lines.said < (0.1 if self.live else LOG_EVERY):
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

    def note(self, text: str) -> None:
        """Say it on a line of its own."""
        self._write(f"{self._piece.what:<14} {text}", keep=True)

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

    def _write(self, line: str, keep: bool) -> None:
        start = "\r\x1b[2K" if self.live else ""
        self.out.write(start + line + ("\n" if keep else ""))
        self.out.flush()


@dataclass(slots=True)
class JsonReporter(SilentReporter):
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

    def note(self, text: str) -> None:
        """Log what is said."""
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
    return LogReporter(stream, live=stream.isatty())


@contextmanager
def timing() -> Iterator[list[float]]:
    """Give a list that holds the seconds spent inside once it is left."""
    spent: list[float] = []
    started = time.monotonic()
    try:
        yield spent
    finally:
        spent.append(time.monotonic() - started)
