"""Near duplicates: what is said to be near is, and what is near is found."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.near import Sketches, find_alike, shingle_text

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


@pytest.mark.parametrize("similarity", [0.5, 0.6, 0.7, 0.8])
def test_almost_all_that_is_near_is_found(similarity):
    texts = make_variants(3, 1000)
    wanted = {(at, at + 1000) for at in range(1000) if measure_by_definition(texts[at], texts[at + 1000]) >= similarity}
    found = {pair[:2] for pair in find_pairs(texts, similarity)}
    assert len(wanted) > 400
    assert len(found & wanted) >= 0.99 * len(wanted)
