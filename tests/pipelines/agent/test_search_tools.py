import asyncio
import json
from dataclasses import dataclass, replace

import pytest
from PIL import Image

from pipelines.agent.contamination import Watched
from pipelines.agent.observations import GAP, LONGEST_DETAIL, Summariser, read_hits, read_page
from pipelines.agent.tools import ToolBox
from pipelines.pictures import PictureStore
from pipelines.services.addresses import ForbiddenAddress
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.replies import open_replies
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ImageHit, PageText, TextHit
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


def test_a_text_search_keeps_its_results(tmp_path, images):
    observation = call(make_tools(tmp_path), images, "text_search", {"query": "marlow", "top_k": 2}).observation
    assert [(result.url, result.title) for result in observation.results] == [
        (hit.url, hit.title) for hit in read_hits(observation.text)
    ]
    assert len(observation.results) == 2


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


def test_without_a_summariser_a_search_that_reads_shows_enough_of_each_page(tmp_path, images):
    texts = {"Kelm Bridge": LONG["Kelm Bridge"], "Orsa": "River: Ister\n\nOrsa is a town of bells."}
    snippets = {"Kelm Bridge": "Bridges of the world …", "Orsa": "Bells …", "Nowhere": "No bells."}
    hits = Hits(tuple(TextHit(make_url(title), title, snippet) for title, snippet in snippets.items()))
    tools = make_reading(tmp_path, summariser=None, text_search=hits, pages=FakePages(texts))
    query = {"query": "who was the designer"}
    observation = call(tools, images, "text_search", query).observation
    assert observation.warning == ""
    long, short, missing = (hit.text for hit in read_hits(observation.text))
    assert long.startswith("Bridges of the world … The designer of it was Ana Kovač.")
    assert (short, missing) == ("River: Ister Orsa is a town of bells.", "No bells.")
    found = replace(tools, text_search=Hits((TextHit(make_url("Kelm Bridge"), "Kelm Bridge", FILLER[:200]),)))
    (hit,) = read_hits(call(found, images, "text_search", query).observation.text)
    assert hit.text == " ".join(FILLER[:200].split())
    assert len({replace(tools, reads=reads).identity for reads in (False, True)}) == 2


def test_a_summary_that_is_none_leaves_the_passage_and_a_warning(tmp_path, images):
    tools = make_reading(tmp_path, FakeModel((ChatReply("I cannot help with that.", 1, 1),)))
    observation = call(tools, images, "text_search", {"query": "designer of Kelm Bridge"}).observation
    assert (observation.ok, observation.warning) == (True, "no-summary")
    assert "About" not in observation.text
    assert read_hits(observation.text)[0].text.startswith("Kelm Bridge crosses")


def test_a_visit_with_a_summariser_shows_what_the_page_says_of_the_goal(tmp_path, images):
    visit = {"url": make_url("Kelm Bridge"), "goal": "who was the designer"}
    page = read_page(call(make_reading(tmp_path), images, "visit", visit).observation.text)
    assert page.text.startswith("About Kelm Bridge:")
    assert "Ana Kovač" in page.text
    silent = make_reading(tmp_path, FakeModel(("<think>",)), page_limit=1000)
    bad = call(silent, images, "visit", visit).observation
    assert bad.warning == "no-summary"
    assert read_page(bad.text).text.startswith("The designer of it was")


def test_a_visit_without_a_goal_shows_the_page(tmp_path, images):
    observation = call(make_reading(tmp_path), images, "visit", {"url": make_url("Kelm Bridge")}).observation
    assert read_page(observation.text).text.startswith("Kelm Bridge crosses the Ister.\n\nParagraph 0")


def test_of_a_long_page_what_fits_the_goal_comes_first(tmp_path, images):
    tools = make_reading(tmp_path, summariser=None, page_limit=1000)
    goal = {"url": make_url("Kelm Bridge"), "goal": "designer"}
    text = read_page(call(tools, images, "visit", goal).observation.text).text
    assert text.startswith(f"The designer of it was Ana Kovač.\n\n{GAP}\n\nKelm Bridge crosses")
    assert len(text) <= 1000


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


def test_nothing_like_a_part_is_said_of_the_part(tmp_path, images):
    tools = make_tools(tmp_path, image_search=FakeImageSearch(()))
    text = call(tools, images, "image_search", {"box": [0, 0, 500, 500]}).observation.text
    assert text == "No page shows a picture like this part of img_1."


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


def test_a_sliver_is_kept_and_not_shown(tmp_path, images):
    sliver, whole = make_thumbnail(tmp_path, 10, (256, 1)), make_thumbnail(tmp_path, 90)
    hits = tuple(ImageHit(make_url(f"P{n}"), f"P{n}", "A page.", 0.0, each) for n, each in enumerate((sliver, whole)))
    outcome = call(make_tools(tmp_path, image_search=Hits(hits), thumbnails=5), images, "image_search", {})
    assert [(image.id, image.picture) for image in outcome.images] == [("img_2", whole)]
    assert [(each.thumbnail, each.image) for each in outcome.observation.results] == [(sliver, ""), (whole, "img_2")]


def test_thumbnails_are_kept_where_none_are_shown(tmp_path, images):
    hit = ImageHit(make_url("A"), "A", "A page.", 0.0, make_thumbnail(tmp_path, 10))
    outcome = call(make_tools(tmp_path, image_search=Hits((hit,))), images, "image_search", {})
    assert (outcome.images, outcome.observation.results[0].thumbnail) == ((), hit.thumbnail)
    assert "Picture" not in outcome.observation.text


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


def test_a_page_that_moved_to_a_dataset_host_is_not_summed_up(tmp_path, images):
    class Redirected(FakePages):
        async def read_page(self, url):
            return PageText("https://huggingface.co/datasets/x", "The answers", "The answer is 1204. " * 200)

    tools = make_reading(tmp_path, pages=Redirected(), blocked_hosts=HOSTS)
    assert "1204" not in call(tools, images, "text_search", {"query": "Kelm Bridge"}).observation.text


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


def test_a_summary_of_a_page_that_holds_the_question_is_flagged_though_it_does_not(tmp_path, images):
    text = {"Kelm Bridge": LONG["Kelm Bridge"] + "\n\n" + QUESTION}
    tools = make_reading(tmp_path, FakeModel(("Kelm Bridge crosses the Ister.",)), pages=FakePages(text))
    for name, arguments in (
        ("visit", {"url": make_url("Kelm Bridge"), "goal": "designer"}),
        ("text_search", {"query": "Kelm Bridge"}),
    ):
        observation = call(tools, images, name, arguments, ABOUT).observation
        assert "Kelm Bridge crosses the Ister." in observation.text
        assert QUESTION not in observation.text
        assert observation.flags == ("question-text",)


def test_leaked_protocol_is_flagged_and_stripped(tmp_path, images):
    leak = {"A": "Summary: <think> Okay, the user wants</think> 1982"}
    observation = call(make_tools(tmp_path, pages=FakePages(leak)), images, "visit", {"url": make_url("A")}).observation
    assert observation.flags == ("protocol-tags",)
    assert "<think>" not in observation.text


def test_what_a_model_wrote_into_its_own_call_contaminates_nothing(tmp_path, images):
    calls = [("visit", {"url": f"{QUESTION} <think>"}), ("crop", {"image": QUESTION, "box": [0, 0, 9, 9]})]
    for name, arguments in calls:
        assert call(make_tools(tmp_path), images, name, arguments, ABOUT).observation.flags == ()


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


class Trap(FakePages):
    """Pages whose names, or what they redirect to, lead where nobody may go."""

    async def read_page(self, url):
        raise ForbiddenAddress(f"{url!r} leads to 10.0.0.1, which is not a public address" + "." * 4000)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_page_that_leads_to_a_private_address_is_an_error_of_the_call(tmp_path, images, recorded):
    pages = Recorded(Trap(), open_replies(tmp_path), live=True) if recorded else Trap()
    tools = make_tools(tmp_path, pages=pages, online=True)
    for _ in range(2):
        observation = call(tools, images, "visit", {"url": make_url("Kelm Bridge")}).observation
        assert (observation.ok, observation.error) == (False, "forbidden-address")
        assert "leads to 10.0.0.1" in observation.text
        assert len(observation.text) <= LONGEST_DETAIL


def test_a_result_that_leads_to_a_private_address_keeps_its_passage(tmp_path, images):
    observation = call(
        make_reading(tmp_path, pages=Trap()), images, "text_search", {"query": "Kelm Bridge"}
    ).observation
    assert (observation.ok, observation.warning) == (True, "")
    assert read_hits(observation.text)[0].text.startswith("Kelm Bridge crosses the Ister.")


def test_an_address_too_long_to_be_visited_is_no_result(tmp_path, images):
    hits = (TextHit("https://w/" + "a" * 2000, "Long", "x"), TextHit("https://w/A", "t" * 5000, "x" * 5000))
    observation = call(make_tools(tmp_path, text_search=Hits(hits)), images, "text_search", {"query": "x"}).observation
    assert [result.url for result in observation.results] == ["https://w/A"]
    assert len(observation.text) < 1000


def test_text_that_is_no_text_is_shown_with_question_marks(tmp_path, images):
    tools = make_tools(tmp_path, pages=FakePages({"A": "a\ud800b"}))
    assert call(tools, images, "visit", {"url": make_url("A")}).observation.text.endswith("a?b")


def test_every_tool_box_tells_the_date_of_its_corpus(tmp_path):
    assert replace(make_tools(tmp_path), snapshot="20260101").snapshot == "20260101"
