import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipelines.pixels import ROOM, DecodingRoom, open_pixels
from tests.hostile_pictures import SIDE, draw, encode

A_WHILE, SOON = 0.1, 10.0
"""Seconds in which nothing may happen, and in which something must."""


@pytest.fixture
def enter():
    """Enter a room in a thread; return what is set once inside, and what ends the stay when it is set."""
    threads = []

    def start(room, pixels):
        entered, leave = threading.Event(), threading.Event()

        def stay():
            with room.enter(pixels):
                entered.set()
                leave.wait(SOON)

        threads.append(threading.Thread(target=stay))
        threads[-1].start()
        return entered, leave

    yield start
    for thread in threads:
        thread.join(SOON)


def test_no_more_is_decoded_at_once_than_there_is_room_for():
    room, lock, inside, counts = DecodingRoom(100), threading.Lock(), [], []

    def decode(pixels):
        with room.enter(pixels):
            with lock:
                inside.append(pixels)
                counts.append(sum(inside))
            with lock:
                inside.remove(pixels)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(decode, [10, 40, 90, 100, 1] * 200))
    assert len(counts) == 1_000
    assert max(counts) <= 100


def test_what_is_larger_than_the_room_has_it_for_itself(enter):
    room = DecodingRoom(100)
    large, leave = enter(room, 1_000)
    assert large.wait(SOON)
    small, end = enter(room, 1)
    assert not small.wait(A_WHILE)
    leave.set()
    assert small.wait(SOON)
    end.set()


def test_who_came_later_does_not_pass_a_large_one(enter):
    room = DecodingRoom(100)
    first, leave_first = enter(room, 60)
    assert first.wait(SOON)
    large, leave_large = enter(room, 100)
    assert not large.wait(A_WHILE)
    small, leave_small = enter(room, 1)
    assert not small.wait(A_WHILE)
    leave_first.set()
    assert large.wait(SOON)
    assert not small.is_set()
    leave_large.set()
    assert small.wait(SOON)
    leave_small.set()


def test_a_picture_that_cannot_be_decoded_leaves_its_room():
    room = DecodingRoom(100)
    for _ in range(3):
        with pytest.raises(OSError, match="cut"), room.enter(100):
            raise OSError("cut")


def test_pictures_wait_for_room(enter):
    held, leave = enter(ROOM, ROOM.pixels)
    assert held.wait(SOON)
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(open_pixels, encode(draw()))
        assert not threading.Event().wait(A_WHILE)
        assert not opened.done()
        leave.set()
        assert opened.result(SOON).size == SIDE
