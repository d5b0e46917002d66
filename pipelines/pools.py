"""Fresh processes that end with what opened them, however that ends."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from pipelines.stopping import holding_signals, leave_signals

_PR_SET_PDEATHSIG = 1


@contextmanager
def open_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open processes that end with the block, killed where an error or an interrupt leaves it.

    They are no forks: the caller may hold threads and open connections. Tasks are to be submitted within
    :func:`holding_signals`.
    """
    with holding_signals():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (os.getpid(),))
    try:
        yield pool
    except BaseException:
        # They would do what they have in hand first.
        for worker in list(pool._processes.values()):
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker(parent: int) -> None:
    leave_signals()
    die_with_parent(parent)


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when the thread that started it ends; leave at once if that is so already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)
