import pytest

from pipelines.config import make_config, read_recipe
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.estimate import estimate_run, render_estimate
from pipelines.inputs import ensure_corpus
from pipelines.progress import SilentReporter
from pipelines.workspace import Workspace
from tests.conftest import make_demo_config


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
    assert sum(stage.requests for stage in estimate.stages) == 0


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
