"""Infobox facts: relations and attributes of a page, an index of all of them, and how values compare.

A relation is an infobox field that holds one link; with several values a hop would have several answers. An attribute
is a field with one literal of a known type. The index counts fields with several values too, by the stem of the key
(``leader_name1`` and ``leader_name2`` are ``leader_name``). Comparing is three-valued: ``1871`` leaves 4 May 1871 open.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.dump import is_list_title
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.answers import count_tokens, type_answer
from pipelines.graph.values import Date, parse_date, render_ordinal
from pipelines.ids import draw_unit
from pipelines.names import fold_name
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


KEPT_VALUES = 1 << 16
KEPT_NAMES = 1 << 14
LEAST_NAME = 3
"""Characters of a name that is looked for: shorter ones are codes and initials."""
FIRST_YEAR = 1000
"""Years before it are given no decade or century: too few sources say when in it."""
PADDING = "\x01"
"""Between texts that are searched as one; no folded text holds it."""
_DECADE = re.compile(r"(?:the )?(\d{3})0['’]?s")
_CENTURY = re.compile(r"(?:the )?(\d{1,2})(?:st|nd|rd|th)[ -]centur(?:y|ies)", re.IGNORECASE)


class Match(Enum):
    """Whether a value, a field or an entity is what is wanted."""

    YES = "yes"
    OPEN = "open"
    """Nothing shown speaks for it or against it."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The value of a literal constraint."""

    folded: str
    answer: Answer | None
    date: Date | None
    years: tuple[int, int] | None
    """First and last year of a date, decade or century; None for other values."""


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A value of an infobox field."""

    folded: str
    answer: Answer | None
    """None for what is no single, certain value."""
    date: Date | None


@lru_cache(maxsize=KEPT_VALUES)
def read_wanted(relation: str, value: str) -> Wanted:
    """Return what a literal constraint asks of a relation."""
    answer = type_value(value, "", relation)
    date = parse_date(answer.value) if answer is not None and answer.type == "date" else None
    years = (date.year, date.year) if date is not None else parse_period(value)
    return Wanted(fold_name(value), answer if years is None or date else None, date, years)


@lru_cache(maxsize=KEPT_VALUES)
def read_shown(text: str, iso: str, key: str) -> ShownFact:
    """Return the value of a field with its type."""
    answer = type_value(text, iso, key)
    date = parse_date(answer.value) if answer is not None and answer.type == "date" else None
    return ShownFact(fold_name(text), answer, date)


def compare_value(wanted: Wanted, shown: ShownFact) -> Match:
    """Return whether a shown value is the wanted one.

    Equal folded texts or equal typed values fit, and so does a date within the wanted one. A date is left open by a
    coarser one and by anything that is no certain date; a number by anything that is no number of the same unit; words
    by longer or shorter wording of the same words.
    """
    if wanted.folded and wanted.folded == shown.folded and not (is_number(wanted.answer) and is_number(shown.answer)):
        return Match.YES
    if wanted.answer is not None and shown.answer is not None and wanted.answer.key == shown.answer.key:
        return Match.YES
    if wanted.years is not None:
        return _compare_dates(wanted, shown)
    if is_number(wanted.answer):
        return Match.NO if is_number(shown.answer) and _share_unit(wanted, shown) else Match.OPEN
    if holds_phrase(shown.folded, wanted.folded) or holds_phrase(wanted.folded, shown.folded) or not shown.folded:
        return Match.OPEN
    return Match.NO


def is_number(answer: Answer | None) -> bool:
    """Say whether a value is a number, whose folded text has lost its sign and its decimal point."""
    return answer is not None and answer.type == "number"


def _share_unit(wanted: Wanted, shown: ShownFact) -> bool:
    return wanted.answer is not None and shown.answer is not None and wanted.answer.unit == shown.answer.unit


def _compare_dates(wanted: Wanted, shown: ShownFact) -> Match:
    if shown.date is None or wanted.years is None:
        return Match.OPEN
    if wanted.date is None:
        return Match.YES if wanted.years[0] <= shown.date.year <= wanted.years[1] else Match.NO
    if wanted.date.covers(shown.date):
        return Match.YES
    return Match.OPEN if shown.date.covers(wanted.date) else Match.NO


def holds_phrase(text: str, phrase: str) -> bool:
    """Say whether a folded text holds a folded phrase as whole words; an empty one it does not."""
    return bool(phrase) and f" {phrase} " in f" {text} "


def parse_period(text: str) -> tuple[int, int] | None:
    """Return the first and last year of a decade or a century, or None.

    ``1900s`` is neither: a reader may take it for a decade or for a century.
    """
    text = " ".join(text.split())
    decade = _DECADE.fullmatch(text)
    if decade:
        first = int(decade[1]) * 10
        return (first, first + 9) if first % 100 and first >= FIRST_YEAR else None
    century = _CENTURY.fullmatch(text)
    if century and int(century[1]) * 100 > FIRST_YEAR:
        return int(century[1]) * 100 - 99, int(century[1]) * 100
    return None


def list_periods(date: Date) -> tuple[str, ...]:
    """Return a date's decade and century as a descriptor says them; none before the year 1001."""
    if date.year <= FIRST_YEAR:
        return ()
    decade = (f"{date.year // 10 * 10}s",) if date.year // 10 % 10 else ()
    return (*decade, f"{render_ordinal((date.year - 1) // 100 + 1)} century")


@lru_cache(maxsize=KEPT_NAMES)
def fold_names(corpus: Corpus, node: int) -> frozenset[str]:
    """Return the folded names of an entity that are long enough to be looked for; its title always."""
    names = {fold_name(name) for name in corpus.aliases(node)}
    title = fold_name(corpus.page(node).title)
    return frozenset({title, *(name for name in names if len(name) >= LEAST_NAME)} - {""})


Numbers = npt.NDArray[np.int32]

COLUMNS = ("node", "key", "value_count", "text", "iso", "target")
MULTIPLE_SHARE = 0.05
"""Share of the fields with several values from which a single value shown is not taken for the only one."""
NO_YEAR = np.iinfo(np.int32).min
_SEPARATOR = "\x00"


class FactIndex:
    """All facts of a corpus, read when first asked for.

    Memory: 16 bytes a fact and each distinct text once. What looking up by value needs is made for each relation when
    it is first asked for and kept: about 12 bytes a fact, and what Python needs for each of its distinct texts.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._fields: dict[str, _Field] = {}
        self._holders: dict[str, Nodes] = {}

    def subjects_of(self, relation: str, object: int) -> tuple[int, ...]:
        """Return the nodes with a value that links to an entity or, unlinked, is one of its names; ascending.

        Fields may have any number of values. The entity itself is left out.
        """
        field = self._open(relation)
        found = {*field.find_linked(object), *field.find_named(fold_names(self._corpus, object))}
        return tuple(sorted(found - {object}))

    def naming(self, relation: str, object: int) -> tuple[int, ...]:
        """Return the nodes with an unlinked value that holds a name of an entity among other words; ascending."""
        return tuple(sorted(self._open(relation).find_holding(fold_names(self._corpus, object))))

    def objects_of(self, relation: str, subjects: Nodes | None = None) -> Nodes:
        """Return the entities that values of a relation link to, ascending; with subjects, only what these link to."""
        field = self._open(relation)
        rows = field.targets >= 0
        if subjects is not None:
            rows &= np.isin(field.nodes, subjects)
        return np.unique(field.targets[rows & (field.targets != field.nodes)]).astype(np.uint32)

    def having(self, relation: str) -> Nodes:
        """Return the nodes that show a relation, with any value; ascending."""
        stem = stem_key(relation)
        if stem not in self._holders:
            self._holders[stem] = self._columns.list_holders(stem)
        return self._holders[stem]

    def lacking(self, type: str, relation: str) -> Nodes:
        """Return the nodes of a type that do not show a relation; ascending."""
        return np.setdiff1d(self._corpus.nodes_of_type(type), self.having(relation), assume_unique=True)

    def holding(self, relation: str, value: str) -> Nodes:
        """Return the nodes that match a literal constraint, see :func:`matching.match_literal`; ascending."""
        return self._open(relation).find_value(read_wanted(relation, value))

    def is_multiple(self, relation: str) -> bool:
        """Say whether a relation often has several values, so that one shown may not be the only one."""
        return self._open(relation).multiple

    def _open(self, relation: str) -> "_Field":
        stem = stem_key(relation)
        if stem not in self._fields:
            self._fields[stem] = self._columns.cut(stem)
        return self._fields[stem]

    @cached_property
    def _columns(self) -> "_Columns":
        return _read_columns(self._corpus)


@dataclass(frozen=True)
class _Columns:
    """Facts sorted by relation, those of a relation by node and in page order."""

    keys: dict[str, str]
    """The first key met of each stem: values are typed by it."""
    codes: dict[str, int]
    offsets: npt.NDArray[np.int64]
    nodes: Nodes
    targets: Numbers
    counts: Numbers
    """Values of the field, unreadable ones included."""
    texts: Numbers
    """Which of ``distinct``."""
    distinct: pa.Array

    def list_holders(self, stem: str) -> Nodes:
        """Return the nodes that show a relation, ascending; its texts are not read."""
        start, end = self._find_rows(stem)
        return np.unique(self.nodes[start:end])

    def _find_rows(self, stem: str) -> tuple[int, int]:
        code = self.codes.get(stem)
        return (0, 0) if code is None else (int(self.offsets[code]), int(self.offsets[code + 1]))

    def cut(self, stem: str) -> "_Field":
        """Return the facts of one relation; none of a relation that nobody has."""
        start, end = self._find_rows(stem)
        texts, places = np.unique(self.texts[start:end], return_inverse=True)
        distinct = self.distinct.take(pa.array(texts)).to_pylist() if len(texts) else []
        return _Field(
            self.keys.get(stem, stem),
            self.nodes[start:end],
            self.targets[start:end],
            self.counts[start:end],
            places.astype(np.int32),
            [tuple(text.split(_SEPARATOR)) for text in distinct],
        )


@dataclass(frozen=True)
class _Field:
    """The facts of one relation, and what looking them up by value needs."""

    key: str
    nodes: Nodes
    """Ascending, one a value."""
    targets: Numbers
    counts: Numbers
    places: Numbers
    """Which of ``texts`` each value is."""
    texts: list[tuple[str, ...]]
    """Distinct pairs of text and date."""

    @cached_property
    def multiple(self) -> bool:
        _, rows, sizes = np.unique(self.nodes, return_index=True, return_counts=True)
        several = (sizes > 1) | (self.counts[rows] > 1)
        return bool(len(rows)) and float(several.mean()) >= MULTIPLE_SHARE

    def find_linked(self, target: int) -> list[int]:
        order, ordered = self._by_target
        first, last = np.searchsorted(ordered, [target, target + 1])
        found: list[int] = self.nodes[order[first:last]].tolist()
        return found

    def find_named(self, names: frozenset[str]) -> list[int]:
        places = [place for name in names for place in self._by_fold.get(name, ())]
        return self._list_unlinked(places)

    def find_holding(self, names: frozenset[str]) -> list[int]:
        joined, starts = self._joined
        places = set()
        for name in names:
            found = joined.find(f" {name} ")
            while found >= 0:
                places.add(int(np.searchsorted(starts, found, side="right")) - 1)
                found = joined.find(f" {name} ", found + 1)
        return self._list_unlinked(sorted(places))

    def find_value(self, wanted: Wanted) -> Nodes:
        places = set(self._by_fold.get(wanted.folded, ()))
        if is_number(wanted.answer):
            places = {place for place in places if not is_number(self._shown[place].answer)}
        if wanted.answer is not None:
            places.update(self._by_key.get(wanted.answer.key, ()))
        if wanted.years is not None:
            places.update(self._find_dates(wanted.years, wanted.date))
        return np.unique(self.nodes[np.isin(self.places, np.fromiter(places, dtype=np.int32, count=len(places)))])

    def _find_dates(self, span: tuple[int, int], date: Date | None) -> list[int]:
        years, months, days = self._dates
        fit = (years >= span[0]) & (years <= span[1])
        if date is not None and date.month:
            fit &= (months == date.month) & ((days == date.day) | (date.day == 0))
        found: list[int] = np.nonzero(fit)[0].tolist()
        return found

    def _list_unlinked(self, places: list[int]) -> list[int]:
        if not places:
            return []
        rows = np.isin(self.places, places) & (self.targets < 0)
        found: list[int] = self.nodes[rows].tolist()
        return found

    @cached_property
    def _by_target(self) -> tuple[npt.NDArray[np.int64], Numbers]:
        order = np.argsort(self.targets, kind="stable")
        return order, self.targets[order]

    @cached_property
    def _shown(self) -> list[ShownFact]:
        return [read_shown(text, iso, self.key) for text, iso in self.texts]

    @cached_property
    def _by_fold(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, shown in enumerate(self._shown):
            found.setdefault(shown.folded, []).append(place)
        found.pop("", None)
        return found

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, shown in enumerate(self._shown):
            if shown.answer is not None:
                found.setdefault(shown.answer.key, []).append(place)
        return found

    @cached_property
    def _dates(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return year, month and day of each distinct text; ``NO_YEAR`` where it is no date."""
        parts = np.zeros((3, len(self.texts)), dtype=np.int32)
        parts[0] = NO_YEAR
        for place, shown in enumerate(self._shown):
            if shown.date is not None:
                parts[:, place] = shown.date.year, shown.date.month, shown.date.day
        return parts[0], parts[1], parts[2]

    @cached_property
    def _joined(self) -> tuple[str, npt.NDArray[np.int64]]:
        """Return all distinct folded texts in one, and where each begins."""
        pieces = [f"{PADDING} {shown.folded} " for shown in self._shown]
        starts = np.cumsum([0, *map(len, pieces)])[:-1] if pieces else np.zeros(0, dtype=np.int64)
        return "".join(pieces), starts


def _read_columns(corpus: Corpus) -> _Columns:
    keys: dict[str, str] = {}
    codes: dict[str, int] = {}
    parts: list[tuple[npt.NDArray[np.int64], ...]] = []
    texts: list[pa.Array] = []
    for table in corpus.read_fact_tables(COLUMNS):
        encoded = table["key"].combine_chunks().dictionary_encode()
        stems = _number_stems(encoded.dictionary.to_pylist(), keys, codes)[encoded.indices.to_numpy()]
        (kept,) = np.nonzero(stems >= 0)
        columns = (table[name].to_numpy()[kept] for name in ("node", "target", "value_count"))
        parts.append((stems[kept], *columns))
        joined = pc.binary_join_element_wise(table["text"], table["iso"], _SEPARATOR)
        texts.append(joined.combine_chunks().take(pa.array(kept)))
    merged = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.zeros(0, dtype=np.int64)] * 4
    encoded = pa.chunked_array(texts, type=pa.string()).dictionary_encode().combine_chunks()
    order = np.argsort(merged[0], kind="stable")
    return _Columns(
        keys=keys,
        codes=codes,
        offsets=np.searchsorted(merged[0][order], np.arange(len(codes) + 1)),
        nodes=merged[1][order].astype(np.uint32),
        targets=merged[2][order].astype(np.int32),
        counts=merged[3][order].astype(np.int32),
        texts=encoded.indices.to_numpy()[order],
        distinct=encoded.dictionary,
    )


def _number_stems(met: list[str], keys: dict[str, str], codes: dict[str, int]) -> npt.NDArray[np.int64]:
    """Return the number of each key's stem, -1 for layout; new stems are added."""
    numbers = np.full(len(met), -1, dtype=np.int64)
    for place, key in enumerate(met):
        if not is_layout(key):
            stem = stem_key(key)
            keys.setdefault(stem, key)
            numbers[place] = codes.setdefault(stem, len(codes))
    return numbers


DRAWN_FROM = 50
"""Nodes looked at for each that is drawn: of more, so many at even distances are taken first."""


def sample_nodes(corpus: Corpus, count: int) -> list[int]:
    """Return at most about ``count`` nodes of a corpus, ascending: all, or those that a hash draws."""
    nodes = corpus.article_nodes()
    if len(nodes) <= count:
        return list(nodes)
    return [node for node in nodes if draw_unit("sample", node) < count / len(nodes)]


def draw_nodes(nodes: Iterable[int] | npt.NDArray[np.uint32], count: int, *parts: object) -> list[int]:
    """Return ``count`` of some nodes, the same for the same nodes and parts, ascending."""
    ordered = np.sort(np.fromiter(nodes, dtype=np.int64))
    looked_at = ordered[:: max(1, len(ordered) // (count * DRAWN_FROM))].tolist()
    drawn = sorted(looked_at, key=lambda node: (draw_unit(*parts, node), node))[:count]
    return sorted(drawn)


MAX_SUBJECTS = 5_000
"""Subjects of a relation whose answers are typed; of more a sample is drawn."""
_DATE = "date:"
_TEXT = "text:"


class AnswerShares:
    """The answers of every relation, counted when a relation is first asked for."""

    def __init__(self, corpus: Corpus, facts: FactIndex) -> None:
        self._corpus = corpus
        self._facts = facts
        self._counts: dict[str, Counter[str]] = {}
        self._values: dict[str, frozenset[str]] = {}

    def share(self, relation: str, answer_key: str) -> tuple[float, int]:
        """Return the share of one answer among all observed answers of a relation, and how many these are.

        An answer counts once for each subject that shows it. A month or year counts every date within it, because a
        question may ask for no more.

        Returns:
            (0.0, 0) when no subject shows the relation.
        """
        counts = self._count(stem_key(relation))
        total = counts[""]
        return (counts[answer_key] / total if total else 0.0), total

    def values(self, relation: str) -> frozenset[str]:
        """Return a relation's answers that are names or words, folded (:func:`pipelines.names.fold_name`)."""
        stem = stem_key(relation)
        if stem not in self._values:
            texts = (key for key in self._count(stem) if key.startswith(_TEXT))
            self._values[stem] = frozenset(key.removeprefix(_TEXT) for key in texts)
        return self._values[stem]

    def _count(self, stem: str) -> Counter[str]:
        if stem not in self._counts:
            nodes = draw_nodes(self._facts.having(stem), MAX_SUBJECTS, "shares", stem)
            self._counts[stem] = Counter(key for node in nodes for key in self._list_keys(node, stem))
        return self._counts[stem]

    def _list_keys(self, node: int, stem: str) -> list[str]:
        """Return the keys of a subject's answers, each once, and an empty key for every answer."""
        answers = {}
        for fact in self._corpus.facts(node):
            answer = type_value(fact.text, fact.iso, fact.key) if stem_key(fact.key) == stem else None
            if answer is not None:
                answers[answer.key] = answer
        keys = {part for key in answers for part in _widen(key)}
        return [*sorted(keys), *[""] * len(answers)]


def _widen(key: str) -> tuple[str, ...]:
    """Return an answer's key, and for a date those of its month and year."""
    if not key.startswith(_DATE):
        return (key,)
    year, *rest = key.removeprefix(_DATE).lstrip("-").split("-")
    start = _DATE + "-" * key.removeprefix(_DATE).startswith("-") + year
    return tuple("-".join([start, *rest[:count]]) for count in range(len(rest) + 1))
