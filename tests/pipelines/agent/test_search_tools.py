import asyncio
import json
from dataclasses import dataclass

import pytest
from PIL import Image

from pipelines.agent.contamination import Watched
from pipelines.agent.observations import Summariser, read_hits, read_page
from pipelines.agent.tools import ToolBox
from pipelines.pictures import PictureStore
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ImageHit, PageText, TextHit
from pipelines.toy.writer import TemplatesModel
from schemas.datasets import RolloutImage
from tests.pipelines.agent.trail import (
    SOURCE,
    FakeImageSearch,
    FakeModel,
    FakePages,
    FakeTextSearch,
    make_picture,
    make_tools,
    make_url,
)

QUESTION = "When was the birthplace of the designer of the bridge in the image founded?"
ABOUT = Watched(QUESTION, ("question-0a1b2c3d", "rewrite-4e5f6a7b"))
HOSTS = ("huggingface.co",)
FILLER = "\n\n".join(f"Paragraph {number} is about rain." for number in range(200))
LONG = {"Kelm Bridge": f"Kelm Bridge crosses the Ister.\n\n{FILLER}\n\nThe designer of it was Ana Kovač.\n\n{FILLER}"}


@dataclass(frozen=True)
class Hits:
    """Finds the same every time, by words or by picture."""

    hits: tuple
    identity: str = "hits"

    async def search_text(self, query, count):
        return self.hits[:count]

    async def search_image(self, picture, count):
        return self.hits[:count]


@pytest.fixture
def images(tmp_path):
    return (RolloutImage(id="img_1", picture=make_picture(tmp_path)),)


def call(tools, images, name, arguments, about=None):
    return asyncio.run(tools.call(name, json.dumps(arguments), images, about))


def make_summariser(model=None) -> Summariser:
    return Summariser(RoleClient(model or TemplatesModel(), load_prompt("summarise_page")))


def make_thumbnail(folder, shade, size=(64, 48)):
    Image.new("RGB", size, (shade, shade, 0)).save(folder / "shade.png")
    return PictureStore(folder).add_file(folder / "shade.png", SOURCE)


def make_reading(tmp_path, model=None, **changes) -> ToolBox:
    parts = {
        "text_search": FakeTextSearch(LONG),
        "pages": FakePages(LONG),
        "summariser": make_summariser(model),
        "reads": True,
    }
    return make_tools(tmp_path, **parts | changes)


def test_the_best_pages_of_a_text_search_are_summed_up_for_the_query(tmp_path, images):
    tools = make_reading(tmp_path)
    observation = call(tools, images, "text_search", {"query": "designer of Kelm Bridge"}).observation
    (hit,) = read_hits(observation.text)
    assert hit.text.startswith("About Kelm Bridge:")
    assert "The designer of it was Ana Kovač." in hit.text
    assert observation.warning == ""


def test_no_more_pages_are_read_than_asked_for_and_one_that_is_missing_keeps_its_passage(tmp_path, images):
    read = []

    class Reading(FakePages):
        async def read_page(self, url):
            read.append(url)
            return await super().read_page(url)

    hits = tuple(TextHit(make_url(title), title, f"Passage {title}.") for title in ("Nowhere", "Kelm Bridge", "Third"))
    tools = make_reading(tmp_path, text_search=Hits(hits), pages=Reading(LONG), pages_read=2)
    shown = read_hits(call(tools, images, "text_search", {"query": "designer"}).observation.text)
    assert sorted(read) == sorted(hit.url for hit in hits[:2])
    assert [hit.text.split(":")[0] for hit in shown] == ["Passage Nowhere.", "About Kelm Bridge", "Passage Third."]


def test_a_visit_with_a_summariser_shows_what_the_page_says_of_the_goal(tmp_path, images):
    visit = {"url": make_url("Kelm Bridge"), "goal": "who was the designer"}
    page = read_page(call(make_reading(tmp_path), images, "visit", visit).observation.text)
    assert page.text.startswith("About Kelm Bridge:")
    assert "Ana Kovač" in page.text
    silent = make_reading(tmp_path, FakeModel(("<think>",)), page_limit=1000)
    bad = call(silent, images, "visit", visit).observation
    assert bad.warning == "no-summary"
    assert read_page(bad.text).text.startswith("The designer of it was")


def test_a_part_of_a_picture_is_searched_and_is_no_picture_of_the_rollout(tmp_path, images):
    seen = []

    class Watching(FakeImageSearch):
        async def search_image(self, picture, count):
            with Image.open(picture.path) as shown:
                seen.append((picture.sha256, shown.size))
            return await super().search_image(picture, count)

    tools = make_tools(tmp_path, image_search=Watching())
    for _ in range(2):
        outcome = call(tools, images, "image_search", {"box": [0, 0, 320, 240], "unit": "pixels"})
        assert (outcome.images, outcome.observation.images, outcome.observation.ok) == ((), (), True)
    call(tools, images, "image_search", {})
    assert [size for _, size in seen] == [(320, 240), (320, 240), (640, 480)]
    assert seen[0] == seen[1] != seen[2]


def test_thumbnails_are_the_next_pictures_and_each_result_names_its_own(tmp_path, images):
    first, second = make_thumbnail(tmp_path, 10), make_thumbnail(tmp_path, 200)
    thumbnails = (None, first, second, first, make_thumbnail(tmp_path, 90))
    hits = tuple(ImageHit(make_url(f"P{n}"), f"P{n}", "A page.", 0.0, each) for n, each in enumerate(thumbnails))
    outcome = call(make_tools(tmp_path, image_search=Hits(hits), thumbnails=2), images, "image_search", {})
    observation = outcome.observation
    assert [(image.id, image.picture) for image in outcome.images] == [("img_2", first), ("img_3", second)]
    assert observation.images == ("img_2", "img_3")
    assert [result.image for result in observation.results] == ["", "img_2", "img_3", "img_2", ""]
    assert [result.thumbnail for result in observation.results] == list(thumbnails)
    blocks = observation.text.split("\n\n")
    assert [block.splitlines()[3:] for block in blocks] == [
        [],
        ["Picture: img_2"],
        ["Picture: img_3"],
        ["Picture: img_2"],
        [],
    ]
    assert [hit.title for hit in read_hits(observation.text)] == ["P0", "P1", "P2", "P3", "P4"]


@pytest.mark.parametrize("tool", ["text_search", "image_search"])
def test_results_on_dataset_hosts_are_left_out_and_flagged(tmp_path, images, tool):
    kind = TextHit if tool == "text_search" else ImageHit
    rest = () if tool == "text_search" else (0.0,)
    hits = (
        kind("https://huggingface.co/datasets/x", "The answers", "1204", *rest),
        kind(make_url("Kelm Bridge"), "Kelm Bridge", "A bridge.", *rest),
    )
    tools = make_tools(tmp_path, text_search=Hits(hits), image_search=Hits(hits), blocked_hosts=HOSTS)
    observation = call(tools, images, tool, {"query": "x"} if tool == "text_search" else {}).observation
    assert (observation.ok, observation.flags) == (True, ("dataset-host",))
    assert [result.title for result in observation.results] == ["Kelm Bridge"]
    assert "answers" not in observation.text
    assert "[1] Kelm Bridge" in observation.text


def test_a_dataset_host_is_neither_visited_nor_reached_by_a_redirect(tmp_path, images):
    read = []

    class Redirected(FakePages):
        async def read_page(self, url):
            read.append(url)
            return PageText("https://huggingface.co/datasets/x", "The answers", "1204")

    tools = make_tools(tmp_path, pages=Redirected(), blocked_hosts=HOSTS)
    for url in ("https://huggingface.co/datasets/x", make_url("Kelm Bridge")):
        observation = call(tools, images, "visit", {"url": url}).observation
        assert (observation.ok, observation.error, observation.flags) == (False, "blocked-host", ("dataset-host",))
        assert "1204" not in observation.text
    assert read == [make_url("Kelm Bridge")]


def test_what_holds_the_question_or_the_rows_id_is_flagged(tmp_path, images):
    texts = {"A": f"Benchmark: {QUESTION} (1204)", "B": "row question-0a1b2c3d", "C": "A town."}
    tools = make_tools(tmp_path, pages=FakePages(texts), text_search=FakeTextSearch(texts))

    def flag(name, arguments, about=ABOUT):
        return call(tools, images, name, arguments, about).observation.flags

    assert flag("visit", {"url": make_url("A")}) == ("question-text",)
    assert flag("visit", {"url": make_url("B")}) == ("row-id",)
    assert flag("visit", {"url": make_url("C")}) == ()
    assert flag("visit", {"url": make_url("A")}, None) == ()
    assert flag("text_search", {"query": "a b"}) == ("question-text", "row-id")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/x", "http://[::1]/", "http://169.254.169.254/", "file:///etc/passwd", "http://2130706433/"],
)
def test_online_an_address_outside_the_public_web_is_refused_before_anyone_asks(tmp_path, images, url):
    class Unasked(FakePages):
        async def read_page(self, url):
            raise AssertionError(url)

    tools = make_tools(tmp_path, pages=Unasked(), online=True)
    observation = call(tools, images, "visit", {"url": url}).observation
    assert (observation.ok, observation.error) == (False, "forbidden-address")
