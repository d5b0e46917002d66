"""What a run says while it goes on: lines, bars, notes of waits, and the file that `synth status` reads."""

import io
import json
import signal
import socket
import subprocess
import time

import pytest

from pipelines.errors import Unavailable
from pipelines.run import progress
from pipelines.run.progress import Reporter, Screen, following_run, make_reporter, read_progress
from pipelines.run.workspace import Workspace
from pipelines.secrets import MASK
from pipelines.services.traffic import Waiting
from tests.chaos.driving import (
    ROOT,
    SMALL,
    call_here,
    copy_workspace,
    list_settings,
    make_command,
    make_environment,
    share_small_run,
)

PATIENCE = 600.0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_pieces_side_by_side_are_told_in_one_line_and_each_when_it_ends(monkeypatch):
    monkeypatch.setattr(progress, "LOG_EVERY", 0.0)
    out = io.StringIO()
    first = make_reporter(out)
    second = first.fork()
    first.begin("paths", 8)
    second.begin("questions")
    first.advance(3)
    first.finish("8 in, 5 kept")
    second.advance(2)
    second.note("asks again")
    second.warn("no picture lies beside the dump")
    assert out.getvalue().splitlines() == [
        "paths 3/8 rows | questions 0 rows",
        "paths          8 in, 5 kept",
        "questions 2 rows",
        "questions      asks again",
        "warning        no picture lies beside the dump",
    ]


def test_a_terminal_gets_bars_and_the_log_has_every_line_without_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    out = Terminal()
    reporter = Reporter(Screen(out))
    with following_run(reporter, Workspace(tmp_path), "mine", "demo"):
        reporter.begin("paths", 8)
        reporter.advance(3)
        time.sleep(0.3)
        reporter.finish("8 in, Bearer " + "a" * 40)
    assert "3/8" in out.getvalue()
    log = (tmp_path / "logs" / "mine.log").read_text()
    assert f"paths          8 in, Bearer {MASK}" in log


def test_a_wait_is_told_by_place_and_cause_and_is_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.02)
    monkeypatch.setattr(progress, "LEAST_WAIT", 0.1)
    out = io.StringIO()
    with following_run(make_reporter(out), Workspace(tmp_path), "", "demo"), Waiting() as waiting:
        waiting.note("http://a/v1", "refused")
        end = time.monotonic() + 60
        while "http://a/v1 (refused)" not in out.getvalue():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert "http://a/v1" in read_progress(Workspace(tmp_path)).waits
    assert out.getvalue().count("refused") == 1


@pytest.mark.parametrize(
    ("error", "state", "said"),
    [(KeyboardInterrupt(), "stopped", ""), (Unavailable("the model is away"), "failed", "the model is away")],
)
def test_the_file_says_how_a_run_ended(tmp_path, error, state, said):
    workspace = Workspace(tmp_path)
    assert read_progress(workspace) is None
    with following_run(Reporter(), workspace, "mine", "demo"):
        pass
    assert read_progress(workspace).state == "finished"
    with pytest.raises(type(error)), following_run(Reporter(), workspace, "mine", "demo"):
        raise error
    found = read_progress(workspace)
    assert (found.run, found.recipe, found.state, found.error) == ("mine", "demo", state, said)


@pytest.fixture
def own(tmp_path_factory, tmp_path):
    """A finished workspace."""
    return copy_workspace(share_small_run(tmp_path_factory.getbasetemp())[0], tmp_path / "workspace")


def test_status_sees_a_run_that_waits_and_that_it_was_interrupted_or_killed(own, capsys):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        for number, state in ((signal.SIGINT, "stopped"), (signal.SIGKILL, "died")):
            child = start_waiting(own, away)
            try:
                run = wait_for_waiting(own, child, capsys)
                # Twice: the first lets requests in flight finish, and these never do.
                child.send_signal(number)
                time.sleep(0.5)
                child.send_signal(number)
                child.communicate(timeout=PATIENCE)
            finally:
                child.kill()
                child.wait()
            assert (run["state"], run["recipe"], run["pid"]) == ("running", "demo", child.pid)
            assert run["in_flight"] > 0
            assert "questions" in [stage["stage"] for stage in run["stages"]]
            shown = call_here(capsys, "status", "--workspace", own)
            assert f": {state}; `synth run` goes on from there" in " ".join(shown.out.split())


def start_waiting(workspace, address):
    """Start a run whose writer of questions is away."""
    model = (f"models.writer.{part}" for part in ("adapter=openai", "name=m", f"base_url={address}"))
    settings = list_settings((*SMALL, *model))
    command = make_command("run", "--recipe", "demo", "--workspace", workspace, "--limit", 60, *settings)
    return subprocess.Popen(
        [*command, "--until", "questions"], cwd=ROOT, env=make_environment(), stderr=subprocess.PIPE, text=True
    )


def wait_for_waiting(workspace, child, capsys):
    """Return what status says of a run as soon as that waits for its model."""
    end = time.monotonic() + PATIENCE
    while True:
        run = json.loads(call_here(capsys, "status", "--json", "--workspace", workspace).out)["run"]
        if run and run["pid"] == child.pid and "no connection" in run["waits"]:
            return run
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.1)
