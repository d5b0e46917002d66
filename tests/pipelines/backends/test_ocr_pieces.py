from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.services.clients.ocr import OVERLAP, TILE_SIDE, WHOLE_SIDE, cut_pieces, merge_blocks
from pipelines.services.protocols import TextBlock


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


def test_lines_come_from_top_to_bottom_and_left_to_right():
    blocks = [
        block(text, (left, top, left + 50.0, top + 10.0))
        for text, left, top in (("d", 0, 90), ("b", 80, 1), ("a", 0, 3))
    ]
    assert [found.text for found in merge_blocks(blocks)] == ["a", "b", "d"]
    assert merge_blocks([]) == ()


@pytest.mark.parametrize("count", [3000])
def test_thousands_of_lines_are_merged(count):
    blocks = [block(str(number % 700), (0.0, float(number), 50.0, number + 10.0)) for number in range(count)]
    assert len(merge_blocks(blocks)) >= 700
