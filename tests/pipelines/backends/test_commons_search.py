import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.clients.commons import CommonsApi, CommonsSearch, RecordedFileSearch, make_client, plain_query
from pipelines.services.clients.replies import open_replies
from pipelines.services.image_metadata import ImageFacts
from pipelines.services.metering import open_meter
from tests.pipelines.backends.commons_server import Fault, make_image, run_commons

AGENT = "synth/0.1 (who@example.org)"
TITLES = [f"File:Kelm {number}.jpg" for number in range(5)]


@pytest.fixture
def commons():
    images = {title: [make_image(width=100 + place)] for place, title in enumerate(TITLES)}
    with run_commons(images=images, found={"Kelm Bridge filetype:bitmap": TITLES}) as server:
        yield server


def search(server, query="Kelm Bridge", count=5, **settings):
    api = CommonsApi(server.url, AGENT, client=make_client(**({"pause": 0.0, "backoff": 0.0} | settings)))
    return asyncio.run(CommonsSearch(api).search_files(query, count))


def test_pictures_are_found_with_what_is_known_of_them_best_first(commons):
    found = search(commons)
    assert [(file, facts.width) for file, facts in found] == [(f"Kelm {n}.jpg", 100 + n) for n in range(5)]
    assert found[0][1].licence == "CC BY-SA 4.0"
    form = commons.requests[0]["form"]
    assert (form["generator"], form["gsrnamespace"], form["gsrlimit"]) == ("search", "6", "5")
    assert (form["prop"], form["maxlag"]) == ("imageinfo", "5")
    assert commons.requests[0]["headers"]["User-Agent"] == AGENT
    assert len(commons.requests) == 1


def test_a_search_that_finds_nothing_is_an_answer(commons):
    assert search(commons, "Absent") == ()


def test_nothing_is_asked_for_no_words_or_no_files(commons):
    assert search(commons, "(!)") == ()
    assert search(commons, count=0) == ()
    assert commons.requests == []


def test_no_more_are_wanted_than_one_request_gives(commons):
    assert len(search(commons, count=3)) == 3
    search(commons, count=900)
    assert [request["form"]["gsrlimit"] for request in commons.requests] == ["3", "50"]


def test_pictures_that_come_later_belong_to_the_same_search(commons):
    commons.at_once = 2
    assert [facts.width for _, facts in search(commons)] == [100, 101, 102, 103, 104]
    assert [request["form"].get("iistart") for request in commons.requests] == [None, "2", "4"]
    assert all("gsroffset" not in request["form"] for request in commons.requests)


def test_an_endless_continuation_is_given_up(commons):
    def stall(server, form):
        return server.search(form | {"iistart": "99"}) | {"continue": {"iistart": "0", "continue": "||"}}

    commons.answer = stall
    with pytest.raises(Unavailable, match=r"left 5 of 5 files out, first 'File:Kelm 0\.jpg'"):
        search(commons)
    assert len(commons.requests) == 6


def test_hidden_files_are_left_out(commons):
    commons.images[TITLES[0]] = [{"filehidden": True}]
    assert [file for file, _ in search(commons, count=2)] == ["Kelm 1.jpg"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"query": {"pages": [{"title": "File:A.jpg", "imageinfo": [make_image()]}]}}, "another form"),
        ({"query": {"pages": ["x"]}}, "another form"),
        ({"query": {"pages": [{"title": "File:A.jpg", "index": 1, "imageinfo": [{}]}]}}, "another form"),
        ({"query": []}, "no result"),
        ({}, "no result"),
    ],
)
def test_a_reply_of_another_form_is_none(commons, reply, error):
    commons.answer = lambda server, form: reply
    with pytest.raises(Unavailable, match=error):
        search(commons)


def test_refusals_are_those_of_the_api(commons):
    commons.faults = [Fault(429, headers={"Retry-After": "4"})]
    with pytest.raises(RateLimited) as caught:
        search(commons)
    assert caught.value.retry_after == 4.0
    commons.faults = [Fault(404)]
    with pytest.raises(ConfigError):
        search(commons)


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("Kelm (bridge)", "Kelm bridge"),
        ('-"Kelm" insource:/a.*/ ~b* \\c', "Kelm insource a b c"),
        ("St. John's Church, Saint-Denis", "St John's Church Saint-Denis"),
        ("Þórr 1.5 мост", "Þórr 1.5 мост"),
        ("incategory:Bridges|!x", "incategory Bridges x"),
    ],
)
def test_a_query_is_words_and_no_operators(query, plain):
    assert plain_query(query) == plain


@given(st.text(max_size=400) | st.text(alphabet="a '-.:", min_size=200, max_size=2000))
def test_any_query_is_short_and_begins_no_word_with_an_operator(query):
    words = plain_query(query)
    assert len(words) <= 250
    assert all(word[0].isalnum() or word[0] == "_" for word in words.split())
    assert not set(words) & set('":/\\*?~!|()[]{}<>#&^')


@dataclass
class Scripted:
    """Finds one picture for every query but an empty one."""

    asked: list = field(default_factory=list)
    identity: str = "scripted:1"

    async def search_files(self, query, count):
        self.asked.append((query, count))
        facts = ImageFacts("u", "", 800, 600, "image/png", 9, "", "CC0", "l", "A", "s")
        return (("A.png", facts),) if query else ()


def test_a_search_is_recorded_with_its_count_even_when_it_finds_nothing(tmp_path):
    store, service = open_replies(tmp_path), Scripted()
    asked = [("Kelm", 8), ("", 8), ("Kelm", 4)]
    try:
        with open_meter() as meter:
            first = [asyncio.run(RecordedFileSearch(service, store).search_files(*one)) for one in asked]
            second = [asyncio.run(RecordedFileSearch(service, store).search_files(*one)) for one in asked]
            asyncio.run(RecordedFileSearch(service, store, epoch=1).search_files("Kelm", 8))
    finally:
        store.close()
    assert first == second
    assert service.asked == [*asked, ("Kelm", 8)]
    assert (meter.usage.calls, meter.usage.cached_calls) == (4, 3)


def test_another_wiki_is_another_search():
    identities = {CommonsSearch(CommonsApi(f"https://{host}/api.php", AGENT)).identity for host in ("a", "b")}
    assert len(identities) == 2
