import asyncio
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.backends.metering import open_meter
from pipelines.backends.protocols import (
    ChatReply,
    ChatRequest,
    ImageHit,
    Message,
    PageNotFound,
    PageText,
    PictureFile,
    Sampling,
    TextHit,
)
from pipelines.backends.recorded import (
    RecordedChat,
    RecordedImageSearch,
    RecordedPages,
    RecordedTextSearch,
    make_chat_key,
)
from pipelines.backends.replies import open_replies
from pipelines.errors import Unavailable
from schemas.tasks import AnswerReply


@dataclass
class CountingModel:
    """Says how often it was asked."""

    identity: str = "model:1"
    name: str = "model"
    reads_inputs: bool = False
    asked: int = 0

    async def chat(self, request):
        self.asked += 1
        return ChatReply(f"reply {self.asked}", 10, 2)


@dataclass
class CountingServices:
    """A text search, an image search and a page reader in one."""

    identity: str = "services:1"
    asked: list = field(default_factory=list)

    async def search_text(self, query, count):
        self.asked.append(query)
        return (TextHit("u", "t", query),)

    async def search_image(self, picture, count):
        self.asked.append(picture.sha256)
        return (ImageHit("u", "t", "s", 0.5),)

    async def read_page(self, url):
        self.asked.append(url)
        if "missing" in url:
            raise PageNotFound(url)
        return PageText(url, "t", "text")


REQUEST = ChatRequest("ask", "ask/v1", (Message("user", "Who?", ("a" * 64,)),), AnswerReply(answer="in"))
OTHERS = {
    "prompt text": replace(REQUEST, messages=(Message("user", "Who then?", ("a" * 64,)),)),
    "role": replace(REQUEST, messages=(Message("system", "Who?", ("a" * 64,)),)),
    "picture": replace(REQUEST, messages=(Message("user", "Who?", ("b" * 64,)),)),
    "one message more": replace(REQUEST, messages=(*REQUEST.messages, Message("user", "Well?"))),
    "sample": replace(REQUEST, sample=1),
    "temperature": replace(REQUEST, sampling=Sampling(temperature=0.7)),
    "length": replace(REQUEST, sampling=Sampling(max_tokens=9)),
    "schema": replace(REQUEST, schema_json="{}"),
}


@pytest.fixture
def store(tmp_path):
    opened = open_replies(tmp_path)
    yield opened
    opened.close()


def chat(model, store, *requests):
    return [asyncio.run(RecordedChat(model, store).chat(request)).text for request in requests]


def test_a_request_is_asked_once_and_replayed_for_ever(store):
    model = CountingModel()
    assert chat(model, store, REQUEST, REQUEST, REQUEST) == ["reply 1"] * 3
    assert model.asked == 1


def test_a_reply_outlives_the_store_that_wrote_it(tmp_path, store):
    chat(CountingModel(), store, REQUEST)
    store.close()
    again = open_replies(tmp_path)
    assert chat(CountingModel(asked=7), again, REQUEST) == ["reply 1"]
    again.close()


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_whatever_changes_in_a_request_is_asked_anew(store, other):
    assert chat(CountingModel(), store, REQUEST, other, REQUEST) == ["reply 1", "reply 2", "reply 1"]


def test_another_model_never_gets_the_reply_of_the_first(store):
    chat(CountingModel(), store, REQUEST)
    other = CountingModel(identity="model:2", asked=5)
    assert chat(other, store, REQUEST) == ["reply 6"]


@pytest.mark.parametrize(("reads", "asked"), [(True, 2), (False, 1)])
def test_inputs_are_part_of_the_request_only_for_models_that_read_them(store, reads, asked):
    model = CountingModel(reads_inputs=reads)
    chat(model, store, REQUEST, replace(REQUEST, inputs=AnswerReply(answer="other")))
    assert model.asked == asked


def test_the_label_of_a_prompt_alone_is_no_new_request():
    model = CountingModel()
    assert make_chat_key(model, REQUEST) == make_chat_key(model, replace(REQUEST, prompt="ask/v2"))


@given(st.text(), st.text())
def test_two_texts_share_a_key_only_when_they_are_the_same(first, second):
    one, two = (replace(REQUEST, messages=(Message("user", text),)) for text in (first, second))
    assert (make_chat_key(CountingModel(), one) == make_chat_key(CountingModel(), two)) == (first == second)


@given(st.text(), st.text())
def test_text_cannot_move_from_one_message_to_the_next(first, second):
    one = replace(REQUEST, messages=(Message("user", first + second), Message("user", "")))
    two = replace(REQUEST, messages=(Message("user", first), Message("user", second)))
    assert (make_chat_key(CountingModel(), one) == make_chat_key(CountingModel(), two)) == (second == "")


def test_the_meter_counts_paid_and_recorded_calls_apart(store):
    with open_meter() as meter:
        chat(CountingModel(), store, REQUEST, REQUEST, REQUEST)
    usage = meter.usage
    assert (usage.calls, usage.cached_calls, usage.tokens_in, usage.tokens_out) == (1, 2, 10, 2)


def test_an_ask_is_noted_before_it_is_answered(store):
    class Away:
        name, identity, reads_inputs = "away", "away:1", False

        async def chat(self, request):
            raise Unavailable("no route")

    with pytest.raises(Unavailable):
        chat(Away(), store, REQUEST)
    assert store.count() == (1, 0)
    chat(CountingModel(), store, REQUEST, REQUEST)
    assert store.count() == (2, 1)


def test_the_first_reply_stays_when_two_were_written(store):
    store.write("k", "b", "first")
    store.write("k", "b", "second")
    assert store.read("k") == "first"
    assert store.read("other") is None


def test_searches_are_recorded_by_query_count_and_identity(store):
    services = CountingServices()
    recorded = RecordedTextSearch(services, store)
    hits = [
        asyncio.run(recorded.search_text(query, count)) for query, count in (("a", 1), ("a", 1), ("a", 2), ("b", 1))
    ]
    assert hits[0] == hits[1] == (TextHit("u", "t", "a"),)
    asyncio.run(RecordedTextSearch(CountingServices("services:2", services.asked), store).search_text("a", 1))
    assert services.asked == ["a", "a", "b", "a"]


def test_a_picture_is_searched_by_its_content_and_not_its_place(store):
    services = CountingServices()
    recorded = RecordedImageSearch(services, store)
    for place in ("here", "there"):
        assert asyncio.run(recorded.search_image(PictureFile("a" * 64, Path(place)), 3))[0].distance == 0.5
    asyncio.run(recorded.search_image(PictureFile("b" * 64, Path("here")), 3))
    assert services.asked == ["a" * 64, "b" * 64]


def test_a_missing_page_is_recorded_as_missing(store):
    services = CountingServices()
    recorded = RecordedPages(services, store)
    for _ in range(2):
        assert asyncio.run(recorded.read_page("u")).text == "text"
        with pytest.raises(PageNotFound):
            asyncio.run(recorded.read_page("missing"))
    assert services.asked == ["u", "missing"]


WRITER = """
import sys
from pathlib import Path
from pipelines.backends.replies import open_replies
store = open_replies(Path(sys.argv[1]))
for number in range(60):
    store.note_ask(f"{sys.argv[2]}-{number}", "b")
    store.write(f"{sys.argv[2]}-{number}", "b", "reply")
    store.write(f"both-{number}", "b", sys.argv[2])
store.close()
"""


def test_two_processes_write_to_one_store_and_lose_nothing(tmp_path, store):
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name], cwd=root) for name in ("one", "two")]
    assert [writer.wait(timeout=30) for writer in writers] == [0, 0]
    assert store.count() == (120, 180)
    assert {store.read(f"both-{number}") for number in range(60)} <= {"one", "two"}


def test_a_store_that_cannot_be_opened_is_unavailable(tmp_path):
    (tmp_path / "replies.db").write_bytes(b"not a database, not a database, not a database" * 40)
    with pytest.raises(Unavailable, match="reply store"):
        open_replies(tmp_path)
