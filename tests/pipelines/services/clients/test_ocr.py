"""OCR engines: what every engine keeps to, RapidOCR itself, and the pieces it reads large pictures in."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.clients.ocr import (
    OVERLAP,
    TILE_SIDE,
    WHOLE_SIDE,
    RapidOcr,
    cut_pieces,
    merge_blocks,
)
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.replies import open_replies
from pipelines.services.protocols import TextBlock
from pipelines.toy.textlayer import LayerOcr
from tests.pipelines.services.clients.signs import draw_sign

SIGN = draw_sign(layered=True)
PLAIN = draw_sign("", layered=True)
LETTERS = (60.0, 30.0, 330.0, 80.0)
"""Where the letters stand, with some room."""
MAKERS = {"rapidocr": RapidOcr, "layer": LayerOcr}


@pytest.fixture(scope="module")
def kept():
    """Engines by name: their models are loaded once."""
    return {}


@pytest.fixture
def store(tmp_path):
    opened = open_replies(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=[pytest.param("rapidocr", marks=pytest.mark.slow), "layer", "recorded"])
def engine(request, store, kept):
    """An engine of each kind."""
    if request.param == "recorded":
        return Recorded(LayerOcr(), store)
    return kept.setdefault(request.param, MAKERS[request.param]())


def read(engine, data, scale=1.0):
    return asyncio.run(engine.read_text(data, scale))


def test_the_text_of_a_sign_is_read_with_its_place_at_both_scales(engine):
    for scale in (1.0, 2.0):
        blocks = read(engine, SIGN, scale)
        assert "".join(block.text for block in blocks).replace(" ", "") == "KelmorBridge"
        left, top, right, bottom = (
            min(block.box[0] for block in blocks), min(block.box[1] for block in blocks),
            max(block.box[2] for block in blocks), max(block.box[3] for block in blocks),
        )  # fmt: skip
        assert (left, top, right, bottom) == pytest.approx(LETTERS, abs=25)
        assert all(0.0 < block.confidence <= 1.0 and block.label for block in blocks)
        assert 0.0 <= left < right <= 420.0
        assert 0.0 <= top < bottom <= 120.0


def test_what_is_no_picture_fails_the_record_and_nothing_else(engine):
    for data in (b"", b"no picture", SIGN[:40]):
        with pytest.raises(RecordFailed):
            read(engine, data)


def test_the_same_picture_is_read_the_same_also_beside_others_and_in_another_loop(engine):
    async def read_at_once():
        return await asyncio.gather(*(engine.read_text(data) for data in (SIGN, PLAIN, SIGN)))

    alone = read(engine, SIGN)
    assert asyncio.run(read_at_once()) == [alone, (), alone]


def block(text, box, confidence=0.9):
    return TextBlock(text, "text", box, confidence)


def test_a_small_picture_is_one_piece():
    (piece,) = cut_pieces(Image.new("RGB", (WHOLE_SIDE, 600)))
    assert piece.image.size == (WHOLE_SIDE, 600)
    assert piece.place_point(10.0, 20.0) == (10.0, 20.0)


def test_a_large_picture_is_an_overview_and_tiles_that_cover_it_and_overlap():
    overview, *tiles = cut_pieces(Image.new("RGB", (1920, 1280)))
    assert overview.image.size == (960, 640)
    assert overview.place_point(480.0, 320.0) == (960.0, 640.0)
    assert {tile.image.size for tile in tiles} == {(TILE_SIDE, TILE_SIDE)}
    for starts, length in (({tile.left for tile in tiles}, 1920), ({tile.top for tile in tiles}, 1280)):
        ordered = sorted(starts)
        assert (ordered[0], ordered[-1]) == (0, length - TILE_SIDE)
        assert all(after - before <= TILE_SIDE - OVERLAP for before, after in pairwise(ordered))


@given(st.integers(1, 5000), st.integers(1, 800))
def test_pieces_are_few_and_no_strips_whatever_the_picture(width, height):
    for size in ((width, height), (height, width)):
        pieces = list(cut_pieces(Image.new("RGB", size)))
        assert len(pieces) <= 24
        assert all(max(piece.image.size) <= 2 * min(piece.image.size) + 1 for piece in pieces)
        assert all(max(piece.image.size) <= WHOLE_SIDE for piece in pieces)


def test_what_fills_a_tile_is_left_to_the_overview():
    overview, tile, *_ = cut_pieces(Image.new("RGB", (1600, 1200)))
    for height, held in ((OVERLAP, True), (OVERLAP + 1, False)):
        corners = [(0.0, 0.0), (500.0, 0.0), (500.0, float(height)), (0.0, float(height))]
        assert tile.holds(corners) is held
        assert overview.holds(corners)


def test_a_line_read_twice_or_cut_off_counts_once_and_one_read_differently_stays():
    whole = block("Kelmor Bridge", (100.0, 50.0, 300.0, 80.0))
    cut = block("Kelmor Br", (100.0, 51.0, 240.0, 80.0))
    again = block("KELMOR BRIDGE", (101.0, 50.0, 300.0, 81.0), 0.8)
    other = block("Kelnor Bridge", (100.0, 50.0, 300.0, 80.0))
    elsewhere = block("Kelmor", (100.0, 500.0, 300.0, 530.0))
    assert merge_blocks([elsewhere, cut, again, whole, other]) == (whole, other, elsewhere)


def test_a_missing_model_is_refused_and_not_fetched(tmp_path):
    with pytest.raises(ConfigError, match="nothing is fetched"):
        RapidOcr(models=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_small_text_of_a_large_picture_is_read_in_its_place():
    data = draw_sign("Kelmor Bridge", (1500, 1130), place=(1000, 700), letters=24)
    blocks = asyncio.run(RapidOcr(threads=1).read_text(data))
    whole = [block for block in blocks if block.text.replace(" ", "") == "KelmorBridge"]
    assert [block.box for block in whole] == [pytest.approx((1000.0, 705.0, 1160.0, 728.0), abs=15)]


@pytest.mark.slow
def test_a_long_strip_is_read_without_being_blown_up():
    blocks = asyncio.run(
        RapidOcr(threads=1).read_text(draw_sign("Kelmor Bridge", (3000, 40), place=(1500, 8), letters=24))
    )
    assert "Kelmor" in "".join(block.text for block in blocks)
