"""One small world with the questions that the pipeline accepts in it, made once a session whoever asks first."""

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipelines.run.workspace import Workspace
from tests.conftest import hold_lock
from tests.planted.scenes import Pool, PoolSize, make_pool

SIZE = PoolSize(300, {"paths": 150, "injection": 300})


def share_pool(request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Iterator[Pool]:
    """Give the pool; what a world and its stages need lies on disk, where the next worker finds it."""
    base = folders.getbasetemp()
    # Under xdist each worker has a folder of its own in the session's.
    root = (base.parent if hasattr(request.config, "workerinput") else base) / "mutants-pool"
    root.mkdir(exist_ok=True)
    with hold_lock(root / "lock"):
        pool = make_pool(root, 9, 0.1, SIZE)
    # What a pool makes later on, such as the next dump of its world, is its user's own.
    own = folders.mktemp("pool")
    shutil.copytree(Workspace(root / "workspace").root / "images", own / "workspace" / "images")
    yield replace(pool, root=own)
    pool.corpus.close()
