"""What guessing the commonest answer of an attribute scores."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.sets import make_signature, refuse_guessed
from pipelines.release.guessing import OVERALL, measure_guessing
from tests.pipelines.release.builders import make_question

ROWS = st.lists(
    st.tuples(st.sampled_from(["colour", "twin1", "twin2", "spouse"]), st.sampled_from("abcdef")), max_size=60
)


def test_a_guesser_gets_what_is_common_and_nothing_of_what_occurs_once():
    colours = [("colour", "violet")] * 4 + [("colour", "red"), ("colour", "blue")]
    names = [("spouse", "ada"), ("spouse", "cleo"), ("twin1", "kelm"), ("twin2", "kelm")]
    table = measure_guessing([*colours, *names])
    assert list(table) == [OVERALL, "colour", "spouse", "twin"]
    assert table["colour"]["share"] == pytest.approx(4 / 6, abs=1e-4)
    assert (table["colour"]["commonest"], table["colour"]["has it"]) == ("violet", 4)
    assert (table["spouse"]["share"], table["twin"]["share"]) == (0.0, 1.0)
    assert table[OVERALL]["share"] == 0.6
    assert table[OVERALL]["low"] == pytest.approx(0.3127, abs=1e-3)
    assert table[OVERALL]["high"] == pytest.approx(0.8318, abs=1e-3)


def test_nothing_asked_is_nothing_guessed():
    assert measure_guessing([])[OVERALL]["share"] == 0.0


@given(ROWS, st.sampled_from([0.1, 0.3, 0.5]))
def test_what_is_kept_is_guessed_no_more_often_than_its_share(rows, share):
    base = make_question(0, None)
    questions = [
        base.model_copy(
            update={
                "record_id": f"q{number:02}",
                "answer": base.answer.model_copy(update={"key": answer}),
                "proof": base.proof.model_copy(update={"answer_relation": relation}),
            }
        )
        for number, (relation, answer) in enumerate(rows)
    ]
    signatures = [make_signature(question) for question in questions]
    refused = refuse_guessed(signatures, (), share)
    kept = [each for each in signatures if each.record_id not in refused]
    table = measure_guessing((each.asked, each.answer_key) for each in kept)
    assert table[OVERALL]["share"] <= share + 1e-9
    assert {(each.asked, each.answer_key) for each in kept} == {(each.asked, each.answer_key) for each in signatures}
    assert refuse_guessed(kept, (), share) == {}
    counts = Counter(each.asked for each in kept)
    assert all(refused[each.record_id].reason == "answer-over-used" for each in signatures if each.record_id in refused)
    assert counts.total() == len(kept)
