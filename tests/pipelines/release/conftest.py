import shutil

import pytest

from tests.pipelines.release.builders import make_context, make_material
from tests.pipelines.release.tampering import cut_release, read_rows


@pytest.fixture
def material(tmp_path):
    return make_material(tmp_path)


@pytest.fixture
def context():
    return make_context()


def _count_facts(row):
    """Return how many facts describe nodes; that somebody is a person is said by any word for one, and counts last."""
    constraints = row["proof"]["constraints"]
    return sum(constraint["value"] != "person" for constraint in constraints), len(constraints)


@pytest.fixture(scope="session")
def small_releases(demo, demo_ground, tmp_path_factory):
    """Each release cut down to one row, with descriptor facts where there are any, and its proof; sealed honestly."""
    folder = tmp_path_factory.mktemp("releases")
    for dataset in ("sft", "rl", "vqa"):
        shutil.copytree(demo.release(dataset), folder / dataset)
        proofs = read_rows(folder / dataset, "proofs")
        wanted = max(proofs, key=lambda row: (_count_facts(row), row["record_id"]))["record_id"]
        cut_release(folder / dataset, dataset, {wanted}, demo_ground)
    return folder
