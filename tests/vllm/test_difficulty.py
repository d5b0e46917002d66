"""Difficulty end to end over real servers: pictures and forced replies, nothing paid twice, and kill -9 on the way."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.config.loading import make_config, read_recipe
from pipelines.run.loop import RunDocument
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from schemas.datasets import Difficulty
from tests.chaos.driving import ROOT, make_command, read_ledger

IN_FLIGHT = 16
"""Records at once, as the settings have it."""


def run(settings: list[str], workspace: Path) -> RunDocument:
    return run_recipe(make_config(read_recipe("demo"), settings), workspace, "difficulty", ())


def read_rows(workspace: Path) -> list[Difficulty]:
    folder = Workspace(workspace)
    return list(read_parts(folder.stage("difficulty", folder.read_latest()["difficulty"]), Difficulty))


@pytest.fixture(scope="module")
def measured(settings, attached, tmp_path_factory) -> tuple[Path, RunDocument]:
    workspace = tmp_path_factory.mktemp("served")
    return workspace, run([*settings, *attached], workspace)


def test_every_question_is_kept_refused_or_failed(measured):
    _, document = measured
    stage = document.stages[-1]
    assert stage.stage == "difficulty"
    assert stage.rows_in > 0
    assert stage.rows_in == stage.kept + sum(stage.rejected.values()) + stage.failed
    assert stage.failed == 0
    assert stage.usage.calls > stage.rows_in


def test_every_condition_is_attempted_by_the_model_that_was_served(measured):
    workspace, _ = measured
    rows = read_rows(workspace)
    assert rows
    conditions = {cell.condition for row in rows for cell in row.cells}
    assert {"text", "image", "image+image-search"} <= conditions
    for cell in (cell for row in rows for cell in row.cells):
        assert cell.solver == "tiny-vision"
        assert cell.day
        assert cell.attempts == 2
        assert cell.correct + cell.unscored <= cell.attempts


def test_what_the_comparer_leaves_open_the_judge_is_asked(measured, metrics):
    assert measured[1].stages[-1].usage.calls > 0
    assert metrics["judge"].answered > 0


def test_prompts_share_their_long_prefix(measured, metrics):
    solver = metrics["solver"]
    assert solver.read("prefix_cache_hits_total") > 0.2 * solver.read("prefix_cache_queries_total")


def test_a_second_run_sends_nothing(measured, settings, attached, metrics):
    workspace, _ = measured
    before = {role: metric.answered for role, metric in metrics.items()}
    again = run([*settings, *attached, "runtime.concurrency=4"], workspace)
    assert not again.stages[-1].ran
    fresh = run([*settings, *attached, "difficulty.attempts=1"], workspace)
    assert fresh.stages[-1].ran
    assert fresh.stages[-1].usage.calls == 0
    assert fresh.stages[-1].usage.cached_calls > 0
    assert {role: metric.answered for role, metric in metrics.items()} == before


def test_killed_in_the_middle_the_same_command_goes_on(settings, attached, metrics, tmp_path):
    run_until = ["--until", "difficulty", "--json"]
    chosen = [part for setting in [*settings, *attached] for part in ("--set", setting)]
    command = make_command("run", "--workspace", tmp_path, *chosen, *run_until)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        end = time.monotonic() + 120
        while len(list_paid(tmp_path)) < 40:
            assert child.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        child.send_signal(signal.SIGKILL)
    paid = list_paid(tmp_path)
    document = run([*settings, *attached], tmp_path)
    stage = document.stages[-1]
    assert stage.rows_in == stage.kept + sum(stage.rejected.values()) + stage.failed
    last = read_ledger(tmp_path)
    assert paid <= last.replies
    assert not last.in_flight
    assert last.asks.total() - len(last.replies) <= IN_FLIGHT


def list_paid(workspace: Path) -> frozenset[str]:
    """Return the keys of requests to models that were answered."""
    try:
        return read_ledger(workspace).replies
    except OSError:
        return frozenset()
