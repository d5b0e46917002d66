import json
from io import BytesIO

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.agent.dialects import find_dialect
from pipelines.agent.tools import cut_picture
from pipelines.agent.transcript import Turn, render_turn
from pipelines.errors import RecordFailed
from pipelines.ids import canonical_json
from pipelines.release.exporters.conversations import restate_turn

SIZES = {"img_1": (640, 480), "img_2": (97, 333)}


def make_noise(size):
    target = BytesIO()
    Image.linear_gradient("L").resize(size).save(target, "PNG")
    return target.getvalue()


NOISE = {name: make_noise(size) for name, size in SIZES.items()}
EDGES = st.integers(0, 1000) | st.floats(0, 1000) | st.integers(0, 2000).map(lambda halves: halves / 2)


def cut(image, box, unit="normalised"):
    try:
        return cut_picture(NOISE[image], box, unit)
    except RecordFailed as error:
        return error.error


@given(st.sampled_from(list(SIZES)), st.lists(EDGES, min_size=4, max_size=4), st.sampled_from(["pixels", "normalised"]))
def test_a_restated_box_cuts_the_same_part_and_can_be_said(image, box, unit):
    left, top, right, bottom = box
    box = [min(left, right), min(top, bottom), max(left, right), max(top, bottom)]
    if unit == "pixels":
        box = [min(edge, side) for edge, side in zip(box, SIZES[image] * 2, strict=True)]
    turn = Turn("Closer.", "crop", canonical_json({"image": image, "box": box, "unit": unit}))
    for name in ("opensearch-vl", "mars"):
        dialect = find_dialect(name)
        restated = restate_turn(turn, dialect, SIZES)
        if unit == "normalised" or name == "mars":
            render_turn(restated, dialect)
        assert cut(**json.loads(restated.arguments)) == cut(image, box, unit)
