import pytest

from pipelines.corpus.store import Corpus
from pipelines.graph.facts import RelationIndex
from pipelines.graph.query import Indexes
from tests.pipelines.painters import build_painters
from tests.toy import build_toy_corpus


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Corpus:
    return build_toy_corpus(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def toy_ground(toy) -> Indexes:
    return Indexes(toy)


@pytest.fixture(scope="session")
def toy_relations(toy_ground) -> RelationIndex:
    return toy_ground.relations


@pytest.fixture(scope="session")
def painters(tmp_path_factory) -> Corpus:
    return build_painters(tmp_path_factory.mktemp("painters"))
