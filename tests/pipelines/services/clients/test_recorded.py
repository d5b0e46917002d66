import asyncio
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import BudgetSpent, RecordFailed
from pipelines.services.addresses import ForbiddenAddress
from pipelines.services.clients.commons import RecordedCommons
from pipelines.services.clients.recorded import Recorded, RecordedChat, make_chat_key
from pipelines.services.clients.replies import open_replies
from pipelines.services.image_metadata import ImageFacts
from pipelines.services.metering import Budget, Price, open_meter, open_stopwatch
from pipelines.services.protocols import (
    ChatReply,
    ChatRequest,
    ImageHit,
    Message,
    PageNotFound,
    PageText,
    PictureFile,
    Sampling,
    TextBlock,
    TextHit,
    ToolCall,
)
from pipelines.services.renewal import renewing
from schemas.datasets import Picture
from schemas.tasks import AnswerReply


@dataclass
class CountingModel:
    """Says how often it was asked."""

    identity: str = "model:1"
    name: str = "model"
    reads_inputs: bool = False
    asked: int = 0
    day: str = ""

    async def chat(self, request):
        self.asked += 1
        return ChatReply(f"reply {self.asked}", 10, 2, gpu_seconds=1.5, retries=3, day=self.day)


@dataclass
class CountingServices:
    """All tools in one."""

    identity: str = "services:1"
    asked: list = field(default_factory=list)

    async def search_text(self, query, count):
        self.asked.append(query)
        return (TextHit("u", "t", query),)

    async def search_image(self, picture, count):
        self.asked.append(picture.sha256)
        return (ImageHit("u", "t", "s", 0.5),)

    async def select(self, query, divisible=False):
        self.asked.append(query)
        return ({"page": query},)

    async def read_text(self, data, scale=1.0):
        self.asked.append(scale)
        if not data:
            raise RecordFailed("ocr-failed", "no")
        return (TextBlock(f"Kelmor {scale}", "title", (1.0, 2.0, 3.5, 4.0), 0.25),)

    async def describe_images(self, files):
        self.asked.extend(files)
        return {file: ImageFacts("u", 8, 6, "image/png", 9, "", "CC0", "l", "A", "s") for file in files}

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
    "greedy": replace(REQUEST, sampling=Sampling(temperature=0.0)),
    "length": replace(REQUEST, sampling=Sampling(max_tokens=9)),
    "schema": replace(REQUEST, schema_json="{}"),
    "tools": replace(REQUEST, tools="[]"),
    "stop": replace(REQUEST, stop=("<tool_response>",)),
    "presence penalty": replace(REQUEST, sampling=Sampling(presence_penalty=1.5)),
    "call": replace(REQUEST, messages=(Message("user", "Who?", ("a" * 64,), (ToolCall("1", "crop", "{}"),)),)),
    "call id": replace(REQUEST, messages=(Message("user", "Who?", ("a" * 64,), call_id="1"),)),
}


@pytest.fixture
def store(tmp_path):
    opened = open_replies(tmp_path)
    yield opened
    opened.close()


def chat(model, store, *requests):
    return [asyncio.run(RecordedChat(model, store).chat(request)).text for request in requests]


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_whatever_changes_in_a_request_is_asked_anew(store, other):
    assert chat(CountingModel(), store, REQUEST, other, REQUEST) == ["reply 1", "reply 2", "reply 1"]


@pytest.mark.parametrize(("reads", "asked"), [(True, 2), (False, 1)])
def test_inputs_are_part_of_the_request_only_for_models_that_read_them(store, reads, asked):
    model = CountingModel(reads_inputs=reads)
    chat(model, store, REQUEST, replace(REQUEST, inputs=AnswerReply(answer="other")))
    assert model.asked == asked


ROWS = [replace(REQUEST, messages=(Message("system", "Be brief."), Message("user", f"Row {n}?"))) for n in range(20)]


# What a reply took


PRICE = Price(tokens_in=2e6, tokens_out=5e6, gpu_hour=3600.0)
"""2 a token in, 5 a token out, 1 a GPU-second."""


def test_a_request_is_counted_with_all_it_took_and_a_replay_with_nothing(store):
    recorded = RecordedChat(CountingModel(), store, PRICE)
    with open_meter() as meter:
        first, second = (asyncio.run(recorded.chat(REQUEST)) for _ in range(2))
    assert first == second
    used = meter.usage
    assert (used.calls, used.cached_calls, used.retries, used.gpu_seconds, used.cost) == (1, 1, 3, 1.5, 31.5)


def test_an_empty_purse_lets_nothing_be_sent_but_recorded_replies(store):
    budget, model = Budget({"tokens": 20}), CountingModel()
    recorded = RecordedChat(model, store, budget=budget)
    assert [asyncio.run(recorded.chat(request)).text for request in (*ROWS[:2], *ROWS[:2])] == [
        "reply 1",
        "reply 2",
    ] * 2
    with pytest.raises(BudgetSpent, match="24 of 20 tokens; run the same command again"):
        asyncio.run(recorded.chat(ROWS[2]))
    assert asyncio.run(recorded.chat(ROWS[0])).text == "reply 1"
    assert (model.asked, store.count()) == (2, (2, 2))


def test_native_calls_and_the_reasoning_are_replayed(store):
    said = ChatReply(
        "", 9, 5, calls=(ToolCall("c1", "visit", '{"url": "\ud800"}'), ToolCall("", "", "")), reasoning="Let me see.\n"
    )

    class Calling(CountingModel):
        async def chat(self, request):
            self.asked += 1
            return replace(said, day="2026-01-02", seconds=1.25)

    model = Calling()
    replies = [asyncio.run(RecordedChat(model, store).chat(REQUEST)) for _ in range(2)]
    assert replies[0] == replies[1] == replace(said, day="2026-01-02", seconds=1.25)
    assert model.asked == 1


def test_who_replied_counts_when_it_is_asked_and_when_it_is_replayed(store):
    class Dated(CountingModel):
        async def chat(self, request):
            return replace(await super().chat(request), served="model-2026-08-07 fp_1")

    for cached in (0, 1):
        with open_meter() as meter:
            assert asyncio.run(RecordedChat(Dated(), store).chat(REQUEST)).served == "model-2026-08-07 fp_1"
        assert (meter.usage.cached_calls, meter.usage.served) == (cached, {"model: model-2026-08-07 fp_1": 1})


def test_inside_a_renewal_what_was_recorded_before_is_asked_again_once(store):
    model = CountingModel()
    recorded = RecordedChat(model, store)
    asyncio.run(recorded.chat(REQUEST))
    now = int(time.time())
    with renewing(now - 60):
        asyncio.run(recorded.chat(REQUEST))
    assert model.asked == 1
    with renewing(now + 1):
        asyncio.run(recorded.chat(REQUEST))
    assert (model.asked, store.count()) == (2, (2, 2))
    asyncio.run(recorded.chat(REQUEST))
    assert model.asked == 2


def test_the_stopwatch_reads_the_same_whether_a_reply_was_asked_for_now_or_long_ago(store):
    class Slow(CountingModel):
        async def chat(self, request):
            await asyncio.sleep(0.02)
            return await super().chat(request)

    read = []
    for model in (Slow(day="2026-01-02"), Slow(day="2027-03-04")):
        with open_stopwatch() as stopwatch:
            chat(model, store, *ROWS[:3])
        read.append((stopwatch.seconds, stopwatch.day))
    assert read[0] == read[1]
    assert read[0][0] >= 0.06
    assert read[0][1] == "2026-01-02"


@pytest.mark.parametrize("text", ["\ud800", "\x00", "a\udfff\n", "\U0001f600"], ids=ascii)
def test_a_reply_that_is_no_valid_unicode_is_replayed_as_it_came(store, text):
    class Spoilt(CountingModel):
        async def chat(self, request):
            self.asked += 1
            return ChatReply(text, 1, 1)

    model = Spoilt()
    quoted = replace(REQUEST, messages=(*REQUEST.messages, Message("assistant", text)))
    assert chat(model, store, quoted, quoted) == [text, text]
    assert model.asked == 1


# Asking again


def test_a_new_generation_asks_anew_and_the_one_before_is_still_there(store):
    model = CountingModel()
    replies = [asyncio.run(RecordedChat(model, store, epoch=epoch).chat(REQUEST)).text for epoch in (0, 1, 2, 1, 0)]
    assert replies == ["reply 1", "reply 2", "reply 3", "reply 2", "reply 1"]
    assert [RecordedChat(model, store, epoch=epoch).identity for epoch in (0, 2)] == ["model:1", "model:1#2"]


TOOLS = {
    "text search": (Recorded, lambda tool: tool.search_text("q", 3)),
    "image search": (Recorded, lambda tool: tool.search_image(PictureFile("a" * 64, Path("p")), 3)),
    "pages": (Recorded, lambda tool: tool.read_page("u")),
    "SPARQL": (Recorded, lambda tool: tool.select("SELECT")),
    "OCR": (Recorded, lambda tool: tool.read_text(b"sign", 2.0)),
    "image metadata": (RecordedCommons, lambda tool: tool.describe_images(["A.jpg"])),
}


@pytest.mark.parametrize(("recorder", "call"), TOOLS.values(), ids=TOOLS.keys())
def test_a_new_generation_of_a_tool_asks_anew(store, recorder, call):
    services = CountingServices()

    async def run(epoch):
        return await call(recorder(services, store, epoch=epoch))

    assert asyncio.run(run(0)) == asyncio.run(run(0)) == asyncio.run(run(1)) == asyncio.run(run(1))
    assert len(services.asked) == 2
    assert recorder(services, store, epoch=1).identity == "services:1#1"


# Tools


def test_a_picture_is_read_once_at_each_scale_and_a_failure_is_not_recorded(store):
    services = CountingServices()
    recorded = Recorded(services, store)
    for scale in (1.0, 2.0, 1.0):
        assert asyncio.run(recorded.read_text(b"sign", scale))[0].text == f"Kelmor {scale}"
    for _ in range(2):
        with pytest.raises(RecordFailed):
            asyncio.run(recorded.read_text(b""))
    assert services.asked == [1.0, 2.0, 1.0, 1.0]


def test_a_picture_is_searched_by_its_content_and_not_its_place(store):
    services = CountingServices()
    recorded = Recorded(services, store)
    for place in ("here", "there"):
        assert asyncio.run(recorded.search_image(PictureFile("a" * 64, Path(place)), 3))[0].distance == 0.5
    asyncio.run(recorded.search_image(PictureFile("b" * 64, Path("here")), 3))
    assert services.asked == ["a" * 64, "b" * 64]


PICTURE = Picture(
    sha256="c" * 64,
    extension="jpg",
    file="Bridge.jpg",
    width=256,
    height=170,
    phash="0" * 16,
    author="A. Nonymous",
    licence="CC BY 4.0",
    licence_url="https://example.org/licence",
    source_url="https://example.org/file",
)


@pytest.mark.parametrize("live", [False, True])
def test_the_thumbnail_of_a_hit_survives_the_recording(store, live):
    class Showing(CountingServices):
        async def search_image(self, picture, count):
            self.asked.append(picture.sha256)
            return (ImageHit("u", "t", "s", 0.5, PICTURE), ImageHit("v", "t", "s", 0.6))

    services = Showing()
    recorded = Recorded(services, store, live=live)
    hits = [asyncio.run(recorded.search_image(PictureFile("a" * 64, Path("p")), 3)) for _ in range(2)]
    assert hits[0] == hits[1] == (ImageHit("u", "t", "s", 0.5, PICTURE), ImageHit("v", "t", "s", 0.6))
    assert len(services.asked) == 1


@pytest.mark.parametrize("live", [False, True])
def test_a_forbidden_address_is_recorded_as_forbidden(store, live):
    class Guarded(CountingServices):
        async def read_page(self, url):
            self.asked.append(url)
            raise ForbiddenAddress(f"{url} leads to 127.0.0.1, which is not a public address")

    services, said = Guarded(), []
    for _ in range(2):
        with pytest.raises(ForbiddenAddress, match=r"leads to 127\.0\.0\.1") as caught:
            asyncio.run(Recorded(services, store, live=live).read_page("u"))
        said.append(str(caught.value))
    assert services.asked == ["u"]
    assert said[0] == said[1]


@dataclass(frozen=True)
class Model:
    """A model's part in a key."""

    identity: str = "model:1"
    reads_inputs: bool = False


MODEL = Model()


TEXT = st.text(st.characters())


@given(TEXT, TEXT)
def test_two_texts_share_a_key_only_when_they_are_the_same(first, second):
    one, two = (replace(REQUEST, messages=(Message("user", text),)) for text in (first, second))
    assert (make_chat_key(MODEL, one) == make_chat_key(MODEL, two)) == (first == second)
