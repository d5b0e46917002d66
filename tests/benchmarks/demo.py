"""Measures what a user of the demo waits for."""

import asyncio
import bz2
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.store import Corpus
from pipelines.run.assembly import Assembly
from pipelines.run.shards import read_parts
from pipelines.run.stage import RecordStage
from pipelines.run.workspace import Workspace
from pipelines.services.clients.replies import open_replies
from schemas.datasets import Seed
from tests.benchmarks.measured import Measured
from tests.chaos.driving import ROOT, make_command, make_environment

ENTITIES = 2000
REPLIES = 5000
REPEATS = 10


@dataclass(frozen=True, slots=True)
class Timed:
    """How a command ran: seconds of wall time, peak resident MB of the process, and its output."""

    seconds: float
    megabytes: float
    out: str


def time_command(*arguments: object) -> Timed:
    """Run a synth command that must succeed."""
    started = time.monotonic()
    child = subprocess.Popen(
        make_command(*arguments), cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{arguments}: exit {child.returncode}")
    return Timed(time.monotonic() - started, usage.ru_maxrss / 1024, out)


def measure_help() -> list[Measured]:
    """Measure how soon help appears, bytecode being compiled before."""
    times = [time_command("--help").seconds for _ in range(REPEATS)]
    return [Measured("`synth --help`, median of 10", f"{statistics.median(times):.2f} s", "0.3 s")]


def measure_demo(workspace: Path) -> list[Measured]:
    """Measure the demo, its stages and a second run of it."""
    run = ("run", "--workspace", workspace, "--set", f"corpus.generate.entities={ENTITIES}", "--json")
    first, second = time_command(*run), time_command(*run)
    document = json.loads(first.out)
    stages = {stage["stage"]: stage for stage in document["stages"]}
    rows = sum(release["rows"] for release in document["releases"])
    measured = [
        Measured(f"demo, {ENTITIES:,} entities, {rows:,} released rows", f"{first.seconds:.1f} s", "60 s"),
        Measured("demo, peak resident memory", f"{first.megabytes:,.0f} MB"),
        Measured("second run of the complete demo", f"{second.seconds:.2f} s", "3 s"),
    ]
    return measured + [
        Measured(f"stage {name}: {stage['rows_in']:,} rows in, {stage['calls']:,} calls", f"{stage['seconds']:.1f} s")
        for name, stage in stages.items()
    ]


def measure_corpus(workspace: Path, scratch: Path) -> list[Measured]:
    """Measure the corpus of the demo's world alone, built elsewhere; the demo's own seconds hold the world too."""
    dump = next(workspace.glob("worlds/*/*-multistream.xml.bz2"))
    run = ("run", "--workspace", scratch, "--set", f"corpus.dump={dump}", "--until", "corpus", "--json")
    (stage,) = json.loads(time_command(*run).out)["stages"]
    with bz2.open(dump) as stream:
        size = sum(len(chunk) for chunk in iter(lambda: stream.read(1 << 20), b""))
    return [
        Measured(f"corpus, {stage['rows_in']:,} pages", f"{stage['rows_in'] / stage['seconds']:,.0f} pages/s"),
        Measured(f"corpus, {size / 1e6:.1f} MB of XML", f"{size / 1e6 / stage['seconds']:.2f} MB/s"),
    ]


def measure_walks(workspace: Path) -> list[Measured]:
    """Measure walks drawn from every seed in this process, the graph being open."""
    config = make_config(read_recipe("demo"), [f"corpus.generate.entities={ENTITIES}"])
    space = Workspace(workspace)
    latest = space.read_latest()
    corpus = Corpus.open(space.corpora / latest["corpus"])
    paths = Assembly(config, space, corpus).build_stage("paths")
    assert isinstance(paths, RecordStage)
    seeds = list(read_parts(space.stage("seeds", latest["seeds"]), Seed))

    async def walk() -> None:
        for seed in seeds:
            await paths(seed)

    def walk_all() -> None:
        asyncio.run(walk())

    walk_all()
    seconds = time_call(walk_all)
    corpus.close()
    return [Measured(f"paths, from {len(seeds):,} seeds", f"{len(seeds) / seconds:,.0f} seeds/s")]


def measure_verify(workspace: Path) -> list[Measured]:
    """Measure the verification of all releases, start-up included."""
    timed = time_command("verify", "--workspace", workspace)
    rows = int(timed.out.splitlines()[-1].partition("/")[2])
    return [Measured(f"verify {rows:,} rows", f"{timed.seconds:.1f} s, {rows / timed.seconds:,.0f} rows/s")]


def measure_replies(folder: Path) -> list[Measured]:
    """Measure the reply store: asked and recorded replies of 1 kB, and reading them back."""
    store = open_replies(folder)

    async def answer() -> str:
        return "x" * 1000

    def recall_all() -> None:
        async def recall() -> None:
            for number in range(REPLIES):
                await store.recall(f"{number:064x}", "bench", answer)

        asyncio.run(recall())

    rates = [REPLIES / time_call(recall_all) for _ in range(2)]
    store.close()
    return [
        Measured("reply store, recorded", f"{rates[0]:,.0f} replies/s"),
        Measured("reply store, read back", f"{rates[1]:,.0f} replies/s"),
    ]


def time_call(call: Callable[[], None]) -> float:
    """Return the seconds a call takes."""
    started = time.monotonic()
    call()
    return time.monotonic() - started


def measure(scratch: Path) -> list[Measured]:
    """Measure what a user of the demo waits for."""
    work = scratch / "work"
    measured = [*measure_help(), *measure_demo(work), *measure_corpus(work, scratch / "corpus")]
    return [*measured, *measure_walks(work), *measure_verify(work), *measure_replies(scratch / "replies")]
