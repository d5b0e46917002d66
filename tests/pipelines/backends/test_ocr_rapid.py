import asyncio
import logging
import shutil
from importlib import resources

import pytest

from pipelines.errors import ConfigError
from pipelines.pixels import MAX_ENLARGED_PIXELS, open_scaled
from pipelines.services.clients.ocr import MODELS, RapidOcr
from tests.pipelines.backends.signs import draw_sign

pytestmark = pytest.mark.slow

SIGN = draw_sign()


def copy_models(folder):
    for file in MODELS.values():
        shutil.copy(resources.files("rapidocr") / "models" / file, folder / file)


def test_the_identity_tells_version_and_models(tmp_path):
    copy_models(tmp_path)
    assert RapidOcr(models=tmp_path).identity == RapidOcr().identity
    with (tmp_path / MODELS["Rec"]).open("ab") as model:
        model.write(b"\0")
    assert RapidOcr(models=tmp_path).identity != RapidOcr().identity


def test_a_missing_model_is_refused_and_not_fetched(tmp_path):
    with pytest.raises(ConfigError, match="nothing is fetched"):
        RapidOcr(models=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_broken_model_is_refused_with_its_reason(tmp_path):
    copy_models(tmp_path)
    (tmp_path / MODELS["Det"]).write_bytes(b"no model")
    with pytest.raises(ConfigError, match="models cannot be loaded"):
        asyncio.run(RapidOcr(models=tmp_path).read_text(SIGN))


def test_the_engine_says_nothing(capfd):
    asyncio.run(RapidOcr(threads=1).read_text(SIGN))
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("RapidOCR").level == logging.CRITICAL


def test_a_picture_too_small_for_a_letter_reads_as_nothing():
    assert asyncio.run(RapidOcr(threads=1).read_text(draw_sign("", (5, 300)))) == ()


def test_small_text_of_a_large_picture_is_read_in_its_place():
    data = draw_sign("Kelmor Bridge", (1500, 1130), place=(1000, 700), letters=24)
    blocks = asyncio.run(RapidOcr(threads=1).read_text(data))
    whole = [block for block in blocks if block.text.replace(" ", "") == "KelmorBridge"]
    assert [block.box for block in whole] == [pytest.approx((1000.0, 705.0, 1160.0, 728.0), abs=15)]


def test_a_long_strip_is_read_without_being_blown_up():
    blocks = asyncio.run(
        RapidOcr(threads=1).read_text(draw_sign("Kelmor Bridge", (3000, 40), place=(1500, 8), letters=24))
    )
    assert "Kelmor" in "".join(block.text for block in blocks)


def test_a_picture_is_enlarged_as_far_as_its_pixels_allow():
    picture = open_scaled(draw_sign("", (400, 100)), 2.0)
    assert (picture.image.size, picture.width, picture.height) == ((800, 200), 400, 100)
    large = open_scaled(draw_sign("", (1200, 900)), 2.0)
    assert MAX_ENLARGED_PIXELS * 0.99 < large.image.width * large.image.height <= MAX_ENLARGED_PIXELS
    assert large.restore_box([(0, 0), large.image.size]) == (0.0, 0.0, 1200.0, 900.0)
    assert open_scaled(draw_sign("", (2000, 1500)), 2.0).image.size == (2000, 1500)
    assert open_scaled(draw_sign("", (2500, 2500)), 1.0).image.size == (2000, 2000)


def test_boxes_stay_inside_the_picture():
    picture = open_scaled(draw_sign("", (400, 100)), 2.0)
    assert picture.restore_box([(-5.0, 10.0), (900.0, 60.0)]) == (0.0, 5.0, 400.0, 30.0)
