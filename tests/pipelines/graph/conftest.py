import pytest

from pipelines.corpus.store import Corpus
from pipelines.graph.relations import RelationIndex
from tests.toy import build_toy_corpus


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Corpus:
    return build_toy_corpus(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def toy_relations(toy) -> RelationIndex:
    return RelationIndex(toy)
