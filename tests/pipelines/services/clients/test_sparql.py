import asyncio
from email.message import Message

import pytest

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.graph.seeds import Slice, Span, draw_candidates
from pipelines.services.clients.http import HttpReply
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.replies import open_replies
from pipelines.services.clients.sparql import SparqlEndpoint, name_agent, read_rows
from pipelines.services.protocols import QueryTimeout
from tests.pipelines.services.clients.sparql_server import (
    FAULTS,
    PREFIXES,
    Answer,
    describe_item,
    load_store,
    say,
    serve_sparql,
)

SLOW = {"silence": {"deadline": 1.5}}
"""Limits that a fault must run into; on a busy machine a good reply stays far below them."""
CONTACT = "test@example.org"
QUICK = {"pause": 0.0, "tries": 3, "backoff": 0.01, "deadline": 60.0, "reply_bytes": 150_000, "contact": CONTACT}
AGENT = name_agent(CONTACT)
SITE = "https://en.wikipedia.org/"
WHOLE = Slice("Q100", Span(20), Span(0, 10))
WIDEST = "FILTER(?statements >= 20)"
COUNTS = {number: (number % 12, 15 + number % 40) for number in range(1, 200)}
WANTED = [f"Q{number}" for number, (sitelinks, statements) in COUNTS.items() if sitelinks <= 10 and statements >= 20]
STORE = load_store(PREFIXES + "".join(describe_item(number, *counts) for number, counts in COUNTS.items()))
DIVIDED = (
    "429 that is a time-out",
    "500 that is a time-out",
    "truncated JSON",
    "truncated under its announced length",
    "a stack trace after part of the JSON",
    "a stack trace after the whole JSON",
    "text with 200",
    "a page with 200",
    "a wrong content type",
    "JSON without results",
    "partial content",
    "partial results of Virtuoso",
    "an empty body",
    "a body beyond the limit",
)
REPEATED = ("429", "500", "502", "503", "504", "silence", "no reply")
PAUSES = {"silence": 0.05}
"""Time for the server to see that the client gave up."""
QUERY = "SELECT ?item WHERE { ?item <http://www.wikidata.org/prop/direct/P31> ?class } LIMIT 3"


def make_slow(server, fault):
    """Return an endpoint with limits that the fault runs into, and time for the server to see that it did."""
    return make_endpoint(server, pause=PAUSES.get(fault, 0.0), **SLOW.get(fault, {}))


def make_endpoint(server, **changes):
    return make_endpoint_at(server.url, **changes)


def make_endpoint_at(address, **changes):
    return SparqlEndpoint(address, **(QUICK | changes))


def ask(endpoint, query=QUERY):
    return asyncio.run(endpoint.select(query))


def draw(sparql, slices=(WHOLE,), page_rows=1000):
    return [candidate.qid for candidate in asyncio.run(draw_candidates(sparql, slices, SITE, page_rows)).candidates]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_loses_no_candidate_and_doubles_none(fault):
    with serve_sparql(STORE, FAULTS[fault]) as server:
        assert draw(make_slow(server, fault)) == WANTED
    assert server.most_in_flight == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_middle_loses_no_candidate_and_doubles_none(fault):
    with serve_sparql(STORE, Answer(), Answer(), FAULTS[fault], FAULTS[fault]) as server:
        assert draw(make_slow(server, fault), page_rows=30) == WANTED
    assert server.most_in_flight == 1


@pytest.mark.parametrize("fault", DIVIDED)
def test_a_reply_that_is_not_whole_is_a_time_out_and_not_asked_again(fault):
    with serve_sparql(STORE, always=FAULTS[fault]) as server, pytest.raises(QueryTimeout, match=r"127\.0\.0\.1"):
        ask(make_endpoint(server, **SLOW.get(fault, {})))
    assert len(server.asked) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted(set(REPEATED) - {"429"}))
def test_a_service_that_fails_is_asked_again_and_then_away(fault):
    with serve_sparql(STORE, always=FAULTS[fault]) as server, pytest.raises(Unavailable, match="3 times; run again"):
        ask(make_endpoint(server, **SLOW.get(fault, {})))
    assert len(server.asked) == 3


def fail_if_widest(fault):
    """Return what a server says that finds the widest slice too much and answers narrower ones."""
    return lambda query: fault if WIDEST in query else Answer()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["504", "silence"])
def test_a_slice_that_is_always_too_heavy_is_divided(fault):
    with serve_sparql(STORE, always=fail_if_widest(FAULTS[fault])) as server:
        assert draw(make_slow(server, fault)) == WANTED
    assert sum(WIDEST in query for query in server.queries) == 3


def test_a_gateway_that_gives_up_once_is_asked_again_for_the_same():
    with serve_sparql(STORE, FAULTS["504"], FAULTS["503"]) as server:
        assert draw(make_endpoint(server)) == WANTED
    assert len(set(server.queries)) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failing_service_that_asks_for_a_long_wait_is_left_at_once(status):
    later = Answer(status, "text/plain", {"Retry-After": "3600"}, say("maintenance"))
    with serve_sparql(STORE, always=later) as server, pytest.raises(Unavailable, match="wait 3,600 s"):
        draw(make_endpoint(server))
    assert len(server.asked) == 1


def test_a_request_for_less_carries_the_seconds_to_wait():
    later = Answer(429, "text/plain", {"Retry-After": "120"}, say("Too many"))
    with serve_sparql(STORE, later) as server, pytest.raises(RateLimited, match="429") as caught:
        ask(make_endpoint(server))
    assert caught.value.retry_after == 120.0
    assert len(server.asked) == 1


def test_a_draw_comes_back_when_retry_after_is_over():
    with serve_sparql(STORE, FAULTS["429"]) as server:
        assert draw(make_endpoint(server)) == WANTED
    first, second = server.asked
    assert second.at - first.at >= 1.0
    assert first.parameters == second.parameters


def test_a_wait_longer_than_a_run_should_last_stops_the_draw():
    later = Answer(429, "text/plain", {"Retry-After": "3600"}, say("Too many"))
    with serve_sparql(STORE, later) as server, pytest.raises(Unavailable, match="wait 3,600 s"):
        draw(make_endpoint(server))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(403, "text/plain", change=say("You have been banned until 2026-01-01")),
        Answer(403, "text/plain", {"Retry-After": "1"}, say("Please set a user-agent")),
        Answer(429, "text/plain", change=say("Too many requests; see our robot policy")),
        Answer(429, "text/plain", {"Retry-After": "1"}, say("Set a User-Agent")),
        Answer(200, "text/plain", change=say("Please set a user-agent and respect our robot policy")),
    ],
)
def test_a_ban_stops_at_once_and_names_the_user_agent(answer):
    with serve_sparql(STORE, always=answer) as server, pytest.raises(Unavailable) as caught:
        draw(make_endpoint(server))
    assert AGENT in str(caught.value)
    assert "24 hours" in str(caught.value)
    assert len(server.asked) == 1


def test_a_message_carries_the_servers_words_without_its_control_characters():
    rude = Answer(403, change=say("\x1b[31mGo\x00 away\n\u202enow"))
    with serve_sparql(STORE, rude) as server, pytest.raises(Unavailable, match=r"403: \[31mGo away now; it bans"):
        ask(make_endpoint(server))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(400, "text/plain", change=say("Parse error")), "Parse error"),
        (Answer(404, "text/html", change=say("Not here")), "expected a SPARQL 1.1 endpoint"),
        (Answer(308, headers={"Location": "https://other.example/sparql"}), "308"),
    ],
)
def test_an_address_that_is_no_endpoint_is_a_mistake_of_the_configuration(answer, words):
    with serve_sparql(STORE, always=answer) as server, pytest.raises(ConfigError, match=words):
        ask(make_endpoint(server))
    assert len(server.asked) == 1


def test_a_query_says_who_asks_and_wants_json():
    with serve_sparql(STORE) as server:
        ask(make_endpoint(server))
    for request in server.asked:
        assert request.headers["user-agent"] == AGENT
        assert list(request.parameters) == ["query"]
        assert "application/sparql-results+json" in request.headers["accept"]


def test_rows_carry_lexical_values_and_leave_out_what_is_unbound():
    with serve_sparql(STORE) as server:
        query = 'SELECT ?a ?b ?c WHERE { BIND(7 AS ?a) BIND("é"@fr AS ?b) OPTIONAL { ?c <urn:none> ?c } }'
        assert ask(make_endpoint(server), query) == ({"a": "7", "b": "é"},)


def test_a_body_of_another_shape_is_no_reply():
    terms = (b"{}", b'{"value": 1}', b'{"value": "\xff"}')
    bodies = [b'{"results": {"bindings": [{"a": %s}]}}' % term for term in terms]
    bodies += [b"", b"[]", b"null", b'{"results": {}}', b'{"results": {"bindings": [[]]}}']
    bodies += [b'{"results": {"bindings": []}} x', b'{"results": {"bindings": [' + b"[" * 100_000]
    for body in bodies:
        with pytest.raises(ValueError, match=r"."):
            read_rows(body)


def test_retry_after_is_read_as_seconds_or_as_a_date_against_the_replys_own():
    dates = {"Thu, 01 Jan 2026 00:01:30 GMT": 90.0, "Wed, 31 Dec 2025 23:00:00 GMT": 0.0}
    seconds = {"120": 120.0, " 7 ": 7.0, "0": 0.0, "9" * 5000: 1e9}
    others = dict.fromkeys(("soon", "-5", "1e9", "nan", "", "Thu, 99 Jan 2026 00:01:30 GMT"), 0.0)
    for value, wait in (dates | seconds | others).items():
        headers = Message()
        headers["Retry-After"] = value
        headers["Date"] = "Thu, 01 Jan 2026 00:00:00 GMT"
        assert HttpReply(429, headers, b"").wait == wait


def test_a_second_run_asks_nothing(tmp_path):
    with serve_sparql(STORE, FAULTS["truncated JSON"], FAULTS["text with 200"]) as server:
        for _ in range(2):
            store = open_replies(tmp_path)
            assert draw(Recorded(make_endpoint(server), store), page_rows=30) == WANTED
            store.close()
            asked = len(server.asked)
            server.asked.clear()
    assert asked == 0


def test_a_recorded_time_out_is_raised_again_without_asking(tmp_path):
    store = open_replies(tmp_path)
    with serve_sparql(STORE, FAULTS["truncated JSON"]) as server:
        recorded = Recorded(make_endpoint(server), store)
        for _ in range(2):
            with pytest.raises(QueryTimeout, match="no complete reply"):
                asyncio.run(recorded.select(QUERY, divisible=True))
    assert len(server.asked) == 1
    store.close()
