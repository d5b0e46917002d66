"""kill -9 amid requests: what is paid twice was in flight at a kill, and no reply that was recorded is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from pipelines.services.clients.replies import open_replies
from tests.chaos.driving import ROOT, Ledger, read_ledger

KILLS = 10
ROWS = 1500
IN_FLIGHT = 32
MOST_SECONDS = 600.0
CHILD = """
import asyncio, os, random, sys
from pathlib import Path
from pipelines.services.clients.recorded import make_chat_key
from pipelines.services.protocols import ChatReply, ChatRequest, Message
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.clients.replies import open_replies
from schemas.tasks import AnswerReply

workspace, first, last, in_flight = Path(sys.argv[1]), *map(int, sys.argv[2:5])
sent = os.open(workspace / "sent.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

class Served:
    name, identity, reads_inputs = "served", "served:1", False

    async def chat(self, request):
        os.write(sent, f"{make_chat_key(self, request)}\\n".encode())
        await asyncio.sleep(random.random() * 0.02)
        return ChatReply(f"reply to {request.sample}", 10, 2, day="2026-11-22")

async def run():
    store = open_replies(workspace / "replies")
    recorded, rows = RecordedChat(Served(), store), iter(range(first, last))

    async def work():
        for row in rows:
            request = ChatRequest("ask", "ask/v1", (Message("user", "Who?"),), AnswerReply(answer=""), sample=row)
            assert (await recorded.chat(request)).text == f"reply to {row}"

    await asyncio.gather(*(work() for _ in range(in_flight)))
    store.close()

asyncio.run(run())
"""


def start(workspace: Path, first: int = 0, last: int = ROWS) -> subprocess.Popen[bytes]:
    """Start a process that asks for rows."""
    command = [sys.executable, "-c", CHILD, str(workspace), str(first), str(last), str(IN_FLIGHT)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True)


def list_sent(workspace: Path) -> list[str]:
    """Return the key of every request that the backend was ever sent; each of them was paid."""
    path = workspace / "sent.log"
    return path.read_text().split() if path.is_file() else []


def kill_after(child: subprocess.Popen[bytes], workspace: Path, requests: int, delay: float) -> bool:
    """Kill a process once so many requests were sent in all, and ``delay`` seconds; False if it ended before."""
    deadline = time.monotonic() + MOST_SECONDS
    while len(list_sent(workspace)) < requests and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(delay)
    running = child.poll() is None
    if running:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(timeout=MOST_SECONDS)
    return running


@dataclass(frozen=True, slots=True)
class Ordeal:
    """A workspace after ten kills and one run to the end, and what its store held right after each kill."""

    workspace: Path
    ledgers: list[Ledger]


@pytest.fixture(scope="module")
def ordeal(tmp_path_factory: pytest.TempPathFactory) -> Ordeal:
    workspace, rng, ledgers = tmp_path_factory.mktemp("paid"), random.Random(20), list[Ledger]()
    for kill in range(KILLS):
        more = rng.randrange(1, ROWS // (3 * KILLS))
        assert kill_after(start(workspace), workspace, len(list_sent(workspace)) + more, rng.random() * 0.01), kill
        ledgers.append(read_ledger(workspace))
    assert start(workspace).wait(timeout=MOST_SECONDS) == 0
    return Ordeal(workspace, ledgers)


def test_what_is_paid_twice_was_in_flight_at_a_kill(ordeal: Ordeal) -> None:
    flights = Counter(key for ledger in ordeal.ledgers for key in ledger.in_flight)
    sent = Counter(list_sent(ordeal.workspace))
    assert {key: count for key, count in sent.items() if count > 1 + flights[key]} == {}
    assert sent.total() - len(sent) <= flights.total()
    assert len(sent) == ROWS


def test_no_more_is_in_flight_at_a_kill_than_the_run_allows(ordeal: Ordeal) -> None:
    for before, after in pairwise([Ledger(Counter(), frozenset()), *ordeal.ledgers]):
        assert (after.asks - before.asks).total() - len(after.replies - before.replies) <= IN_FLIGHT


def test_a_recorded_reply_is_never_lost_and_never_asked_for_again(ordeal: Ordeal) -> None:
    last = read_ledger(ordeal.workspace)
    for before, after in pairwise([*ordeal.ledgers, last]):
        assert before.replies <= after.replies
        assert not before.replies & set(after.asks - before.asks)
    assert len(last.replies) == ROWS


def test_every_request_that_was_sent_was_noted_before(ordeal: Ordeal) -> None:
    asks, sent = read_ledger(ordeal.workspace).asks, Counter(list_sent(ordeal.workspace))
    assert not sent - asks


def test_a_finished_run_asks_nothing_more(ordeal: Ordeal) -> None:
    before = list_sent(ordeal.workspace)
    assert start(ordeal.workspace).wait(timeout=MOST_SECONDS) == 0
    assert list_sent(ordeal.workspace) == before


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    children = [start(tmp_path, 0, 800), start(tmp_path, 400, 1200)]
    yield tmp_path, children
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def test_a_process_that_is_killed_takes_nothing_from_one_that_shares_its_store(
    sharing: tuple[Path, list[subprocess.Popen[bytes]]],
) -> None:
    workspace, (killed, other) = sharing
    assert kill_after(killed, workspace, 200, 0.0)
    assert other.wait(timeout=MOST_SECONDS) == 0
    before = read_ledger(workspace)
    assert start(workspace, 0, 1200).wait(timeout=MOST_SECONDS) == 0
    after = read_ledger(workspace)
    assert before.replies <= after.replies
    assert len(after.replies) == 1200
    assert not before.replies & set(after.asks - before.asks)


def test_processes_that_share_a_store_pay_twice_only_for_what_both_ask_at_the_same_time(
    sharing: tuple[Path, list[subprocess.Popen[bytes]]],
) -> None:
    workspace, children = sharing
    assert [child.wait(timeout=MOST_SECONDS) for child in children] == [0, 0]
    sent = Counter(list_sent(workspace))
    with closing(open_replies(workspace / "replies")) as store:
        replies = {key: json.loads(store.read(key) or "[]")[0] for key in sent}
    assert len(set(replies.values())) == len(sent) == 1200
    assert max(sent.values()) <= 2
    assert Counter(sent.values())[2] <= 400
