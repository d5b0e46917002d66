from dataclasses import replace
from random import Random

import pytest

from pipelines.checks.agreement import check_volatility, is_volatile
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.facts import read_attributes
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.planted import corpus_plants
from tests.planted import corpus_plants as lone_plants
from tests.planted import corpus_plants as set_plants
from tests.planted import corpus_plants as truth_plants
from tests.planted import scenes as tampering
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
    lone_plants.plant_lone_descriptor,
    corpus_plants.plant_shortcut,
    corpus_plants.plant_idle_picture,
    truth_plants.plant_gold,
    truth_plants.plant_volatile,
    truth_plants.plant_searchable,
)
JUDGED = (set_plants.plant_parametric, set_plants.plant_repeat, tampering.plant_tampering)


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


def test_the_pool_holds_questions_of_both_recipes(pool):
    assert {pool.find_method(question) for question in pool.questions} == {"paths", "injection"}


def test_an_accepted_question_is_accepted_again_in_an_overlay_without_changes(pool):
    for case in list_cases(pool):
        assert judge(pool, Scene(case.claim)) == ()


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_the_checks_tell_the_twins_apart(pool, operator):
    for _, twins in plant_some(pool, operator):
        pair = make_pair(pool, twins)
        assert pair.clean.passed, (twins.plant, pair.clean)
        assert not pair.defective.passed
        assert pair.defective.code in twins.codes, (twins.plant, pair.defective)


@pytest.mark.parametrize("operator", JUDGED, ids=lambda operator: operator.__name__)
def test_the_stages_and_the_verifier_tell_the_twins_apart(pool, operator):
    for _, pair in plant_some(pool, operator, 5):
        assert pair.clean.passed, (pair.plant, pair.clean)
        assert pair.defective.code in pair.codes, (pair.plant, pair.defective)


def test_a_fact_hidden_in_prose_is_not_let_pass_on_the_led_to_page(pool):
    cases = [case for case in list_cases(pool) if all(hop.backward for hop in case.question.proof.hops)]
    found = [
        twins for n, case in enumerate(cases) if (twins := corpus_plants.plant_hidden_twin(case, WORDS, Random(n)))
    ]
    assert found
    for twins in found[:4]:
        assert {"near-miss"} & {result.code for result in judge(pool, twins.defective)}, twins.plant


@pytest.mark.parametrize(
    "operator",
    [*OPERATORS, corpus_plants.plant_hidden_twin, corpus_plants.plant_hidden_value],
    ids=lambda each: each.__name__,
)
def test_the_same_draw_plants_the_same_defect(pool, operator):
    case, twins = plant_some(pool, operator, 1)[0]
    number = list_cases(pool).index(case)
    again = operator(case, WORDS, Random(number))
    assert (again.plant, again.defective.edits, again.clean.edits) == (
        twins.plant,
        twins.defective.edits,
        twins.clean.edits,
    )


def test_repeats_are_refused_each_by_its_own_code(pool):
    case = list_cases(pool)[0]
    found = {set_plants.plant_repeat(case, WORDS, Random(number)).codes for number in range(40)}
    assert found == {("skeleton-over-used",), ("duplicate-question",), ("duplicate-path",)}


def test_steady_questions_are_chosen_by_the_bench_itself(pool):
    for question in pool.steady:
        (number,) = locate_nodes(pool.corpus, question.proof.nodes[-1:])
        assert rank_by_words(pool.corpus, question.text, number, pool.corpus.text(number)) > 3


def test_no_clean_twin_is_an_untouched_row(pool):
    for operator in OPERATORS:
        for case, twins in plant_some(pool, operator, 2):
            touched = twins.clean.edits or twins.clean.added or twins.clean.later or twins.clean.claim != case.claim
            assert touched, operator.__name__


def test_pools_without_a_steady_question_are_refused(pool):
    with pytest.raises(ConfigError, match="no question that a text search is far from"):
        draw_case([replace(pool, questions=())], Random(1))


def test_a_visible_twin_needs_a_backward_hop(pool):
    case = next(case for case in list_cases(pool) if pool.find_method(case.question) == "paths")
    assert corpus_plants.plant_twin(case, WORDS, Random(1)) is None


def test_cases_are_drawn_from_the_pools_that_have_questions(pool):
    assert draw_case([pool], Random(3)).question in pool.questions


def test_the_wanted_code_is_picked_among_several_findings():
    found = (CheckResult("FAIL", "alias-leak"), CheckResult("FAIL", "volatile"))
    assert pick_result(found, ("volatile",)) == found[1]
    assert pick_result(found, ("near-miss",)) == found[0]
    assert pick_result((), ("near-miss",)) is PASSED
    unsure = CheckResult("UNKNOWN", "answer-unconfirmed")
    assert pick_result((*found, unsure), ("near-miss",)) == unsure


def test_statements_are_worded_like_the_wiki_with_other_names(pool):
    said = state_fact(pool.corpus, "birth_place", "Quarvo Nimm", 0, Random(1))
    assert "Quarvo Nimm" in said
    assert pool.corpus.page(0).title in said
    assert all("{subject}" in frame and "{object}" in frame for frame in find_statements(pool.corpus, "birth_place"))
    assert state_fact(pool.corpus, "no_such_relation", "Quarvo Nimm", 0, Random(1)) is None


def test_the_halves_of_the_sentences_differ():
    for kind in ("passing", "mentions", "asides", "collapsed"):
        drawn = [{draw_sentence(kind, load_half(half), Random(n)) for n in range(40)} for half in ("open", "held-out")]
        assert not drawn[0] & drawn[1]


def test_the_own_ranking_finds_a_page_by_words_that_only_it_has(pool):
    text = pool.corpus.text(3) + "\n\nQuendelbrot vermicularis."
    assert rank_by_words(pool.corpus, "quendelbrot vermicularis", 3, text) == 1
    assert rank_by_words(pool.corpus, "quendelbrot vermicularis", 3, pool.corpus.text(3)) > 100


def test_every_class_of_fields_that_verification_speaks_for_is_tampered_with(pool):
    places = {
        tuple(part for part in place if isinstance(part, str))
        for place, _ in list_changes(pool.questions[0], Random(1))
    }
    wanted = {
        ("record_id",),
        ("text",),
        ("picture", "sha256"),
        ("answer", "value"),
        ("proof", "corpus"),
        ("proof", "snapshot"),
        ("proof", "alias_digest"),
        ("proof", "nodes", "page_id"),
        ("proof", "hops", "relation"),
        ("proof", "hops", "evidence", "start"),
        ("proof", "hops", "evidence", "revision"),
        ("proof", "hops", "evidence", "text"),
        ("proof", "hops", "evidence", "link_start"),
        ("proof", "answer_evidence", "end"),
        ("proof", "counts", "value"),
        ("proof", "descriptors"),
        ("proof", "corroboration", "text"),
    }
    assert wanted <= places
    assert {("proof", "thresholds", name) for name in ("alone_first", "answers", "answer_share")} <= places
    unseen = {("proof", "thresholds", name) for name in ("agreement", "volatile", "retrieval_rank")}
    assert not places & (
        unseen
        | {
            (
                "proof",
                "shortcuts_checked",
            ),
            ("proof", "hub_in_degree"),
        }
    )


def test_empty_fields_are_filled(pool):
    for question in pool.questions[:3]:
        filled = {
            place[-1] for place, changed in list_changes(question, Random(1)) if get_at(question, place) in ("", ())
        }
        assert {"derivation", "compared_snapshot", "clause"} <= filled


def get_at(value, place):
    for part in place:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    return value


def test_each_single_change_of_a_question_is_noticed(pool):
    for question in (*pool.questions[:2], *pool.questions[-2:]):
        assert verify(pool.ground, question).passed
        unnoticed = [
            place
            for place, changed in list_changes(question, Random(2))
            if verify(pool.ground, change_at(question, place, changed)).passed
        ]
        assert unnoticed == []


def test_a_change_leaves_the_rest_of_the_record_alone(pool):
    question = pool.questions[0]
    changed = change_at(question, ("proof", "hops", 0, "evidence", "start"), -5)
    assert changed.proof.hops[0].evidence.start == -5
    assert changed.proof.hops[1:] == question.proof.hops[1:]
    assert changed.text == question.text


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    """The same complete world at two dates, as corpora."""
    folder, corpora = tmp_path_factory.mktemp("snapshots"), []
    for name, later in (("first", False), ("later", True)):
        write_world(folder / name, WorldConfig(entities=120, seed=3, missing=0.0), later=later)
        (dump,) = (folder / name).glob("*-multistream.xml.bz2")
        build_corpus(dump, folder / f"{name}-corpus" / name)
        corpora.append(Corpus.open(folder / f"{name}-corpus" / name))
    yield corpora
    for corpus in corpora:
        corpus.close()


def test_between_two_snapshots_exactly_the_changed_facts_are_volatile(snapshots):
    """Metamorphic relation 12."""
    first, later = snapshots
    ground = Indexes(first, later)
    flagged, changed = set(), set()
    for node in first.article_nodes():
        other = later.find(first.page(node).title)
        values = {(fact.key, fact.text) for fact in later.facts(other)}
        for attribute in read_attributes(first, node):
            key = attribute.fact.key
            if is_volatile(key):
                continue
            if not check_volatility(ground, node, key, attribute.answer, False).passed:
                flagged.add((node, key))
            if (key, attribute.fact.text) not in values:
                changed.add((node, key))
    assert flagged == changed
    assert changed
