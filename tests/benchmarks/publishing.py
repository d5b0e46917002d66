"""Measures the memory that publishing takes by the number of trajectories.

Questions and trajectories are the demo's again and again, each under an id and with words of its own, two trajectories
a question; pictures are shared. They are read from Parquet parts, as a run reads those of its stages. Each size is
published by a process of its own, whose peak is read at its end.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.release.publish import publish_releases
from pipelines.run.shards import ROW_GROUP, read_rows
from schemas.base import Record, RecordT, make_table
from schemas.datasets import Enhancement, ReleaseEntry, Trajectory
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT, make_command
from tests.pipelines.release.builders import make_context

SIZES = (1_000, 10_000, 50_000)
"""Trajectories by which peak memory is held to be flat."""
A_QUESTION = 2
"""Trajectories of a question."""
PART_ROWS = 256
MOST_MEGABYTES = 1_200


def read_stage(base: Path, stage: str, model: type[RecordT]) -> Iterator[RecordT]:
    """Yield the rows of the one run of a stage in a workspace."""
    for part in sorted((base / "stages" / stage).glob("*/part-*.parquet")):
        yield from read_rows(part, model)


def prepare(base: Path, folder: Path, size: int) -> None:
    """Write so many trajectories, and what they belong to, as parts of stages."""
    questions = {row.record_id: row for row in read_stage(base, "selections", Enhancement)}
    known = list(read_stage(base, "trajectories", Trajectory))
    (folder / "images").symlink_to(base / "images")
    for start in range(0, size, PART_ROWS):
        asked, solved, entries = list[Record](), list[Record](), list[Record]()
        for number in range(start, min(start + PART_ROWS, size), A_QUESTION):
            some = known[number % len(known)]
            question = _renumber(questions[some.parent_id], number)
            asked.append(question)
            entries.append(_make_entry(question.record_id, ""))
            for own in range(A_QUESTION):
                name = f"rollout-{number + own:016}"
                changes = {"record_id": name, "parent_id": question.record_id, "attempt": own}
                solved.append(some.model_copy(update=changes))
                entries.append(_make_entry(question.record_id, name))
        for stage, rows in (("selections", asked), ("trajectories", solved), ("releases", entries)):
            place = folder / "stages" / stage / "key" / f"part-{start:07}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(make_table(type(rows[0]), rows, "key"), place, compression="zstd", row_group_size=ROW_GROUP)


def _renumber(question: Enhancement, number: int) -> Enhancement:
    text = f"{question.text} (Question {number}.)"
    return question.model_copy(update={"record_id": f"question-{number:016}", "split": "sft", "text": text})


def _make_entry(question: str, trajectory: str) -> ReleaseEntry:
    return ReleaseEntry(
        record_id=f"entry-{trajectory or question}",
        parent_id=question,
        dataset="sft" if trajectory else "vqa",
        split="train",
        trajectory_id=trajectory,
    )


def publish(base: Path, folder: Path) -> dict[str, Any]:
    """Publish what was prepared in this process, and say what it took."""
    corpus = json.loads(next((base / "corpus").glob("*/manifest.json")).read_bytes())
    context = make_context(base_url=corpus["base_url"])
    stages = (("selections", Enhancement), ("trajectories", Trajectory), ("releases", ReleaseEntry))
    started = time.perf_counter()
    questions, trajectories, entries = (read_stage(folder, name, model) for name, model in stages)
    published = publish_releases(folder, questions, trajectories, entries, context)
    rows = {release.dataset: release.rows for release in published}
    return {"seconds": time.perf_counter() - started, "peak": read_peak(), "rows": rows}


def call(action: str, base: Path, folder: Path, size: int) -> dict[str, Any]:
    """Prepare or publish in a process of its own."""
    module = [sys.executable, "-m", "tests.benchmarks.publishing"]
    done = subprocess.run(
        [*module, action, str(base), str(folder), str(size)], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(scratch: Path) -> list[Measured]:
    """Publish growing numbers of trajectories."""
    base, peaks = scratch / "base", dict[int, float]()
    run = make_command("run", "--workspace", base, "--until", "trajectories")
    subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for size in SIZES:
        folder = scratch / str(size)
        folder.mkdir()
        call("prepare", base, folder, size)
        peaks[size] = call("publish", base, folder, size)["peak"]
    return tell_peaks(peaks)


def tell_peaks(peaks: Mapping[int, float]) -> list[Measured]:
    """Return the rows about memory."""
    budget = f"{MOST_MEGABYTES:,} MB"
    return [Measured(f"peak memory, {size:,} trajectories", f"{peak:,.0f} MB", budget) for size, peak in peaks.items()]


def main() -> None:
    """Do what the command line says and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("prepare", "publish"))
    parser.add_argument("base", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("size", type=int)
    order = parser.parse_args()
    told: dict[str, Any] = {}
    if order.action == "prepare":
        prepare(order.base, order.folder, order.size)
    else:
        told = publish(order.base, order.folder)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
