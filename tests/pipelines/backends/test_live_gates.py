import asyncio
import time

import pytest

from pipelines.errors import RateLimited
from pipelines.services.clients.http import LONGEST_WAIT, HttpClient, RateLimiter

EARLY = 0.002
"""Seconds by which a loop may wake too early."""


async def pass_through(gate, seconds=0.0):
    async with gate.enter():
        started = time.monotonic()
        await asyncio.sleep(seconds)
        return started


def test_requests_begin_no_faster_than_the_rate():
    gate = RateLimiter("service", 50.0, 100)

    async def ask_many():
        return sorted(await asyncio.gather(*(pass_through(gate) for _ in range(8))))

    before = time.monotonic()
    starts = asyncio.run(ask_many())
    # However late one comes on a busy machine, none comes before its time.
    assert all(start - before > number * 0.02 - EARLY for number, start in enumerate(starts))


def test_places_are_given_back_whatever_happens():
    gate = RateLimiter("service", 1000.0, 2)

    async def fail():
        async with gate.enter():
            raise ValueError

    async def ask_many():
        waiting = [asyncio.create_task(pass_through(gate, 0.02)) for _ in range(10)]
        failing = [asyncio.create_task(fail()) for _ in range(10)]
        await asyncio.sleep(0.005)
        for task in waiting[1::2]:
            task.cancel()
        return await asyncio.gather(*waiting, *failing, return_exceptions=True)

    found = asyncio.run(ask_many())
    assert len(found) == 20
    assert gate.in_flight == 0


def test_one_who_is_cancelled_just_as_it_is_let_in_passes_its_place_on():
    gate = RateLimiter("service", 1000.0, 1)

    async def ask_many():
        first = asyncio.create_task(pass_through(gate, 0.01))
        await asyncio.sleep(0)
        second = asyncio.create_task(pass_through(gate))
        third = asyncio.create_task(pass_through(gate))
        first.add_done_callback(lambda _: second.cancel())
        return await asyncio.gather(first, second, third, return_exceptions=True)

    async def bounded():
        return await asyncio.wait_for(ask_many(), 5.0)

    found = asyncio.run(bounded())
    assert isinstance(found[2], float)
    assert gate.in_flight == 0


def test_one_who_is_told_to_wait_makes_all_wait():
    gate = RateLimiter("service", 1000.0, 10)
    gate.hold(0.05)
    before = time.monotonic()
    assert asyncio.run(pass_through(gate)) - before >= 0.05


def test_nobody_waits_for_longer_than_a_minute():
    gate = RateLimiter("service", 1000.0, 10)
    gate.hold(LONGEST_WAIT + 30)
    with pytest.raises(RateLimited, match="service asked for a pause of 90 s more") as caught:
        asyncio.run(pass_through(gate))
    assert caught.value.retry_after > LONGEST_WAIT
    assert gate.in_flight == 0


@pytest.mark.parametrize("seconds", [0.05, LONGEST_WAIT + 30])
def test_how_long_one_waits_is_said_for_each_gate(seconds):
    gate = RateLimiter("service", 1000.0, 10, longest=seconds / 2)
    gate.hold(seconds)
    with pytest.raises(RateLimited, match="service asked for a pause"):
        asyncio.run(pass_through(gate))
    assert HttpClient(longest=seconds).find_limiter("http://service/").longest == seconds


def test_gates_that_nobody_needs_are_forgotten_and_those_in_use_are_not():
    client = HttpClient(rate=1e6)
    held = client.find_limiter("http://held/")
    held.hold(1000.0)
    for number in range(10_000):
        client.find_limiter(f"http://host{number}/")
    assert len(client.limiters) < 5000
    assert client.find_limiter("http://held/") is held
