"""Endpoints that go wrong in every way: each request ends by name, and none of them slows the others."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from pipelines.config.settings import ModelConfig
from pipelines.errors import RecordFailed
from pipelines.services.clients.chat import DEAD_AFTER, FIRST_LIMIT, OpenAIChat
from pipelines.services.prompting import make_schema
from pipelines.services.protocols import ChatReply, ChatRequest, Message, Sampling
from schemas.tasks import AnswerReply
from tests.mock_openai import FAULTS, Mock, MockSettings, Schedule, open_mock

SHARES = {
    "429": 0.04,
    "503": 0.04,
    "500": 0.05,
    "drip": 0.01,
    "disconnect": 0.04,
    "close": 0.04,
    "malformed": 0.04,
    "schema": 0.02,
    "empty": 0.01,
    "null": 0.005,
    "cut": 0.005,
    "prose": 0.005,
    "hang": 0.01,
}
REQUESTS = 2_500
REPLIES = ("ok", "schema", "empty", "null", "cut", "prose")
"""What the mock counts where the client gets a reply: what the reply says is judged elsewhere."""


def make_request(number: int) -> ChatRequest:
    messages = (Message("system", "Be brief."), Message("user", f"Who is number {number}?"))
    return ChatRequest(
        "answer_question",
        "answer_question/v1",
        messages,
        AnswerReply(answer="zq"),
        Sampling(max_tokens=16),
        make_schema(AnswerReply),
    )


def make_model(*urls: str, **settings) -> OpenAIChat:
    settings = {"name": "mock", "revision": "r1", "timeout": 60.0} | settings
    return OpenAIChat(ModelConfig(base_url=urls, **settings), pause=0.01)


@dataclass
class Asked:
    """What became of requests."""

    ended: Counter[str]
    replies: list[ChatReply]


async def ask_many(model: OpenAIChat, count: int, in_flight: int) -> Asked:
    """Ask for replies to so many requests, at most so many at once."""
    asked = Asked(Counter(), [])
    numbers = iter(range(count))

    async def work():
        for number in numbers:
            try:
                asked.replies.append(await model.chat(make_request(number)))
                asked.ended["reply"] += 1
            except RecordFailed as error:
                asked.ended[error.error] += 1

    await asyncio.gather(*(work() for _ in range(in_flight)))
    return asked


@pytest.mark.slow
def test_thousands_of_requests_with_faults_in_all_ways_end_by_name_and_add_up():
    async def run() -> tuple[Asked, list[Mock], OpenAIChat]:
        async with AsyncExitStack() as stack:
            mocks = []
            for seed in range(3):
                schedule = Schedule(shares=SHARES, seed=seed, retry_after="0.01", drip_pause=0.1)
                settings = MockSettings(latency=0.002, schedule=schedule)
                mocks.append(await stack.enter_async_context(open_mock(settings)))
            model = make_model(*(mock.url for mock in mocks), timeout=1.0)
            return await ask_many(model, REQUESTS, 64), mocks, model

    asked, mocks, model = asyncio.run(run())
    assert asked.ended.total() == REQUESTS
    assert set(asked.ended) <= {"reply", "no-reply"}
    assert asked.ended["reply"] > 0.95 * REQUESTS
    counts: Counter[str] = sum((mock.counts.outcomes for mock in mocks), Counter())
    assert set(counts) == {*FAULTS, "ok"}
    requests = sum(mock.counts.requests for mock in mocks)
    assert 0.25 < 1.0 - counts["ok"] / requests < 0.35
    # One that was given up while it was being sent was never counted there.
    assert 0 <= sum(endpoint.sent for endpoint in model.pool.endpoints) - requests < 100
    assert len(asked.replies) == asked.ended["reply"] <= sum(counts[name] for name in REPLIES)
    assert sum(reply.retries for reply in asked.replies) <= requests + 100 - REQUESTS
    assert [endpoint.in_flight for endpoint in model.pool.endpoints] == [0, 0, 0]
    assert model.pool.waiting == 0


FAULTY = {
    "busy": (Schedule(shares={"429": 1.0}, retry_after="60"), FIRST_LIMIT),
    "broken": (Schedule(shares={"500": 1.0}), FIRST_LIMIT + DEAD_AFTER),
    "garbled": (Schedule(shares={"malformed": 1.0}), FIRST_LIMIT + DEAD_AFTER),
    "hanging up": (Schedule(shares={"close": 1.0}), FIRST_LIMIT + DEAD_AFTER),
}


@pytest.mark.parametrize("kind", FAULTY)
def test_an_endpoint_that_refuses_or_breaks_is_left_alone_and_the_others_answer_everything(kind):
    schedule, most = FAULTY[kind]

    async def run() -> tuple[Asked, Mock]:
        async with (
            open_mock(MockSettings(schedule=schedule)) as faulty,
            open_mock() as first,
            open_mock() as second,
        ):
            model = make_model(faulty.url, first.url, second.url)
            for endpoint in model.pool.endpoints:
                # No probe within this test.
                endpoint.pause = 60.0
            return await ask_many(model, 1000, 64), faulty

    asked, faulty = asyncio.run(run())
    assert asked.ended == {"reply": 1000}
    assert faulty.counts.requests <= most
    assert sum(reply.retries for reply in asked.replies) == faulty.counts.requests


def test_an_endpoint_that_is_dead_costs_one_try_and_the_others_answer_everything():
    async def run() -> Asked:
        async with open_mock() as gone:
            dead = gone.url
        async with open_mock() as first, open_mock() as second:
            model = make_model(dead, first.url, second.url)
            for endpoint in model.pool.endpoints:
                endpoint.pause = 60.0
            return await ask_many(model, 1000, 64)

    asked = asyncio.run(run())
    assert asked.ended == {"reply": 1000}
    assert sum(reply.retries for reply in asked.replies) <= FIRST_LIMIT


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_an_endpoint_that_hangs_holds_a_few_requests_while_the_others_answer_all_the_rest(fault):
    async def run() -> tuple[int, Counter[str]]:
        schedule = Schedule(shares={fault: 1.0}, drip_pause=60.0)
        async with (
            open_mock(MockSettings(schedule=schedule)) as faulty,
            open_mock() as first,
            open_mock() as second,
        ):
            model = make_model(faulty.url, first.url, second.url)
            asking = asyncio.create_task(ask_many(model, 1000, 128))
            while first.counts.paid + second.counts.paid < 1000 - FIRST_LIMIT:
                await asyncio.sleep(0.01)
            held = faulty.counts.requests
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return held, Counter(endpoint.in_flight for endpoint in model.pool.endpoints)

    held, in_flight = asyncio.run(run())
    assert held <= FIRST_LIMIT
    assert in_flight == {0: 3}


def test_an_endpoint_that_hung_is_given_up_and_its_requests_are_answered_elsewhere():
    async def run() -> tuple[Asked, Mock, int]:
        async with open_mock(MockSettings(schedule=Schedule(shares={"hang": 1.0}))) as faulty, open_mock() as well:
            model = make_model(faulty.url, well.url, timeout=1.0)
            asked = await ask_many(model, 500, 64)
            return asked, faulty, well.counts.paid

    asked, faulty, answered = asyncio.run(run())
    assert asked.ended == {"reply": 500}
    assert answered == 500
    assert faulty.counts.requests <= FIRST_LIMIT + 3


def test_an_endpoint_with_a_narrow_door_is_filled_and_not_flooded():
    """Capacity 8 of 40 asked for: the limit settles near it, and few requests are refused."""

    async def run() -> tuple[Asked, Mock]:
        schedule = Schedule(retry_after="0.01")
        async with open_mock(MockSettings(latency=0.005, capacity=8, schedule=schedule)) as narrow:
            return await ask_many(make_model(narrow.url, concurrency=32), 1000, 40), narrow

    asked, narrow = asyncio.run(run())
    assert asked.ended == {"reply": 1000}
    assert narrow.counts.outcomes["429"] < 200
