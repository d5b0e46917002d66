"""The network of these tests holds their own hosts and nothing else."""

from collections.abc import Iterator

import pytest

from tests.ray.cluster import open_cluster
from tests.ray.faults import Ordeal, prepare
from tests.ray.namespaces import is_alone


@pytest.fixture(scope="session", autouse=True)
def no_network() -> None:
    """Take the place of the fixture that refuses other hosts."""


@pytest.fixture(scope="session")
def ordeal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ordeal]:
    """Two Ray nodes, and what an undisturbed run on them made."""
    if not is_alone():
        pytest.skip("needs a network of its own, see `make test-ray`")
    with open_cluster(tmp_path_factory.mktemp("cluster") / "logs") as cluster:
        yield prepare(cluster)
