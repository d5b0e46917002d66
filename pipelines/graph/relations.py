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
from pipelines.names import fold_name
from pipelines.scoring.answers import count_tokens, type_answer
from schemas.proofs import Answer

Nodes = npt.NDArray[np.int64]

# Words that mark a field as layout, not as a fact about the subject.
LAYOUT_WORDS = frozenset(
    """
    image images img photo caption alt logo flag seal shield coat map pushpin mapframe coordinates coord coor latd latm
    lats latns longd longm longs longew imagewidth imagesize upright website url homepage signature footnotes footnote
    note notes ref refs reference module embed pronunciation ipa wikidata isbn issn oclc postal zip code timezone utc
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
        if fact.target >= 0 or not fact.text or fold_name(fact.text) in HOLLOW_VALUES:
            continue
        answer = type_answer(fact.text, fact.iso, fact.key)
        if answer is not None:
            attributes.append(Attribute(fact, answer))
    return tuple(attributes)


class RelationIndex:
    """All relations of a corpus as parallel arrays, read when first asked for: 40 bytes a relation and its key."""

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
            _, objects, keys = self._arrays
            self._objects_of[key] = tuple(np.unique(objects[keys == key]).tolist())
        return self._objects_of[key]

    @cached_property
    def _arrays(self) -> tuple[Nodes, Nodes, npt.NDArray[np.str_]]:
        columns = ["node", "key", "value_count", "target"]
        path = self._corpus.folder / "facts.parquet"
        table = pq.read_table(path, columns=columns, filters=[("value_count", "==", 1), ("target", ">=", 0)])
        subjects = table["node"].to_numpy().astype(np.int64)
        objects = table["target"].to_numpy().astype(np.int64)
        names = table["key"].to_pylist()
        layout = {key: is_layout(key) for key in set(names)}
        keep = (objects != subjects) & np.fromiter((not layout[key] for key in names), dtype=bool, count=len(names))
        return subjects[keep], objects[keep], np.asarray(names, dtype=np.str_)[keep]
