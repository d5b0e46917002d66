"""Measures batch mode against a strict mock server: kill -9 at four moments, failed lines, an expired batch.

A process of its own runs a whole record stage as ``synth run`` would (:mod:`tests.benchmarks.models`), with the writer
in batch mode; the server (:mod:`tests.mock_batches`) counts what was paid.
"""

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

from pipelines.config.loading import make_config, read_recipe
from pipelines.ids import digest_value
from pipelines.run.models import Roles, count_in_flight
from pipelines.run.progress import make_reporter
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.clients.batch import Pace
from pipelines.services.clients.replies import FILE
from pipelines.services.prompting import Prompt, RoleClient
from schemas.manifest import Usage
from tests.benchmarks.measured import Measured, read_peak
from tests.benchmarks.models import SHARD_ROWS, Answers, write_wanted
from tests.benchmarks.peers.prompts import SYSTEM
from tests.mock_batches import start_batches
from tests.mock_openai import ROOT
from tests.record_shards import run_record_shards

ROWS = 5_000
BATCH_ROWS = 1_000
PLAN = {"failed": 0.02, "seed": 7, "expired": [1]}
"""2 % of the lines fail at each try, and one batch expires with half of its lines answered."""
MOMENTS: tuple[tuple[str, dict[str, float], str, int], ...] = (
    ("before a batch is created", {"before": 5.0}, "files", 2),
    ("after that, before its creator knows", {"after": 1.0}, "batches", 2),
    ("while it is waited for", {}, "looks", 8),
    ("while its replies are read", {"reading": 0.3}, "contents", 2),
)
"""What the server is told, and the count whose growth by a number says that the moment has come."""
PRICE = 1e6
"""Of a million tokens; at half of it a request of the mock's 18 tokens costs 9."""
PROMPT = Prompt("answer/v1", digest_value(SYSTEM), ("text",), SYSTEM, "{{ text }}")


@dataclass(frozen=True, slots=True)
class Job:
    """A stage whose writer is asked in batches."""

    url: str
    scratch: Path
    rows: int
    batch_rows: int

    def start(self) -> "subprocess.Popen[bytes]":
        """Run it in a process of its own."""
        command = [sys.executable, "-m", "tests.benchmarks.batches", self.url, str(self.scratch)]
        command += [str(self.rows), str(self.batch_rows)]
        log = (self.scratch / "log").open("ab")
        with log:
            return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=log, stderr=log)

    def kill_when(self, reached: Callable[[dict[str, int]], bool]) -> None:
        """Run it until the server's counts have reached something, and kill it."""
        child = self.start()
        while not reached(self.read_counts()):
            assert child.poll() is None, (
                f"it was over before it was killed: {(self.scratch / 'log').read_text()[-2000:]}"
            )
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()

    def finish(self) -> None:
        """Run it to its end."""
        assert self.start().wait(timeout=120) == 0, (self.scratch / "log").read_text()[-2000:]

    def read_counts(self) -> dict[str, int]:
        """Return what the server was asked for."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/counts", timeout=30) as reply:
            found: dict[str, int] = json.load(reply)
        return found

    def plan(self, **plan: object) -> None:
        """Tell the server what goes wrong from now on."""
        data = json.dumps(plan).encode()
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/plan", data, timeout=30) as reply:
            assert reply.status == 200

    @property
    def answers(self) -> StageFolder:
        """The stage's folder."""
        return StageFolder(self.scratch / "answers")

    def count_rows(self) -> tuple[int, int]:
        """Return how many rows were kept and how many failed."""
        sidecars = [self.answers.read_sidecar(shard) for shard in range(-(-self.rows // SHARD_ROWS))]
        return sum(each.kept for each in sidecars if each), sum(each.failed for each in sidecars if each)

    def read_usage(self) -> Usage:
        """Return what the shards used."""
        sidecars = [self.answers.read_sidecar(shard) for shard in range(-(-self.rows // SHARD_ROWS))]
        return reduce(add, (each.usage for each in sidecars if each), Usage())


def work(job: Job) -> None:
    """Run the stage in this process."""
    if not (job.scratch / "wanted").is_dir():
        write_wanted(job.scratch / "wanted", job.rows)
    writer = {"adapter": "openai", "name": "mock", "revision": "r1", "base_url": job.url, "mode": "batch"}
    writer |= {"prices.input": PRICE, "prices.output": PRICE}
    settings = [f"models.writer.{key}={value}" for key, value in writer.items()]
    config = make_config(read_recipe("demo"), [*settings, "runtime.concurrency=64"])
    reporter, pace = make_reporter(), Pace(rows=job.batch_rows, wait=0.3, poll=0.2)
    with closing(Roles(config, Workspace(job.scratch / "workspace"), reporter.note, pace=pace)) as roles:
        stage = Answers(RoleClient(roles.find_model("writer"), PROMPT))
        missing = [n for n in range(-(-job.rows // SHARD_ROWS)) if job.answers.read_sidecar(n) is None]
        sources = [(n, StageFolder(job.scratch / "wanted").part(n)) for n in missing]
        reporter.begin("answers", job.rows, "rows")
        run_record_shards(stage, job.answers, sources, count_in_flight(config, stage), reporter)
    sys.stdout.write(f"peak {read_peak():.0f} MB\n")


def measure(scratch: Path) -> list[Measured]:
    """Run once without a kill, then with one before and after a batch is created, while polling and while reading."""
    measured = []
    with start_batches(2.0, **PLAN) as url:
        (scratch / "whole").mkdir()
        job, started = Job(url, scratch / "whole", ROWS, BATCH_ROWS), time.monotonic()
        job.finish()
        measured += describe("no kill", job, time.monotonic() - started)
        peak = (job.scratch / "log").read_text().rpartition("peak ")[2].strip()
        measured.append(Measured("no kill: peak memory", peak))
    with start_batches(2.0, **PLAN) as url:
        (scratch / "killed").mkdir()
        job, started = Job(url, scratch / "killed", ROWS, BATCH_ROWS), time.monotonic()
        for moment, plan, wanted, more in MOMENTS:
            job.plan(**PLAN, **plan)
            before = job.read_counts()
            job.kill_when(lambda counts, wanted=wanted, least=before[wanted] + more: counts[wanted] >= least)
            counts = job.read_counts()
            found = f"{counts['batches']:,}, {counts['paid']:,}, {count_replies(job):,}"
            measured.append(Measured(f"killed {moment}: batches, lines paid, replies recorded by then", found))
        job.finish()
        measured += describe("kills at four moments", job, time.monotonic() - started)
    return measured


def count_replies(job: Job) -> int:
    """Return how many replies are recorded."""
    with closing(sqlite3.connect(job.scratch / "workspace" / "replies" / FILE)) as store:
        (replies,) = store.execute("SELECT count(*) FROM replies").fetchone()
    return int(replies)


def describe(what: str, job: Job, seconds: float) -> list[Measured]:
    """Return what a run took; nothing may be lost, and nothing paid twice."""
    counts, usage = job.read_counts(), job.read_usage()
    kept, failed = job.count_rows()
    assert (kept, failed) == (job.rows, 0), (kept, failed)
    assert counts["paid"] == job.rows, counts
    assert counts["paid_duplicates"] == 0, counts
    asked = ", ".join(f"{counts[name]:,}" for name in ("files", "batches", "looks", "contents"))
    paid = f"{counts['paid']:,}, {counts['paid_duplicates']}, {job.rows - kept}"
    used = f"{usage.calls:,}, {usage.cached_calls:,}, {usage.cost:,.0f}"
    return [
        Measured(f"{what}: {job.rows:,} rows", f"{seconds:.1f} s"),
        Measured(f"{what}: files, batches, looks, contents", asked),
        Measured(f"{what}: lines paid, paid twice, rows lost", paid, f"{job.rows:,}, 0, 0"),
        Measured(f"{what}: calls, from the recording, cost of the calls", used),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.batches")
    parser.add_argument("url")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("rows", type=int)
    parser.add_argument("batch_rows", type=int)
    given = parser.parse_args()
    work(Job(given.url, given.scratch, given.rows, given.batch_rows))
