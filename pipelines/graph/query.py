"""The question as a conjunctive query, evaluated on the corpus alone: answers, and how many entities fit each part.

``anchor -r1-> v1 -r2-> ... -> vh . attribute``, with descriptor facts as further constraints. Counting is closed-world
over what infoboxes show; a later stage resolves near misses against prose.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.corpus.store import Corpus
from pipelines.graph.clauses import find_clause
from pipelines.graph.relations import Attribute, RelationIndex, read_attributes, read_relations
from schemas.proofs import Constraint, Hop, PathNode

TYPE = "type"


@dataclass(frozen=True, slots=True)
class Query:
    """The part of a proof that decides the answer."""

    anchor: int
    """Node number of the anchor."""
    hops: tuple[Hop, ...]
    constraints: tuple[Constraint, ...]
    answer_relation: str
    names: tuple[str, ...]
    """Names masked in the clauses of text hops."""


def follow_hop(corpus: Corpus, node: int, hop: Hop, names: Sequence[str]) -> frozenset[int]:
    """Return the entities that a hop's relation leads to from a node; empty when the node has no such relation."""
    if hop.relation != "mentions":
        return frozenset(fact.target for fact in read_relations(corpus, node) if fact.key == hop.relation)
    return find_clause(corpus, node, hop.clause, names)


def matches(corpus: Corpus, node: int, constraints: Iterable[Constraint]) -> bool:
    """Return whether an entity's page shows every constraint: its type, or a literal infobox value."""
    for constraint in constraints:
        if constraint.relation == TYPE:
            if corpus.page(node).type != constraint.value:
                return False
        elif not any(
            fact.key == constraint.relation and fact.text == constraint.value and fact.value_count == 1
            for fact in corpus.facts(node)
        ):
            return False
    return True


def follow_chain(corpus: Corpus, query: Query, anchor: int) -> list[frozenset[int]]:
    """Return the entities at each node of the chain, the anchor's first; stops early when a set is empty."""
    sets = [frozenset([anchor])]
    for hop in query.hops:
        here = [c for c in query.constraints if c.node == hop.index]
        ahead = {target for node in sets[-1] for target in follow_hop(corpus, node, hop, query.names)}
        sets.append(frozenset(node for node in ahead if matches(corpus, node, here)))
        if not sets[-1]:
            break
    return sets


def read_answers(corpus: Corpus, query: Query, nodes: Iterable[int]) -> dict[str, Attribute]:
    """Return the distinct answers, by key, that the queried attribute has at some entities."""
    answers: dict[str, Attribute] = {}
    for node in sorted(nodes):
        for attribute in read_attributes(corpus, node):
            if attribute.fact.key == query.answer_relation:
                answers.setdefault(attribute.answer.key, attribute)
    return answers


def answer_query(corpus: Corpus, query: Query) -> dict[str, Attribute]:
    """Return the distinct answers of the whole query, by key; exactly one when the question is sound."""
    sets = follow_chain(corpus, query, query.anchor)
    return read_answers(corpus, query, sets[-1]) if len(sets) == len(query.hops) + 1 else {}


def count_alone(corpus: Corpus, relations: RelationIndex, hop: Hop, constraints: Iterable[Constraint], cap: int) -> int:
    """Return how many entities a bridge's descriptor fits without the chain (R_alone), counted up to ``cap``.

    A descriptor says the relation and its constraints, so any object of that relation is a candidate.
    A quoted sentence fits the entity that it was written about and is counted as one.
    """
    if hop.relation == "mentions":
        return 1
    here = [constraint for constraint in constraints if constraint.node == hop.index]
    count = 0
    for node in relations.objects_of(hop.relation):
        count += matches(corpus, node, here)
        if count >= cap:
            break
    return count


def count_anchor_answers(corpus: Corpus, query: Query, anchor_type: str, cap: int) -> tuple[int, int]:
    """Free the anchor to any entity of its type and count (N_img).

    Returns:
        How many anchors lead to an answer, and how many distinct answers there are, counted until ``cap`` answers: a
        single answer means that the picture decorates.
    """
    anchors, answers = 0, set[str]()
    for node in corpus.nodes_of_type(anchor_type).tolist():
        sets = follow_chain(corpus, query, node)
        if len(sets) <= len(query.hops):
            continue
        found = read_answers(corpus, query, sets[-1])
        anchors += bool(found)
        answers.update(found)
        if len(answers) >= cap:
            break
    return anchors, len(answers)


def find_shortcut(corpus: Corpus, nodes: Sequence[int], hubs_above: int) -> int:
    """Return the length of the shortest link path from anchor to answer node, hubs left out, at most h."""
    graph, goal, limit = corpus.graph, nodes[-1], len(nodes) - 1
    frontier, seen = {nodes[0]}, {nodes[0]}
    for length in range(1, limit):
        ahead: set[int] = set()
        for node in frontier:
            ahead.update(graph.targets[int(graph.offsets[node]) : int(graph.offsets[node + 1])].tolist())
        if goal in ahead:
            return length
        frontier = {node for node in ahead - seen if graph.in_degree[node] <= hubs_above}
        seen |= frontier
    return limit


def locate_nodes(corpus: Corpus, nodes: Sequence[PathNode]) -> list[int]:
    """Return the node numbers of a proof's entities.

    Raises:
        LookupError: if the corpus has no page of that title and id.
    """
    numbers = []
    for node in nodes:
        number = corpus.find(node.title)
        if number is None or corpus.page(number).page_id != node.page_id:
            raise LookupError(f"the corpus has no page {node.title!r} with id {node.page_id}")
        numbers.append(number)
    return numbers
