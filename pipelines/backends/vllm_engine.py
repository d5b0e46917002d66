"""The process that vLLM runs in beside a worker: what is run, what it is fed, and what its end means.

vLLM's dependencies do not fit beside ours, so its Python is another one; and an engine that crashes must not take the
run with it.
"""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

from pipelines.backends.protocols import ChatReply, Ending
from pipelines.errors import ConfigError, RecordFailed, SynthError, Unavailable

MOST = 4096
"""Requests in a batch at most."""
_WINDOW = 0.05
"""Seconds from the first request of a batch until what has come by then is sent."""
_TAIL = 4000
"""Bytes of a log that are quoted at most, and lines."""
_TAIL_LINES = 20
_CHECK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
_CHECK_SECONDS = 60.0
_QUOTED = 300
_RECORDS_FAULT = {
    "maximum context length": "prompt-too-long",
    "maximum model length": "prompt-too-long",
    "max_model_len": "prompt-too-long",
    "longer than the": "prompt-too-long",
    "cannot identify image": "picture-refused",
    "Failed to load image": "picture-refused",
    "aspect ratio": "picture-refused",
}
"""What a refusal says when another record would have been answered, and the failed row's error."""

Asked = tuple[bytes, "Future[ChatReply]"]
"""A request's body, and what will hold its reply."""


def choose_python(named: str) -> str:
    """Return the Python that is to run vLLM: the one named, or ours."""
    return str(Path(named).expanduser()) if named else sys.executable


def check_python(setting: str, python: str) -> None:
    """Refuse a Python that has no vLLM.

    Args:
        setting: its name in the configuration.
        python: program.

    Raises:
        ConfigError: if it is no program, or has no vLLM.
    """
    advice = f"name one that has: python -m venv DIR, DIR/bin/pip install vllm, --set {setting}=DIR/bin/python"
    try:
        found = subprocess.run(
            [python, "-c", _CHECK], stdin=subprocess.DEVNULL, capture_output=True, timeout=_CHECK_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{setting} {python}: cannot be run ({error}); {advice}") from error
    if found.returncode:
        raise ConfigError(f"{setting} {python}: has no vLLM; {advice}")


def list_engine_arguments(model: str, tensor_parallel: int, max_context: int, arguments: Sequence[str]) -> list[str]:
    """Return the arguments that vLLM's engine takes, served or in process."""
    context = ["--max-model-len", str(max_context)] if max_context else []
    return ["--model", model, "--tensor-parallel-size", str(tensor_parallel), *context, *arguments]


def make_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return the environment vLLM runs in: ours, and no report to its makers."""
    return {**ours, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def read_tail(log: Path) -> str:
    """Return the last lines of a log, to be quoted."""
    try:
        with log.open("rb") as source:
            source.seek(max(0, log.stat().st_size - _TAIL))
            lines = source.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"({error.strerror})"
    return "\n".join(lines[-_TAIL_LINES:]) or "(nothing)"


class Engine:
    """The child process, started by the first request, and the thread that feeds it; serves any number of event loops.

    Args:
        name: the model's name, for messages.
        command: what is run, see ``vllm_child``.
        log: file for what it says, written anew at its start.
        start_seconds: seconds to be ready in.
        gpus: GPUs that are counted while a batch runs.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, start_seconds: float, gpus: float) -> None:
        self._name = name
        self._command = tuple(command)
        self._log = log
        self._start_seconds = start_seconds
        self._gpus = gpus
        self._waiting: queue.Queue[Asked | None] = queue.Queue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._running: list[Future[ChatReply]] = []
        """Those of the batch that is under way."""
        self._end = ""
        """Why it answers no more; empty while it does."""

    def ask(self, body: bytes) -> "Future[ChatReply]":
        """Put a request into the next batch.

        Args:
            body: as ``/chat/completions`` takes it.

        Returns:
            What will hold the reply, or what :meth:`pipelines.backends.vllm_batch.VllmBatch.chat` raises.
        """
        future: Future[ChatReply] = Future()
        with self._lock:
            if self._end:
                future.set_exception(Unavailable(self._end))
                return future
            if self._thread is None:
                self._thread = threading.Thread(target=self._feed, name=f"vllm {self._name}", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            self._waiting.put((body, future))
        return future

    def close(self) -> None:
        """End the child at once; whoever still waits is refused."""
        with self._lock:
            self._end = self._end or f"model {self._name}: vLLM was ended"
            thread, process = self._thread, self._process
        atexit.unregister(self.close)
        if process is not None:
            _kill(process)
        if thread is not None:
            self._waiting.put(None)
            thread.join()

    def _feed(self) -> None:
        """Run the child to its end, and then refuse all that waits."""
        why = "was ended"
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as log, self._start(log) as process:
                try:
                    why = self._work(process)
                finally:
                    _kill(process)
        except OSError as error:
            # No place for its log, no program, or a pipe to a process that is gone.
            why = f"ended ({error.strerror})"
        finally:
            self._refuse_waiting(f"model {self._name}: vLLM {why}; {self._log} ends:\n{read_tail(self._log)}")

    def _start(self, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        # A session of its own: Ctrl-C at the terminal is for the run, which then ends in order.
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=make_environment(os.environ),
            start_new_session=True,
        )
        with self._lock:
            self._process = process
            ended = bool(self._end)
        if ended:
            _kill(process)
        return process

    def _work(self, process: "subprocess.Popen[bytes]") -> str:
        """Feed the child batch by batch.

        Returns:
            Why it answers no more.
        """
        late = threading.Event()
        timer = threading.Timer(self._start_seconds, _give_up, [process, late])
        # One that is not would keep a process that wants to end.
        timer.daemon = True
        timer.start()
        ready = _read_line(process)
        timer.cancel()
        if ready is None and late.is_set():
            return f"was not ready after {self._start_seconds:g} s"
        while ready is not None and (batch := self._gather()):
            if not self._run(process, batch):
                break
        return f"ended with status {process.wait()}" if ready is None or self._running else "was ended"

    def _gather(self) -> list[Asked]:
        """Wait for a request and return it with all that come a moment later; none when it is time to end."""
        asked = self._waiting.get()
        time.sleep(_WINDOW)
        batch: list[Asked] = []
        while asked is not None:
            # One that was given up meanwhile is not sent.
            if asked[1].set_running_or_notify_cancel():
                batch.append(asked)
            if len(batch) >= MOST:
                break
            try:
                asked = self._waiting.get(block=not batch)
            except queue.Empty:
                break
        return batch

    def _run(self, process: "subprocess.Popen[bytes]", batch: list[Asked]) -> bool:
        """Have a batch answered.

        Returns:
            Whether the child lived to answer all of it.
        """
        self._running = [future for _, future in batch]
        started = time.monotonic()
        _write_batch(process, [body for body, _ in batch])
        replies = [reply for _ in batch if (reply := _read_line(process)) is not None]
        share = self._gpus * (time.monotonic() - started) / len(batch)
        for reply in replies:
            self._settle(self._running[reply["id"]], reply, share)
        if len(replies) < len(batch):
            return False
        self._running = []
        return True

    def _settle(self, future: "Future[ChatReply]", reply: dict[str, Any], gpu_seconds: float) -> None:
        if "error" in reply:
            future.set_exception(self._blame(str(reply["error"])))
            return
        # Half of a surrogate pair can be written in JSON and nowhere else.
        text = str(reply["text"]).encode("utf-8", "replace").decode()
        ended: Ending = "whole" if reply["whole"] else "cut"
        future.set_result(ChatReply(text, int(reply["tokens_in"]), int(reply["tokens_out"]), ended, gpu_seconds))

    def _blame(self, said: str) -> SynthError:
        """Return whose fault a refused request is: this record's alone, or the configuration's."""
        quoted = " ".join(said.split())[:_QUOTED]
        for words, fault in _RECORDS_FAULT.items():
            if words in said:
                return RecordFailed(fault, f"model {self._name}: {quoted}")
        return ConfigError(f"model {self._name}: vLLM does not take the request ({quoted}); see name and sampling")

    def _refuse_waiting(self, why: str) -> None:
        with self._lock:
            self._end = self._end or why
        for future in self._running:
            if not future.done():
                future.set_exception(Unavailable(why))
        while True:
            try:
                asked = self._waiting.get_nowait()
            except queue.Empty:
                return
            if asked is not None and asked[1].set_running_or_notify_cancel():
                asked[1].set_exception(Unavailable(why))


def _give_up(process: "subprocess.Popen[bytes]", late: threading.Event) -> None:
    late.set()
    _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the child and the engine's own processes, which are in its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _read_line(process: "subprocess.Popen[bytes]") -> dict[str, Any] | None:
    """Return the next line, None at the end or where it is cut."""
    raw = process.stdout.readline() if process.stdout else b""
    return dict(json.loads(raw)) if raw.endswith(b"\n") else None


def _write_batch(process: "subprocess.Popen[bytes]", bodies: list[bytes]) -> None:
    if process.stdin:
        for number, body in enumerate(bodies):
            process.stdin.write(b'{"id": %d, "body": %b}\n' % (number, body))
        process.stdin.write(b'{"run": %d}\n' % len(bodies))
        process.stdin.flush()
