"""All checks on one finished question, by the rules that its proof claims."""

from dataclasses import replace
from random import Random

import pytest

from pipelines.checks.examination import Claim, examine
from pipelines.checks.proofs import find_problems
from pipelines.graph.query import Indexes, locate_nodes
from schemas.proofs import Thresholds
from tests.pipelines.checks.claims import prove
from tests.pipelines.painters import add_pages, born, paint
from tests.planted import corpus_plants
from tests.planted import corpus_plants as truth_plants
from tests.planted.scenes import MAX_TOKENS, Case, judge
from tests.planted.words import load_half

pytestmark = pytest.mark.slow

STRICT = Thresholds(alone_first=2, alone=1, answers=2, near_misses=5, answer_share=0.9, volatile=False)
WORDS = load_half("open")


@pytest.fixture(scope="module")
def injected(painters) -> Claim:
    return ask_painter(Indexes(painters))


def ask_painter(ground, limits=STRICT) -> Claim:
    said = "the painter of the 1870s born in [subject]"
    asking = "To which movement did this one belong"
    return prove(ground, ("Ostrel", "Ada Brill"), ("<birth_place",), "movement", (said,), asking, limits)


def claim_of(row) -> Claim:
    return Claim(row.text, row.answer, row.proof)


def list_codes(ground, claim, audit=True):
    return [result.code for result in examine(ground, claim, MAX_TOKENS, audit)]


def limit(claim, **changes):
    proof, limits = claim.proof, {key: changes.pop(key) for key in list(changes) if key in Thresholds.model_fields}
    update = {**changes, "thresholds": proof.thresholds.model_copy(update=limits)}
    return replace(claim, proof=proof.model_copy(update=update))


def test_every_question_of_both_recipes_passes_and_verifies(pool):
    assert {pool.find_method(row) for row in pool.questions} == {"paths", "injection"}
    for row in pool.questions:
        assert examine(pool.ground, claim_of(row), MAX_TOKENS, audit=True) == ()
        assert find_problems(pool.ground, claim_of(row)) == []


def test_audit_mode_names_every_fault_and_the_other_the_first(painters, injected):
    ground = Indexes(painters)
    assert examine(ground, injected, MAX_TOKENS) == ()
    text = f"As of today, of Ostrel and its {injected.answer.surface}: which one?"
    worse = limit(replace(injected, text=text), alone_first=99, answers=99)
    codes = list_codes(ground, worse)
    assert codes == [
        "stands-alone",
        "picture-not-needed",
        "alias-leak",
        "answer-leak",
        "volatile",
        "descriptor-lost",
        "fact-unproved",
    ]
    assert list_codes(ground, worse, audit=False) == codes[:1]


@pytest.mark.parametrize(
    ("prose", "limits", "code"),
    [("She painted [[Ostrel]].", {}, "near-miss"), ("She painted.", {"agreement": "required"}, "answer-unconfirmed")],
)
def test_what_cannot_be_told_refuses_the_question(painters, prose, limits, code):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", born(1874), prose=prose))
    ground = Indexes(corpus)
    claim = ask_painter(ground, STRICT.model_copy(update=limits))
    (result,) = examine(ground, claim, MAX_TOKENS)
    assert (result.outcome, result.code) == ("UNKNOWN", code)


@pytest.mark.parametrize(
    ("operator", "code", "off"),
    [
        (corpus_plants.plant_hidden_twin, "near-miss", {"near_misses": 0}),
        (corpus_plants.plant_idle_picture, "picture-not-needed", {"answers": 0}),
        (corpus_plants.plant_shortcut, "answer-on-earlier-page", {"shortcuts_checked": False}),
        (truth_plants.plant_gold, "answer-disputed", {"agreement": "off"}),
        (truth_plants.plant_volatile, "volatile", {"volatile": True}),
        (truth_plants.plant_searchable, "one-retrieval", {"retrieval_rank": 0}),
    ],
)
def test_a_threshold_that_demands_nothing_switches_its_check_off(pool, operator, code, off):
    scene = next(scene for scene in plant_each(pool, operator) if code in codes_of(pool, scene))
    assert code not in codes_of(pool, replace(scene, claim=limit(scene.claim, **off)))


def plant_each(pool, operator):
    for number, row in enumerate(pool.steady):
        case = Case(pool, row, tuple(locate_nodes(pool.corpus, row.proof.nodes)))
        twins = operator(case, WORDS, Random(number))
        if twins is not None:
            yield twins.defective


def codes_of(pool, scene):
    return {result.code for result in judge(pool, scene)}
