"""One generated world for all recipes, made once and shared by all workers."""

from pathlib import Path

import pytest

from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.conftest import hold_lock
from tests.sharing import find_shared

ENTITIES = 300


@pytest.fixture(scope="session")
def recipe_world(tmp_path_factory) -> Path:
    """A world of 300 entities."""
    folder = find_shared(tmp_path_factory.getbasetemp()) / "recipes"
    folder.mkdir(exist_ok=True)
    with hold_lock(folder / "lock"):
        if not (folder / "made").exists():
            write_world(folder / "world", WorldConfig(entities=ENTITIES))
            (folder / "made").touch()
    return folder / "world"
