""" """

import io
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFilter

from pipelines.checks.pictures import (
    Copy,
    DepictionRules,
    Plainness,
    check_copies,
    check_depiction,
    check_parts,
    check_picture,
    check_simple,
    check_use,
    count_palette,
    find_telling_word,
    hash_parts,
    is_free_licence,
    judge_plainness,
    measure_plainness,
    rate_ease,
)
from pipelines.pictures import compute_phash, measure_distance
from pipelines.services.protocols import ImageHit
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.pipelines.checks.drawings import DRAWINGS, encode, make_copies

NAN = float("nan")


@dataclass(frozen=True)
class Measures:
    score: float = 0.31
    margin: float | None = 0.04
    distractors: int = 20
    over_threshold: bool | None = True
    note: str = "this picture with 'Orsa Bridge'"


def decide(decides="margin", min_margin=0.0, **measures):
    return check_depiction(Measures(**measures), DepictionRules(decides, 0.28, min_margin, 20))


@pytest.mark.parametrize(
    ("decides", "score", "margin", "outcome"),
    [
        ("margin", 0.20, 0.01, "PASS"), ("margin", 0.40, 0.0, "FAIL"), ("margin", 0.40, -0.1, "FAIL"),
        ("threshold", 0.29, -0.1, "PASS"), ("threshold", 0.28, 0.3, "FAIL"), ("both", 0.29, 0.01, "PASS"),
        ("both", 0.28, 0.01, "FAIL"), ("both", 0.29, 0.0, "FAIL"),
    ],
)  # fmt: skip
def test_what_decides_is_what_is_looked_at(decides, score, margin, outcome):
    result = decide(decides, score=score, margin=margin)
    assert (result.outcome, result.code) == (outcome, "" if outcome == "PASS" else "picture-of-another")


def test_a_margin_has_to_exceed_the_least_demanded():
    assert decide(min_margin=0.04, margin=0.0401).passed
    result = decide(min_margin=0.04, margin=0.04)
    assert result.outcome == "FAIL"
    assert result.detail == "margin +0.040, more than 0.04 is allowed; this picture with 'Orsa Bridge'"


@pytest.mark.parametrize("decides", ["margin", "both"])
@pytest.mark.parametrize("measures", [{"distractors": 19}, {"distractors": 0, "margin": None}, {"margin": None}])
def test_a_margin_over_too_few_is_unknown(decides, measures):
    result = decide(decides, **measures)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-of-another")
    assert "allowed from 20" in result.detail


def test_the_threshold_alone_needs_no_distractors():
    assert decide("threshold", distractors=0, margin=None).passed


@pytest.mark.parametrize("decides", ["margin", "threshold", "both"])
def test_what_is_no_number_does_not_pass(decides):
    assert not decide(decides, score=NAN, margin=NAN).passed


@pytest.mark.parametrize("decides", ["margin", "threshold", "both"])
def test_metadata_pass_from_half_the_points_whatever_decides(decides):
    by_metadata = {"margin": None, "distractors": 0, "over_threshold": None, "note": "source page"}
    assert decide(decides, score=0.5, **by_metadata).passed
    result = decide(decides, score=0.45, **by_metadata)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-of-another")
    assert result.detail == "0.45 points, allowed from 0.5: source page"
    assert not decide(decides, score=NAN, **by_metadata).passed


@given(st.floats(-1, 1), st.floats(-2, 2), st.integers(0, 40))
def test_both_passes_only_where_each_alone_does(score, margin, distractors):
    each = [
        decide(decides, score=score, margin=margin, distractors=distractors).passed
        for decides in ("margin", "threshold", "both")
    ]
    assert each[2] == (each[0] and each[1])


@pytest.mark.parametrize(
    "licence",
    [
        "CC BY-SA 4.0", "CC BY 2.0", "cc-by-sa-3.0", "CC0", "CC0 1.0", "Public domain", "PD", "PD-old-100",
        "PD-self", "PD-user", "PD-old", "PD-old-70-expired", "PD-USGov", "PD-USGov-NASA", "PD-textlogo",
        "CC BY-SA 3.0 de", "CC-BY-SA-3.0,2.5,2.0,1.0", "CC BY-SA 4.0 International",
        "Creative Commons Attribution-ShareAlike 4.0",
    ],
)  # fmt: skip
def test_a_free_licence_passes(licence):
    assert is_free_licence(licence)
    assert check_picture(800, 600, licence, 512).outcome == "PASS"


@pytest.mark.parametrize(
    "licence",
    [
        "CC BY-NC 2.0", "CC BY-ND 4.0", "CC BY-NC-SA 4.0", "cc-by-sa-4.0-nc", "Fair use", "Non-free logo",
        "All rights reserved",
    ],
)  # fmt: skip
def test_a_licence_that_forbids_use_fails(licence):
    result = check_picture(800, 600, licence, 512)
    assert (result.outcome, result.code) == ("FAIL", "picture-not-free")


@pytest.mark.parametrize(
    "licence",
    [
        "", "GFDL 9.9", "Attribution", "CC BY 9.0", "CC", "see source", "not public domain", "Up for deletion: CC0",
        "PD-US", "pd-us-only", "PD-US-expired", "PD-ineligible-USonly", "PD-because", "pd-trivial-unknown", "PD-Art",
        "PD-scan", "PD-1923", "PD-old-assumed", "pd-", "PD-user-x",
    ],
)  # fmt: skip
def test_an_unknown_licence_never_passes(licence):
    result = check_picture(800, 600, licence, 512)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-not-free")
    assert not result.passed


@pytest.mark.parametrize(("width", "height", "outcome"), [(512, 512, "PASS"), (511, 2000, "FAIL"), (2000, 511, "FAIL")])
def test_the_shorter_side_decides(width, height, outcome):
    assert check_picture(width, height, "CC0", 512).outcome == outcome


def test_a_picture_without_a_size_is_unknown():
    assert check_picture(0, 600, "CC0", 512).outcome == "UNKNOWN"


class Shelf:
    """A finder over a list of (file, titles, phash)."""

    identity = "shelf"

    def __init__(self, *rows):
        self.rows = rows

    def find_copies(self, phash, count=5):
        if not self.rows:
            raise LookupError("nothing is indexed")
        found = [Copy(file, titles, measure_distance(phash, other)) for file, titles, other in self.rows]
        return tuple(sorted(found, key=lambda copy: copy.distance)[:count])


def paint(seed, size=(320, 240)):
    blocks = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize(size, Image.Resampling.BICUBIC)


def encode_picture(picture, form="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def flip_bits(phash, count):
    return f"{int(phash, 16) ^ ((1 << count) - 1):016x}"


PHASH = compute_phash(encode_picture(paint(1)))


@pytest.mark.parametrize(("bits", "outcome"), [(0, "FAIL"), (6, "FAIL"), (7, "PASS"), (8, "PASS")])
def test_another_articles_picture_is_a_copy_up_to_six_bits(bits, outcome):
    result = check_copies(PHASH, "a.jpg", "Kelm", Shelf(("b.jpg", ("Other",), flip_bits(PHASH, bits))))
    assert result.outcome == outcome
    assert result.code == ("picture-duplicate" if outcome == "FAIL" else "")


@pytest.mark.parametrize(("file", "titles"), [("A b.jpg", ("Other",)), ("c.jpg", ("Kelm", "Other"))])
def test_a_file_and_its_articles_other_files_are_no_copies(file, titles):
    assert check_copies(PHASH, "a_b.jpg", "Kelm", Shelf((file, titles, PHASH))).passed


def test_a_copy_behind_the_articles_own_files_is_found():
    shelf = Shelf(("a.jpg", ("Kelm",), PHASH), ("b.jpg", ("Kelm",), PHASH), ("c.jpg", ("Other",), flip_bits(PHASH, 2)))
    assert "c.jpg of Other" in check_copies(PHASH, "a.jpg", "Kelm", shelf).detail


@pytest.mark.parametrize(("phash", "shelf"), [("", Shelf(("b", ("B",), PHASH))), (PHASH, Shelf())])
def test_what_cannot_be_compared_is_unknown(phash, shelf):
    result = check_copies(phash, "a.jpg", "Kelm", shelf)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-duplicate")


def make_near_copies():
    picture = paint(1)
    width, height = picture.size
    yield picture.resize((width // 2, height // 2))
    yield picture.convert("L").convert("RGB")
    yield picture.crop((3, 2, width - 3, height - 2))


@pytest.mark.parametrize("copy", list(make_near_copies()))
def test_smaller_grey_and_slightly_cut_copies_are_found(copy):
    phash = compute_phash(encode_picture(copy, "JPEG", quality=40))
    assert not check_copies(phash, "a.jpg", "Kelm", Shelf(("b.jpg", ("Other",), PHASH))).passed
    assert check_copies(
        phash, "a.jpg", "Kelm", Shelf(("b.jpg", ("Other",), compute_phash(encode_picture(paint(2)))))
    ).passed


@pytest.mark.parametrize(
    ("titles", "depicts", "qid", "outcome"),
    [
        (("Kelm",), (), "", "PASS"), ((), (), "Q1", "PASS"), (("Kelm",), ("Q1",), "Q1", "PASS"),
        (("Kelm",), ("Q1", "Q2"), "Q1", "PASS"), (("Kelm",), ("Q2",), "Q1", "FAIL"),
        (("Kelm", "Other"), (), "Q1", "FAIL"), (("Kelm", "Other"), ("Q1",), "Q1", "PASS"),
        (("Kelm", "Other"), ("Q1", "Q2"), "Q1", "FAIL"), (("Other",), (), "Q1", "FAIL"),
        (("Kelm",), ("Q1",), "", "UNKNOWN"), (("Kelm", "Other"), (), "", "FAIL"),
    ],
)  # fmt: skip
def test_a_file_stands_for_the_anchor_alone_or_is_said_to(titles, depicts, qid, outcome):
    result = check_use(titles, "Kelm", depicts, qid)
    assert (result.outcome, result.code) == (outcome, "" if outcome == "PASS" else "picture-ambiguous")


def join(columns, rows, gap, parts):
    width, height = parts[0].size
    whole = Image.new("RGB", (columns * width + gap * (columns - 1), rows * height + gap * (rows - 1)), "white")
    for place, part in enumerate(parts):
        whole.paste(part, (place % columns * (width + gap), place // columns * (height + gap)))
    return whole


@pytest.mark.parametrize(("columns", "rows"), [(2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("gap", [0, 6])
@pytest.mark.parametrize("last", [False, True])
def test_a_montage_is_known_by_any_of_its_parts(columns, rows, gap, last):
    parts = [paint(seed) for seed in range(10, 10 + columns * rows)]
    shelf = Shelf(("b.jpg", ("Other",), compute_phash(encode_picture(parts[-1 if last else 0]))))
    data = encode_picture(join(columns, rows, gap, parts), "JPEG", quality=85)
    result = check_parts(data, "Kelm", shelf)
    assert (result.outcome, result.code) == ("FAIL", "picture-ambiguous")
    assert check_parts(data, "Other", shelf).passed


def test_a_picture_of_its_own_is_no_montage():
    shelf = Shelf(*((f"{seed}.jpg", (str(seed),), compute_phash(encode_picture(paint(seed)))) for seed in range(2, 40)))
    assert check_parts(encode_picture(paint(1)), "Kelm", shelf).passed


@pytest.mark.parametrize(
    ("data", "shelf"), [(b"no picture", Shelf(("b", ("B",), PHASH))), (encode_picture(paint(1)), Shelf())]
)
def test_parts_that_cannot_be_compared_are_unknown(data, shelf):
    result = check_parts(data, "Kelm", shelf)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-ambiguous")


def test_halves_and_quarters_are_hashed_and_a_single_pixel_has_none():
    assert len(hash_parts(paint(1))) == 16
    assert hash_parts(Image.new("RGB", (1, 1))) != hash_parts(paint(1))


def hit(title, distance):
    return ImageHit(f"https://example.org/{title}", title, "", distance)


@pytest.mark.parametrize(
    ("hits", "ease"),
    [
        ([], ("hard", 0)), ([hit("Other", 0.0)], ("hard", 0)), ([hit("Kelm", 4.0)], ("easy", 1)),
        ([hit("Kelm", 4.1)], ("medium", 1)), ([hit("Other", 0.0), hit("Kelm", 0.0)], ("medium", 2)),
    ],
)  # fmt: skip
def test_ease_is_the_anchors_place_among_the_hits(hits, ease):
    assert rate_ease(hits, "Kelm", 4.0) == ease


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
