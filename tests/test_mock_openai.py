"""The stand-in for a server behaves as its head says: other tests count on it."""

import asyncio
import json
from collections import Counter

import aiohttp
import orjson
import pytest

from pipelines.services.prompting import make_schema
from schemas.tasks import AnswerReply
from tests.mock_openai import CALLS, MockSettings, Schedule, open_mock, start_mock

PLAIN = {"model": "mock", "messages": [{"role": "user", "content": "Who?"}], "seed": 1}


async def post(session, url, body=PLAIN):
    async with session.post(f"{url}/chat/completions", json=body) as response:
        return response.status, dict(response.headers), await response.read()


def ask_mock(settings, *bodies):
    """Return what each request got, a reply or the error's class, and the counts."""

    async def ask():
        got = []
        async with open_mock(settings) as mock, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(0.3)) as session:
            for body in bodies:
                try:
                    got.append(await post(session, mock.url, body))
                except (aiohttp.ClientError, TimeoutError) as error:
                    got.append(type(error))
            async with session.get(f"{mock.url[:-3]}/counts") as response:
                return got, await response.json()

    return asyncio.run(ask())


def read_text(reply):
    return orjson.loads(reply[2])["choices"][0]["message"]["content"]


def test_each_fault_is_what_its_name_says():
    names = ["429", "503", "500", "drip", "disconnect", "close", "malformed", "schema", "empty", "hang", "ok"]
    settings = MockSettings(schedule=Schedule(first=names, retry_after="7", drip_pause=0.01))
    got, counts = ask_mock(settings, *[PLAIN] * len(names))
    reply = dict(zip(names, got, strict=True))
    assert (reply["429"][0], reply["429"][1]["Retry-After"]) == (429, "7")
    assert (reply["503"][0], reply["503"][1]["Retry-After"]) == (503, "7")
    assert reply["500"][0] == 500
    assert "Retry-After" not in reply["500"][1]
    assert issubclass(reply["drip"], TimeoutError)
    assert issubclass(reply["disconnect"], aiohttp.ClientPayloadError)
    assert issubclass(reply["close"], aiohttp.ServerDisconnectedError)
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(reply["malformed"][2])
    assert "zq" in json.loads(read_text(reply["schema"]))
    assert orjson.loads(reply["empty"][2])["choices"] == []
    assert issubclass(reply["hang"], TimeoutError)
    assert read_text(reply["ok"]).startswith("mock ")
    assert counts["outcomes"] == dict.fromkeys(names, 1)
    assert counts["requests"] == len(names)
    assert counts["duplicates"] == len(names) - 1


def test_a_reply_fits_the_format_asked_for_and_comes_from_messages_and_seed():
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": json.loads(make_schema(AnswerReply))}}
    bodies = [
        PLAIN | {"response_format": schema},
        PLAIN | {"response_format": schema},
        PLAIN | {"response_format": schema, "seed": 2},
        PLAIN | {"response_format": {"type": "json_object"}},
    ]
    got, _ = ask_mock(MockSettings(), *bodies)
    first, again, other, free = (read_text(reply) for reply in got)
    assert first == again != other
    assert AnswerReply.model_validate_json(first).answer == json.loads(free)["answer"]


def test_shares_are_met_and_the_same_for_a_seed():
    schedule = Schedule(shares={"500": 0.2, "hang": 0.1}, seed=3, at={"5": "empty"})
    drawn = [schedule.draw(ordinal) for ordinal in range(5000)]
    assert drawn == [schedule.draw(ordinal) for ordinal in range(5000)]
    counts = Counter(drawn)
    assert 900 < counts["500"] < 1100
    assert 420 < counts["hang"] < 580
    assert drawn[5] == "empty"


@pytest.mark.parametrize("wrong", [{"shares": {"404": 0.1}}, {"shares": {"500": 0.7, "hang": 0.7}}, {"first": ["x"]}])
def test_a_schedule_that_cannot_be_met_is_refused(wrong):
    with pytest.raises(ValueError, match="known are"):
        Schedule(**wrong)


def test_more_in_flight_than_the_capacity_is_refused():
    async def ask():
        settings = MockSettings(latency=0.05, capacity=2)
        async with open_mock(settings) as mock, aiohttp.ClientSession() as session:
            replies = await asyncio.gather(*(post(session, mock.url) for _ in range(5)))
            return Counter(status for status, _, _ in replies), mock.counts.most_in_flight

    statuses, most = asyncio.run(ask())
    assert statuses == {200: 2, 429: 3}
    assert most <= 5


def test_the_process_says_its_address_takes_a_schedule_forgets_its_counts_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def ask(url):
        async with aiohttp.ClientSession() as session:
            statuses = [(await post(session, url))[0] for _ in range(2)]
            await session.post(f"{url[:-3]}/schedule", json={"first": ["ok", "503"]})
            await session.post(f"{url[:-3]}/reset")
            statuses += [(await post(session, url))[0] for _ in range(2)]
            async with session.get(f"{url}/models") as response:
                return statuses, (await response.json())["data"][0]["id"]

    with start_mock("--model", "tiny", schedule=Schedule(first=["500"])) as url:
        assert asyncio.run(ask(url)) == ([500, 200, 200, 503], "tiny")
    assert list(tmp_path.iterdir()) == []


def test_with_tools_on_offer_it_calls_one_and_answers_after_some_calls():
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tools = [{"type": "function", "function": {"name": "text_search", "parameters": schema}}]
    called = [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}] * CALLS
    early = PLAIN | {"tools": tools}
    late = early | {"messages": PLAIN["messages"] + called}
    got, _ = ask_mock(MockSettings(), early, early, late)
    first, again, last = (orjson.loads(reply[2])["choices"][0] for reply in got)
    assert first == again
    (call,) = first["message"]["tool_calls"]
    assert (call["function"]["name"], first["finish_reason"]) == ("text_search", "tool_calls")
    assert json.loads(call["function"]["arguments"])["query"].startswith("mock ")
    assert first["message"]["reasoning_content"]
    assert last["message"]["content"].startswith("<answer>mock ")
