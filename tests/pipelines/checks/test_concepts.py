"""The rules of a question whose answer is what its picture shows: each by code."""

import pytest

from pipelines.checks.agreement import check_alternative
from pipelines.checks.examination import list_naming_checks
from pipelines.checks.verdicts import run_checks
from pipelines.graph.proofs import make_node, make_query
from pipelines.graph.query import Indexes, answer_query, count_anchor_answers
from pipelines.graph.titles import asks_name, find_name
from schemas.proofs import Answer, Evidence, Proof
from tests.toy import box, build_toy_corpus

PAGES = {
    "Kelm Bridge": box(
        "bridge", "The '''Kelm Bridge''' is a bridge in [[Ostrel]].", "location = [[Ostrel]]", "material = oak"
    ),
    "Velloby (bridge)": box("bridge", "'''Velloby''' is a bridge.", "material = steel"),
    "Tarn Bridge": box("bridge", "It is a bridge that nobody names."),
    "Ostrel": box("settlement", "'''Ostrel''' is a town.", "settlement_type = Town"),
}
REDIRECTS = {"Bridge of Kelm": "Kelm Bridge"}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("names"), PAGES, REDIRECTS))


def make_proof(corpus, title="Kelm Bridge", **changes):
    number = corpus.find(title)
    page, named = corpus.page(number), find_name(corpus, number)
    span = (named.fact.start, named.fact.end)
    evidence = Evidence(
        page_id=page.page_id, title=page.title, revision=page.revision, kind="sentence", key="", start=span[0],
        end=span[1], text=corpus.text(number)[slice(*span)], link_start=-1,
    )  # fmt: skip
    values = {
        "corpus": corpus.digest, "snapshot": corpus.snapshot, "nodes": (make_node(corpus, number, "anchor"),),
        "hops": (), "answer_relation": "title", "answer_evidence": evidence, "constraints": (), "counts": (),
        "alias_digest": "",
    }  # fmt: skip
    return Proof(**(values | changes)), named.answer


def test_a_page_is_named_where_its_lead_says_its_name_first(ground):
    corpus = ground.corpus
    proof, answer = make_proof(corpus)
    assert (proof.answer_evidence.text, answer.surface, answer.type) == ("Kelm Bridge", "Kelm Bridge", "name")
    assert "Bridge of Kelm" in answer.aliases
    assert make_proof(corpus, "Velloby (bridge)")[1].surface == "Velloby"
    assert find_name(corpus, corpus.find("Tarn Bridge")) is None


def test_the_query_for_a_name_has_it_as_its_one_answer_and_every_thing_of_the_type_has_another(ground):
    proof, answer = make_proof(ground.corpus)
    query = make_query(ground.corpus, proof)
    assert asks_name(proof)
    assert set(answer_query(ground, query)) == {answer.key}
    # The third bridge is not named in its lead, and so is none that could be asked for.
    assert count_anchor_answers(ground, query, "bridge", 5) == (2, 2)


def refuse(ground, text, title="Kelm Bridge"):
    proof, answer = make_proof(ground.corpus, title)
    checks = list_naming_checks(ground, [ground.corpus.find(title)], text, answer, proof)
    return [result.code for result in run_checks(checks)]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("What is the name of the bridge in the image?", []),
        ("Which bridge is in the image?", ["other-opening"]),
        ("What is the Kelm Bridge in the image called?", ["alias-leak"]),
        ("What is the bridge of Kelm in the image called?", ["alias-leak"]),
        ("What is the name of the oak bridge in the image?", ["fact-unproved"]),
        ("What is the name of the suspension bridge in the image?", ["reference-narrower"]),
        ("What is the name of this bridge?", ["reference-missing"]),
    ],
)
def test_a_question_for_a_name_is_held_to_the_rules(ground, text, codes):
    assert refuse(ground, text) == codes


def name(surface, *aliases):
    return Answer(type="name", value=surface, precision="", unit="", surface=surface, aliases=aliases, key=surface)


@pytest.mark.parametrize(
    ("given_", "outcome"),
    [("Velloby (bridge)", "PASS"), ("Ostrel", "PASS"), ("a bridge", "UNKNOWN"), ("Kelm Bridge", "PASS")],
)
def test_another_name_is_refuted_where_it_is_that_of_another_article(ground, given_, outcome):
    proof, answer = make_proof(ground.corpus)
    assert check_alternative(ground, proof, answer, given_).outcome == outcome
