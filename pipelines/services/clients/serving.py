"""vLLM's server for a role: started from the configuration, waited for, and ended with its caller.

It listens on the loopback interface alone and writes to ``logs/serve-<role>.log`` of the workspace. vLLM's dependencies
do not fit together with ours, so it runs in a Python of its own.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from pipelines.config.settings import ModelConfig, ModelsConfig, RunConfig
from pipelines.errors import ConfigError, Unavailable
from pipelines.services.clients.supervisor import start_supervised

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


_TAIL = 4000
"""Bytes of a log that are quoted at most, and lines."""
_TAIL_LINES = 20
_CHECK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
_CHECK_SECONDS = 60.0


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


def read_tail(log: Path) -> str:
    """Return the last lines of a log, to be quoted."""
    try:
        with log.open("rb") as source:
            source.seek(max(0, log.stat().st_size - _TAIL))
            lines = source.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"({error.strerror})"
    return "\n".join(lines[-_TAIL_LINES:]) or "(nothing)"


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
    return [
        str(Path(serve.python).expanduser()) if serve.python else sys.executable,
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--host", HOST, "--port", str(serve.port), "--served-model-name", model.name),
        # A line for each of a million requests tells nothing and takes time.
        *("--uvicorn-log-level", "warning"),
        *("--model", _find_model(role, serve.model or model.name)),
        *("--tensor-parallel-size", str(serve.tensor_parallel)),
        *(("--max-model-len", str(serve.max_context)) if serve.max_context else ()),
        *serve.arguments,
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
        environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        if self._read_key():
            # Not as an argument, where everybody on the machine could read it.
            environment["VLLM_API_KEY"] = self._read_key()
        self._process = start_supervised(self.command, environment, self.log, _GRACE)

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
        raise ConfigError(f"role {role!r}: unknown role; there are: {', '.join(roles)}")
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
