import io
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image

from pipelines.checks.pictures import (
    Copy,
    Plainness,
    check_copies,
    check_picture,
    check_simple,
    check_use,
    classify_licence,
    find_telling_word,
    judge_plainness,
    rate_ease,
)
from pipelines.pictures import compute_phash, measure_distance
from pipelines.services.protocols import ImageHit
from pipelines.toy.pictures import SIMPLE

FREE = [
    "CC BY-SA 4.0", "CC BY 2.0", "cc-by-sa-3.0", "CC0", "CC0 1.0", "CC0 1.0 Universal", "CC-Zero", "Public domain",
    "Public Domain Mark 1.0", "PD", "PD-old-100", "PD-self", "PD-user", "PD-old", "PD-old-70-expired", "PD-USGov",
    "PD-USGov-NASA", "PD-textlogo", "CC BY-SA 3.0 de", "CC-BY-SA-3.0,2.5,2.0,1.0", "CC BY-SA 2.5 scotland",
    "CC_BY-SA_4.0", "CC BY-SA 4.0 International", "Creative Commons Attribution-ShareAlike 4.0", "GFDL", "GFDL 1.2",
    "GFDL 1.3+", "GNU Free Documentation License", "FAL", "Free Art License", "OGL 3", "OGL",
    "Open Government Licence v3.0",
]  # fmt: skip
UNFREE = [
    "CC BY-NC 2.0", "CC BY-ND 4.0", "CC BY-NC-SA 4.0", "cc-by-nc-nd-3.0", "cc-by-sa-4.0-nc", "Fair use",
    "Non-free logo", "Non-free: CC BY 4.0", "All rights reserved", "GFDL 1.2 or CC BY-NC 3.0", "No derivatives",
]  # fmt: skip
UNKNOWN = [
    "", "GFDL 9.9", "Attribution", "CC BY 9.0", "CC", "see source", "not public domain", "Up for deletion: CC0",
    "PD-US", "pd-us-only", "PD-US-expired", "PD-ineligible-USonly", "PD-because", "pd-trivial-unknown", "PD-Art",
    "PD-scan", "PD-1923", "PD-old-assumed", "pd-", "PD-user-x", "Q98923445", "CC BY-SA 4.0; in parts", "public",
]  # fmt: skip


@pytest.mark.parametrize(
    ("licences", "kind", "outcome"),
    [(FREE, "free", "PASS"), (UNFREE, "unfree", "FAIL"), (UNKNOWN, "unknown", "UNKNOWN")],
)
def test_a_licence_is_free_or_forbids_use_or_is_not_recognised(licences, kind, outcome):
    assert [name for name in licences if classify_licence(name) != kind] == []
    results = [check_picture(800, 600, name, 512) for name in licences]
    assert {result.outcome for result in results} == {outcome}
    assert {result.code for result in results} == {"" if outcome == "PASS" else "picture-not-free"}


def shelve(*rows):
    """Return a finder over a list of (file, titles, phash)."""

    def find(phash):
        found = [Copy(file, titles, measure_distance(phash, other)) for file, titles, other in rows]
        return sorted(found, key=lambda copy: copy.distance)

    return find


def paint(seed, size=(320, 240)):
    blocks = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize(size, Image.Resampling.BICUBIC)


def encode(picture, form="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


PHASH = compute_phash(encode(paint(1)))


@pytest.mark.parametrize(
    ("row", "bits", "outcome"),
    [
        *((("b.jpg", ("Other",)), bits, "FAIL" if bits <= 6 else "PASS") for bits in (0, 6, 7, 8)),
        (("A.jpg", ("Other",)), 0, "PASS"), (("b.jpg", ("Other", "Kelm")), 0, "PASS"),
    ],
)  # fmt: skip
def test_another_articles_picture_is_a_copy_up_to_six_bits(row, bits, outcome):
    result = check_copies(PHASH, "a.jpg", "Kelm", shelve((*row, f"{int(PHASH, 16) ^ ((1 << bits) - 1):016x}")))
    assert (result.outcome, result.code) == (outcome, "picture-duplicate" if outcome == "FAIL" else "")
    assert check_copies(PHASH, "a.jpg", "Kelm", shelve()).passed


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
PHOTOGRAPH = Plainness(drawn=0.5, flat=0.2, sharp=0.05, abrupt=0.05, edges=0.2)


def scene():
    """Soft noise of many colours: what a photograph is to the measures."""
    blocks = np.random.default_rng(3).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize((640, 480), Image.Resampling.BICUBIC)


def draw_blank(size, rng):
    """Draw one colour with a little grain."""
    grains = np.random.default_rng(rng.randrange(2**32)).normal(rng.randint(0, 255), rng.choice((0, 1, 3)), (*size, 3))
    return Image.fromarray(grains.clip(0, 255).astype(np.uint8)), ()


def make_copies(picture, rng):
    """Return a drawing as PNG, as JPEG of two qualities, resized and compressed, and as a palette file."""
    factor = rng.uniform(0.4, 0.9)
    small = picture.resize([round(side * factor) for side in picture.size], Image.Resampling.LANCZOS)
    jpegs = [encode(each, "JPEG", quality=quality) for each, quality in ((picture, 90), (picture, 45), (small, 75))]
    return [encode(picture), *jpegs, encode(picture.quantize(64))]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SIMPLE, "blank"])
def test_plain_drawings_are_refused_in_whatever_format_and_size(name):
    rng, found = Random(f"drawings:{name}"), []
    for _ in range(4):
        picture, _ = (SIMPLE.get(name) or draw_blank)(rng.choice(((800, 533), (640, 640), (1200, 700))), rng)
        found += [check_simple(data, ()).code for data in make_copies(picture, rng)]
    assert found.count("picture-too-simple") >= 0.9 * len(found)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, False), ({"edges": 0.0059}, True), ({"edges": 0.006}, False),
        ({"drawn": 0.99, "abrupt": 0.14, "sharp": 0.0}, True),
        ({"drawn": 0.99, "abrupt": 0.1399, "sharp": 0.0}, False),
        ({"flat": 0.80, "abrupt": 0.14, "sharp": 0.0}, True), ({"flat": 0.7999, "abrupt": 0.14, "sharp": 0.0}, False),
        ({"drawn": 1.0, "flat": 1.0}, False), ({"sharp": 1.0, "abrupt": 1.0}, False),
    ],
)  # fmt: skip
def test_each_measure_decides_at_its_limit(change, refused):
    assert judge_plainness(replace(PHOTOGRAPH, **change)).passed is not refused


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
