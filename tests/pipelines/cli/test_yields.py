import math
import shutil
from collections import Counter
from itertools import pairwise

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from pipelines.cli.commands import run_recipe
from pipelines.cli.plan import make_sample_config, measure_sample
from pipelines.cli.yields import render_yield
from pipelines.config.loading import make_config, read_recipe
from pipelines.run.workspace import Workspace
from schemas.base import Failure, make_table
from tests.chaos.driving import call_here, list_settings
from tests.conftest import SETTINGS
from tests.pipelines.cli.conftest import show

pytestmark = pytest.mark.slow
SEEDS = 30
STAGES = ("seeds", "paths", "questions", "rewrites", "groundings", "difficulty", "enhancements")
AWAY = ('models.rewriter.adapter="openai"', 'models.rewriter.name="x"', "models.rewriter.patience=0.0",
        'models.rewriter.base_url="http://127.0.0.1:9/v1"')  # fmt: skip


def configure(world, *settings):
    return make_sample_config(make_config(read_recipe("demo"), [f"corpus.world={world}", *SETTINGS, *settings]), SEEDS)


def call_plan(capsys, world, root, *settings, more=()):
    given = list_settings((f"corpus.world={world}", *SETTINGS, *settings))
    return call_here(capsys, "plan", *given, "--sample", SEEDS, "--workspace", root, *more)


@pytest.fixture(scope="module")
def sampled(demo, tmp_path_factory):
    """A workspace with a sample of the demo's world, up to the last stage that accepts questions."""
    root = tmp_path_factory.mktemp("sampled")
    run_recipe(configure(demo.world), root, "enhancements", ())
    return root


@pytest.fixture
def copied(sampled, tmp_path):
    """The sample in a workspace of the test's own."""
    shutil.copytree(sampled, tmp_path / "workspace", symlinks=True)
    return tmp_path / "workspace"


def read_rows(root, stage, files="part"):
    folder = Workspace(root).stage(stage, Workspace(root).read_latest()[stage]).path
    return [row for path in sorted(folder.glob(f"{files}-*.parquet")) for row in pq.read_table(path).to_pylist()]


def read_yield(found, stage):
    """Return what the sample says of a stage, by domain."""
    return {line.domain: line.stages[STAGES.index(stage) - 1] for line in found.domains}


def test_every_row_of_a_domain_is_kept_rejected_or_failed_where_its_seed_belongs(demo, sampled):
    found = measure_sample(configure(demo.world), sampled)
    assert {line.domain: line.seeds for line in found.domains} == Counter(
        row["domain"] for row in read_rows(sampled, "seeds")
    )
    for source, stage in pairwise(STAGES):
        domains = {row["record_id"]: row["domain"] for row in read_rows(sampled, source)}
        made = read_rows(sampled, stage)
        led = {row["record_id"] if row["record_id"] in domains else row["parent_id"] for row in made}
        refused = Counter((domains[row["record_id"]], row["reason"]) for row in read_rows(sampled, stage, "rejected"))
        failed = Counter(domains[row["record_id"]] for row in read_rows(sampled, stage, "failed"))
        for domain, counts in read_yield(found, stage).items():
            assert counts.rows_in == list(domains.values()).count(domain)
            assert counts.kept == sum(domains[record_id] == domain for record_id in led)
            assert counts.rejected == {reason: rows for (where, reason), rows in refused.items() if where == domain}
            assert counts.failed == failed[domain]
            assert counts.rows_out == sum(row["domain"] == domain for row in made)
            assert counts.rows_in == counts.kept + sum(counts.rejected.values()) + counts.failed
    assert sum(sum(stage.rejected.values()) for stage in found.total.stages) > 0


def test_all_domains_together_are_the_funnel_of_the_sample(demo, sampled):
    total = measure_sample(configure(demo.world), sampled).total
    for counts in total.stages:
        key = Workspace(sampled).read_latest()[counts.stage]
        manifest = Workspace(sampled).stage(counts.stage, key).read_manifest()
        assert (counts.rows_in, counts.kept, counts.failed) == (manifest.rows_in, manifest.kept, manifest.failed)
        assert (counts.rejected, counts.rows_out) == (manifest.rejected, manifest.rows_out)
    largest = max(
        ((f"{stage.stage} {reason}", rows) for stage in total.stages for reason, rows in stage.rejected.items()),
        key=lambda loss: loss[1],
    )
    assert total.lost_most[0] == f"{largest[0]} {largest[1]}"


def test_a_ratio_is_seeds_over_accepted_questions_and_unbounded_without_any(demo, copied):
    found = measure_sample(configure(demo.world), copied)
    accepting = [line for line in (*found.domains, found.total) if line.accepted]
    assert accepting
    for line in accepting:
        ratio = line.seeds_per_accepted
        assert ratio.middle == pytest.approx(line.seeds / line.accepted)
        assert ratio.low < ratio.middle < (ratio.high or math.inf)
    domain = accepting[0].domain
    folder = Workspace(copied).stage("enhancements", Workspace(copied).read_latest()["enhancements"]).path
    for path in folder.glob("part-*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.filter(pc.field("domain") != domain), path)
    found = measure_sample(configure(demo.world), copied)
    (line,) = (each for each in found.domains if each.domain == domain)
    assert (line.accepted, line.seeds_per_accepted.middle, line.seeds_per_accepted.high) == (0, None, None)
    assert 0 < line.seeds_per_accepted.low < line.seeds
    shown = [row.split() for row in show(render_yield(found)).splitlines()]
    assert [row[-2:] for row in shown if row[:2] == [domain, str(line.seeds)]] == [["0", "∞"]]


def test_a_failed_row_is_a_loss_of_the_domain_of_its_input(demo, copied):
    before = measure_sample(configure(demo.world), copied)
    folder = Workspace(copied).stage("paths", Workspace(copied).read_latest()["paths"]).path
    path = next(path for path in sorted(folder.glob("rejected-*.parquet")) if pq.read_table(path).num_rows)
    refused = pq.read_table(path)
    failures = [Failure(record_id=row["record_id"], error="parse-timeout") for row in refused.to_pylist()]
    pq.write_table(make_table(Failure, failures), folder / path.name.replace("rejected", "failed"))
    pq.write_table(refused.slice(0, 0), path)
    found = measure_sample(configure(demo.world), copied)
    domains = {row["record_id"]: row["domain"] for row in read_rows(copied, "seeds")}
    expected = Counter(domains[failure.record_id] for failure in failures)
    assert {line.domain: line.stages[0].failed for line in found.domains if line.stages[0].failed} == expected
    assert found.total.stages[0].failed == len(failures)
    assert found.total.stages[0].kept == before.total.stages[0].kept


def test_the_json_has_the_numbers_of_the_table(demo, copied, capsys):
    outcome = call_plan(capsys, demo.world, copied, more=["--json"])
    assert outcome.code == 0
    sample = outcome.document["sample"]
    found = measure_sample(configure(demo.world), copied)
    table = show(render_yield(found))
    for line, told in zip((*found.domains, found.total), (*sample["domains"], sample["total"]), strict=True):
        assert (told["domain"], told["seeds"], told["accepted"]) == (line.domain, line.seeds, line.accepted)
        made = [stage["rows_out"] for stage in told["stages"][:-2]]
        middle = told["seeds_per_accepted"]["middle"]
        shown = [told["seeds"], *made, told["accepted"], "∞" if middle is None else f"{middle:,.1f}"]
        assert [told["domain"], *map(str, shown)] in [row.split() for row in table.splitlines()]
        assert f"{told['domain']} {'; '.join(told['lost_most'])}".strip() in " ".join(table.split())
    assert sample["missing"] == []


def test_a_stage_that_is_not_done_is_named_and_leaves_the_ratio_open(demo, copied):
    shutil.rmtree(copied / "stages" / "groundings")
    found = measure_sample(configure(demo.world), copied)
    assert found.missing == ("groundings", "difficulty", "enhancements")
    assert (found.total.accepted, found.total.seeds_per_accepted) == (None, None)
    assert [stage.stage for stage in found.total.stages] == ["paths", "questions", "rewrites"]
    assert "Not done: groundings, difficulty, enhancements." in show(render_yield(found))


def test_a_sample_that_a_service_ends_tells_how_far_it_came_and_ends_as_a_run_would(demo, copied, capsys):
    outcome = call_plan(capsys, demo.world, copied, *AWAY, more=["--json"])
    assert outcome.code == 3, outcome.err
    assert "127.0.0.1:9" in outcome.err
    assert outcome.document["sample"]["missing"] == ["rewrites", "groundings", "difficulty", "enhancements"]
    assert outcome.document["sample"]["total"]["seeds"] == SEEDS


def test_a_plan_without_a_sample_tells_no_yield(demo, copied, capsys):
    given = list_settings((f"corpus.world={demo.world}", *SETTINGS))
    assert call_here(capsys, "plan", *given, "--workspace", copied, "--json").document["sample"] is None


def test_no_line_is_wider_than_a_terminal_of_80_columns(demo, sampled):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(render_yield(measure_sample(configure(demo.world), sampled)))
    counts, _, _ = capture.get().partition("where most rows were lost")
    assert max(len(line.rstrip()) for line in counts.splitlines()[1:]) <= 80
