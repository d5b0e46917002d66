"""Saying how far a run is: a live bar on a terminal, a plain log line every few seconds elsewhere. Always on stderr."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TextIO

LOG_EVERY = 5.0


class Reporter(Protocol):
    """Receives the progress of a run, a piece of work at a time."""

    def begin(self, what: str, total: int, unit: str) -> None:
        """Start a piece of work; ``total`` 0 means unknown."""

    def advance(self, done: int) -> None:
        """Say how much of the piece is done by now."""

    def watch(self, describe: Callable[[], str]) -> None:
        """Show what this returns, unless it is empty, beside the counts of each piece from now on."""

    def note(self, text: str) -> None:
        """Say something while the piece goes on."""

    def finish(self, summary: str) -> None:
        """End the piece with one line."""

    def fork(self) -> "Reporter":
        """Return a reporter for a piece beside this one's; both are shown in one line."""


@dataclass(slots=True)
class SilentReporter:
    """Says nothing; for tests and workers."""

    def begin(self, what: str, total: int, unit: str) -> None:
        """Say nothing."""

    def advance(self, done: int) -> None:
        """Say nothing."""

    def watch(self, describe: Callable[[], str]) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def finish(self, summary: str) -> None:
        """Say nothing."""

    def fork(self) -> "SilentReporter":
        """Return this one."""
        return self


@dataclass(slots=True)
class _Piece:
    """A piece of work under way."""

    what: str = ""
    total: int = 0
    unit: str = ""
    started: float = 0.0
    done: int = 0

    def describe(self, now: float) -> str:
        """Return counts, rate and time left."""
        rate = self.done / max(now - self.started, 1e-9)
        whole = f"/{self.total:,}" if self.total else ""
        line = f"{self.what:<14} {self.done:,}{whole} {self.unit}, {rate:,.0f}/s"
        if self.total and rate > 0:
            line += f", {max(self.total - self.done, 0) / rate:,.0f} s left"
        return line


@dataclass(slots=True)
class _Board:
    """The pieces under way, and when a line of them was last written."""

    pieces: list[_Piece] = field(default_factory=list)
    said: float = 0.0
    describe: Callable[[], str] = field(default=lambda: "")
    """What is told beside them."""


@dataclass(slots=True)
class LogReporter:
    """Plain lines: one when a piece ends, and one of all pieces under way every five seconds."""

    out: TextIO = field(default_factory=lambda: sys.stderr)
    live: bool = False
    """Rewrite one line in place, as on a terminal."""
    _board: _Board = field(default_factory=_Board)
    _piece: _Piece = field(default_factory=_Piece)

    def fork(self) -> "LogReporter":
        """Return a reporter with its own piece on the same board."""
        return LogReporter(self.out, self.live, self._board)

    def begin(self, what: str, total: int, unit: str) -> None:
        """Remember the piece; one that was not finished is dropped."""
        self._drop()
        now = time.monotonic()
        self._piece = _Piece(what, total, unit, now)
        if not self._board.pieces:
            self._board.said = now
        self._board.pieces.append(self._piece)

    def advance(self, done: int) -> None:
        """Show counts, rate and time left, not more often than every five seconds (a tenth on a terminal)."""
        now, self._piece.done = time.monotonic(), done
        if now - self._board.said < (0.1 if self.live else LOG_EVERY):
            return
        self._board.said = now
        line = " | ".join(piece.describe(now) for piece in self._board.pieces if piece.done or piece is self._piece)
        if beside := self._board.describe():
            line += f"; {beside}"
        # A line that wraps cannot be rewritten in place.
        self._write(line[: shutil.get_terminal_size().columns - 1] if self.live else line, keep=not self.live)

    def watch(self, describe: Callable[[], str]) -> None:
        """Show what this returns from now on."""
        self._board.describe = describe

    def note(self, text: str) -> None:
        """Say it on a line of its own."""
        self._write(f"{self._piece.what:<14} {text}", keep=True)

    def finish(self, summary: str) -> None:
        """Say how the piece ended."""
        self._drop()
        self._write(f"{self._piece.what:<14} {summary}", keep=True)

    def _drop(self) -> None:
        self._board.pieces[:] = [piece for piece in self._board.pieces if piece is not self._piece]

    def _write(self, line: str, keep: bool) -> None:
        start = "\r\x1b[2K" if self.live else ""
        self.out.write(start + line + ("\n" if keep else ""))
        self.out.flush()


def make_reporter(out: TextIO | None = None) -> LogReporter:
    """Return a reporter that suits the stream: live on a terminal, plain elsewhere."""
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
