"""The encoder without torch: its batches, the pictures it opens, and the settings it refuses."""

import asyncio
import importlib.util
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

from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.services.clients.encoder import ROOM, Batcher, OpenClipEncoder, open_for_model
from pipelines.services.protocols import PictureFile

PATIENCE = 20.0
"""Seconds after which a caller counts as forgotten."""


@dataclass
class FakeModel:
    """Numbers in files' names and texts become embeddings; what is called ``bad`` cannot be decoded."""

    gate: threading.Event = field(default_factory=threading.Event)
    """Closed, nothing is encoded."""
    batches: list[int] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    error: Exception | None = None

    def prepare(self, asked):
        text = asked if isinstance(asked, str) else asked.path.stem
        self.prepared.append(text)
        if text.startswith("bad"):
            raise RecordFailed("picture-undecodable", text)
        if text == "gone":
            raise Unavailable(f"picture {text}: bring it back")
        return float(text)

    def encode_pictures(self, prepared):
        return self._encode(prepared, 1.0)

    def encode_texts(self, prepared):
        return self._encode(prepared, -1.0)

    def _encode(self, prepared, sign):
        assert self.gate.wait(PATIENCE)
        self.batches.append(len(prepared))
        if self.error is not None:
            raise self.error
        return np.array([[sign, number] for number in prepared], dtype=np.float32)


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def batcher(model):
    batcher = Batcher("fake", lambda: model, batch=4, threads=2)
    yield batcher
    model.gate.set()
    batcher.close()


def name(*stems):
    return [PictureFile(str(stem), Path(f"{stem}.png")) for stem in stems]


def ask(batcher, *requests):
    """Return what callers at once get: rows, or the error."""

    async def gather():
        asked = asyncio.gather(*(batcher.encode(request) for request in requests), return_exceptions=True)
        return await asyncio.wait_for(asked, PATIENCE)

    return asyncio.run(gather())


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_rows_come_back_in_order_from_full_batches(batcher, model):
    model.gate.set()
    (rows,) = ask(batcher, name(*range(40)))
    np.testing.assert_array_equal(rows, [[1.0, number] for number in range(40)])
    assert rows.dtype == np.float32
    assert model.batches == [4] * 10


def test_pictures_and_texts_of_callers_at_once_are_told_apart_and_share_batches(batcher, model):
    model.gate.set()
    rows = ask(batcher, name(1, 2), ["3", "4"], *(name(number) for number in range(5, 13)))
    assert [row.tolist() for row in rows[:3]] == [[[1, 1], [1, 2]], [[-1, 3], [-1, 4]], [[1, 5]]]
    assert len(model.batches) <= 5


def test_no_more_is_decoded_ahead_than_there_is_room_for_and_a_caller_who_left_is_dropped(batcher, model):
    async def leave():
        task = asyncio.create_task(batcher.encode(name(*range(1000))))
        await asyncio.to_thread(wait_for, lambda: len(model.prepared) >= ROOM * 4)
        await asyncio.sleep(0.1)
        assert len(model.prepared) <= (ROOM + 1) * 4 + 2
        task.cancel()
        await asyncio.wait([task])
        model.gate.set()
        return await asyncio.wait_for(batcher.encode(name(7)), PATIENCE)

    assert asyncio.run(leave()).tolist() == [[1.0, 7.0]]
    assert len(model.prepared) < 100


def test_a_picture_that_cannot_be_decoded_fails_its_own_caller_alone(batcher, model):
    model.gate.set()
    requests = name(1, 2), name(3, "bad-4", 5, "bad-6"), name(7, "gone", "bad"), name(8)
    good, undecodable, gone, last = ask(batcher, *requests)
    assert (good.shape, last.shape) == ((2, 2), (1, 2))
    assert isinstance(undecodable, RecordFailed)
    assert "bad-4" in str(undecodable)
    assert isinstance(gone, Unavailable)
    assert "bring it back" in str(gone)


def test_after_one_that_failed_nothing_more_is_decoded_for_its_caller(batcher, model):
    model.gate.set()
    assert isinstance(ask(batcher, name("bad", *range(20_000)))[0], RecordFailed)
    assert len(model.prepared) < 20_000


@pytest.mark.parametrize("error", [ConfigError("no such weights"), Unavailable("away"), ZeroDivisionError("defect")])
def test_a_model_that_cannot_be_loaded_is_told_to_all_and_loaded_once(error):
    loads = []

    def load():
        loads.append(1)
        raise error

    batcher = Batcher("fake", load, batch=4, threads=1)
    outcomes = ask(batcher, *(name(number) for number in range(30))) + ask(batcher, name(9))
    assert [type(outcome) for outcome in outcomes] == [type(error)] * 31
    assert loads == [1]
    batcher.close()


@pytest.mark.parametrize("error", [ConfigError("lower encoder.batch"), ZeroDivisionError("defect")])
def test_what_the_model_refuses_is_told_to_whoever_waits(batcher, model, error):
    model.error = error
    model.gate.set()
    assert [type(outcome) for outcome in ask(batcher, name(1), ["2"])] == [type(error)] * 2


def test_a_closed_encoder_refuses_who_waits_and_who_comes(batcher, model):
    async def wait():
        waiting = asyncio.create_task(batcher.encode(name(*range(100))))
        await asyncio.to_thread(wait_for, lambda: model.prepared)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await asyncio.sleep(0.05)
        model.gate.set()
        await asyncio.wait_for(closing, PATIENCE)
        return await asyncio.gather(waiting, batcher.encode(name(1)), return_exceptions=True)

    assert [str(outcome) for outcome in asyncio.run(wait())] == ["encoder fake: it was closed"] * 2


def test_an_encoder_that_was_not_used_has_no_threads_to_end():
    before = threading.active_count()
    batcher = Batcher("fake", FakeModel, batch=4, threads=2)
    assert threading.active_count() == before
    batcher.close()
    batcher.close()


def save(picture, kind, **options):
    target = BytesIO()
    picture.save(target, kind, **options)
    return target.getvalue()


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_jpeg_is_never_opened_smaller_than_the_model_sees_it(width, height):
    shown = open_for_model(save(Image.new("RGB", (width, height)), "JPEG"), 32)
    assert min(shown.size) >= min(32, width, height)
    assert max(shown.size) <= 16 * min(shown.size) + 1


def test_a_large_jpeg_is_opened_reduced():
    sizes = (63, 64, 128, 256, 3000)
    opened = [open_for_model(save(Image.new("L", (size, size)), "JPEG"), 32).width for size in sizes]
    assert opened == [63, 32, 32, 32, 375]


def test_of_a_strip_the_middle_stays():
    wide = Image.new("RGB", (3000, 10), (255, 0, 0))
    wide.paste((0, 0, 255), (1000, 0, 2000, 10))
    shown = open_for_model(save(wide, "PNG"), 32)
    assert shown.size == (160, 10)
    assert shown.getcolors() == [(1600, (0, 0, 255))]


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"\xff\xd8\xff\xe0 cut"])
def test_bytes_that_are_no_picture_are_refused(data):
    with pytest.raises(RecordFailed, match="picture-"):
        open_for_model(data, 32)


@pytest.mark.skipif(importlib.util.find_spec("open_clip") is not None, reason="the extra clip is installed here")
def test_without_the_extra_the_setting_is_refused_with_what_to_install():
    with pytest.raises(ConfigError, match=r"synth\[clip\]"):
        OpenClipEncoder("ViT-B-32", "openai")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(({"device": device}, "auto, cpu, cuda and cuda:N") for device in ("gpu", "cuda:", "cuda:x", "cpu:0", "")),
        ({"precision": "fp8"}, "fp32, bf16 and fp16"),
        ({"device": "cpu", "precision": "fp16"}, "not on a processor"),
        ({"pretrained": "weights.pt"}, "no such file"),
        ({"pretrained": "folder/weights"}, "no such file"),
        ({"pretrained": "/nowhere/model.safetensors"}, "no such file"),
        ({"pretrained": ""}, "is empty"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        OpenClipEncoder(**{"model": "ViT-B-32", "pretrained": "openai", **settings})


def test_torch_is_not_imported_with_the_adapter():
    program = "import sys, pipelines.services.clients.encoder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3]).returncode == 0
