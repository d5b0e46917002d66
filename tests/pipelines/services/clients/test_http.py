import asyncio
import dataclasses
import gzip
import time
import zlib

import pytest

from pipelines.errors import RateLimited
from pipelines.services.clients.http import (
    LONGEST_WAIT,
    CutOff,
    HttpClient,
    HttpRequest,
    RateLimiter,
    TooLarge,
)
from tests.pipelines.services.clients.live_servers import QUICK, Answer, make_guard, run_live_server, say

EARLY = 0.002
"""Seconds by which a loop may wake too early."""


async def pass_through(limiter, seconds=0.0):
    async with limiter.enter():
        started = time.monotonic()
        await asyncio.sleep(seconds)
        return started


def test_requests_begin_no_faster_than_the_rate():
    limiter = RateLimiter("service", 50.0, 100)

    async def ask_many():
        return sorted(await asyncio.gather(*(pass_through(limiter) for _ in range(8))))

    before = time.monotonic()
    starts = asyncio.run(ask_many())
    # However late one comes on a busy machine, none comes before its time.
    assert all(start - before > number * 0.02 - EARLY for number, start in enumerate(starts))


def test_places_are_given_back_whatever_happens():
    limiter = RateLimiter("service", 1000.0, 2)

    async def fail():
        async with limiter.enter():
            raise ValueError

    async def ask_many():
        waiting = [asyncio.create_task(pass_through(limiter, 0.02)) for _ in range(10)]
        failing = [asyncio.create_task(fail()) for _ in range(10)]
        await asyncio.sleep(0.005)
        for task in waiting[1::2]:
            task.cancel()
        return await asyncio.gather(*waiting, *failing, return_exceptions=True)

    found = asyncio.run(ask_many())
    assert len(found) == 20
    assert limiter.in_flight == 0


def test_one_who_is_told_to_wait_makes_all_wait():
    limiter = RateLimiter("service", 1000.0, 10)
    limiter.hold(0.05)
    before = time.monotonic()
    assert asyncio.run(pass_through(limiter)) - before >= 0.05


@pytest.mark.parametrize("longest", [0.05, LONGEST_WAIT])
def test_no_request_waits_for_longer_than_allowed(longest):
    limiter = HttpClient(longest=longest).find_limiter("http://service/")
    limiter.hold(longest + 30)
    with pytest.raises(RateLimited, match=f"service asked for a pause of {longest + 30:.0f} s more") as caught:
        asyncio.run(pass_through(limiter))
    assert caught.value.retry_after > longest
    assert limiter.in_flight == 0


def test_limiters_that_nobody_needs_are_forgotten_and_those_in_use_are_not():
    client = HttpClient(rate=1e6)
    held = client.find_limiter("http://held/")
    held.hold(1000.0)
    for number in range(10_000):
        client.find_limiter(f"http://host{number}/")
    assert len(client.limiters) < 5000
    assert client.find_limiter("http://held/") is held


def send(url, guard=None, **settings):
    return asyncio.run(dataclasses.replace(QUICK, guard=guard).send(HttpRequest(url, **settings)))


def test_nothing_of_the_environment_and_no_cookie_is_sent(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")

    async def send_twice(url):
        client = QUICK
        await client.send(HttpRequest(url))
        return await client.send(HttpRequest(url))

    with run_live_server(lambda asked: say({}, Set_Cookie="a=b")) as server:
        asyncio.run(send_twice(server.url))
    assert len(server.asked) == 2
    assert set(server.asked[1].headers) == {"host", "user-agent", "accept-encoding", "accept"}


def test_there_are_only_so_many_connections_to_all_hosts_together():
    hosts = [f"h{number}.example.org" for number in range(12)]
    guard = make_guard(**{host.replace(".", "__"): ("127.0.0.1",) for host in hosts})
    client = dataclasses.replace(QUICK, concurrency=2, guard=guard, connections=3)

    async def ask_all(port):
        await asyncio.gather(*(client.send(HttpRequest(f"http://{host}:{port}/")) for host in hosts * 2))

    with run_live_server(lambda asked: Answer(body=b"{}", hang=0.02)) as server:
        asyncio.run(ask_all(server.port))
        assert len(server.asked) == 24
        assert 1 < server.most_in_flight <= 3


def test_a_parameter_is_encoded_once():
    with run_live_server(lambda asked: say({})) as server:
        send(server.url, query={"q": "a+b & c%20d/é#?"})
        assert server.asked[0].query == {"q": "a+b & c%20d/é#?"}


WORDS = b"some words that are packed"


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        ("gzip", gzip.compress(WORDS)),
        ("GZIP", gzip.compress(WORDS)),
        ("deflate", zlib.compress(WORDS)),
        ("deflate", zlib.compress(WORDS)[2:-4]),
        ("identity", WORDS),
    ],
    ids=["gzip", "upper case", "deflate", "deflate without header", "identity"],
)
def test_a_packed_reply_is_unpacked(packing, body):
    with run_live_server(lambda asked: Answer(body=body, headers={"Content-Encoding": packing})) as server:
        assert send(server.url).body == WORDS


# The bodies have names: a packed body holds the second it was packed in, so that the workers of one run would
# collect tests of different names.
@pytest.mark.parametrize(
    ("packing", "body", "error"),
    [
        pytest.param("gzip", gzip.compress(bytes(1 << 24)), TooLarge, id="gzip"),
        pytest.param("deflate", zlib.compress(bytes(1 << 24)), TooLarge, id="deflate"),
        pytest.param("gzip", b"plain text", CutOff, id="not packed"),
    ],
)
def test_a_bomb_or_a_broken_packing_is_refused(packing, body, error):
    answer = Answer(body=body, headers={"Content-Encoding": packing})
    with run_live_server(lambda asked: answer) as server, pytest.raises(error):
        send(server.url)
