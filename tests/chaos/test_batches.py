"""kill -9 while a role is asked in batches: the same command finds what is under way; nothing is paid twice or lost."""

import random
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.cli.plan import estimate_run
from pipelines.config.loading import make_config, read_recipe
from tests.benchmarks.batches import Job
from tests.chaos.driving import (
    TINY,
    begin_small,
    call,
    check_one_line,
    copy_workspace,
    make_run,
    run_small,
)
from tests.mock_batches import start_batches

ROWS, BATCH_ROWS = 300, 60


def make_solved(workspace: Path, url: str, *solver: str) -> list[str]:
    """Return the command line of a run until difficulty whose solver is served at an address."""
    return make_run(workspace, "--until", "difficulty", settings=list_solver(url, *solver))


def list_solver(url: str, *solver: str) -> tuple[str, ...]:
    own = ("adapter=openai", "name=mock", "revision=r1", "prices={ output = 1000 }", f"base_url={url}", *solver)
    return (*TINY, "difficulty.attempts=1", *(f"models.solver.{setting}" for setting in own))


def plan_difficulty(workspace: Path, *settings: str) -> float:
    """Return what a plan for more seeds says that the stage will cost."""
    config = make_config(read_recipe("demo"), [*settings, "seeds.limit=40"])
    money = {stage.stage: stage.money for stage in estimate_run(config, workspace).stages}["difficulty"]
    assert money is not None
    return money


@pytest.fixture(scope="module")
def grounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose stages before difficulty are done, with scripted players."""
    workspace = begin_small(tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("grounded") / "workspace")
    run_small(workspace, "--until", "groundings", settings=TINY)
    return workspace


def open_job(folder: Path, url: str) -> Job:
    folder.mkdir()
    return Job(url, folder, ROWS, BATCH_ROWS)


def read_solved(workspace: Path) -> list[dict]:
    """Return the rows of difficulty; with one attempt a condition none is spared by asking one after another."""
    paths = sorted(workspace.glob("stages/difficulty/*/*.parquet"), key=lambda path: path.name)
    return [{**row, "key": ""} for path in paths for row in pq.read_table(path).to_pylist()]


@pytest.mark.slow
def test_a_run_killed_at_random_moments_pays_each_line_once_and_loses_no_row(tmp_path: Path) -> None:
    draw = random.Random(19)
    with start_batches(0.8, failed=0.05, seed=2, expired=[1], lost=[3], after=0.1, reading=0.1) as url:
        job, kills = open_job(tmp_path / "job", url), 0
        for _ in range(5):
            # The first second is the start of Python; a process that is over by then ends the kills.
            child, asked, until = job.start(), job.read_counts(), time.monotonic() + 60.0
            while child.poll() is None and job.read_counts() == asked and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 0.8))
            over = child.poll() is not None
            child.kill()
            child.wait()
            if over:
                break
            kills += 1
        job.finish()
        counts, usage = job.read_counts(), job.read_usage()
    assert kills >= 3
    assert job.count_rows() == (ROWS, 0)
    assert (counts["paid"], counts["paid_duplicates"]) == (ROWS, 0)
    assert usage.calls + usage.cached_calls == ROWS
    assert not list((job.scratch / "workspace" / "batches").glob("[!.]*"))


@pytest.mark.slow
def test_a_stage_in_batches_makes_the_rows_of_live_requests_at_half_the_price(grounded: Path, tmp_path: Path) -> None:
    workspace, other = (copy_workspace(grounded, tmp_path / name) for name in ("live", "batched"))
    with start_batches(0.2) as url:
        live = call(make_solved(workspace, url))
        batched = call(make_solved(other, url, "mode=batch"))
    assert (live.code, batched.code) == (0, 0), batched.err[-2000:]
    stages = [outcome.document["stages"][-1] for outcome in (live, batched)]
    assert stages[0]["calls"] == stages[1]["calls"] > 0
    assert stages[1]["cost"] == pytest.approx(stages[0]["cost"] / 2)
    assert read_solved(workspace) == read_solved(other)
    assert "requests is completed" in batched.err
    # Plans know what a measured run was asked in.
    plans = [
        plan_difficulty(root, *list_solver(url, mode))
        for root in (workspace, other)
        for mode in ("mode=live", "mode=batch")
    ]
    assert plans == pytest.approx([plans[0], plans[0] / 2] * 2)
    assert plans[0] > 0


@pytest.mark.slow
def test_a_refused_batch_ends_a_run_in_the_servers_words(grounded: Path, tmp_path: Path) -> None:
    workspace = copy_workspace(grounded, tmp_path / "workspace")
    with start_batches(0.2) as url:
        outcome = call(make_solved(workspace, url, "mode=batch", "name=another"))
    line = check_one_line(outcome, 2)
    assert "The model ['another'] does not exist (model_not_found, line 1)" in line
