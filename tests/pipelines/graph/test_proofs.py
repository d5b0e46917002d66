from dataclasses import replace

import pytest

from pipelines.config.settings import GroundingsConfig, InjectionsConfig, RewritesConfig
from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.proofs import (
    EXPANSIONS,
    AnchorRules,
    ChainSearch,
    InjectionRules,
    cite_fact,
    flatten_names,
    grow_proof,
    list_names,
    make_node,
    make_query,
    view_proof,
)
from pipelines.graph.query import answer_query
from pipelines.splits import SplitRule
from schemas.datasets import Question
from schemas.proofs import Proof
from tests.pipelines.stages.chain_wiki import TITLES, build_chain_wiki
from tests.toy import box, build_toy_corpus

ALL_SFT = SplitRule({"sft": 1.0}, seed=7)
RULES = InjectionRules(
    InjectionsConfig(rounds=(1, 3, 5), weights=(0.4, 0.3, 0.3), tries=10),
    RewritesConfig(min_alone_first=5, min_alone=2),
    min_answers=0,
    hub_in_degree=100,
    max_answer_tokens=6,
    seed=7,
)


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    return build_chain_wiki(tmp_path_factory.mktemp("chain"))


def pass_all(node):
    return ""


def make_search(corpus, pass_test=pass_all, end_test=pass_all, hub_in_degree=100):
    return ChainSearch(corpus, hub_in_degree, pass_test, end_test, "question-1")


def list_targets(corpus, search, *titles, rounds):
    facts = search.list_facts([corpus.find(title) for title in titles], rounds)
    return [corpus.page(fact.target).title for fact in facts]


def make_proof(corpus, title="Edda Marn"):
    number = corpus.find(title)
    found = read_attributes(corpus, number)[0]
    return Proof(
        corpus=corpus.digest,
        snapshot=corpus.snapshot,
        nodes=(make_node(corpus, number, "answer"),),
        hops=(),
        answer_relation=found.fact.key,
        answer_evidence=cite_fact(corpus, found.fact),
        constraints=(),
        counts=(),
        alias_digest="",
    )


@pytest.mark.parametrize("rounds", range(1, 12))
def test_a_fact_is_offered_while_the_chain_behind_it_is_long_enough(wiki, rounds):
    assert list_targets(wiki, make_search(wiki), "Edda Marn", rounds=rounds) == ["Ostrel"]


def test_a_search_that_finds_no_way_within_its_bound_offers_nothing(tmp_path):
    # Every person's parents are all of the next generation's two, so that the ways double with each step.
    steps = 14
    pages = {}
    for step in range(steps):
        for side in ("West", "Ost"):
            fields = [f"{key} = [[{other} {step + 1}]]" for key, other in (("mother", "West"), ("father", "Ost"))]
            pages[f"{side} {step}"] = box("person", f"'''{side} {step}''' was a person.", *fields)
    pages |= {f"{side} {steps}": box("person", f"'''{side}''' was a person.", "x = 1") for side in ("West", "Ost")}
    corpus = build_toy_corpus(tmp_path, pages, {})
    judged = []
    search = make_search(corpus, end_test=lambda node: judged.append(node) or "no-image")
    assert list_targets(corpus, search, "West 0", rounds=steps) == []
    assert len(judged) <= 2 * EXPANSIONS
    assert list_targets(corpus, make_search(corpus), "West 0", rounds=steps) == ["West 1", "Ost 1"]


def test_each_round_adds_a_node_in_front_and_moves_the_others_up(wiki):
    proof = make_proof(wiki)
    for title in TITLES[:3]:
        (fact,) = read_relations(wiki, wiki.find(title))
        proof = grow_proof(wiki, proof, fact)
    assert [node.title for node in proof.nodes] == ["Haddow College", "Jon Vask", "Ostrel", "Edda Marn"]
    assert [node.role for node in proof.nodes] == ["anchor", "bridge", "bridge", "answer"]
    assert [(hop.index, hop.relation, hop.backward) for hop in proof.hops] == [
        (1, "alma_mater", True),
        (2, "founder", True),
        (3, "birth_place", True),
    ]
    for hop, before, after in zip(proof.hops, proof.nodes, proof.nodes[1:], strict=False):
        assert (hop.subject_id, hop.object_id) == (after.page_id, before.page_id)
        assert (hop.evidence.page_id, hop.evidence.text) == (after.page_id, f"[[{before.title}]]")
    assert proof.descriptors == ("", "", "")


def test_an_anchor_is_of_the_questions_split_and_has_a_picture_where_one_is_needed(wiki):
    ostrel = wiki.find("Ostrel")
    rules = AnchorRules(ALL_SFT, GroundingsConfig(require_image=False))
    assert rules.explain(wiki, ostrel, "sft") == ""
    assert rules.explain(wiki, ostrel, "rl") == "other-split"
    assert replace(rules, settings=GroundingsConfig()).explain(wiki, ostrel, "sft") == "no-image"


def test_rounds_are_drawn_by_their_weights_and_the_same_for_the_same_question():
    drawn = [RULES.draw_rounds(f"question-{number}") for number in range(4000)]
    shares = [drawn.count(rounds) / len(drawn) for rounds in RULES.settings.rounds]
    assert shares == pytest.approx(RULES.settings.weights, abs=0.03)
    assert drawn == [RULES.draw_rounds(f"question-{number}") for number in range(4000)]
    assert drawn != [replace(RULES, seed=8).draw_rounds(f"question-{number}") for number in range(4000)]


@pytest.fixture(scope="module")
def question(demo) -> Question:
    return max(demo.rows("questions", Question), key=lambda row: (len(row.proof.hops), row.record_id))


def test_every_question_of_the_demo_is_a_query_with_one_answer(demo, demo_ground):
    for row in demo.rows("questions", Question):
        assert list(answer_query(demo_ground, make_query(demo_ground.corpus, row.proof))) == [row.answer.key]


def test_a_writer_sees_names_and_relations_and_the_names_of_a_path_hold_every_title(demo_corpus, question):
    nodes, view = question.proof.nodes, view_proof(demo_corpus, question.proof, question.answer)
    assert [hop.object_name for hop in view.hops] == [node.title for node in nodes[1:]]
    assert view.answer_relation == question.proof.answer_relation
    names = list_names(demo_corpus, nodes)
    assert all(node.title in found for node, found in zip(nodes, names, strict=True))
    assert len(flatten_names(names)) == sum(map(len, names))
