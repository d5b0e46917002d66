"""Run a parser over hostile texts in a child process that can be killed.

A wikitext parser may need minutes or gigabytes for a few kilobytes. The child has a memory limit (``RLIMIT_AS``) and
each text a limit of CPU time (``ITIMER_PROF``), so that a busy machine fails no page, and a wide one of wall time;
what exceeds them costs that one text, and the child starts anew. The child is a fresh interpreter, not a fork, so it is
safe beside threads. It dies with the thread that started it (``PR_SET_PDEATHSIG``).
"""

import ctypes
import importlib
import os
import pickle
import resource
import selectors
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Generic, Self, TypeVar

from pipelines.errors import ConfigError, RecordFailed

T = TypeVar("T")

_HEADER = struct.Struct("<Q")
_BATCH = 64
_PR_SET_PDEATHSIG = 1
_START_SECONDS = 60.0
_STATM = Path("/proc/self/statm")
_MAIN = "from pipelines.services.clients.sandbox import run_child; run_child()"


class _ChildGone(Exception):
    """The child ended without a reply.

    Args:
        why: for a reader.
        status: exit status, negative for the signal that ended it; 0 when it is not known.
    """

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.status = status


class _ReplyLate(Exception):
    """The child did not reply in time."""


class ParserChild(Generic[T]):
    """Applies one top-level function to texts in a child process.

    Use as a context manager, from one thread at a time.

    Args:
        function: a top-level function from text to anything that pickles, or its name as ``package.module.function``.
        timeout: seconds of CPU time one text may take, in the system's clock ticks (commonly 4 to 10 ms).
        memory: bytes of address space the child may use beyond what it uses once started.
        wall: seconds one text may take by the clock, at least ``timeout``: for a parser that waits instead of working.

    Raises:
        ConfigError: the function cannot be found by its name, as for lambdas and nested functions.
    """

    def __init__(
        self, function: Callable[[str], T] | str, timeout: float = 10.0, memory: int = 512 << 20, wall: float = 60.0
    ) -> None:
        self._function = _name_function(function)
        self._timeout = timeout
        self._memory = memory
        self._wall = max(wall, timeout)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def pid(self) -> int:
        """Process id of the running child, 0 when none runs."""
        return self._process.pid if self._process is not None else 0

    def parse(self, text: str) -> T:
        """Apply the function to one text.

        Raises:
            RecordFailed: ``parse-timeout``, ``parse-memory`` or ``parse-crash``; or the function's own RecordFailed.
        """
        outcome = next(self.parse_all([text]))
        if isinstance(outcome, RecordFailed):
            raise outcome
        return outcome

    def parse_all(self, texts: Iterable[str]) -> Iterator[T | RecordFailed]:
        """Apply the function to many texts; yields a value or a RecordFailed for each, in order."""
        source = iter(texts)
        while batch := list(islice(source, _BATCH)):
            yield from self._parse_batch(batch)

    def _parse_batch(self, batch: list[str]) -> Iterator[T | RecordFailed]:
        done = 0
        retried = -1
        while done < len(batch):
            try:
                self._send(batch[done:])
                while done < len(batch):
                    outcome = self._receive(self._wall)
                    done += 1
                    yield outcome
                    if isinstance(outcome, RecordFailed) and outcome.error == "parse-memory":
                        self._start()
                        break
            except _ReplyLate:
                self._start()
                done += 1
                yield RecordFailed("parse-timeout", f"no reply within {self._wall:g} s")
            except _ChildGone as gone:
                self._start()
                if gone.status == -signal.SIGPROF:
                    done += 1
                    yield RecordFailed("parse-timeout", f"more than {self._timeout:g} s of CPU time")
                    continue
                # Something from outside may have killed the child; only a text that does it twice is to blame.
                if retried == done:
                    done += 1
                    yield RecordFailed("parse-crash", f"the parser process ended: {gone}")
                else:
                    retried = done

    def _start(self) -> None:
        self._stop()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_child_environment()
        )
        self._send((self._function, self._timeout, self._memory, os.getpid()))
        try:
            problem = self._receive(_START_SECONDS)
        except (_ChildGone, _ReplyLate) as error:
            self._stop()
            raise ConfigError(f"the parser process for {self._function} did not start: {error!r}") from error
        if problem:
            self._stop()
            raise ConfigError(f"the parser process cannot load {self._function}: {problem}")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:  # what was not sent yet has no reader any more
                    continue

    def _send(self, message: object) -> None:
        if self._process is None or self._process.stdin is None:
            raise ConfigError("ParserChild is used outside its with block")
        try:
            _write_message(self._process.stdin, message)
        except BrokenPipeError as error:
            raise _ChildGone("pipe closed") from error

    def _receive(self, timeout: float) -> Any:  # noqa: ANN401 (whatever the function returns)
        process = self._process
        if process is None or process.stdout is None:
            raise ConfigError("ParserChild is used outside its with block")
        descriptor = process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            (length,) = _HEADER.unpack(_read_exactly(descriptor, _HEADER.size, selector, timeout, process))
            return pickle.loads(_read_exactly(descriptor, length, selector, timeout, process))


def run_child() -> None:
    """Serve texts from stdin until it closes; the main function of the child process."""
    die_with_parent()
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a parser prints must not end up between our messages.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    name, timeout, memory, parent = _read_message(source)
    if os.getppid() != parent:
        return
    try:
        function = _find_function(name)
    except (ImportError, AttributeError) as error:
        _write_message(sink, repr(error))
        return
    _limit_memory(memory)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _write_message(sink, "")
    while (batch := _read_message(source)) is not None:
        for text in batch:
            # The signal ends the process wherever it is, in C code too; nothing is left to run in it.
            signal.setitimer(signal.ITIMER_PROF, timeout)
            outcome = _apply(function, text)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            _write_message(sink, outcome)


def _apply(function: Callable[[str], object], text: str) -> object:
    try:
        return function(text)
    except RecordFailed as failure:
        return failure
    except MemoryError:
        return RecordFailed("parse-memory", "the parser hit its memory limit")
    except Exception as error:  # noqa: BLE001 (any defect of the parser is this text's failure, reported as such)
        return RecordFailed("parse-crash", f"{type(error).__name__}: {error}"[:500])


def _name_function(function: Callable[[str], object] | str) -> str:
    if isinstance(function, str):
        return function
    name = f"{function.__module__}.{function.__qualname__}"
    if "<" in name or function.__module__ == "__main__":
        raise ConfigError(f"ParserChild needs a top-level function of an importable module, not {name}")
    return name


def _find_function(name: str) -> Callable[[str], object]:
    module, _, attribute = name.rpartition(".")
    function: Callable[[str], object] = getattr(importlib.import_module(module), attribute)
    return function


def _child_environment() -> dict[str, str]:
    """Give the child this process's import path and nothing else of its environment, secrets least of all."""
    return {"PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path), "PYTHONHASHSEED": "0"}


def die_with_parent() -> None:
    """Ask the system to kill this process when the thread that started it ends (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(extra: int) -> None:
    if _STATM.exists():
        baseline = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (baseline + extra, baseline + extra))


def _write_message(sink: IO[bytes], message: object) -> None:
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    sink.write(_HEADER.pack(len(body)) + body)
    sink.flush()


def _read_message(source: IO[bytes]) -> Any:  # noqa: ANN401 (texts or the first message)
    header = source.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    return pickle.loads(source.read(_HEADER.unpack(header)[0]))


def _read_exactly(
    descriptor: int, size: int, selector: selectors.BaseSelector, timeout: float, process: subprocess.Popen[bytes]
) -> bytes:
    parts: list[bytes] = []
    while size:
        if not selector.select(timeout):
            raise _ReplyLate
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            status = process.wait()
            raise _ChildGone(f"exit status {status}", status)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
