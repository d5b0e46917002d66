import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.cues import find_kin, list_stems, stem_word


@pytest.mark.parametrize(
    "words",
    [
        ("design", "designed", "designer", "designers", "designs", "designing"),
        ("found", "founded", "founder", "founders", "foundation"),
        ("populate", "populated", "population", "populations"),
        ("discover", "discovered", "discoverer"),
    ],
)
def test_words_of_one_family_have_one_stem(words):
    assert len({stem_word(word) for word in words}) == 1


@pytest.mark.parametrize(("word", "other"), [("born", "bore"), ("river", "rise"), ("opened", "closed")])
def test_words_of_two_families_have_two(word, other):
    assert stem_word(word) != stem_word(other)


@given(st.text(alphabet="abdegilmnorst", max_size=20))
def test_a_stem_is_its_own_stem(word):
    assert stem_word(stem_word(word)) == stem_word(word)


def test_stems_leave_out_digits_and_stop_words():
    assert list_stems("It was designed in 1931 by the Architects") == ["design", "architect"]


def test_kin_of_a_key_word_is_what_prose_says():
    assert "born" in find_kin(stem_word("birth"))
    assert "built" in find_kin(stem_word("construction"))
    assert find_kin("xyz") == ()
