import asyncio
import dataclasses
import logging
import traceback

import pytest

from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.services.clients.search import LiveSearch
from pipelines.services.protocols import TextHit
from tests.pipelines.services.clients.live_servers import (
    FAULTS,
    QUICK,
    Answer,
    make_bomb,
    run_live_server,
    say,
    send_to,
)

KEY = "k3y/with+signs=and more"
SERPER = {
    "searchParameters": {"q": "ada", "type": "search"},
    "answerBox": {"title": "Born", "link": "https://a.example.org/box", "snippet": "long", "answer": "1815"},
    "knowledgeGraph": {
        "title": "Ada Lovelace",
        "description": "A mathematician.",
        "descriptionLink": "https://a.example.org/ada",
        "attributes": {"Born": "1815", "Odd": 3},
    },
    "organic": [
        {"title": "One  page", "link": "https://a.example.org/1", "snippet": "first\n words", "position": 1},
        {"title": "Again", "link": "https://a.example.org/ada", "snippet": "twice"},
        {"title": "No link", "snippet": "nowhere"},
        {"title": None, "link": "https://a.example.org/2"},
        {"title": "Three", "link": "javascript:alert(1)", "snippet": ""},
        {"title": "Four", "link": "https://a.example.org/4", "snippet": "last"},
    ],
}
SERPAPI = {
    "search_metadata": {"status": "Success"},
    "answer_box": {"title": "Born", "link": "https://a.example.org/box", "answer": "1815"},
    "knowledge_graph": {
        "title": "Ada Lovelace",
        "description": "A mathematician.",
        "source": {"name": "A", "link": "https://a.example.org/ada"},
    },
    "organic_results": SERPER["organic"],
}
BOX = TextHit("https://a.example.org/box", "Born", "1815")
PAGES = (
    TextHit("https://a.example.org/1", "One page", "first words"),
    TextHit("https://a.example.org/2", "", ""),
    TextHit("https://a.example.org/4", "Four", "last"),
)
KINDS = {
    "serper": (SERPER, TextHit("https://a.example.org/ada", "Ada Lovelace", "A mathematician.; Born: 1815")),
    "serpapi": (SERPAPI, TextHit("https://a.example.org/ada", "Ada Lovelace", "A mathematician.")),
}
both = pytest.mark.parametrize("kind", list(KINDS))


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", KEY)


def search(kind, server, query="ada", count=10, client=QUICK, key_env="SEARCH_KEY"):
    return asyncio.run(LiveSearch(kind, server.url, key_env, client).search_text(query, count))


@both
def test_what_the_engine_answers_itself_comes_first_and_a_page_once(kind):
    reply, subject = KINDS[kind]
    with run_live_server(lambda asked: say(reply)) as server:
        assert search(kind, server) == (BOX, subject, *PAGES)
        assert search(kind, server, count=3) == (BOX, subject, PAGES[0])


def test_serper_is_asked_by_post_with_the_key_in_a_header():
    with run_live_server(lambda asked: say(SERPER)) as server:
        search("serper", server, "who \n is ada", 7)
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/api", {})
    assert asked.json() == {"q": "who is ada", "num": 7}
    assert (asked.headers["x-api-key"], asked.headers["content-type"]) == (KEY, "application/json")


def test_serpapi_is_asked_by_get_with_the_key_among_the_parameters():
    with run_live_server(lambda asked: say(SERPAPI)) as server:
        search("serpapi", server, "who & what+is #ada?", 7)
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", "/api")
    assert asked.query == {
        "engine": "google",
        "output": "json",
        "q": "who & what+is #ada?",
        "num": "7",
        "api_key": KEY,
    }


@both
def test_nothing_found_is_an_answer(kind):
    nothing = {
        "serper": {"searchParameters": {}, "organic": []},
        "serpapi": {"search_metadata": {}, "error": "Google hasn't returned any results for this query."},
    }[kind]
    with run_live_server(lambda asked: say(nothing)) as server:
        assert search(kind, server) == ()
        assert len(server.asked) == 1


@both
@pytest.mark.parametrize("fault", [name for name in FAULTS if not name.startswith("busy")])
def test_a_service_that_fails_each_time_is_unavailable(kind, fault):
    with run_live_server(lambda asked: FAULTS[fault]) as server, pytest.raises(Unavailable, match="3 times"):
        search(kind, server)
    # aiohttp itself sends a GET once more when the other side hangs up on it.
    assert len(server.asked) in (QUICK.tries, 2 * QUICK.tries * (fault == "hangs up"))


NO_MONEY = (
    (402, "pay"),
    (400, "Not enough credits"),
    (429, "Your account has run out of searches."),
    (403, "Insufficient balance"),
)
NO_KEY = ((401, "no"), (403, "Unauthorized."), (400, "Invalid API key. Your API key"))


@both
@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        *((say({"message": said}, status), Unavailable, "nothing left on the account") for status, said in NO_MONEY),
        *((say({"message": said}, status), ConfigError, "the key of SEARCH_KEY") for status, said in NO_KEY),
        *((Answer(status), ConfigError, r"live\.urls\.search") for status in (404, 405, 410)),
        (send_to("http://127.0.0.1:1/new"), ConfigError, r"has moved to 'http://127\.0\.0\.1:1/new'"),
        (say({"message": "Query not allowed."}, 400), RecordFailed, "search-refused"),
    ],
)
def test_a_refusal_is_explained_and_not_asked_again(kind, answer, error, why):
    with run_live_server(lambda asked: answer) as server, pytest.raises(error, match=why):
        search(kind, server)
    assert len(server.asked) == 1


@both
@pytest.mark.parametrize(
    "answer",
    [make_bomb(), Answer(body=b" " * (1 << 17)), Answer(body=b" " * 4096, endless=True)],
    ids=["bomb", "huge", "endless"],
)
def test_a_reply_that_is_too_large_is_given_up_at_once(kind, answer):
    with run_live_server(lambda asked: answer) as server, pytest.raises(Unavailable, match="65,536"):
        search(kind, server)
    assert len(server.asked) == 1


def tell_all(asked):
    """Answer with everything that was sent, as a careless service does."""
    words = [*asked.headers.values(), *asked.query.values(), asked.headers.get("x-api-key", "")]
    return {"message": " ".join(words), "raw": asked.query, "from": KEY.replace("/", "%2F").replace("+", "%2B")}


@both
@pytest.mark.parametrize("status", [200, 302, 400, 401, 402, 403, 404, 429, 500, 503])
def test_the_key_is_in_no_error_log_or_repr(kind, status, caplog):
    caplog.set_level(logging.DEBUG)

    def respond(asked):
        answer = say(tell_all(asked) | ({"error": f"with {KEY}"} if status == 200 else {}), status)
        return dataclasses.replace(answer, headers={"Location": f"http://example.org/?api_key={KEY}"})

    one = None
    with run_live_server(respond) as server:
        one = LiveSearch(kind, server.url, "SEARCH_KEY", QUICK)
        try:
            asyncio.run(one.search_text("ada", 5))
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not tell
            shown = "".join(traceback.format_exception(error))
    for text in (shown, caplog.text, repr(one), one.identity):
        for secret in (KEY, "k3y", "with+signs", "and more"):
            assert secret not in text


@pytest.mark.parametrize(("value", "why"), [(" ", "SEARCH_KEY is not set"), ("abc\ndef", "must be printable ASCII")])
def test_a_key_that_is_missing_or_cannot_be_sent_is_refused_and_not_shown(value, why, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", value)
    with run_live_server() as server, pytest.raises(ConfigError, match=why) as caught:
        search("serper", server)
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize("fault", ["busy", "busy for a moment", "busy with a date"])
def test_a_service_that_is_busy_each_time_limits_the_rate(fault):
    with run_live_server(lambda asked: FAULTS[fault]) as server, pytest.raises(RateLimited):
        search("serper", server)
    assert 1 <= len(server.asked) <= QUICK.tries
