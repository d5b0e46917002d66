"""Engine `processes`: workers that are killed, drivers that are interrupted or killed, and no process left behind."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.driving import (
    ROOT,
    SMALL,
    begin_small,
    call,
    check_one_line,
    copy_workspace,
    digest_outputs,
    list_trusted,
    make_environment,
    make_run,
    run_small,
)
from tests.mock_openai import Schedule, start_mock

pytestmark = pytest.mark.slow
SETTINGS = (*SMALL[:2], "runtime.shard_rows=4", SMALL[3], "seeds.limit=24")
SPREAD = (*SETTINGS, "runtime.engine=processes", "runtime.workers=2")
PATIENCE = 600.0


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose seeds are drawn."""
    workspace = begin_small(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("begun") / "workspace")
    run_small(workspace, "--until", "seeds", settings=SETTINGS)
    return workspace


@pytest.fixture(scope="module")
def here(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one process makes of it."""
    workspace = copy_workspace(begun, tmp_path_factory.mktemp("here") / "workspace")
    run_small(workspace, settings=SETTINGS)
    return digest_outputs(workspace)


@pytest.fixture
def workspace(begun: Path, tmp_path: Path) -> Path:
    return copy_workspace(begun, tmp_path / "workspace")


def start(workspace: Path) -> "subprocess.Popen[str]":
    """Start a run whose shards are made by two processes."""
    return subprocess.Popen(
        make_run(workspace, settings=SPREAD),
        cwd=ROOT,
        env=make_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(there: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def list_workers(driver: int) -> list[int]:
    """Return the processes of a driver's pool, by what their command lines say."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == driver and b"spawn_main" in command:
                found.append(int(folder.name))
    return found


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_shards(workspace: Path, child: "subprocess.Popen[str]") -> list[int]:
    """Wait until workers have written a shard, and return the workers."""
    wait_until(lambda: child.poll() is not None or list(workspace.glob("stages/paths/*/part-*.json")))
    assert child.poll() is None, child.communicate()[1][-2000:]
    return list_workers(child.pid)


def test_a_worker_that_is_killed_is_replaced_and_the_run_ends_with_the_same_bytes(workspace, here):
    child = start(workspace)
    os.kill(wait_for_shards(workspace, child)[0], signal.SIGKILL)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, err[-2000:]
    assert "a worker process was lost" in err
    assert digest_outputs(workspace) == here


def end(workspace: Path, how: Callable[[int], None]) -> tuple[int, str]:
    """End a run with its workers at work, and see that none is left; return its exit code and what it said."""
    child = start(workspace)
    workers = wait_for_shards(workspace, child)
    assert workers
    how(child.pid)
    _, err = child.communicate(timeout=PATIENCE)
    wait_until(lambda: not any(map(is_alive, workers)))
    assert not [path for path in list_trusted(workspace) if path.startswith("stages/trajectories")]
    return child.returncode, err


@pytest.mark.parametrize(
    "how",
    [
        lambda driver: os.kill(driver, signal.SIGTERM),
        lambda driver: os.killpg(driver, signal.SIGTERM),
        lambda driver: os.killpg(driver, signal.SIGINT),
    ],
    ids=["SIGTERM to the driver", "SIGTERM to all", "Ctrl-C to all"],
)
def test_a_driver_that_is_interrupted_lets_its_workers_finish_and_end(workspace, how):
    code, err = end(workspace, how)
    assert (code, err.splitlines()[-1]) == (3, "synth: interrupted; the same command goes on from here")


def test_workers_whose_driver_is_killed_end_and_the_same_command_goes_on(workspace, here):
    assert end(workspace, lambda driver: os.kill(driver, signal.SIGKILL))[0] == -signal.SIGKILL
    run_small(workspace, settings=SPREAD)
    assert digest_outputs(workspace) == here


def test_replies_that_workers_cannot_use_end_the_command_in_one_line_and_are_asked_again(workspace):
    def make(url: str) -> list[str]:
        model = ("adapter=openai", "name=mock", "revision=r1", f"base_url={url}")
        settings = (*SPREAD, *(f"models.writer.{setting}" for setting in model))
        return make_run(workspace, "--until", "questions", settings=settings)

    with start_mock(schedule=Schedule(shares={"null": 1.0})) as broken:
        assert "had no usable reply" in check_one_line(call(make(broken)), 3)
    assert list(workspace.glob("stages/paths/*/part-*.json"))
    assert not list(workspace.glob("stages/questions/*/part-*.json"))
    with start_mock() as well:
        # The model is well and no writer: it was asked again, and each row fails for what it says now.
        assert "rows failed" in check_one_line(call(make(well)), 1)
