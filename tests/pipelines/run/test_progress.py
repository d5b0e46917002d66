import io

from pipelines.run.progress import LogReporter


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
