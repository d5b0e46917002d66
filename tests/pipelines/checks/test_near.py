"""Near duplicates: what is said to be near is, and what is near is found."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.near import COMPARED, Sketches, find_alike, shingle_text

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join), max_size=12)


FILLING = [f"{number} of {number} and {number}" for number in range(70)]
"""So many texts that not all are compared."""


def list_runs(text):
    words = re.findall(r"\w+", text.casefold())
    return {" ".join(words[at : at + 3]) for at in range(len(words) - 2)} or {" ".join(words)}


def measure_by_definition(one, other):
    return len(list_runs(one) & list_runs(other)) / len(list_runs(one) | list_runs(other))


def sketch(texts, similarity):
    return Sketches(list(map(shingle_text, texts)), similarity)


def find_pairs(texts, similarity):
    """Return each near pair, the earlier first, with its similarity."""
    sets = sketch(texts, similarity)
    return [(other, one, found) for one, other, found in find_alike(sets, sets)]


def find_near(asked, texts, similarity):
    """Return the near texts of each one that is asked for, with their similarities."""
    found = [{} for _ in asked]
    for one, other, similar in find_alike(sketch(asked, similarity), sketch(texts, similarity)):
        found[one][other] = similar
    return found


def find_by_definition(texts, similarity):
    return {
        (first, second)
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
    pairs = find_pairs(texts, similarity)
    assert {pair[:2] for pair in pairs} <= find_by_definition(texts, similarity)
    for first, second, found in pairs:
        assert found == measure_by_definition(texts[first], texts[second])


@given(TEXTS, st.sampled_from([0.3, 0.6, 0.8, 1.0]))
def test_of_few_texts_all_that_are_near_are_found(texts, similarity):
    pairs = find_pairs(texts, similarity)
    assert {pair[:2] for pair in pairs} == find_by_definition(texts, similarity)


@settings(max_examples=40)
@given(TEXTS, st.sampled_from([0.3, 0.6, 0.8, 1.0]), st.booleans())
def test_a_text_with_the_same_words_is_found_in_any_index(texts, similarity, many):
    texts = [*texts, *(FILLING if many else ())]
    for place, near in enumerate(find_near([text.upper() + "?" for text in texts], texts, similarity)):
        assert near[place] == 1.0


@pytest.mark.parametrize("similarity", [0.5, 0.6, 0.7, 0.8])
def test_almost_all_that_is_near_is_found(similarity):
    texts = make_variants(3, 1000)
    wanted = {(at, at + 1000) for at in range(1000) if measure_by_definition(texts[at], texts[at + 1000]) >= similarity}
    found = {pair[:2] for pair in find_pairs(texts, similarity)}
    assert len(wanted) > 400
    assert len(found & wanted) >= 0.99 * len(wanted)


def test_texts_of_scripts_without_spaces_are_compared_by_letters():
    known = ["这张图片中的建筑是由谁设计的，他出生在哪一年？"]
    assert find_near(["这张图片中的建筑是由谁设计的，他出生于哪一年？"], known, 0.6)[0]
    assert not find_near(["这张图片中的河流流经哪座城市，那座城市有多少人？"], known, 0.6)[0]


@pytest.mark.parametrize("asked", [1, 4, 5, 90])
def test_however_few_are_asked_every_copy_is_found_among_a_thousand(asked):
    texts = make_variants(4, 500)
    found = find_near(texts[900 : 900 + asked], texts, 0.8)
    assert all(900 + at in near for at, near in enumerate(found))


def test_copies_are_found_in_a_bucket_of_more_texts_than_are_compared():
    long = " ".join(map(str, range(300)))
    texts = [f"{long} {place}" for place in range(COMPARED + 40)]
    found = find_near(texts[COMPARED:], texts, 0.5)
    assert all(near[COMPARED + at] == 1.0 for at, near in enumerate(found))


def test_hundreds_of_copies_cost_a_bounded_number_of_comparisons_and_all_are_found():
    pairs = find_pairs(["one two three four"] * 300, 0.8)
    assert {second for _, second, _ in pairs} == set(range(1, 300))
    assert len(pairs) <= 300 * COMPARED


def test_an_index_of_nothing_finds_nothing():
    assert find_near(["a text"], [], 0.8) == [{}]
    assert find_pairs([], 0.8) == []


def test_overlap_is_that_of_the_runs_of_three_words():
    assert find_near(["b c d e"], ["a b c d"], 0.3) == [{0: pytest.approx(1 / 3)}]
