"""Run a parser over hostile texts in child processes that can be killed.

A wikitext parser may need minutes or gigabytes for a few kilobytes. Each text has a time limit and each child a memory
limit (``RLIMIT_AS``); a text that exceeds them fails alone, and a new child takes over. Children are spawned, not
forked, so they are safe beside threads; they die with the process that started them.
"""

import asyncio
import multiprocessing
import os
import pickle
import resource
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from pipelines.errors import ConfigError, RecordFailed
from pipelines.pools import die_with_parent
from pipelines.stopping import holding_signals, leave_signals

T = TypeVar("T")

_BATCH = 64
_STATM = Path("/proc/self/statm")
_LOST = (TimeoutError, ProcessExpired)


class ParserPool(Generic[T]):
    """Applies one top-level function to texts in child processes, which are started when first needed.

    Args:
        function: from text to anything that pickles; top-level in an importable module.
        seconds: time limit of one text.
        memory: bytes of address space of a child beyond what it uses once started.
        workers: most children.

    Raises:
        ConfigError: if the function does not pickle, such as a lambda.
    """

    def __init__(
        self, function: Callable[[str], T], seconds: float = 30.0, memory: int = 512 << 20, workers: int = 1
    ) -> None:
        try:
            pickle.dumps(function)
        except (pickle.PicklingError, AttributeError) as error:
            raise ConfigError(f"a parser must be a top-level function of a module: {error}") from error
        self._function, self._seconds, self._memory, self._workers = function, seconds, memory, workers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the children, if there are any."""
        if "_pool" in self.__dict__:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            del self.__dict__["_pool"]

    @cached_property
    def _pool(self) -> ProcessPool:
        context = multiprocessing.get_context("spawn")
        initargs = (self._function, self._memory, os.getpid())
        return ProcessPool(self._workers, initializer=_begin_child, initargs=initargs, context=context)

    def parse_all(self, texts: Iterable[str]) -> Iterator[T | RecordFailed]:
        """Apply the function to many texts; yields a value or a RecordFailed for each, in order.

        The error is ``parse-timeout``, ``parse-memory``, ``parse-crash``, or that of the function's own RecordFailed.
        """
        source = iter(texts)
        while batch := list(islice(source, _BATCH)):
            try:
                yield from self._schedule(batch).result()
            except _LOST:
                # Each is tried alone to find the one that failed.
                yield from map(self._parse_alone, batch)

    def _parse_alone(self, text: str) -> T | RecordFailed:
        for _ in range(2):
            try:
                return self._schedule([text]).result()[0]
            except TimeoutError:
                return RecordFailed("parse-timeout", f"no reply within {self._seconds:g} s")
            except ProcessExpired as error:
                # The child may have been killed from outside; twice is the text's fault.
                expired = RecordFailed("parse-crash", f"the parser process ended: {error}")
        return expired

    async def parse(self, text: str) -> T:
        """Apply the function to one text; raises RecordFailed as :meth:`parse_all` yields it."""
        for _ in range(2):
            try:
                # Scheduled by the caller's own thread: children end with the thread that started them.
                (outcome,) = await asyncio.wrap_future(self._schedule([text]))
            except TimeoutError as error:
                raise RecordFailed("parse-timeout", f"no reply within {self._seconds:g} s") from error
            except ProcessExpired as error:
                # The child may have been killed from outside; twice is the text's fault.
                expired = error
                continue
            if isinstance(outcome, RecordFailed):
                raise outcome
            return outcome
        raise RecordFailed("parse-crash", f"the parser process ended: {expired}") from expired

    def _schedule(self, batch: list[str]) -> ProcessFuture[list[T | RecordFailed]]:
        # The first call starts the children.
        with holding_signals():
            return self._pool.schedule(_parse_batch, args=(self._function, batch), timeout=self._seconds)


def _parse_batch(function: Callable[[str], T], texts: list[str]) -> list[T | RecordFailed]:
    return [_apply(function, text) for text in texts]


def _apply(function: Callable[[str], T], text: str) -> T | RecordFailed:
    try:
        return function(text)
    except RecordFailed as failure:
        return failure
    except MemoryError:
        return RecordFailed("parse-memory", "the parser hit its memory limit")
    except Exception as error:  # noqa: BLE001 (any defect of the parser is this text's failure, reported as such)
        return RecordFailed("parse-crash", f"{type(error).__name__}: {error}"[:500])


def _begin_child(_: Callable[[str], object], memory: int, parent: int) -> None:
    """Limit a child's memory; it has imported the function's module by now, whose size does not count."""
    leave_signals()
    die_with_parent(parent)
    os.environ.clear()  # a parser needs no secret
    if _STATM.exists():
        baseline = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (baseline + memory, baseline + memory))
