import json
from dataclasses import replace

import pytest

from schemas.proofs import Constraint
from tests.planted.truth import SOUND, Truth, evaluate, find_allowed, judge_question, measure_rate


@pytest.fixture(scope="module")
def rows(pool):
    return evaluate(pool)


@pytest.fixture
def world(tmp_path):
    """Three towns, each the birthplace of an architect; the first also that of a politician."""
    places = {"Ostby": ("Ada", "Cleo"), "Westby": ("Bo",), "Norby": ()}
    people = {"Ada": ("architect", 180), "Bo": ("architect", 190), "Cleo": ("politician", 170)}
    entities = [{"title": title, "kind": "place", "subtype": "town", "noun": "market town"} for title in places]
    entities += [
        {"title": title, "kind": "person", "subtype": noun, "noun": noun} for title, (noun, _) in people.items()
    ]
    nothing = dict.fromkeys(("object", "value", "value_kind", "value_iso", "value_number", "value_unit"))
    facts = [
        nothing | {"subject": who, "relation": "birth_place", "key": "birth_place", "object": place}
        for place, born in places.items()
        for who in born
    ]
    facts += [
        nothing
        | {"subject": who, "relation": "height", "key": "height", "value": f"{size} cm", "value_kind": "quantity"}
        | {"value_number": float(size), "value_unit": "cm"}
        for who, (_, size) in people.items()
    ]
    (tmp_path / "truth").mkdir()
    for name, told in (("entities", entities), ("facts", facts)):
        (tmp_path / "truth" / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in told), "utf-8")
    return tmp_path


@pytest.fixture
def make_question(pool):
    """Make "How tall is the (noun) born in [Ostby]?" of a question of the pool."""

    def make(noun, unit="cm", alone_first=2, answers=2):
        row = list_by(pool, "injection")[0]
        proof, answer = row.proof, {"type": "number", "value": "180", "unit": unit, "surface": f"180 {unit}"}
        ends = (("Ostby", "town"), ("Ada", "architect"))
        nodes = (
            node.model_copy(update={"title": title, "type": type_})
            for node, (title, type_) in zip(proof.nodes, ends, strict=False)
        )
        limits = {"alone_first": alone_first, "alone": 1, "answers": answers}
        changed = change_proof(
            row,
            nodes=tuple(nodes),
            hops=(proof.hops[0].model_copy(update={"index": 1, "relation": "birth_place", "backward": True}),),
            constraints=(Constraint(node=1, relation="type", value=noun),) if noun else (),
            answer_relation="height",
            derivation="",
            thresholds=proof.thresholds.model_copy(update=limits),
        )
        return changed.model_copy(update={"answer": row.answer.model_copy(update=answer)})

    return make


def change_proof(question, **changes):
    return question.model_copy(update={"proof": question.proof.model_copy(update=changes)})


def list_by(pool, method):
    return [question for question in pool.questions if pool.find_method(question) == method]


def test_every_accepted_question_is_counted_once_and_sound(pool, rows):
    assert measure_rate(pool.missing, rows).met, [row.examples for row in rows]
    assert [row.method for row in rows] == ["paths", "injection"]
    assert sum(row.accepted for row in rows) == len(pool.questions)
    assert all(row.seeds >= row.accepted > 0 for row in rows if row.method == "injection")
    assert not measure_rate(pool.missing, [rows[0], replace(rows[1], accepted=0, defects=0)]).met


def test_defects_of_accepted_questions_are_noticed(pool):
    truth = Truth(pool.world)
    question = next(q for q in pool.questions if q.answer.type == "date")
    answer = question.answer.model_copy(update={"value": "0999", "surface": "999"})
    assert judge_question(truth, question) == SOUND
    assert judge_question(truth, question.model_copy(update={"answer": answer})) == "wrong-gold"
    assert judge_question(truth, change_proof(pool.questions[0], answer_relation="nothing")) == "answer-not-single"

    first = list_by(pool, "paths")[0]
    hop = first.proof.hops[0].model_copy(update={"relation": "no_such_field"})
    assert judge_question(truth, change_proof(first, hops=(hop, *first.proof.hops[1:]))) == "path-untrue"

    question = next(q for q in list_by(pool, "injection") if q.proof.constraints)
    wrong = question.proof.constraints[0].model_copy(update={"value": "language"})
    assert judge_question(truth, change_proof(question, constraints=(wrong,))) == "path-untrue"


@pytest.mark.parametrize(
    ("noun", "limits", "said"),
    [
        ("architect", {}, SOUND),
        ("politician", {}, "path-untrue"),
        ("", {}, "not-unique"),
        # An architect is a person, whatever the template of its page is called.
        ("person", {}, "not-unique"),
        # A noun that the world does not know may apply to anything.
        ("native", {}, "not-unique"),
        ("architect", {"unit": "ft"}, "wrong-unit"),
        ("architect", {"alone_first": 3}, "stands-alone"),
        ("architect", {"answers": 3}, "picture-not-needed"),
    ],
)
def test_a_question_is_judged_by_the_truth_files(world, make_question, noun, limits, said):
    assert judge_question(Truth(world), make_question(noun, **limits)) == said


@pytest.mark.parametrize(("missing", "allowed"), [(0.0, 0.0), (0.1, 0.02), (0.2, 0.03), (0.3, 0.04), (0.05, 0.01)])
def test_the_allowed_share_grows_with_the_missing_rate(missing, allowed):
    assert find_allowed(missing) == pytest.approx(allowed)


@pytest.mark.parametrize(
    ("missing", "accepted", "defects", "met", "shown"),
    [
        (0.0, 400, 0, True, False),
        (0.0, 400, 1, False, False),
        (0.1, 0, 0, False, False),
        (0.1, 50, 0, True, False),
        (0.1, 400, 0, True, True),
        (0.1, 50, 1, False, False),
        (0.2, 100, 3, False, False),
        (0.2, 100, 2, True, False),
        (0.3, 100, 4, False, False),
    ],
)
def test_a_rate_is_met_below_the_limit_and_shown_when_its_interval_is(rows, missing, accepted, defects, met, shown):
    rate = measure_rate(missing, [replace(rows[0], missing=missing, accepted=accepted, defects=defects)])
    assert (rate.met, rate.shown) == (met, shown)
