import pytest

from tests.mutants.pools import share_pool
from tests.planted.scenes import PoolSize


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    """Clean questions of both recipes in one small world, one infobox field in ten left out."""
    yield from share_pool(tmp_path_factory, 7, PoolSize(260, {"paths": 40, "injection": 150}))
