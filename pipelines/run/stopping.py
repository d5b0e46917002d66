"""Signals that ask a process to stop: each acts as Ctrl-C does.

Slurm, Kubernetes, ``docker stop``, spot machines and Prefect send SIGTERM, a terminal that closes SIGHUP. The first
lets requests in flight finish and be recorded (:class:`pipelines.run.runner.RecordRunner`), the second drops them.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP act as SIGINT within the block; outside the main thread nothing changes.

    A SIGHUP that is ignored stays so: ``nohup`` wants it. A SIGINT that is ignored is not: shells ignore it for every
    command in the background, where SIGTERM has to end a run all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *STOPPING)}
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
