import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.attempts import make_decoys
from pipelines.graph.answers import compare_answers, type_answer
from schemas.proofs import Answer


def typed(text, relation="label"):
    answer = type_answer(text, "", relation)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("5 April 1204", "5 April 1205"), ("April 1204", "April 1205"), ("44 BC", "43 BC"), ("320 m", "640 m"),
        ("1,200", "2,400"), ("0", "1"), ("5,000,000", "10,000,000"), ("29 February 2000", "29 February 2004"),
    ],
)  # fmt: skip
def test_dates_move_and_numbers_grow(text, first):
    assert make_decoys(typed(text, "opened" if "BC" in text else "label"), 1) == (first,)


@pytest.mark.parametrize("text", ["5 April 1931", "12 km", "-3 °C", "$7", "Kelmor Bridge", "Ana Dvořák", "Marn"])
def test_a_decoy_is_incorrect_and_of_the_same_type(text):
    answer = typed(text)
    decoys = make_decoys(answer, 5)
    assert len(set(decoys)) == 5
    assert {compare_answers(decoy, answer) for decoy in decoys} == {"incorrect"}
    assert {typed(decoy).type for decoy in decoys} == {answer.type}


@given(
    st.sampled_from(["date", "number", "name", "string"]), st.text(max_size=20), st.text(max_size=20), st.integers(0, 4)
)
def test_no_decoy_is_ever_right(kind, value, surface, count):
    answer = Answer(type=kind, value=value, precision="", unit="", surface=surface, aliases=(), key=value)
    decoys = make_decoys(answer, count)
    assert len(set(decoys)) == count
    assert "correct" not in {compare_answers(decoy, answer) for decoy in decoys}
