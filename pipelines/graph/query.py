"""The question as a conjunctive query on the corpus: its answers, and how many entities fit each part.

``anchor -r1-> v1 -r2-> ... -> vh . attribute``, with descriptor facts as further constraints. A backward hop leads from
an entity to those whose page states the relation to it. Counting is closed-world over infoboxes. A missing field, an
unreadable value and a value that may agree leave a match open; :mod:`pipelines.graph.statements` looks such near misses
up in prose.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce

import numpy as np

from pipelines.corpus.kinds import OTHER, PERSON, find_domain
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.answers import derive_answer
from pipelines.graph.cues import CueIndex
from pipelines.graph.facts import (
    AnswerShares,
    Attribute,
    FactIndex,
    Match,
    Nodes,
    RelationIndex,
    compare_value,
    fold_names,
    holds_phrase,
    is_layout,
    read_askable,
    read_relations,
    read_shown,
    read_wanted,
    stem_key,
)
from pipelines.graph.propositions import read_clause
from pipelines.graph.prose import find_clause, find_quoted
from pipelines.graph.titles import find_name
from pipelines.names import fold_name
from schemas.corpus import Page
from schemas.proofs import Answer, Constraint, Derivation, Hop, PathNode


@dataclass(frozen=True)
class Indexes:
    """A corpus with its lazy indexes."""

    corpus: Corpus

    @cached_property
    def relations(self) -> RelationIndex:
        """All relations of single value."""
        return RelationIndex(self.corpus)

    @cached_property
    def facts(self) -> FactIndex:
        """All infobox facts by value, also those with several values."""
        return FactIndex(self.corpus)

    @cached_property
    def cues(self) -> CueIndex:
        """Cue words of relations."""
        return CueIndex(self.corpus, self.facts)

    @cached_property
    def shares(self) -> AnswerShares:
        """Frequencies of the answers of relations."""
        return AnswerShares(self.corpus, self.facts)


TYPE = "type"
KEPT_PAGES = 1 << 14
KEPT_KEYS = 1 << 14
_BROAD_TEXT = """
person, people, artist, athlete, officeholder, military officer, military person, academic, scientist,
writer, musical artist, noble, biography, character, medical person, criminal
building, structure, place, settlement, historic building, historic site, religious building, military structure,
military installation, venue, monument, archaeological site, world heritage site, unesco world heritage site
region, district, administrative division, territory, protected area, body of water, landform
species, taxon, organism, animal, plant, artwork, artifact, work, product, device, instrument, vehicle
organisation, organization, company, institution, group, event
"""
BROAD = frozenset(noun.strip() for noun in _BROAD_TEXT.replace("\n", ",").split(",")) - {""}
"""Broad nouns that may stand for others of their domain: an artist may be a painter, a place a town."""
OVERLAPPING = (
    frozenset("city town village hamlet municipality commune comune township borough suburb".split()),
    frozenset(["politician", "president", "governor", "judge", "senator", "congressman", "prime minister", "monarch"]),
)
"""Groups of nouns that sources use for the same kind of thing."""
_OTHER_TEXT = {
    "Organisation": "company,organisation,organization,institution,political party,football club,team,band,group",
    "Event": "festival,battle,war,event,election,treaty,earthquake,storm",
    "Word": "language,award,surname,given name,family name",
}
OTHER_DOMAINS = {noun: name for name, nouns in _OTHER_TEXT.items() for noun in nouns.split(",")}
"""Domains of nouns without one in :mod:`pipelines.corpus.kinds`, apart from persons, places and artifacts."""
VAGUE_PAGES = BROAD | {"politician"}
"""Vague types of pages: an officeholder's infobox is also used for lawyers and soldiers."""


@dataclass(frozen=True, slots=True)
class ShownField:
    """All shown values of one relation of a page, numbered keys together."""

    facts: tuple[Fact, ...]
    complete: bool
    """Whether every value could be read; false without values."""


@lru_cache(maxsize=KEPT_PAGES)
def read_fields(corpus: Corpus, node: int) -> dict[str, ShownField]:
    """Return the fields of a page by the stem of their keys, layout left out."""
    facts: dict[str, list[Fact]] = {}
    for fact in corpus.facts(node):
        stem = name_relation(fact.key)
        if stem:
            facts.setdefault(stem, []).append(fact)
    fields = {}
    for stem, found in facts.items():
        read = Counter(fact.key for fact in found)
        complete = all(read[fact.key] == fact.value_count for fact in found)
        fields[stem] = ShownField(tuple(found), complete)
    return fields


def read_field(corpus: Corpus, node: int, relation: str) -> ShownField:
    """Return the shown values of a relation of a page."""
    return read_fields(corpus, node).get(stem_key(relation)) or ShownField((), complete=False)


@lru_cache(maxsize=KEPT_KEYS)
def name_relation(key: str) -> str:
    """Return the relation of an infobox key, empty for layout."""
    return "" if is_layout(key) else stem_key(key)


def match_constraint(corpus: Corpus, node: int, constraint: Constraint) -> Match:
    """Match an entity with a constraint: its type, or a literal value."""
    if constraint.relation == TYPE:
        return match_type(corpus, node, constraint.value)
    return match_literal(corpus, node, constraint.relation, constraint.value)


def match_type(corpus: Corpus, node: int, type: str) -> Match:
    """Match an entity with a type.

    A noun is not a class: a page of type ``politician`` may be about a painter. OPEN for a page without a type, for the
    type of the lead sentence, and, unless both domains are known and differ, for a person without an infobox or whose
    lead and infobox differ (a monk may be a writer), a broad noun on either side and overlapping nouns.
    """
    page = corpus.page(node)
    if page.type == type:
        return Match.YES
    if page.lead_type == type:
        return Match.OPEN
    if is_of_other_domain(page, type):
        return Match.NO
    return Match.OPEN if not page.type or _may_overlap(page, type) else Match.NO


def is_of_other_domain(page: Page, type: str) -> bool:
    """Say whether the domains of a page and a noun are known and differ."""
    shown = OTHER_DOMAINS.get(page.type or page.lead_type, page.domain)
    wanted = OTHER_DOMAINS.get(type, find_domain(type))
    return shown != wanted and OTHER not in (shown, wanted)


def _may_overlap(page: Page, type: str) -> bool:
    if page.type in VAGUE_PAGES or type in BROAD:
        return True
    if page.domain == PERSON and not page.infobox:
        return True
    if page.domain in (PERSON, OTHER) and page.lead_type not in ("", page.type):
        return True
    return any({page.type, type} <= group for group in OVERLAPPING)


def match_literal(corpus: Corpus, node: int, relation: str, value: str) -> Match:
    """Match any value of a field with the wanted one."""
    field, wanted = read_field(corpus, node, relation), read_wanted(relation, value)
    found = Match.NO if field.complete else Match.OPEN
    for fact in field.facts:
        match = compare_value(wanted, read_shown(fact.text, fact.iso, fact.key))
        if match is Match.YES:
            return match
        found = match if match is Match.OPEN else found
    return found


def match_relation(corpus: Corpus, node: int, relation: str, object: int) -> Match:
    """Match values of a field with an entity: by link or, unlinked, by name.

    A name among other words (``Ostrel, Valdonia``) leaves it open.
    """
    field = read_field(corpus, node, relation)
    found = Match.NO if field.complete else Match.OPEN
    for fact in field.facts:
        if fact.target >= 0:
            if fact.target == object:
                return Match.YES
            continue
        folded, names = fold_name(fact.text), fold_names(corpus, object)
        if folded in names:
            return Match.YES
        if any(holds_phrase(folded, name) for name in names):
            found = Match.OPEN
    return found


MENTIONS = "mentions"
MAX_ANCHORS = 20_000
"""Most anchors of a type that are counted."""


@dataclass(frozen=True, slots=True)
class Side:
    """A branch of a query: a relation of an entity of the question to one beside the chain."""

    number: int
    """Of its entity: those of the chain come first."""
    host: int
    hop: Hop
    """From its entity to the host, whose page states the relation."""
    entity: int
    """Node number that the proof has for it; a hidden one is found by its own branches and constraints alone."""
    named: bool

    @property
    def relation(self) -> str:
        """Infobox key on the host's page."""
        return self.hop.relation


@dataclass(frozen=True, slots=True)
class Query:
    """The part of a proof that determines the answer."""

    anchor: int
    """Node number of the anchor."""
    hops: tuple[Hop, ...]
    constraints: tuple[Constraint, ...]
    answer_relation: str
    names: tuple[str, ...]
    """Names masked in the clauses of text hops."""
    derivation: Derivation = ""
    """Part of the attribute that is asked for, such as the year; empty for all of it."""
    answer_clause: str = ""
    """Sentence of the answer node's page whose blank is the answer; empty for an infobox field."""
    sides: tuple[Side, ...] = ()
    """Branches, each about an entity with a smaller number than its own."""
    naming: bool = False
    """Whether the answer is the answer node's own name."""


def follow_hop(ground: Indexes, node: int, hop: Hop, names: Sequence[str]) -> frozenset[int]:
    """Return the entities that a hop leads to from a node.

    A forward hop takes the only value of a field on the node's page; a backward hop leads to every page with the node
    among the values of the field. A quoted sentence leads to its blank, and from a page without it along the field that
    means the same.
    """
    if hop.backward:
        return frozenset(ground.facts.subjects_of(hop.relation, node))
    if hop.relation != MENTIONS:
        return _follow_field(ground.corpus, node, hop.relation)
    find = find_quoted if hop.gloss else find_clause
    found = find(ground.corpus, node, hop.clause, names)
    return found or (_follow_field(ground.corpus, node, hop.field) if hop.field else found)


def _follow_field(corpus: Corpus, node: int, key: str) -> frozenset[int]:
    stem = stem_key(key)
    return frozenset(fact.target for fact in read_relations(corpus, node) if stem_key(fact.key) == stem)


def matches(corpus: Corpus, node: int, constraints: Iterable[Constraint]) -> bool:
    """Say whether an entity's page shows every constraint."""
    return all(match_constraint(corpus, node, constraint) is Match.YES for constraint in constraints)


def list_constraints_of(query: Query, node: int) -> tuple[Constraint, ...]:
    """Return the constraints on one node of the chain."""
    return tuple(constraint for constraint in query.constraints if constraint.node == node)


Admitted = Mapping[int, frozenset[int]]
"""By the number of each entity with branches: the entities whose pages show the relation of every one of them."""


def join_sides(ground: Indexes, query: Query) -> Admitted:
    """Return which entities the branches admit, joined from the leaves to the chain.

    A hidden entity of a branch may be any that its own branches admit and that shows its constraints; branches come
    after what they are about, so that one pass from the last to the first finds all.
    """
    admitted: dict[int, frozenset[int]] = {}
    for side in reversed(query.sides):
        facts = ground.facts
        hosts = frozenset(
            host
            for entity in _list_at(ground, query, side, admitted)
            for host in facts.subjects_of(side.relation, entity)
        )
        admitted[side.host] = admitted[side.host] & hosts if side.host in admitted else hosts
    return admitted


def _list_at(ground: Indexes, query: Query, side: Side, admitted: Admitted) -> frozenset[int]:
    if side.named:
        return frozenset([side.entity])
    here = list_constraints_of(query, side.number)
    return frozenset(node for node in admitted.get(side.number, ()) if matches(ground.corpus, node, here))


def list_at_side(ground: Indexes, query: Query, number: int) -> frozenset[int]:
    """Return the entities that fit the end of a branch, by the number of its entity."""
    (side,) = (side for side in query.sides if side.number == number)
    return _list_at(ground, query, side, join_sides(ground, query))


def isolate_side(query: Query, number: int) -> Query:
    """Return what hides the entity of a branch as a query of its own: one backward hop from its first own branch.

    Its further branches lead to the proof's entities, which each are the only ones that fit.
    """
    first, *others = (side for side in query.sides if side.host == number)
    hop = first.hop.model_copy(update={"index": 1})
    here = tuple(constraint.model_copy(update={"node": 1}) for constraint in list_constraints_of(query, number))
    sides = tuple(Side(place, 1, side.hop, side.entity, named=True) for place, side in enumerate(others, 2))
    return replace(query, anchor=first.entity, hops=(hop,), constraints=here, sides=sides)


def follow_chain(ground: Indexes, query: Query, anchor: int, admitted: Admitted | None = None) -> list[frozenset[int]]:
    """Return the entities at each node of the chain, the anchor's first; stops early when a set is empty."""
    admitted = join_sides(ground, query) if admitted is None else admitted
    sets = [frozenset([anchor])]
    for hop in query.hops:
        here = list_constraints_of(query, hop.index)
        ahead = {target for node in sets[-1] for target in follow_hop(ground, node, hop, query.names)}
        ahead = ahead & admitted[hop.index] if hop.index in admitted else ahead
        sets.append(frozenset(node for node in ahead if matches(ground.corpus, node, here)))
        if not sets[-1]:
            break
    return sets


def read_answers(corpus: Corpus, query: Query, nodes: Iterable[int]) -> dict[str, Attribute]:
    """Return the distinct answers, by key, of the queried attribute at some entities.

    An attribute coarser than the derivation has no answer.
    """
    answers: dict[str, Attribute] = {}
    for node in sorted(nodes):
        for attribute in _read_asked(corpus, query, node):
            answer = derive_answer(attribute.answer, query.derivation)
            if answer is not None:
                answers.setdefault(answer.key, replace(attribute, answer=answer))
    return answers


def _read_asked(corpus: Corpus, query: Query, node: int) -> Sequence[Attribute]:
    if query.naming:
        own = find_name(corpus, node)
        return () if own is None else (own,)
    stem = stem_key(query.answer_relation)
    if query.answer_clause:
        stated = read_clause(corpus, node, query.answer_clause, query.answer_relation, query.names)
        if stated:
            return stated
    return [attribute for attribute in read_askable(corpus, node) if stem_key(attribute.fact.key) == stem]


def find_article(corpus: Corpus, node: int, relation: str, answer: Answer) -> int:
    """Return the article that an answer is the name of, by the relation's value on a page; -1 for none.

    Of an answer that a sentence gives it is the one that the infobox gives too.
    """
    stem = stem_key(relation)
    found = (a.fact.target for a in read_askable(corpus, node) if stem_key(a.fact.key) == stem and a.answer == answer)
    return next(found, -1)


def answer_query(ground: Indexes, query: Query) -> dict[str, Attribute]:
    """Return the distinct answers of the query, by key; exactly one for a sound question."""
    sets = follow_chain(ground, query, query.anchor)
    return read_answers(ground.corpus, query, sets[-1]) if len(sets) == len(query.hops) + 1 else {}


def count_alone(ground: Indexes, query: Query, node: int, cap: int) -> int:
    """Return how many entities a node's descriptor fits without the chain (R_alone), counted up to ``cap``.

    Candidates are all objects of the relation; for a backward hop, all entities that show it. A quoted sentence whose
    relation no field means fits one entity.
    """
    hop, here = query.hops[node - 1], list_constraints_of(query, node)
    if hop.backward:
        return min(cap, len(_admit(list_fitting(ground, hop.relation, here), join_sides(ground, query), node)))
    if hop.relation == MENTIONS and not hop.field:
        return 1
    found = _narrow(ground, ground.relations.find_objects(hop.field or hop.relation), here)
    # The entity that a sentence leads to need not be the object of a field.
    return min(cap, len(found) if hop.relation != MENTIONS else max(1, len(found)))


def list_fitting(ground: Indexes, relation: str, constraints: Iterable[Constraint]) -> Nodes:
    """Return the entities that show a relation and fit all constraints; ascending."""
    return _narrow(ground, ground.facts.having(relation), constraints)


def _admit(nodes: Nodes, admitted: Admitted, number: int) -> Nodes:
    return nodes[np.isin(nodes, sorted(admitted[number]))] if number in admitted else nodes


def _narrow(ground: Indexes, nodes: Nodes, constraints: Iterable[Constraint]) -> Nodes:
    parts = [nodes]
    for constraint in constraints:
        if constraint.relation == TYPE:
            parts.append(ground.corpus.nodes_of_type(constraint.value))
        else:
            parts.append(ground.facts.holding(constraint.relation, constraint.value))
    parts.sort(key=len)
    return reduce(_intersect, parts)


def _intersect(left: Nodes, right: Nodes) -> Nodes:
    places = np.searchsorted(right, left)
    inside = places < len(right)
    inside[inside] = right[places[inside]] == left[inside]
    return left[inside]


def count_anchor_answers(ground: Indexes, query: Query, anchor_type: str, cap: int) -> tuple[int, int]:
    """Count the answers over all anchors of the type (N_img); a single answer means that the picture is not needed.

    An anchor counts if the chain leads to exactly one entity at each node and to one answer. If the query starts with
    a backward hop, only anchors that a value links to are counted.
    """
    anchors, answers = 0, set[str]()
    admitted = join_sides(ground, query)
    for node in list_anchors(ground, query, anchor_type, admitted)[:MAX_ANCHORS].tolist():
        answer = find_only_answer(ground, query, node, admitted)
        if answer:
            anchors += 1
            answers.add(answer)
        if len(answers) >= cap:
            break
    return anchors, len(answers)


def find_only_answer(ground: Indexes, query: Query, anchor: int, admitted: Admitted) -> str:
    """Return the key of the answer that a query has from an entity; empty unless each step and the answer is one."""
    sets = follow_chain(ground, query, anchor, admitted)
    if len(sets) <= len(query.hops) or any(len(found) > 1 for found in sets):
        return ""
    found = read_answers(ground.corpus, query, sets[-1])
    return next(iter(found)) if len(found) == 1 else ""


def list_anchors(ground: Indexes, query: Query, anchor_type: str, admitted: Admitted) -> Nodes:
    """Return the entities of a type that have the first hop's relation."""
    nodes = ground.corpus.nodes_of_type(anchor_type)
    if query.naming:
        return nodes
    if not query.hops:
        return _intersect(ground.facts.having(query.answer_relation), nodes)
    first = query.hops[0]
    if first.backward:
        fitting = list_fitting(ground, first.relation, list_constraints_of(query, first.index))
        subjects = _admit(fitting, admitted, first.index)
        return _intersect(ground.facts.objects_of(first.relation, subjects), nodes)
    if first.relation == MENTIONS and not first.field:
        return nodes
    having = _intersect(ground.facts.having(first.field or first.relation), nodes)
    return having if first.relation != MENTIONS else np.union1d(having, np.uint32(query.anchor))


def find_shortcut(corpus: Corpus, nodes: Sequence[int], hubs_above: int) -> int:
    """Return the length of the shortest link path from first to last node without hubs, at most ``len(nodes) - 1``."""
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
    """Return the node numbers of a proof's entities."""
    numbers = []
    for node in nodes:
        number = corpus.find(node.title)
        if number is None or corpus.page(number).page_id != node.page_id:
            raise LookupError(f"the corpus has no page {node.title!r} with id {node.page_id}")
        numbers.append(number)
    return numbers
