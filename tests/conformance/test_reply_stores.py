"""What every reply store does, on SQLite and on PostgreSQL alike."""

import asyncio
import os
import signal
import socket
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.config.settings import BudgetConfig
from pipelines.errors import BudgetSpent, ConfigError, CorruptInput, RateLimited, RecordFailed, Unavailable
from pipelines.services.clients.http import RateLimiter
from pipelines.services.clients.ledger import check_ledger, repair_ledger
from pipelines.services.clients.replies import ReplyStore, Table, open_replies, set_aside
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


def count_rows(store, table):
    return Counter(key for (key,) in store.reader.select(f"SELECT key FROM {table}", {}))


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


def test_the_first_reply_of_a_key_stays(store):
    asyncio.run(store.record({"k": "first"}, "b"))
    asyncio.run(store.record({"k": "second", "l": "third"}, "b"))
    assert (store.read("k"), store.read("l")) == ("first", "third")


def test_a_request_that_fails_is_noted_and_may_be_asked_again(store):
    async def fail():
        raise RecordFailed("too-long")

    with pytest.raises(RecordFailed):
        asyncio.run(store.recall("k", "b", fail))
    assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)
    assert store.reader.select("SELECT key, backend, error FROM failures", {}) == [("k", "b", "RecordFailed")]
    assert count_rows(store, "asks") - count_rows(store, "failures") - count_rows(store, "replies") == Counter()


@pytest.mark.parametrize(
    "reply", ["", "\x00", "a\x00b", "\n" * 9, "é—𝄞", "'); DROP TABLE replies; --", "x" * 3_000_000]
)
def test_a_reply_comes_back_as_it_was(store, reply):
    async def ask():
        return reply

    assert [asyncio.run(store.recall("k", "b", ask))[0] for _ in range(2)] == [reply, reply]


def test_many_who_wait_share_transactions(store, monkeypatch):
    transactions, ledger = [], store.writer.ledger
    begin = type(ledger).transaction
    monkeypatch.setattr(
        type(ledger), "transaction", lambda self, paid: (transactions.append(paid), begin(self, paid))[1]
    )

    async def run():
        await asyncio.gather(*(store.writer.write(Table.ASKS, [(f"{n}", "b", 1)]) for n in range(1000)))

    asyncio.run(run())
    assert len(count_rows(store, "asks")) == 1000
    assert 0 < len(transactions) < 100


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
    # It may have been paid for: it stays a request in flight.
    assert store.count() == (2, 1)
    assert count_rows(store, "failures") == Counter()


def test_a_reply_that_was_changed_is_named_and_never_returned(store):
    asyncio.run(store.record({"k": "reply", "l": "whole"}, "b"))
    store.writer.ledger.connection.execute("UPDATE replies SET checksum = checksum + 1 WHERE key = 'k'")
    with pytest.raises(CorruptInput, match="not as it was written"):
        store.read("k")
    with pytest.raises(CorruptInput, match="not as it was written"):
        asyncio.run(store.recall("k", "b", answer))
    assert store.read("l") == "whole"


def test_a_check_counts_what_is_whole_and_names_what_is_damaged(place, store):
    asyncio.run(store.record({"k": "reply", "l": "whole", "m": "whole"}, "backend"))
    assert check_ledger(place.folder).explain() == "3 replies are whole"
    store.writer.ledger.connection.execute("UPDATE replies SET backend = 'other' WHERE key = 'k'")
    found = check_ledger(place.folder)
    assert (found.sound, found.replies, found.damaged) == (False, 2, {"other": 1})


def test_replies_that_are_set_aside_are_asked_for_again(place, store):
    asyncio.run(store.record({"k": "unusable", "l": "reply"}, "b"))
    assert set_aside(place.folder, ["k", "k", "none"]) == 1
    assert (store.read("k"), store.read("l")) == (None, "reply")
    assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)
    assert check_ledger(place.folder).explain() == "3 replies are whole"


def test_a_closed_store_takes_nothing(store):
    asyncio.run(store.record({"k": "reply"}, "b"))
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        asyncio.run(store.record({"l": "reply"}, "b"))


def test_what_waits_is_written_when_a_store_is_closed(place, store):
    async def run():
        for number in range(100):
            store.note_failure([f"{number}"], "b", "Unavailable")
        store.close()

    asyncio.run(run())
    with closing(place.open()) as other:
        assert len(count_rows(other, "failures")) == 100


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
    budgets = [Budget(BudgetConfig(tokens=5)) for _ in range(3)]

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
        store.writer.patience = 0.5
        postgres.control("stop", "-m", "fast")
        try:
            with pytest.raises(Unavailable, match="reply store in PostgreSQL"):
                asyncio.run(store.recall("k", "b", answer))
        finally:
            postgres.control("start")
        store.writer.patience = WAIT
        assert asyncio.run(store.recall("k", "b", answer)) == ("reply", False)


@pytest.mark.postgres
def test_a_host_that_goes_without_a_word_is_given_up_by_both_sides():
    from pipelines.services.clients.postgres import open_postgres
    from tests.postgres import start_postgres

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        start_postgres("fsync=off", listen="127.0.0.1", port=port) as server,
        closing(open_postgres(server.make_address("127.0.0.1"))) as ledger,
        socket.socket(fileno=os.dup(ledger.connection.fileno())) as own,
    ):
        theirs = {name: ledger.select(f"SHOW {name}", {}) for name in ("tcp_keepalives_idle", "tcp_user_timeout")}
        assert theirs == {"tcp_keepalives_idle": [("30",)], "tcp_user_timeout": [("60000",)]}
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


@pytest.mark.postgres
def test_who_has_lost_a_claim_to_another_process_is_stopped(postgres, monkeypatch):
    from pipelines.services.clients.postgres import hold_claim, open_postgres

    monkeypatch.setattr("pipelines.services.clients.postgres.KEEP_SECONDS", 0.05)
    address = postgres.make_address()

    def hold_too_long(other):
        with hold_claim(address, "workspace A", "busy"):
            other.connection.execute("UPDATE claims SET owner = %s", (other.owner,))
            time.sleep(WAIT)

    with closing(open_postgres(address)) as other, pytest.raises(Unavailable, match="taken over workspace A"):
        hold_too_long(other)


@pytest.mark.postgres
def test_a_workspace_that_keeps_its_replies_there_does_not_begin_anew_without_the_address(postgres, tmp_path):
    address = postgres.make_address()
    open_replies(tmp_path, address).close()
    with pytest.raises(ConfigError, match=r"set replies\.address to it"):
        open_replies(tmp_path)
    assert not list(tmp_path.glob("*.db"))
    with pytest.raises(ConfigError, match="in PostgreSQL"):
        repair_ledger(tmp_path)
    open_replies(tmp_path / "local").close()
    with pytest.raises(ConfigError, match=r"leave replies\.address empty"):
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
