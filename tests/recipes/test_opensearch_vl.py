"""OpenSearch-VL's recipe on a generated world with scripted players: what it releases and refuses."""

from collections import Counter
from contextlib import closing

import pytest

from pipelines.cli.commands import load_config, run_recipe
from pipelines.corpus.store import Corpus
from pipelines.errors import GateNotMet
from pipelines.graph.query import Indexes
from pipelines.release.verify import verify_release
from pipelines.run.workspace import Workspace
from schemas.datasets import Enhancement
from tests.conftest import DemoRun

pytestmark = pytest.mark.slow
LEAST = {"sft": 15, "rl": 4, "vqa": 20}


@pytest.fixture(scope="module")
def load(recipe_world):
    """Return the recipe's configuration with settings over it."""

    def load_recipe(*settings):
        own = [f"corpus.world={recipe_world}", "paths.per_seed=2", *settings]
        return load_config("opensearch-vl", None, ["models=scripted", *own])

    return load_recipe


@pytest.fixture(scope="module")
def made(load, tmp_path_factory):
    run = DemoRun(tmp_path_factory.mktemp("opensearch-vl"))
    return run, run_recipe(load(), run.root, "", ())


def test_every_dataset_is_released_and_verified_and_no_limit_refuses_what_the_teacher_was_paid_for(made):
    run, document = made
    rows = {release.dataset: release.rows for release in document.releases}
    assert all(rows[dataset] >= least for dataset, least in LEAST.items()), rows
    with closing(Corpus.open(run.root / "corpus" / Workspace(run.root).read_latest()["corpus"])) as corpus:
        for release in document.releases:
            report = verify_release(release.path, Indexes(corpus))
            assert (report.verified, report.problems) == (release.rows, ())
    refused = {report.stage: report.rejected for report in document.stages}
    assert "selections" in refused
    assert set(refused["releases"]) <= {"tells-held-out-fact"}


def test_blur_and_perspective_share_a_tenth_of_the_questions_where_no_weights_enlarge_pictures(made):
    run, _ = made
    rows = run.rows("selections", Enhancement)
    degraded = Counter(row.trial.degradation for row in rows if row.trial)
    assert degraded.total() == round(0.1 * len(rows))
    assert set(degraded) <= {"blur", "perspective"}
    assert abs(degraded["blur"] - degraded["perspective"]) <= 1
    assert {row.trial.test for row in rows if row.trial and row.trial.degradation == "blur"} <= {"detail"}


def test_a_run_that_can_release_nothing_says_so_before_the_teacher_is_asked(made, load):
    run, _ = made
    document = run_recipe(load("groundings.min_side=100000"), run.root, "", ())
    assert document.stages[-1].stage == "selections"
    with pytest.raises(GateNotMet, match=r"the teacher is not asked: .*groundings kept 0 of"):
        document.check_released()
    assert "rollouts" not in Workspace(run.root).read_latest()
