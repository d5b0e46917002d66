"""Run a command that ends when whoever started it does, with all that it started in turn.

``python leash.py SECONDS COMMAND...`` holds a command by its standard input: when that is closed, on purpose or because
the process at its other end was killed, the command's whole process group is asked to end and, after ``SECONDS``,
killed. A signal that the kernel sends at a parent's death would reach the command alone and not its workers, and would
be sent when the thread that started it ends. Standard library alone, so that it starts at once.
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
"""Seconds between two looks at the command."""


def start_leashed(
    command: Sequence[str], environment: Mapping[str, str], log: Path, grace: float
) -> "subprocess.Popen[bytes]":
    """Start a command on a leash; a log file has what it says.

    Args:
        command: program and arguments.
        environment: all of its variables.
        log: file, written anew; its folder is made.
        grace: seconds from being asked to end to being killed.

    Returns:
        The process that holds the leash. Closing its ``stdin`` ends the command; its status is the command's.
    """
    holder = [sys.executable, "-I", "-S", str(Path(__file__)), str(grace), *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        # A session of its own: Ctrl-C at the terminal is for whoever started this, which then lets go in order.
        return subprocess.Popen(
            holder, stdin=subprocess.PIPE, stdout=out, stderr=out, env=dict(environment), start_new_session=True
        )


def hold(grace: float, command: Sequence[str]) -> int:
    """Run a command until it ends or standard input is closed.

    Returns:
        Its exit status, as shells write it.
    """
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    while process.poll() is None:
        ready, _, _ = select.select([0], [], [], _BEAT)
        if ready and not os.read(0, 1):
            _signal_group(process.pid, signal.SIGTERM)
            _wait_for(process, grace)
            break
    # Its workers can outlive it, however it ended.
    _signal_group(process.pid, signal.SIGKILL)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _wait_for(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        time.sleep(_BEAT)


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    # Whoever wants this to end closes its input; a signal would leave the command behind.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, lambda *_: None)
    sys.exit(hold(float(sys.argv[1]), sys.argv[2:]))
