import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ImageOps

from pipelines.checks.copies import PictureIndex, describe_picture
from tests.copying import WAYS, draw, save, turn

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
