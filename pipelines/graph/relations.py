"""Infobox facts as relations and attributes: the typed edges of the graph and the literals at its nodes.

A relation is an infobox field that holds exactly one value, a link: a field with several values is no edge, because the
hop would have several answers. An attribute is a field with exactly one literal value of a known type.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.titles import is_list_title
from pipelines.names import fold_name
from pipelines.scoring.answers import count_tokens, type_answer
from schemas.proofs import Answer

Nodes = npt.NDArray[np.uint32]
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
KEPT = 1 << 16
"""Articles whose facts are kept sorted out: counting comes back to them for every question."""
KEPT_KEYS = 1 << 14
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LETTERS = re.compile(r"[^\W\d_]+")


def split_key(key: str) -> tuple[str, ...]:
    """Return the lower-case words of an infobox key, its numbers left out: ``LargestCity2`` gives largest, city."""
    return tuple(word.lower() for word in LETTERS.findall(CAMEL.sub("_", key)))


@lru_cache(maxsize=KEPT_KEYS)
def stem_key(key: str) -> str:
    """Return a key without its numbers and case, so that ``leader_name1`` and ``leader_name2`` are one relation.

    This is what "one relation" means wherever facts are counted, looked up or followed.
    """
    return "_".join(split_key(key))


def is_layout(key: str) -> bool:
    """Return whether an infobox key is about layout or names, not a fact that a question may ask for.

    A key without a letter names no relation.
    """
    if key.casefold() in LAYOUT_KEYS or AUXILIARY.search(key.casefold()) or not stem_key(key):
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
    stems = Counter(stem_key(fact.key) for fact in facts)
    return tuple(fact for fact in facts if fact.value_count == 1 and stems[stem_key(fact.key)] == 1)


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
        answer = type_value(fact.text, fact.iso, fact.key) if fact.target < 0 else None
        if answer is not None:
            attributes.append(Attribute(fact, answer))
    return tuple(attributes)


def type_value(text: str, iso: str, key: str) -> Answer | None:
    """Return an unlinked value as a typed answer, or None when it answers nothing."""
    if not text or fold_name(text) in HOLLOW_VALUES or is_list_title(text):
        return None
    return type_answer(text, iso, key)


class FieldKeys:
    """Numbers the stems (:func:`stem_key`) of infobox keys in the order they are met."""

    def __init__(self) -> None:
        self.stems: dict[str, int] = {}
        self._stem_of: dict[str, int] = {}

    def number(self, keys: pa.ChunkedArray) -> Codes:
        """Return the code of each key's stem, -1 for layout."""
        encoded = keys.combine_chunks().dictionary_encode()
        codes = np.asarray([self._meet(key) for key in encoded.dictionary.to_pylist()], dtype=np.int32)
        of_rows: Codes = codes[encoded.indices.to_numpy()]
        return of_rows

    def _meet(self, key: str) -> int:
        if key not in self._stem_of:
            code = -1 if is_layout(key) else self.stems.setdefault(stem_key(key), len(self.stems))
            self._stem_of[key] = code
        return self._stem_of[key]


def list_single_rows(corpus: Corpus, keys: FieldKeys, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Codes]]:
    """Yield all facts that :func:`read_single_facts` returns, some thousand nodes at a time.

    Args:
        corpus: whose facts are read; memory holds ``store.FACT_ROWS`` of them.
        keys: learns the keys that are met.
        columns: which are wanted beside ``node``, ``key`` and ``value_count``.

    Yields:
        Rows in the order of the table, and the code of the stem of each row's key.

    Raises:
        CorruptInput: the facts are not in node order.
    """
    for table in corpus.read_fact_tables(("node", "key", "value_count", *columns)):
        stems = keys.number(table["key"])
        fields = table["node"].to_numpy().astype(np.int64) << 32 | stems
        _, field, rows = np.unique(fields, return_inverse=True, return_counts=True)
        (kept,) = np.nonzero((stems >= 0) & (rows[field] == 1) & (table["value_count"].to_numpy() == 1))
        yield table.take(kept), stems[kept]


class RelationIndex:
    """All relations of a corpus, read when first asked for: 8 bytes a relation and 8 bytes an article.

    It holds what :func:`read_relations` returns over every page, in the same order, no more and no less.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._objects_of: dict[str, Nodes] = {}

    @property
    def subjects(self) -> Nodes:
        """Node of each relation's subject, ascending."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.uint32), np.diff(self.offsets).astype(np.int64))

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """The relations of node n, in page order, are those from ``offsets[n]`` up to ``offsets[n + 1]``."""
        return self._columns[0]

    @property
    def objects(self) -> Nodes:
        """Node of each relation's object."""
        return self._columns[1]

    def objects_of(self, key: str) -> tuple[int, ...]:
        """Return every object of a relation, ascending: what its bare phrase could mean (R_alone)."""
        return tuple(self.find_objects(key).tolist())

    def find_objects(self, key: str) -> Nodes:
        """Return what :meth:`objects_of` does as an array; keys of one stem are one relation."""
        stem = stem_key(key)
        if stem not in self._objects_of:
            _, objects, codes, numbers = self._columns
            found = objects[codes == numbers[stem]] if stem in numbers else objects[:0]
            self._objects_of[stem] = np.unique(found)
        return self._objects_of[stem]

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[np.int64], Nodes, Codes, dict[str, int]]:
        """Return offsets, objects, codes of stems, and the code of each stem."""
        keys = FieldKeys()
        offsets = np.zeros(len(self._corpus.article_nodes()) + 1, dtype=np.int64)
        objects, codes = [np.empty(0, dtype=np.uint32)], [np.empty(0, dtype=np.int32)]
        for table, code in list_single_rows(self._corpus, keys, ["target"]):
            nodes, targets = table["node"].to_numpy(), table["target"].to_numpy()
            kept = (targets >= 0) & (targets != nodes)
            found, counts = np.unique(nodes[kept], return_counts=True)
            offsets[found.astype(np.int64) + 1] = counts
            objects.append(targets[kept].astype(np.uint32))
            codes.append(code[kept])
        np.cumsum(offsets, out=offsets)
        return offsets, np.concatenate(objects), np.concatenate(codes), keys.stems
