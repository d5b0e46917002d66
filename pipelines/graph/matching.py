"""Whether an entity's page shows a constraint or a relation: it does, it does not, or its infobox leaves it open.

Open are a field that the infobox does not have, a value that could not be read, and a value that may agree
(:func:`pipelines.graph.values.compare_value`). Where a field shows other values, they are taken to be all there are;
relations that often have several are the exception, which the caller has to look at.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.holders import stem_key
from pipelines.graph.relations import is_layout
from pipelines.graph.values import Match, compare_value, fold_names, holds_phrase, read_shown, read_wanted
from pipelines.names import fold_name
from schemas.proofs import Constraint

TYPE = "type"
KEPT_PAGES = 1 << 14
KEPT_KEYS = 1 << 14


@dataclass(frozen=True, slots=True)
class Field:
    """All that a page shows of one relation, numbered twins together."""

    facts: tuple[Fact, ...]
    complete: bool
    """Whether every value could be read."""


_EMPTY = Field((), complete=False)


@lru_cache(maxsize=KEPT_PAGES)
def read_fields(corpus: Corpus, node: int) -> dict[str, Field]:
    """Return the fields of a page by the stem of their keys, layout left out."""
    facts: dict[str, list[Fact]] = {}
    for fact in corpus.facts(node):
        stem = name_relation(fact.key)
        if stem:
            facts.setdefault(stem, []).append(fact)
    return {stem: Field(tuple(found), _is_complete(found)) for stem, found in facts.items()}


def read_field(corpus: Corpus, node: int, relation: str) -> Field:
    """Return what a page shows of a relation: no facts, and incomplete, when nothing."""
    return read_fields(corpus, node).get(stem_relation(relation), _EMPTY)


@lru_cache(maxsize=KEPT_KEYS)
def name_relation(key: str) -> str:
    """Return the relation of an infobox key, empty for layout."""
    return "" if is_layout(key) else stem_key(key)


@lru_cache(maxsize=KEPT_KEYS)
def stem_relation(relation: str) -> str:
    """Return the stem of a relation, layout or not."""
    return stem_key(relation)


def _is_complete(facts: Iterable[Fact]) -> bool:
    read: dict[str, int] = {}
    told: dict[str, int] = {}
    for fact in facts:
        read[fact.key] = read.get(fact.key, 0) + 1
        told[fact.key] = fact.value_count
    return read == told


def match_constraint(corpus: Corpus, node: int, constraint: Constraint) -> Match:
    """Return whether an entity fits a constraint: its type, or a literal value."""
    if constraint.relation == TYPE:
        return match_type(corpus, node, constraint.value)
    return match_literal(corpus, node, constraint.relation, constraint.value)


def match_type(corpus: Corpus, node: int, type: str) -> Match:
    """Return whether an entity is of a type; open when its page has none, or its lead sentence says another word."""
    page = corpus.page(node)
    if page.type == type:
        return Match.YES
    return Match.OPEN if not page.type or page.lead_type == type else Match.NO


def match_literal(corpus: Corpus, node: int, relation: str, value: str) -> Match:
    """Return whether any value of a field is the wanted one."""
    field, wanted = read_field(corpus, node, relation), read_wanted(relation, value)
    found = Match.NO if field.complete else Match.OPEN
    for fact in field.facts:
        match = compare_value(wanted, read_shown(fact.text, fact.iso, fact.key))
        if match is Match.YES:
            return match
        found = match if match is Match.OPEN else found
    return found


def match_relation(corpus: Corpus, node: int, relation: str, object: int) -> Match:
    """Return whether any value of a field links to an entity or, unlinked, is one of its names.

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
