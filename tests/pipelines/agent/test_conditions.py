import asyncio
from dataclasses import dataclass, field
from typing import get_args

import pytest

from pipelines.agent.attempts import SNIPPET, Exhibits, Searches, make_answer_inputs
from pipelines.pictures import PictureStore
from pipelines.services.protocols import ImageHit, TextHit
from schemas.tasks import Condition
from tests.pipelines.release.builders import make_picture, make_question

HIT = ImageHit("https://toy.example/wiki/Kelm", "Kelm Bridge 1", "a bridge", 0.0)
PASSAGE = TextHit("https://toy.example/wiki/Ostrava", "Ostrava 1", "a town")


@dataclass
class FakeSearch:
    """Both searches; remembers what was asked."""

    image_hits: tuple = (HIT,)
    text_hits: tuple = (PASSAGE,)
    identity: str = "search:1"
    asked: list = field(default_factory=list)

    async def search_text(self, query, count):
        self.asked.append(query)
        return self.text_hits[:count]

    async def search_image(self, picture, count):
        assert picture.path.is_file()
        self.asked.append(picture.sha256)
        return self.image_hits[:count]


@pytest.fixture
def search():
    return FakeSearch()


@pytest.fixture
def question(tmp_path):
    return make_question(1, make_picture(tmp_path, 1))


@pytest.fixture
def exhibits(tmp_path, question, search):
    return Exhibits(question, Searches(search, search, PictureStore(tmp_path / "images")))


def show(exhibits, condition):
    exhibit = asyncio.run(exhibits.show(condition))
    return exhibit, make_answer_inputs(exhibits.record, exhibit)


@pytest.mark.parametrize("condition", get_args(Condition))
def test_each_condition_shows_what_its_name_says(exhibits, question, condition):
    exhibit, inputs = show(exhibits, condition)
    seen, _, tools = condition.partition("+")
    assert exhibit.picture == {"clause": None, "text": None, "image": question.picture}[seen]
    assert exhibit.images == ((exhibit.picture.sha256,) if exhibit.picture else ())
    assert inputs.pictured == (seen == "image")
    assert bool(inputs.image_results) == (tools in ("image-search", "both"))
    assert bool(inputs.search_results) == (tools in ("text-search", "both"))
    assert (inputs.condition, inputs.question) == (condition, question.text)


def test_the_query_of_an_image_search_is_the_picture_that_is_shown(exhibits, question, search):
    show(exhibits, "image+image-search")
    assert search.asked == [question.picture.sha256]


def test_of_both_searches_the_best_hit_of_the_picture_leads_the_words(exhibits, question, search):
    show(exhibits, "image+both")
    assert search.asked == [question.picture.sha256, f"Kelm Bridge 1 {question.text}"]


def test_results_are_numbered_lines_of_bounded_length(exhibits, search):
    search.text_hits = (TextHit("u", "First", "one\ntwo"), TextHit("u", "Second", "word " * SNIPPET))
    _, inputs = show(exhibits, "text+text-search")
    first, second = inputs.search_results.splitlines()
    assert first == "1. First: one two"
    assert second.startswith("2. Second: word")
    assert len(second) <= SNIPPET + len("2. Second: ")
