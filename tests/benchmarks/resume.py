"""Measures what is paid twice: kill -9 at random moments, one row more, another system prompt, another order.

The kills hit ``synth run`` itself, in its difficulty stage, against a server of 50 ms that counts what it was asked
for (tests/mock_openai.py). The rest is measured on the stage of :mod:`tests.benchmarks.models`.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

from pipelines.services.clients.replies import FILE
from tests.benchmarks.demo import make_command
from tests.benchmarks.measured import Measured
from tests.benchmarks.models import LATENCY, call_stage
from tests.mock_openai import start_mock

ROWS = 2_000
KILLS = 10
ATTEMPTS = 40
"""Attempts a condition: enough for a run that outlives ten kills."""
FIRST_ASK = 1.5
"""Seconds that a run that goes on may take before it asks."""


def measure(scratch: Path) -> list[Measured]:
    """Kill and go on; then ask a stage again with little changed."""
    with start_mock("--latency", str(LATENCY)) as address:
        measured = _measure_kills(address, scratch / "workspace")
        first = call_stage(address, scratch, ROWS, "first")
        more = call_stage(address, scratch, ROWS + 1, "more")
        turned = call_stage(address, scratch, ROWS, "turned", "--reverse")
        other = call_stage(address, scratch, ROWS, "other", "--system", "Answer in one word.")
    return [
        *measured,
        Measured(f"requests for {ROWS:,} new rows", f"{first['calls']:,}", f"{ROWS:,}"),
        Measured("requests after one row more", f"{more['calls']:,}", "1"),
        Measured("requests after another order", f"{turned['calls']:,}", "0"),
        Measured("requests after another system prompt", f"{other['calls']:,}", f"{ROWS:,}"),
    ]


def _measure_kills(address: str, workspace: Path) -> list[Measured]:
    subprocess.run(make_command("run", "--workspace", workspace, "--until", "groundings"), check=True)
    asking = {"adapter": "openai", "name": "mock", "base_url": address}
    settings = [f"models.solver.{key}={value}" for key, value in asking.items()]
    settings += [f"difficulty.attempts={ATTEMPTS}"]
    settings.append("runtime.unscored=1.0")  # the server knows no answer and nobody judges
    more = [part for setting in settings for part in ("--set", setting)]
    command = make_command("run", "--workspace", workspace, "--until", "difficulty", *more)
    rng, waits, lost = random.Random(7), list[float](), 0
    # As for a user, modules are compiled before: the first run has done it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(KILLS):
        child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, env=environment)
        waits.append(_wait_for_ask(address, child))
        time.sleep(rng.uniform(0.02, 0.6))
        assert child.poll() is None, "the run was over before it was killed; give it more attempts"
        child.send_signal(signal.SIGKILL)
        child.wait()
        lost = _count_lost(workspace)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    counts = _read_counts(address)
    assert lost == _count_lost(workspace)
    return [
        Measured(f"requests in flight at {KILLS} kills of `synth run`, together", f"{lost:,}"),
        Measured(
            "requests that were paid for twice", f"{counts['paid_duplicates']:,} of {counts['paid']:,}", f"{lost:,}"
        ),
        Measured("from the command to the first new request, slowest of ten", f"{max(waits):.2f} s", f"{FIRST_ASK} s"),
    ]


def _wait_for_ask(address: str, child: "subprocess.Popen[bytes]") -> float:
    """Return the seconds until the server is asked for something it was not asked for before."""
    started, before = time.monotonic(), _read_counts(address)["requests"]
    while _read_counts(address)["requests"] == before:
        assert child.poll() is None, "the run ended without a request"
        time.sleep(0.01)
    return time.monotonic() - started


def _count_lost(workspace: Path) -> int:
    """Return how many requests a kill cut off so far: asks without a reply or an end."""
    with closing(sqlite3.connect(workspace / "replies" / FILE)) as store:
        (lost,) = store.execute(
            "SELECT (SELECT count(*) FROM asks WHERE backend LIKE 'openai%')"
            " - (SELECT count(*) FROM replies WHERE backend LIKE 'openai%')"
        ).fetchone()
    return int(lost)


def _read_counts(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address.removesuffix("/v1") + "/counts", timeout=10) as reply:
        found: dict[str, Any] = json.load(reply)
    return found
