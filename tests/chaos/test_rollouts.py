"""kill -9 amid rollouts: each goes on at the turn it had come to, and what is asked again was in flight at a kill."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from tests.chaos.driving import (
    ROOT,
    SMALL,
    Ledger,
    call,
    copy_workspace,
    digest_files,
    make_environment,
    make_run,
    read_ledger,
    share_small_run,
)
from tests.mock_teacher import Manner, start_teacher

KILLS = 4
MANNER = Manner(calls=7, fastest=0.02, slowest=0.06)
TURNS = MANNER.calls + 1
ATTEMPTS = 5
MOST_SECONDS = 600.0


def make_taught(workspace: Path, url: str) -> list[str]:
    """Return the command line of a run until rollouts whose teacher is served at an address."""
    role = ("adapter=openai", "name=mock", "revision=r1", f"base_url={url}")
    waves = (f"rollouts.attempts={ATTEMPTS}", "rollouts.wanted=2", 'rollouts.splits=["sft", "rl", "eval"]')
    settings = (*SMALL, *(f"models.teacher.{setting}" for setting in role), *waves)
    return make_run(workspace, "--limit", "60", "--until", "rollouts", settings=settings)


def read_counts(url: str) -> Any:
    with urlopen(url.removesuffix("/v1") + "/counts", timeout=30) as response:
        return json.load(response)


@dataclass(frozen=True, slots=True)
class Ordeal:
    """A run without a kill and one with some, each with a server of its own."""

    calm: Path
    killed: Path
    calm_counts: Any
    killed_counts: Any
    ledgers: tuple[Ledger, ...]
    """What the reply store held before the first kill, and right after each."""
    answered: tuple[int, ...]
    """Requests that the server had been sent at each kill."""


def kill_amid(workspace: Path, url: str, new: int) -> int:
    """Start a run, kill it once it has sent so many new requests; return how many the server has seen."""
    before = read_counts(url)["distinct"]
    child = subprocess.Popen(
        make_taught(workspace, url),
        cwd=ROOT,
        env=make_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + MOST_SECONDS
    while read_counts(url)["distinct"] < before + new and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert child.poll() is None, "the run was over before it was killed"
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return int(read_counts(url)["requests"])


@pytest.fixture(scope="module")
def ordeal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ordeal]:
    shared, _ = share_small_run(tmp_path_factory.getbasetemp())
    folder, rng = tmp_path_factory.mktemp("rollouts"), random.Random(7)
    calm, killed = copy_workspace(shared, folder / "calm"), copy_workspace(shared, folder / "killed")
    ledgers, answered = [read_ledger(killed)], []
    with start_teacher(MANNER) as url, start_teacher(MANNER) as other:
        outcome = call(make_taught(calm, url))
        assert outcome.code == 0, outcome.err[-2000:]
        whole = read_counts(url)["requests"]
        for _ in range(KILLS):
            answered.append(kill_amid(killed, other, rng.randrange(2, whole // (KILLS + 1))))
            ledgers.append(read_ledger(killed))
        outcome = call(make_taught(killed, other))
        assert outcome.code == 0, outcome.err[-2000:]
        yield Ordeal(calm, killed, read_counts(url), read_counts(other), tuple(ledgers), tuple(answered))


def read_rollouts(workspace: Path) -> list[dict[str, Any]]:
    """Return the rollouts of the served teacher."""
    found = [row for part in sorted(workspace.glob("stages/rollouts/*/part-*.parquet")) for row in read_part(part)]
    return [row for row in found if row["teacher"] == "mock"]


def read_part(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


@pytest.mark.slow
def test_killed_rollouts_are_the_rows_of_an_uninterrupted_run(ordeal: Ordeal) -> None:
    patterns = ("stages/rollouts/*/*.parquet", "images/**/*")
    calm, killed = (
        {name: digest for pattern in patterns for name, digest in digest_files(workspace, pattern).items()}
        for workspace in (ordeal.calm, ordeal.killed)
    )
    assert killed == calm
    rollouts = read_rollouts(ordeal.killed)
    assert len(rollouts) >= 4 * ATTEMPTS
    assert {len(rollout["steps"]) for rollout in rollouts} == {TURNS}
    assert sum(image["id"] == "img_2" for rollout in rollouts for image in rollout["images"]) == len(rollouts)


@pytest.mark.slow
def test_each_turn_is_asked_for_once_and_those_in_flight_at_a_kill_again(ordeal: Ordeal) -> None:
    turns = sum(len(rollout["steps"]) for rollout in read_rollouts(ordeal.calm))
    assert (ordeal.calm_counts["requests"], ordeal.calm_counts["duplicates"]) == (turns, 0)
    flights = Counter(key for ledger in ordeal.ledgers[1:] for key in ledger.in_flight)
    assert ordeal.killed_counts["distinct"] == turns
    assert 0 < ordeal.killed_counts["duplicates"] <= flights.total()
    last = read_ledger(ordeal.killed)
    assert {key: count for key, count in last.asks.items() if count > 1 + flights[key]} == {}
    assert last.replies == read_ledger(ordeal.calm).replies


@pytest.mark.slow
def test_at_a_kill_every_rollout_has_one_request_in_flight_at_most(ordeal: Ordeal) -> None:
    rollouts = len(read_rollouts(ordeal.calm))
    for ledger in ordeal.ledgers[1:]:
        assert len(ledger.in_flight) <= rollouts


@pytest.mark.slow
def test_recorded_turns_are_never_asked_for_again(ordeal: Ordeal) -> None:
    for before, after in zip(ordeal.ledgers, (*ordeal.ledgers[1:], read_ledger(ordeal.killed)), strict=False):
        assert before.replies <= after.replies
        assert not before.replies & set(after.asks - before.asks)
    assert len(set(ordeal.answered)) == KILLS
