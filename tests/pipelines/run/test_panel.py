"""The panel of a run as a person sees it on a terminal."""

import errno
import io
import os
import re
import signal
import socket
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console

from pipelines.run.jsonlog import open_run_log
from pipelines.run.panel import open_panel, render_panel, tell_span
from pipelines.run.progress import make_reporter
from pipelines.run.underway import ProcessProgress, WorkProgress, merge_run
from schemas.manifest import Usage
from tests.terminal import Terminal

LOG = Path("/somewhere/workspace/logs/20261127-101500-0a1b2c3d.log")
STAGES = (
    "seeds", "paths", "questions", "rewrites", "groundings", "difficulty", "enhancements", "selections", "rollouts",
    "trajectories", "releases",
)  # fmt: skip
PLACE = "http://gpu-7.example.org:8000/v1"


def make_work(what, done, total=0, kept=0, rejected=0, open_=False, rate=0.0):
    outcomes = {"kept": kept, "rejected": rejected, "failed": done - kept - rejected}
    return WorkProgress(what=what, unit="rows", done=done, total=total, outcomes=outcomes, open=open_, rate=rate)


def make_run(**more):
    """An English Wikipedia under way: the largest numbers that the panel has to hold."""
    now = time.time()
    work = (
        make_work("seeds", 7_012_345, 0, 1_812_345, 5_200_000),
        make_work("paths", 1_812_345, 0, 812_345, 1_000_000),
        make_work("questions", 512_345, 812_345, 412_345, 99_000, True, 1_234.5),
        make_work("rewrites", 400_123, 0, 390_000, 10_000, True, 987.6),
    )
    wait = {"place": PLACE, "cause": "no connection (Connect call failed)", "since": now - 42, "requests": 64}
    values = {
        "run": LOG.stem, "recipe": "opensearch-vl", "role": "driver", "host": "h", "space": "", "pid": os.getpid(),
        "started": now - 7_500, "heard": now, "money": 500.0, "stages": STAGES, "work": work, "in_flight": 64,
        "failures": 3, "usage": Usage(calls=2_345_678, cached_calls=12, tokens_in=1_234_567_890, tokens_out=98_765_432,
        retries=7, cost=123.456), "waits": ({**wait, "until": now + 258},),
    }  # fmt: skip
    return merge_run([ProcessProgress(**(values | more))])


def draw(run, width, height):
    console = Console(width=width, height=height + 1, file=io.StringIO())
    console.print(render_panel(run, LOG, width, height))
    return console.file.getvalue().rstrip("\n").splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 23), (120, 40), (200, 60)])
def test_the_panel_fits_and_cuts_no_number(width, height):
    lines = draw(make_run(), width, height)
    text = "\n".join(lines)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "stage 3-4 of 11, questions and on" in lines[0]
    for whole in (
        "7,012,345",
        "512,345/812,345",
        "1,812,345",
        "5,200,000",
        "1,234,567,890",
        "98,765,432",
        "64 in flight",
    ):
        assert re.search(rf"(?<![\d,]){whole}(?![\d,]*\d)", text)
    assert "…" not in text
    assert "money 123.46 of 500.00 (25%)" in text
    assert f"42 s for {PLACE}" in " ".join(text.split())
    assert "64 requests" in text
    assert re.search(r"until \d\d:\d\d:\d\d at most", " ".join(text.split()))
    assert str(LOG) in text.replace("\n", "")
    for stage in STAGES:
        assert sum(line.startswith(stage) for line in lines[1:]) == 1


def test_a_wide_terminal_shows_what_waits_at_each_stage_too():
    narrow, wide = (draw(make_run(), width, 40)[1].split() for width in (80, 120))
    assert narrow == ["stage", "done", "kept", "rejected", "failed", "per", "s", "state"]
    assert set(wide) - set(narrow) == {"waiting", "shards"}


@pytest.mark.parametrize("height", [8, 12, 16])
def test_on_a_low_terminal_the_stages_at_work_are_shown(height):
    lines = draw(make_run(waits=()), 80, height)
    assert len(lines) <= height
    assert any(line.startswith("questions") for line in lines)


def test_before_the_first_stage_the_panel_says_what_is_done():
    work = WorkProgress(what="corpus pages", unit="MB", done=120, total=480, rate=4.0, open=True)
    text = "\n".join(draw(make_run(stages=(), work=(work,), waits=()), 80, 23))
    assert "corpus pages" in text.splitlines()[0]
    assert "120/480" in text
    assert "1 min 30 s left" in text


def test_spans_are_told_in_their_two_largest_units():
    assert [tell_span(seconds) for seconds in (-1, 59, 60, 3_599, 3_600, 90_061)] == [
        "0 s", "59 s", "1 min 00 s", "59 min 59 s", "1 h 00 min", "25 h 01 min"
    ]  # fmt: skip


SCRIPT = """
import asyncio, sys, time
from pathlib import Path
from pipelines.cli.console import guarded
from pipelines.config.settings import ModelConfig
from pipelines.errors import GateNotMet
from pipelines.run.heartbeat import open_progress
from pipelines.run.jsonlog import start_json_log
from pipelines.run.progress import make_reporter
from pipelines.run.workspace import Workspace
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.protocols import ChatRequest, Message, Sampling

def run():
    ending, _, form = sys.argv[2].partition("-")
    if form == "json":
        start_json_log()
    with open_progress(Workspace(Path(sys.argv[1])), "r1", make_reporter(), "demo") as reporter:
        reporter.plan(["seeds", "paths", "questions"])
        reporter.begin("seeds", 0, "rows")
        reporter.finish("24 in, 12 kept")
        reporter.begin("paths", 12, "rows")
        for done in range(1, 4):
            reporter.advance(done, "kept")
        if ending == "error":
            time.sleep(1)
            raise GateNotMet("paths: all failed")
        if ending.startswith("http"):
            settings = ModelConfig(adapter="openai", name="m", base_url=ending)
            request = ChatRequest("sky", "sky", (Message("user", "Hello"),), None, Sampling())
            asyncio.run(OpenAIChat(settings).chat(request))
        time.sleep(600 if ending == "wait" else 1)
        reporter.finish("12 in, 3 kept")
    print("RESULT")

guarded(run, [])
"""


@pytest.fixture
def start(tmp_path):
    """Start a small run in a terminal."""
    open_ = []

    def run(ending, **more):
        terminal = Terminal(["-c", SCRIPT, str(tmp_path), ending], **more)
        open_.append(terminal)
        return terminal

    yield run
    for terminal in open_:
        terminal.close()


@pytest.mark.parametrize("how", ["ctrl-c", "sigterm"])
def test_an_interrupt_gives_the_terminal_back_and_leaves_the_last_state(start, how):
    terminal = start("wait")
    terminal.wait_for(lambda text: "stage 2 of 3, paths" in text and "3/12" in text)
    assert terminal.screen.cursor.hidden
    terminal.type(b"\x03") if how == "ctrl-c" else terminal.process.send_signal(signal.SIGTERM)
    assert terminal.finish() == 3
    assert not terminal.screen.cursor.hidden
    *lines, last = terminal.text.splitlines()
    assert last == "synth: interrupted; the same command goes on from here"
    assert sum("stage 2 of 3, paths" in line for line in lines) == 1
    assert sum(line.startswith("seeds ") for line in lines) == 2


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_terminal_that_is_gone_leaves_an_interrupted_run_and_no_defect(start, tmp_path, form):
    terminal = start("wait" if form == "text" else "wait-json", environment={"TMPDIR": str(tmp_path)})
    sign = "stage 2 of 3, paths" if form == "text" else "paths begins"
    terminal.wait_for(lambda text: sign in text.replace("\n", ""))
    assert terminal.hang_up() == 3
    assert not list(tmp_path.rglob("defect-*"))


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, text):
        raise OSError(errno.EIO, "Input/output error")


def look_oddly():
    raise KeyError("no such stage")


@pytest.mark.parametrize(("out", "look"), [(io.StringIO, look_oddly), (Gone, make_run), (io.StringIO, lambda: None)])
@pytest.mark.parametrize("is_good", [True, False])
def test_an_error_of_the_panel_is_logged_once_and_none_of_the_run(out, look, is_good, tmp_path):
    log = tmp_path / "run.log"
    with (
        nullcontext() if is_good else pytest.raises(RuntimeError, match="its own"),
        open_run_log(log),
        open_panel(out(), look, log) as panel,
    ):
        panel.say("seeds 12 kept")
        panel.draw()
        if not is_good:
            raise RuntimeError("its own")
    assert log.read_text().count("the panel ends: ") == 1


def test_after_an_error_of_the_panel_lines_are_said_still(tmp_path):
    out = io.StringIO()
    with open_panel(out, look_oddly, tmp_path / "run.log") as panel:
        panel.say("seeds 12 kept")
    assert "seeds 12 kept" in out.getvalue()


def test_a_server_that_is_away_is_shown_with_how_long_and_until_when(start):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    terminal = start(url)
    text = terminal.wait_for(lambda text: "waiting  2 s" in text)
    assert len(text.splitlines()) <= 24
    (place,) = [line for line in text.splitlines() if line.startswith("waiting")]
    assert f"2 s for {url} (no connection" in place
    assert re.search(r"until \d\d:\d\d:\d\d at most", text)
    terminal.type(b"\x03")
    assert terminal.finish() == 3
    assert not terminal.screen.cursor.hidden


def test_after_an_error_the_last_state_stays_above_it(start):
    terminal = start("error")
    assert terminal.finish() == 1
    assert not terminal.screen.cursor.hidden
    assert terminal.text.splitlines()[-1] == "synth: paths: all failed"
    assert terminal.text.count("stage 2 of 3, paths") == 1


def test_a_run_that_is_done_leaves_its_lines_and_no_panel(start, tmp_path):
    terminal = start("end", stdout=tmp_path / "out")
    assert terminal.finish() == 0
    said = [" ".join(line.split()) for line in terminal.text.splitlines()]
    assert said == ["seeds 24 in, 12 kept", "paths 12 in, 3 kept"]
    assert (tmp_path / "out").read_text() == "RESULT\n"
    log = (tmp_path / "logs" / "r1.log").read_text()
    assert re.fullmatch(r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO +\S.*\n){2}", log)


def test_a_terminal_that_changes_its_size_is_drawn_anew(start):
    terminal = start("wait", columns=120, lines=30)
    terminal.wait_for(lambda text: "waiting shards" in text)
    terminal.resize(80, 24)
    terminal.wait_for(lambda text: text.count("stage 2 of 3, paths") == 1 and "shards" not in text)
    lines = terminal.text.splitlines()
    assert lines[0].split() == ["seeds", "24", "in,", "12", "kept"]
    assert sum(line.startswith("paths ") for line in lines) == 1


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"CI": "true"}, {}])
def test_a_terminal_that_nobody_looks_at_gets_plain_lines(environment, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    out.isatty = lambda: True
    reporter = make_reporter(out)
    reporter.begin("paths", 12, "rows")
    reporter.finish("12 in, 3 kept")
    assert ("\x1b" in out.getvalue()) == (not environment)
    assert out.getvalue().endswith("paths          12 in, 3 kept\n")
