"""Whether an entity's page shows a constraint or a relation: it does, it does not, or its infobox leaves it open.

Open are a field that the infobox does not have, a value that could not be read, and a value that may agree
(:func:`pipelines.graph.values.compare_value`). Where a field shows other values, they are taken to be all there are;
relations that often have several are the exception, which the caller has to look at.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.kinds import OTHER, PERSON, find_domain
from pipelines.corpus.records import Page
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.relations import is_layout, stem_key
from pipelines.graph.values import Match, compare_value, fold_names, holds_phrase, read_shown, read_wanted
from pipelines.names import fold_name
from schemas.proofs import Constraint

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
"""Nouns that leave room for others of their domain: an artist may be a painter, a place a town."""
OVERLAPPING = (
    frozenset("city town village hamlet municipality commune comune township borough suburb".split()),
    frozenset(["politician", "president", "governor", "judge", "senator", "congressman", "prime minister", "monarch"]),
)
"""Nouns of one kind of thing that sources do not keep apart."""
_OTHER_TEXT = {
    "Organisation": "company,organisation,organization,institution,political party,football club,team,band,group",
    "Event": "festival,battle,war,event,election,treaty,earthquake,storm",
    "Word": "language,award,surname,given name,family name",
}
OTHER_DOMAINS = {noun: name for name, nouns in _OTHER_TEXT.items() for noun in nouns.split(",")}
"""Domains of nouns that :mod:`pipelines.corpus.kinds` gives none, and that no person, place or artifact has."""
VAGUE_PAGES = BROAD | {"politician"}
"""Nouns of pages that leave room: an officeholder's infobox is also given to lawyers and soldiers."""


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
    return read_fields(corpus, node).get(stem_key(relation), _EMPTY)


@lru_cache(maxsize=KEPT_KEYS)
def name_relation(key: str) -> str:
    """Return the relation of an infobox key, empty for layout."""
    return "" if is_layout(key) else stem_key(key)


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
    """Return whether an entity is of a type.

    Nouns are no classes: a page of ``politician`` may be about a painter. Open are a page without a type, one whose
    lead sentence says the wanted word, and within a domain a person whose lead says another word than the infobox, and
    a broad noun on either side. A noun of no known domain may be of any.
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
    """Say whether a page is about another kind of thing than a noun names, both of them known."""
    shown = OTHER_DOMAINS.get(page.type or page.lead_type, page.domain)
    wanted = OTHER_DOMAINS.get(type, find_domain(type))
    return shown != wanted and OTHER not in (shown, wanted)


def _may_overlap(page: Page, type: str) -> bool:
    """Say whether a page's noun may stand for something that another noun of its domain names as well.

    People are several things at once, so of them a lead with another word than the infobox leaves room.
    """
    if page.type in VAGUE_PAGES or type in BROAD:
        return True
    if page.domain in (PERSON, OTHER) and page.lead_type not in ("", page.type):
        return True
    return any({page.type, type} <= group for group in OVERLAPPING)


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
