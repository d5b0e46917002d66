import pytest

from pipelines.release.quality import (
    count_precisions,
    measure_answers,
    measure_counts,
    measure_necessity,
    measure_proofs,
)
from schemas.proofs import Constraint, Count, NearMiss, Thresholds
from tests.pipelines.release.builders import make_evidence, make_question

STRICT = Thresholds(alone_first=5, alone=2, answers=5, near_misses=50, retrieval_rank=10, volatile=False)


def prove(number, **changes):
    question = make_question(number, None)
    return question.model_copy(update={"proof": question.proof.model_copy(update=changes)})


def miss(page, resolution="absent"):
    return NearMiss(node=1, page_id=page, title=f"Person {page}", unknown=("birth_date",), resolution=resolution)


def test_near_misses_are_counted_a_question_and_by_what_their_articles_say():
    questions = [prove(1, near_misses=(miss(1), miss(2), miss(3, "unclear")), thresholds=STRICT), prove(2)]
    table = measure_proofs(questions)
    assert table["near misses a question"] == {"n": 2, "min": 0, "median": 0, "p95": 3, "max": 3}
    assert table["near misses: absent"] == {"n": 2, "share": 0.6667}
    assert table["near misses: unclear"] == {"n": 1, "share": 0.3333}
    assert table["near misses looked for"] == {"rows": 1, "share": 0.5}


def test_what_confirms_an_answer_is_counted():
    questions = [
        prove(1, corroboration=make_evidence(3, "Ostrava"), compared_snapshot="2024-01-01"),
        prove(2),
        prove(3),
    ]
    table = measure_proofs(questions)
    assert table["answer confirmed by a sentence"] == {"rows": 1, "share": 0.3333}
    assert table["checked: the same in another dump"] == {"rows": 1, "share": 0.3333}
    assert table["confirmation required"] == table["volatile facts refused"] == {"rows": 0, "share": 0.0}


def test_the_first_hidden_node_and_later_ones_are_told_apart():
    counts = tuple(Count(name="alone", node=node, value=value, capped=node > 1) for node, value in ((1, 7), (2, 3)))
    table = measure_necessity([prove(1, counts=counts)])
    assert table["R_alone, first hidden node"] == {"n": 1, "min": 7, "median": 7, "p95": 7, "max": 7, "capped": 0}
    assert table["R_alone, later nodes"] == {"n": 1, "min": 3, "median": 3, "p95": 3, "max": 3, "capped": 1}
    assert table["N_img"] == {"n": 0, "capped": 0}
    assert measure_counts([prove(1, counts=counts)])["alone"]["n"] == 2


def test_redundant_constraints_and_the_checks_made_are_counted():
    facts = (Constraint(node=1, relation="type", value="architect"),)
    questions = [prove(1, constraints=facts, redundant=facts, shortcuts_checked=True, thresholds=STRICT), prove(2)]
    table = measure_necessity(questions)
    assert table["questions with a redundant constraint"] == {"rows": 1, "share": 0.5}
    assert table["redundant constraints a question"]["max"] == 1
    assert (
        table["checked: no path shorter by two links"]
        == table["checked: not found by one search"]
        == {"rows": 1, "share": 0.5}
    )


def test_an_answer_that_half_of_a_relation_has_is_guessed_as_often():
    first = make_question(0, None)
    questions = [first, *(make_question(number, None, answer=first.answer) for number in range(1, 10))]
    questions += [make_question(number, None) for number in range(10, 20)]
    table = measure_answers(questions)
    assert table["right by the most frequent answer"] == {"n": 20, "share": 0.5}
    assert table["largest share in a relation of 20 questions"]["max"] == pytest.approx(0.5)
    assert table["questions an answer key"]["max"] == 10


def test_dates_are_counted_by_precision_and_by_what_is_asked_of_them():
    table = count_precisions([prove(1, derivation="year"), prove(2)])
    assert table == {"year": {"rows": 2, "share": 1.0}, "year of a fuller date": {"rows": 1, "share": 0.5}}
    assert count_precisions([]) == {}
