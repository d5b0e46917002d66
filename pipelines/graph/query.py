"""The question as a conjunctive query, evaluated on the corpus alone: answers, and how many entities fit each part.

``anchor -r1-> v1 -r2-> ... -> vh . attribute``, with descriptor facts as further constraints. A backward hop leads from
an entity to those whose page states the relation to it. Counting is closed-world over what infoboxes show; near misses
are resolved against prose (:mod:`pipelines.graph.rivals`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from pipelines.corpus.store import Corpus
from pipelines.graph.clauses import find_clause
from pipelines.graph.facts import Nodes
from pipelines.graph.ground import Ground
from pipelines.graph.matching import TYPE as TYPE
from pipelines.graph.matching import match_constraint
from pipelines.graph.relations import Attribute, read_attributes, read_relations, stem_key
from pipelines.graph.values import Match
from pipelines.scoring.answers import derive_answer
from schemas.proofs import Constraint, Derivation, Hop, PathNode

MENTIONS = "mentions"
MAX_ANCHORS = 20_000
"""Anchors of a type that are looked at for distinct answers."""


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
    derivation: Derivation = ""
    """What is asked of the attribute instead of all of it."""


def follow_hop(ground: Ground, node: int, hop: Hop, names: Sequence[str]) -> frozenset[int]:
    """Return the entities that a hop leads to from a node; empty when there is no such relation.

    A forward hop takes the one value of a field on the node's page; a backward hop leads to every page with the node
    among the values of its field, however many these are.
    """
    if hop.backward:
        return frozenset(ground.facts.subjects_of(hop.relation, node))
    if hop.relation != MENTIONS:
        stem, facts = stem_key(hop.relation), read_relations(ground.corpus, node)
        return frozenset(fact.target for fact in facts if stem_key(fact.key) == stem)
    return find_clause(ground.corpus, node, hop.clause, names)


def matches(corpus: Corpus, node: int, constraints: Iterable[Constraint]) -> bool:
    """Return whether an entity's page shows every constraint: its type, or a literal infobox value."""
    return all(match_constraint(corpus, node, constraint) is Match.YES for constraint in constraints)


def list_constraints_of(query: Query, node: int) -> tuple[Constraint, ...]:
    """Return the constraints on one node of the chain."""
    return tuple(constraint for constraint in query.constraints if constraint.node == node)


def follow_chain(ground: Ground, query: Query, anchor: int) -> list[frozenset[int]]:
    """Return the entities at each node of the chain, the anchor's first; stops early when a set is empty."""
    sets = [frozenset([anchor])]
    for hop in query.hops:
        here = list_constraints_of(query, hop.index)
        ahead = {target for node in sets[-1] for target in follow_hop(ground, node, hop, query.names)}
        sets.append(frozenset(node for node in ahead if matches(ground.corpus, node, here)))
        if not sets[-1]:
            break
    return sets


def read_answers(corpus: Corpus, query: Query, nodes: Iterable[int]) -> dict[str, Attribute]:
    """Return the distinct answers, by key, that the queried attribute has at some entities.

    An attribute has what is asked of it for its answer: the year of a date, if only the year is asked. One that is too
    coarse for that has no answer.
    """
    answers: dict[str, Attribute] = {}
    stem = stem_key(query.answer_relation)
    for node in sorted(nodes):
        for attribute in read_attributes(corpus, node):
            if stem_key(attribute.fact.key) == stem:
                answer = derive_answer(attribute.answer, query.derivation)
                if answer is not None:
                    answers.setdefault(answer.key, replace(attribute, answer=answer))
    return answers


def answer_query(ground: Ground, query: Query) -> dict[str, Attribute]:
    """Return the distinct answers of the whole query, by key; exactly one when the question is sound."""
    sets = follow_chain(ground, query, query.anchor)
    return read_answers(ground.corpus, query, sets[-1]) if len(sets) == len(query.hops) + 1 else {}


def count_alone(ground: Ground, query: Query, node: int, cap: int) -> int:
    """Return how many entities a node's descriptor fits without the chain (R_alone), counted up to ``cap``.

    A descriptor says the relation and its constraints, so any object of that relation is a candidate, and of a backward
    hop any entity that shows the relation at all. A quoted sentence fits the entity that it was written about and is
    counted as one.
    """
    hop, here = query.hops[node - 1], list_constraints_of(query, node)
    if hop.backward:
        return min(cap, len(list_fitting(ground, hop.relation, here)))
    if hop.relation == MENTIONS:
        return 1
    return min(cap, len(_narrow(ground, ground.relations.find_objects(hop.relation), here)))


def list_fitting(ground: Ground, relation: str, constraints: Iterable[Constraint]) -> Nodes:
    """Return the entities that show a relation, to anything, and fit all constraints; ascending."""
    return _narrow(ground, ground.facts.having(relation), constraints)


def _narrow(ground: Ground, nodes: Nodes, constraints: Iterable[Constraint]) -> Nodes:
    """Return those of some nodes that fit all constraints; ascending."""
    parts = [nodes]
    for constraint in constraints:
        if constraint.relation == TYPE:
            parts.append(ground.corpus.nodes_of_type(constraint.value))
        else:
            parts.append(ground.facts.holding(constraint.relation, constraint.value))
    parts.sort(key=len)
    return reduce(_intersect, parts)


def _intersect(left: Nodes, right: Nodes) -> Nodes:
    """Return what two ascending arrays share; the cost is that of the shorter one, looked up in the other."""
    places = np.searchsorted(right, left)
    inside = places < len(right)
    inside[inside] = right[places[inside]] == left[inside]
    return left[inside]


def count_anchor_answers(ground: Ground, query: Query, anchor_type: str, cap: int) -> tuple[int, int]:
    """Free the anchor to any entity of its type and count (N_img).

    Counted are anchors for which the same question would be one: the chain leads to exactly one entity at each node
    and to one answer. Of a query that starts with a backward hop only anchors are looked at that a value links to.

    Returns:
        How many anchors lead to an answer, and how many distinct answers there are, counted until ``cap`` answers or
        ``MAX_ANCHORS`` anchors looked at, which can only make them fewer: a single answer means that the picture
        decorates.
    """
    anchors, answers = 0, set[str]()
    for node in _list_anchors(ground, query, anchor_type)[:MAX_ANCHORS].tolist():
        sets = follow_chain(ground, query, node)
        if len(sets) <= len(query.hops) or any(len(found) > 1 for found in sets):
            continue
        found = read_answers(ground.corpus, query, sets[-1])
        if len(found) == 1:
            anchors += 1
            answers.update(found)
        if len(answers) >= cap:
            break
    return anchors, len(answers)


def _list_anchors(ground: Ground, query: Query, anchor_type: str) -> Nodes:
    """Return the entities of a type from which the first hop leads anywhere at all."""
    nodes = ground.corpus.nodes_of_type(anchor_type)
    if not query.hops:
        return _intersect(ground.facts.having(query.answer_relation), nodes)
    first = query.hops[0]
    if first.backward:
        subjects = list_fitting(ground, first.relation, list_constraints_of(query, first.index))
        return _intersect(ground.facts.objects_of(first.relation, subjects), nodes)
    return nodes if first.relation == MENTIONS else _intersect(ground.facts.having(first.relation), nodes)


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
