import math
import shutil
from collections import Counter
from itertools import pairwise

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

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


def test_every_lost_row_counts_where_its_seed_belongs(demo, sampled):
    found = measure_sample(configure(demo.world), sampled)
    *domains, total = found.domains
    assert {line.domain: line.seeds for line in domains} == Counter(
        row["domain"] for row in read_rows(sampled, "seeds")
    )
    lost, made = Counter(), Counter(row["domain"] for row in read_rows(sampled, "enhancements"))
    for source, stage in pairwise(STAGES):
        came = {row["record_id"]: row["domain"] for row in read_rows(sampled, source)}
        for row in read_rows(sampled, stage, "rejected"):
            lost[came[row["record_id"]], f"{stage} {row['reason']}"] += 1
    assert lost
    for line in domains:
        assert line.lost == {loss: rows for (domain, loss), rows in lost.items() if domain == line.domain}
        assert line.accepted == made[line.domain]
    assert total.accepted == made.total()
    assert sum(total.lost.values()) == lost.total()
    assert list(total.lost.values()) == sorted(total.lost.values(), reverse=True)


def test_a_ratio_is_seeds_over_accepted_questions_and_unbounded_without_any(demo, copied):
    found = measure_sample(configure(demo.world), copied)
    accepting = [line for line in found.domains if line.accepted]
    assert accepting
    for line in accepting:
        low, middle, high = line.ratio
        assert middle == pytest.approx(line.seeds / line.accepted)
        assert low < middle < (high or math.inf)
    domain = accepting[0].domain
    folder = Workspace(copied).stage("enhancements", Workspace(copied).read_latest()["enhancements"]).path
    for path in folder.glob("part-*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.filter(pc.field("domain") != domain), path)
    found = measure_sample(configure(demo.world), copied)
    (line,) = (each for each in found.domains if each.domain == domain)
    assert (line.accepted, line.ratio[1:]) == (0, (None, None))
    assert 0 < line.ratio[0] < line.seeds
    shown = [row.split() for row in show(render_yield(found)).splitlines()]
    assert [row[2:4] for row in shown if row[:2] == [domain, str(line.seeds)]] == [["0", "∞"]]


def test_a_failed_row_is_a_loss_of_the_domain_of_its_input(demo, copied):
    folder = Workspace(copied).stage("paths", Workspace(copied).read_latest()["paths"]).path
    path = next(path for path in sorted(folder.glob("rejected-*.parquet")) if pq.read_table(path).num_rows)
    refused = pq.read_table(path)
    failures = [Failure(record_id=row["record_id"], error="parse-timeout") for row in refused.to_pylist()]
    pq.write_table(make_table(Failure, failures), folder / path.name.replace("rejected", "failed"))
    pq.write_table(refused.slice(0, 0), path)
    found = measure_sample(configure(demo.world), copied)
    domains = {row["record_id"]: row["domain"] for row in read_rows(copied, "seeds")}
    expected = Counter(domains[failure.record_id] for failure in failures)
    *lines, total = found.domains
    assert {line.domain: line.lost["paths failed"] for line in lines if "paths failed" in line.lost} == expected
    assert total.lost["paths failed"] == len(failures)


def test_a_stage_that_is_not_done_is_named_and_leaves_the_ratio_open(demo, copied):
    shutil.rmtree(copied / "stages" / "groundings")
    found = measure_sample(configure(demo.world), copied)
    assert found.missing == ("groundings", "difficulty", "enhancements")
    assert (found.domains[-1].accepted, found.domains[-1].ratio) == (None, None)
    assert "Not done: groundings, difficulty, enhancements." in show(render_yield(found))


def test_a_sample_that_a_service_ends_tells_how_far_it_came_and_ends_as_a_run_would(demo, copied, capsys):
    outcome = call_plan(capsys, demo.world, copied, *AWAY, more=["--json"])
    assert outcome.code == 3, outcome.err
    assert "127.0.0.1:9" in outcome.err
    assert outcome.document["sample"]["missing"] == ["rewrites", "groundings", "difficulty", "enhancements"]
    assert outcome.document["sample"]["domains"][-1]["seeds"] == SEEDS


def test_a_plan_without_a_sample_tells_no_yield(demo, copied, capsys):
    given = list_settings((f"corpus.world={demo.world}", *SETTINGS))
    assert call_here(capsys, "plan", *given, "--workspace", copied, "--json").document["sample"] is None
