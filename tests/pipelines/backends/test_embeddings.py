import asyncio
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.services.clients.encoder import CHUNK, FILE, CachedEncoder
from pipelines.services.protocols import PictureFile
from tests.pipelines.backends.fake_encoder import FakeEncoder

ROOT = Path(__file__).parents[3]
WORKER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from pipelines.services.clients.encoder import CachedEncoder
from tests.pipelines.backends.fake_encoder import FakeEncoder

class Counting(FakeEncoder):
    async def encode_texts(self, texts):
        rows = await super().encode_texts(texts)
        print(len(texts), flush=True)
        return rows

cached = CachedEncoder(Counting(), Path(sys.argv[1]))
rows = asyncio.run(cached.encode_texts([str(number) for number in range(int(sys.argv[2]))]))
print("sum", float(np.abs(rows).sum()), flush=True)
"""


@pytest.fixture
def paint(tmp_path):
    def paint_one(seed, name=""):
        path = tmp_path / f"{name or seed}.png"
        blocks = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(blocks).save(path)
        return PictureFile(hashlib.sha256(path.read_bytes()).hexdigest(), path)

    return paint_one


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "derived" / "embeddings"


def test_rows_are_the_encoders_own_in_the_order_given(paint, folder):
    pictures = [paint(seed) for seed in (3, 1, 2)]
    expected = asyncio.run(FakeEncoder().encode_pictures(pictures))
    cached = CachedEncoder(FakeEncoder(), folder)
    for _ in range(2):
        np.testing.assert_array_equal(asyncio.run(cached.encode_pictures(pictures)), expected)
    assert (cached.name, cached.identity) == ("fake", "fake-encoder@1")


def test_nothing_is_encoded_twice_within_a_call(paint, folder):
    encoder = FakeEncoder()
    first, second = paint(1), paint(2)
    rows = asyncio.run(CachedEncoder(encoder, folder).encode_pictures([first, second, first, first]))
    assert sorted(encoder.asked) == sorted([first.sha256, second.sha256])
    np.testing.assert_array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[1])


def test_a_picture_is_known_by_its_content_whatever_its_file(paint, folder):
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, folder)
    asyncio.run(cached.encode_pictures([paint(1, "one")]))
    asyncio.run(cached.encode_pictures([paint(1, "another")]))
    assert encoder.calls == 1


def test_a_later_run_encodes_only_what_is_new(folder):
    first, later = FakeEncoder(), FakeEncoder()
    asyncio.run(CachedEncoder(first, folder).encode_texts(["a bridge", "a tower"]))
    asyncio.run(CachedEncoder(later, folder).encode_texts(["a tower", "a mill", "a bridge"]))
    assert later.asked == ["a mill"]


def test_another_encoder_has_rows_of_its_own(folder):
    other = FakeEncoder(identity="fake-encoder@2", grid=3)
    asyncio.run(CachedEncoder(FakeEncoder(), folder).encode_texts(["a bridge"]))
    assert asyncio.run(CachedEncoder(other, folder).encode_texts(["a bridge"])).shape == (1, 27)
    assert other.asked == ["a bridge"]


def test_a_text_is_no_picture_of_that_digest(paint, folder):
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, folder)
    picture = paint(1)
    asyncio.run(cached.encode_texts([picture.sha256]))
    asyncio.run(cached.encode_pictures([picture]))
    assert encoder.calls == 2


def test_half_of_a_surrogate_pair_is_a_text(folder):
    assert asyncio.run(CachedEncoder(FakeEncoder(), folder).encode_texts(["\ud800"])).shape == (1, 48)


def test_nothing_is_asked_for_and_nothing_comes_back(folder):
    cached = CachedEncoder(FakeEncoder(), folder)
    assert asyncio.run(cached.encode_pictures([])).shape == (0, 48)
    assert asyncio.run(cached.encode_texts([])).shape == (0, 48)


def test_two_callers_at_once_have_it_encoded_once(folder):
    async def ask():
        gate = asyncio.Event()
        encoder = FakeEncoder(gate=gate)
        cached = CachedEncoder(encoder, folder)
        tasks = [asyncio.create_task(cached.encode_texts(texts)) for texts in (["a", "b"], ["b", "c"], ["c", "a"])]
        while len(encoder.asked) < 3:
            await asyncio.sleep(0.01)
        gate.set()
        return encoder.asked, await asyncio.gather(*tasks)

    asked, (first, second, third) = asyncio.run(ask())
    assert sorted(asked) == ["a", "b", "c"]
    np.testing.assert_array_equal(first[1], second[0])
    np.testing.assert_array_equal(first[0], third[1])


def test_a_caller_who_gives_up_leaves_the_other_to_encode(folder):
    async def ask():
        gate = asyncio.Event()
        encoder = FakeEncoder(gate=gate)
        cached = CachedEncoder(encoder, folder)
        first = asyncio.create_task(cached.encode_texts(["a"]))
        while not encoder.asked:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(cached.encode_texts(["a"]))
        await asyncio.sleep(0.05)
        first.cancel()
        gate.set()
        rows = await second
        return encoder.asked, rows.shape, first.cancelled()

    assert asyncio.run(ask()) == (["a", "a"], (1, 48), True)


def test_a_picture_that_cannot_be_decoded_fails_and_the_others_are_kept(paint, folder, tmp_path):
    broken = PictureFile("0" * 64, tmp_path / "broken.png")
    broken.path.write_bytes(b"none")
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, folder)
    good = [paint(1), paint(2)]
    with pytest.raises(RecordFailed, match=r"broken\.png"):
        asyncio.run(cached.encode_pictures([good[0], broken, good[1]]))
    encoder.asked.clear()
    asyncio.run(cached.encode_pictures(good))
    assert encoder.asked == []


def test_more_than_a_chunk_comes_back_in_order(folder):
    texts = [str(number) for number in range(3 * CHUNK + 7)]
    encoder = FakeEncoder()
    rows = asyncio.run(CachedEncoder(encoder, folder).encode_texts(texts))
    np.testing.assert_array_equal(rows, asyncio.run(FakeEncoder().encode_texts(texts)))
    assert encoder.calls == 4
    assert sorted(encoder.asked) == sorted(texts)


def test_a_damaged_file_is_told_and_named(folder):
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(b"no database, but long enough to be taken for one" * 100)
    with pytest.raises(CorruptInput, match=FILE):
        asyncio.run(CachedEncoder(FakeEncoder(), folder).encode_texts(["a"]))


@pytest.mark.parametrize("damage", [b"", b"abc", b"\0" * 192, b"\xff" * 192])
def test_a_row_that_is_no_embedding_is_told(folder, damage):
    cached = CachedEncoder(FakeEncoder(), folder)
    asyncio.run(cached.encode_texts(["a"]))
    cached.close()
    with sqlite3.connect(folder / FILE) as connection:
        connection.execute("UPDATE embeddings SET embedding = ?", (damage,))
    connection.close()
    with pytest.raises(CorruptInput, match="no embedding"):
        asyncio.run(cached.encode_texts(["a"]))


def test_a_folder_that_cannot_be_made_is_a_setting_to_change(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="not a folder"):
        asyncio.run(CachedEncoder(FakeEncoder(), tmp_path / "file" / "embeddings").encode_texts(["a"]))


def test_an_encoder_that_is_away_leaves_nothing_under_way(folder):
    class Away(FakeEncoder):
        async def encode_texts(self, texts):
            raise Unavailable("away")

    async def ask():
        cached = CachedEncoder(Away(), folder)
        for _ in range(2):
            with pytest.raises(Unavailable, match="away"):
                await cached.encode_texts(["a", "b"])

    asyncio.run(ask())


def start_worker(folder, count):
    command = [sys.executable, "-c", WORKER, str(folder), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_what_was_recorded_outlives_kill_9(folder):
    count = 200 * CHUNK
    worker = start_worker(folder, count)
    for _ in range(5):
        worker.stdout.readline()
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    encoder = FakeEncoder()
    texts = [str(number) for number in range(count)]
    rows = asyncio.run(CachedEncoder(encoder, folder).encode_texts(texts))
    assert count - len(encoder.asked) >= CHUNK
    np.testing.assert_array_equal(rows[::97], asyncio.run(FakeEncoder().encode_texts(texts[::97])))


def test_two_processes_share_what_they_encode(folder):
    count = 8 * CHUNK
    workers = [start_worker(folder, count) for _ in range(2)]
    sums = [worker.communicate()[0].splitlines()[-1] for worker in workers]
    assert sums[0] == sums[1]
    assert sums[0].startswith("sum")
    late = start_worker(folder, count)
    assert late.communicate()[0].splitlines() == [sums[0]]
    assert [worker.returncode for worker in (*workers, late)] == [0, 0, 0]


def test_an_idle_cache_can_be_closed_and_used_again(folder):
    cached = CachedEncoder(FakeEncoder(), folder)
    cached.close()
    first = asyncio.run(cached.encode_texts(["a"]))
    cached.close()
    cached.close()
    assert np.array_equal(asyncio.run(cached.encode_texts(["a"])), first)
    cached.close()
