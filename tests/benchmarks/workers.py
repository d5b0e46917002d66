"""Measures what a second process saves: a stage that computes, and one that waits for a slow model.

``groundings`` of a world of so many entities, and ``difficulty`` with a solver of two seconds; each is run by one
process, ``runtime.engine = local``, and by two, ``processes``, from the same sealed input. What is timed is the whole
command. ``python -m tests.benchmarks.workers FOLDER 600`` takes another world.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.measured import Measured
from tests.chaos.driving import ROOT, digest_files, list_settings, make_command
from tests.mock_openai import start_mock

ENTITIES = 8_000
WORKERS = 2
SEEDS_AN_ENTITY = 0.5
"""More than there are: every eligible article is a seed."""
LATENCY, IN_FLIGHT, ATTEMPTS = 2.0, 256, 8
COMPUTED, WAITED = 0.6, 0.55
"""Wanted share of the time of one process."""
SETTINGS = ("runtime.shard_rows=64", "seed=9", "groundings.min_answers=2")
ENGINES = {1: ("runtime.engine=local",), WORKERS: ("runtime.engine=processes", f"runtime.workers={WORKERS}")}


def list_solver(address: str) -> list[str]:
    """Return the settings of a solver behind an address, all of whose answers are unscored."""
    solver = {"adapter": "openai", "name": "mock", "base_url": address, "concurrency": IN_FLIGHT}
    rules = ["runtime.unscored=1.0", "difficulty.probe_attempts=0", f"difficulty.attempts={ATTEMPTS}"]
    return [*rules, *(f"models.solver.{key}={value}" for key, value in solver.items())]


def run(workspace: Path, until: str, settings: Sequence[str]) -> tuple[float, dict[str, Any]]:
    """Run to a stage; return the seconds that the command took, and what it says of that stage."""
    command = make_command("run", "--workspace", workspace, "--until", until, "--json", *list_settings(settings))
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - started
    (stage,) = (each for each in json.loads(done.stdout)["stages"] if each["stage"] == until)
    return seconds, stage


def compare(base: Path, until: str, settings: Sequence[str]) -> tuple[list[float], dict[str, Any], int]:
    """Run a stage from one input by each engine.

    Returns:
        The seconds of each, what the first says of the stage, and how many of its files differ.
    """
    spent, told, made = [], list[dict[str, Any]](), list[dict[str, str]]()
    for count, engine in ENGINES.items():
        place = base.with_name(f"{until}-{count}")
        shutil.copytree(base, place)
        seconds, stage = run(place, until, [*settings, *engine])
        spent.append(seconds)
        told.append(stage)
        made.append(digest_files(place, f"stages/{until}/*/*.parquet"))
    return spent, told[0], sum(made[0].get(name) != made[1].get(name) for name in made[0].keys() | made[1].keys())


def measure(scratch: Path, entities: int = ENTITIES) -> list[Measured]:
    """Run both stages by one process and by two."""
    base = scratch / "base"
    world = [*SETTINGS, f"corpus.generate.entities={entities}", f"seeds.limit={int(SEEDS_AN_ENTITY * entities)}"]
    run(base, "rewrites", world)
    computed = compare(base, "groundings", world)
    with start_mock("--latency", str(LATENCY)) as address:
        waited = compare(scratch / "groundings-1", "difficulty", [*world, *list_solver(address)])
        with urllib.request.urlopen(address.removesuffix("/v1") + "/counts", timeout=30) as reply:
            counts = json.load(reply)
    asked = f"{counts['requests'] // len(ENGINES):,} requests of {LATENCY:g} s, {IN_FLIGHT} in flight a process"
    return [
        *tell(f"groundings of {computed[1]['rows_in']:,} rows, {entities:,} entities", computed, COMPUTED),
        *tell(f"difficulty of {waited[1]['rows_in']:,} rows, {asked}", waited, WAITED),
        Measured("most requests in flight", f"{counts['most_in_flight']}", f"{WORKERS * IN_FLIGHT}"),
    ]


def tell(what: str, found: tuple[list[float], dict[str, Any], int], most: float) -> list[Measured]:
    """Return the rows of a stage."""
    (one, two), _, differing = found
    return [
        Measured(f"{what}: one process, and {WORKERS}", f"{one:.1f} and {two:.1f} s"),
        Measured(f"{WORKERS} processes over one", f"{two / one:.2f}", f"{most}"),
        Measured("files of theirs that differ", f"{differing}", "0"),
    ]


def main() -> None:
    """Measure a world of the size given and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=Path)
    parser.add_argument("entities", type=int)
    order = parser.parse_args()
    for entry in measure(order.scratch, order.entities):
        sys.stdout.write(f"| {entry.what} | {entry.value} | {entry.budget} |\n")


if __name__ == "__main__":
    main()
