import networkx as nx
import pytest

from pipelines.graph.proofs import draw_proof, flatten_names, list_names, make_query, view_proof
from pipelines.graph.query import answer_query
from schemas.datasets import Question


@pytest.fixture(scope="module")
def question(demo) -> Question:
    return max(demo.rows("questions", Question), key=lambda row: (len(row.proof.hops), row.record_id))


def test_a_drawn_proof_is_one_path_with_relation_and_evidence_on_its_edges(question):
    graph = draw_proof(question.proof, question.answer)
    assert nx.is_directed_acyclic_graph(graph)
    titles = [node.title for node in question.proof.nodes]
    assert nx.dag_longest_path(graph) == [*titles, f"= {question.answer.surface}"]
    assert graph.number_of_edges() == len(question.proof.hops) + 1
    assert next(role for _, role in graph.nodes(data="role")) == "anchor"
    for hop, source, target in zip(question.proof.hops, question.proof.nodes, question.proof.nodes[1:], strict=False):
        assert graph.edges[source.title, target.title] == {"relation": hop.relation, "evidence": hop.evidence}


def test_every_question_of_the_demo_is_a_query_with_one_answer(demo, demo_ground):
    for row in demo.rows("questions", Question):
        assert list(answer_query(demo_ground, make_query(demo_ground.corpus, row.proof))) == [row.answer.key]


def test_a_writer_sees_names_and_relations_but_not_the_corpus(question):
    view = view_proof(question.proof, question.answer)
    assert [hop.object_name for hop in view.hops] == [node.title for node in question.proof.nodes[1:]]
    assert view.answer_relation == question.proof.answer_relation


def test_the_names_of_a_path_hold_every_title(demo_corpus, question):
    names = list_names(demo_corpus, question.proof.nodes)
    assert all(node.title in found for node, found in zip(question.proof.nodes, names, strict=True))
    assert len(flatten_names(names)) == sum(map(len, names))
