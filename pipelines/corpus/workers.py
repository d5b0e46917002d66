"""Read the byte ranges of a dump in several processes; what is complete already is left alone."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from pipelines.corpus.parts import Part, open_part
from pipelines.corpus.sandbox import die_with_parent
from pipelines.corpus.scan import RangeJob, scan_range
from pipelines.errors import Unavailable

Tell = Callable[[int, int], None]
"""Called with the bytes of the dump read so far, and all of them."""
_WAIT_SECONDS = 1.0


def scan_ranges(jobs: Sequence[RangeJob], workers: int, tell: Tell) -> list[Part]:
    """Leave the part of every range and return them in order.

    Args:
        jobs: the ranges, in the order of the dump.
        workers: processes at work at once; a single range is read in this process.
        tell: told after every range.

    Raises:
        CorruptInput: a range is damaged; those that are complete stay for the next try.
        Unavailable: a worker was killed, as for want of memory.
    """
    total = sum(_count_bytes(job) for job in jobs)
    pending = [job for job in jobs if open_part(job.folder) is None]
    done = total - sum(_count_bytes(job) for job in pending)
    tell(done, total)
    workers = min(workers, len(pending))
    if workers <= 1:
        for job in pending:
            scan_range(job)
            done += _count_bytes(job)
            tell(done, total)
    else:
        _scan_in_pool(pending, workers, lambda read: tell(done + read, total))
    return [_open_read(job) for job in jobs]


def _open_read(job: RangeJob) -> Part:
    part = open_part(job.folder)
    if part is None:
        raise Unavailable(f"{job.folder} was read and is gone; run again, with nobody else at work in it")
    return part


def _scan_in_pool(pending: Sequence[RangeJob], workers: int, tell: Callable[[int], None]) -> None:
    read = 0
    # A fresh interpreter, not a fork: the caller may hold threads and open connections.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_begin_worker, initargs=(os.getpid(),))
    try:
        jobs: dict[Future[object], RangeJob] = {pool.submit(scan_range, job): job for job in pending}
        waiting = set(jobs)
        while waiting:
            finished, waiting = wait(waiting, _WAIT_SECONDS, FIRST_COMPLETED)
            for future in finished:
                future.result()
                read += _count_bytes(jobs[future])
            tell(read)
    except BrokenProcessPool as error:
        raise Unavailable(
            "a process that reads the dump was killed, as for want of memory; run the same command again: "
            "ranges that are read stay read"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker(parent: int) -> None:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # on Ctrl-C a worker ends at once and without a word
    if os.getppid() != parent:
        raise SystemExit(1)


def _count_bytes(job: RangeJob) -> int:
    return job.byte_range.end - job.byte_range.start
