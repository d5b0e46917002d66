"""kill -9 at any moment: the same command goes on, makes the same bytes, and pays at most what was in flight again."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.chaos.driving import (
    ROOT,
    SMALL,
    Ledger,
    digest_outputs,
    list_trusted,
    make_environment,
    make_run,
    read_funnel,
    read_ledger,
    run_small,
)

KILLS = 8
MOST_SECONDS = 600.0
PHASES = ("world", "corpus", "seeds", "paths", "questions", "rewrites", "groundings", "difficulty", "enhancements",
          "selections", "rollouts", "trajectories", "releases", "publishing")  # fmt: skip


def settle(entities: int) -> tuple[str, ...]:
    """Return the settings of a small run with a number of entities."""
    return (f"corpus.generate.entities={entities}", *SMALL[1:])


@dataclass(slots=True)
class Running:
    """A run in a process group of its own, and when each of its phases ended, read from its log."""

    child: subprocess.Popen[str]
    started: float = field(default_factory=time.monotonic)
    ended: dict[str, float] = field(default_factory=dict)
    reader: Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = Thread(target=self.follow, daemon=True)
        self.reader.start()

    @property
    def phase(self) -> str:
        """The first phase that has not ended."""
        return next((name for name in PHASES if name not in self.ended), PHASES[-1])

    def follow(self) -> None:
        """Note the phases as their closing lines come."""
        assert self.child.stderr is not None
        for line in self.child.stderr:
            name = line.split(" ", 1)[0]
            if " in, " in line or name == "world":
                for earlier in PHASES[: PHASES.index(name) + 1]:
                    self.ended.setdefault(earlier, time.monotonic() - self.started)

    def is_over(self) -> bool:
        """Whether the process ended by itself."""
        return self.child.poll() is not None

    def kill(self) -> None:
        """End the whole group at once and wait for it."""
        os.killpg(self.child.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        """Wait for the end of the process and of its log; return the exit status."""
        status = self.child.wait(timeout=MOST_SECONDS)
        self.reader.join()
        assert self.child.stderr is not None
        self.child.stderr.close()
        return status


def start_run(workspace: Path, settings: tuple[str, ...]) -> Running:
    """Start a run in a process group of its own."""
    child = subprocess.Popen(
        make_run(workspace, settings=settings),
        cwd=ROOT,
        env=make_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return Running(child)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a run: after ``shards`` shards of a phase are done, and ``delay`` seconds."""

    phase: str
    shards: int
    delay: float


def measure_phases(workspace: Path, settings: tuple[str, ...]) -> tuple[dict[str, float], dict[str, int]]:
    """Run once without a kill; return each phase's seconds and number of shards."""
    running = start_run(workspace, settings)
    assert running.wait() == 0
    running.ended["publishing"] = time.monotonic() - running.started
    first_file = min(path.stat().st_mtime for path in workspace.glob("worlds/*/*.bz2"))
    start = first_file - time.time() + time.monotonic() - running.started
    marks = [max(start, 0.0), *(running.ended[phase] for phase in PHASES)]
    seconds = {phase: max(marks[i + 1] - marks[i], 0.01) for i, phase in enumerate(PHASES)}
    return seconds, {phase: len(list(workspace.glob(f"stages/{phase}/*/part-*.json"))) for phase in PHASES}


def draw_moments(seconds: dict[str, float], shards: dict[str, int], rng: random.Random) -> list[Moment]:
    """Draw one moment from each of equal slices of the run's own time, so that every late stage has its share.

    The first is in the world's making and the second in the corpus's, however short these are beside the rest.
    """
    whole, world, corpus = sum(seconds.values()), seconds["world"], seconds["corpus"]
    early = [rng.uniform(0.0, 0.7) * world, world + rng.uniform(0.0, 0.7) * corpus]
    moments = []
    for at in [*early, *((slice_ + rng.random()) * whole / KILLS for slice_ in range(len(early), KILLS))]:
        for phase in PHASES:
            if at < seconds[phase] or phase == PHASES[-1]:
                count = shards[phase] if shards[phase] > 1 else 1
                each = seconds[phase] / count
                moments.append(Moment(phase, min(int(at / each), count - 1), at % each))
                break
            at -= seconds[phase]
    return moments


def has_begun(phase: str, workspace: Path, running: Running) -> bool:
    """Whether a run has come to a phase: for the world its draft is there, for the corpus its temp folder."""
    if phase == "world":
        return any(workspace.glob("worlds/.*"))
    if phase == "corpus":
        return any(workspace.glob("corpus/.tmp-*"))
    return PHASES[PHASES.index(phase) - 1] in running.ended


def wait_for(moment: Moment, workspace: Path, running: Running) -> None:
    """Wait until a run has come to a moment, or has gone past it, or has ended."""
    deadline = time.monotonic() + MOST_SECONDS
    while time.monotonic() < deadline and not running.is_over() and moment.phase not in running.ended:
        done = sum(1 for _ in workspace.glob(f"stages/{moment.phase}/*/part-*.json"))
        if has_begun(moment.phase, workspace, running) and (moment.shards == 0 or done >= moment.shards):
            time.sleep(moment.delay)
            return
        time.sleep(0.002)


@dataclass(frozen=True, slots=True)
class Killed:
    """One kill: where the run was, and what the reply store held right after."""

    phase: str
    ledger: Ledger


def kill_at(moment: Moment, workspace: Path, settings: tuple[str, ...]) -> Killed | None:
    """Start a run, kill it at a moment, and look; None when it ended before."""
    running = start_run(workspace, settings)
    wait_for(moment, workspace, running)
    if running.is_over():
        running.wait()
        return None
    phase = running.phase
    running.kill()
    return Killed(phase, read_ledger(workspace))


@dataclass(frozen=True, slots=True)
class Ordeal:
    """A run without a kill, and one with many."""

    calm: Path
    killed: Path
    calm_document: Any
    killed_document: Any
    kills: tuple[Killed, ...]


@pytest.fixture(scope="module")
def ordeal(tmp_path_factory: pytest.TempPathFactory) -> Ordeal:
    settings = settle(int(os.environ.get("SYNTH_CHAOS_ENTITIES", "300")))
    calm, killed = tmp_path_factory.mktemp("calm"), tmp_path_factory.mktemp("killed")
    seconds, shards = measure_phases(calm, settings)
    moments = draw_moments(seconds, shards, random.Random(7))
    kills = [kill for moment in moments if (kill := kill_at(moment, killed, settings)) is not None]
    documents = [run_small(workspace, settings=settings) for workspace in (calm, killed)]
    hits = Counter(kill.phase for kill in kills)
    sys.stderr.write(f"\nkills a phase: {', '.join(f'{phase} {hits[phase]}' for phase in PHASES)}\n")
    return Ordeal(calm, killed, documents[0], documents[1], tuple(kills))


@pytest.mark.slow
def test_kills_spread_over_world_corpus_and_late_stages(ordeal: Ordeal) -> None:
    phases = Counter(kill.phase for kill in ordeal.kills)
    assert len(ordeal.kills) >= KILLS - 1, phases
    assert phases["world"] >= 1
    assert phases["corpus"] >= 1
    assert sum(phases[phase] for phase in PHASES[PHASES.index("groundings") :]) >= max(2, 3 * KILLS // 20), phases
    assert len(phases) >= max(4, math.ceil(0.3 * KILLS)), phases


@pytest.mark.slow
def test_kills_leave_the_same_bytes(ordeal: Ordeal) -> None:
    calm = digest_outputs(ordeal.calm)
    assert len(calm) > 100
    assert digest_outputs(ordeal.killed) == calm


@pytest.mark.slow
def test_kills_leave_the_same_funnel(ordeal: Ordeal) -> None:
    assert read_funnel(ordeal.killed_document) == read_funnel(ordeal.calm_document)


@pytest.mark.slow
def test_kills_leave_no_temp_file_in_what_is_read(ordeal: Ordeal) -> None:
    folders = ("corpus", "worlds", "stages", "images", "releases")
    left = [path for folder in folders for path in ordeal.killed.glob(f"{folder}/**/.*")]
    assert left == []


@pytest.mark.slow
def test_what_is_paid_again_was_in_flight_at_a_kill(ordeal: Ordeal) -> None:
    last = read_ledger(ordeal.killed)
    flights = Counter(key for kill in ordeal.kills for key in kill.ledger.in_flight)
    assert last.asks.total() - len(last.replies) <= flights.total()
    assert last.in_flight <= frozenset(flights)
    again = {key: count for key, count in last.asks.items() if count > 1 + flights[key]}
    assert again == {}


@pytest.mark.slow
def test_kills_never_lose_a_recorded_reply(ordeal: Ordeal) -> None:
    for before, after in pairwise(ordeal.kills):
        assert before.ledger.replies <= after.ledger.replies
    assert read_ledger(ordeal.killed).replies == read_ledger(ordeal.calm).replies


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "next_up"), [("world", "worlds/.*"), ("corpus", "corpus/.tmp-*")])
def test_a_kill_while_input_is_made_leaves_nothing_that_is_trusted(tmp_path: Path, phase: str, next_up: str) -> None:
    settings = settle(150)
    killed = kill_at(Moment(phase, 0, 0.05), tmp_path, settings)
    assert killed is not None
    assert killed.phase == phase
    assert any(tmp_path.glob(next_up))
    assert [name for name in list_trusted(tmp_path) if not name.startswith("worlds/") or phase == "world"] == []
    document = run_small(tmp_path, "--until", "seeds", settings=settings)
    assert [stage["ran"] for stage in document["stages"]] == [True, True]
    assert not any(tmp_path.glob(next_up))


@pytest.mark.slow
def test_the_parsing_child_ends_with_a_parent_that_was_killed_alone(tmp_path: Path) -> None:
    running = start_run(tmp_path, settle(300))
    wait_for(Moment("corpus", 0, 0.2), tmp_path, running)
    group = running.child.pid
    os.kill(group, signal.SIGKILL)
    running.wait()
    deadline = time.monotonic() + MOST_SECONDS
    while has_members(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not has_members(group)


def has_members(group: int) -> bool:
    """Whether a process group has a process left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
