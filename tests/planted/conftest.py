import pytest

from tests.planted.scenes import PoolSize, make_pool


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    """Clean questions of both recipes in one small world, one infobox field in ten left out."""
    size = PoolSize(260, {"paths": 40, "injection": 150})
    pool = make_pool(tmp_path_factory.mktemp("pool"), 7, 0.1, size)
    yield pool
    pool.corpus.close()
