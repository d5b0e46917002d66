"""Near duplicates: what is said to be near is, and what is near is found."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.near import (
    COMPARED,
    TextIndex,
)

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join), max_size=12)


FILLING = [f"{number} of {number} and {number}" for number in range(70)]
"""So many texts that not all are compared."""


def list_runs(text):
    words = re.findall(r"\w+", text.casefold())
    return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)} or {" ".join(words)}


def measure_by_definition(one, other):
    return len(list_runs(one) & list_runs(other)) / len(list_runs(one) | list_runs(other))


def index_texts(texts, similarity):
    index = TextIndex(similarity)
    index.add((str(place), text) for place, text in enumerate(texts))
    return index


def find_by_definition(texts, similarity):
    return {
        (str(first), str(second))
        for second in range(len(texts))
        for first in range(second)
        if measure_by_definition(texts[first], texts[second]) >= similarity - 1e-9
    }


def make_variants(seed, count, words=30):
    """Return texts of words of their own, and each once more with some of its words replaced."""
    draw = random.Random(seed)
    texts = [[str(draw.randrange(10_000)) for _ in range(words)] for _ in range(count)]
    changed = [[word if draw.random() > 0.02 else "changed" for word in text] for text in texts]
    return [" ".join(text) for text in texts + changed]


@settings(max_examples=40)
@given(TEXTS, st.sampled_from([0.3, 0.6, 0.8, 1.0]), st.booleans())
def test_what_is_said_to_be_near_is(texts, similarity, many):
    texts = [*texts, *(FILLING if many else ())]
    pairs = list(index_texts(texts, similarity).find_pairs())
    assert {pair[:2] for pair in pairs} <= find_by_definition(texts, similarity)
    for first, second, found in pairs:
        assert found == measure_by_definition(texts[int(first)], texts[int(second)])


@given(TEXTS, st.sampled_from([0.3, 0.6, 0.8, 1.0]))
def test_of_few_texts_all_that_are_near_are_found(texts, similarity):
    pairs = index_texts(texts, similarity).find_pairs()
    assert {pair[:2] for pair in pairs} == find_by_definition(texts, similarity)


@settings(max_examples=40)
@given(TEXTS, st.sampled_from([0.3, 0.6, 0.8, 1.0]), st.booleans())
def test_a_text_with_the_same_words_is_found_in_any_index(texts, similarity, many):
    texts = [*texts, *(FILLING if many else ())]
    index = index_texts(texts, similarity)
    for place, near in enumerate(index.find([text.upper() + "?" for text in texts])):
        assert (str(place), 1.0) in near


@pytest.mark.parametrize("similarity", [0.5, 0.6, 0.7, 0.8])
def test_almost_all_that_is_near_is_found(similarity):
    texts = make_variants(3, 1000)
    wanted = {
        (str(at), str(at + 1000))
        for at in range(1000)
        if measure_by_definition(texts[at], texts[at + 1000]) >= similarity
    }
    found = {pair[:2] for pair in index_texts(texts, similarity).find_pairs()}
    assert len(wanted) > 400
    assert len(found & wanted) >= 0.99 * len(wanted)


def test_texts_of_scripts_without_spaces_are_compared_by_letters():
    index = index_texts(["这张图片中的建筑是由谁设计的，他出生在哪一年？"], 0.6)
    assert index.find(["这张图片中的建筑是由谁设计的，他出生于哪一年？"])[0]
    assert not index.find(["这张图片中的河流流经哪座城市，那座城市有多少人？"])[0]


def test_what_is_added_after_a_search_is_found_by_the_next():
    index = index_texts(["one two three four"], 0.8)
    assert [near.mark for near in index.find(["one two three four"])[0]] == ["0"]
    index.add([("late", "one two three four")])
    assert [near.mark for near in index.find(["one two three four"])[0]] == ["0", "late"]
    assert len(index) == 2


@pytest.mark.parametrize("asked", [1, 4, 5, 90])
def test_however_few_are_asked_every_copy_is_found_among_a_thousand(asked):
    texts = make_variants(4, 500)
    found = index_texts(texts, 0.8).find(texts[900 : 900 + asked])
    assert all(str(900 + at) in {near.mark for near in nearest} for at, nearest in enumerate(found))


def test_copies_are_found_in_a_bucket_of_more_texts_than_are_compared():
    long = " ".join(map(str, range(300)))
    texts = [f"{long} {place}" for place in range(COMPARED + 40)]
    found = index_texts(texts, 0.5).find(texts[COMPARED:])
    assert all((str(COMPARED + at), 1.0) in near for at, near in enumerate(found))


def test_the_nearest_comes_first():
    index = index_texts(["a b c d e f g x", "a b c d e f g h"], 0.5)
    assert [near.mark for near in index.find(["a b c d e f g h"])[0]] == ["1", "0"]


def test_hundreds_of_copies_cost_a_bounded_number_of_comparisons_and_all_are_found():
    pairs = list(index_texts(["one two three four"] * 300, 0.8).find_pairs())
    assert {second for _, second, _ in pairs} == {str(at) for at in range(1, 300)}
    assert len(pairs) <= 300 * COMPARED


def test_an_index_of_nothing_finds_nothing():
    assert TextIndex(0.8).find(["a text"]) == [()]
    assert list(TextIndex(0.8).find_pairs()) == []


def test_overlap_is_that_of_the_runs_of_three_words():
    assert [near.similarity for near in index_texts(["a b c d"], 0.3).find(["b c d e"])[0]] == [pytest.approx(1 / 3)]
