"""Saying how far a run is: a live bar on a terminal, a plain log line every few seconds elsewhere. Always on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TextIO

LOG_EVERY = 5.0


class Reporter(Protocol):
    """Receives the progress of a run."""

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


@dataclass(slots=True)
class LogReporter:
    """Plain lines: one when a piece ends, and one every five seconds while it lasts."""

    out: TextIO = field(default_factory=lambda: sys.stderr)
    live: bool = False
    """Rewrite one line in place, as on a terminal."""
    _what: str = ""
    _unit: str = ""
    _total: int = 0
    _started: float = 0.0
    _said: float = 0.0
    _describe: Callable[[], str] = field(default=lambda: "")

    def begin(self, what: str, total: int, unit: str) -> None:
        """Remember the piece."""
        self._what, self._total, self._unit = what, total, unit
        self._started = self._said = time.monotonic()

    def advance(self, done: int) -> None:
        """Show counts, rate and time left, not more often than every five seconds (a tenth on a terminal)."""
        now = time.monotonic()
        if now - self._said < (0.1 if self.live else LOG_EVERY):
            return
        self._said = now
        rate = done / max(now - self._started, 1e-9)
        line = (
            f"{self._what:<14} {done:,}"
            + (f"/{self._total:,}" if self._total else "")
            + f" {self._unit}, {rate:,.0f}/s"
        )
        if self._total and rate > 0:
            line += f", {max(self._total - done, 0) / rate:,.0f} s left"
        beside = self._describe()
        self._write(f"{line}; {beside}" if beside else line, keep=not self.live)

    def watch(self, describe: Callable[[], str]) -> None:
        """Show what this returns from now on."""
        self._describe = describe

    def note(self, text: str) -> None:
        """Say it on a line of its own."""
        self._write(f"{self._what:<14} {text}", keep=True)

    def finish(self, summary: str) -> None:
        """Say how the piece ended."""
        self._write(f"{self._what:<14} {summary}", keep=True)

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
