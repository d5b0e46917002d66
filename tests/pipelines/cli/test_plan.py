import json
import shutil

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.cli.plan import estimate_run, make_sample_config, render_estimate
from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.run.corpora import ensure_corpus
from pipelines.run.progress import SilentReporter
from pipelines.run.workspace import Workspace
from tests.conftest import SETTINGS, make_demo_config

pytestmark = pytest.mark.slow


def make_small_config(*settings):
    return make_config(read_recipe("demo"), ["corpus.generate.entities=60", *settings])


def test_nothing_is_written_for_a_plan(tmp_path):
    estimate = estimate_run(make_small_config(), tmp_path / "workspace")
    assert estimate.corpus == "to build"
    assert {stage.state for stage in estimate.stages} == {"to do"}
    assert not list(tmp_path.iterdir())


def test_a_dump_that_is_missing_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        estimate_run(make_config(read_recipe("demo"), [f"corpus.dump={tmp_path / 'x.xml'}"]), tmp_path / "workspace")
    assert not list(tmp_path.iterdir())


def test_a_finished_run_leaves_nothing_to_do(demo):
    estimate = estimate_run(make_demo_config(demo.world), demo.root)
    assert {stage.state for stage in estimate.stages} == {"complete"}
    assert estimate.total.requests.high == 0


def test_a_world_generated_before_is_known_and_its_corpus_too(tmp_path):
    config, root = make_small_config(), tmp_path / "workspace"
    workspace = Workspace(root)
    with workspace.claim():
        corpus, _ = ensure_corpus(config.corpus, workspace, SilentReporter())
    assert estimate_run(config, root).corpus == corpus.folder.name
    assert estimate_run(make_small_config("corpus.generate.seed=8"), root).corpus == "to build"
    assert len(list(workspace.worlds.iterdir())) == 1


def test_a_dump_that_is_not_read_yet_is_judged_by_its_pieces(demo, tmp_path):
    corpus = Corpus.open(next((demo.root / "corpus").iterdir()))
    config = make_config(read_recipe("demo"), [f"corpus.world={demo.world}"])
    estimate = estimate_run(config, tmp_path / "workspace")
    counts = corpus.manifest.counts
    assert (estimate.dump.pages, estimate.dump.articles) == (counts.rows_in, counts.articles)
    assert estimate.dump.links >= counts.links
    assert estimate.dump.core_seconds > 0
    assert not list(tmp_path.iterdir())
    assert f"{counts.articles:,} articles" in render_estimate(estimate).caption


def test_a_dump_whose_corpus_is_built_is_not_read_again(demo):
    assert estimate_run(make_demo_config(demo.world), demo.root).dump is None


ASKING = ("questions", "rewrites", "groundings", "difficulty", "enhancements", "rollouts")
PRICED = "models.rewriter.prices.input=1.0"


def configure(world, *settings):
    return make_config(read_recipe("demo"), [f"corpus.world={world}", *SETTINGS, *settings])


@pytest.fixture(scope="module")
def sampled(demo, tmp_path_factory):
    """A workspace with a run over a few seeds of the demo's world."""
    root = tmp_path_factory.mktemp("sampled")
    run_recipe(make_sample_config(configure(demo.world), 60), root, "trajectories", ())
    return root


@pytest.fixture
def copied(sampled, tmp_path):
    """The sample in a workspace of the test's own."""
    shutil.copytree(sampled, tmp_path / "workspace", ignore=shutil.ignore_patterns("images", "replies"))
    return tmp_path / "workspace"


def read_manifest(root, stage):
    (path,) = root.glob(f"stages/{stage}/*/manifest.json")
    return path, json.loads(path.read_bytes())


def charge(root, tokens=1000, cost=0.01):
    """Let every request that the sample sent have cost something."""
    for stage in ASKING:
        path, manifest = read_manifest(root, stage)
        calls = manifest["usage"]["calls"]
        manifest["usage"] |= {"tokens_in": tokens * calls, "cost": cost * calls, "gpu_seconds": 36.0 * calls}
        path.write_text(json.dumps(manifest))


def by_stage(estimate):
    return {stage.stage: stage for stage in estimate.stages}


def test_a_sample_predicts_rows_and_requests_of_the_whole_run_within_its_own_intervals(demo, sampled):
    estimate = estimate_run(configure(demo.world), sampled)
    stages, asked = by_stage(estimate), 0
    for report in demo.document["stages"][1:]:
        stage, requests = stages[report["stage"]], report["calls"] + report["cached_calls"]
        assert stage.rows_in.low <= report["rows_in"] <= stage.rows_in.high + 1e-6, stage
        assert stage.requests.low <= requests <= stage.requests.high + 1e-6, stage
        asked += requests
    assert estimate.total.requests.low <= asked <= estimate.total.requests.high
    assert estimate.total.basis == "measured"
    # Shares and facts that are used up refuse more of many rows than of few: a sample plans for too much.
    assert estimate.total.requests.high < 3.0 * asked, "an interval that holds anything predicts nothing"


def test_stages_that_run_at_once_take_as_long_as_the_longest(demo, sampled):
    estimate = estimate_run(configure(demo.world), sampled)
    hours = {stage.stage: stage.hours.middle for stage in estimate.stages if stage.hours is not None}
    alone = sum(hours.pop(name, 0.0) for name in ("seeds", "selections", "releases"))
    assert len(hours) > 3
    assert estimate.total.hours.middle == pytest.approx(alone + max(hours.values()))


def test_without_a_sample_the_recipe_bounds_what_is_asked(demo, tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "corpus").symlink_to(demo.root / "corpus")
    estimate = estimate_run(configure(demo.world), root)
    assert {stage.basis for stage in estimate.stages} == {"bound"}
    for report in demo.document["stages"][1:]:
        stage = by_stage(estimate)[report["stage"]]
        assert stage.requests.low == 0
        assert report["calls"] + report["cached_calls"] <= stage.requests.high
    assert estimate.total.tokens is None


def test_how_many_seeds_there_are_is_known_from_any_limit(demo, sampled):
    seeds = by_stage(estimate_run(configure(demo.world, "seeds.limit=50"), sampled))["seeds"]
    assert (seeds.rows_out.low, seeds.rows_out.high) == pytest.approx((50, 50))
    whole = by_stage(estimate_run(configure(demo.world), sampled))["seeds"]
    assert whole.rows_out.middle == pytest.approx(demo.document["stages"][1]["rows_out"])


def test_what_the_sample_asked_is_recorded_for_the_whole_run(demo, sampled):
    stages = by_stage(estimate_run(configure(demo.world), sampled))
    for stage in ASKING:
        usage = read_manifest(sampled, stage)[1]["usage"]
        assert stages[stage].recorded == usage["calls"] + usage["cached_calls"]


def test_without_prices_money_is_not_nothing_but_unknown(demo, copied):
    charge(copied)
    estimate = estimate_run(configure(demo.world), copied)
    assert {stage.money for stage in estimate.stages} == {None}
    columns = {column.header: list(column.cells) for column in render_estimate(estimate).columns}
    assert set(columns["money"]) == {"-"}
    assert estimate.total.tokens.middle > 0


def test_money_is_that_of_requests_that_are_not_recorded(demo, copied):
    charge(copied)
    estimate = estimate_run(configure(demo.world, PRICED), copied)
    rewrites = by_stage(estimate)["rewrites"]
    left = rewrites.requests.less(rewrites.recorded)
    assert rewrites.money.middle == pytest.approx(0.01 * left.middle)
    assert rewrites.tokens.middle == pytest.approx(1000 * left.middle)
    assert estimate.total.money.low < estimate.total.money.middle < estimate.total.money.high


def test_an_accepted_trajectory_takes_what_every_stage_takes_by_the_measured_pace(demo, copied):
    charge(copied)
    estimate = estimate_run(configure(demo.world, PRICED), copied)
    assert [cost.stage for cost in estimate.a_trajectory] == [*ASKING, "all"]
    *parts, whole = estimate.a_trajectory
    _, rollouts = read_manifest(copied, "rollouts")
    _, trajectories = read_manifest(copied, "trajectories")
    paid = rollouts["usage"]["calls"] / trajectories["rows_out"]
    assert parts[-1].calls == pytest.approx(paid, rel=0.05)
    assert whole.calls == pytest.approx(sum(part.calls for part in parts))
    assert (whole.tokens, whole.money) == pytest.approx((1000 * whole.calls, 0.01 * whole.calls), rel=0.01)
    told = render_estimate(estimate).caption
    assert f"An accepted trajectory takes {whole.calls:,.1f} requests: questions" in told


def test_what_a_trajectory_takes_is_not_told_where_a_stage_was_not_measured(demo, tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "corpus").symlink_to(demo.root / "corpus")
    assert estimate_run(configure(demo.world), root).a_trajectory == ()


def test_gpu_hours_are_counted_where_a_model_has_gpus(demo, copied):
    charge(copied)
    assert estimate_run(configure(demo.world), copied).total.gpu_hours is None
    estimate = estimate_run(configure(demo.world, "models.teacher.serve.gpus=1"), copied)
    rewrites = by_stage(estimate)["rewrites"]
    assert rewrites.gpu_hours.middle == pytest.approx(0.01 * (rewrites.requests.middle - rewrites.recorded))


def test_a_budget_says_in_which_stage_it_ends_and_after_how_many_rows(demo, copied):
    charge(copied)
    stages = by_stage(estimate_run(configure(demo.world, PRICED), copied))
    money = stages["questions"].money.middle + stages["rewrites"].money.middle / 2
    estimate = estimate_run(configure(demo.world, PRICED, f"budget.money={money}"), copied)
    (reach,) = estimate.budget
    rows = stages["rewrites"].rows_in.middle
    assert f"ends in stage rewrites after about {rows / 2:,.0f} of {rows:,.0f} rows" in reach
    assert reach in render_estimate(estimate).caption


def test_a_budget_that_is_enough_says_so(demo, copied):
    charge(copied)
    estimate = estimate_run(configure(demo.world, "budget.tokens=1000000000", "budget.gpu_hours=1e6"), copied)
    assert estimate.budget == ("budget.tokens 1e+09 is enough.", "budget.gpu_hours 1e+06 is enough.")


def test_a_budget_over_what_nobody_measured_promises_nothing(demo, copied):
    shutil.rmtree(copied / "stages" / "rewrites")
    (reach,) = estimate_run(configure(demo.world, "budget.tokens=1000000"), copied).budget
    assert "no run has measured what stage rewrites takes" in reach


def test_of_a_started_stage_only_the_shards_that_are_missing_are_counted(demo, copied):
    config = make_sample_config(configure(demo.world), 60)
    path, manifest = read_manifest(copied, "rollouts")
    path.unlink()
    (path.parent / "part-00000.json").unlink()
    stage = by_stage(estimate_run(config, copied))["rollouts"]
    assert (stage.state, stage.pending_shards) == ("started", 1)
    assert stage.requests.high <= 2 * 2 * 2 * 16 * manifest["shards"][0]["rows_in"]
    assert by_stage(estimate_run(config, copied))["difficulty"].state == "complete"


def test_a_sample_is_never_larger_than_the_run_and_never_empty():
    config = make_small_config("seeds.limit=40")
    assert [make_sample_config(config, seeds).seeds.limit for seeds in (10, 1000)] == [10, 40]
    assert make_sample_config(config, 10).runtime.shard_rows == 1
    with pytest.raises(ConfigError, match="give 1 or more"):
        make_sample_config(config, 0)
