"""vLLM's server for a role: started from the configuration, waited for, and ended with its caller.

It listens on the loopback interface only and writes to ``logs/serve-<role>.log`` of the workspace. It runs in a Python
of its own, because vLLM's dependencies exclude ours.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pipelines.config.settings import ModelConfig, RunConfig
from pipelines.errors import ConfigError, Unavailable
from pipelines.services.clients.supervisor import start_supervised
from pipelines.services.traffic import Waiting

HOST = "127.0.0.1"
START_SECONDS = 1800.0
"""Seconds to be ready in: large weights may come from a slow disk. A server that dies is noticed at once."""
_PATIENCE = 5.0
"""Seconds for a reply."""
_LONGEST = 1 << 20
"""Bytes of a reply that are read."""
_TAIL = 4000
"""Bytes of a log that are quoted."""
_GRACE = 10.0
"""Seconds that a server gets to end by itself."""
_BEAT = 0.2
"""Seconds between two checks of a server."""


def check_port(setting: str, port: int) -> None:
    """Check that a port of the loopback interface is free; ``setting`` is its name in the configuration.

    Raises:
        ConfigError: if it is taken, or may not be used.
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
    """Return the body of a server's reply, None if there is no reply or an error; the key goes as a bearer token."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # The loopback interface is never reached through a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=_PATIENCE) as reply:
            return bytes(reply.read(_LONGEST))
    except (OSError, http.client.HTTPException):
        return None


def read_tail(log: Path) -> str:
    """Return the last lines of a log, or why it cannot be read."""
    try:
        with log.open("rb") as source:
            source.seek(max(0, log.stat().st_size - _TAIL))
            return source.read().decode("utf-8", "replace").strip() or "(nothing)"
    except OSError as error:
        return f"({error.strerror})"


def make_serve_command(role: str, model: ModelConfig) -> list[str]:
    """Return the command that starts a role's server.

    Raises:
        ConfigError: if the model's folder holds no model, or ``serve.own`` does not fit the role's address.
    """
    serve, port = model.serve, find_port(model)
    address = f"http://{HOST}:{port}/v1"
    given = [url.rstrip("/").replace("//localhost:", f"//{HOST}:") for url in model.base_url]
    if serve.own and given != [address]:
        raise ConfigError(
            f"models.{role}: serve.own starts a server at {address}, but base_url is {', '.join(model.base_url)}"
        )
    return [
        str(Path(serve.python).expanduser()) if serve.python else sys.executable,
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--host", HOST, "--port", str(port), "--served-model-name", model.name),
        # No log line for each request.
        *("--uvicorn-log-level", "warning"),
        *("--model", _find_model(role, serve.model or model.name)),
        *("--tensor-parallel-size", str(max(1, serve.gpus))),
        *serve.arguments,
    ]


def find_port(model: ModelConfig) -> int:
    """Return the port of a model's address, 8000 where it has none."""
    return urlsplit(next(iter(model.base_url), "")).port or 8000


def _find_model(role: str, named: str) -> str:
    """Return the folder of a model, or a name as it is if it may be one of a hub."""
    path = Path(named).expanduser()
    if not path.is_absolute() and not named.startswith("."):
        return named
    if not (path / "config.json").is_file():
        raise ConfigError(f"models.{role}.serve.model {named}: no model there; expected a folder with config.json")
    return str(path)


@dataclass(slots=True)
class ModelServer:
    """One server of a role, whose name messages and the log bear.

    Attributes:
        log: file of its output, written anew at each start.
        start_seconds: in which it is to be ready.
        command: program and arguments.

    Raises:
        ConfigError: as :func:`make_serve_command`.
    """

    role: str
    model: ModelConfig
    log: Path
    start_seconds: float = START_SECONDS
    command: tuple[str, ...] = field(init=False)
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.command = tuple(make_serve_command(self.role, self.model))

    @property
    def address(self) -> str:
        """The API's address, as ``base_url``."""
        return f"http://{HOST}:{find_port(self.model)}/v1"

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and return at once.

        Raises:
            ConfigError: if its port is taken.
        """
        check_port(f"models.{self.role}.base_url: port", find_port(self.model))
        environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        if key := self._read_key():
            # Arguments can be read by every user of the machine.
            environment["VLLM_API_KEY"] = key
        self._process = start_supervised(self.command, environment, self.log, _GRACE)

    def wait(self) -> None:
        """Wait until it serves its model.

        Raises:
            Unavailable: if it ends, or is not ready in time.
            ConfigError: if it serves another model.
        """
        end = time.monotonic() + self.start_seconds
        with Waiting() as waiting:
            while (served := self._list_models()) is None or not self.is_running:
                if not self.is_running:
                    raise self.explain("ended while starting; see serve.python, serve.model and serve.arguments")
                if time.monotonic() > end:
                    raise self.explain(f"is not ready after {self.start_seconds:g} s")
                waiting.note(self.address, f"it starts; its log is {self.log}", end - time.monotonic())
                time.sleep(_BEAT)
        if self.model.name not in served:
            raise ConfigError(
                f"models.{self.role}: the server at {self.address} serves {', '.join(served) or 'nothing'}, not "
                f"{self.model.name}; see serve.arguments"
            )

    def let_go(self) -> None:
        """Ask it to end, and do not wait for it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        """End it and wait for its end; a second call does nothing."""
        self.let_go()
        if self._process is not None:
            self._process.wait()

    def explain(self, what: str) -> Unavailable:
        """Return the error of a server that failed, with the end of its log."""
        return Unavailable(
            f"models.{self.role}: the server of {self.model.name} at {self.address} {what}; {self.log} ends:\n"
            f"{read_tail(self.log)}"
        )

    def _read_key(self) -> str:
        return os.environ.get(self.model.api_key_env, "") if self.model.api_key_env else ""

    def _list_models(self) -> list[str] | None:
        """Return the names it serves, None while it does not reply."""
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
def running(servers: Sequence[ModelServer]) -> Iterator[None]:
    """Start servers, all at once, wait until they are ready, and end them after the block.

    Raises:
        ConfigError, Unavailable: as :class:`ModelServer`; then all that were started are ended.
    """
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
        for server in servers:
            # Left first: all are asked to end before any is waited for.
            stack.callback(server.let_go)
            server.start()
        for server in servers:
            server.wait()
        yield


@contextmanager
def owned_servers(
    models: Mapping[str, ModelConfig], roles: Sequence[str], logs: Path
) -> Iterator[dict[str, ModelServer]]:
    """Run the servers of those roles that have ``serve.own``, and yield them by role.

    Roles with the same server share it. Raises as :func:`running`.
    """
    servers: dict[str, ModelServer] = {}
    by_port: dict[int, ModelServer] = {}
    for role in roles:
        model = models[role]
        if model.adapter != "openai" or not model.serve.own:
            continue
        server = ModelServer(role, model, place_log(logs, role))
        servers[role] = by_port.setdefault(find_port(model), server)
        if servers[role].command != server.command:
            raise ConfigError(
                f"models.{role}.base_url: models.{servers[role].role} has another server at port {find_port(model)}; "
                "choose another port"
            )
    with running(tuple(by_port.values())):
        yield servers


def serve_model(config: RunConfig, role: str, logs: Path, say: Callable[[str], None]) -> None:
    """Serve a role's model until Ctrl-C or its end; ``say`` takes progress messages.

    Raises:
        ConfigError, Unavailable: as :class:`ModelServer`, or if the role has no model behind a server.
    """
    if role not in config.roles:
        raise ConfigError(f"role {role!r} has no model; there are: {', '.join(config.roles)}")
    model = config.models[role]
    if model.adapter != "openai":
        raise ConfigError(f"models.{role}.adapter is {model.adapter!r}; only openai needs a server")
    server = ModelServer(role, model, place_log(logs, role))
    say(f"starting {model.name} for {role}; log {server.log}")
    with running([server]):
        say(f"{model.name} is ready at {server.address}; Ctrl-C ends it")
        while server.is_running:
            time.sleep(_BEAT)
        raise server.explain("ended")
