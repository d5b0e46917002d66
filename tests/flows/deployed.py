"""A real Prefect server and its workers as processes, and what its API says."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.ports import find_port

ROOT = Path(__file__).parents[2]
PATIENCE = 600.0
"""Seconds for whatever a test waits for: a schedule fires within 60 and a demo takes as long; a machine may be busy."""


def wait_for(look: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Return the first thing seen that is true."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if seen := look():
            return seen
        time.sleep(0.5)
    raise AssertionError(f"{what}: not seen in {patience:g} s")


def heed_interrupts() -> None:
    """Undo what shells do to commands in the background: a worker that ignores SIGINT ignores SIGTERM too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def running(command: Sequence[str], log: Path, folder: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen]:
    """Run a command beside the test; it is ended with the block, if it has not ended before."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, preexec_fn=heed_interrupts
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True)
class Server:
    """A Prefect server, and the environment of its clients."""

    port: int
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        """Of commands: as the page sets it, apart from the port, and faster in looking for work."""
        return os.environ | {
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
        }

    def ask(self, path: str, body: Any = None) -> Any:
        """Return what the API answers to a POST, or to a GET where there is no body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}", data, {"Content-Type": "application/json"}
        )
        for left in range(10, -1, -1):
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                # A server whose database is busy says so, and Prefect's own client asks it again.
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or not left:
                    raise
                time.sleep(1)
        raise AssertionError(path)

    def is_up(self) -> bool:
        try:
            return bool(self.ask("health"))
        except OSError:
            return False

    def find_deployment(self, name: str) -> Any:
        return self.ask(f"deployments/name/{name}")

    def list_runs(self, deployment: str) -> list[Any]:
        """Return the runs of a deployment, the last one first."""
        wanted = {"deployments": {"id": {"any_": [self.find_deployment(deployment)["id"]]}}, "sort": "START_TIME_DESC"}
        return self.ask("flow_runs/filter", wanted)

    def start(self, deployment: str, **parameters: object) -> str:
        """Start a run of a deployment and return its id."""
        place = f"deployments/{self.find_deployment(deployment)['id']}/create_flow_run"
        return self.ask(place, {"parameters": parameters})["id"]

    def read_state(self, run: str) -> str:
        """Return type and name of a run's state."""
        state = self.ask(f"flow_runs/{run}")["state"]
        return f"{state['type']} {state['name']}"

    def wait_until_over(self, run: str) -> str:
        """Return the state in which a run ends."""
        over = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
        return wait_for(lambda: (state := self.read_state(run)).startswith(over) and state, f"the end of {run}")

    def describe(self) -> list[Any]:
        """Return everything that is deployed, but for what workers change."""
        kept = []
        for kind in ("work_pools", "deployments"):
            for entry in self.ask(f"{kind}/filter", {}):
                kept.append({key: value for key, value in entry.items() if key not in ("status", "last_polled")})
        return kept

    def list_artifacts(self, run: str) -> dict[str, Any]:
        """Return the artifacts of a run by key."""
        found = self.ask("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run]}}})
        return {entry["key"]: entry["data"] for entry in found if entry["key"]}

    def read_log(self, run: str) -> str:
        """Return a run's log as the server has it."""
        wanted = {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC"}
        return "\n".join(entry["message"] for entry in self.ask("logs/filter", wanted))


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Run a server with a database of its own."""
    server = Server(find_port(), folder)
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui"]
    with running(command, folder / "server.log", folder, server.env):
        wait_for(server.is_up, "the server")
        yield server
