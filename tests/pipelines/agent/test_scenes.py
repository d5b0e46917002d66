"""Where a picture lies in a scene: always inside, always small, never over another."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.scenes import THOUSANDTHS, SceneMaker, count_columns, plan_box
from pipelines.agent.tools import cut_picture, place_box
from pipelines.config.settings import EnhancementsConfig
from pipelines.pictures import PictureStore, compute_phash, measure_distance, read_header
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ImageHit
from pipelines.splits import SHARES, SplitRule
from pipelines.stages.enhancements import Enhancements
from schemas.datasets import Difficulty
from tests.pipelines.agent.test_pictures import DATA
from tests.pipelines.agent.trail import SOURCE, make_question
from tests.pipelines.stages.players import FakeModel

SCENE = (3840, 2160)
sides = st.integers(min_value=64, max_value=6000)
luck = st.floats(min_value=0.0, max_value=1.0, exclude_max=True)


def measure_share(box, scene=SCENE):
    left, top, right, bottom = place_box(box, scene)
    return (right - left) * (bottom - top) / (scene[0] * scene[1])


@given(
    picture=st.tuples(sides, sides),
    most=st.floats(min_value=0.005, max_value=0.05),
    column=st.integers(0, 99),
    row=st.integers(0, 99),
    lucks=st.tuples(luck, luck, luck),
    long_side=st.integers(3840, 7680),
)
def test_a_part_stays_in_its_cell_and_under_its_share_of_the_area(picture, most, column, row, lucks, long_side):
    count, scene = count_columns(most), (long_side, round(long_side * 9 / 16))
    cell = (column % count, row % count, count)
    left, top, right, bottom = box = plan_box(picture, scene, cell, lucks)
    side = THOUSANDTHS // count
    assert cell[0] * side <= left < right <= (cell[0] + 1) * side
    assert cell[1] * side <= top < bottom <= (cell[1] + 1) * side
    assert 0 < measure_share(box, scene) < most


class Seeing:
    """Finds the anchor by pictures that look like one, or by all or none."""

    identity = "seeing"

    def __init__(self, phash, always=None):
        self.phash, self.always = phash, always

    def knows(self, path):
        """Say whether a file is the very picture, at its full size."""
        return read_header(path.read_bytes()).width >= SCENE[0]

    async def search_image(self, picture, count):
        near = measure_distance(compute_phash(picture.path), self.phash) <= 10
        found = near or self.knows(picture.path) if self.always is None else self.always
        return (ImageHit("https://w/Kelm", "Kelm Bridge", "A page.", 0.0, None),) if found else ()


@pytest.fixture
def compose(tmp_path, demo_corpus):
    return make_composer(tmp_path, demo_corpus)


@pytest.fixture(scope="module")
def composed(tmp_path_factory, demo_corpus):
    return make_composer(tmp_path_factory.mktemp("composed"), demo_corpus)()


def make_composer(folder, corpus):
    """Return what sets a question's picture in a scene of the demo's pictures."""
    picture = PictureStore(folder).add_bytes(DATA, SOURCE)
    question = make_question(picture)
    record = Difficulty(**{name: getattr(question, name) for name in Difficulty.model_fields})

    def set_in_scene(always=None, licence="CC BY 4.0"):
        shown = picture.model_copy(update={"licence": licence})
        search, splits = Seeing(picture.phash, always), SplitRule({"sft": 1.0}, 7)
        maker = SceneMaker(corpus, PictureStore(folder), search, splits, 1.0, 7)
        return asyncio.run(maker.compose(record, shown)), picture

    return set_in_scene


def test_a_scene_shows_the_part_and_hides_the_whole(compose):
    made, picture = compose()
    assert not isinstance(made, str), made
    header = read_header(made.data)
    assert (header.width, header.height) == SCENE
    assert made.scene.share == measure_share(made.scene.box) < 0.05
    assert measure_distance(compute_phash(cut_picture(made.data, made.scene.box)), picture.phash) <= 10
    assert measure_distance(compute_phash(made.view.whole), picture.phash) > 10
    assert 3 <= len(made.scene.parts) <= 12
    assert len({part.title for part in made.scene.parts}) == len(made.scene.parts)
    assert compose()[0] == made


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ({"always": False}, "does not find Kelm Bridge"),
        ({"always": True}, "finds Kelm Bridge by the whole"),
        ({"licence": "Some licence that nobody else has"}, "0 pictures of others can stand beside it"),
    ],
)
def test_what_shows_nothing_or_everything_or_stands_alone_is_no_scene(compose, case, why):
    made, _ = compose(**case)
    assert made.startswith("no-scene: ")
    assert why in made


def locate(tmp_path, corpus, reply, made, picture):
    """Ask a model where the thing lies in what was composed, as if it were a photograph of 4K."""
    store = PictureStore(tmp_path)
    large = store.add_bytes(made.data, SOURCE).model_copy(update={"licence": "nobody else's"})
    question = make_question(large)
    record = Difficulty(**{name: getattr(question, name) for name in Difficulty.model_fields})
    locator = RoleClient(FakeModel(lambda inputs: reply), load_prompt("locate_object"))
    splits = SplitRule(SHARES, 7)
    maker = SceneMaker(corpus, store, Seeing(picture.phash), splits, 1.0, 7, locator)
    stage = Enhancements(store, Seeing(picture.phash), None, {}, EnhancementsConfig(share=0.0), 7, scenes=maker)
    (row,) = asyncio.run(stage(record))
    return row, record, stage


def test_a_picture_of_4k_stays_as_it_is_with_the_box_that_a_model_says(composed, tmp_path, demo_corpus):
    made, picture = composed
    reply = json.dumps({"found": True, "box": made.scene.box})
    row, record, stage = locate(tmp_path, demo_corpus, reply, made, picture)
    assert (row.record_id, row.picture, row.original) == (record.record_id, record.picture, None)
    assert (row.scene.box, row.scene.share, row.scene.parts) == (made.scene.box, made.scene.share, ())
    assert list(stage.prompts()) == ["locate_object/v1"]
    assert [model.role for model in stage.models()] == ["judge"]
