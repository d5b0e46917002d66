import io
import json

import pytest

from pipelines.run.jsonlog import start_json_log, stop_json_log
from pipelines.run.progress import LogReporter, make_reporter
from schemas.manifest import ShardSidecar, Usage

SIDECAR = ShardSidecar(
    shard=3,
    source="",
    rows_in=4,
    kept=2,
    rejected={"hub": 1},
    failed=1,
    rows_out=5,
    files=(),
    usage=Usage(),
    seconds=1.5,
)


@pytest.fixture
def log():
    """The lines of a log in JSON."""
    out = io.StringIO()
    start_json_log(out)
    yield lambda: list(map(json.loads, out.getvalue().splitlines()))
    stop_json_log()


def test_what_is_watched_is_shown_beside_the_counts_while_there_is_something_to_say(monkeypatch):
    monkeypatch.setattr("pipelines.run.progress.LOG_EVERY", 0.0)
    out, said = io.StringIO(), ["", "12 pictures fetched, 3 wait for 2 s"]
    reporter = LogReporter(out)
    reporter.begin("groundings", 0, "rows")
    reporter.watch(lambda: said.pop(0))
    reporter.advance(1)
    reporter.advance(2)
    plain, beside = out.getvalue().splitlines()
    assert plain.startswith("groundings     1 rows, ")
    assert ";" not in plain
    assert beside.endswith("/s; 12 pictures fetched, 3 wait for 2 s")


def test_a_log_in_json_has_a_line_for_each_event_with_stage_shard_and_numbers(log, monkeypatch):
    monkeypatch.setattr("pipelines.run.progress.LOG_EVERY", 0.0)
    reporter = make_reporter()
    reporter.plan(["paths", "questions"])
    reporter.warn("no picture lies beside the dump")
    piece = reporter.fork()
    piece.begin("paths", 8, "rows", lambda: (8, 2))
    piece.advance(3, "kept")
    piece.file_shard(SIDECAR)
    piece.finish("8 in", {"rows_in": 8, "kept": 5})
    lines = log()
    assert [line["event"] for line in lines] == ["stages", "warning", "begin", "progress", "shard", "end"]
    assert [line["level"] for line in lines] == ["info", "warning", "info", "info", "info", "info"]
    assert all(line["time"].endswith("+00:00") and line["message"] for line in lines)
    _, warning, begin, progress, shard, end = lines
    assert warning["message"] == "no picture lies beside the dump"
    assert (begin["stage"], begin["total"]) == ("paths", 8)
    assert (progress["done"], progress["backlog_rows"], progress["backlog_shards"]) == (3, 5, 2)
    assert progress["rate"] > 0
    assert {name: shard[name] for name in ("stage", "shard", "rows_in", "kept", "rejected", "failed", "rows_out")} == {
        "stage": "paths", "shard": 3, "rows_in": 4, "kept": 2, "rejected": 1, "failed": 1, "rows_out": 5
    }  # fmt: skip
    assert (end["stage"], end["rows_in"], end["kept"]) == ("paths", 8, 5)


def test_what_libraries_say_and_how_threads_end_is_in_the_log_in_json_without_keys(log):
    import logging
    import threading
    import warnings

    logging.getLogger("asyncio").error("Task was destroyed, Bearer %s", "a" * 40)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.warn("this is old", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    library, warning, ended = log()
    assert (library["logger"], library["level"]) == ("asyncio", "error")
    assert "aaaa" not in library["message"]
    assert (warning["logger"], warning["level"]) == ("py.warnings", "warning")
    assert "this is old" in warning["message"]
    assert "ZeroDivisionError" in ended["error"]


def test_a_log_in_json_ends_where_it_is_stopped(log):
    stop_json_log()
    assert isinstance(make_reporter(io.StringIO()), LogReporter)
    assert log() == []
