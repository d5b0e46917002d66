import io
import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from pipelines.checks.pictures import (
    Plainness,
    check_simple,
    count_palette,
    find_telling_word,
    judge_plainness,
    measure_plainness,
)
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.pipelines.checks.drawings import DRAWINGS, encode, make_copies

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("SYNTH_SHARED_DATA", ROOT.parent / "shared" / "data"))
PHOTOGRAPHS = DATA / "enwiki-slice" / "images"
PHOTOGRAPH = Plainness(drawn=0.5, flat=0.2, sharp=0.05, abrupt=0.05, edges=0.2)


def scene():
    """Soft noise of many colours: what a photograph is to the measures."""
    blocks = np.random.default_rng(3).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize((640, 480), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("name", DRAWINGS)
def test_plain_drawings_are_refused_in_whatever_format_and_size(name):
    rng, found = Random(f"drawings:{name}"), []
    for _ in range(12):
        size = rng.choice(((800, 533), (640, 640), (1200, 700)))
        found += [check_simple(data, ()).code for data in make_copies(DRAWINGS[name](rng, size), rng)]
    assert found.count("picture-too-simple") >= 0.9 * len(found)


def test_pictures_of_the_toy_world_pass_unless_they_were_drawn_simple(tmp_path):
    write_world(tmp_path / "world", WorldConfig(entities=300, seed=5))
    truth = (tmp_path / "world" / "truth" / "pictures.jsonl").read_text().splitlines()
    images, refused, simple = tmp_path / "world" / "images", set(), set()
    for row in map(json.loads, truth):
        if not check_simple((images / row["file"]).read_bytes(), (row["file"],)).passed:
            refused.add(row["file"])
        if row["simple"]:
            simple.add(row["file"])
    assert simple
    assert len(simple - refused) <= 0.05 * len(simple), simple - refused
    assert len(refused - simple) <= 0.01 * len(truth), refused - simple


@pytest.mark.skipif(not PHOTOGRAPHS.exists(), reason="no photographs at hand")
def test_photographs_pass_in_colour_and_in_grey():
    for path in sorted(PHOTOGRAPHS.glob("*.png")):
        with Image.open(path) as opened:
            grey = opened.convert("L").resize((800, 600))
        assert check_simple(path.read_bytes(), (path.name,)).passed, path.name
        assert check_simple(encode(grey, "JPEG"), ()).passed, path.name


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, False), ({"edges": 0.0059}, True), ({"edges": 0.006}, False),
        ({"drawn": 0.99, "abrupt": 0.14, "sharp": 0.0}, True),
        ({"drawn": 0.9899, "abrupt": 0.14, "sharp": 0.0}, False),
        ({"drawn": 0.99, "abrupt": 0.1399, "sharp": 0.0}, False),
        ({"drawn": 0.99, "abrupt": 0.09, "sharp": 0.20}, True),
        ({"drawn": 0.99, "abrupt": 0.09, "sharp": 0.1999}, False),
        ({"flat": 0.80, "abrupt": 0.14, "sharp": 0.0}, True), ({"flat": 0.7999, "abrupt": 0.14, "sharp": 0.0}, False),
        ({"drawn": 1.0, "flat": 1.0}, False), ({"sharp": 1.0, "abrupt": 1.0}, False),
    ],
)  # fmt: skip
def test_each_measure_decides_at_its_limit(change, refused):
    assert judge_plainness(replace(PHOTOGRAPH, **change)).passed is not refused


def test_halves_of_two_colours_are_measured_exactly():
    pixels = np.zeros((9, 11, 3), dtype=np.uint8)
    pixels[:, 6:] = 200
    assert measure_plainness(pixels) == Plainness(drawn=1.0, flat=0.9, sharp=1.0, abrupt=1.0, edges=0.1)


@pytest.mark.parametrize(
    ("step", "sharp", "edges", "flat"),
    [(64, 0.0, 0.1, 0.9), (65, 1.0, 0.1, 0.9), (24, 0.0, 0.0, 0.9), (25, 0.0, 0.1, 0.9), (2, 0.0, 0.0, 1.0)],
)
def test_steps_count_from_their_limits_on(step, sharp, edges, flat):
    pixels = np.full((9, 11, 3), 40, dtype=np.uint8)
    pixels[:, 6:, 1] += step
    measured = measure_plainness(pixels)
    assert (measured.sharp, measured.edges, measured.flat) == (sharp, edges, flat)


def test_a_change_is_abrupt_when_it_makes_half_of_the_difference_around_it():
    faint = np.full((20, 40, 3), 120, dtype=np.uint8)
    faint[:, 20:] = 130
    ramp = np.repeat(np.arange(0, 160, 4, dtype=np.uint8)[None, :, None], 20, axis=0).repeat(3, axis=2)
    assert measure_plainness(faint).abrupt == 1.0
    assert measure_plainness(ramp).abrupt == 0.0


def test_objects_cut_out_on_an_even_ground_pass_as_a_rule():
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(40):
        blocks = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        shape = Image.new("L", (500, 500))
        ImageDraw.Draw(shape).ellipse((20, int(rng.integers(10, 150)), 480, 480), fill=255)
        ground = Image.new("RGB", (800, 700), (255, 255, 255) if rng.random() < 0.5 else (235, 236, 230))
        soft = shape.filter(ImageFilter.GaussianBlur(1.2))
        ground.paste(Image.fromarray(blocks).resize((500, 500), Image.Resampling.BICUBIC), (150, 100), soft)
        refused += not check_simple(encode(ground, "JPEG"), ()).passed
    assert refused <= 4


def test_a_picture_of_one_pixel_has_nothing_to_see():
    assert check_simple(encode(Image.new("RGB", (1, 1))), ()).code == "picture-too-simple"
    assert measure_plainness(np.zeros((1, 9, 3), dtype=np.uint8)).edges == 0.0


def test_text_over_more_than_three_tenths_is_refused():
    data = encode(scene())
    assert check_simple(data, (), text_area=0.3).passed
    assert check_simple(data, (), text_area=0.31).code == "picture-too-simple"


def test_a_palette_of_few_colours_is_refused():
    for colours, passed in ((33, True), (32, False)):
        palette = encode(scene().quantize(colours, dither=Image.Dither.FLOYDSTEINBERG))
        assert count_palette(palette) == colours
        assert check_simple(palette, ()).passed is passed


def test_palettes_are_counted_in_png_and_gif_alone():
    assert count_palette(encode(scene().quantize(16), "GIF")) == 16
    assert count_palette(encode(scene().quantize(256), "GIF")) == 256
    assert count_palette(encode(scene())) == count_palette(encode(scene(), "JPEG")) == count_palette(b"GIF89a") == 0
    assert count_palette(b"\x89PNG\r\n\x1a\n" + b"\x00" * 17 + b"\x03") == 0


@pytest.mark.parametrize(
    "told",
    [
        "Flag of Kelmland.png", "Kelmland flag 2.jpg",
        "https://commons.wikimedia.org/wiki/File:Coat_of_arms_of_Kelm.jpg",
        "https://commons.wikimedia.org/wiki/File:Kelm%20locator%20map.png", "Kelm bridge.svg.png", "Wappen Kelm.jpg",
        "Stadtwappen.jpg", "Drapeau de la Kelmie.gif", "Brasão de Kelm.jpg", "Герб Келма.jpg", "Seal of Kelm.png",
        "Kelm logo 2019.png", "Category:Signatures/Kelm signature.png", "Kelm_crest.png",
    ],
)  # fmt: skip
def test_what_a_file_says_that_it_is_counts(told):
    assert find_telling_word((told,))
    assert check_simple(encode(scene()), ("picture", told)).code == "picture-too-simple"


@pytest.mark.parametrize(
    "told",
    [
        "Flag Fen in spring.jpg", "Grey seal on Kelm.jpg", "Mapledale.jpg", "Logograph Tower.jpg",
        "Icon of Saint Nicholas.jpg", "Postkarte Kelm.jpg", "Armstrong Coates.jpg", "Flagship at sea.jpg",
        "Logos/Bridge at Kelm.jpg", "",
    ],
)  # fmt: skip
def test_names_that_only_sound_like_it_do_not(told):
    assert find_telling_word((told,)) == ""


def test_what_cannot_be_decoded_is_unknown():
    buffer = io.BytesIO()
    scene().save(buffer, "JPEG")
    for data in (b"not a picture", buffer.getvalue()[:400]):
        result = check_simple(data, ())
        assert (result.outcome, result.code) == ("UNKNOWN", "picture-too-simple")
