"""vLLM's server for a role: started from the configuration, waited for, and ended with whoever wanted it.

It listens on the loopback interface alone. What it says is in ``logs/serve-<role>.log`` of the workspace.

Talking to a server on this machine: is its port free, and what does it answer.

The process that vLLM runs in beside a worker: what is run, what it is fed, and what its end means.

vLLM's dependencies do not fit beside ours, so its Python is another one; and an engine that crashes must not take the
run with it.
"""

import atexit
import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pipelines.config.loading import RunConfig
from pipelines.config.settings import ModelConfig, ModelsConfig
from pipelines.errors import ConfigError, RecordFailed, SynthError, Unavailable
from pipelines.services.clients.supervisor import start_leashed
from pipelines.services.protocols import ChatReply, Ending

HOST = "127.0.0.1"
_PATIENCE = 5.0
"""Seconds for an answer."""
_LONGEST = 1 << 20
"""Bytes of an answer that are read."""


def check_port(setting: str, port: int) -> None:
    """Refuse a port that somebody listens on.

    Args:
        setting: its name in the configuration.
        port: on the loopback interface.

    Raises:
        ConfigError: if it is taken, or may not be had.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"{setting} {port}: {error.strerror}; stop what listens there, choose another port, or attach to it by "
                f"serve.own = false"
            ) from error


def fetch(url: str, key: str = "") -> bytes | None:
    """Return what a server answers, None where it does not, or with an error.

    Args:
        url: its address.
        key: sent as the bearer's token; empty for none.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # Nothing on the loopback interface goes through a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=_PATIENCE) as reply:
            return bytes(reply.read(_LONGEST))
    except (OSError, http.client.HTTPException):
        return None


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
            What will hold the reply, or what :meth:`pipelines.services.clients.vllm_batch.VllmBatch.chat` raises.
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


_GRACE = 10.0
"""Seconds for a server to end by itself."""
_BEAT = 0.2
"""Seconds between two questions whether it is ready."""
_CHUNK = 1 << 20
"""Bytes of a log that are read at a time."""


def make_serve_command(role: str, model: ModelConfig) -> list[str]:
    """Return the command that starts a role's server.

    Raises:
        ConfigError: if the model is a folder that is none, or the role's address leads elsewhere.
    """
    serve = model.serve
    address = f"http://{HOST}:{serve.port}/v1"
    if serve.own and model.base_url.rstrip("/").replace("//localhost:", f"//{HOST}:") != address:
        raise ConfigError(f"models.{role}: serve.own starts a server at {address}, but base_url is {model.base_url!r}")
    loaded = _find_model(role, serve.model or model.name)
    return [
        choose_python(serve.python),
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--host", HOST, "--port", str(serve.port), "--served-model-name", model.name),
        # A line for each of a million requests tells nothing and takes time.
        *("--uvicorn-log-level", "warning"),
        *list_engine_arguments(loaded, serve.tensor_parallel, serve.max_context, serve.arguments),
    ]


def _find_model(role: str, named: str) -> str:
    """Return what vLLM is to load; what can only be a folder must be one, and a name on a hub is vLLM's to find."""
    path = Path(named).expanduser()
    if not path.is_absolute() and not named.startswith("."):
        return named
    if not (path / "config.json").is_file():
        raise ConfigError(f"models.{role}.serve.model {named}: no model there; expected a folder with config.json")
    return str(path)


@dataclass(slots=True)
class ModelServer:
    """One server, from its start to its end. A context manager: ready inside, ended after.

    Attributes:
        role: who it plays; messages and the log name it.
        model: what it serves, and how.
        log: file that it writes to, anew at each start.
        command: what is run.

    Raises:
        ConfigError: if what is to be run cannot be.
    """

    role: str
    model: ModelConfig
    log: Path
    command: tuple[str, ...] = field(init=False)
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False, repr=False)
    _told: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.command = tuple(make_serve_command(self.role, self.model))

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Where the API is, as ``base_url`` has it."""
        return f"http://{HOST}:{self.model.serve.port}/v1"

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and return at once.

        Raises:
            ConfigError: if its Python has no vLLM, or its port is taken.
        """
        check_python(f"models.{self.role}.serve.python", self.command[0])
        check_port(f"models.{self.role}.serve.port", self.model.serve.port)
        environment = make_environment(os.environ)
        if self._read_key():
            # Not as an argument, where everybody on the machine could read it.
            environment["VLLM_API_KEY"] = self._read_key()
        self._process = start_leashed(self.command, environment, self.log, _GRACE)

    def wait(self) -> None:
        """Wait until it answers for its model.

        Raises:
            Unavailable: if it ends, or is not ready in time.
            ConfigError: if it serves another model.
        """
        seconds = self.model.serve.start_seconds
        end = time.monotonic() + seconds
        while True:
            served = self._list_models()
            if not self.is_running:
                raise Unavailable(f"models.{self.role}: {self._describe()} ended while starting; {self._tell()}")
            if served is not None:
                break
            if time.monotonic() > end:
                raise Unavailable(
                    f"models.{self.role}: {self._describe()} is not ready after {seconds:g} s; {self._tell()}"
                )
            time.sleep(_BEAT)
        if self.model.name not in served:
            raise ConfigError(
                f"models.{self.role}: {self._describe()} serves {', '.join(served) or 'nothing'}, not "
                f"{self.model.name}; see serve.arguments"
            )

    def let_go(self) -> None:
        """Ask it to end, and do not wait for it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        """End it and wait for its end; nothing is done twice."""
        self.let_go()
        if self._process is not None:
            self._process.wait()

    def read_lines(self) -> list[str]:
        """Return the whole lines it wrote since this was last called, or since its start."""
        with self.log.open("rb") as source:
            source.seek(self._told)
            written = source.read(_CHUNK)
        whole = written[: written.rfind(b"\n") + 1] if len(written) < _CHUNK else written
        self._told += len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def explain_end(self) -> Unavailable:
        """Return what to raise when it ended by itself."""
        return Unavailable(f"models.{self.role}: {self._describe()} ended; {self._tell()}")

    def _describe(self) -> str:
        return f"the server of {self.model.name} at {self.address}"

    def _tell(self) -> str:
        return f"{self.log} ends:\n{read_tail(self.log)}"

    def _read_key(self) -> str:
        return os.environ.get(self.model.api_key_env, "") if self.model.api_key_env else ""

    def _list_models(self) -> list[str] | None:
        """Return the names it serves, None while it does not answer."""
        if fetch(f"{self.address.removesuffix('/v1')}/health") is None:
            return None
        body = fetch(f"{self.address}/models", self._read_key())
        try:
            return None if body is None else [str(entry["id"]) for entry in json.loads(body)["data"]]
        except (ValueError, KeyError, TypeError):
            return None


def place_log(logs: Path, role: str) -> Path:
    """Return a role's log file in a workspace's folder of logs."""
    return logs / f"serve-{role}.log"


@contextmanager
def owned_servers(models: ModelsConfig, roles: Sequence[str], logs: Path) -> Iterator[dict[str, ModelServer]]:
    """Start the servers that a run owns, all at once, and end them after it.

    Roles that name the very same server share one.

    Args:
        models: the run's models.
        roles: those that the run will ask; without ``serve.own`` none is started.
        logs: the workspace's folder of logs.

    Yields:
        The servers by role; empty where the run owns none.

    Raises:
        ConfigError, Unavailable: as :class:`ModelServer`; then all that were started are ended.
    """
    servers: dict[str, ModelServer] = {}
    started: dict[int, ModelServer] = {}
    with ExitStack() as stack:
        for role in roles:
            model = models.get(role)
            if model.adapter != "openai" or not model.serve.own:
                continue
            server = ModelServer(role, model, place_log(logs, role))
            first = started.setdefault(model.serve.port, server)
            if first.command != server.command:
                raise ConfigError(
                    f"models.{role}.serve.port {model.serve.port}: models.{first.role} has another server there; "
                    "choose another port"
                )
            servers[role] = first
        for server in started.values():
            stack.callback(server.stop)
        for server in started.values():
            # Left first: all are asked to end before any is waited for.
            stack.callback(server.let_go)
            server.start()
        for server in started.values():
            server.wait()
        yield servers


def serve_model(config: RunConfig, role: str, logs: Path, say: Callable[[str], None]) -> None:
    """Serve a role's model until Ctrl-C or its end, saying what it says.

    Args:
        config: whose models are served.
        role: a role, or one of models.solvers.
        logs: the workspace's folder of logs.
        say: takes one line.

    Raises:
        ConfigError, Unavailable: as :class:`ModelServer`, and if nobody plays the role by a server.
    """
    roles = config.models.list_roles()
    if role not in roles:
        raise ConfigError(f"role {role!r}: nobody plays it; there are: {', '.join(roles)}")
    model = config.models.get(role)
    if model.adapter != "openai":
        raise ConfigError(f"models.{role}.adapter is {model.adapter!r}; a server is of use to openai alone")
    server = ModelServer(role, model, place_log(logs, role))
    say(f"starting {model.name} for {role}; log {server.log}")
    with server:
        say(f"{model.name} is ready at {server.address}; Ctrl-C ends it")
        while server.is_running:
            for line in server.read_lines():
                say(line)
            time.sleep(_BEAT)
        raise server.explain_end()
