"""Whole runs against a served model: budgets, fresh replies and interrupts, counted where the requests arrive."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.chaos.driving import (
    ROOT,
    Outcome,
    call,
    check_one_line,
    copy_workspace,
    make_environment,
    make_run,
    read_ledger,
    run_small,
)
from tests.mock_openai import Schedule, start_mock

TINY = (
    "corpus.generate.entities=300",
    "groundings.min_answers=2",
    "runtime.shard_rows=4",
    "seeds.limit=40",
    "seed=9",
    "difficulty.probe_attempts=0",
    "runtime.concurrency=8",
)
ROLE = ("adapter=openai", "name=mock", "revision=r1", "prices={ output = 1000 }")
SERVED = "openai@1:mock"
"""The mock's backends: of a wrong name a scripted judge is asked, too."""
"""The mock's replies have 7 tokens each: at this price a request costs 0.007."""
IN_FLIGHT = 8
"""Questions that are asked at a time: each has one request in flight."""
GRACE = 30.0
MOST_SECONDS = 90.0
PATIENT = ("--set", "models.solver.timeout=600")


@pytest.fixture(scope="module")
def grounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose stages before difficulty are done, with scripted players."""
    workspace = tmp_path_factory.mktemp("grounded") / "workspace"
    document = run_small(workspace, "--until", "groundings", settings=TINY)
    assert document["stages"][-1]["rows_out"] >= IN_FLIGHT
    return workspace


@pytest.fixture
def workspace(grounded: Path, tmp_path: Path) -> Path:
    return copy_workspace(grounded, tmp_path / "workspace")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with start_mock("--latency", "0.01") as url:
        yield url


def make_solved(workspace: Path, url: str, *more: object) -> list[str]:
    """Return the command line of a run until difficulty whose solver is served at an address."""
    solver = [f"models.solver.{setting}" for setting in (*ROLE, f"base_url={url}")]
    settings = (*TINY, *solver, "runtime.unscored=1.0")
    return make_run(workspace, "--until", "difficulty", *more, settings=settings)


def run_solved(workspace: Path, url: str, *more: object) -> Outcome:
    return call(make_solved(workspace, url, *more))


def read_difficulty(outcome: Outcome) -> Any:
    """Return the difficulty stage's part of a run's document; the run must have succeeded."""
    assert outcome.code == 0, outcome.err[-2000:]
    return outcome.document["stages"][-1]


def read_counts(url: str) -> Counter[str]:
    """Return how many requests the mock has seen, how many it answered, and how many it was asked twice."""
    with urlopen(url.removesuffix("/v1") + "/counts") as response:
        counts = json.load(response)
    return Counter({name: counts[name] for name in ("requests", "paid", "paid_duplicates")})


def count_replies(workspace: Path) -> int:
    """Return how many of the mock's replies are recorded; scripted players and tools have recordings, too."""
    return len(read_ledger(workspace, SERVED).replies)


def count_asks(workspace: Path) -> int:
    return read_ledger(workspace, SERVED).asks.total()


def test_a_served_solver_takes_the_place_of_a_scripted_one_with_its_abilities(
    workspace: Path, server: str, tmp_path: Path
) -> None:
    solver = [f"models.solver.{setting}" for setting in (*ROLE, f"base_url={server}")]
    # Its requests are its own: the server counts bodies that come twice.
    settings = (*TINY, *solver, "runtime.unscored=1.0", "models.solver.max_tokens=77")
    folder = copy_workspace(workspace, tmp_path / "own")
    outcome = call(make_run(folder, "--until", "difficulty", settings=settings))
    assert outcome.code == 0, outcome.err
    assert outcome.document["stages"][-1]["calls"] > 0


# Budgets


def test_a_budget_that_is_spent_ends_the_run_in_order_and_a_larger_one_goes_on_from_there(
    workspace: Path, server: str
) -> None:
    before, recorded = read_counts(server), count_replies(workspace)
    line = check_one_line(run_solved(workspace, server, "--set", "budget.money=0.05"), 3)
    assert "the budget of this run is spent" in line
    assert "run the same command again" in line
    spent = read_counts(server) - before
    # 0.05 buys 8 replies; what is in flight when the eighth comes is let finish.
    assert 8 <= spent["paid"] <= 8 + IN_FLIGHT
    assert count_replies(workspace) - recorded == spent["paid"]

    stage = read_difficulty(run_solved(workspace, server, "--set", "budget.money=100"))
    whole = read_counts(server) - before
    assert stage["cost"] == pytest.approx(0.007 * (whole["paid"] - spent["paid"]))
    assert count_replies(workspace) - recorded == whole["paid"] == whole["requests"]
    assert whole["paid_duplicates"] == 0


# Fresh replies


def test_fresh_replies_ask_their_role_again_and_nobody_else(workspace: Path, server: str) -> None:
    first = read_difficulty(run_solved(workspace, server))
    before, asks = read_counts(server), count_asks(workspace)
    fresh = run_solved(workspace, server, "--fresh-replies", "solver")
    again = read_difficulty(fresh)
    assert [stage["stage"] for stage in fresh.document["stages"] if stage["ran"]] == ["difficulty"]
    assert (again["calls"], again["calls"] + again["cached_calls"]) == (asks, first["calls"])
    assert again["key"] != first["key"]
    assert (read_counts(server) - before)["paid"] == asks
    assert count_asks(workspace) == 2 * asks

    # Without the option a run goes on with the newest replies.
    assert not read_difficulty(run_solved(workspace, server))["ran"]
    assert (read_counts(server) - before)["paid"] == asks


def test_a_fresh_run_that_was_cut_short_goes_on_without_the_option_and_pays_nothing_twice(
    workspace: Path, server: str
) -> None:
    run_solved(workspace, server)
    before, asks = read_counts(server), count_asks(workspace)
    check_one_line(run_solved(workspace, server, "--fresh-replies", "solver", "--set", "budget.money=0.05"), 3)
    spent = read_counts(server) - before
    again = read_difficulty(run_solved(workspace, server))
    # Of shards that were whole by then nothing is looked up again.
    assert again["calls"] == asks - spent["paid"]
    assert (read_counts(server) - before)["paid"] == asks


# Interrupts


def heed_interrupts() -> None:
    """Undo what a shell does to its background jobs, such as a CI that was started with an ampersand."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(command: list[str], url: str, times: int, answered: int) -> tuple[Outcome, float]:
    """Interrupt a run so many times once so many requests are answered; return its end and its seconds."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=make_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as child:
        deadline = time.monotonic() + MOST_SECONDS
        while read_counts(url)["paid"] < answered and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        # The last replies are on their way, and what hangs, hangs.
        time.sleep(1.0)
        started = time.monotonic()
        for _ in range(times):
            child.send_signal(signal.SIGINT)
            time.sleep(0.3)
        try:
            out, err = child.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            raise
    return Outcome(child.returncode, out, err), time.monotonic() - started


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_keeps_what_was_answered_though_requests_hang_and_the_same_command_goes_on(
    workspace: Path, times: int
) -> None:
    recorded = count_replies(workspace)
    hanging = Schedule(at={"3": "hang", "11": "hang"})
    with start_mock("--latency", "0.01", schedule=hanging) as url:
        outcome, seconds = interrupt(make_solved(workspace, url, *PATIENT), url, times, answered=12)
        line = check_one_line(outcome, 3)
        assert "interrupted" in line
        assert seconds < (GRACE + 10.0 if times == 1 else 10.0)
        paid = read_counts(url)["paid"]
        assert paid > 12
        assert count_replies(workspace) - recorded == paid
        stage = read_difficulty(run_solved(workspace, url))
        whole = read_counts(url)
    # Of shards that were whole by then nothing is looked up again.
    assert 0 < stage["cached_calls"] < paid
    assert whole["paid_duplicates"] == 0
