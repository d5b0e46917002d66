"""What is known of an address and who waits for one; times are set by hand where they decide."""

import asyncio
import math
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.config.settings import ModelConfig
from pipelines.errors import Unavailable
from pipelines.services.clients.chat import (
    DEAD_AFTER,
    FIRST_LIMIT,
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
    return ModelConfig.model_construct(name="tiny", base_url=url, more_urls=more, **settings)


def make_endpoint(limit: float = 16.0, most: int = 64, **settings) -> Endpoint:
    return Endpoint("http://a/v1", most, limit, **settings)


def end_all(endpoint, tickets, outcome, now):
    for ticket in tickets:
        endpoint.end(ticket, outcome, now)


def fill(endpoint: Endpoint, tickets: list, now: float) -> None:
    while endpoint.has_room(now):
        tickets.append(endpoint.take(now))


def answer_round(endpoint: Endpoint, now: float) -> None:
    """Answer as many requests as it may have in flight, each place taken again at once."""
    tickets = []
    fill(endpoint, tickets, now)
    for _ in range(len(tickets)):
        endpoint.end(tickets.pop(0), ANSWERED, now)
        fill(endpoint, tickets, now)
    end_all(endpoint, tickets, UNKNOWN, now)


# Limits


def test_requests_refused_in_one_round_trip_halve_the_limit_once():
    endpoint = make_endpoint()
    tickets = [endpoint.take(0.0) for _ in range(8)]
    end_all(endpoint, tickets[:7], BUSY, 1.0)
    assert endpoint.limit == 8.0
    endpoint.end(tickets[7], BUSY, 1.5)
    assert endpoint.limit == 8.0
    endpoint.end(endpoint.take(2.0), BUSY, 3.0)
    assert endpoint.limit == 4.0


def test_the_limit_doubles_a_round_until_it_was_first_too_much_then_grows_by_one():
    endpoint = make_endpoint(limit=4.0)
    answer_round(endpoint, 0.0)
    assert endpoint.limit == 8.0
    endpoint.end(endpoint.take(1.0), BUSY, 1.0)
    for now in range(5):
        before = endpoint.limit
        answer_round(endpoint, 100.0 + now)
        assert before + 0.7 < endpoint.limit <= before + 1.0


def test_a_reply_that_takes_too_long_halves_the_limit_and_a_failure_does_not():
    slow, broken = make_endpoint(), make_endpoint()
    slow.end(slow.take(0.0), SILENT, 1.0)
    broken.end(broken.take(0.0), FAILED, 1.0)
    assert (slow.limit, broken.limit) == (8.0, 16.0)


# Busy and away


def test_an_address_is_left_alone_for_as_long_as_it_asks():
    endpoint = make_endpoint()
    endpoint.end(endpoint.take(0.0), RequestOutcome("busy", 7.0), 1.0)
    assert not endpoint.has_room(7.9)
    assert endpoint.has_room(8.0)
    assert endpoint.find_next(1.0) == 8.0
    assert endpoint.find_next(8.0) == math.inf


def test_an_address_that_does_not_say_how_long_is_left_alone_longer_each_time():
    endpoint = make_endpoint(pause=1.0)
    now, waits = 0.0, []
    for _ in range(12):
        endpoint.end(endpoint.take(now), BUSY, now)
        waits.append(endpoint.busy_until - now)
        now = endpoint.busy_until + 1.0
    assert all(0.5 * 2**index <= wait <= 2**index for index, wait in enumerate(waits[:5]))
    assert max(waits) <= LONGEST_PAUSE
    endpoint.end(endpoint.take(now), ANSWERED, now)
    endpoint.end(endpoint.take(now), BUSY, now)
    assert endpoint.busy_until - now <= 1.0


def test_failures_in_a_row_are_taken_for_an_address_that_is_away():
    endpoint = make_endpoint()
    for now in range(DEAD_AFTER - 1):
        endpoint.end(endpoint.take(float(now)), FAILED, float(now))
    assert not endpoint.dead
    endpoint.end(endpoint.take(9.0), ANSWERED, 9.0)
    for now in range(10, 10 + DEAD_AFTER):
        assert not endpoint.dead
        endpoint.end(endpoint.take(float(now)), FAILED, float(now))
    assert endpoint.dead


def test_an_address_that_is_away_is_probed_by_one_request_at_a_time_with_growing_pauses():
    endpoint = make_endpoint(pause=1.0)
    endpoint.end(endpoint.take(0.0), GONE, 0.0)
    pauses = [endpoint.probe_at]
    for _ in range(10):
        now = endpoint.probe_at
        assert not endpoint.has_room(now - 0.01)
        probe = endpoint.take(now)
        assert probe.probe
        assert not endpoint.has_room(now + 100.0)
        assert endpoint.find_next(now) == math.inf
        endpoint.end(probe, SILENT, now + 5.0)
        pauses.append(endpoint.probe_at - now - 5.0)
    assert all(0.5 * 2**index <= pause <= 2**index for index, pause in enumerate(pauses[:5]))
    assert max(pauses) <= LONGEST_PAUSE


def test_a_probe_that_was_cancelled_lets_another_one_go():
    endpoint = make_endpoint()
    endpoint.end(endpoint.take(0.0), GONE, 0.0)
    endpoint.end(endpoint.take(1.0), UNKNOWN, 1.5)
    assert endpoint.dead
    assert endpoint.has_room(2.0)


def test_one_answer_brings_an_address_back_with_a_small_limit():
    endpoint = make_endpoint(limit=64.0)
    endpoint.end(endpoint.take(0.0), GONE, 0.0)
    endpoint.end(endpoint.take(1.0), ANSWERED, 1.0)
    assert (endpoint.dead, endpoint.limit, endpoint.troubled_since) == (False, FIRST_LIMIT, math.inf)


def test_failures_of_requests_sent_before_an_address_was_given_up_change_nothing():
    endpoint = make_endpoint()
    tickets = [endpoint.take(0.0) for _ in range(16)]
    end_all(endpoint, tickets[:DEAD_AFTER], FAILED, 1.0)
    first = endpoint.probe_at
    end_all(endpoint, tickets[DEAD_AFTER:], FAILED, 1.2)
    assert endpoint.probe_at == first


# Choosing


def test_the_least_load_is_chosen_whatever_the_limit_and_the_least_used_of_equals():
    wide, narrow = make_endpoint(limit=16.0), make_endpoint(limit=4.0)
    for _ in range(5):
        wide.take(0.0)
    for _ in range(4):
        assert choose_endpoint((wide, narrow), None, 0.0) is narrow
        narrow.take(0.0)
    assert choose_endpoint((narrow, wide), None, 0.0) is wide
    first, second = make_endpoint(), make_endpoint()
    first.end(first.take(0.0), ANSWERED, 0.0)
    assert choose_endpoint((first, second), None, 0.0) is second


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


def test_an_address_that_is_away_is_probed_while_the_others_have_room():
    away, well = make_endpoint(), make_endpoint()
    away.end(away.take(0.0), GONE, 0.0)
    assert choose_endpoint((away, well), None, 100.0) is well
    for _ in range(8):
        well.take(100.0)
    assert choose_endpoint((away, well), None, 100.0) is away


def test_an_address_that_often_fails_gets_less():
    well, ill = make_endpoint(), make_endpoint()
    for now in range(40):
        ill.end(ill.take(float(now)), FAILED if now % 2 else ANSWERED, float(now))
    shares = Counter()
    for _ in range(20):
        endpoint = choose_endpoint((well, ill), None, 50.0)
        endpoint.take(50.0)
        shares[endpoint is ill] += 1
    assert 1 <= shares[True] <= 5


def test_an_address_that_failed_a_request_gets_it_again_only_if_no_other_has_room():
    failed, other = make_endpoint(), make_endpoint(limit=1.0)
    assert choose_endpoint((failed, other), failed, 0.0) is other
    other.take(0.0)
    assert choose_endpoint((failed, other), failed, 0.0) is failed
    assert choose_endpoint((other,), None, 0.0) is None


def test_a_request_that_failed_is_not_sent_as_a_probe_while_another_address_is_well():
    failed, away, well = make_endpoint(), make_endpoint(), make_endpoint()
    away.end(away.take(0.0), GONE, 0.0)
    well.take(0.0)
    assert choose_endpoint((failed, away, well), None, 100.0) is not well
    assert choose_endpoint((failed, away, well), failed, 100.0) is well


# GPU-seconds


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


# Waiting


def make_waiting_pool(places: int = 1, addresses: int = 1, patience: float = 60.0) -> EndpointPool:
    endpoints = tuple(Endpoint(f"http://{index}/v1", places, float(places), pause=0.001) for index in range(addresses))
    return EndpointPool("tiny", endpoints, patience)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_an_address_among_others_begins_small_and_one_alone_does_not():
    alone, several = (make_pool(make_settings(*urls, patience=1.0)) for urls in (("a",), ("a", "b")))
    assert [endpoint.limit for endpoint in alone.endpoints] == [256]
    assert [endpoint.limit for endpoint in several.endpoints] == [FIRST_LIMIT, FIRST_LIMIT]


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


def test_an_address_that_hangs_holds_a_small_part_of_the_requests():
    async def run():
        pool = make_pool(make_settings("well", "hung", patience=60.0))

        async def ask():
            ticket = await pool.take(pool.clock())
            while ticket.endpoint.url == "hung":
                await asyncio.sleep(1.0)
            await asyncio.sleep(0)
            pool.give_back(ticket, ANSWERED)

        tasks = [asyncio.create_task(ask()) for _ in range(1000)]
        while pool.endpoints[0].answered < 1000 - FIRST_LIMIT:
            await asyncio.sleep(0)
        held = pool.endpoints[1].in_flight
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return held

    assert asyncio.run(run()) == FIRST_LIMIT


def test_when_every_address_is_away_for_too_long_each_is_named_with_what_it_said_last():
    async def run():
        pool = make_waiting_pool(addresses=2, patience=0.02)
        for outcome in (FAILED, *[GONE] * 2):
            for endpoint in pool.endpoints:
                endpoint.end(endpoint.take(pool.clock()), outcome, pool.clock())
        for endpoint in pool.endpoints:
            endpoint.probe_at = math.inf
        await pool.take(pool.clock())

    with pytest.raises(Unavailable) as caught:
        asyncio.run(run())
    assert str(caught.value) == (
        "model tiny: no address answered for 0.02 s (http://0/v1: refused; http://1/v1: refused); run again later"
    )


def test_patience_begins_with_the_request_and_not_with_a_failure_long_past():
    async def run():
        pool = make_waiting_pool(patience=60.0)
        (endpoint,) = pool.endpoints
        endpoint.end(endpoint.take(-1000.0), GONE, -1000.0)
        return await pool.take(pool.clock())

    assert asyncio.run(run()).probe


def test_an_address_that_is_away_stops_nobody_while_another_one_answers():
    async def run():
        pool = make_waiting_pool(addresses=2, patience=0.0)
        away, well = pool.endpoints
        away.end(away.take(0.0), GONE, 0.0)
        away.probe_at = math.inf

        async def ask():
            ticket = await pool.take(pool.clock())
            await asyncio.sleep(0)
            pool.give_back(ticket, ANSWERED)
            return ticket.endpoint

        return set(await asyncio.gather(*(ask() for _ in range(20)))) == {well}

    assert asyncio.run(run())


@dataclass
class CountedClock:
    """A clock that counts who looks at it."""

    loop: asyncio.AbstractEventLoop
    looks: int = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.loop.time()


def test_waiting_for_a_busy_address_is_no_busy_loop():
    async def run():
        pool = make_waiting_pool(places=100)
        clock = pool.clock = CountedClock(asyncio.get_running_loop())
        (endpoint,) = pool.endpoints
        endpoint.end(endpoint.take(clock()), RequestOutcome("busy", 0.1), clock())
        tickets = await asyncio.gather(*(pool.take(clock()) for _ in range(40)))
        return len(tickets), clock.looks

    served, looks = asyncio.run(run())
    assert served == 40
    # Two for each that waits, and one alarm for all of them.
    assert looks <= 2 + 2 * 40 + 5


def test_a_place_given_to_a_request_that_was_cancelled_meanwhile_goes_to_the_next():
    async def run():
        pool = make_waiting_pool()
        held = await pool.take(pool.clock())
        first, second = (asyncio.create_task(pool.take(pool.clock())) for _ in range(2))
        await settle()
        # In this order the place is the first one's already when it is cancelled.
        pool.give_back(held, ANSWERED)
        first.cancel()
        ticket = await second
        assert first.cancelled()
        pool.give_back(ticket, ANSWERED)
        return pool.endpoints[0].in_flight, pool.waiting

    assert asyncio.run(run()) == (0, 0)


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


def test_the_limit_never_exceeds_the_most():
    endpoint = make_endpoint(limit=4.0, most=10)
    for now in range(5):
        answer_round(endpoint, float(now))
    assert endpoint.limit == 10
