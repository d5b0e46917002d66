"""OpenSearch-VL's recipe on a generated world with scripted players: questions of every dataset, and shares kept."""

from collections import Counter

import pytest

from pipelines.cli.commands import load_config, run_recipe
from pipelines.corpus.store import Corpus
from pipelines.graph.query import Indexes
from pipelines.release.verify import verify_release
from schemas.datasets import Enhancement
from tests.conftest import DemoRun

SMALL = ("paths.per_seed=2", "rewrites.min_alone=1", "difficulty.attempts=2", "rollouts.attempts=2")


@pytest.fixture(scope="module")
def made(recipe_world, tmp_path_factory) -> DemoRun:
    run = DemoRun(tmp_path_factory.mktemp("opensearch-vl"))
    config = load_config("opensearch-vl", None, [f"corpus.world={recipe_world}", *SMALL], models="scripted")
    document = run_recipe(config, run.root, "", ())
    document.check_released()
    run.folder.joinpath("document.json").write_text(__import__("json").dumps(document.as_dict()))
    return run


def test_probe(made):
    print({s["stage"]: (s["rows_in"], s["kept"], s["rejected"], s["rows_out"], s["seconds"]) for s in made.document["stages"]})
    print(made.document["releases"])
    assert 0
