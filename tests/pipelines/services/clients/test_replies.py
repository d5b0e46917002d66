import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.services.clients.replies import (
    EPOCHS,
    GroupWriter,
    Table,
    name_epoch,
    open_replies,
    read_epochs,
    renew,
)
from pipelines.services.clients.sqlite import FILE, FileClaims, SqliteLedger, connect_replies

ROOT = Path(__file__).parents[4]
FIRST_TABLES = """
CREATE TABLE asks (key TEXT NOT NULL, backend TEXT NOT NULL);
CREATE TABLE replies (key TEXT PRIMARY KEY, backend TEXT NOT NULL, reply TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO asks VALUES ('old', 'b');
INSERT INTO replies VALUES ('old', 'b', 'kept');
"""
"""A store as the first version made it."""


@dataclass
class Backend:
    """Answers by number, after a sign where one is asked for, and counts."""

    asked: int = 0
    sign: asyncio.Event | None = None
    raises: Exception | None = None

    async def ask(self):
        self.asked += 1
        number = self.asked
        if self.sign is not None:
            await self.sign.wait()
        if self.raises is not None:
            raise self.raises
        return f"reply {number}"


@pytest.fixture
def store(tmp_path):
    opened = open_replies(tmp_path)
    yield opened
    opened.close()


def recall(store, key, backend):
    return asyncio.run(store.recall(key, "b", backend.ask))


def look(folder, statement):
    """Look into the file as another process would."""
    with closing(sqlite3.connect(folder / FILE)) as other:
        return other.execute(statement).fetchall()


def try_read(store, key):
    """Return a reply or the error in its place."""
    try:
        return store.read(key)
    except CorruptInput as error:
        return error


async def begin(coroutine, backend, asked=1):
    """Start a task and wait until its backend was asked."""
    task = asyncio.create_task(coroutine)
    while backend.asked < asked and not task.done():
        await asyncio.sleep(0)
    return task


# What is written, and when


def test_a_reply_is_in_the_file_before_its_asker_has_it(tmp_path, store):
    assert recall(store, "k", Backend()) == ("reply 1", False)
    assert look(tmp_path, "SELECT key, backend, bytes, reply FROM replies") == [("k", "b", 7, "reply 1")]
    assert recall(store, "k", Backend()) == ("reply 1", True)


def test_an_ask_is_in_the_file_before_the_request_is_sent(tmp_path, store):
    seen = []

    async def ask():
        seen.extend(look(tmp_path, "SELECT key FROM asks"))
        return "reply"

    asyncio.run(store.recall("k", "b", ask))
    assert seen == [("k",)]


def test_what_permits_a_request_comes_before_anything_is_noted(store):
    def refuse():
        raise Unavailable("no more")

    with pytest.raises(Unavailable, match="no more"):
        asyncio.run(store.recall("k", "b", Backend().ask, refuse))
    assert store.count() == (0, 0)
    recall(store, "k", Backend())
    assert asyncio.run(store.recall("k", "b", Backend().ask, refuse)) == ("reply 1", True)


def test_a_request_that_fails_is_noted_as_failed_and_asked_again(tmp_path, store):
    with pytest.raises(RecordFailed):
        recall(store, "k", Backend(raises=RecordFailed("too-long")))
    assert recall(store, "k", Backend()) == ("reply 1", False)
    store.close()
    assert look(tmp_path, "SELECT key, backend, error FROM failures") == [("k", "b", "RecordFailed")]
    assert look(tmp_path, "SELECT count(*) FROM asks") == [(2,)]


def test_whoever_loses_a_race_gets_the_reply_that_will_be_replayed(tmp_path, store):
    other = open_replies(tmp_path)

    async def ask():
        await other.record({"k": "the other's"}, "b")
        return "mine"

    assert asyncio.run(store.recall("k", "b", ask)) == ("the other's", False)
    other.close()


@pytest.mark.parametrize(
    "reply", ["", "\x00", "a\x00b", "\n" * 9, "é—𝄞", "'); DROP TABLE replies; --", "x" * 3_000_000]
)
def test_a_reply_comes_back_as_it_was(store, reply):
    async def ask():
        return reply

    assert [asyncio.run(store.recall("k", "b", ask))[0] for _ in range(2)] == [reply, reply]


# The same request at the same time


def test_the_same_request_at_once_is_asked_once(store):
    backend = Backend()

    async def run():
        return await asyncio.gather(*(store.recall("k", "b", backend.ask) for _ in range(50)))

    replies = asyncio.run(run())
    assert {reply for reply, _ in replies} == {"reply 1"}
    assert [cached for _, cached in replies].count(False) == 1
    assert (backend.asked, store.count()) == (1, (1, 1))


def test_a_reply_that_came_is_kept_though_its_asker_gives_up_while_it_is_written(tmp_path, store):
    async def run():
        backend = Backend(sign=asyncio.Event())
        first = await begin(store.recall("k", "b", backend.ask), backend)
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            backend.sign.set()
            second = asyncio.create_task(store.recall("k", "b", backend.ask))
            for _ in range(5):
                await asyncio.sleep(0)
            first.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            assert not first.done()
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = asyncio.run(run())
    assert isinstance(first, asyncio.CancelledError)
    assert second == ("reply 1", True)


def test_a_request_that_was_never_sent_is_no_request_in_flight(tmp_path, store):
    async def run():
        backend = Backend()
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = asyncio.create_task(store.recall("k", "b", backend.ask))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(task, return_exceptions=True)
        return backend.asked

    assert asyncio.run(run()) == 0
    store.close()
    assert look(tmp_path, "SELECT key, error FROM failures") == [("k", "unsent")]


@dataclass
class Tally:
    """What a backend did over a whole interleaving."""

    asked: Counter = field(default_factory=Counter)
    failed: Counter = field(default_factory=Counter)
    answered: Counter = field(default_factory=Counter)

    def make_ask(self, key, ending, pauses):
        async def ask():
            self.asked[key] += 1
            for _ in range(pauses):
                await asyncio.sleep(0)
            if ending == "error":
                self.failed[key] += 1
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
        store.close()
        replies = dict(look(Path(folder), "SELECT key, reply FROM replies"))
        asks = Counter(key for (key,) in look(Path(folder), "SELECT key FROM asks"))
        failures = Counter(key for (key,) in look(Path(folder), "SELECT key FROM failures"))
    for key in "abc":
        assert tally.answered[key] == (1 if key in replies else 0)
        assert tally.failed[key] <= failures[key]
        # What was noted and not sent ended as a failure, too.
        assert tally.asked[key] - tally.failed[key] == asks[key] - failures[key]


# Group commit, and what can go wrong with it


def test_many_who_wait_share_transactions(tmp_path):
    counted = []

    class Counting(sqlite3.Connection):
        def execute(self, statement, *values):
            counted.append(statement.split(" ")[0])
            return super().execute(statement, *values)

    connect_replies(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE, isolation_level=None, check_same_thread=False, factory=Counting)
    writer = GroupWriter(SqliteLedger(connection, "store", FileClaims(tmp_path / "claims")))

    async def run():
        await asyncio.gather(*(writer.write(Table.ASKS, [(f"{n}", "b", 1)]) for n in range(1000)))

    asyncio.run(run())
    writer.close()
    assert look(tmp_path, "SELECT count(*), count(DISTINCT key) FROM asks") == [(1000, 1000)]
    assert counted.count("COMMIT") < 100


def test_a_file_that_others_hold_for_too_long_is_unavailable_and_nothing_is_sent(tmp_path, store):
    backend = Backend()
    store.writer.patience = 0.05
    store.writer.ledger.connection.execute("PRAGMA busy_timeout = 10")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            recall(store, "k", backend)
        other.execute("ROLLBACK")
    assert backend.asked == 0
    assert recall(store, "k", backend) == ("reply 1", False)


def test_a_full_disk_is_told_to_everyone_and_costs_nothing_that_was_recorded(tmp_path, store):
    async def answer():
        return "x" * 2000

    async def run(first, last):
        asking = (store.recall(f"{number}", "b", answer) for number in range(first, last))
        return await asyncio.gather(*asking, return_exceptions=True)

    assert all(isinstance(outcome, tuple) for outcome in asyncio.run(run(0, 50)))
    (pages,) = store.writer.ledger.connection.execute("PRAGMA page_count").fetchone()
    store.writer.ledger.connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    full = [outcome for outcome in asyncio.run(run(50, 250)) if isinstance(outcome, Unavailable)]
    assert "full" in str(full[0])
    assert {number for (number,) in look(tmp_path, "SELECT key FROM replies")} >= {f"{n}" for n in range(50)}
    store.writer.ledger.connection.execute("PRAGMA max_page_count = 1000000")
    assert all(isinstance(outcome, tuple) for outcome in asyncio.run(run(0, 250)))
    assert store.count()[1] == 250


def test_closing_writes_what_waits_and_ends_the_thread(tmp_path, store):
    async def run():
        await store.record({"k": "reply"}, "b")
        for number in range(100):
            store.note_failure([f"{number}"], "b", "Unavailable")
        store.close()

    asyncio.run(run())
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        asyncio.run(run())
    assert look(tmp_path, "SELECT count(*) FROM failures") == [(100,)]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reply-writer")]


def test_who_waited_in_a_loop_that_is_gone_does_no_harm(store):
    async def leave(cancels):
        task = asyncio.create_task(store.record({"left": "reply"}, "b"))
        await asyncio.sleep(0)
        if cancels:
            task.cancel()

    for number in range(20):
        asyncio.run(leave(number % 2))
    assert recall(store, "k", Backend()) == ("reply 1", False)
    assert store.read("left") == "reply"


# Opening


def test_a_store_of_the_first_version_is_upgraded_where_it_lies(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE)) as old:
        old.executescript(FIRST_TABLES)
    for cached in (False, True):
        with closing(open_replies(tmp_path)) as store:
            assert recall(store, "old", Backend()) == ("kept", True)
            assert recall(store, "new", Backend()) == ("reply 1", cached)
            assert store.count() == (2, 2)
    assert look(tmp_path, "SELECT key, recorded > 0, bytes FROM replies ORDER BY key") == [("new", 1, 7), ("old", 0, 0)]


OPENER = """
import asyncio, sys
from pathlib import Path
from pipelines.services.clients.replies import open_replies
store = open_replies(Path(sys.argv[1]))

async def ask():
    return sys.argv[2]

async def run():
    for number in range(40):
        await store.recall(f"{sys.argv[2]}-{number}", "b", ask)
        reply, _ = await store.recall(f"both-{number}", "b", ask)
        assert reply == store.read(f"both-{number}"), reply

asyncio.run(run())
store.close()
"""


def test_processes_that_open_one_store_at_once_lose_nothing(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE)) as old:
        old.executescript(FIRST_TABLES)
    writers = [subprocess.Popen([sys.executable, "-c", OPENER, str(tmp_path), f"p{n}"], cwd=ROOT) for n in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    with closing(open_replies(tmp_path)) as store:
        asks, replies = store.count()
        assert replies == 3 * 40 + 40 + 1
        assert replies <= asks <= 3 * 40 + 3 * 40 + 1
        assert {store.read(f"both-{number}") for number in range(40)} <= {"p0", "p1", "p2"}


def test_a_file_that_is_no_store_is_damaged(tmp_path):
    (tmp_path / FILE).write_bytes(b"not a database, not a database, not a database" * 40)
    with pytest.raises(CorruptInput, match="synth replies repair"):
        open_replies(tmp_path)


def test_a_damaged_store_is_said_to_be_damaged(tmp_path, store):
    async def answer():
        return "x" * 3000

    async def run():
        for number in range(40):
            await store.recall(f"{number}", "b", answer)

    asyncio.run(run())
    store.close()
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: 6 * 4096] + b"\xff" * (len(whole) - 6 * 4096))
    with closing(open_replies(tmp_path)) as again:
        outcomes = [try_read(again, f"{number}") for number in range(40)]
    assert any(isinstance(outcome, CorruptInput) and "replies repair" in str(outcome) for outcome in outcomes)
    assert {outcome for outcome in outcomes if isinstance(outcome, str)} <= {"x" * 3000}


# Cache epochs


def test_each_renewal_begins_one_epoch_of_the_roles_named_and_no_other(tmp_path):
    folder = tmp_path / "replies"
    assert read_epochs(folder) == {}
    assert renew(folder, ["solver"]) == {"solver": 1}
    assert renew(folder, ["solver", "judge", "solver"]) == {"solver": 2, "judge": 1}
    assert renew(folder, iter(["judge"])) == read_epochs(folder) == {"solver": 2, "judge": 2}
    assert [path.name for path in folder.iterdir()] == [EPOCHS]
    assert [name_epoch("model", epoch) for epoch in (0, 1, 2)] == ["model", "model#1", "model#2"]
    with pytest.raises(ConfigError, match="no role"):
        renew(folder, [])


def test_epochs_of_two_workspaces_that_share_a_database_are_never_the_same(tmp_path):
    drawn = [renew(tmp_path / name, ["solver"], "postgresql://synth@db/synth")["solver"] for name in "ab"]
    assert len({0, 1, *drawn}) == 4
    assert read_epochs(tmp_path / "a") == {"solver": drawn[0]}


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\xff", b"[]", b"null", b'{"solver": 0}', b'{"solver": true}', b'{"solver": "1"}', b'{"solver": 1.5}'],
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path, damaged):
    (tmp_path / EPOCHS).write_bytes(damaged)
    for read in (lambda: read_epochs(tmp_path), lambda: renew(tmp_path, ["solver"])):
        with pytest.raises(CorruptInput, match=EPOCHS):
            read()
    assert (tmp_path / EPOCHS).read_bytes() == damaged
