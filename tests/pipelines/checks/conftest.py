import pytest

from tests.mutants.pools import share_pool
from tests.pipelines.painters import build_painters
from tests.toy import build_toy_corpus


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    yield from share_pool(tmp_path_factory)


@pytest.fixture(scope="session")
def painters(tmp_path_factory):
    return build_painters(tmp_path_factory.mktemp("painters"))


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("toy"))
