"""Driving synth as a user does: a child process, its streams, and what it left in a workspace."""

import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pipelines.cli.main import main
from tests.sharing import find_shared

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("corpus.generate.entities=300", "groundings.min_answers=2", "runtime.shard_rows=8", "seed=9")
"""A world of a few seconds whose seed fills every release. Few questions of 300 entities have five answers: two do."""
TINY = ("corpus.generate.entities=300", "groundings.min_answers=2", "runtime.shard_rows=4", "seeds.limit=28", "seed=9",
        "difficulty.probe_attempts=0", "runtime.unscored=1.0", "rollouts.dialect=native")  # fmt: skip
"""Settings of a run with a few rows for each of the roles below, in several shards."""
STAGES = {"writer": "questions", "rewriter": "rewrites", "solver": "difficulty", "teacher": "rollouts"}
"""The stage that asks each role."""
FUNNEL = ("stage", "key", "rows_in", "kept", "rejected", "failed", "rows_out")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


def make_command(*arguments: object) -> list[str]:
    """Return the command line of synth as this checkout has it."""
    return [sys.executable, "-m", "pipelines.cli.main", *(str(argument) for argument in arguments)]


def make_run(workspace: Path, *more: object, settings: Iterable[str] = SMALL) -> list[str]:
    """Return the command line of a run that answers in JSON; by its recipe, so that no earlier option stays."""
    return make_command("run", "--recipe", "demo", "--workspace", workspace, *list_settings(settings), *more, "--json")


def make_environment() -> dict[str, str]:
    """Return a child's environment: this one, with a width that tables do not depend on."""
    return os.environ | {"COLUMNS": "80"}


def list_settings(settings: Iterable[str]) -> list[str]:
    """Return settings as arguments."""
    return [part for setting in settings for part in ("--set", setting)]


def call(command: Sequence[str], timeout: float = 1200.0) -> Outcome:
    """Run a command in the checkout and wait for it."""
    done = subprocess.run(
        command, cwd=ROOT, env=make_environment(), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def call_synth(*arguments: object) -> Outcome:
    """Run one synth command and wait for it."""
    return call(make_command(*arguments))


def run_small(workspace: Path, *more: object, settings: Iterable[str] = SMALL) -> Any:
    """Run the demo on the small world and return its document; it must succeed."""
    outcome = call(make_run(workspace, *more, settings=settings))
    assert outcome.code == 0, outcome.err[-2000:]
    return outcome.document


@cache
def share_run(base: Path, name: str, settings: tuple[str, ...], *more: object) -> tuple[Path, Any]:
    """Return one finished run for a whole test session, and its document; readers must not change it.

    Args:
        base: the session's base temp folder.
        name: of the folder that it is made in.
        settings: of the run.
        more: arguments of the run.
    """
    folder = find_shared(base) / name
    folder.mkdir(exist_ok=True)
    workspace, document = folder / "workspace", folder / "document.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not document.exists():
            document.write_text(json.dumps(run_small(workspace, *more, settings=settings)))
    return workspace, json.loads(document.read_text())


def share_small_run(base: Path) -> tuple[Path, Any]:
    """Return the shared run of 60 seeds, and its document; see :func:`share_run`."""
    return share_run(base, "small-run", SMALL, "--limit", 60)


def begin_small(base: Path, workspace: Path) -> Path:
    """Give a workspace the small world and its corpus, as a run of 300 entities and seed 9 makes them; return it.

    Args:
        base: as of :func:`share_small_run`.
        workspace: its folder, which need not be there.
    """
    small, _ = share_small_run(base)
    for name in ("worlds", "corpus"):
        shutil.copytree(small / name, workspace / name)
    return workspace


def call_here(capture: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run one synth command in this process, which spares a second of imports."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    return Outcome(code, *capture.readouterr())


def copy_workspace(source: Path, target: Path) -> Path:
    """Copy a workspace, so that a test may change it."""
    shutil.copytree(source, target)
    return target


def digest_files(root: Path, pattern: str) -> dict[str, str]:
    """Return the sha256 of every file below ``root`` that matches, by its path inside."""
    files = sorted(path for path in root.glob(pattern) if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def digest_outputs(workspace: Path) -> dict[str, str]:
    """Return the digests of everything a run is for: stage Parquet, pictures and releases."""
    patterns = ("stages/**/*.parquet", "images/**/*", "releases/**/*")
    return {name: digest for pattern in patterns for name, digest in digest_files(workspace, pattern).items()}


def read_funnel(document: Any) -> list[dict[str, Any]]:
    """Return a run's funnel without what differs from run to run: seconds and how much was cached."""
    return [{name: stage[name] for name in FUNNEL} for stage in document["stages"]]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The reply store's two tables at one moment."""

    asks: Counter[str]
    replies: frozenset[str]

    @property
    def in_flight(self) -> frozenset[str]:
        """Keys that were asked and have no reply."""
        return frozenset(self.asks) - self.replies


def read_ledger(workspace: Path, backend: str = "") -> Ledger:
    """Return what backends of a prefix were asked and answered.

    It reads a copy: opening a killed process's database would repair it.
    """
    source = workspace / "replies"
    if not (source / "replies.db").is_file():
        return Ledger(Counter(), frozenset())
    of = f"WHERE backend LIKE '{backend}%'"
    with TemporaryDirectory() as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        store = sqlite3.connect(Path(folder) / "replies.db")
        try:
            tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            asks = store.execute(f"SELECT key FROM asks {of}").fetchall() if "asks" in tables else []
            replies = store.execute(f"SELECT key FROM replies {of}").fetchall() if "replies" in tables else []
        finally:
            store.close()
    return Ledger(Counter(key for (key,) in asks), frozenset(key for (key,) in replies))


def list_trusted(workspace: Path) -> list[str]:
    """Return what a later run would take as done: corpora, worlds, sealed stages and releases."""
    patterns = ("corpus/*/manifest.json", "worlds/*", "stages/*/*/manifest.json", "releases/*/*/manifest.json")
    found = [path for pattern in patterns for path in workspace.glob(pattern)]
    return sorted(str(path.relative_to(workspace)) for path in found if not path.name.startswith("."))


def check_one_line(outcome: Outcome, code: int) -> str:
    """Assert that a command failed with a code and one plain line, and return that line."""
    assert outcome.code == code, outcome
    lines = [line for line in outcome.err.splitlines() if line.startswith("synth:")]
    assert "Traceback" not in outcome.err, outcome.err
    assert len(lines) == 1, outcome.err
    assert outcome.err.rstrip("\n").endswith(lines[0]), outcome.err
    return lines[0]
