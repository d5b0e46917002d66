import asyncio
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.services.clients.encoder import ROOM, EncodingEngine
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
    threads: set[int] = field(default_factory=set)

    def prepare(self, asked):
        text = asked if isinstance(asked, str) else asked.path.stem
        self.prepared.append(text)
        if text.startswith("bad"):
            raise RecordFailed("picture-undecodable", text)
        if text == "gone":
            raise Unavailable(f"picture {text}: bring it back")
        if text == "defect":
            raise ZeroDivisionError(text)
        return np.array([float(text)])

    def encode_pictures(self, prepared):
        return self._encode(prepared, 1.0)

    def encode_texts(self, prepared):
        return self._encode(prepared, -1.0)

    def _encode(self, prepared, sign):
        assert self.gate.wait(PATIENCE)
        self.batches.append(len(prepared))
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        return np.array([[sign, row[0]] for row in prepared], dtype=np.float32)


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def engine(model):
    engine = EncodingEngine("fake", lambda: model, batch=4, threads=2)
    yield engine
    model.gate.set()
    engine.close()


def name(*stems):
    return [PictureFile(str(stem), Path(f"{stem}.png")) for stem in stems]


def ask(engine, asked):
    return engine.ask(asked).result(PATIENCE)


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_rows_come_back_in_the_order_asked_for(engine, model):
    model.gate.set()
    rows = ask(engine, name(*range(50)))
    np.testing.assert_array_equal(rows, [[1.0, number] for number in range(50)])
    assert rows.dtype == np.float32


def test_pictures_and_texts_share_a_line_and_are_told_apart(engine, model):
    model.gate.set()
    futures = [engine.ask(name(1, 2)), engine.ask(["3", "4"])]
    rows = [future.result(PATIENCE).tolist() for future in futures]
    assert rows == [[[1.0, 1.0], [1.0, 2.0]], [[-1.0, 3.0], [-1.0, 4.0]]]


def test_a_long_request_is_encoded_in_full_batches_by_one_thread(engine, model):
    future = engine.ask(name(*range(40)))
    model.gate.set()
    future.result(PATIENCE)
    assert model.batches == [4] * 10
    assert len(model.threads) == 1


def test_callers_who_wait_share_a_batch(engine, model):
    futures = [engine.ask(name(0))]
    wait_for(lambda: len(model.prepared) == 1)
    futures += [engine.ask(name(number)) for number in range(1, 9)]
    wait_for(lambda: len(model.prepared) == 9)
    model.gate.set()
    assert [future.result(PATIENCE).tolist() for future in futures] == [[[1.0, number]] for number in range(9)]
    assert len(model.batches) <= 4


def test_no_more_is_decoded_ahead_than_there_is_room_for(engine, model):
    future = engine.ask(name(*range(1000)))
    wait_for(lambda: len(model.prepared) >= ROOM * 4)
    time.sleep(0.1)
    assert len(model.prepared) <= (ROOM + 1) * 4
    model.gate.set()
    assert future.result(PATIENCE).shape == (1000, 2)


def test_a_short_request_does_not_wait_behind_a_long_one(engine, model):
    long = engine.ask(name(*range(10_000)))
    short = engine.ask(name(1, 2, 3))
    model.gate.set()
    short.result(PATIENCE)
    assert not long.done()
    long.cancel()


def test_a_picture_that_cannot_be_decoded_fails_its_own_caller_alone(engine, model):
    futures = [engine.ask(name(1, 2)), engine.ask(name(3, "bad-4", 5)), engine.ask(name(6))]
    model.gate.set()
    assert futures[0].result(PATIENCE).shape == (2, 2)
    assert futures[2].result(PATIENCE).shape == (1, 2)
    with pytest.raises(RecordFailed, match="bad-4"):
        futures[1].result(PATIENCE)


def test_a_file_that_is_gone_is_said_to_be_away_to_its_own_caller_alone(engine, model):
    futures = [engine.ask(name(1, "gone", "bad")), engine.ask(name(2))]
    model.gate.set()
    with pytest.raises(Unavailable, match="bring it back"):
        futures[0].result(PATIENCE)
    assert futures[1].result(PATIENCE).shape == (1, 2)
    assert ask(engine, name(3)).shape == (1, 2)


def test_of_several_that_cannot_be_decoded_the_first_is_named(engine, model):
    model.gate.set()
    for _ in range(20):
        with pytest.raises(RecordFailed, match="bad-2"):
            ask(engine, name(1, "bad-2", 3, "bad-4", "bad-5", 6))


def test_after_one_that_failed_nothing_more_is_decoded_for_its_caller(engine, model):
    model.gate.set()
    with pytest.raises(RecordFailed):
        ask(engine, name("bad", *range(1000)))
    assert len(model.prepared) < 10


def test_for_a_caller_who_gave_up_nothing_more_is_decoded(engine, model):
    future = engine.ask(name(*range(10_000)))
    wait_for(lambda: len(model.prepared) >= ROOM * 4)
    assert future.cancel()
    model.gate.set()
    assert ask(engine, name(7)).tolist() == [[1.0, 7.0]]
    assert len(model.prepared) < 100


def test_any_number_of_event_loops_share_an_engine(engine, model):
    model.gate.set()
    rows = {}

    async def ask_one(number):
        return (await asyncio.wrap_future(engine.ask(name(number)))).tolist()

    def run(number):
        rows[number] = asyncio.run(ask_one(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert rows == {number: [[1.0, number]] for number in range(8)}


@pytest.mark.parametrize("error", [ConfigError("no such weights"), Unavailable("cannot be fetched")])
def test_a_model_that_cannot_be_loaded_is_told_to_all_and_loaded_once(error):
    loads = []

    def load():
        loads.append(1)
        time.sleep(0.05)
        raise error

    engine = EncodingEngine("fake", load, batch=4, threads=1)
    futures = [engine.ask(name(number)) for number in range(3)]
    for future in futures:
        with pytest.raises(type(error), match=str(error)):
            future.result(PATIENCE)
    with pytest.raises(type(error), match=str(error)):
        ask(engine, name(9))
    assert loads == [1]
    engine.close()


def test_what_the_model_refuses_is_told_to_whoever_waits(engine, model):
    model.error = ConfigError("lower encoder.batch")
    model.gate.set()
    with pytest.raises(ConfigError, match="lower"):
        ask(engine, name(1))


def test_a_closed_engine_refuses_who_waits_and_who_comes(engine, model):
    future = engine.ask(name(*range(100)))
    wait_for(lambda: model.prepared)
    closing = threading.Thread(target=engine.close)
    closing.start()
    with pytest.raises(Unavailable, match="closed"):
        future.result(PATIENCE)
    model.gate.set()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    with pytest.raises(Unavailable, match="closed"):
        ask(engine, name(1))


def test_an_engine_nobody_asked_has_no_threads_to_end():
    before = threading.active_count()
    engine = EncodingEngine("fake", FakeModel, batch=4, threads=2)
    assert threading.active_count() == before
    engine.close()
    engine.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_where_pictures_are_decoded_leaves_nobody_waiting(engine, model):
    model.gate.set()
    with pytest.raises(Unavailable, match="ended early"):
        ask(engine, name(1, "defect", 3))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_of_the_model_leaves_nobody_waiting(engine, model):
    model.error = ZeroDivisionError("defect")
    model.gate.set()
    with pytest.raises(Unavailable, match="ended early"):
        ask(engine, name(1))
