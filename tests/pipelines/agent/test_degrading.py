import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.agent.pictures import DEGRADING_MIN_SIDE as MIN_SIDE
from pipelines.agent.pictures import degrade_picture, place_corners
from pipelines.errors import RecordFailed
from pipelines.pictures import compute_phash, measure_distance
from pipelines.pixels import find_extension, open_pixels
from tests.pipelines.agent.signs import draw_scene, encode_scene

STRENGTHS = (0.1, 0.25, 0.5, 0.75, 1.0)
DEGRADATIONS = ("blur", "downsample", "perspective")


def read(degraded):
    return {parameter.name: parameter.value for parameter in degraded.parameters}


@pytest.mark.parametrize("degradation", DEGRADATIONS)
@pytest.mark.parametrize("extension", ["jpg", "png"])
def test_the_same_seed_makes_the_same_bytes_in_the_same_format(degradation, extension):
    data = encode_scene(draw_scene(1), extension)
    first, second = (degrade_picture(data, degradation, 0.5, 7, "row") for _ in range(2))
    assert first == second
    assert find_extension(first.data) == extension
    assert first.data != data


def test_another_row_is_turned_another_way():
    data = encode_scene(draw_scene(1))
    assert degrade_picture(data, "perspective", 0.5, 7, "a") != degrade_picture(data, "perspective", 0.5, 7, "b")


def test_parameters_say_what_a_strength_came_to():
    data = encode_scene(draw_scene(1))
    assert read(degrade_picture(data, "blur", 0.5)) == {"sigma": 4.8}
    assert read(degrade_picture(data, "downsample", 0.5)) == {"factor": 5.5, "width": 116, "height": 87}
    corners = read(degrade_picture(data, "perspective", 0.5, 1))
    assert len(corners) == 8
    assert corners["upper_left_x"] < 320 < corners["lower_right_x"]


def test_a_downsampled_picture_is_shown_small_but_never_under_32_pixels():
    shown = [open_pixels(degrade_picture(encode_scene(draw_scene(1)), "downsample", s).data).size for s in (0.5, 1.0)]
    assert shown == [(116, 87), (64, 48)]
    tiny = degrade_picture(encode_scene(draw_scene(1, (100, 40))), "downsample", 1.0)
    assert min(open_pixels(tiny.data).size) == MIN_SIDE
    assert read(tiny)["factor"] == 1.25


@pytest.mark.parametrize("degradation", DEGRADATIONS)
def test_a_stronger_degradation_leaves_the_picture_less_like_itself(degradation):
    data = encode_scene(draw_scene(4), "png")
    original = np.asarray(open_pixels(data), dtype=float)
    losses = []
    for strength in STRENGTHS:
        shown = open_pixels(degrade_picture(data, degradation, strength, 1).data).resize((640, 480))
        losses.append(float(np.abs(np.asarray(shown, dtype=float) - original).mean()))
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


def test_perspective_changes_what_a_search_by_hash_sees():
    data = encode_scene(draw_scene(4))
    turned = degrade_picture(data, "perspective", 1.0, 1).data
    assert measure_distance(compute_phash(data), compute_phash(turned)) > 10


@pytest.mark.parametrize(("colour", "dark"), [(250, True), (5, False)])
def test_the_backdrop_stands_out_from_the_picture(colour, dark):
    from PIL import Image

    data = encode_scene(Image.new("RGB", (300, 200), (colour, colour, colour)))
    turned = open_pixels(degrade_picture(data, "perspective", 0.5, 1).data)
    assert (sum(turned.getpixel((1, 1))) < 150) is dark


@given(st.integers(32, 4000), st.integers(32, 4000), st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.integers(0, 10_000))
@settings(max_examples=300, deadline=None)
def test_corners_move_inwards_with_the_strength_and_stay_convex(width, height, one, other, seed):
    weak, strong = sorted((one, other))
    far, near = (np.array(place_corners((width, height), strength, (seed,))) for strength in (weak, strong))
    middle = np.array([width / 2, height / 2])
    assert (np.abs(near - middle) <= np.abs(far - middle) + 0.01).all()
    for corners in (near, far):
        sides = np.roll(corners, -1, axis=0) - corners
        following = np.roll(sides, -1, axis=0)
        assert (sides[:, 0] * following[:, 1] - sides[:, 1] * following[:, 0] > 0).all()


def test_broken_bytes_are_the_records_failure():
    with pytest.raises(RecordFailed):
        degrade_picture(b"\xff\xd8\xffnothing", "blur", 0.5)
