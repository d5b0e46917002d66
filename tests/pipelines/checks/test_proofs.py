"""Re-deriving proofs whose hops are sentences, which releases of the demo do not have; the rest is in test_verify."""

import pytest

from pipelines.checks.proofs import Claim, find_problems
from schemas.groundings import Grounding
from schemas.rewrites import Rewrite

PLAIN = "Which one is it?"


def make_claim(row, proof=None):
    """Return a rewrite's claim under a text that says its descriptors and names nobody: its own names the anchor."""
    return Claim("; ".join((PLAIN, *row.proof.descriptors)), row.answer, proof or row.proof)


@pytest.fixture(scope="module")
def spoken(demo) -> Rewrite:
    """A rewrite with a hop made by a sentence."""
    rows = [row for row in demo.rows("rewrites", Rewrite) if any(hop.relation == "mentions" for hop in row.proof.hops)]
    return min(rows, key=lambda row: row.record_id)


def change_sentence(row, **changes):
    """Return the proof with its sentence hop changed; ``evidence`` is a dict of changes of its own."""
    hops = []
    for hop in row.proof.hops:
        if hop.relation == "mentions":
            inner = hop.evidence.model_copy(update=changes.get("evidence", {}))
            hop = hop.model_copy(update={**changes, "evidence": inner})
        hops.append(hop)
    return row.proof.model_copy(update={"hops": tuple(hops)})


def test_every_grounded_question_of_the_demo_is_derived_again(demo, demo_corpus, demo_relations):
    rows = demo.rows("groundings", Grounding)
    assert len(rows) > 30
    for row in rows:
        assert find_problems(demo_corpus, demo_relations, Claim(row.text, row.answer, row.proof)) == []


def test_every_rewrite_is_derived_again_or_refused_by_the_next_stage(demo, demo_corpus, demo_relations, spoken):
    refused = {row["record_id"] for row in demo.rejections("groundings")}
    rows = demo.rows("rewrites", Rewrite)
    for row in rows:
        problems = find_problems(demo_corpus, demo_relations, make_claim(row))
        assert problems == [] or (row.record_id in refused and "fact-unproved" in problems[0])
    assert len(rows) > 30
    assert spoken.proof.hops


def test_a_text_that_names_the_anchor_is_a_problem(demo_corpus, demo_relations, spoken):
    text = f"{make_claim(spoken).text}, of {spoken.proof.nodes[0].title}"
    (problem,) = find_problems(demo_corpus, demo_relations, Claim(text, spoken.answer, spoken.proof))
    assert problem.startswith("text: alias-leak")


def test_a_text_that_tells_the_answer_is_a_problem(demo_corpus, demo_relations, spoken):
    text = f"Is it {spoken.answer.surface}?"
    problems = find_problems(demo_corpus, demo_relations, Claim(text, spoken.answer, spoken.proof))
    assert any(problem.startswith("text: answer-leak") for problem in problems)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"clause": "The money came from ____."}, "the clause is not the sentence around the link"),
        ({"evidence": {"link_start": -1}}, "does not lead to the next node"),
        ({"evidence": {"kind": "infobox"}}, "the infobox has no single mentions"),
        ({"index": 9}, "does not join"),
    ],
)
def test_a_tampered_sentence_is_named(demo_corpus, demo_relations, spoken, changes, named):
    (problem, *_) = find_problems(demo_corpus, demo_relations, make_claim(spoken, change_sentence(spoken, **changes)))
    assert named in problem


def test_an_entity_twice_on_the_path_is_a_problem(demo_corpus, demo_relations, spoken):
    nodes = (*spoken.proof.nodes[:-1], spoken.proof.nodes[0].model_copy(update={"role": "answer"}))
    proof = spoken.proof.model_copy(update={"nodes": nodes})
    assert "nodes: an entity occurs twice" in find_problems(demo_corpus, demo_relations, make_claim(spoken, proof))


def test_a_proof_of_another_corpus_is_looked_at_no_further(demo_corpus, demo_relations, spoken):
    proof = spoken.proof.model_copy(update={"corpus": "0" * 64, "nodes": ()})
    (problem,) = find_problems(demo_corpus, demo_relations, make_claim(spoken, proof))
    assert problem.startswith("corpus: the proof is about 000000000000")


def test_a_proof_without_hops_is_a_problem(demo_corpus, demo_relations, spoken):
    proof = spoken.proof.model_copy(update={"hops": (), "nodes": spoken.proof.nodes[:1]})
    assert find_problems(demo_corpus, demo_relations, make_claim(spoken, proof))[0] == "nodes: 1 nodes for 0 hops"
