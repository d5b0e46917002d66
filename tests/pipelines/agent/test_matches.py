"""The part of a passage that a search hit shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.observations import cut_match

FILLER = "Nothing of note is told here about any of it. " * 20
SENTENCE = "The tower was drawn by Ada Brink in 1899, after a fire."
TEXTS = st.text(alphabet="ab .\n?é", max_size=400)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("after", [0, 2])
def test_the_sentence_that_a_query_repeats_is_shown_whole_wherever_it_stands(before, after):
    shown = cut_match(FILLER * before + SENTENCE + " " + FILLER * after, SENTENCE, 200)
    assert SENTENCE in shown
    assert len(shown) <= 200
    assert shown.startswith("…") == bool(before)


@given(TEXTS, TEXTS, st.integers(20, 100))
def test_what_is_shown_stands_in_the_text_and_is_no_longer_than_allowed(text, query, limit):
    shown = cut_match(text, query, limit)
    assert len(shown) <= 2 * limit
    assert shown.strip("…") in " ".join(text.split())
