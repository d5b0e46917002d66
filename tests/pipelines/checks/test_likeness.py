import io

import numpy as np
import pytest
from PIL import Image

from pipelines.checks.pictures import Copy, check_copies, check_parts, check_use, hash_parts, rate_ease
from pipelines.pictures import compute_phash, measure_distance
from pipelines.services.protocols import ImageHit


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


def encode(picture, form="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def flip_bits(phash, count):
    return f"{int(phash, 16) ^ ((1 << count) - 1):016x}"


PHASH = compute_phash(encode(paint(1)))


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


def make_copies():
    picture = paint(1)
    width, height = picture.size
    yield picture.resize((width // 2, height // 2))
    yield picture.convert("L").convert("RGB")
    yield picture.crop((3, 2, width - 3, height - 2))


@pytest.mark.parametrize("copy", list(make_copies()))
def test_smaller_grey_and_slightly_cut_copies_are_found(copy):
    phash = compute_phash(encode(copy, "JPEG", quality=40))
    assert not check_copies(phash, "a.jpg", "Kelm", Shelf(("b.jpg", ("Other",), PHASH))).passed
    assert check_copies(phash, "a.jpg", "Kelm", Shelf(("b.jpg", ("Other",), compute_phash(encode(paint(2)))))).passed


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
    shelf = Shelf(("b.jpg", ("Other",), compute_phash(encode(parts[-1 if last else 0]))))
    data = encode(join(columns, rows, gap, parts), "JPEG", quality=85)
    result = check_parts(data, "Kelm", shelf)
    assert (result.outcome, result.code) == ("FAIL", "picture-ambiguous")
    assert check_parts(data, "Other", shelf).passed


def test_a_picture_of_its_own_is_no_montage():
    shelf = Shelf(*((f"{seed}.jpg", (str(seed),), compute_phash(encode(paint(seed)))) for seed in range(2, 40)))
    assert check_parts(encode(paint(1)), "Kelm", shelf).passed


@pytest.mark.parametrize(("data", "shelf"), [(b"no picture", Shelf(("b", ("B",), PHASH))), (encode(paint(1)), Shelf())])
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
