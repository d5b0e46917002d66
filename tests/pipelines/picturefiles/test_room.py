import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipelines.picturefiles.limits import MAX_PIXELS
from pipelines.picturefiles.room import ROOM, DecodingRoom

SOON = 10.0
"""Seconds after which a test gives up."""


def test_no_more_is_decoded_at_once_than_there_is_room_for():
    room, lock = DecodingRoom(100), threading.Lock()
    inside, most = [0], [0]

    def decode(pixels):
        with room.enter(pixels):
            with lock:
                inside[0] += pixels
                most[0] = max(most[0], inside[0])
            with lock:
                inside[0] -= pixels

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(decode, [10, 40, 90, 100, 1] * 200))
    assert 0 < most[0] <= 100
    assert inside == [0]


def test_what_is_larger_than_the_room_has_it_for_itself():
    room = DecodingRoom(100)
    with room.enter(1_000), ThreadPoolExecutor(1) as pool:
        other = pool.submit(lambda: room.enter(1).__enter__())
        assert not other.done()
        threading.Timer(0.05, room.__class__.enter, (room, 1)).cancel()
    with room.enter(100):
        assert True
