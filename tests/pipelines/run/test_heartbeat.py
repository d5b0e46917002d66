"""What others see of a run under way: the files of its processes, and the metrics."""

import asyncio
import io
import json
import logging
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipelines.config.settings import ModelConfig
from pipelines.run import heartbeat, underway
from pipelines.run.heartbeat import open_progress, place_metrics, start_pulse, telling_waits
from pipelines.run.jsonlog import start_json_log, stop_json_log
from pipelines.run.metrics import render_metrics
from pipelines.run.progress import LogReporter, SilentReporter, make_reporter
from pipelines.run.underway import ProcessProgress, WorkProgress, find_host, place_progress, read_runs
from pipelines.run.workspace import Workspace
from pipelines.secrets import MASK
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.http import HttpClient, HttpRequest, NoConnection
from pipelines.services.metering import count_usage
from pipelines.services.protocols import ChatRequest, Message, Sampling
from pipelines.services.traffic import Traffic, Wait, Waiting, following_request, merge_waits, open_traffic
from schemas.manifest import Usage
from tests.pipelines.run.test_progress import SIDECAR

HOST, SPACE = find_host()
PATIENCE = 60.0


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.fixture
def quick(monkeypatch):
    """Heartbeats at once."""
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    monkeypatch.setattr(heartbeat, "SUM_EVERY", 1)
    monkeypatch.setattr(heartbeat, "LEAST_WAIT", 0.0)


class Listener(SilentReporter):
    """Keeps what it is told."""

    def __init__(self):
        self.notes, self.warnings = [], []

    def note(self, text, passing=False):
        self.notes.append(text)

    def warn(self, text):
        self.warnings.append(text)


def wait_until(test):
    """Wait until something holds, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := test()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def read_metrics(text):
    """Return the value of each metric by name and labels, as Prometheus' own parser reads it."""
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation and family.type in ("gauge", "counter") for family in families)
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def make_process(workspace, name, **more):
    """Write the file of a process of another host."""
    now = time.time()
    values = {"run": "r1", "recipe": "demo", "role": "worker", "host": "other", "space": "", "pid": 7}
    process = ProcessProgress(**(values | {"started": now, "heard": now} | more))
    place_progress(workspace).mkdir(parents=True, exist_ok=True)
    (place_progress(workspace) / f"{name}.json").write_text(process.model_dump_json())


def make_work(**more):
    values = {"what": "paths", "unit": "rows", "done": 10, "total": 0, "rate": 2.0, "open": True}
    return WorkProgress(**(values | {"outcomes": {"kept": 6, "rejected": 4}, "backlog_rows": 5} | more))


def find_states(workspace):
    (run,) = read_runs(workspace)
    return {process.pid: process.find_state(run.now) for process in run.processes}


def test_a_run_is_seen_while_it_is_under_way_and_leaves_only_its_metrics(workspace, quick):
    with open_progress(workspace, "r1", SilentReporter(), "demo") as reporter:
        reporter.plan(["seeds", "paths", "questions"])
        reporter.begin("seeds", 0, "rows")
        reporter.file_shard(SIDECAR)
        reporter.finish("done")
        piece = reporter.fork()
        piece.begin("paths", 20, "rows", lambda: (20, 2))
        for done, outcome in enumerate(("kept", "rejected", "failed"), 1):
            piece.advance(done, outcome)
        count_usage(Usage(calls=2, retries=1, tokens_in=30, tokens_out=4, cost=0.5))
        count_usage(Usage(cached_calls=3))
        with following_request():
            run = wait_until(lambda: next((run for run in read_runs(workspace) if run.in_flight), None))
    seeds, paths = run.work
    assert run.is_alive
    assert (run.recipe, run.find_stage(), run.stages) == ("demo", 2, ("seeds", "paths", "questions"))
    assert (seeds.done, seeds.outcomes, seeds.shards) == (4, {"kept": 2, "rejected": 1, "failed": 1}, 1)
    assert not seeds.open
    assert (paths.done, paths.total, paths.backlog_rows, paths.backlog_shards) == (3, 20, 17, 2)
    assert paths.outcomes == {"kept": 1, "rejected": 1, "failed": 1}
    assert paths.seconds_left == pytest.approx(17 / paths.rate)
    assert (run.usage.calls, run.usage.cached_calls, run.usage.cost) == (2, 3, 0.5)
    assert list(place_progress(workspace).iterdir()) == []
    left = read_metrics(place_metrics(workspace).read_text())
    assert left["synth_run_under_way",] == 0
    assert left["synth_rows_total", "kept", "paths"] == 1
    assert left["synth_cost_total",] == 0.5
    assert left["synth_requests_in_flight",] == 0


def test_an_error_of_a_run_leaves_no_file(workspace):
    seen = []

    def fail():
        with open_progress(workspace, "r1", SilentReporter()):
            seen.extend(read_runs(workspace))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [run.run for run in seen] == ["r1"]
    assert read_runs(workspace) == []


def test_metrics_are_summed_over_processes_and_rows_of_workers_count_once(workspace):
    driver = {"role": "driver", "stages": ("paths",), "work": (make_work(total=40, done=15, rate=9.0),)}
    make_process(workspace, "driver", **driver)
    wait = {"place": "http://a/v1", "cause": "refused", "since": time.time() - 40, "requests": 3}
    more = {"in_flight": 4, "failures": 1, "usage": Usage(calls=5, cost=0.25), "waits": (wait,)}
    make_process(workspace, "one", pid=1, work=(make_work(),), **more)
    make_process(workspace, "two", pid=2, work=(make_work(outcomes={"kept": 9, "failed": 1}),), **more)
    values = read_metrics(render_metrics(read_runs(workspace)))
    assert values["synth_run_under_way",] == 1
    assert values["synth_processes", "running"] == 3
    assert values["synth_rows_total", "kept", "paths"] == 15
    assert values["synth_rows_total", "failed", "paths"] == 1
    assert values["synth_rows_per_second", "paths"] == 4.0
    assert values["synth_backlog_rows", "paths"] == 10
    assert values["synth_requests_in_flight",] == 8
    assert values["synth_failures_total",] == 2
    assert values["synth_replies_total", "asked"] == 10
    assert values["synth_cost_total",] == 0.5
    assert values["synth_service_wait_seconds", "http://a/v1"] >= 40
    (run,) = read_runs(workspace)
    assert run.work[0].total == 40
    assert [(wait.place, wait.requests) for wait in run.waits] == [("http://a/v1", 6)]


def test_without_a_run_the_metrics_say_so():
    assert read_metrics(render_metrics([])) == {("synth_run_under_way",): 0.0}


def test_a_process_is_told_as_gone_or_silent_by_its_host_and_its_last_heartbeat(workspace):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    here = {"host": HOST, "space": SPACE}
    make_process(workspace, "dead", **here, pid=int(ended.stdout))
    make_process(workspace, "alive", **here, pid=os.getpid())
    make_process(workspace, "elsewhere", pid=int(ended.stdout) + 100_000)
    make_process(workspace, "container", host=HOST, space="another", pid=int(ended.stdout) + 200_000)
    make_process(workspace, "hung", pid=9, heard=time.time() - 300)
    make_process(workspace, "done", pid=10, heard=time.time() - 300, ended=True)
    assert list(find_states(workspace).values()).count("running") == 3
    states = find_states(workspace)
    assert (states[int(ended.stdout)], states[os.getpid()], states[9], states[10]) == (
        "gone", "running", "silent", "ended"
    )  # fmt: skip


@pytest.mark.parametrize("damage", ["", "{", '{"run": 1}'])
def test_a_file_that_cannot_be_read_hides_no_other(workspace, damage):
    make_process(workspace, "whole")
    (place_progress(workspace) / "half.json").write_text(damage)
    assert [[process.pid for process in run.processes] for run in read_runs(workspace)] == [[7]]


def test_what_a_killed_run_left_is_removed_by_the_next_one_and_not_by_a_worker(workspace):
    make_process(workspace, "killed", run="r0", heard=time.time() - 300)
    worker = start_pulse(workspace, "r1", SilentReporter(), "demo", "worker")
    assert {run.run: run.is_alive for run in read_runs(workspace)} == {"r0": False, "r1": True}
    worker.end()
    assert find_states_of(workspace, "r1") == ["ended"]
    with open_progress(workspace, "r2", SilentReporter()):
        assert [run.run for run in read_runs(workspace)] == ["r2"]


def find_states_of(workspace, name):
    return [p.find_state(run.now) for run in read_runs(workspace) if run.run == name for p in run.processes]


def test_what_a_worker_waits_for_is_told_by_the_driver(workspace, quick):
    listener = Listener()
    wait = {"place": "http://a/v1", "cause": "no connection", "since": time.time() - 40, "requests": 3}
    with open_progress(workspace, "r1", listener):
        make_process(workspace, "worker", waits=(wait,))
        said = wait_until(lambda: listener.notes)[0]
    assert said.startswith("waiting 4")
    assert said.endswith(" s for http://a/v1 (no connection, 3 requests)")


def test_what_is_waited_for_is_written_without_keys(workspace):
    key = "sk-" + "a1B2" * 8
    pulse = start_pulse(workspace, "r1", SilentReporter())
    with open_traffic(pulse.traffic), Waiting() as waiting:
        waiting.note("http://a/v1", f"{key} was refused")
        pulse.write(False)
        assert [wait.cause for wait in read_runs(workspace)[0].waits] == [f"{MASK} was refused"]
    pulse.end()


def test_requests_that_nobody_answers_wait_for_replies(workspace):
    make_process(workspace, "quiet", in_flight=3, moved=time.time() - 40)
    (wait,) = read_runs(workspace)[0].waits
    assert (wait.place, wait.requests) == ("replies", 3)
    make_process(workspace, "busy", in_flight=1, moved=time.time())
    assert read_runs(workspace)[0].waits == ()


def test_a_folder_that_takes_no_file_is_told_once_and_ends_no_run(workspace, quick):
    workspace.logs.write_text("a file")
    listener = Listener()
    with open_progress(workspace, "r1", listener) as reporter:
        reporter.begin("paths", 0, "rows")
        wait_until(lambda: listener.warnings)
    assert all("progress cannot be written" in said for said in listener.warnings)
    assert len(listener.warnings) == len(set(listener.warnings))


def test_a_request_waits_from_its_first_failure_to_its_end():
    """A port that was just closed refuses connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
    client, traffic, seen = HttpClient(tries=3, backoff=0.001), Traffic(), []

    async def attempt():
        seen.append(traffic.list_waits())
        return await client.send(HttpRequest(url))

    async def ask():
        with following_request():
            await client.retry(url, attempt)

    with open_traffic(traffic), pytest.raises(NoConnection):
        asyncio.run(ask())
    first, *later = seen
    assert first == []
    assert [len(waits) for waits in later] == [1, 1]
    assert "no connection" in later[0][0].cause
    assert replace(later[1][0]) == later[0][0]
    assert (traffic.list_waits(), traffic.in_flight, traffic.failures) == ([], 0, 1)


def test_of_several_requests_that_wait_for_a_place_the_first_end_is_told():
    ends = Wait("http://a/v1", "refused", 100.0, 2, 400.0), Wait("http://a/v1", "away", 90.0), Wait("b", "busy", 95.0)
    assert merge_waits(ends) == [Wait("http://a/v1", "refused", 90.0, 3, 400.0), Wait("b", "busy", 95.0)]


@pytest.mark.parametrize("left", [0.0, 300.0])
def test_a_command_that_is_no_run_tells_what_it_waits_for_and_until_when(quick, left):
    listener = Listener()
    with telling_waits(listener), Waiting.on("judge at http://a/v1", left):
        said = wait_until(lambda: listener.notes)[0]
    assert said.startswith("waiting 0 s for judge at http://a/v1 (no reply yet)")
    assert said.endswith(" at most") == bool(left)


def test_a_request_that_nobody_answers_is_told_without_a_run(quick, monkeypatch):
    monkeypatch.setattr(underway, "QUIET", 0.0)
    listener = Listener()
    with telling_waits(listener), following_request():
        said = wait_until(lambda: listener.notes)[0]
    assert "for replies (none has come)" in said


def test_a_model_that_is_away_is_told_with_the_time_at_which_it_is_given_up():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    chat = OpenAIChat(ModelConfig(adapter="openai", name="m", base_url=url), pause=0.01, patience=100.0)
    request = ChatRequest("sky", "sky", (Message("user", "Hello"),), None, Sampling())
    traffic = Traffic()

    async def ask():
        asking = asyncio.create_task(chat.chat(request))
        while not traffic.list_waits():
            await asyncio.sleep(0.01)
        asking.cancel()
        return traffic.list_waits()[0]

    with open_traffic(traffic):
        wait = asyncio.run(ask())
    assert (wait.place, wait.requests) == (url, 1)
    assert "no connection" in wait.cause
    assert 90 < wait.until - wait.since <= 100.5


def test_what_is_said_of_a_run_is_in_its_log_without_keys_and_so_are_warnings_of_libraries(workspace, caplog):
    key = "sk-" + "a1B2" * 8

    def fail():
        with open_progress(workspace, "w/r1", LogReporter(io.StringIO())) as reporter:
            reporter.warn(f"{key} was refused")
            logging.getLogger("library").warning("this is slow")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    log = (workspace.logs / "r1.log").read_text().splitlines()
    assert [line[24:] for line in log] == [
        f"INFO    warning        {MASK} was refused",
        "WARNING this is slow",
        "ERROR   ended early: ZeroDivisionError",
    ]
    assert "this is slow" in caplog.text


def test_a_log_in_json_is_in_the_runs_file_too(workspace):
    out = io.StringIO()
    start_json_log(out)
    try:
        with open_progress(workspace, "w/r1", make_reporter()) as reporter:
            reporter.warn("no picture")
    finally:
        stop_json_log()
    (line,) = map(json.loads, (workspace.logs / "r1.log").read_text().splitlines())
    assert (line["run"], line["event"], line["message"]) == ("r1", "warning", "no picture")
    assert json.loads(out.getvalue())["message"] == "no picture"
