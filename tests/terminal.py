"""A command in a terminal of its own, and the screen as a person sees it."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyte

PATIENCE = 600.0


def _take_terminal():
    """Make the terminal the child's own, whose end it hears of, although `nohup` may have kept that from the tests."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@dataclass
class Terminal:
    """A terminal of so many columns and lines that runs Python with arguments; stdout may go to a file instead."""

    arguments: list[str]
    columns: int = 80
    lines: int = 24
    stdout: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""

    def __post_init__(self):
        self.screen = pyte.HistoryScreen(self.columns, self.lines, history=2000)
        self._stream = pyte.ByteStream(self.screen)
        self._master, inner = pty.openpty()
        self._set_size()
        left_out = ("CI", "NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR")
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        out = self.stdout.open("wb") if self.stdout else inner
        self.process = subprocess.Popen(
            [sys.executable, *self.arguments],
            stdin=inner,
            stdout=out,
            stderr=inner,
            env=kept | {"TERM": "xterm-256color", "PYTHONPATH": str(Path.cwd())} | self.environment,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(inner)
        if self.stdout:
            out.close()

    def _set_size(self):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", self.lines, self.columns, 0, 0))

    def resize(self, columns, lines):
        """Change the size as a person does with the window's edge; lines are cut, as by xterm."""
        self.columns, self.lines = columns, lines
        self.screen.resize(lines, columns)
        self._set_size()

    def read(self, seconds=0.1):
        """Take what was written for so many seconds; False once the terminal is closed."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                try:
                    data = os.read(self._master, 65536)
                except OSError:  # all who wrote have ended
                    return False
                self.raw += data
                self._stream.feed(data)
        return True

    def type(self, keys: bytes):
        os.write(self._master, keys)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def shown(self) -> str:
        """What has scrolled away and what is on the screen."""
        top = ["".join(line[x].data for x in range(self.columns)).rstrip() for line in self.screen.history.top]
        return "\n".join([*top, self.text])

    def wait_for(self, test, patience=PATIENCE):
        """Read until the text on the screen passes a test, and return it."""
        end = time.monotonic() + patience
        while not test(self.text):
            assert self.read(), f"it ended before:\n{self.shown}"
            assert time.monotonic() < end, self.shown
        return self.text

    def finish(self, patience=PATIENCE) -> int:
        """Read to the end and return the exit code."""
        end = time.monotonic() + patience
        while self.read() and self.process.poll() is None:
            assert time.monotonic() < end, self.shown
        self.read(0.5)
        return self.process.wait(patience)

    def hang_up(self, patience=PATIENCE) -> int:
        """Close it as a person closes the window, and return the exit code."""
        os.close(self._master)
        self._master = -1
        return self.process.wait(patience)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)
