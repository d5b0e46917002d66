import pytest

from pipelines.checks.answers import check_kept, check_named, check_not_bridge
from pipelines.graph.answers import type_answer

BEFORE = "In what year did Edda Marn, a friend of Jon Vask, move to Ostrel for 3 years?"


@pytest.mark.parametrize("text", ["Who met Jon Vask?", "Jon Vask's town", "(Jon Vask)"])
def test_a_name_as_it_is_written_is_found(text):
    assert check_named(text, "Jon Vask").passed


@pytest.mark.parametrize(
    "text", ["Who met jon vask?", "Who met Jon Vaskov?", "Who met Jon  Vask?", "Who met Vask?", ""]
)
def test_a_name_in_any_other_form_is_lost(text):
    assert check_named(text, "Jon Vask").code == "descriptor-lost"


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("Edda Marn", "the painter born in Lumby"),
        "For 3 years a painter born in Lumby lived in OSTREL with Jon Vask; when did that begin?",
    ],
)
def test_names_and_numbers_that_stay_in_any_order_are_kept(after):
    assert check_kept(BEFORE, after, "Edda Marn").passed


@pytest.mark.parametrize("lost", ["Jon Vask", "Vask", "Ostrel", "3"])
def test_a_name_or_number_that_goes_is_lost(lost):
    after = BEFORE.replace("Edda Marn", "the painter").replace(lost, "someone")
    result = check_kept(BEFORE, after, "Edda Marn")
    assert (result.outcome, result.code) == ("FAIL", "descriptor-lost")


def test_words_at_the_beginning_of_a_sentence_may_change():
    assert check_kept("Think of it. When was Ostrel founded?", "Ostrel was founded in what year?", "").passed


def test_an_answer_that_reads_like_a_title_is_refused():
    answer = type_answer("Kelm  Bridge", "", "namesake")
    assert check_not_bridge(answer, ["Ostrel"]).passed
    assert check_not_bridge(answer, ["Ostrel", "kelm bridge"]).code == "answer-is-bridge"
