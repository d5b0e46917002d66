"""The encoder without torch: its batches, the pictures it opens, the settings it refuses; and its cache."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.services.clients import encoder as module
from pipelines.services.clients.encoder import CHUNK, FILE, Architecture, CachedEncoder, OpenClipEncoder, open_for_model
from pipelines.services.protocols import PictureFile
from tests.pipelines.services.clients.fake_encoder import FakeEncoder

ROOT = Path(__file__).parents[4]
PATIENCE = 300.0
"""Seconds after which a caller counts as forgotten."""
WORKER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from pipelines.services.clients.encoder import CachedEncoder
from tests.pipelines.services.clients.fake_encoder import FakeEncoder

class Counting(FakeEncoder):
    async def encode_texts(self, texts):
        rows = await super().encode_texts(texts)
        print(len(texts), flush=True)
        return rows

cached = CachedEncoder(Counting(), Path(sys.argv[1]))
rows = asyncio.run(cached.encode_texts([str(number) for number in range(int(sys.argv[2]))]))
print("sum", float(np.abs(rows).sum()), flush=True)
"""


@dataclass
class FakeModel:
    """Numbers in file names and texts become embeddings; what is called ``bad`` cannot be decoded."""

    gate: threading.Event = field(default_factory=threading.Event)
    """Nothing is encoded before it is set."""
    batches: list[int] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    error: Exception | None = None

    def open_picture(self, picture):
        name = picture.path.stem
        self.opened.append(name)
        if name.startswith("bad"):
            raise RecordFailed("picture-undecodable", name)
        return float(name)

    def encode_pictures(self, pixels):
        return self.encode(pixels, 1.0)

    def encode_texts(self, texts):
        return self.encode([float(text) for text in texts], -1.0)

    def encode(self, numbers, sign):
        assert self.gate.wait(PATIENCE)
        self.batches.append(len(numbers))
        if self.error is not None:
            raise self.error
        return np.array([[sign, number] for number in numbers], dtype=np.float32)


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def make(monkeypatch):
    """Make an encoder of batches of four whose model is what ``load`` returns."""
    made = []

    def make_one(load):
        monkeypatch.setattr(module, "read_architecture", lambda name: Architecture(name, {}, {}))
        monkeypatch.setattr(module, "ClipModel", load)
        made.append(OpenClipEncoder("fake", "weights", batch=4))
        return made[-1]

    yield make_one
    for encoder in made:
        encoder.close()


@pytest.fixture
def encoder(make, model):
    yield make(lambda *_: model)
    model.gate.set()


def name(*stems):
    return [PictureFile(str(stem), Path(f"{stem}.png")) for stem in stems]


def ask(*requests):
    """Return what callers at once get: rows, or the error."""

    async def gather():
        return await asyncio.wait_for(asyncio.gather(*(each() for each in requests), return_exceptions=True), PATIENCE)

    return asyncio.run(gather())


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_rows_come_back_in_order_from_full_batches_of_each_caller(encoder, model):
    model.gate.set()
    pictures, texts, few, none = ask(
        lambda: encoder.encode_pictures(name(*range(40))),
        lambda: encoder.encode_texts(["3", "4"]),
        lambda: encoder.encode_pictures(name(*range(5))),
        lambda: encoder.encode_texts([]),
    )
    np.testing.assert_array_equal(pictures, [[1.0, number] for number in range(40)])
    assert (pictures.dtype, texts.tolist(), few.shape, len(none)) == (np.float32, [[-1, 3], [-1, 4]], (5, 2), 0)
    assert model.batches == [*[4] * 10, 2, 4, 1]


def test_a_picture_that_cannot_be_decoded_fails_its_own_caller_and_ends_its_request(encoder, model):
    model.gate.set()
    good, bad, last = ask(
        lambda: encoder.encode_pictures(name(1, 2)),
        lambda: encoder.encode_pictures(name(3, "bad-4", 5, "bad-6", *range(10, 100))),
        lambda: encoder.encode_pictures(name(8)),
    )
    assert (good.shape, last.shape) == ((2, 2), (1, 2))
    assert isinstance(bad, RecordFailed)
    assert "bad-4" in str(bad)
    assert len(model.opened) < 20


@pytest.mark.parametrize("error", [ConfigError("no such weights"), Unavailable("away"), ZeroDivisionError("defect")])
def test_a_model_that_cannot_be_loaded_fails_every_caller_and_is_loaded_once(make, error):
    loads = []

    def load(*_):
        loads.append(1)
        raise error

    encoder = make(load)
    outcomes = ask(*[lambda: encoder.encode_pictures(name(1))] * 9) + ask(lambda: encoder.encode_texts(["9"]))
    assert [type(outcome) for outcome in outcomes] == [type(error)] * 10
    assert loads == [1]


def test_an_unused_encoder_has_no_threads_and_does_not_import_torch(make):
    before = threading.active_count()
    make(lambda *_: None).close()
    assert threading.active_count() == before
    program = "import sys, pipelines.services.clients.encoder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


def save(picture, kind, **options):
    target = BytesIO()
    picture.save(target, kind, **options)
    return target.getvalue()


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_jpeg_is_never_opened_smaller_than_the_model_needs_it(width, height):
    shown = open_for_model(save(Image.new("RGB", (width, height)), "JPEG"), 32)
    assert min(shown.size) >= min(32, width, height)
    assert max(shown.size) <= 16 * min(shown.size) + 1


def test_of_a_strip_the_middle_is_kept():
    wide = Image.new("RGB", (3000, 10), (255, 0, 0))
    wide.paste((0, 0, 255), (1000, 0, 2000, 10))
    shown = open_for_model(save(wide, "PNG"), 32)
    assert shown.size == (160, 10)
    assert shown.getcolors() == [(1600, (0, 0, 255))]


@pytest.mark.parametrize(
    ("pretrained", "said"),
    [
        ("weights.pt", "no such file"),
        ("folder/weights", "no such file"),
        ("", "is empty"),
    ],
)
def test_weights_that_cannot_work_are_refused(pretrained, said):
    with pytest.raises(ConfigError, match=said):
        OpenClipEncoder("ViT-B-32", pretrained)


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


def recall(cached, *requests):
    """Ask for texts one after another."""
    return [asyncio.run(cached.encode_texts(texts)) for texts in requests]


def test_cached_rows_are_the_encoders_own_in_the_order_given(paint, folder):
    first, second, third = (paint(seed) for seed in (3, 1, 2))
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, folder)
    cached.close()
    asked = [first, second, first, third]
    for _ in range(2):
        np.testing.assert_array_equal(
            asyncio.run(cached.encode_pictures(asked)), asyncio.run(FakeEncoder().encode_pictures(asked))
        )
    assert sorted(encoder.asked) == sorted(each.sha256 for each in (first, second, third))
    assert (cached.name, cached.identity) == ("fake", "fake-encoder@1")
    cached.close()
    asyncio.run(cached.encode_pictures([paint(1, "the same content in another file")]))
    assert encoder.calls == 1
    assert len(asyncio.run(cached.encode_pictures([]))) == 0


def test_a_later_run_encodes_only_what_is_new(folder):
    first, later, other = FakeEncoder(), FakeEncoder(), FakeEncoder(identity="fake-encoder@2", grid=3)
    recall(CachedEncoder(first, folder), ["a bridge", "a tower"])
    recall(CachedEncoder(later, folder), ["a tower", "a mill", "a bridge"])
    assert later.asked == ["a mill"]
    assert [rows.shape for rows in recall(CachedEncoder(other, folder), ["a bridge"], ["\ud800"])] == [(1, 27)] * 2
    assert other.asked == ["a bridge", "\ud800"]


def test_callers_at_once_encode_each_text_once(folder):
    encoder = FakeEncoder()
    cached = CachedEncoder(encoder, folder)

    async def ask_all(*texts):
        encoder.gate = asyncio.Event()
        tasks = [asyncio.create_task(cached.encode_texts(each)) for each in texts]
        await asyncio.sleep(0.05)
        encoder.gate.set()
        return await asyncio.gather(*tasks)

    first, second, third = asyncio.run(ask_all("ab", "bc", "ca"))
    assert sorted(encoder.asked) == ["a", "b", "c"]
    np.testing.assert_array_equal(first[1], second[0])
    np.testing.assert_array_equal(first[0], third[1])
    # Each stage has an event loop of its own.
    asyncio.run(ask_all("de", "ef", "fd"))
    assert sorted(encoder.asked) == ["a", "b", "c", "d", "e", "f"]


def test_more_than_a_chunk_comes_back_in_order(folder):
    texts = [str(number) for number in range(3 * CHUNK + 7)]
    encoder = FakeEncoder()
    (rows,) = recall(CachedEncoder(encoder, folder), texts)
    np.testing.assert_array_equal(rows, asyncio.run(FakeEncoder().encode_texts(texts)))
    assert (encoder.calls, sorted(encoder.asked)) == (4, sorted(texts))


def test_a_damaged_file_is_refused_with_its_name(folder):
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(b"no database, but long enough to be taken for one" * 100)
    with pytest.raises(CorruptInput, match=FILE):
        recall(CachedEncoder(FakeEncoder(), folder), ["a"])


def start_worker(folder, count):
    command = [sys.executable, "-c", WORKER, str(folder), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_what_was_recorded_outlives_kill_9(folder):
    count = 100 * CHUNK
    worker = start_worker(folder, count)
    for _ in range(5):
        worker.stdout.readline()
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    encoder = FakeEncoder()
    texts = [str(number) for number in range(count)]
    (rows,) = recall(CachedEncoder(encoder, folder), texts)
    assert count - len(encoder.asked) >= CHUNK
    np.testing.assert_array_equal(rows[::97], asyncio.run(FakeEncoder().encode_texts(texts[::97])))
