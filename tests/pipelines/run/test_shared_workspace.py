"""A workspace on a file system that locks no files, claimed through PostgreSQL."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.errors import ConfigError, Unavailable
from pipelines.files import TEMP_PREFIX, make_temp_path, replacing
from pipelines.run.workspace import Workspace

ROOT = Path(__file__).parents[3]
HOLDER = """
import errno, fcntl, sys, time
from pathlib import Path
from pipelines.run.workspace import Workspace

def refuse(*_):
    raise OSError(errno.ENOLCK, "No locks available")

fcntl.flock = refuse
with Workspace(Path(sys.argv[1])).claim(sys.argv[2]):
    Path(sys.argv[3]).touch()
    time.sleep(600)
"""
WAIT = 60.0


@pytest.fixture(autouse=True)
def without_locks(monkeypatch):
    """Locks are refused, as on NFS without a lock daemon."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def claim(workspace, address=""):
    """Claim a workspace and leave it; return what its run was called."""
    with workspace.claim(address):
        return workspace.read_run()


def claim_soon(workspace):
    deadline = time.monotonic() + WAIT
    while True:
        try:
            return claim(workspace)
        except Unavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_without_postgresql_the_workspace_is_refused_with_both_ways_out(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot lock files.*local disk.*replies\.address"):
        claim(Workspace(tmp_path))


@pytest.mark.postgres
def test_a_run_that_is_refused_removes_nothing_of_the_run_that_holds_it(postgres, tmp_path):
    workspace, address = Workspace(tmp_path), postgres.make_address()
    folder = tmp_path / "stages" / "paths" / "key"
    folder.mkdir(parents=True)
    with workspace.claim(address):
        with replacing(folder / "part-00000.parquet") as half:
            half.write_bytes(b"half")
            with pytest.raises(Unavailable, match="another run holds it"):
                claim(workspace, address)
        assert (folder / "part-00000.parquet").read_bytes() == b"half"
    make_temp_path(folder / "left").touch()
    claim(workspace, address)
    assert [path.name for path in folder.iterdir()] == ["part-00000.parquet"]


@pytest.mark.postgres
def test_one_run_holds_it_and_each_has_a_name_of_its_own(postgres, tmp_path):
    workspace, address = Workspace(tmp_path), postgres.make_address()
    first = claim(workspace, address)
    with workspace.claim(address):
        run = workspace.read_run()
        under_way = tmp_path / f"{TEMP_PREFIX}latest.json-0badf00d"
        under_way.touch()
        with pytest.raises(Unavailable, match="another run holds it"):
            claim(workspace, address)
        assert under_way.exists()
        assert workspace.read_run() == run
    assert workspace.read_run() == ""
    assert first != run
    assert first.partition("/")[0] == run.partition("/")[0]
    claim(workspace, address)


@pytest.mark.postgres
def test_a_claim_ends_with_its_process_and_outlives_a_restart_of_the_server(postgres, tmp_path):
    workspace, address, ready = Workspace(tmp_path / "workspace"), postgres.make_address(), tmp_path / "ready"
    command = [sys.executable, "-c", HOLDER, str(workspace.root), address, str(ready)]
    holder = subprocess.Popen(command, cwd=ROOT)
    deadline = time.monotonic() + WAIT
    while not ready.exists():
        assert time.monotonic() < deadline
        assert holder.poll() is None
        time.sleep(0.05)
    postgres.control("restart", "-m", "fast")
    with pytest.raises(Unavailable, match="another run holds it"):
        claim(workspace, address)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait(WAIT)
    (workspace.root / "replies").mkdir()
    (workspace.root / "replies" / "address").write_text(address)
    assert claim_soon(workspace)
