"""Infobox facts as relations and attributes: the typed edges of the graph and the literals at its nodes.

A relation is an infobox field that holds exactly one value, a link: a field with several values is no edge, because the
hop would have several answers. An attribute is a field with exactly one literal value of a known type.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.titles import is_list_title
from pipelines.names import fold_name
from pipelines.scoring.answers import count_tokens, type_answer
from schemas.proofs import Answer

Nodes = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

# Words that mark a field as layout, not as a fact about the subject.
LAYOUT_WORDS = frozenset(
    """
    image images img photo caption alt logo flag seal shield coat map pushpin mapframe coordinates coord coor latd latm
    lats latns longd longm longs longew imagewidth imagesize upright website url homepage signature footnotes footnote
    note notes ref refs reference module embed pronunciation ipa wikidata isbn issn oclc postal zip code timezone utc
    mapsize ns ew format dateformat calling mesh omim medlineplus icd icd9 icd10 diseasesdb emedicine subdivision_type
    dst type title label labels cover screenshot video audio bgcolour bgcolor fetchwikidata onlysourced parameters
    symbol
    """.split()
)
LAYOUT_KEYS = frozenset(
    """
    name names native_name full_name fullname birth_name birthname official_name other_name other_names nickname
    nicknames aka conventional_long_name common_name settlement_type binomial trinomial genus species taxon status
    status_system
    """.split()
)
AUXILIARY = re.compile(
    r"(rank|_ref|_note|_footnotes?|_link|_lang|_as_of|_change|density|event\d*|_title\d*|_type\d*|_label\d*)$"
    r"|density|^(gdp|hdi|gini|population|area|ethnic|religion|elevation|distance).*(year|date|est|estimate|census)\d*$"
)
"""Fields that qualify another field: the year of a figure, its rank, the heading of a date."""
HOLLOW_VALUES = frozenset(
    ["capital", "same", "see below", "see text", "none", "yes", "no", "n a", "ditto", "left", "right"]
)
"""Values that answer nothing: references to another field, and what is guessed half the time."""
NUMBER = re.compile(r"\d+")
KEPT = 1 << 16
"""Articles whose facts are kept sorted out: counting comes back to them for every question."""
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_layout(key: str) -> bool:
    """Return whether an infobox key is about layout or names, not a fact that a question may ask for."""
    if key.casefold() in LAYOUT_KEYS or AUXILIARY.search(key.casefold()):
        return True
    return any(word.casefold() in LAYOUT_WORDS for word in WORDS.findall(key))


@dataclass(frozen=True, slots=True)
class Attribute:
    """A literal fact with its typed value."""

    fact: Fact
    answer: Answer


@lru_cache(maxsize=KEPT)
def read_single_facts(corpus: Corpus, node: int) -> tuple[Fact, ...]:
    """Return a page's facts that are the only value of their field, and whose field has no numbered twin.

    ``leader_name1`` and ``leader_name2`` on one page are two values of one relation, written as two fields.
    """
    facts = [fact for fact in corpus.facts(node) if not is_layout(fact.key)]
    stems = Counter(NUMBER.sub("", fact.key) for fact in facts)
    return tuple(fact for fact in facts if fact.value_count == 1 and stems[NUMBER.sub("", fact.key)] == 1)


def read_relations(corpus: Corpus, node: int) -> tuple[Fact, ...]:
    """Return a page's relations: single facts that link to another article; page order."""
    return tuple(fact for fact in read_single_facts(corpus, node) if fact.target >= 0 and fact.target != node)


def read_attributes(corpus: Corpus, node: int, max_tokens: int = 0) -> tuple[Attribute, ...]:
    """Return a page's typed literals in page order; ``max_tokens`` bounds their length in words, 0 is no bound."""
    attributes = _type_attributes(corpus, node)
    return tuple(a for a in attributes if not 0 < max_tokens < count_tokens(a.answer.surface))


@lru_cache(maxsize=KEPT)
def _type_attributes(corpus: Corpus, node: int) -> tuple[Attribute, ...]:
    attributes = []
    for fact in read_single_facts(corpus, node):
        if fact.target >= 0 or not fact.text or fold_name(fact.text) in HOLLOW_VALUES or is_list_title(fact.text):
            continue
        answer = type_answer(fact.text, fact.iso, fact.key)
        if answer is not None:
            attributes.append(Attribute(fact, answer))
    return tuple(attributes)


class RelationIndex:
    """All relations of a corpus as parallel arrays, read when first asked for: 20 bytes a relation.

    It holds what :func:`read_relations` returns over every page, no more and no less.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._objects_of: dict[str, tuple[int, ...]] = {}

    @property
    def subjects(self) -> Nodes:
        """Node of each relation's subject."""
        return self._arrays[0]

    @property
    def objects(self) -> Nodes:
        """Node of each relation's object."""
        return self._arrays[1]

    def objects_of(self, key: str) -> tuple[int, ...]:
        """Return every object of a relation, ascending: what its bare phrase could mean (R_alone)."""
        if key not in self._objects_of:
            _, objects, codes = self._arrays
            found = objects[codes == self._codes[key]] if key in self._codes else objects[:0]
            self._objects_of[key] = tuple(np.unique(found).tolist())
        return self._objects_of[key]

    @property
    def _codes(self) -> dict[str, int]:
        return self._columns[1]

    @property
    def _arrays(self) -> tuple[Nodes, Nodes, Codes]:
        return self._columns[0]

    @cached_property
    def _columns(self) -> tuple[tuple[Nodes, Nodes, Codes], dict[str, int]]:
        """Return subjects, objects and codes of keys, row by row, and the code of each key."""
        columns = ["node", "key", "value_count", "target"]
        table = pq.read_table(self._corpus.folder / "facts.parquet", columns=columns)
        encoded = table["key"].combine_chunks().dictionary_encode()
        keys: list[str] = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy().astype(np.int32)
        nodes, targets = (table[name].to_numpy().astype(np.int64) for name in ("node", "target"))
        fields = _number_fields(nodes, codes, keys)
        seen, rows = np.unique(fields[fields >= 0], return_counts=True)
        linked = (table["value_count"].to_numpy() == 1) & (targets >= 0) & (targets != nodes) & (fields >= 0)
        (kept,) = np.nonzero(linked)
        kept = kept[rows[np.searchsorted(seen, fields[kept])] == 1]
        return (nodes[kept], targets[kept], codes[kept]), {key: code for code, key in enumerate(keys)}


def _number_fields(nodes: Nodes, codes: Codes, keys: list[str]) -> Nodes:
    """Return a number for each fact, equal where node and stem of the key are equal; -1 for layout."""
    stems: dict[str, int] = {}
    of_key = [-1 if is_layout(key) else stems.setdefault(NUMBER.sub("", key), len(stems)) for key in keys]
    stem = np.asarray(of_key, dtype=np.int64)[codes] if keys else np.empty(0, dtype=np.int64)
    return np.where(stem < 0, -1, nodes * max(len(stems), 1) + stem)
