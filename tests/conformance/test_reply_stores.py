"""What every reply store does, on SQLite and on PostgreSQL alike."""

import asyncio
import os
import signal
import socket
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from pipelines.errors import BudgetSpent, ConfigError, CorruptInput, RateLimited, RecordFailed, Unavailable
from pipelines.services.clients.http import RateLimiter
from pipelines.services.clients.replies import (
    ASKS,
    FILE,
    ReplyStore,
    name_epoch,
    open_ledger,
    open_replies,
    read_epochs,
    renew,
    set_aside,
)
from pipelines.services.metering import Budget
from pipelines.services.traffic import Traffic, open_traffic
from schemas.manifest import Usage
from tests.asking import Asking

WAIT = 60.0


@dataclass(frozen=True)
class Place:
    """Where a store lies."""

    folder: Path
    address: str
    server: object

    def open(self) -> ReplyStore:
        return open_replies(self.folder, self.address)

    def ask(self, sent: Path, keys: int, seconds: float, reverse: bool = False, **limits):
        return Asking(str(self.folder), self.address, str(sent), keys, seconds, reverse, **limits).start()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request, tmp_path):
    if request.param == "sqlite":
        return Place(tmp_path / "replies", "", None)
    server = request.getfixturevalue("postgres")
    return Place(tmp_path / "replies", server.make_address(), server)


@pytest.fixture
def store(place):
    with closing(place.open()) as opened:
        yield opened


async def answer():
    return "reply"


def wait_for_lines(path, count):
    deadline = time.monotonic() + WAIT
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# What is written, and when


def test_a_reply_is_in_the_database_before_its_asker_has_it(place, store):
    assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)
    with closing(place.open()) as other:
        assert other.read("k") == "reply"
        assert other.count() == (1, 1)
    assert asyncio.run(store.recall("k", "b", answer)) == ("reply", True)


def test_an_ask_is_in_the_database_before_the_request_is_sent(place, store):
    seen = []

    async def ask():
        with closing(place.open()) as other:
            seen.append(other.count())
        return "reply"

    asyncio.run(store.recall("k", "b", ask))
    assert seen == [(1, 0)]


def test_what_permits_a_request_comes_before_anything_is_noted(store):
    def refuse():
        raise Unavailable("no more")

    with pytest.raises(Unavailable, match="no more"):
        asyncio.run(store.recall("k", "b", answer, refuse))
    assert store.count() == (0, 0)
    asyncio.run(store.recall("k", "b", answer))
    assert asyncio.run(store.recall("k", "b", answer, refuse)) == ("reply", True)


def test_whoever_loses_a_race_gets_the_reply_that_will_be_replayed(store):
    async def ask():
        store.submit(lambda ledger: ledger.record({"k": ("b", "the first")})).result()
        return "mine"

    assert asyncio.run(store.recall("k", "b", ask)) == ("the first", False)


def test_a_request_that_fails_may_be_asked_again(store):
    async def fail():
        raise RecordFailed("too-long")

    with pytest.raises(RecordFailed):
        asyncio.run(store.recall("k", "b", fail))
    assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)
    assert store.count() == (2, 1)


@pytest.mark.parametrize("reply", ["", "\n" * 9, "é—𝄞", "'); DROP TABLE replies; --", "x" * 3_000_000])
def test_a_reply_comes_back_as_it_was(store, reply):
    async def ask():
        return reply

    assert [asyncio.run(store.recall("k", "b", ask))[0] for _ in range(2)] == [reply, reply]


def test_many_who_wait_share_transactions(store, monkeypatch):
    transactions, ledger = [], store.ledger
    begin = type(ledger).begin
    monkeypatch.setattr(type(ledger), "begin", lambda self: (transactions.append(1), begin(self)))

    async def run():
        await asyncio.gather(*(store.recall(f"{n}", "b", answer) for n in range(1000)))

    asyncio.run(run())
    assert store.count() == (1000, 1000)
    assert 0 < len(transactions) < 100


def test_the_same_request_at_once_is_asked_once(store):
    asked = []

    async def ask():
        asked.append(1)
        return f"reply {len(asked)}"

    async def run():
        return await asyncio.gather(*(store.recall("k", "b", ask) for _ in range(50)))

    replies = asyncio.run(run())
    assert {reply for reply, _ in replies} == {"reply 1"}
    assert [cached for _, cached in replies].count(False) == 1
    assert store.count() == (1, 1)


def test_who_is_cancelled_leaves_no_claim(place, store):
    async def run():
        asked = asyncio.Event()

        async def never():
            asked.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(store.recall("k", "b", never))
        await asked.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with closing(place.open()) as other:
            async with asyncio.timeout(WAIT):
                assert await other.recall("k", "b", answer) == ("reply", False)

    asyncio.run(run())
    # It may have been paid for.
    assert store.count() == (2, 1)


def test_replies_that_are_set_aside_are_asked_for_again(place, store):
    asyncio.run(store.recall("k", "b", answer))
    asyncio.run(store.recall("l", "b", answer))
    assert set_aside(place.folder, ["k", "k", "none"]) == 1
    assert (store.read("k"), store.read("l")) == (None, "reply")
    assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)


def test_a_closed_store_has_written_what_waited_and_takes_nothing(place, store):
    async def leave(cancels):
        task = asyncio.create_task(store.recall("left", "b", answer))
        await asyncio.sleep(0)
        if cancels:
            task.cancel()

    for number in range(20):
        asyncio.run(leave(number % 2))
    assert asyncio.run(store.recall("left", "b", answer))[0] == "reply"
    store.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reply-writer")]
    with pytest.raises(Unavailable, match="closed"):
        asyncio.run(store.recall("l", "b", answer))


@dataclass
class Tally:
    """What a backend did over a whole interleaving."""

    asked: Counter = field(default_factory=Counter)
    answered: Counter = field(default_factory=Counter)

    def make_ask(self, key, ending, pauses):
        async def ask():
            self.asked[key] += 1
            for _ in range(pauses):
                await asyncio.sleep(0)
            if ending == "error":
                raise Unavailable("away")
            self.answered[key] += 1
            return f"{key} {self.answered[key]}"

        return ask


REQUESTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["reply", "reply", "error", "cancel"]), st.integers(0, 6)),
    min_size=1,
    max_size=24,
)


@settings(max_examples=40, deadline=None)
@given(REQUESTS)
def test_in_any_interleaving_no_reply_is_lost_or_doubled(requests):
    with TemporaryDirectory() as folder, closing(open_replies(Path(folder))) as store:
        tally = Tally()

        async def request(key, ending, pauses):
            ask = tally.make_ask(key, ending, pauses)
            task = asyncio.create_task(store.recall(key, "b", ask))
            if ending == "cancel":
                for _ in range(pauses):
                    await asyncio.sleep(0)
                task.cancel()
            return await asyncio.gather(task, return_exceptions=True)

        async def run():
            return await asyncio.gather(*(request(*entry) for entry in requests))

        outcomes = asyncio.run(run())
        for (key, _, _), (outcome,) in zip(requests, outcomes, strict=True):
            assert isinstance(outcome, BaseException) or outcome[0] == store.read(key)
        asks = Counter(store.ledger.reader.execute(select(ASKS.c.key)).scalars())
        for key in "abc":
            assert tally.answered[key] == (1 if store.read(key) else 0)
            assert tally.asked[key] <= asks[key]


# Several processes


def test_three_processes_that_want_the_same_keys_pay_for_each_once(place, tmp_path):
    sent = tmp_path / "sent"
    askers = [place.ask(sent, 300, 0.05, reverse=number == 1) for number in range(3)]
    assert [asker.wait(WAIT) for asker in askers] == [0, 0, 0]
    assert Counter(sent.read_text().splitlines()) == {f"key {number}": 1 for number in range(300)}
    with closing(place.open()) as store:
        assert store.count() == (300, 300)


def test_a_claim_ends_with_the_process_that_is_killed(place, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    stuck = place.ask(first, 5, -1.0)
    wait_for_lines(first, 5)
    waiting = place.ask(second, 6, 0.0)
    wait_for_lines(second, 1)
    assert second.read_text().splitlines() == ["key 5"]
    os.kill(stuck.pid, signal.SIGKILL)
    assert waiting.wait(WAIT) == 0
    assert stuck.wait(WAIT) == -signal.SIGKILL
    assert len(second.read_text().splitlines()) == 6


def test_whoever_waits_says_so_and_goes_on_when_the_other_fails(place, store):
    traffic = Traffic()

    async def run():
        asked = asyncio.Event()

        async def fail():
            asked.set()
            async with asyncio.timeout(WAIT):
                while not traffic.list_waits():
                    await asyncio.sleep(0.01)
            raise RecordFailed("too-long")

        with closing(place.open()) as other:
            failing = asyncio.create_task(store.recall("k", "b", fail))
            await asked.wait()
            async with asyncio.timeout(WAIT):
                assert await other.recall("k", "b", answer) == ("reply", False)
            return await asyncio.gather(failing, return_exceptions=True)

    with open_traffic(traffic):
        (error,) = asyncio.run(run())
    assert isinstance(error, RecordFailed)
    assert traffic.list_waits() == []


# What the processes of a run share


def test_four_processes_keep_one_budget_but_for_what_was_in_flight(place, tmp_path):
    sent, limit, wave = tmp_path / "sent", 60, 5
    shares = [
        place.ask(sent, 100, 0.01, run="workspace/run", tokens=limit, prefix=f"p{number}", wave=wave)
        for number in range(4)
    ]
    assert [share.wait(WAIT) for share in shares] == [0, 0, 0, 0]
    assert limit <= len(sent.read_text().splitlines()) <= limit + 4 * wave


def test_another_run_begins_with_nothing_spent(place):
    budgets = [Budget({"tokens": 5}) for _ in range(3)]

    async def ask():
        budgets[0].add(Usage(tokens_in=5))
        return "reply"

    for number, run in enumerate(("w/first", "w/first", "w/second")):
        with closing(open_replies(place.folder, place.address, run, budgets[number])) as store:
            if number == 1:
                with pytest.raises(BudgetSpent, match="5 of 5 tokens"):
                    asyncio.run(store.recall(f"{number}", "b", answer, budgets[number].check))
                assert store.count() == (1, 1)
            else:
                asyncio.run(store.recall(f"{number}", "b", ask if not number else answer, budgets[number].check))
    assert budgets[2].elsewhere == Usage()


def test_one_place_of_a_service_is_never_taken_twice_and_ends_with_its_holder(place):
    with (
        closing(open_replies(place.folder, place.address, "w/run")) as mine,
        closing(open_replies(place.folder, place.address, "w/run")) as other,
        closing(open_replies(place.folder, place.address, "w/run")) as third,
    ):

        async def run():
            async with asyncio.timeout(WAIT):
                places = {await mine.turns.take_place("service", 2), await other.turns.take_place("service", 2)}
                assert len(places) == 2
                waiting = asyncio.create_task(third.turns.take_place("service", 2))
                same = asyncio.create_task(mine.turns.take_place("service", 2))
                await asyncio.sleep(0.2)
                assert not waiting.done()
                assert not same.done()
                assert await third.turns.take_place("another", 2)
                mine.turns.leave("service", min(places), 0.0)
                other.close()
                await asyncio.gather(waiting, same)

        asyncio.run(run())


def test_turns_come_one_gap_apart_and_a_pause_that_a_service_asks_for_holds_for_all(place):
    with (
        closing(open_replies(place.folder, place.address, "w/run")) as mine,
        closing(open_replies(place.folder, place.address, "w/run")) as other,
    ):

        async def run():
            waits = [(await store.turns.reserve("service", 10.0, 99.0))[0] for store in (mine, other, mine)]
            assert waits == pytest.approx([0.0, 10.0, 20.0], abs=5.0)
            assert (await other.turns.reserve("another", 10.0, 99.0))[0] <= 0.0
            mine.turns.hold("service", 1000.0)
            assert await mine.turns.read_hold("service") == pytest.approx(1000.0, abs=60.0)
            assert (await other.turns.reserve("service", 10.0, 99.0))[1] > 99.0
            limiter = RateLimiter("service", longest=99.0, turns=other.turns)
            with pytest.raises(RateLimited, match="asked for a pause of"):
                async with limiter.enter():
                    raise AssertionError

        asyncio.run(run())


# A database that goes away and comes back


@pytest.mark.postgres
@pytest.mark.parametrize(("how", "most"), [("fast", 1), ("immediate", 2)])
def test_a_server_that_is_restarted_loses_nothing(postgres, tmp_path, how, most):
    place, sent = Place(tmp_path, postgres.make_address(), postgres), tmp_path / "sent"
    askers = [place.ask(sent, 200, 2.0, reverse=number == 1) for number in range(2)]
    wait_for_lines(sent, 150)
    postgres.control("restart", "-m", how)
    assert [asker.wait(WAIT) for asker in askers] == [0, 0]
    paid = Counter(sent.read_text().splitlines())
    # A crash of the server forgets the claims of the last moments: what was in flight then may be asked again.
    assert set(paid) == {f"key {number}" for number in range(200)}
    assert max(paid.values()) <= most
    with closing(place.open()) as store:
        assert store.count()[1] == 200


@pytest.mark.postgres
def test_a_server_that_stays_away_is_named(postgres, tmp_path):
    with closing(open_replies(tmp_path, postgres.make_address())) as store:
        store.patience = 0.5
        postgres.control("stop", "-m", "fast")
        try:
            with pytest.raises(Unavailable, match="reply store in PostgreSQL"):
                asyncio.run(store.recall("k", "b", answer))
        finally:
            postgres.control("start")
        store.patience = WAIT
        assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)


@pytest.mark.postgres
def test_a_host_that_goes_without_a_word_is_given_up_by_both_sides():
    from tests.postgres import start_postgres

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        start_postgres("fsync=off", listen="127.0.0.1", port=port) as server,
        closing(open_ledger(Path(), server.make_address("127.0.0.1"))) as ledger,
        socket.socket(fileno=os.dup(ledger.reader.connection.dbapi_connection.fileno())) as own,
    ):
        names = ("tcp_keepalives_idle", "tcp_user_timeout")
        assert [ledger.reader.exec_driver_sql(f"SHOW {name}").scalar() for name in names] == ["30", "60000"]
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


@pytest.mark.postgres
def test_a_workspace_that_keeps_its_replies_there_does_not_begin_anew_without_the_address(postgres, tmp_path):
    address = postgres.make_address()
    open_replies(tmp_path, address).close()
    with pytest.raises(ConfigError, match=r"set replies to that place"):
        open_replies(tmp_path)
    assert not list(tmp_path.glob("*.db"))
    open_replies(tmp_path / "local").close()
    with pytest.raises(ConfigError, match=r"set replies to that place"):
        open_replies(tmp_path / "local", address)


@pytest.mark.postgres
def test_no_address_of_another_database_or_of_one_that_is_not_there_is_taken(postgres, tmp_path, monkeypatch):
    unknown = postgres.address.replace("/postgres?", "/none?")
    monkeypatch.setenv("SYNTH_TEST_REPLIES", unknown)
    monkeypatch.delenv("SYNTH_TEST_NONE", raising=False)
    for address, said in [
        ("mysql://localhost", "expected postgresql"),
        ("env:SYNTH_TEST_NONE", "SYNTH_TEST_NONE is not set"),
        ("env:SYNTH_TEST_REPLIES", "does not exist"),
        (unknown, "does not exist"),
    ]:
        with pytest.raises(ConfigError, match=said):
            open_replies(tmp_path, address)


# A file that cannot be used


def test_a_file_that_others_hold_for_too_long_is_unavailable_and_nothing_is_sent(tmp_path):
    with (
        closing(open_replies(tmp_path)) as store,
        closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other,
    ):
        store.patience = 0.05
        store.ledger.connection.exec_driver_sql("PRAGMA busy_timeout = 10")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            asyncio.run(store.recall("k", "b", answer))
        assert store.count() == (0, 0)
        other.execute("ROLLBACK")
        assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)


def test_a_full_disk_is_told_to_everyone_and_costs_nothing_that_was_recorded(tmp_path):
    async def long():
        return "x" * 2000

    with closing(open_replies(tmp_path)) as store:

        async def run(first, last):
            asking = (store.recall(f"{number}", "b", long) for number in range(first, last))
            return await asyncio.gather(*asking, return_exceptions=True)

        assert all(isinstance(outcome, tuple) for outcome in asyncio.run(run(0, 50)))
        pages = store.ledger.connection.exec_driver_sql("PRAGMA page_count").scalar()
        store.ledger.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 4}")
        full = [outcome for outcome in asyncio.run(run(50, 250)) if isinstance(outcome, Unavailable)]
        assert "full" in str(full[0])
        assert all(store.read(f"{number}") for number in range(50))
        store.ledger.connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        assert all(isinstance(outcome, tuple) for outcome in asyncio.run(run(0, 250)))
        assert store.count()[1] == 250


def test_a_file_that_is_no_store_is_damaged(tmp_path):
    (tmp_path / FILE).write_bytes(b"not a database, not a database, not a database" * 40)
    with pytest.raises(CorruptInput, match="not a database"):
        open_replies(tmp_path)


# Cache epochs


def test_each_renewal_begins_one_epoch_of_the_roles_named_and_no_other(tmp_path):
    folder = tmp_path / "replies"
    assert read_epochs(folder) == {}
    assert renew(folder, ["solver"]) == {"solver": 1}
    assert renew(folder, ["judge", "solver", "judge"]) == {"judge": 1, "solver": 2}
    assert read_epochs(folder) == {"judge": 1, "solver": 2}
    assert renew(folder, ["judge"], "postgresql://a")["judge"] > 2
    assert (name_epoch("a", 0), name_epoch("a", 2)) == ("a", "a#2")


def test_damaged_epochs_are_named(tmp_path):
    (tmp_path / "fresh.json").write_text("[1]")
    with pytest.raises(CorruptInput, match=r"fresh\.json: damaged"):
        read_epochs(tmp_path)
