import pytest

from pipelines.bench.accepted import SOUND, Truth, evaluate, find_allowed, judge_question


@pytest.fixture(scope="module")
def truth(pool):
    return Truth(pool.world, pool.corpus)


def change_proof(question, **changes):
    return question.model_copy(update={"proof": question.proof.model_copy(update=changes)})


def list_by(pool, method):
    return [question for question in pool.questions if pool.find_method(question) == method]


def test_what_is_accepted_is_sound_by_the_whole_truth(pool):
    for row in evaluate(pool):
        assert row.rate <= find_allowed(pool.missing), row.examples


def test_every_accepted_question_is_counted_once(pool):
    rows = evaluate(pool)
    assert [row.method for row in rows] == ["paths", "injection"]
    assert sum(row.accepted for row in rows) == len(pool.questions)
    assert all(row.seeds >= row.accepted > 0 for row in rows if row.method == "injection")
    assert all(row.missing == pool.missing for row in rows)


def test_another_gold_is_wrong(pool, truth):
    question = next(q for q in pool.questions if q.answer.type == "date")
    answer = question.answer.model_copy(update={"value": "0999", "surface": "999"})
    assert judge_question(truth, question) == SOUND
    assert judge_question(truth, question.model_copy(update={"answer": answer})) == "wrong-gold"


def test_a_path_that_is_not_true_is_noticed(pool, truth):
    question = list_by(pool, "paths")[0]
    hop = question.proof.hops[0].model_copy(update={"relation": "no_such_field"})
    assert judge_question(truth, change_proof(question, hops=(hop, *question.proof.hops[1:]))) == "path-untrue"


def test_a_descriptor_that_fits_several_entities_is_not_unique(pool, truth):
    # Without its constraints, a hop from a town to those born there leads to many.
    found = [
        judge_question(truth, change_proof(question, constraints=(), hops=question.proof.hops))
        for question in list_by(pool, "injection")
    ]
    assert set(found) <= {SOUND, "not-unique"}


def test_an_attribute_that_the_world_does_not_have_is_not_single(pool, truth):
    question = pool.questions[0]
    assert judge_question(truth, change_proof(question, answer_relation="nothing")) == "answer-not-single"


def test_a_constraint_that_is_not_true_empties_the_path(pool, truth):
    question = next(q for q in list_by(pool, "injection") if q.proof.constraints)
    wrong = question.proof.constraints[0].model_copy(update={"value": "no such type"})
    assert judge_question(truth, change_proof(question, constraints=(wrong,))) == "path-untrue"


@pytest.mark.parametrize(("missing", "allowed"), [(0.0, 0.0), (0.1, 0.02), (0.2, 0.03), (0.3, 0.04), (0.05, 0.01)])
def test_what_is_allowed_grows_with_what_is_missing(missing, allowed):
    assert find_allowed(missing) == pytest.approx(allowed)
