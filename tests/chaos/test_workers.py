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
    call,
    check_one_line,
    digest_outputs,
    list_trusted,
    make_environment,
    make_run,
    read_funnel,
    run_small,
)

pytestmark = pytest.mark.slow
SETTINGS = (*SMALL[:2], "runtime.shard_rows=4", SMALL[3], "seeds.limit=24")
SPREAD = (*SETTINGS, "runtime.engine=processes", "runtime.workers=2")
PATIENCE = 120.0


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], list[dict[str, object]]]:
    """What one process writes, and its funnel."""
    workspace = tmp_path_factory.mktemp("here")
    document = run_small(workspace, settings=SETTINGS)
    return digest_outputs(workspace), read_funnel(document)


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


def test_a_worker_that_is_killed_is_replaced_and_the_run_ends_with_the_same_bytes(tmp_path, here):
    child = start(tmp_path)
    os.kill(wait_for_shards(tmp_path, child)[0], signal.SIGKILL)
    out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, err[-2000:]
    assert "a worker process was lost" in err
    assert digest_outputs(tmp_path) == here[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 3), (signal.SIGINT, 3), (signal.SIGKILL, -9)])
def test_a_driver_that_is_ended_leaves_no_worker_and_the_same_command_goes_on(tmp_path, here, number, code):
    child = start(tmp_path)
    workers = wait_for_shards(tmp_path, child)
    assert workers
    child.send_signal(number)
    _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == code, err[-2000:]
    wait_until(lambda: not any(map(is_alive, workers)))
    assert not [path for path in list_trusted(tmp_path) if path.startswith("stages/paths")]
    again = call(make_run(tmp_path, settings=SPREAD))
    assert again.code == 0, again.err[-2000:]
    assert digest_outputs(tmp_path) == here[0]


def test_an_error_in_a_worker_ends_the_command_with_its_code_and_its_one_line(tmp_path):
    settings = (*SPREAD, "judging.min_attempts=1", "judging.max_unscored=0.0", "models.judge.adapter=judge",
                "models.judge.name=torn", "models.judge.settings={empty=1.0}")  # fmt: skip
    outcome = call(make_run(tmp_path, settings=settings))
    assert "answers are unscored" in check_one_line(outcome, 1)
