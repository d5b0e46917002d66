"""Run a command that ends when the process that started it does, with all of its own children.

``python supervisor.py SECONDS COMMAND...`` ties a command to its standard input: when that is closed, or the process at
its other end is killed, the supervisor terminates the command's process group and kills it after ``SECONDS``. A
kernel's death signal would reach the command without its workers. Only the standard library is used, for a fast start.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_BEAT = 0.1
"""Seconds between two checks of the command."""


def start_supervised(
    command: Sequence[str], environment: Mapping[str, str], log: Path, grace: float
) -> "subprocess.Popen[bytes]":
    """Start a command under a supervisor, with all its environment, and write its output to a new log.

    ``grace`` is the seconds between asking it to end and killing it. Closing the returned supervisor's ``stdin`` ends
    the command; its status is the command's.
    """
    holder = [sys.executable, "-I", "-S", str(Path(__file__)), str(grace), *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        # A session of its own: Ctrl-C at the terminal reaches only the caller, which then closes the input.
        return subprocess.Popen(
            holder, stdin=subprocess.PIPE, stdout=out, stderr=out, env=dict(environment), start_new_session=True
        )


def hold(grace: float, command: Sequence[str]) -> int:
    """Run a command until it ends or standard input is closed; return its exit status as shells write it."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    while process.poll() is None:
        ready, _, _ = select.select([0], [], [], _BEAT)
        if ready and not os.read(0, 1):
            _signal_group(process.pid, signal.SIGTERM)
            end = time.monotonic() + grace
            while process.poll() is None and time.monotonic() < end:
                time.sleep(_BEAT)
            break
    # Its workers can outlive it, however it ended.
    _signal_group(process.pid, signal.SIGKILL)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    # Only a closed input ends this; a signal would leave the command behind.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, lambda *_: None)
    sys.exit(hold(float(sys.argv[1]), sys.argv[2:]))
