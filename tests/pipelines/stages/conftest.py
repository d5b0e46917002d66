import pytest

from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace


@pytest.fixture(scope="session")
def assembly(demo, demo_corpus, tmp_path_factory) -> Assembly:
    """The demo's parts over its corpus, writing to a workspace of their own."""
    return Assembly(demo.config, Workspace(tmp_path_factory.mktemp("assembly")), demo_corpus)
