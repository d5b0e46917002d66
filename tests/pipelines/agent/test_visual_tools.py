import asyncio
import json
from dataclasses import dataclass

import pytest

from pipelines.errors import RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from pipelines.services.protocols import TextBlock
from schemas.datasets import RolloutImage
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.agent.test_pictures import Doubling
from tests.pipelines.agent.trail import SOURCE, make_tools


@dataclass(frozen=True)
class FakeOcr:
    blocks: tuple[TextBlock, ...] = ()
    error: Exception | None = None
    name: str = "fake"
    identity: str = "fake-ocr"

    async def read_text(self, data, scale=1.0):
        if self.error:
            raise self.error
        return self.blocks


SIGN = TextBlock("Old  Harbour <image>", "title", (64.0, 48.0, 320.0, 96.0), 0.987)


@pytest.fixture
def call(tmp_path):
    """Calls a tool on a drawn scene, with changes to the tools; returns the outcome."""

    def call_tool(name, arguments, data=None, **changes):
        picture = PictureStore(tmp_path).add_bytes(data or encode_scene(draw_scene(1)), SOURCE)
        tools = make_tools(tmp_path, **({"opencv": True} | changes))
        return asyncio.run(tools.call(name, json.dumps(arguments), (RolloutImage(id="img_1", picture=picture),)))

    return call_tool


def draw_turned():
    from pipelines.agent.pictures import degrade_picture

    return degrade_picture(encode_scene(draw_scene(2)), "perspective", 0.5, 1).data


@pytest.mark.parametrize(
    ("name", "arguments", "size"),
    [
        ("sharpen", {}, (640, 480)),
        ("sharpen", {"image": "img_1", "amount": 5}, (640, 480)),
        ("crop", {"box": [0, 0, 320, 240], "unit": "pixels"}, (320, 240)),
        ("crop", {"box": [0, 0, 500, 500]}, (320, 240)),
    ],
)
def test_a_produced_picture_is_the_next_one_and_keeps_its_credit(call, name, arguments, size):
    outcome = call(name, arguments)
    (made,) = outcome.images
    assert (made.id, outcome.observation.images, outcome.observation.warning) == ("img_2", ("img_2",), "")
    assert (made.picture.width, made.picture.height) == size
    assert (made.picture.file, made.picture.author, made.picture.licence) == (
        SOURCE.file,
        SOURCE.author,
        SOURCE.licence,
    )
    assert outcome.observation.text.startswith("img_2: ")


def test_without_weights_the_original_stays_and_the_warning_is_typed(call):
    outcome = call("super_resolution", {})
    assert outcome.images == ()
    assert (outcome.observation.ok, outcome.observation.warning) == (True, "no-weights")
    assert "img_1 stays as it is" in outcome.observation.text


def test_a_picture_seen_at_an_angle_is_straightened(call):
    outcome = call("perspective_correct", {}, draw_turned())
    assert outcome.observation.images == ("img_2",)
    assert outcome.images[0].picture.width < 640


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("sharpen", {"amount": 0}, "bad-arguments"),
        ("sharpen", {"image": "img_4"}, "unknown-image"),
        ("super_resolution", {"scale": 5}, "bad-arguments"),
        ("super_resolution", {"scale": 2}, "picture-too-large"),
        ("crop", {"box": [0, 0, 641, 480], "unit": "pixels"}, "crop-outside"),
        ("crop", {"box": [0, 0, 1200, 480]}, "bad-arguments"),
        ("layout_parsing", {}, "unknown-tool"),
    ],
)
def test_a_call_that_cannot_be_made_is_an_error_class(call, name, arguments, error):
    observation = call(name, arguments, upscaler=Doubling()).observation
    assert (observation.ok, observation.error, observation.warning) == (False, error, "")


def test_text_is_shown_by_block_with_boxes_as_crop_takes_them(call):
    text = call("layout_parsing", {}, ocr=FakeOcr((SIGN,))).observation.text
    assert text == "title [100, 100, 500, 200] (0.99): Old Harbour "


def test_a_picture_that_the_engine_cannot_read_is_an_observation_and_an_absent_engine_is_not(call):
    failed = FakeOcr(error=RecordFailed("no-text-layer", "it was saved again"))
    assert call("layout_parsing", {}, ocr=failed).observation.error == "no-text-layer"
    with pytest.raises(Unavailable):
        call("layout_parsing", {}, ocr=FakeOcr(error=Unavailable("engine")))
