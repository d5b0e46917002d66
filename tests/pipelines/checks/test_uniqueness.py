import pytest

from pipelines.checks.uniqueness import Fit, check_answer_unchanged, check_fit, count_fit
from pipelines.graph.proofs import make_query
from pipelines.graph.query import Query
from pipelines.graph.relations import RelationIndex
from schemas.proofs import Constraint, Evidence, Hop
from schemas.rewrites import Rewrite
from tests.toy import build_toy_corpus

NOWHERE = Evidence(page_id=0, title="", revision=0, kind="infobox", key="", start=0, end=0, text="", link_start=-1)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("toy"))


def ask(corpus, *constraints):
    """Return the query for when the birthplace of the architect of Kelm Bridge was established."""
    hops = tuple(
        Hop(index=index, relation=relation, subject_id=0, object_id=0, clause="", evidence=NOWHERE)
        for index, relation in enumerate(("architect", "birth_place"), 1)
    )
    return Query(corpus.find("Kelm Bridge"), hops, constraints, "established_date", ())


def test_a_bridge_is_counted_with_the_chain_and_without(toy):
    relations = RelationIndex(toy)
    assert count_fit(toy, relations, ask(toy), 1, threshold=9) == Fit(1, 1, 3, capped=False)
    assert count_fit(toy, relations, ask(toy), 1, threshold=2) == Fit(1, 1, 2, capped=True)


def test_a_descriptor_fact_narrows_both_counts(toy):
    relations = RelationIndex(toy)
    valdonian = Constraint(node=1, relation="nationality", value="Valdonian")
    nobody = Constraint(node=1, relation="nationality", value="Nobody")
    assert count_fit(toy, relations, ask(toy, valdonian), 1, threshold=9) == Fit(1, 1, 2, capped=False)
    assert count_fit(toy, relations, ask(toy, nobody), 1, threshold=9) == Fit(1, 0, 0, capped=False)


def test_nodes_behind_a_broken_chain_fit_nothing(toy):
    nobody = Constraint(node=1, relation="nationality", value="Nobody")
    assert count_fit(toy, RelationIndex(toy), ask(toy, nobody), 2, threshold=9).chain == 0


@pytest.mark.parametrize(
    ("chain", "alone", "outcome", "code"),
    [
        (1, 5, "PASS", ""),
        (1, 6, "PASS", ""),
        (1, 4, "FAIL", "stands-alone"),
        (0, 5, "FAIL", "not-unique"),
        (2, 5, "FAIL", "not-unique"),
    ],
)
def test_both_sides_of_uniqueness_are_asked_for(chain, alone, outcome, code):
    result = check_fit(Fit(1, chain, alone, capped=False), threshold=5)
    assert result.outcome == outcome
    assert not code or result.code == code


def test_a_fit_becomes_two_counts_of_its_node():
    counts = Fit(2, 1, 7, capped=True).as_counts()
    assert [(count.name, count.node, count.value, count.capped) for count in counts] == [
        ("chain", 2, 1, False),
        ("alone", 2, 7, True),
    ]


def test_an_answer_that_another_constraint_removes_has_changed(toy):
    nobody = Constraint(node=2, relation="country", value="Nowhere")
    assert check_answer_unchanged(toy, ask(toy), "date:1204").outcome == "PASS"
    assert check_answer_unchanged(toy, ask(toy), "date:1310").code == "answer-changed"
    assert check_answer_unchanged(toy, ask(toy, nobody), "date:1204").outcome == "FAIL"


def test_every_rewrite_of_the_demo_keeps_its_answer_and_fits_one_entity(demo, demo_corpus, demo_relations):
    for row in demo.rows("rewrites", Rewrite):
        query = make_query(demo_corpus, row.proof)
        assert check_answer_unchanged(demo_corpus, query, row.answer.key).passed
        for node in range(1, len(row.proof.nodes)):
            threshold = demo.config.rewrites.min_alone_first if node == 1 else demo.config.rewrites.min_alone
            assert check_fit(count_fit(demo_corpus, demo_relations, query, node, threshold), threshold).passed
