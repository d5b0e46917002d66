"""Chains cut into spans: every missing shard in exactly one, workers that are lost or stop, and stages sealed here."""

import asyncio
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.judging import UnscoredWatch
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError, GateNotMet, Unavailable, UnusableReplies
from pipelines.run.chains import link_up, make_shards, run_stages, run_together
from pipelines.run.executors import RESTARTS, SpanExecutor
from pipelines.run.progress import Reporter
from pipelines.run.runner import PlannedStage, StageReport, read_source
from pipelines.run.workers import (
    SPANS,
    Span,
    SpanReport,
    WorkerSpec,
    cut_spans,
    find_chain,
    list_missing,
    make_spans,
    prepare_worker,
    run_span,
)
from pipelines.services.clients.replies import open_replies
from pipelines.services.health import LEAST, Health
from tests.chaos.driving import digest_files
from tests.pipelines.run.test_chains import CORPUS, ROWS, SHARD_ROWS, list_written, plan

SHARDS = ROWS // SHARD_ROWS
PATIENCE = 60.0


@dataclass
class FakePool:
    """Workers that make spans in this process, unless a script says otherwise of the spans in the order they come."""

    chain: Sequence[PlannedStage]
    script: list[Callable[[Span, WorkerSpec], SpanReport]] = field(default_factory=list)
    workers: int = 1
    spans: list[Span] = field(default_factory=list)
    futures: "list[Future[SpanReport]]" = field(default_factory=list)
    opened: int = 0
    closed: int = 0

    def open(self) -> None:
        self.opened += 1

    def close(self) -> None:
        self.closed += 1

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        self.spans.append(span)
        act = self.script.pop(0) if self.script else self.make
        future: Future[SpanReport] = Future()
        self.futures.append(future)
        thread = threading.Thread(target=settle, args=(future, lambda: act(span, spec)))
        thread.start()
        thread.join(0.0 if act is not self.make else None)
        return future

    def make(self, span: Span, _: WorkerSpec) -> SpanReport:
        """Make the missing shards, as a worker does."""
        links = link_up(self.chain, Reporter())
        links[0].take_all([shard for shard in read_source(self.chain[0]).shards if shard.shard in span.shards])
        asyncio.run(run_together([make_shards(link) for link in links]))
        return SpanReport()


def settle(future: "Future[SpanReport]", act: Callable[[], SpanReport]) -> None:
    future.set_running_or_notify_cancel()
    try:
        future.set_result(act())
    except Exception as error:  # noqa: BLE001 - whatever it is, the future has it
        future.set_exception(error)


def make_nothing(_: Span, __: WorkerSpec) -> SpanReport:
    """End well without a shard."""
    return SpanReport()


def lose(_: Span, __: WorkerSpec) -> SpanReport:
    """Lose the worker."""
    raise BrokenProcessPool("a process died")


class Heard(Reporter):
    """Keeps the notes of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def fork(self) -> "Heard":
        return self


def run_spans(
    root: Path, pool: FakePool, planned: Sequence[PlannedStage], reporter: Reporter | None = None
) -> list[StageReport]:
    """Run all stages, their shards in the pool."""
    spec = WorkerSpec(make_config(read_recipe("demo")), root, "", CORPUS)
    with SpanExecutor(pool)(spec) as run_chain:
        return run_stages(planned, CORPUS, SHARD_ROWS, reporter or Reporter(), lambda _: None, run_chain)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of three stages that ran in this process."""
    root = tmp_path_factory.mktemp("calm")
    run_stages(plan(root, {}, {}, {}), CORPUS, SHARD_ROWS, Reporter())
    return digest_files(root, "stages/**/*.parquet")


@given(st.lists(st.integers(0, 20_000), unique=True).map(sorted), st.integers(1, 64))
def test_each_shard_is_in_exactly_one_span_and_spans_are_few_and_of_one_length(shards, most):
    spans = cut_spans(shards, most)
    assert [shard for span in spans for shard in span] == shards
    assert len(spans) == min(most, len(shards))
    assert {len(span) for span in spans} <= {len(shards) // most, -(-len(shards) // most)} | {1}


@pytest.fixture(scope="module")
def unsealed(tmp_path_factory: pytest.TempPathFactory) -> list[PlannedStage]:
    """Two stages whose shards are all made, before they are sealed."""
    planned = plan(tmp_path_factory.mktemp("chain"), {}, {})
    FakePool(planned[1:]).make(Span((), tuple(range(SHARDS))), WorkerSpec(None, Path(), "", CORPUS))
    return planned[1:]


@given(first=st.sets(st.integers(0, SHARDS - 1)), second=st.sets(st.integers(0, SHARDS - 1)))
def test_what_is_missing_of_a_chain_is_what_any_of_its_stages_lacks(unsealed, first, second):
    lost = [
        each.folder.sidecar(shard) for each, shards in zip(unsealed, (first, second), strict=True) for shard in shards
    ]
    kept = {path: path.read_bytes() for path in lost}
    for path in lost:
        path.unlink()
    try:
        assert list_missing(unsealed) == sorted(first | second)
        assert [shard for span in make_spans(unsealed, 1) for shard in span.shards] == sorted(first | second)
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


def test_spans_write_the_bytes_of_one_process(tmp_path, calm):
    planned = plan(tmp_path / "spans", {}, {}, {})
    pool = FakePool(planned[1:], workers=2)
    reports = run_spans(tmp_path / "spans", pool, planned)
    assert len(pool.spans) == SPANS * 2
    assert [report.ran for report in reports] == [False, True, True, True]
    assert digest_files(tmp_path / "spans", "stages/**/*.parquet") == calm
    assert not list((tmp_path / "spans").glob(".stop-*"))
    assert (pool.opened, pool.closed) == (1, 1)


def test_the_shards_that_a_lost_worker_left_are_run_again_and_no_others(tmp_path, calm):
    planned = plan(tmp_path / "spans", {}, {}, {})
    pool = FakePool(planned[1:])
    pool.script = [pool.make, lose, pool.make, lose]
    run_spans(tmp_path / "spans", pool, planned)
    left = [shard for span in pool.spans[1:4:2] for shard in span.shards]
    assert [shard for span in pool.spans[4:] for shard in span.shards] == left
    assert pool.opened == pool.closed == 2
    assert sorted(planned[1].stage.begun) == list(range(ROWS))
    assert digest_files(tmp_path / "spans", "stages/**/*.parquet") == calm


@pytest.mark.parametrize(("act", "why"), [(lose, "a worker process was lost"), (make_nothing, "shards are not made")])
def test_a_run_that_goes_on_says_why_a_lost_worker_or_only_shards_that_are_missing(tmp_path, act, why):
    planned, reporter = plan(tmp_path, {}), Heard()
    run_spans(tmp_path, FakePool(planned[1:], [act]), planned, reporter)
    (note,) = reporter.notes
    assert why in note


def test_a_worker_outlives_the_signals_of_a_terminal_which_its_driver_heeds():
    with ProcessPoolExecutor(1, get_context("spawn"), prepare_worker) as pool:
        worker = pool.submit(os.getpid).result(PATIENCE)
        os.kill(worker, signal.SIGHUP)
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result(PATIENCE) == worker


def test_workers_that_are_lost_before_any_shard_is_made_end_the_run_at_last(tmp_path):
    planned = plan(tmp_path, {})
    pool = FakePool(planned[1:], [lose] * 100)
    with pytest.raises(Unavailable, match="worker processes end before a shard is made"):
        run_spans(tmp_path, pool, planned)
    assert pool.opened == RESTARTS + 1


def test_an_error_in_one_span_stops_the_others_first_and_is_raised_with_its_words(tmp_path):
    planned, seen = plan(tmp_path, {}), []

    def wait_to_stop(_: Span, spec: WorkerSpec) -> SpanReport:
        deadline = threading.Event()
        while not spec.stop.is_file():
            assert not deadline.wait(0.01)
        seen.append("stopped")
        return SpanReport()

    def break_off(_: Span, __: WorkerSpec) -> SpanReport:
        return SpanReport(error=Unavailable("the model is away"))

    pool = FakePool(planned[1:], [wait_to_stop, break_off, wait_to_stop, wait_to_stop])
    with pytest.raises(Unavailable, match="the model is away"):
        run_spans(tmp_path, pool, planned)
    assert seen == ["stopped"] * 3
    assert planned[1].folder.read_manifest() is None
    assert not list(tmp_path.glob(".stop-*"))


def wait_for_stop(_: Span, spec: WorkerSpec) -> SpanReport:
    """Make nothing until the driver asks for the end."""
    deadline = time.monotonic() + PATIENCE
    while not spec.stop.is_file():
        assert time.monotonic() < deadline, "nobody asked this worker to stop"
        time.sleep(0.01)
    return SpanReport()


def test_a_pool_that_fails_in_an_unknown_way_stops_the_workers_before_it_ends_the_run(tmp_path):
    planned = plan(tmp_path, {})

    def fail_to_answer(_: Span, __: WorkerSpec) -> SpanReport:
        raise TypeError("cannot pickle a lock")

    pool = FakePool(planned[1:], [wait_for_stop, fail_to_answer, wait_for_stop, wait_for_stop])
    with pytest.raises(TypeError, match="cannot pickle"):
        run_spans(tmp_path, pool, planned)
    assert [future.exception(timeout=0) for future in pool.futures if future is not pool.futures[1]] == [None] * 3


def note_unusable(health: Health, requests: int, unusable: int) -> None:
    for number in range(requests):
        health.note("ask", "model", (), "no reply" if number < unusable else "")


def test_unusable_replies_of_one_worker_forget_the_shards_of_all_after_all_have_stopped(tmp_path):
    planned = plan(tmp_path, {})
    open_replies(tmp_path / "replies").close()

    def find_unusable(_: Span, __: WorkerSpec) -> SpanReport:
        return SpanReport({"paths": Health("paths")}, {}, UnusableReplies("paths: none"), ("paths",))

    def make_late(span: Span, spec: WorkerSpec) -> SpanReport:
        while not spec.stop.is_file():
            threading.Event().wait(0.01)
        # It was under way; what it writes now must be forgotten too.
        return pool.make(span, spec)

    pool = FakePool(planned[1:])
    pool.script = [pool.make, make_late, find_unusable]
    with pytest.raises(UnusableReplies, match="paths: none"):
        run_spans(tmp_path, pool, planned)
    assert len(planned[1].stage.begun) >= 2 * ROWS // SPANS
    assert list_written(planned[1]) == []


def test_replies_that_are_unusable_over_all_workers_end_the_stage_though_none_saw_enough(tmp_path):
    planned = plan(tmp_path, {})
    open_replies(tmp_path / "replies").close()
    pool = FakePool(planned[1:])

    def make_poorly(span: Span, spec: WorkerSpec) -> SpanReport:
        health = Health("paths")
        note_unusable(health, 3, 2)
        pool.make(span, spec)
        return SpanReport({"paths": health})

    pool.script = [make_poorly] * SPANS
    with pytest.raises(UnusableReplies, match="8 of 12 requests"):
        run_spans(tmp_path, pool, planned)
    assert list_written(planned[1]) == []
    assert planned[1].folder.read_manifest() is None


def test_short_spans_of_unusable_replies_end_the_stage_before_all_are_paid_for(tmp_path):
    planned = plan(tmp_path, {})
    open_replies(tmp_path / "replies").close()

    def read_poorly(_: Span, __: WorkerSpec) -> SpanReport:
        health = Health("paths")
        note_unusable(health, LEAST // 2, LEAST // 2)
        return SpanReport({"paths": health})

    pool = FakePool(planned[1:], [read_poorly, read_poorly, wait_for_stop, wait_for_stop])
    with pytest.raises(UnusableReplies, match="20 of 20 requests"):
        run_spans(tmp_path, pool, planned)
    assert [future.exception(timeout=0) for future in pool.futures] == [None] * 4


def test_answers_that_are_unscored_over_all_workers_end_the_run_though_none_saw_enough(tmp_path):
    planned = plan(tmp_path, {})
    planned[1].stage.watch = UnscoredWatch(0.5, 10)
    pool = FakePool(planned[1:])

    def judge_poorly(span: Span, spec: WorkerSpec) -> SpanReport:
        pool.make(span, spec)
        return SpanReport(scored={"paths": (4, 5)})

    pool.script = [judge_poorly] * SPANS
    with pytest.raises(GateNotMet, match="answers are unscored"):
        run_spans(tmp_path, pool, planned)
    assert planned[1].folder.read_manifest() is None


def test_a_worker_of_other_code_is_refused_by_name_before_it_writes(tmp_path):
    planned = {each.name: each for each in plan(tmp_path, {})}
    with pytest.raises(ConfigError, match="paths has the key key here and other in the run"):
        find_chain(planned, Span((("paths", "other"),), (0,)))
    assert [each.name for each in find_chain(planned, Span((("paths", "key"),), (0,)))] == ["paths"]


def test_a_worker_reports_that_its_key_is_another_and_writes_nothing(demo, tmp_path):
    corpus = next((demo.root / "corpus").iterdir())
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / corpus.name).symlink_to(corpus)
    entry = CORPUS.model_copy(update={"key": corpus.name})
    report = run_span(WorkerSpec(demo.config, tmp_path, "paths", entry), Span((("paths", "0" * 16),), (0,)))
    assert isinstance(report.error, ConfigError)
    assert "paths has the key" in str(report.error)
    assert not (tmp_path / "stages").exists()


def test_what_travels_between_processes_can(tmp_path):
    health = Health("paths")
    note_unusable(health, 3, 2)
    report = SpanReport({"paths": health}, {"paths": (1, 2)}, UnusableReplies("none"), ("paths",))
    spec = WorkerSpec(make_config(read_recipe("demo")), tmp_path, "", CORPUS, "run", tmp_path / "stop")
    again, span = pickle.loads(pickle.dumps((report, Span((("paths", "key"),), (0, 2)))))
    assert (again.healths, again.scored, str(again.error)) == (report.healths, report.scored, "none")
    assert span.describe() == "paths 00000-00002 (2)"
    assert pickle.loads(pickle.dumps(spec)) == spec
