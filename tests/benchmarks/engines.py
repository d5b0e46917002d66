"""Measures what Prefect adds to a run: the same loop by the command's executor and by the flow's, a server up.

A stage whose rows wait lognormal times (median 0.5 s, sigma 1) in 12 shards of 256; the demo of 32 shards, both begun
with the same sealed seeds; and 10,000 shards, for the task runs that they make. Each measurement is a process of its
own. ``python -m tests.benchmarks.engines FOLDER --scale 0.1`` shortens the waits and the demo.
"""

import argparse
import asyncio
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.cli.commands import load_config
from pipelines.run.chains import run_stages
from pipelines.run.executors import Executor
from pipelines.run.executors import run_here as run_locally
from pipelines.run.loop import RunRequest, run_request
from pipelines.run.progress import Reporter
from pipelines.run.runner import PlannedStage, run_source_stage
from pipelines.run.shards import Origin, seal_stage
from pipelines.run.workers import WorkerSpec
from pipelines.run.workspace import StageFolder
from schemas.datasets import Seed
from tests.benchmarks.measured import Measured
from tests.chaos.driving import ROOT, list_settings, make_command
from tests.pipelines.run.test_chains import CORPUS, Step
from tests.pipelines.run.test_runner import make_seed

SHARDS, SHARD_ROWS = 12, 256
MEDIAN, SIGMA = 0.5, 1.0
MANY, MOST_RUNS = 10_000, 500
SETTINGS = ("corpus.generate.entities=1500", "runtime.shard_rows=8", "groundings.min_answers=2", "seed=9")
SEEDS = 256
"""Of a demo of 32 shards."""
WANTED = {"waiting": 1.1, "demo": 1.15}
"""Most time of the flow, as a multiple of the command's."""


@dataclass
class Numbered(Step):
    """Seeds, as many as are wanted."""

    rows: int = 0

    def count_candidates(self) -> int:
        """All of them."""
        return self.rows

    def __call__(self) -> Iterator[Seed]:  # type: ignore[override]
        """Yield them."""
        yield from map(make_seed, range(self.rows))


@dataclass
class Waiting(Step):
    """A stage that waits for each row as for a model, as long in every run."""

    median: float = MEDIAN

    async def __call__(self, record: Seed) -> Sequence[Seed]:
        """Wait, and keep the row."""
        await asyncio.sleep(self.median * random.Random(record.record_id).lognormvariate(0.0, SIGMA))
        return (record,)


def run_waiting(place: Path, executor: Executor, shards: int, shard_rows: int, median: float) -> None:
    """Run the stage that waits over so many shards."""
    source = Numbered("seeds", rows=shards * shard_rows)
    folder = StageFolder(place / "stages" / "seeds" / "key")
    seal_stage(source, folder, run_source_stage(source, folder, shard_rows), Origin((), "", ""))
    pages = PlannedStage(source, "key", folder, (), "")
    place = StageFolder(place / "stages" / "paths" / "key").path
    waits = PlannedStage(Waiting("paths", median=median), "key", StageFolder(place), (pages,), "", in_flight=SHARD_ROWS)
    with executor(WorkerSpec(load_config("demo", None, ()), place, "", CORPUS)) as run_chain:
        run_stages([pages, waits], CORPUS, shard_rows, Reporter(), lambda _: None, run_chain)


def work(what: str, place: Path, scale: float) -> Callable[[Executor], None]:
    """Return what is measured, for an executor."""
    if what == "waiting":
        return lambda executor: run_waiting(place, executor, SHARDS, SHARD_ROWS, MEDIAN * scale)
    if what == "many":
        return lambda executor: run_waiting(place, executor, math.ceil(MANY * scale), 1, 0.0)
    config = load_config("demo", None, [*SETTINGS, f"seeds.limit={math.ceil(SEEDS * scale)}"])
    return lambda executor: run_request(RunRequest(config, place), Reporter(), executor) and None


def run_here(what: str, place: Path, engine: str, scale: float) -> dict[str, float]:
    """Do it in this process, as the command does or within a flow run, and say how long it took, imports aside."""
    act = work(what, place, scale)
    if engine == "command":
        started = time.monotonic()
        act(run_locally)
        return {"seconds": time.monotonic() - started}
    from prefect import flow
    from prefect.runtime import flow_run

    from flows.synthesize import choose_executor

    @flow(name=f"benchmark-{what}")
    def measured() -> str:
        act(choose_executor(load_config("demo", None, ())))
        return str(flow_run.id)

    started = time.monotonic()
    run = measured()
    return {"seconds": time.monotonic() - started, "runs": count_task_runs(run)}


def count_task_runs(run: str) -> int:
    """Return how many task runs of a flow run the server has noted, once no more come."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    wanted, counts = FlowRunFilter(id=FlowRunFilterId(any_=[run])), [-1, -2]
    with get_client(sync_client=True) as client:
        while counts[-1] != counts[-2]:
            time.sleep(3.0)
            counts.append(len(client.read_task_runs(flow_run_filter=wanted, limit=200)))
    return counts[-1]


@contextmanager
def serving_prefect(home: Path) -> Iterator[dict[str, str]]:
    """Run a Prefect server with a database of its own, and yield the environment that finds it."""
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1", "PREFECT_LOGGING_LEVEL": "WARNING"}
    os.environ.update({**quiet, "PREFECT_HOME": str(home)})
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield {**quiet, "PREFECT_HOME": str(home), "PREFECT_API_URL": str(PREFECT_API_URL.value())}


def measure(scratch: Path, scale: float = 1.0) -> list[Measured]:
    """Measure the command and the flow in turn, twice each, and take the better of two."""
    base = scratch / "base"
    settings = [*SETTINGS, f"seeds.limit={math.ceil(SEEDS * scale)}"]
    command = make_command("run", "--workspace", base, "--until", "seeds", *list_settings(settings))
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    with serving_prefect(scratch / "prefect") as environment:
        for turn, what, engine in ((t, w, e) for t in range(2) for w in WANTED for e in ("command", "flow")):
            place = scratch / f"{what}-{engine}-{turn}"
            if what == "demo":
                shutil.copytree(base, place)
            found.setdefault((what, engine), []).append(call_run(what, place, engine, scale, environment))
        many = call_run("many", scratch / "many", "flow", scale, environment)
    rows = [_compare(what, found[what, "command"], found[what, "flow"]) for what in WANTED]
    shards = math.ceil(MANY * scale)
    return [*rows, Measured(f"task runs of {shards:,} shards", f"{many['runs']:,.0f}", f"{MOST_RUNS}")]


def _compare(what: str, command: Sequence[dict[str, float]], flow: Sequence[dict[str, float]]) -> Measured:
    alone, within = (min(each["seconds"] for each in times) for times in (command, flow))
    told = f"{within / alone:.2f} of {alone:.1f} s, {flow[0]['runs']:.0f} task runs"
    return Measured(f"{what}: the flow over the command", told, f"{WANTED[what]}")


def call_run(what: str, place: Path, engine: str, scale: float, environment: dict[str, str]) -> dict[str, float]:
    """Run it in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.engines", str(place), "--scale", str(scale)]
    command += ["--what", what, "--engine", engine]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True)
    said: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return said


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one thing, or all of them, and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--what", choices=["waiting", "demo", "many"])
    parser.add_argument("--engine", choices=["command", "flow"], default="command")
    parser.add_argument("--scale", type=float, default=1.0)
    told = parser.parse_args(arguments)
    said: Any = None
    if told.what:
        said = run_here(told.what, told.folder, told.engine, told.scale)
    else:
        said = [[row.what, row.value, row.budget] for row in measure(told.folder, told.scale)]
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
