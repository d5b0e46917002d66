"""A finished run of a few rows for each role, made once for a whole test session, and a server that may fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.driving import TINY, share_run
from tests.faults.server import Handle, open_server


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_run(tmp_path_factory.getbasetemp(), "tiny-run", TINY)[0]


@pytest.fixture(scope="module")
def server() -> Iterator[Handle]:
    with open_server() as handle:
        yield handle
