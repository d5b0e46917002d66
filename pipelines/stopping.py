"""Signals that ask a process to stop: each acts as Ctrl-C does.

Slurm, Kubernetes, ``docker stop``, spot machines and Prefect send SIGTERM, a terminal that closes SIGHUP. The first
lets requests in flight finish and be recorded (:class:`pipelines.run.runner.RecordRunner`), the second drops them.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGHUP)
SIGNALS = (signal.SIGINT, *STOPPING)


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP act as SIGINT within the block; outside the main thread nothing changes.

    A SIGHUP that is ignored stays so: ``nohup`` wants it. A SIGINT that is ignored is not: shells ignore it for every
    command in the background, where SIGTERM has to end a run all the same.
    """
    if not _is_main():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    if not callable(before[signal.SIGINT]):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in STOPPING:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Do what SIGINT would do now: a running event loop has put its own handler in the place of Python's."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(number, frame)


@contextmanager
def holding_signals() -> Iterator[None]:
    """Have signals act at the end of the block, in which a pool is made or processes are started.

    Amid it they would leave a pool half open: processes that nobody ends, a thread that cannot be joined. A process
    that is started in it is born with the signals blocked until it calls :func:`leave_signals`: it would print a
    traceback of what it imports.
    """
    from multiprocessing import resource_tracker

    came = list[tuple[int, FrameType | None]]()
    held = {number: handler for number in SIGNALS if _is_main() and callable(handler := signal.getsignal(number))}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        for name in held:
            signal.signal(name, lambda *call: came.append(call))
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        # It would die with a terminal, which its successor tells in tracebacks; it unblocks what it ignores itself.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        yield
    finally:
        try:
            # Those that wait for this thread come now; other threads get theirs at any time.
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            # That of SIGINT is the last: it is what raises, for the others too.
            for name in reversed(held):
                signal.signal(name, held[name])
        finally:
            with ExitStack() as acts:
                for number, frame in reversed(came):
                    acts.callback(held[signal.Signals(number)], number, frame)


def _is_main() -> bool:
    """Whether this is the thread that alone may set what signals do."""
    return threading.current_thread() is threading.main_thread()


def leave_signals() -> None:
    """Leave Ctrl-C and a closed terminal to this process's parent, who ends it, by SIGTERM too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def ignore_signals() -> None:
    """Ignore signals from now on: how the command ends is settled. Outside the main thread nothing changes."""
    for number in SIGNALS if _is_main() else ():
        signal.signal(number, signal.SIG_IGN)


def end_by_signals(code: int) -> None:
    """Have a signal end the process at once with its exit code: what is left may hang, a thread or who reads its end.

    Outside the main thread nothing changes.
    """
    # After an interrupt amid code from a string, such as a dataclass's, Python would end by SIGINT; this forgets it.
    exec("")
    for number in SIGNALS if _is_main() else ():
        signal.signal(number, lambda *_: os._exit(code))
