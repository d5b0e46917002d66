"""The trainers' own data loaders, each in an environment of its own, over exports that are made on the spot.

The environments are made by ``make test-consumers``; tests of a trainer that has none are skipped. A driver runs in the
trainer's environment, imports nothing of ours and prints one JSON document.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CONSUMERS = Path(os.environ.get("SYNTH_CONSUMERS", HERE.parents[1] / ".venv-consumers"))
"""Folder of the environments, one a trainer, named after it."""
PATIENCE = 900
"""Seconds a driver may take."""
SHOWN = 3000
"""Characters of a driver's last words that a failure shows."""

TABLE = pytest.StashKey[list[dict[str, object]]]()

Driver = Callable[..., dict[str, Any]]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "consumers: needs a trainer's own environment, see make test-consumers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for test in items:
        if test.nodeid.startswith("tests/consumers/"):
            test.add_marker(pytest.mark.consumers)


def find_python(consumer: str) -> Path:
    """Return a trainer's Python; where there is none, the test is skipped."""
    python = CONSUMERS / consumer / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {consumer} at {python}; see make test-consumers")
    return python


@pytest.fixture(scope="session")
def drive(tmp_path_factory) -> Driver:
    """Run a driver in a trainer's environment: ``drive("trl", "load_trl.py", file)``; returns what it says."""

    def run(consumer: str, driver: str, *arguments: object) -> dict[str, Any]:
        home = tmp_path_factory.mktemp("home")
        told = [str(find_python(consumer)), str(HERE / "drivers" / driver), *map(str, arguments)]
        done = subprocess.run(
            told, capture_output=True, text=True, timeout=PATIENCE, env=make_environment(home), check=False, cwd=home
        )
        assert done.returncode == 0, done.stderr[-SHOWN:]
        return json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])

    return run


@pytest.fixture
def note(request) -> Callable[..., None]:
    """Put a row into the table that the run ends with: ``note(export="trl", loader="TRL 1.16.0", rows_in=3, ...)``."""

    def add(**told: object) -> None:
        request.config.stash.setdefault(TABLE, []).append(told)

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(TABLE, [])
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if rows:
        terminalreporter.section("conformance")
        terminalreporter.write_line("| " + " | ".join(columns) + " |")
        terminalreporter.write_line("|" + "---|" * len(columns))
    for row in rows:
        terminalreporter.write_line("| " + " | ".join(str(row.get(name, "")) for name in columns) + " |")


def make_environment(home: Path) -> dict[str, str]:
    """Return the variables of a driver: caches in a folder of its own, and nothing is fetched."""
    own = ("HOME", "HF_HOME", "HF_DATASETS_CACHE", "MODELSCOPE_CACHE", "RLLM_HOME", "TRITON_CACHE_DIR")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return kept | offline | {name: str(home / name.lower()) for name in own}
