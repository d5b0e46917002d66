from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.clients.encoder import Preprocessing, choose_side, square_picture, square_pixels

MEAN = (0.5, 0.5, 0.5)
SETTINGS = {
    "size": (32, 32),
    "mean": MEAN,
    "std": MEAN,
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "fill_color": 0,
}
sides = st.integers(1, 400)


def prefer(mode="shortest", height=32, width=32):
    return Preprocessing(height, width, mode, True, 7, MEAN, MEAN)


@given(sides, sides, st.sampled_from(["shortest", "longest", "squash"]), st.sampled_from([(32, 32), (24, 40)]))
def test_a_picture_of_any_shape_comes_out_in_the_models(width, height, mode, shape):
    square = square_pixels(Image.new("RGB", (width, height), (200, 10, 10)), prefer(mode, *shape))
    assert square.size == (shape[1], shape[0])
    if mode != "longest":
        np.testing.assert_array_equal(np.asarray(square)[:, :, 0], 200)


def test_the_middle_of_a_wide_picture_stays():
    wide = Image.new("RGB", (300, 100), (255, 0, 0))
    wide.paste((0, 0, 255), (100, 0, 200, 100))
    middle = np.asarray(square_pixels(wide, prefer()))[:, 2:-2]
    np.testing.assert_array_equal(middle, np.broadcast_to([0, 0, 255], middle.shape))


def test_what_a_narrow_picture_lacks_is_filled_up():
    square = np.asarray(square_pixels(Image.new("RGB", (50, 100), (255, 255, 255)), prefer("longest")))
    np.testing.assert_array_equal(square[:, :8], 7)
    np.testing.assert_array_equal(square[:, 8:24], 255)
    np.testing.assert_array_equal(square[:, 24:], 7)


@given(sides, sides)
def test_a_jpeg_is_never_decoded_smaller_than_the_model_sees_it(width, height):
    side = choose_side(width, height, prefer())
    assert side == 0 or min(width, height) * side / max(width, height) >= 32 - 1e-9
    assert side == 0 or side <= max(width, height) / 2 + 1


def test_a_large_jpeg_is_decoded_reduced():
    assert [choose_side(size, size, prefer()) for size in (63, 64, 128, 256, 3000)] == [0, 32, 32, 32, 375]


def test_turned_pictures_are_seen_upright():
    drawn = Image.new("RGB", (64, 48), (0, 0, 255))
    drawn.paste((255, 0, 0), (0, 0, 64, 24))
    exif = Image.Exif()
    exif[0x0112] = 3
    target = BytesIO()
    drawn.save(target, "PNG", exif=exif)
    square = square_picture(target.getvalue(), prefer())
    assert square.shape == (32, 32, 3)
    assert square[0, 0].tolist() == [0, 0, 255]
    assert square[31, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"\xff\xd8\xff\xe0 cut"])
def test_what_is_no_picture_is_refused(data):
    with pytest.raises(RecordFailed, match="picture-"):
        square_picture(data, prefer())


def test_settings_are_read_as_open_clip_has_them():
    read = Preprocessing.from_settings(SETTINGS)
    assert (read.height, read.width, read.mode, read.bicubic, read.mean) == (32, 32, "shortest", True, MEAN)
    assert Preprocessing.from_settings({**SETTINGS, "size": 48}).width == 48
    assert not Preprocessing.from_settings({**SETTINGS, "interpolation": "bilinear"}).bicubic


@pytest.mark.parametrize("change", [{"resize_mode": "middle"}, {"interpolation": "nearest"}])
def test_settings_that_open_clip_does_not_know_are_refused(change):
    with pytest.raises(ConfigError, match="none of open_clip's"):
        Preprocessing.from_settings({**SETTINGS, **change})
