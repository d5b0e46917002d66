"""``synth status`` of runs under way in other processes, and their logs in JSON."""

import json
import shutil
import signal
import socket
import subprocess
import time

import pytest

from pipelines.cli.status import describe_status, render_run, render_status, summarise_workspace
from pipelines.errors import Unavailable
from pipelines.run.underway import place_progress, read_runs
from pipelines.run.workspace import Workspace
from tests.chaos.driving import (
    ROOT,
    SMALL,
    call,
    call_here,
    copy_workspace,
    list_settings,
    make_command,
    make_environment,
    share_small_run,
)
from tests.pipelines.cli.conftest import show
from tests.pipelines.run.test_heartbeat import make_process, make_work, read_metrics

PATIENCE = 600.0


@pytest.fixture
def own(tmp_path_factory, tmp_path):
    """A finished workspace."""
    return copy_workspace(share_small_run(tmp_path_factory.getbasetemp())[0], tmp_path / "workspace")


@pytest.fixture
def away():
    """The address of a model's server that refuses connections, held so that nobody else listens there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def make_arguments(workspace, *settings):
    return ("run", "--recipe", "demo", "--workspace", workspace, "--limit", "60", *list_settings((*SMALL, *settings)))


def start_waiting(workspace, address, *settings):
    """Start a run whose writer of questions is away."""
    model = ("adapter=openai", "name=m", f"base_url={address}")
    model = tuple(f"models.writer.{setting}" for setting in model)
    command = make_command(*make_arguments(workspace, *model, *settings), "--until", "questions")
    return subprocess.Popen(command, cwd=ROOT, env=make_environment(), stderr=subprocess.PIPE, text=True)


def wait_for_waiting(workspace, child):
    """Return the status of a run as soon as it waits for its model."""
    end = time.monotonic() + PATIENCE
    while True:
        document = describe_status(summarise_workspace(workspace))
        if any(run["waits"] for run in document.get("runs", ())):
            return document
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.1)


def read_lines(text):
    """Return the lines of a log in JSON; each has the keys that every line has."""
    lines = list(map(json.loads, text.splitlines()))
    assert lines
    assert all({"time", "level", "event", "message"} <= set(line) for line in lines)
    return lines


def test_a_run_that_waits_is_seen_from_outside_and_told_as_gone_once_it_is_killed(own, away, capsys):
    child = start_waiting(own, away)
    try:
        (run,) = wait_for_waiting(own, child)["runs"]
        with pytest.raises(Unavailable, match="another run holds it"), Workspace(own).claim():
            raise AssertionError("status has let go of the run's lock")
        shown = call_here(capsys, "status", "--workspace", own)
        metrics = read_metrics(call_here(capsys, "status", "--prometheus", "--workspace", own).out)
        written = {path: path.stat().st_ino for path in place_progress(Workspace(own)).iterdir()}
    finally:
        child.kill()
        child.wait()
        child.stderr.close()
    (wait,) = run["waits"]
    assert (run["alive"], run["recipe"], run["stages"][run["stage"] - 1]) == (True, "demo", "questions")
    assert [(each["role"], each["pid"], each["state"]) for each in run["processes"]] == [
        ("driver", child.pid, "running")
    ]
    assert (wait["place"], run["in_flight"] > 0) == (away, True)
    assert "no connection" in wait["cause"]
    assert next(work for work in run["work"] if work["what"] == "questions")["backlog_rows"] > 0
    assert shown.code == 0
    assert f"waiting {wait['seconds']:.0f}"[:8] in shown.out
    assert away in "".join(shown.out.split())
    assert metrics["synth_run_under_way",] == 1
    assert metrics["synth_requests_in_flight",] > 0
    assert len(written) == 1
    (dead,) = describe_status(summarise_workspace(own))["runs"]
    assert (dead["alive"], dead["processes"][0]["state"], dead["in_flight"]) == (False, "gone", 0)
    assert "has no heartbeat" in show(render_status(summarise_workspace(own)))


def test_an_interrupted_run_logs_json_to_its_end_and_leaves_no_file(own, away):
    child = start_waiting(own, away, "runtime.log=json")
    try:
        wait_for_waiting(own, child)
        # Twice: the first lets requests in flight finish, and these never do.
        child.send_signal(signal.SIGINT)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
        child.wait()
    lines = read_lines(said)
    assert child.returncode == 3
    assert (lines[-1]["event"], lines[-1]["level"], lines[-1]["exit_code"]) == ("error", "error", 3)
    assert "interrupted" in lines[-1]["message"]
    assert "questions" in {line.get("stage") for line in lines}
    assert len({line["run"] for line in lines}) == 1
    assert read_runs(Workspace(own)) == []


@pytest.mark.slow
def test_workers_of_a_run_are_seen_beside_its_driver_and_a_run_of_them_logs_only_json(own, away):
    engine = ("runtime.log=json", "runtime.engine=processes", "runtime.workers=2")
    child = start_waiting(own, away, *engine)
    try:
        (run,) = wait_for_waiting(own, child)["runs"]
    finally:
        child.terminate()
        _, said = child.communicate(timeout=PATIENCE)
    assert [each["role"] for each in run["processes"]].count("driver") == 1
    workers = {each["pid"] for each in run["processes"] if each["role"] == "worker"}
    assert workers
    assert child.pid not in workers
    assert next(work for work in run["work"] if work["what"] == "questions")["backlog_rows"] > 0
    assert read_lines(said)[-1]["exit_code"] == 3
    shutil.rmtree(next(own.glob("stages/questions/*")).parent)
    done = call(make_command(*make_arguments(own, *engine), "--until", "questions"))
    lines = read_lines(done.err)
    assert done.code == 0
    assert {line["stage"] for line in lines if line["event"] == "shard"} == {"questions"}
    assert read_runs(Workspace(own)) == []


def test_a_run_logs_json_and_removes_what_a_killed_one_left(own, capsys):
    make_process(Workspace(own), "left", run="r0", heard=time.time() - 300)
    done = call_here(capsys, *make_arguments(own, "runtime.log=json"))
    lines = read_lines(done.err)
    assert done.code == 0
    assert lines[0]["event"] != "log"
    assert {line["stage"] for line in lines if line["event"] == "end"} >= {"corpus", "seeds", "paths", "releases"}
    assert list(place_progress(Workspace(own)).iterdir()) == []


@pytest.mark.parametrize("wrong", [["--set", "paths.hops=9"], ["--config", "nowhere.toml"], ["--set", "no=1"]])
def test_a_run_that_fails_at_once_says_so_in_json(wrong, tmp_path, capsys):
    failed = call_here(capsys, "run", "--workspace", tmp_path, "--set", "runtime.log=json", *wrong)
    (line,) = read_lines(failed.err)
    assert failed.code == 2
    assert (line["event"], line["level"], line["exit_code"]) == ("error", "error", 2)


def test_the_log_of_the_next_command_is_text_again(tmp_path, capsys):
    call_here(capsys, "run", "--workspace", tmp_path, "--set", "runtime.log=json", "--set", "no=1")
    assert call_here(capsys, "run", "--workspace", tmp_path, "--set", "no=1").err.startswith("synth: ")


def test_a_status_without_a_run_is_as_it_was(workspace):
    document = describe_status(summarise_workspace(workspace))
    assert set(document) == {"root", "absent", "corpus", "stages", "releases", "folders"}
    assert "Run " not in show(render_status(summarise_workspace(workspace)))


def test_a_run_on_another_host_is_shown_with_its_stages_and_processes(workspace):
    space = Workspace(workspace)
    stages = ("seeds", "paths", "questions")
    make_process(space, "driver", role="driver", stages=stages, started=time.time() - 600, host="north", pid=11)
    work = make_work(done=100, total=400, rate=10.0, backlog_rows=60, backlog_shards=2)
    make_process(space, "worker", host="south", pid=12, work=(work,), in_flight=5)
    (run,) = summarise_workspace(workspace).runs
    text = show(render_run(run))
    assert "of demo, since" in text
    assert "(10 min 00 s): stage 2 of 3" in text
    assert {"paths", "100", "400", "10.0", "30", "60", "2"} <= set(text.split())
    assert "5 requests in flight" in text
    assert "driver 11 on north: running" in text
    assert "worker 12 on south: running" in text


def test_a_status_of_a_workspace_whose_files_come_and_go_is_no_error(workspace, monkeypatch):
    from pathlib import Path

    is_file = Path.is_file

    def vanish(path, **more):
        found = is_file(path, **more)
        if path.suffix == ".parquet":
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", vanish)
    assert summarise_workspace(workspace).folders
