from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image, ImageFilter

from pipelines.agent.pictures import (
    MOST_PIXELS,
    correct_perspective,
    degrade_picture,
    enlarge_picture,
    find_quadrilateral,
    make_repairs,
    sharpen_picture,
)
from pipelines.errors import RecordFailed
from pipelines.pictures import compute_phash, measure_distance
from pipelines.pixels import find_extension, open_pixels
from tests.pipelines.agent.signs import draw_scene, encode_scene


@dataclass(frozen=True)
class Doubling:
    scale: int = 2
    identity: str = "doubling"

    def enlarge(self, pixels):
        return pixels.repeat(2, axis=0).repeat(2, axis=1)


def measure_detail(data):
    gray = np.asarray(open_pixels(data).convert("L"), dtype=float)
    return float(np.abs(np.diff(gray, axis=1)).mean())


def draw_card(corners, size=(640, 480), outline=True):
    """A light card on a dark ground."""
    from PIL import ImageDraw

    image = Image.new("RGB", size, (30, 30, 34))
    if outline:
        ImageDraw.Draw(image).polygon(corners, fill=(230, 226, 220))
    return encode_scene(image, "png")


def test_sharpening_raises_detail_and_more_of_it_raises_more():
    scene = draw_scene(1).filter(ImageFilter.GaussianBlur(3))
    data = encode_scene(scene, "png")
    details = [measure_detail(made) for made in (data, sharpen_picture(data, 0.5), sharpen_picture(data, 5.0))]
    assert details == sorted(details)
    assert details[0] < details[1] < details[2]


def test_sharpening_is_the_published_formula():
    step = Image.new("L", (64, 64), 100)
    step.paste(150, (32, 0, 64, 64))
    data = encode_scene(step.convert("RGB"), "png")
    blurred = np.asarray(step.filter(ImageFilter.GaussianBlur(3)), dtype=float)
    expected = np.clip(2.5 * np.asarray(step, dtype=float) - 1.5 * blurred, 0, 255)
    made = np.asarray(open_pixels(sharpen_picture(data)).convert("L"), dtype=float)
    assert np.abs(made - expected).max() <= 2


@pytest.mark.parametrize("extension", ["jpg", "png"])
def test_a_picture_keeps_its_format_and_size(extension):
    data = encode_scene(draw_scene(2), extension)
    made = sharpen_picture(data)
    assert find_extension(made) == extension
    assert open_pixels(made).size == (640, 480)


def test_a_card_seen_at_an_angle_is_straightened():
    corners = [(120, 80), (520, 130), (560, 400), (90, 430)]
    made = correct_perspective(draw_card(corners))
    assert made is not None
    straight = open_pixels(made)
    assert abs(straight.width - 471) < 12
    assert abs(straight.height - 351) < 12
    assert np.asarray(straight).mean() > 220


@pytest.mark.parametrize("seed", range(6))
def test_a_picture_turned_away_is_recognised_again_once_corrected(seed):
    data = encode_scene(draw_scene(seed))
    turned = degrade_picture(data, "perspective", 0.6, seed).data
    made = correct_perspective(turned)
    assert made is not None
    original = compute_phash(data)
    assert measure_distance(compute_phash(made), original) <= 8 < measure_distance(compute_phash(turned), original)


def test_what_is_no_quadrilateral_is_left_alone():
    triangle = draw_card([(320, 40), (600, 440), (40, 440)])
    small = draw_card([(20, 20), (120, 30), (110, 90), (25, 80)])
    plain = draw_card([], outline=False)
    whole = draw_card([(2, 2), (638, 2), (638, 478), (2, 478)])
    assert [correct_perspective(data) for data in (triangle, small, plain, whole)] == [None] * 4


def test_four_corners_in_a_thicket_are_no_quadrilateral():
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3), dtype=np.uint8)
    assert find_quadrilateral(Image.fromarray(noise)) is None


def test_an_enlarged_picture_has_the_size_asked_for_whatever_the_network_does():
    data = encode_scene(draw_scene(3, (80, 60)))
    sizes = [open_pixels(enlarge_picture(data, Doubling(), scale)).size for scale in (2, 3, 4)]
    assert sizes == [(160, 120), (240, 180), (320, 240)]


def test_a_picture_too_large_to_enlarge_is_refused_before_the_network_sees_it():
    data = encode_scene(Image.new("RGB", (MOST_PIXELS // 256 + 1, 256)))
    with pytest.raises(RecordFailed, match="picture-too-large"):
        enlarge_picture(data, Doubling())


def test_repairs_are_those_whose_means_are_at_hand():
    assert set(make_repairs(None, opencv=False)) == {"blur"}
    assert set(make_repairs(None, opencv=True)) == {"blur", "perspective"}
    repairs = make_repairs(Doubling(), opencv=True)
    assert [tool.name for tool in repairs.values()] == ["sharpen", "super_resolution", "perspective_correct"]
    assert "doubling" in repairs["downsample"].identity
    small = encode_scene(draw_scene(3, (80, 60)))
    assert open_pixels(repairs["downsample"].mend(small)).size == (320, 240)


@pytest.mark.parametrize("tool", [sharpen_picture, correct_perspective, lambda data: enlarge_picture(data, Doubling())])
def test_broken_bytes_are_the_records_failure(tool):
    with pytest.raises(RecordFailed):
        tool(encode_scene(draw_scene(1))[:200])
