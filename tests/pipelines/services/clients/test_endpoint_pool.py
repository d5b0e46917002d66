"""What is known of an address and who waits for one; times are set by hand where they decide."""

import asyncio
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.settings import ModelConfig
from pipelines.services.clients.chat import (
    DEAD_AFTER,
    LONGEST_PAUSE,
    Endpoint,
    EndpointPool,
    RequestOutcome,
    choose_endpoint,
    make_pool,
)

ANSWERED, FAILED, GONE = (
    RequestOutcome("answered"),
    RequestOutcome("failed", said="HTTP 500"),
    RequestOutcome("gone", said="refused"),
)
BUSY, SILENT, UNKNOWN = (
    RequestOutcome("busy", said="HTTP 429"),
    RequestOutcome("silent", said="nothing"),
    RequestOutcome("unknown"),
)


def make_settings(url, *more, **settings):
    return ModelConfig.model_construct(name="tiny", base_url=(url, *more), **settings)


def make_endpoint(limit: float = 16.0, most: int = 64, **settings) -> Endpoint:
    return Endpoint("http://a/v1", most, limit, **settings)


def end_all(endpoint, tickets, outcome, now):
    for ticket in tickets:
        endpoint.end(ticket, outcome, now)


def test_the_limit_grows_by_an_answer_and_is_halved_once_a_round_trip():
    endpoint, tickets = make_endpoint(limit=4.0, most=9), []
    for _ in range(12):
        tickets += [endpoint.take(0.0) for _ in range(int(endpoint.limit) - endpoint.in_flight)]
        endpoint.end(tickets.pop(), ANSWERED, 0.0)
    assert endpoint.limit == 9.0
    end_all(endpoint, tickets[:5], BUSY, 1.0)
    endpoint.end(tickets[5], SILENT, 1.5)
    assert endpoint.limit == 4.5
    endpoint.end(endpoint.take(2.0), SILENT, 3.0)
    endpoint.end(endpoint.take(4.0), FAILED, 4.0)
    assert endpoint.limit == 2.25


def test_an_address_is_left_alone_for_as_long_as_it_asks():
    endpoint = make_endpoint()
    endpoint.end(endpoint.take(0.0), RequestOutcome("busy", 7.0), 1.0)
    assert [endpoint.has_room(now) for now in (7.9, 8.0)] == [False, True]
    assert [endpoint.find_next(now) for now in (1.0, 8.0)] == [8.0, math.inf]


def test_failures_in_a_row_are_taken_for_an_address_that_is_away():
    endpoint = make_endpoint()
    for now in range(DEAD_AFTER - 1):
        endpoint.end(endpoint.take(float(now)), FAILED, float(now))
    assert not endpoint.rounds
    endpoint.end(endpoint.take(9.0), ANSWERED, 9.0)
    for now in range(10, 10 + DEAD_AFTER):
        assert not endpoint.rounds
        endpoint.end(endpoint.take(float(now)), FAILED, float(now))
    assert endpoint.rounds
    endpoint.end(endpoint.take(100.0), UNKNOWN, 100.0)
    assert endpoint.rounds
    assert endpoint.has_room(100.0)
    endpoint.end(endpoint.take(101.0), ANSWERED, 101.0)
    assert (endpoint.rounds, endpoint.troubled_since) == (0, math.inf)


def test_an_address_that_is_away_is_probed_by_one_request_at_a_time_with_growing_pauses():
    endpoint = make_endpoint(pause=1.0)
    endpoint.end(endpoint.take(0.0), GONE, 0.0)
    pauses = [endpoint.away_until]
    for _ in range(10):
        now = endpoint.away_until
        assert not endpoint.has_room(now - 0.01)
        probe = endpoint.take(now)
        assert probe.probe
        assert not endpoint.has_room(now + 100.0)
        assert endpoint.find_next(now) == math.inf
        endpoint.end(probe, SILENT, now + 5.0)
        pauses.append(endpoint.away_until - now - 5.0)
    assert all(0.5 * 2**index <= pause <= 2**index for index, pause in enumerate(pauses[:5]))
    assert max(pauses) <= LONGEST_PAUSE


def test_failures_of_requests_sent_before_an_address_was_given_up_change_nothing():
    endpoint = make_endpoint()
    tickets = [endpoint.take(0.0) for _ in range(16)]
    end_all(endpoint, tickets[:DEAD_AFTER], FAILED, 1.0)
    first = endpoint.away_until
    end_all(endpoint, tickets[DEAD_AFTER:], FAILED, 1.2)
    assert endpoint.away_until == first


def test_the_least_loaded_address_is_chosen_before_one_to_be_probed_and_one_that_failed_the_request():
    wide, narrow, away = make_endpoint(), make_endpoint(limit=4.0), make_endpoint()
    away.end(away.take(0.0), GONE, 0.0)
    every, now = (wide, narrow, away), 100.0
    assert choose_endpoint(every, wide, now) is narrow
    assert choose_endpoint((wide,), wide, now) is wide
    for _ in range(4):
        wide.take(now)
    assert [choose_endpoint(every, None, now).take(now).endpoint for _ in range(4)] == [narrow] * 4
    assert choose_endpoint((narrow,), None, now) is None
    assert choose_endpoint(every, None, now) is wide
    for _ in range(4):
        wide.take(now)
    # Only a first try is risked on a probe.
    assert [choose_endpoint(every, avoided, now) for avoided in (None, narrow)] == [away, wide]


def go_round(
    endpoints: tuple[Endpoint, ...], demand: int, outcomes: dict[Endpoint, RequestOutcome], now: float
) -> Counter:
    """Send so many requests at once, end them after a second, and return how many each address answered."""
    sent = []
    while len(sent) < demand and (chosen := choose_endpoint(endpoints, None, now)) is not None:
        sent.append(chosen.take(now))
    answered = Counter()
    for ticket in sent:
        outcome = outcomes.get(ticket.endpoint, ANSWERED)
        ticket.endpoint.end(ticket, outcome, now + 1.0)
        answered[ticket.endpoint] += outcome is ANSWERED
    return answered


@pytest.mark.parametrize("demand", [24, 90, 256])
@pytest.mark.parametrize("trouble", [GONE, FAILED, SILENT], ids=lambda trouble: trouble.kind)
def test_an_address_that_was_away_for_minutes_gets_its_full_share_again(trouble, demand):
    """The others have grown to bear everything meanwhile, and none of them needs it back."""
    endpoints = make_pool(make_settings("a", "b", "c")).endpoints
    first, now = endpoints[0], 0.0
    for second in range(400):
        now = float(second)
        answered = go_round(endpoints, demand, {first: trouble} if 20 <= second < 260 else {}, now)
    assert sum(answered.values()) == demand
    assert min(answered[endpoint] for endpoint in endpoints) >= 0.9 * demand / 3


@given(st.lists(st.tuples(st.floats(0.0, 10.0), st.integers(0, 5)), max_size=60), st.floats(0.1, 8.0))
def test_gpu_seconds_of_all_requests_are_the_gpus_times_the_time_they_worked(steps, gpus):
    endpoint, tickets, now, busy, spent = make_endpoint(gpus=gpus), [], 0.0, 0.0, 0.0
    for seconds, choice in steps:
        busy += seconds if tickets else 0.0
        now += seconds
        if tickets and choice < 3:
            spent += endpoint.end(tickets.pop(choice % len(tickets)), ANSWERED, now)
        else:
            tickets.append(endpoint.take(now))
    for ticket in tickets:
        spent += endpoint.end(ticket, UNKNOWN, now + 1.0)
    busy += 1.0 if tickets else 0.0
    assert spent == pytest.approx(gpus * busy, abs=1e-6)


def make_waiting_pool(places: int = 1, addresses: int = 1, patience: float = 60.0) -> EndpointPool:
    endpoints = tuple(Endpoint(f"http://{index}/v1", places, float(places), pause=0.001) for index in range(addresses))
    return EndpointPool("tiny", endpoints, patience)


def test_who_comes_first_is_served_first():
    async def run():
        pool, served = make_waiting_pool(), []

        async def ask(name):
            ticket = await pool.take(pool.clock())
            served.append(name)
            await asyncio.sleep(0)
            pool.give_back(ticket, ANSWERED)

        await asyncio.gather(*(ask(name) for name in range(30)))
        return served

    assert asyncio.run(run()) == list(range(30))


ENDINGS = st.sampled_from([ANSWERED, ANSWERED, FAILED, GONE, BUSY, RequestOutcome("busy", 0.001), SILENT, UNKNOWN])


@given(
    st.lists(st.tuples(ENDINGS, st.integers(0, 4), st.none() | st.integers(0, 12)), max_size=40),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_whatever_happens_to_requests_every_place_is_given_back(requests, addresses, places):
    async def ask(pool, outcome, steps):
        ticket = await pool.take(pool.clock())
        ended = UNKNOWN
        try:
            assert ticket.endpoint.in_flight <= places
            for _ in range(steps):
                await asyncio.sleep(0)
            ended = outcome
        finally:
            pool.give_back(ticket, ended)

    async def run():
        pool = make_waiting_pool(places, addresses)
        tasks = [asyncio.create_task(ask(pool, outcome, steps)) for outcome, steps, _ in requests]
        for step in range(13):
            for task, (_, _, cancelled) in zip(tasks, requests, strict=True):
                if cancelled == step:
                    task.cancel()
            await asyncio.sleep(0)
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            assert error is None or isinstance(error, asyncio.CancelledError)
        assert pool.waiting == 0
        assert [endpoint.in_flight for endpoint in pool.endpoints] == [0] * addresses
        assert sum(endpoint.sent for endpoint in pool.endpoints) <= len(requests)

    asyncio.run(run())
