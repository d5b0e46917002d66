"""A proof as a query to evaluate, as a path to put into words, and as a graph to look at."""

from collections.abc import Sequence

import networkx as nx

from pipelines.corpus.store import Corpus
from pipelines.graph.query import Query, locate_nodes
from pipelines.ids import digest_value, make_record_id
from schemas.proofs import Answer, PathNode, Proof
from schemas.tasks import HopView, WriteQuestionInputs


def list_names(corpus: Corpus, nodes: Sequence[PathNode]) -> tuple[tuple[str, ...], ...]:
    """Return the names of each node of a path as the corpus knows them: the title first, then redirects and others."""
    numbers = locate_nodes(corpus, nodes)
    return tuple((node.title, *corpus.aliases(number)) for node, number in zip(nodes, numbers, strict=True))


def flatten_names(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return all names of all nodes in path order."""
    return tuple(name for of_node in names for name in of_node)


def make_query(corpus: Corpus, proof: Proof) -> Query:
    """Return a proof as a query over the corpus.

    Raises:
        LookupError: if a node is not in the corpus.
    """
    names = flatten_names(list_names(corpus, proof.nodes))
    (anchor,) = locate_nodes(corpus, proof.nodes[:1])
    return Query(anchor, proof.hops, proof.constraints, proof.answer_relation, names, proof.derivation)


def make_question_id(text: str, sha256: str, answer: Answer, proof: Proof) -> str:
    """Return a final question's id, made again by whoever verifies it; two paths never share one.

    Args:
        text: the question as asked.
        sha256: of the anchor's picture, empty without one.
        answer: told apart by its key.
        proof: the anchor, every hop's relation and object, and the attribute asked for go in.
    """
    path = [[hop.relation, node.page_id] for hop, node in zip(proof.hops, proof.nodes[1:], strict=False)]
    return make_record_id("q", [text, sha256, answer.key, proof.nodes[0].page_id, path, proof.answer_relation])


def view_proof(proof: Proof, answer: Answer) -> WriteQuestionInputs:
    """Return a proof as a writer sees it; the same path always asks for the same wording."""
    views = tuple(
        HopView(
            relation=hop.relation,
            clause=hop.clause,
            object_name=node.title,
            object_type=node.type,
            backward=hop.backward,
        )
        for hop, node in zip(proof.hops, proof.nodes[1:], strict=True)
    )
    return WriteQuestionInputs(
        anchor_name=proof.nodes[0].title,
        anchor_type=proof.nodes[0].type,
        hops=views,
        answer_relation=proof.answer_relation,
        answer=answer,
        variety=digest_value([[node.page_id for node in proof.nodes], proof.answer_relation])[:16],
    )


def draw_proof(proof: Proof, answer: Answer) -> nx.DiGraph:
    """Return a proof as a directed graph: entities by title, the answer as a last node, evidence on the edges."""
    graph = nx.DiGraph(snapshot=proof.snapshot)
    for node in proof.nodes:
        graph.add_node(node.title, role=node.role, type=node.type, page_id=node.page_id)
    for hop, source, target in zip(proof.hops, proof.nodes, proof.nodes[1:], strict=False):
        stated = (target.title, source.title) if hop.backward else (source.title, target.title)
        graph.add_edge(*stated, relation=hop.relation, evidence=hop.evidence)
    value = f"= {answer.surface}"
    graph.add_node(value, role="value", type=answer.type)
    graph.add_edge(proof.nodes[-1].title, value, relation=proof.answer_relation, evidence=proof.answer_evidence)
    return graph
