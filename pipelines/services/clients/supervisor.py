"""Run a command that ends when the process that started it does, with all of its own children.

``python supervisor.py SECONDS COMMAND...`` ties a command to its standard input: when that is closed, on purpose or
because the process at its other end was killed, the supervisor asks the command's whole process group to end and kills
it after ``SECONDS``. A signal that the kernel sends at a parent's death would reach the command alone and not its
workers, and would be sent when the thread that started it ends. Standard library alone, so that it starts at once.
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


def start_supervised(
    command: Sequence[str], environment: Mapping[str, str], log: Path, grace: float
) -> "subprocess.Popen[bytes]":
    """Start a command under a supervisor; a log file gets its output.

    Args:
        command: program and arguments.
        environment: all of its variables.
        log: file, written anew; its folder is made.
        grace: seconds from being asked to end to being killed.

    Returns:
        The supervisor. Closing its ``stdin`` ends the command; its status is the command's.
    """
    holder = [sys.executable, "-I", "-S", str(Path(__file__)), str(grace), *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        # A session of its own: Ctrl-C at the terminal reaches only the caller, which then closes the input.
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
