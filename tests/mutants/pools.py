"""One small world with the questions that the pipeline accepts in it, made once a session whoever asks first."""

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipelines.run.workspace import Workspace
from tests.conftest import hold_lock
from tests.planted.scenes import Pool, PoolSize, make_pool
from tests.sharing import find_shared

SIZE = PoolSize(300, {"paths": 150, "injection": 300})


def share_pool(folders: pytest.TempPathFactory, seed: int = 9, size: PoolSize = SIZE) -> Iterator[Pool]:
    """Give the pool of a seed; what a world and its stages need lies on disk, where the next worker finds it."""
    root = find_shared(folders.getbasetemp()) / f"pool-{seed}"
    root.mkdir(exist_ok=True)
    with hold_lock(root / "lock"):
        pool = make_pool(root, seed, 0.1, size)
    # What a pool makes later on, such as the next dump of its world, is its user's own.
    own = folders.mktemp("pool")
    shutil.copytree(Workspace(root / "workspace").root / "images", own / "workspace" / "images")
    yield replace(pool, root=own)
    pool.corpus.close()
