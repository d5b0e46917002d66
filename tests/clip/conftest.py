"""Real open_clip models, if tiny ones, made here and shared by all tests of this folder.

They need the extra ``clip``, which brings torch: ``make test-clip`` makes an environment that has it.
"""

import importlib.util

import pytest

MISSING = importlib.util.find_spec("open_clip") is None
# Their modules import torch, which the environment of all other tests has not.
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "clip: needs the extra clip, see make test-clip")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for test in items:
        if test.nodeid.startswith("tests/clip/"):
            test.add_marker(pytest.mark.clip)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A tiny model with random weights: its architecture and its checkpoint."""
    from tests.clip.models import write_tiny_model

    return write_tiny_model(tmp_path_factory.mktemp("model"))
