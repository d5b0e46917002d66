"""Measures rollouts at scale: 500 in flight against a teacher behind HTTP, each of some turns with real tools.

The questions, the corpus, its searches and the pictures are the demo's; pages are padded to the length at which real
ones are cut. The teacher is :mod:`tests.mock_teacher`, which answers after 50 to 200 ms and counts what it was asked.
"""

import argparse
import asyncio
import cProfile
import json
import pstats
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq

from pipelines.cli.commands import load_config
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.run.assembly import Assembly
from pipelines.run.shards import read_rows
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.clients.replies import FILE
from pipelines.services.protocols import PageReader, PageText
from pipelines.stages.rollouts import Rollouts
from schemas.base import make_table
from schemas.datasets import Enhancement, Split
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT, make_command
from tests.mock_teacher import Manner, start_teacher
from tests.record_shards import run_record_shards

ATTEMPTS = 5
SPLITS = get_args(Split)
"""All: the questions are those of the demo, whatever they are released as."""
IN_FLIGHT = 500
SHARD_ROWS = 32
PAGE_LENGTH = 12_000
TURNS = Manner().calls + 1
SLOW = Manner(fastest=1.0, slowest=3.0)
"""A teacher as slow as a large model is."""
SHORT = Manner(calls=3)
"""A teacher that is soon done, for numbers of rollouts."""
SIZES = (500, 2_000, 8_000)
"""Rollouts by which peak memory is held to be flat."""
KILLS = 3
MODULES = 12
"""Rows of that break-down."""


@dataclass(frozen=True, slots=True)
class PaddedPages:
    """Pages as long as real ones: those of the demo's world are short."""

    reader: PageReader
    identity: str = "padded"

    async def read_page(self, url: str) -> PageText:
        """Return the page, followed by its own text until it is long."""
        page = await self.reader.read_page(url)
        text = page.text or page.title
        return replace(page, text=(f"{text}\n\n" * (PAGE_LENGTH // (len(text) + 2) + 1))[:PAGE_LENGTH])


@dataclass(slots=True)
class Stalls:
    """How long single callbacks kept the event loop: by the wall, and by the processor alone."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Time every callback of every loop inside."""
        plain = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            wall, processor = time.perf_counter(), time.thread_time()
            plain(handle)
            self.wall.append(time.perf_counter() - wall)
            self.processor.append(time.thread_time() - processor)

        asyncio.Handle._run = timed  # type: ignore[assignment,method-assign]
        try:
            yield
        finally:
            asyncio.Handle._run = plain  # type: ignore[method-assign]


def make_run_config(address: str) -> RunConfig:
    """Return the demo's configuration with a teacher behind an address."""
    teacher = {"adapter": "openai", "name": "mock", "base_url": address, "concurrency": 2 * IN_FLIGHT}
    settings = [f"models.teacher.{key}={value}" for key, value in teacher.items()]
    return load_config("demo", None, settings)


def write_questions(base: Path, folder: Path, count: int) -> list[Path]:
    """Write so many questions as parts of a stage: those of the demo again and again, each under its own id."""
    (source,) = (base / "stages" / "selections").iterdir()
    known = [row for part in sorted(source.glob("part-*.parquet")) for row in read_rows(part, Enhancement)]
    folder.mkdir()
    parts = []
    for start in range(0, count, SHARD_ROWS):
        numbers = range(start, min(start + SHARD_ROWS, count))
        rows = [_renumber(known[number % len(known)], number) for number in numbers]
        parts.append(folder / f"part-{start:07}.parquet")
        pq.write_table(make_table(Enhancement, rows, "key"), parts[-1])
    return parts


def _renumber(question: Enhancement, number: int) -> Enhancement:
    return question.model_copy(
        update={"record_id": f"question-{number:016}", "text": f"{question.text} (Question {number}.)"}
    )


@dataclass(frozen=True, slots=True)
class Order:
    """What a process of its own is told to run."""

    address: str
    base: Path
    folder: Path
    rollouts: int
    profile: bool = False
    stalls: bool = False
    prepare: bool = False


def run_rollouts(order: Order) -> dict[str, Any]:
    """Run the stage in this process and say what it took; a folder that was used before goes on."""
    if not order.folder.is_dir():
        for name in ("corpus", "images", "worlds"):
            shutil.copytree(order.base / name, order.folder / name)
        write_questions(order.base, order.folder / "questions", -(-order.rollouts // ATTEMPTS))
    if order.prepare:
        return {}
    config, workspace = make_run_config(order.address), Workspace(order.folder)
    (place,) = (order.folder / "corpus").iterdir()
    parts = sorted((order.folder / "questions").iterdir())
    with closing(Assembly(config, workspace, Corpus.open(place))) as assembly:
        agent = assembly.make_agent()
        agent = replace(agent, tools=replace(agent.tools, pages=PaddedPages(agent.tools.pages)))
        stage, out = Rollouts(agent, ATTEMPTS, ATTEMPTS, SPLITS), StageFolder(order.folder / "rollouts")
        sources = [(shard, part) for shard, part in enumerate(parts) if out.read_sidecar(shard) is None]
        profile, stalls = cProfile.Profile(), Stalls()
        started, spent = time.perf_counter(), time.process_time()
        with profile if order.profile else stalls.watch() if order.stalls else nullcontext():
            used = run_record_shards(stage, out, sources, IN_FLIGHT // ATTEMPTS)
        seconds, processor = time.perf_counter() - started, time.process_time() - spent
    told: dict[str, Any] = {
        "turns": TURNS * order.rollouts,
        "calls": used.calls,
        "seconds": seconds,
        "processor": processor,
        "peak": read_peak(),
    }
    if order.profile:
        told["modules"] = list_modules(profile)
    if order.stalls:
        rare = 1 + len(stalls.wall) // 1000
        told |= {"wall": sorted(stalls.wall)[-rare:], "own": sorted(stalls.processor)[-rare:]}
    return told


def list_modules(profile: cProfile.Profile) -> dict[str, float]:
    """Return the seconds of own time a module, the largest first; what it calls in C counts as its own."""
    spent: Counter[str] = Counter()
    stats: Any = pstats.Stats(profile)
    for (file, _, name), (_, _, own, _, callers) in stats.stats.items():
        if "epoll" in name:
            continue
        if file != "~":
            spent[_name_module(file)] += own
            continue
        for (caller, _, _), (_, _, part, _) in callers.items():
            spent[_name_module(caller)] += part
    return dict(spent.most_common())


def _name_module(file: str) -> str:
    """Return a module of ours by its path, any other by its package."""
    path = Path(file)
    if path.is_relative_to(ROOT) and "site-packages" not in path.parts:
        return str(path.relative_to(ROOT))
    parts = path.parts
    mark = max((n for n, part in enumerate(parts) if part in ("site-packages", "python3.11")), default=len(parts) - 2)
    return parts[mark + 1].removesuffix(".py") if file != "~" else "C"


def call_rollouts(address: str, base: Path, folder: Path, rollouts: int, *options: str) -> dict[str, Any]:
    """Run the stage in a process of its own."""
    done = subprocess.run(
        make_child(address, base, folder, rollouts, *options), cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def make_child(address: str, base: Path, folder: Path, rollouts: int, *options: str) -> list[str]:
    """Return the command line of a process that runs the stage."""
    module = [sys.executable, "-m", "tests.benchmarks.rollouts"]
    return [*module, address, str(base), str(folder), str(rollouts), *options]


def measure(scratch: Path) -> list[Measured]:
    """Run rollouts as they are, under a profile, with a slow teacher, with kills, and in growing number."""
    base = scratch / "base"
    run = make_command("run", "--workspace", base, "--until", "selections")
    subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with start_teacher() as address:
        plain = call_rollouts(address, base, scratch / "plain", IN_FLIGHT, "--stalls")
        profiled = call_rollouts(address, base, scratch / "profiled", IN_FLIGHT, "--profile")
    with start_teacher(SLOW) as address:
        slow = call_rollouts(address, base, scratch / "slow", IN_FLIGHT)
    with start_teacher() as address:
        kills = measure_kills(address, base, scratch / "killed")
    with start_teacher(SHORT) as address:
        peaks = {size: call_rollouts(address, base, scratch / f"{size}", size)["peak"] for size in SIZES}
    return [
        *tell_speed(plain),
        *tell_slow(slow),
        *tell_stalls(plain),
        *kills,
        *tell_peaks(peaks),
        *tell_profile(profiled),
    ]


def tell_speed(told: dict[str, Any]) -> list[Measured]:
    """Return the rows about speed."""
    turns = IN_FLIGHT * TURNS
    place = f"{IN_FLIGHT} rollouts of {TURNS} turns in flight"
    return [
        Measured(f"our processor time a turn ({place})", f"{1000 * told['processor'] / turns:.2f} ms", "5 ms"),
        Measured("turns a second, the server and others on the same cores", f"{turns / told['seconds']:,.0f}"),
    ]


def tell_peaks(peaks: Mapping[int, float]) -> list[Measured]:
    """Return the rows about memory."""
    place = f"rollouts of {SHORT.calls + 1} turns, {IN_FLIGHT} in flight"
    growth = peaks[SIZES[-1]] / peaks[SIZES[0]]
    return [
        *(Measured(f"peak memory, {size:,} {place}", f"{peak:,.0f} MB") for size, peak in peaks.items()),
        Measured(f"peak memory, {SIZES[-1]:,} over {SIZES[0]:,}", f"{growth:.2f}", "1.3"),
    ]


def tell_stalls(told: dict[str, Any]) -> list[Measured]:
    """Return the rows about the event loop; what a busy machine adds by the wall is not ours."""
    longest, rare = f"{1000 * told['own'][-1]:.0f} ms", f"{1000 * told['own'][0]:.1f} ms"
    return [
        Measured("longest callback on the event loop, its own processor time", longest, "200 ms"),
        Measured("99.9% of callbacks end sooner than this, processor time", rare, "20 ms"),
        Measured("99.9% of callbacks end sooner than this, by the wall", f"{1000 * told['wall'][0]:.1f} ms"),
    ]


def tell_slow(told: dict[str, Any]) -> list[Measured]:
    """Return the row about a teacher as slow as a large model is."""
    latency = (SLOW.fastest + SLOW.slowest) / 2
    beyond = told["seconds"] / TURNS - latency
    return [Measured(f"wall time a turn beyond a server's {latency:g} s", f"{1000 * beyond:,.0f} ms")]


def measure_kills(address: str, base: Path, folder: Path) -> list[Measured]:
    """Kill a run at random turns and go on; hold what was asked twice against what was in flight."""
    command, rng, waits = make_child(address, base, folder, IN_FLIGHT), random.Random(7), list[float]()
    call_rollouts(address, base, folder, IN_FLIGHT, "--prepare")
    for _ in range(KILLS):
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        waits.append(_wait_for_ask(address, child))
        time.sleep(rng.uniform(0.1, 0.9))
        assert child.poll() is None, "the run was over before it was killed"
        child.send_signal(signal.SIGKILL)
        child.wait()
    lost = _count_lost(folder)
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    counts = _read_counts(address)
    assert lost == _count_lost(folder)
    return [
        Measured(f"requests in flight at {KILLS} kills, together", f"{lost:,}", f"{KILLS * IN_FLIGHT:,}"),
        Measured("requests asked again", f"{counts['duplicates']:,} of {counts['requests']:,}", f"{lost:,}"),
        Measured("from the command to the first new request, slowest", f"{max(waits):.2f} s"),
    ]


def _wait_for_ask(address: str, child: "subprocess.Popen[bytes]") -> float:
    """Return the seconds until the server is asked for something it was not asked for before."""
    started, before = time.monotonic(), _read_counts(address)["distinct"]
    while _read_counts(address)["distinct"] == before:
        assert child.poll() is None, "the run ended without a request"
        time.sleep(0.02)
    return time.monotonic() - started


def _count_lost(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "replies" / FILE)) as store:
        asks, *ended = (
            store.execute(f"SELECT count(*) FROM {table} WHERE backend LIKE 'openai%'").fetchone()[0]
            for table in ("asks", "replies")
        )
    return int(asks - sum(ended))


def _read_counts(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address.removesuffix("/v1") + "/counts", timeout=30) as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def tell_profile(told: dict[str, Any]) -> list[Measured]:
    """Return the modules that the event loop's time went to."""
    whole = sum(told["modules"].values())
    rows = [Measured(f"`{name}`", f"{100 * spent / whole:.0f}%") for name, spent in told["modules"].items()]
    head = Measured(
        "Where the event loop's time goes (cProfile, with its own cost), a turn",
        f"{1000 * whole / IN_FLIGHT / TURNS:.2f} ms",
    )
    return [head, *rows[:MODULES]]


def main() -> None:
    """Run what the command line says and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("base", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rollouts", type=int)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--stalls", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    sys.stdout.write(json.dumps(run_rollouts(Order(**vars(parser.parse_args())))) + "\n")


if __name__ == "__main__":
    main()
