"""A byte of the ledger that a disk changed: told, never used; what is whole is saved."""

import asyncio
import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from pipelines.errors import CorruptInput
from pipelines.services.clients.ledger import check_ledger, repair_ledger
from pipelines.services.clients.replies import open_replies
from pipelines.services.clients.sqlite import BACKUP, FILE

COUNT = 60


def name_reply(number):
    return f"réponse {number} " + "word " * (number * 7 % 400)


async def ask_all(store, count=COUNT):
    """Return the replies, and how many of them were asked for."""
    asked = []

    async def recall(number):
        async def ask():
            asked.append(number)
            return name_reply(number)

        return (await store.recall(f"{number:064x}", f"model-{number % 3}@1", ask))[0]

    return [await recall(number) for number in range(count)], len(asked)


def fill(folder, count=COUNT):
    with closing(open_replies(folder)) as store:
        return asyncio.run(ask_all(store, count))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    fill(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "replies")


def edit(folder, statement, *values):
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as store:
        store.execute(statement, values)


def flip(path, place, bit):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def test_a_sound_ledger_is_sound_and_stays_as_it_is(folder):
    before = (folder / FILE).read_bytes()
    assert check_ledger(folder).sound
    assert check_ledger(folder).replies == COUNT
    assert repair_ledger(folder).aside is None
    assert (folder / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("reply", b"r\xff\xfe no text"),
        ("reply", "another reply"),
        ("backend", "another model"),
        ("checksum", 1),
        ("checksum", "no number"),
        ("reply", ""),
    ],
)
def test_a_changed_row_is_told_and_never_used_and_the_rest_is_saved(folder, column, value):
    held = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    edit(folder, f"UPDATE replies SET {column} = {held} WHERE key = ?", value, f"{7:064x}")
    with pytest.raises(CorruptInput, match="synth replies repair"):
        fill(folder)
    found = check_ledger(folder)
    assert (found.replies, sum(found.damaged.values())) == (COUNT - 1, 1)
    repair = repair_ledger(folder)
    assert repair.saved == COUNT - 1
    assert (repair.aside / FILE).is_file()
    assert check_ledger(folder).sound
    replies, asked = fill(folder)
    assert replies == [name_reply(number) for number in range(COUNT)]
    assert asked == 1


def test_a_run_that_meets_an_undecodable_byte_fails_every_time_with_a_message_and_never_hangs(folder):
    edit(folder, "UPDATE replies SET reply = CAST(x'ff' AS TEXT) WHERE key = ?", f"{3:064x}")
    for _ in range(2):
        with closing(open_replies(folder)) as store:
            with pytest.raises(CorruptInput, match="synth replies repair"):
                asyncio.run(ask_all(store))
            with pytest.raises(CorruptInput, match="synth replies repair"):
                store.read(f"{3:064x}")
            assert store.read(f"{4:064x}") == name_reply(4)


@pytest.mark.parametrize("place", ["header", "schema", "leaf", "half", "end"])
def test_a_damaged_file_is_told_and_what_can_be_read_is_saved(folder, place):
    path = folder / FILE
    data = bytearray(path.read_bytes())
    start, length = {
        "header": (0, 100),
        "schema": (100, 3996),
        "leaf": (8 * 4096, 4096),
        "half": (len(data) // 2, len(data)),
        "end": (len(data) - 4096, 4096),
    }[place]
    data[start : start + length] = b"\xa5" * len(data[start : start + length])
    path.write_bytes(data)
    assert not check_ledger(folder).sound
    repair = repair_ledger(folder)
    assert repair.saved >= (COUNT // 4 if place == "half" else COUNT - 20)
    assert check_ledger(folder).sound
    replies, asked = fill(folder)
    assert replies == [name_reply(number) for number in range(COUNT)]
    assert asked == COUNT - repair.saved


def test_a_flipped_bit_is_never_another_reply_and_always_mended(whole, tmp_path):
    """Wherever it is: the run goes on with the right replies, or says what to do, and after the repair goes on."""
    rng = random.Random(4)
    size = (whole / FILE).stat().st_size
    told = mended = 0
    for number in range(40):
        folder = shutil.copytree(whole, tmp_path / str(number))
        flip(folder / FILE, rng.randrange(100 if number < 8 else size), rng.randrange(8))
        try:
            replies, _ = fill(folder)
        except CorruptInput as error:
            told += "synth replies repair" in str(error)
            mended += 1
            repair_ledger(folder)
            replies, _ = fill(folder)
        assert replies == [name_reply(number) for number in range(COUNT)]
        shutil.rmtree(folder)
    assert told == mended > 10


def test_an_older_store_is_migrated_once_with_a_back_up(folder):
    edit(folder, "ALTER TABLE replies DROP COLUMN checksum")
    edit(folder, "PRAGMA user_version=0")
    replies, asked = fill(folder)
    assert (replies[5], asked) == (name_reply(5), 0)
    assert check_ledger(folder).sound
    with closing(sqlite3.connect(folder / BACKUP)) as backup:
        assert "checksum" not in {row[1] for row in backup.execute("PRAGMA table_info(replies)")}
        assert backup.execute("SELECT count(*) FROM replies").fetchone() == (COUNT,)
    (folder / BACKUP).unlink()
    assert fill(folder)[1] == 0
    assert not (folder / BACKUP).exists()


def test_a_new_store_needs_no_back_up(whole):
    assert not (whole / BACKUP).exists()


def test_a_ledger_whose_tables_are_gone_is_never_begun_anew(folder):
    edit(folder, "DROP TABLE replies")
    with pytest.raises(CorruptInput, match="synth replies repair"):
        open_replies(folder)
