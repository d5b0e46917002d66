"""Measures the memory and the time that the stage ``trajectories`` takes by the number of rollouts, each of 80 KB.

The rollouts are one of a scripted teacher again and again, each under an id of its own and with pages of its own, as
long as real ones. They are sealed in shards, as the stage before leaves them. Each size is run by a process of its own,
whose peak is read at its end; ``python -m tests.benchmarks.trajectories FOLDER 2000`` runs one.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from pipelines.agent.loop import run_rollout
from pipelines.config.settings import RuntimeConfig
from pipelines.run.chains import run_stages
from pipelines.run.progress import Reporter
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import Origin, ShardInput, ShardRows, seal_stage, write_shard
from pipelines.run.workspace import StageFolder
from pipelines.stages.rollouts import Rollouts, make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import ScriptedTeacher
from schemas.datasets import Rollout, Step
from schemas.manifest import InputEntry
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT
from tests.pipelines.agent.trail import make_agent, make_picture, make_question, make_tools

SIZES = (10_000, 100_000)
"""Rollouts by which peak memory is held to be flat."""
CHARACTERS = 80_000
"""Of the texts of a rollout."""
BANK = 4_000_000
"""Characters of words that pages are cut from."""
MOST_MEGABYTES = 1_000
RUNTIME = RuntimeConfig()
CORPUS = InputEntry(name="corpus", key="corpus", digest="")


def write_rollouts(folder: Path, size: int) -> None:
    """Write so many rollouts as the sealed shards of their stage."""
    agent, question = make_agent(ScriptedTeacher("teacher"), make_tools(folder)), make_question(make_picture(folder))
    known = asyncio.run(run_rollout(agent, question, make_oracle(question, 0)))
    stage, out, bank = Rollouts(agent), find_folder(folder, "rollouts"), make_bank()
    starts = range(0, size, RUNTIME.shard_rows)
    for shard, start in enumerate(starts):
        kept = [vary(known, number, bank) for number in range(start, min(start + RUNTIME.shard_rows, size))]
        ids = tuple(row.parent_id for row in kept)
        write_shard(stage, out, shard, ShardInput(ids, ids), ShardRows(list(kept)))
    seal_stage(stage, out, len(starts), Origin((), "", ""))


def find_folder(folder: Path, stage: str) -> StageFolder:
    """Return the folder of a stage."""
    return StageFolder(folder / "stages" / stage / "key")


def make_bank() -> str:
    """Return words drawn by Zipf's law."""
    draws = Random(1)
    words = ["".join(draws.choices("aeilnorst", k=draws.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (1 + rank) for rank in range(len(words))]
    return " ".join(draws.choices(words, weights, k=BANK // 4))[:BANK]


def vary(known: Rollout, number: int, bank: str) -> Rollout:
    """Return a rollout under an id of its own, whose pages go on with words of their own."""
    seen = [index for index, step in enumerate(known.steps) if step.observation is not None]
    length = (CHARACTERS - len(known.system)) // len(seen)
    steps = list(known.steps)
    for place, index in enumerate(seen):
        start = (number * len(seen) + place) * 7_919 % (BANK - length)
        steps[index] = _lengthen(steps[index], bank[start : start + length])
    names = {"record_id": f"rollout-{number:016}", "parent_id": f"question-{number:016}"}
    return known.model_copy(update={**names, "steps": tuple(steps)})


def _lengthen(step: Step, text: str) -> Step:
    assert step.observation is not None
    longer = step.observation.model_copy(update={"text": f"{step.observation.text}\n\n{text}."})
    return step.model_copy(update={"observation": longer})


def run(folder: Path) -> dict[str, Any]:
    """Run the stage over what was written, in this process, and say what it took."""
    before = PlannedStage(Rollouts(make_agent(ScriptedTeacher("teacher"), make_tools(folder))), "key", *_place(folder))
    out = find_folder(folder, "trajectories")
    plan = PlannedStage(Trajectories(), "key", out, (before,), "", in_flight=RUNTIME.concurrency)
    started, spent = time.perf_counter(), time.process_time()
    (report,) = run_stages([plan], CORPUS, RUNTIME.shard_rows, Reporter())
    seconds, processor = time.perf_counter() - started, time.process_time() - spent
    return {"seconds": seconds, "processor": processor, "peak": read_peak(), "kept": report.kept}


def _place(folder: Path) -> tuple[StageFolder, tuple[PlannedStage, ...], str]:
    return find_folder(folder, "rollouts"), (), ""


def call(action: str, folder: Path, size: int) -> dict[str, Any]:
    """Write or run in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.trajectories", str(folder), str(size), "--only", action]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(scratch: Path, sizes: Sequence[int] = SIZES) -> list[Measured]:
    """Run growing numbers of rollouts; those of a size are removed before the next are written."""
    told = {}
    for size in sizes:
        folder = scratch / str(size)
        call("write", folder, size)
        told[size] = call("run", folder, size)
        shutil.rmtree(folder)
    return tell(told)


def tell(told: Mapping[int, Mapping[str, Any]]) -> list[Measured]:
    """Return the rows of the table."""
    small, large = min(told), max(told)
    rows, spent = list[Measured](), dict[int, float]()
    for size, found in told.items():
        what, spent[size] = f"{size:,} rollouts of {CHARACTERS // 1000} KB", 1000 * found["processor"] / size
        rows.append(Measured(f"peak memory, {what}", f"{found['peak']:,.0f} MB", f"{MOST_MEGABYTES:,} MB"))
        seconds = f"{spent[size]:.1f} ms a rollout, {found['seconds']:,.0f} s by the wall"
        rows.append(Measured(f"processor time, {what}, {found['kept']:,} kept", seconds))
    growth = told[large]["peak"] / told[small]["peak"]
    sizes = f"{large:,} over {small:,}"
    return [
        *rows,
        Measured(f"peak memory, {sizes}", f"{growth:.2f}", "1.2"),
        Measured(f"processor time a rollout, {sizes}", f"{spent[large] / spent[small]:.2f}", "1.2"),
    ]


def main() -> None:
    """Do what the command line says and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", type=int)
    parser.add_argument("--only", choices=("write", "run"))
    order = parser.parse_args()
    if order.only != "run":
        write_rollouts(order.folder, order.size)
    told = {} if order.only == "write" else run(order.folder)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
