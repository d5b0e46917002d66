"""What guessing the commonest answer of an attribute scores."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.sets import make_signature, refuse_guessed
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release import guessing
from pipelines.release.guessing import (
    Guessed,
    check_guessability,
    count_right,
    measure_guessability,
)
from pipelines.release.wording import QuestionWords
from tests.pipelines.release.builders import make_question


def guess_by_definition(answers):
    right = 0.0
    for place, answer in enumerate(answers):
        others = Counter(answers[:place] + answers[place + 1 :])
        frequent = {other for other, count in others.items() if count == max(others.values())}
        right += (answer in frequent) / len(frequent) if frequent else 0.0
    return right


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=25))
def test_a_guesser_gets_right_what_is_the_commonest_of_all_other_answers(answers):
    assert count_right(Counter(answers)) == pytest.approx(guess_by_definition(answers))


@given(
    st.lists(st.tuples(st.sampled_from(["colour", "spouse"]), st.sampled_from("abcdef")), max_size=60),
    st.sampled_from([0.1, 0.3, 0.5]),
)
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
    asked = [ask(number, each.answer_key, relation=each.asked) for number, each in enumerate(kept)]
    assert not kept or measure_guessability(asked, ReleasesConfig())["commonest answer"]["share"] <= share + 1e-9
    assert {each.answer_key for each in kept} == {each.answer_key for each in signatures}
    assert refuse_guessed(kept, (), share) == {}
    assert {each.reason for each in refused.values()} <= {"answer-over-used"}


def ask(number, answer, *, relation="colour", split="train", kind="Flower, string", gold=0.1):
    words = QuestionWords(f"What is q{number} of the flower?", answer, (f"anchor {number}", f"node {number}"))
    return Guessed(split, relation, answer, kind, words, gold)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(guessing, "LEAST_ROWS", 8)


def find_failed(table):
    return {name for name, row in table.items() if row["verdict"] == "not met"}


def test_four_of_four_in_violet_alarm_however_few_questions_there_are():
    table = measure_guessability([ask(number, "violet") for number in range(4)], ReleasesConfig())
    assert table["one answer of an attribute"]["of"] == "4 of 4 colour are violet"
    assert table["commonest answer"]["verdict"] == "too few to judge"
    assert find_failed(table) == {"one answer of an attribute"}
    with pytest.raises(GateNotMet, match=r"one answer of an attribute.*releases\.max_answer_share"):
        check_guessability(table)


def test_questions_of_a_few_attributes_are_guessed_by_their_domain_and_type():
    same = [ask(number, "kelm", relation=f"town{'abcdefgh'[number]}") for number in range(8)]
    table = measure_guessability(same, ReleasesConfig())
    assert table["commonest answer"]["share"] == 1.0
    assert {"commonest answer", "commonest answer, train"} <= find_failed(table)
    apart = [ask(number, "kelm", relation=f"town{'abcdefgh'[number]}", kind=f"{number}, name") for number in range(8)]
    assert measure_guessability(apart, ReleasesConfig())["commonest answer"]["share"] == 0.0


def test_a_split_is_judged_by_itself():
    test = [ask(number, "ab"[number % 2], split="test") for number in range(8)]
    train = [ask(100 + number, f"name {number}") for number in range(100)]
    table = measure_guessability([*test, *train], ReleasesConfig())
    assert (table["commonest answer"]["verdict"], table["commonest answer, train"]["verdict"]) == ("met", "met")
    assert "commonest answer, test" not in find_failed(table)
    table = measure_guessability([*(ask(number, "a", split="test") for number in range(8)), *train], ReleasesConfig())
    assert "commonest answer, test" in find_failed(table)


@pytest.mark.parametrize(
    ("shares", "verdict", "over"),
    [((0.25, 0.1), "met", 0), ((0.26, 0.1), "not met", 1), ((0.2, None), "met where measured", 0),
     ((None, None), "not measured", 0)],
)  # fmt: skip
def test_one_question_over_its_gold_share_is_enough_and_what_is_not_measured_is_said(shares, verdict, over):
    rows = [ask(number, f"name {number}", split="test", gold=share) for number, share in enumerate(shares)]
    row = measure_guessability(rows, ReleasesConfig())["without the picture, test"]
    assert (row["verdict"], row["over"], row["not measured"]) == (verdict, over, sum(each is None for each in shares))


def test_evaluation_is_not_guessed_by_answers_that_are_rare_beside_training():
    base = make_question(0, None, "eval")
    rows = [("eval", "violet"), ("eval", "violet"), *(("sft", f"name {number}") for number in range(30))]
    signatures = [
        make_signature(
            base.model_copy(update={"record_id": f"q{number:02}", "split": split,
                                    "answer": base.answer.model_copy(update={"key": answer})})
        )
        for number, (split, answer) in enumerate(rows)
    ]  # fmt: skip
    assert list(refuse_guessed(signatures, (), 0.1)) == ["q01"]
