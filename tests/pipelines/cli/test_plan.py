import json
import shutil

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.cli.console import emit_table
from pipelines.cli.plan import estimate_run, make_sample_config, render_estimate
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.corpora import ensure_corpus
from pipelines.run.progress import Reporter
from pipelines.run.workspace import Workspace
from tests.conftest import SETTINGS, make_demo_config

pytestmark = pytest.mark.slow


def make_small_config(*settings):
    return make_config(read_recipe("demo"), ["corpus.generate.entities=60", *settings])


def test_nothing_is_written_for_a_plan(tmp_path):
    assert estimate_run(make_small_config(), tmp_path / "workspace").stages == ()
    assert not list(tmp_path.iterdir())


def test_a_dump_that_is_missing_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        estimate_run(make_config(read_recipe("demo"), [f"corpus.dump={tmp_path / 'x.xml'}"]), tmp_path / "workspace")
    assert not list(tmp_path.iterdir())


def test_a_finished_run_leaves_nothing_to_do(demo):
    estimate = estimate_run(make_demo_config(demo.world), demo.root)
    assert {stage.by for stage in estimate.stages[:-1]} == {"done"}
    assert estimate.stages[-1].requests == 0


def test_a_world_generated_before_is_known_and_its_corpus_too(tmp_path):
    config, root = make_small_config(), tmp_path / "workspace"
    workspace = Workspace(root)
    with workspace.claim():
        corpus, _ = ensure_corpus(config.corpus, workspace, Reporter())
    assert estimate_run(config, root).corpus == corpus.folder.name
    assert estimate_run(make_small_config("corpus.generate.seed=8"), root).corpus == ""
    assert len(list(workspace.worlds.iterdir())) == 1


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


def test_a_sample_predicts_what_the_whole_run_asks(demo, sampled):
    stages = by_stage(estimate_run(configure(demo.world), sampled))
    asked = sum(report["calls"] + report["cached_calls"] for report in demo.document["stages"])
    recorded = 0
    for stage in ASKING:
        usage = read_manifest(sampled, stage)[1]["usage"]
        recorded += usage["calls"] + usage["cached_calls"]
    assert stages["seeds"].rows_out == demo.document["stages"][1]["rows_out"]
    # Shares and facts that are used up refuse more of many rows than of few: a sample plans for too much.
    assert 0.7 * (asked - recorded) < stages["all"].requests < 2.0 * (asked - recorded)
    assert stages["all"].by == ""


def test_stages_that_run_at_once_take_as_long_as_the_longest(demo, sampled):
    stages = by_stage(estimate_run(configure(demo.world), sampled))
    whole = stages.pop("all").hours
    hours = {name: stage.hours for name, stage in stages.items()}
    alone = sum(hours.pop(name) for name in ("seeds", "selections", "releases"))
    assert whole == pytest.approx(alone + max(hours.values()))


def test_without_a_sample_the_recipe_bounds_what_is_asked(demo, tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "corpus").symlink_to(demo.root / "corpus")
    stages = by_stage(estimate_run(configure(demo.world), root))
    assert {stage.by for stage in stages.values()} == {"at most"}
    for report in demo.document["stages"][1:]:
        assert report["calls"] + report["cached_calls"] <= stages[report["stage"]].requests
    assert stages["all"].tokens is None


def test_money_is_that_of_requests_that_are_not_recorded_and_unknown_without_prices(demo, copied, capsys):
    charge(copied)
    assert by_stage(estimate_run(configure(demo.world), copied))["all"].money is None
    estimate = estimate_run(configure(demo.world, PRICED), copied)
    for stage in ("rewrites", "all"):
        found = by_stage(estimate)[stage]
        assert (found.money, found.tokens) == pytest.approx((0.01 * found.requests, 1000 * found.requests))
    emit_table(render_estimate(estimate))
    said = capsys.readouterr().out
    assert "money" in said
    assert "gpu hours" not in said


def test_gpu_hours_are_counted_where_a_model_has_gpus(demo, copied):
    charge(copied)
    found = by_stage(estimate_run(configure(demo.world, "models.teacher.serve.gpus=1"), copied))["rewrites"]
    assert found.gpu_hours == pytest.approx(0.01 * found.requests)


def test_of_a_started_stage_only_the_shards_that_are_missing_are_counted(demo, copied):
    config = make_sample_config(configure(demo.world), 60)
    path, manifest = read_manifest(copied, "rollouts")
    path.unlink()
    (path.parent / "part-00000.json").unlink()
    stages = by_stage(estimate_run(config, copied))
    assert 0 < stages["rollouts"].requests <= 2 * 2 * 2 * 16 * manifest["shards"][0]["rows_in"]
    assert stages["difficulty"].by == "done"


def test_a_sample_is_never_larger_than_the_run_and_never_empty():
    config = make_small_config("seeds.limit=40")
    assert [make_sample_config(config, seeds).seeds.limit for seeds in (10, 1000)] == [10, 40]
    assert make_sample_config(config, 10).runtime.shard_rows == 1
    with pytest.raises(ConfigError, match="give 1 or more"):
        make_sample_config(config, 0)
