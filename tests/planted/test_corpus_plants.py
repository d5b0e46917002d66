from dataclasses import replace
from random import Random

import pytest

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import ConfigError
from pipelines.graph.query import locate_nodes
from tests.planted import corpus_plants, reading_plants, scenes
from tests.planted.disguises import draw_sentence, find_statements, state_fact
from tests.planted.scenes import (
    Case,
    Scene,
    change_at,
    draw_case,
    judge,
    list_changes,
    make_pair,
    pick_result,
    rank_by_words,
    verify,
)
from tests.planted.words import load_half

WORDS = load_half("held-out")
OPERATORS = (
    corpus_plants.plant_twin,
    corpus_plants.plant_second_value,
    corpus_plants.plant_lone_descriptor,
    corpus_plants.plant_shortcut,
    corpus_plants.plant_idle_picture,
    corpus_plants.plant_gold,
    corpus_plants.plant_volatile,
    corpus_plants.plant_searchable,
)
JUDGED = (
    corpus_plants.plant_parametric,
    corpus_plants.plant_repeat,
    scenes.plant_tampering,
    *(operator for _, _, operator in reading_plants.DEFECTS),
)
PROSE = (corpus_plants.plant_hidden_twin, corpus_plants.plant_hidden_value)


def get_name(operator):
    return operator.__name__


def list_cases(pool):
    return [Case(pool, row, tuple(locate_nodes(pool.corpus, row.proof.nodes))) for row in pool.questions]


def plant_some(pool, operator, count=3):
    """Return what an operator makes of the first questions that admit its defect."""
    found = []
    for number, case in enumerate(list_cases(pool)):
        made = operator(case, WORDS, Random(number))
        if made is not None:
            found.append((case, made))
        if len(found) == count:
            break
    assert found, f"no question admits {operator.__name__}"
    return found


def test_an_accepted_question_is_accepted_again_in_an_overlay_without_changes(pool):
    assert {pool.find_method(question) for question in pool.questions} == {"paths", "injection"}
    for case in list_cases(pool):
        assert judge(pool, Scene(case.claim)) == ()


@pytest.mark.parametrize("operator", OPERATORS, ids=get_name)
def test_the_checks_tell_the_twins_apart_and_the_clean_one_is_edited_too(pool, operator):
    for case, twins in plant_some(pool, operator):
        assert twins.clean.edits or twins.clean.added or twins.clean.claim != case.claim
        pair = make_pair(pool, twins)
        assert pair.clean.passed, (twins.plant, pair.clean)
        assert not pair.defective.passed
        assert pair.defective.code in twins.codes, (twins.plant, pair.defective)


@pytest.mark.parametrize("operator", JUDGED, ids=get_name)
def test_the_stages_the_verifier_and_the_reader_tell_the_twins_apart(pool, operator):
    for _, pair in plant_some(pool, operator, 5):
        assert pair.clean.passed, (pair.plant, pair.clean)
        assert pair.defective.code in pair.codes, (pair.plant, pair.defective)


def test_a_fact_hidden_in_prose_is_found(pool):
    cases = [case for case in list_cases(pool) if all(hop.backward for hop in case.question.proof.hops)]
    planted = (corpus_plants.plant_hidden_twin(case, WORDS, Random(n)) for n, case in enumerate(cases))
    found = [twins for twins in planted if twins]
    assert found
    for twins in found[:4]:
        assert "near-miss" in {result.code for result in judge(pool, twins.defective)}, twins.plant


@pytest.mark.parametrize("operator", [*OPERATORS, *PROSE], ids=get_name)
def test_the_same_draw_plants_the_same_defect(pool, operator):
    case, twins = plant_some(pool, operator, 1)[0]
    again = operator(case, WORDS, Random(list_cases(pool).index(case)))
    assert (again.plant, again.defective, again.clean) == (twins.plant, twins.defective, twins.clean)


def test_repeats_are_refused_each_by_its_own_code(pool):
    case = list_cases(pool)[0]
    found = {corpus_plants.plant_repeat(case, WORDS, Random(number)).codes for number in range(40)}
    assert found == {("skeleton-over-used", "near-duplicate"), ("duplicate-question",), ("duplicate-path",)}


def test_clean_questions_are_those_that_the_own_ranking_finds_far_down(pool):
    for question in pool.steady:
        (number,) = locate_nodes(pool.corpus, question.proof.nodes[-1:])
        assert rank_by_words(pool.corpus, question.text, number, pool.corpus.text(number)) > 3
    assert draw_case([pool], Random(3)).question in pool.questions
    with pytest.raises(ConfigError, match="no question that a text search is far from"):
        draw_case([replace(pool, questions=())], Random(1))
    words = "quendelbrot vermicularis"
    assert rank_by_words(pool.corpus, words, 3, f"{pool.corpus.text(3)}\n\nQuendelbrot vermicularis.") == 1
    assert rank_by_words(pool.corpus, words, 3, pool.corpus.text(3)) > 100


def test_a_visible_twin_needs_a_backward_hop(pool):
    case = next(case for case in list_cases(pool) if pool.find_method(case.question) == "paths")
    assert corpus_plants.plant_twin(case, WORDS, Random(1)) is None


def test_the_wanted_code_is_picked_among_several_findings():
    found = (CheckResult("FAIL", "alias-leak"), CheckResult("FAIL", "volatile"))
    assert pick_result(found, ("volatile",)) == found[1]
    assert pick_result(found, ("near-miss",)) == found[0]
    assert pick_result((), ("near-miss",)) is PASSED
    unsure = CheckResult("UNKNOWN", "answer-unconfirmed")
    assert pick_result((*found, unsure), ("near-miss",)) == unsure


def test_sentences_are_worded_like_the_wiki_and_the_halves_differ(pool):
    said = state_fact(pool.corpus, "birth_place", "Quarvo Nimm", 0, Random(1))
    assert "Quarvo Nimm" in said
    assert pool.corpus.page(0).title in said
    assert all("{subject}" in frame and "{object}" in frame for frame in find_statements(pool.corpus, "birth_place"))
    assert state_fact(pool.corpus, "no_such_relation", "Quarvo Nimm", 0, Random(1)) is None
    for kind in ("passing", "mentions", "asides", "collapsed"):
        drawn = [{draw_sentence(kind, load_half(half), Random(n)) for n in range(40)} for half in ("open", "held-out")]
        assert not drawn[0] & drawn[1]


def test_every_class_of_fields_that_verification_covers_is_tampered_with(pool):
    question = pool.questions[0]
    changes = list(list_changes(question, Random(1)))
    places = {".".join(part for part in place if isinstance(part, str)) for place, _ in changes}
    wanted = """
        record_id text picture.sha256 answer.value proof.corpus proof.snapshot proof.alias_digest proof.nodes.page_id
        proof.hops.relation proof.hops.evidence.start proof.hops.evidence.revision proof.hops.evidence.text
        proof.hops.evidence.link_start proof.answer_evidence.end proof.counts.value proof.descriptors
        proof.corroboration.text proof.thresholds.alone_first proof.thresholds.answers proof.thresholds.answer_share
    """
    assert set(wanted.split()) <= places
    unseen = {f"proof.thresholds.{name}" for name in ("agreement", "volatile", "retrieval_rank")}
    assert not places & (unseen | {"proof.shortcuts_checked", "proof.hub_in_degree"})
    filled = {place[-1] for place, _ in changes if get_at(question, place) in ("", ())}
    assert {"derivation", "clause"} <= filled

    changed = change_at(question, ("proof", "hops", 0, "evidence", "start"), -5)
    assert changed.proof.hops[0].evidence.start == -5
    assert (changed.proof.hops[1:], changed.text) == (question.proof.hops[1:], question.text)


def get_at(value, place):
    for part in place:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    return value


def test_each_single_change_of_a_question_is_noticed(pool):
    for question in (*pool.questions[:2], *pool.questions[-2:]):
        assert verify(pool.ground, question).passed
        changes = list_changes(question, Random(2))
        unnoticed = [place for place, new in changes if verify(pool.ground, change_at(question, place, new)).passed]
        # Whole counts say nothing of a lower threshold: verification compares it with the settings.
        assert set(unnoticed) <= {("proof", "thresholds", "answers")}
