"""Signals that ask a run to stop, at moments that a server counts: nothing is paid twice, and no process stays.

The server holds its replies from the moment on, so that a slow machine sees the same moments as a fast one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from pipelines.run.runner import GRACE
from tests.chaos.driving import (
    ROOT,
    STAGES,
    TINY,
    Outcome,
    call,
    check_one_line,
    copy_workspace,
    digest_files,
    make_environment,
    make_run,
)
from tests.chaos.signals import SPREAD, list_session
from tests.mock_openai import start_mock

pytestmark = pytest.mark.slow
SETTINGS = (*TINY, "seeds.limit=40", "runtime.concurrency=2")
SERVED = ("adapter=openai", "name=mock", "revision=r1", "timeout=600")
PATIENCE = 1200.0
PAIR = 12
"""Requests of two questions."""


@dataclass(frozen=True)
class Server:
    """A mock and what it counts."""

    url: str

    def count(self, name: str) -> int:
        return int(json.loads(self._tell("/counts"))[name])

    def hold(self, first: int = sys.maxsize) -> None:
        """Have requests from this ordinal on wait; without one nothing waits."""
        self._tell("/hold", str(first))

    def hold_from(self, first: int) -> Callable[[], bool]:
        """Hold from this ordinal on, and return what says whether such a request has come since."""
        assert self.count("requests") <= first
        self.hold(first)
        return lambda: self.count("requests") > first

    def _tell(self, path: str, body: str = "") -> bytes:
        request = Request(self.url.removesuffix("/v1") + path, body.encode() or None)
        with urlopen(request, timeout=PATIENCE) as response:
            return bytes(response.read())


@pytest.fixture
def server() -> Iterator[Server]:
    with start_mock("--latency", "0.02") as url:
        yield Server(url)


def serve(workspace: Path, url: str, *roles: str, settings: tuple[str, ...] = ()) -> list[str]:
    """Return the command line of a run until the stage of the last role; these roles are served at an address."""
    served = [f"models.{role}.{setting}" for role in roles for setting in (*SERVED, f"base_url={url}")]
    return make_run(workspace, "--until", STAGES[roles[-1]], settings=(*SETTINGS, *served, *settings))


def digest_stages(workspace: Path) -> dict[str, str]:
    return digest_files(workspace, "stages/**/*.parquet")


def wait_until(there: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def interrupt(
    command: list[str],
    server: Server,
    number: signal.Signals,
    ready: Callable[[], object],
    send: Callable[[int, int], None] = os.kill,
    dropping: bool = False,
) -> None:
    """Send a run a signal once it is ready, let its requests be answered, and see that it ends in order.

    With ``dropping`` they are not answered: a second signal ends the run.
    """
    folder = Path(command[command.index("--workspace") + 1]).parent
    said = folder / "stderr.txt"
    with said.open("w") as err, subprocess.Popen(
        command, cwd=ROOT, env=make_environment(), stdout=subprocess.DEVNULL, stderr=err, start_new_session=True
    ) as child:  # fmt: skip
        wait_until(lambda: ready() or child.poll() is not None)
        assert child.poll() is None, said.read_text()[-2000:]
        send(child.pid, number)
        wait_until(lambda: "stopping:" in said.read_text() or child.poll() is not None)
        again = time.monotonic()
        if dropping:
            send(child.pid, number)
        else:
            server.hold()
        child.wait(PATIENCE)
        # Without the second signal the run waits for its requests, which nobody answers, as long as the grace.
        assert not dropping or time.monotonic() - again < GRACE
    assert "interrupted" in check_one_line(Outcome(child.returncode, "", said.read_text()), 3)
    wait_until(lambda: not list_session(child.pid))


@dataclass(frozen=True)
class Calm:
    """A run that nobody disturbed: a solver's requests, then a teacher's."""

    before: Path
    """A workspace whose stages before difficulty are done, by scripted players."""
    asked: tuple[int, int]
    """Requests of the solver, and of both."""
    digests: dict[str, str]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    before = tmp_path_factory.mktemp("before") / "workspace"
    prepared = call(make_run(before, "--until", "groundings", settings=SETTINGS))
    assert prepared.code == 0, prepared.err
    workspace = copy_workspace(before, tmp_path_factory.mktemp("calm") / "workspace")
    asked = []
    with start_mock() as url:
        for until in ("difficulty", "rollouts"):
            outcome = call([*serve(workspace, url, "solver", "teacher"), "--until", until])
            assert outcome.code == 0, outcome.err
            asked.append(Server(url).count("requests"))
    solved, whole = asked
    return Calm(before, (solved, whole), digest_stages(workspace))


@pytest.fixture
def workspace(calm: Calm, tmp_path: Path) -> Path:
    return copy_workspace(calm.before, tmp_path / "workspace")


def check_end(command: list[str], workspace: Path, server: Server, calm: Calm, twice: int = 0) -> None:
    """Run a command to its end: what it leaves is what an undisturbed run leaves."""
    server.hold()
    outcome = call(command)
    assert outcome.code == 0, outcome.err
    assert digest_stages(workspace) == calm.digests
    assert server.count("distinct") == calm.asked[1]
    assert server.count("paid_duplicates") <= twice


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_signals_at_five_moments_of_a_run_make_nothing_be_paid_twice(
    calm: Calm, workspace: Path, server: Server, number: signal.Signals
) -> None:
    """Each command goes on from where the one before was stopped."""
    solved = calm.asked[0]
    command = serve(workspace, server.url, "solver", "teacher")
    # Two questions at a time, of which each is finished: there are enough of them.
    assert solved > 4 * PAIR

    def count_shards() -> int:
        return len(list(workspace.glob("stages/difficulty/*/part-*.json")))

    interrupt(command, server, number, server.hold_from(0))
    amid = server.hold_from(server.count("requests") + 2)
    interrupt(command, server, number, amid)
    # At the end of a shard, with the first requests of the next one under way.
    shards, begun = count_shards(), server.hold_from(server.count("requests") + PAIR)
    interrupt(command, server, number, lambda: begun() and count_shards() > shards)
    near = server.hold_from(solved - 1)
    interrupt(command, server, number, near)
    assert not list(workspace.glob("stages/difficulty/*/manifest.json"))
    # At the hand-over: the teacher's first request is there.
    interrupt(command, server, number, server.hold_from(solved))
    assert list(workspace.glob("stages/difficulty/*/manifest.json"))
    assert not list(workspace.glob("stages/rollouts/*/manifest.json"))
    check_end(command, workspace, server, calm)


@pytest.mark.parametrize(
    ("number", "send"),
    [(signal.SIGTERM, os.kill), (signal.SIGTERM, os.killpg), (signal.SIGINT, os.killpg)],
    ids=["SIGTERM to one", "SIGTERM to all", "Ctrl-C to all"],
)
def test_signals_at_two_moments_of_a_pool_of_processes_make_nothing_be_paid_twice(
    calm: Calm, workspace: Path, server: Server, number: signal.Signals, send: Callable[[int, int], None]
) -> None:
    command = serve(workspace, server.url, "solver", "teacher", settings=SPREAD)
    for more in (1, PAIR):
        interrupt(command, server, number, server.hold_from(server.count("requests") + more), send)
    check_end(command, workspace, server, calm)


@pytest.mark.parametrize(
    ("number", "settings", "questions"),
    [(signal.SIGHUP, (), 2), (signal.SIGTERM, SPREAD, 4)],
    ids=["one process", "a pool"],
)
def test_a_second_signal_drops_what_is_in_flight_and_harms_nothing(
    calm: Calm, workspace: Path, server: Server, number: signal.Signals, settings: tuple[str, ...], questions: int
) -> None:
    command = serve(workspace, server.url, "solver", "teacher", settings=settings)
    interrupt(command, server, number, server.hold_from(9), dropping=True)
    # Each question under way has one request that is unanswered, or answered and not recorded yet.
    check_end(command, workspace, server, calm, twice=questions)
