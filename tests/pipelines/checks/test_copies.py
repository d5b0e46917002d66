import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from pipelines.checks.copies import PictureIndex, describe_picture
from pipelines.checks.sets import make_signature, refuse_like_pictures
from pipelines.errors import RecordFailed
from tests.copying import WAYS, draw, save, turn
from tests.pipelines.release.builders import make_question

SEEDS = range(100, 112)


def encode(picture):
    target = io.BytesIO()
    picture.save(target, "PNG")
    return target.getvalue()


def is_copy(one, other):
    index = PictureIndex()
    index.add("one", one)
    return bool(index.find(other))


@pytest.fixture(scope="module")
def originals():
    return [describe_picture(encode(draw(seed))) for seed in SEEDS]


@st.composite
def draw_pictures(draw_value):
    """Draw small pictures of a few grey or coloured patches, even ones included."""
    rows, columns = draw_value(st.integers(1, 5)), draw_value(st.integers(1, 5))
    values = draw_value(st.lists(st.integers(0, 255), min_size=rows * columns, max_size=rows * columns))
    patches = Image.fromarray(np.array(values, dtype=np.uint8).reshape(rows, columns))
    size = draw_value(st.integers(1, 90)), draw_value(st.integers(1, 90))
    return patches.resize(size, Image.Resampling.BILINEAR).convert("RGB")


@pytest.mark.parametrize("way", WAYS)
def test_a_changed_copy_is_found_and_no_other_picture(originals, way):
    index = PictureIndex()
    for seed, description in zip(SEEDS, originals, strict=True):
        index.add(str(seed), description)
    found = [index.find(describe_picture(WAYS[way](draw(seed)))) for seed in SEEDS]
    assert sum(marks == (str(seed),) for seed, marks in zip(SEEDS, found, strict=True)) >= 11
    assert all(set(marks) <= {str(seed)} for seed, marks in zip(SEEDS, found, strict=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: turn(whole, 90, expand=True),
        lambda whole: ImageOps.flip(whole),
        lambda whole: whole.crop((0, 0, whole.width // 2, whole.height)),
        lambda whole: ImageOps.invert(whole),
    ],
    ids=["turned by a quarter", "upside down", "half of it", "negative"],
)
def test_a_picture_that_shows_something_else_is_no_copy(originals, change):
    changed = [describe_picture(save(change(draw(seed)))) for seed in SEEDS]
    assert not any(is_copy(one, other) for one, other in zip(originals, changed, strict=True))


@given(draw_pictures(), draw_pictures())
@settings(max_examples=60)
def test_a_picture_is_a_copy_of_itself_and_of_its_mirror_image_and_the_order_does_not_matter(one, other):
    first, second, mirrored = (describe_picture(encode(each)) for each in (one, other, ImageOps.mirror(one)))
    assert is_copy(first, first)
    assert is_copy(first, second) == is_copy(second, first)
    assert is_copy(first, mirrored) == is_copy(mirrored, first)


@given(st.permutations(range(8)))
@settings(max_examples=10)
def test_what_is_found_does_not_depend_on_the_order_of_adding(order):
    described = [describe_picture(save(draw(place // 2), 95 - 50 * (place % 2))) for place in range(8)]
    index = PictureIndex()
    for place in order:
        index.add(str(place), described[place])
    assert [index.find(each) for each in described] == [
        (str(place // 2 * 2), str(place // 2 * 2 + 1)) for place in range(8)
    ]


def test_an_empty_index_finds_nothing(originals):
    assert PictureIndex().find(originals[0]) == ()


def test_many_pictures_sought_at_once_are_found_as_each_alone(originals):
    index, fresh = PictureIndex(), PictureIndex()
    for place, description in enumerate(originals):
        (index if place < 6 else fresh).add(str(place), description)
    index.extend(fresh)
    sought = [describe_picture(WAYS["mirror"](draw(SEEDS[place % 12]))) for place in range(70)]
    assert index.find_all(sought) == [index.find(each) for each in sought]
    assert index.find_all(sought)[69] == ("9",)


def test_questions_about_one_picture_look_at_it_once(originals):
    own = make_signature(make_question(0, None))
    rows = [replace(own, record_id=f"q-{n}", sha256="ab" * 32, anchor=n // 2) for n in range(4)]
    rows.append(replace(own, record_id="q-9", sha256="cd" * 32, anchor=1))
    looked = []
    pictures = {"ab" * 32: originals[0], "cd" * 32: describe_picture(WAYS["mirror"](draw(SEEDS[0])))}
    refused = refuse_like_pictures(rows, lambda sha256: looked.append(sha256) or pictures[sha256])
    assert looked == ["ab" * 32, "cd" * 32]
    assert sorted(refused) == ["q-2", "q-3", "q-9"]


def test_a_mark_with_two_copies_is_named_once(originals):
    index = PictureIndex()
    for description in (originals[0], describe_picture(WAYS["mirror"](draw(SEEDS[0]))), originals[1]):
        index.add("both", description)
    assert index.find(originals[0]) == ("both",)


def test_even_pictures_of_different_colours_are_no_copies():
    grey, black = (describe_picture(encode(Image.new("RGB", (40, 30), (level,) * 3))) for level in (90, 0))
    assert (is_copy(grey, grey), is_copy(grey, black)) == (True, False)


def test_a_broken_picture_is_the_failure_of_its_record():
    with pytest.raises(RecordFailed):
        describe_picture(encode(draw(1))[:400])


@pytest.mark.slow
def test_copies_of_photographs_are_found_and_photographs_are_no_copies_of_one_another(shared_data):
    files = sorted((shared_data / "enwiki-slice" / "images").glob("*.png"))
    opened = [Image.open(path).convert("RGB") for path in files]
    for photograph in opened:
        photograph.thumbnail((800, 800))
    index = PictureIndex()
    for place, photograph in enumerate(opened):
        index.add(str(place), describe_picture(save(photograph, 95)))
    missed = []
    for name, way in WAYS.items():
        for place, photograph in enumerate(opened):
            found = index.find(describe_picture(way(photograph)))
            assert set(found) <= {str(place)}
            missed += [] if found else [(name, place)]
    # Of a night sky, turned on a larger canvas, the low frequencies hardly tell anything.
    assert len(missed) <= 1, missed
