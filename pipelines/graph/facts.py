"""Facts of pages: their relations and attributes, indexes of all of them, and comparison of values.

A relation is an infobox field that holds one link; with several values a hop would have several answers. An attribute
is a field with one literal of a known type. What Wikidata states of a relation that the infobox lacks is a field too.
Both may be asked for: of a relation the answer is the article that it leads to, by all its names.
:class:`FactIndex` has fields with several values too, by the stem of the key (``leader_name1`` and ``leader_name2`` are
``leader_name``). Comparing is three-valued: ``1871`` leaves 4 May 1871 open.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.dump import is_list_title, strip_qualifier
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
    symbol prefix suffix imgwidth imageclass logosize mapcaption familycolor pattern glotto glottorefname
    isni viaf doi isin satcat geocode postcode gnis imdb allmusic cianame
    latitude longitude romaji romanized background
    """.split()
)
LAYOUT_KEYS = frozenset(
    """
    name names native_name full_name fullname birth_name birthname official_name other_name other_names nickname
    nicknames aka conventional_long_name common_name settlement_type binomial trinomial genus species taxon status
    status_system subdivision_ranks area_magnitude unit_pref apsis alphanumber letter typedesc iso flaglink cancode
    entity_adjective debutleague finalleague traded_as linking_name clubname trade_name trad_abbreviation abbreviation
    altname
    document_name pseudonym statleague coa_res structure_res this_album cornish_name dewey congress nfl display_parents
    """.split()
)
_ENDS_LAYOUT = re.compile(r"\w+(?:label|caption|colou?r|width|image|logo)")
"""Words written together: ``statlabel``."""
RELATIONS = frozenset(
    """
    label record_label rank government_type orbit_reference timezone time_zone timezone_dst
    time_zone_dst utc_offset
    """.split()
)
"""Whole keys that ask for something, though one of their words elsewhere sets out a box: a soldier's rank."""
IDENTIFIERS = ("emedicine", "diseasesdb", "medlineplus", "genereviews", "tennishof", "omim", "icd")
"""Starts of the keys of catalogues, their words joined."""
AUXILIARY = re.compile(
    r"^blank\d*_?(name|info)|rider\w*_country$|(rank|_ref|_note|_footnotes?|_link|_lang|_as_of|_change|event\d*|_title\d*|_type\d*|_label\d*)$"
    r"|^(gdp|hdi|gini|population|area|ethnic|religion|elevation|distance).*(year|date|est|estimate|census)\d*$"
)
"""Fields that qualify another field: year or rank of a figure, heading of a date."""
HOLLOW_VALUES = frozenset(
    ["capital", "same", "see below", "see text", "none", "yes", "no", "n a", "ditto", "left", "right", "auto"]
)
"""Values that answer nothing: references to another field, and values guessed half the time."""
KEPT = 1 << 16
"""Cached articles: counting reads them for every question."""
KEPT_KEYS = 1 << 14
KEPT_NAMED = 1 << 14
_TEXT = "text:"
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LETTERS = re.compile(r"[^\W\d_]+")


def split_key(key: str) -> tuple[str, ...]:
    """Return the lower-case words of an infobox key, its numbers left out: ``LargestCity2`` gives largest, city."""
    return tuple(word.lower() for word in LETTERS.findall(CAMEL.sub("_", key)))


@lru_cache(maxsize=KEPT_KEYS)
def stem_key(key: str) -> str:
    """Return a key without numbers and case; keys of one stem are one relation."""
    return "_".join(split_key(key))


def is_layout(key: str) -> bool:
    """Say whether an infobox key is about layout or names, or has no letter: no question asks for it."""
    stem = stem_key(key)
    if re.sub(r"\d+", "", key.casefold()) in RELATIONS:
        return False
    if not stem or stem in LAYOUT_KEYS or key.casefold() in LAYOUT_KEYS or AUXILIARY.search(key.casefold()):
        return True
    if stem.replace("_", "").startswith(IDENTIFIERS):
        return True
    words = [word.casefold() for word in WORDS.findall(key)]
    return any(word in LAYOUT_WORDS or _ENDS_LAYOUT.fullmatch(word) for word in words)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A literal fact with its typed value; of one that a sentence states also its gloss and the blanked sentence."""

    fact: Fact
    answer: Answer
    gloss: str = ""
    clause: str = ""


@lru_cache(maxsize=KEPT)
def read_single_facts(corpus: Corpus, node: int) -> tuple[Fact, ...]:
    """Return a page's facts that are the only value of their relation, numbered fields counted together."""
    facts = [fact for fact in corpus.facts(node) if not is_layout(fact.key)]
    stems = Counter(stem_key(fact.key) for fact in facts)
    return tuple(fact for fact in facts if fact.value_count == 1 and stems[stem_key(fact.key)] == 1)


def read_relations(corpus: Corpus, node: int) -> tuple[Fact, ...]:
    """Return a page's relations: single facts that link to another article; page order."""
    return tuple(fact for fact in read_single_facts(corpus, node) if fact.target >= 0 and fact.target != node)


def read_attributes(corpus: Corpus, node: int, max_tokens: int = 0) -> tuple[Attribute, ...]:
    """Return a page's typed literals of at most ``max_tokens`` words (0: any) in page order."""
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


def read_askable(corpus: Corpus, node: int, max_tokens: int = 0) -> tuple[Attribute, ...]:
    """Return what may be asked of a page in page order: its typed literals, and the articles its relations lead to."""
    attributes = _type_askable(corpus, node)
    return tuple(a for a in attributes if not 0 < max_tokens < count_tokens(a.answer.surface))


@lru_cache(maxsize=KEPT)
def _type_askable(corpus: Corpus, node: int) -> tuple[Attribute, ...]:
    typed = ((fact, type_fact(corpus, fact)) for fact in read_single_facts(corpus, node) if fact.target != node)
    return tuple(Attribute(fact, answer) for fact, answer in typed if answer is not None)


def type_fact(corpus: Corpus, fact: Fact) -> Answer | None:
    """Return a value as a typed answer: the article it links to, or its text; None when it answers nothing."""
    if fact.target < 0:
        return type_value(fact.text, fact.iso, fact.key)
    return name_answer(corpus, fact.target) if is_named(corpus, fact.target) else None


def is_named(corpus: Corpus, node: int) -> bool:
    """Say whether an article is about one thing with a name: no list, no disambiguation page."""
    page = corpus.page(node)
    return not page.is_list and not page.is_disambiguation and bool(fold_name(strip_qualifier(page.title)))


@lru_cache(maxsize=KEPT_NAMED)
def name_answer(corpus: Corpus, target: int) -> Answer:
    """Return an article's entity as an answer: its title without brackets, all its other names as aliases."""
    surface = strip_qualifier(corpus.page(target).title)
    others = dict.fromkeys(strip_qualifier(name) for name in corpus.aliases(target))
    aliases = tuple(name for name in others if name != surface)
    return Answer(type="name", value=surface, precision="", unit="", surface=surface, aliases=aliases,
                  key=name_key(surface))  # fmt: skip


def name_key(surface: str) -> str:
    """Return the key of a name as an answer."""
    return f"{_TEXT}{fold_name(surface)}"


_LAYOUT_VALUE = re.compile(
    r"\d+(?:\.\d+)?\s?(?:px|em)|\d+x\d+px|#[0-9a-fA-F]{3,8}"
    r"|(?=\d*[A-F])[0-9A-F]{6}|_\w+|[a-z]+(?:_[a-z]+)+|[A-Za-z]{2,}\d{4,}\w*|1 E\d+"
)
"""A value that sets out the box or names a record: a size, a colour, an option, a number in a catalogue."""


def type_value(text: str, iso: str, key: str) -> Answer | None:
    """Return an unlinked value as a typed answer, or None when it answers nothing."""
    if not text or fold_name(text) in HOLLOW_VALUES or is_list_title(text) or _LAYOUT_VALUE.fullmatch(text):
        return None
    return type_answer(text, iso, key)


class FieldKeys:
    """Numbers the stems (:func:`stem_key`) of infobox keys in the order of their occurrence."""

    def __init__(self) -> None:
        self.stems: dict[str, int] = {}
        self.first_keys: dict[str, str] = {}
        """By stem."""

    def number(self, keys: pa.ChunkedArray) -> Codes:
        """Return the code of each key's stem, -1 for layout."""
        encoded = keys.combine_chunks().dictionary_encode()
        codes = np.full(len(encoded.dictionary), -1, dtype=np.int32)
        for place, key in enumerate(encoded.dictionary.to_pylist()):
            if not is_layout(key):
                stem = stem_key(key)
                self.first_keys.setdefault(stem, key)
                codes[place] = self.stems.setdefault(stem, len(self.stems))
        of_rows: Codes = codes[encoded.indices.to_numpy()]
        return of_rows


def list_single_rows(corpus: Corpus, keys: FieldKeys, columns: Sequence[str]) -> Iterator[tuple[pa.Table, Codes]]:
    """Yield all facts that :func:`read_single_facts` returns, some thousand nodes at a time."""
    for table in corpus.read_fact_tables(("node", "key", "value_count", *columns)):
        stems = keys.number(table["key"])
        fields = table["node"].to_numpy().astype(np.int64) << 32 | stems
        _, field, rows = np.unique(fields, return_inverse=True, return_counts=True)
        (kept,) = np.nonzero((stems >= 0) & (rows[field] == 1) & (table["value_count"].to_numpy() == 1))
        yield table.take(kept), stems[kept]


class RelationIndex:
    """All relations of a corpus, read on first use: 8 bytes a relation and 8 bytes an article.

    It holds what :func:`read_relations` returns over all pages, in the same order.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._objects_of: dict[str, Nodes] = {}

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """The relations of node n, in page order, are those from ``offsets[n]`` up to ``offsets[n + 1]``."""
        return self._columns[0]

    @property
    def objects(self) -> Nodes:
        """Node of each relation's object."""
        return self._columns[1]

    def find_objects(self, key: str) -> Nodes:
        """Return every object of a relation, ascending: what its bare phrase could mean (R_alone)."""
        stem = stem_key(key)
        if stem not in self._objects_of:
            _, objects, codes, numbers = self._columns
            self._objects_of[stem] = np.unique(objects[codes == numbers[stem]] if stem in numbers else objects[:0])
        return self._objects_of[stem]

    def count_sharing(self) -> npt.NDArray[np.int64]:
        """Return for each relation how many pages have it with the same object, its own included."""
        _, objects, codes, _ = self._columns
        pairs = codes.astype(np.int64) << 32 | objects
        _, numbers, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        shared: npt.NDArray[np.int64] = counts[numbers]
        return shared

    @cached_property
    def _columns(self) -> tuple[npt.NDArray[np.int64], Nodes, Codes, dict[str, int]]:
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
"""Characters of a name that is searched for; shorter ones are codes and initials."""
FIRST_YEAR = 1000
"""Earlier years get no decade or century: too few sources are that precise."""
PADDING = "\x01"
"""Separator of texts that are searched as one; no folded text holds it."""
_DECADE = re.compile(r"(?:the )?(\d{3})0['’]?s")
_CENTURY = re.compile(r"(?:the )?(\d{1,2})(?:st|nd|rd|th)[ -]centur(?:y|ies)", re.IGNORECASE)


class Match(Enum):
    """Whether a value, a field or an entity is the wanted one."""

    YES = "yes"
    OPEN = "open"
    """Undecided by the infobox."""
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
    """None without a single, certain value."""
    date: Date | None


@lru_cache(maxsize=KEPT_VALUES)
def read_wanted(relation: str, value: str) -> Wanted:
    """Return the value of a literal constraint on a relation."""
    answer = type_value(value, "", relation)
    date = parse_date(answer.value) if answer is not None and answer.type == "date" else None
    years = (date.year, date.year) if date is not None else parse_period(value)
    return Wanted(fold_name(value), answer if years is None or date else None, date, years)


@lru_cache(maxsize=KEPT_VALUES)
def read_shown(text: str, iso: str, key: str) -> ShownFact:
    """Return a typed value of a field."""
    answer = type_value(text, iso, key)
    date = parse_date(answer.value) if answer is not None and answer.type == "date" else None
    return ShownFact(fold_name(text), answer, date)


def compare_value(wanted: Wanted, shown: ShownFact) -> Match:
    """Compare a shown value with the wanted one.

    YES for equal folded texts, equal typed values, and a date within the wanted one. OPEN for a coarser date or an
    uncertain one, for anything but a number of the same unit, and for longer or shorter wording of the same words.
    """
    if wanted.folded and wanted.folded == shown.folded and not (is_number(wanted.answer) and is_number(shown.answer)):
        return Match.YES
    if wanted.answer is not None and shown.answer is not None and wanted.answer.key == shown.answer.key:
        return Match.YES
    if wanted.years is not None:
        return _compare_dates(wanted, shown)
    if is_number(wanted.answer):
        return Match.NO if is_number(shown.answer) and shown.answer.unit == wanted.answer.unit else Match.OPEN
    if holds_phrase(shown.folded, wanted.folded) or holds_phrase(wanted.folded, shown.folded) or not shown.folded:
        return Match.OPEN
    return Match.NO


def is_number(answer: Answer | None) -> TypeGuard[Answer]:
    """Say whether a value is a number; its folded text has lost sign and decimal point."""
    return answer is not None and answer.type == "number"


def _compare_dates(wanted: Wanted, shown: ShownFact) -> Match:
    if shown.date is None or wanted.years is None:
        return Match.OPEN
    if wanted.date is None:
        return Match.YES if wanted.years[0] <= shown.date.year <= wanted.years[1] else Match.NO
    if wanted.date.covers(shown.date):
        return Match.YES
    return Match.OPEN if shown.date.covers(wanted.date) else Match.NO


def holds_phrase(text: str, phrase: str) -> bool:
    """Say whether a folded text holds a folded phrase, not empty, as whole words."""
    return bool(phrase) and f" {phrase} " in f" {text} "


def parse_period(text: str) -> tuple[int, int] | None:
    """Return the first and last year of a decade or a century, or None; ``1900s`` may be either and gives None."""
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
    """Return a date's decade and century as words of a descriptor; empty before the year 1001."""
    if date.year <= FIRST_YEAR:
        return ()
    decade = (f"{date.year // 10 * 10}s",) if date.year // 10 % 10 else ()
    return (*decade, f"{render_ordinal((date.year - 1) // 100 + 1)} century")


@lru_cache(maxsize=KEPT_NAMES)
def fold_names(corpus: Corpus, node: int) -> frozenset[str]:
    """Return the folded title of an entity, and its folded names of at least ``LEAST_NAME`` characters."""
    names = {fold_name(name) for name in corpus.aliases(node)}
    title = fold_name(corpus.page(node).title)
    return frozenset({title, *(name for name in names if len(name) >= LEAST_NAME)} - {""})


Numbers = npt.NDArray[np.int32]

COLUMNS = ("node", "key", "value_count", "text", "iso", "target")
MULTIPLE_SHARE = 0.05
"""Share of fields with several values from which one shown value is not taken for the only one."""
NO_YEAR = np.iinfo(np.int32).min
_SEPARATOR = "\x00"


@dataclass(frozen=True)
class _Columns:
    keys: FieldKeys
    offsets: npt.NDArray[np.int64]
    """Rows of the relation with code c are those from ``offsets[c]`` up to ``offsets[c + 1]``."""
    nodes: Nodes
    targets: Numbers
    counts: Numbers
    """Values of the field, unreadable ones included."""
    texts: Numbers
    """Index into ``distinct``."""
    distinct: pa.Array

    def find_rows(self, stem: str) -> slice:
        code = self.keys.stems.get(stem)
        return slice(0, 0) if code is None else slice(int(self.offsets[code]), int(self.offsets[code + 1]))


class FactIndex:
    """All facts of a corpus, read on first use.

    Memory: 16 bytes a fact and each distinct text once; for each relation looked up by value about 12 bytes a fact and
    its distinct texts as Python objects.
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

    def objects_of(self, relation: str, subjects: Nodes) -> Nodes:
        """Return the entities that values of a relation of some subjects link to, ascending."""
        field = self._open(relation)
        rows = (field.targets >= 0) & np.isin(field.nodes, subjects) & (field.targets != field.nodes)
        return np.unique(field.targets[rows]).astype(np.uint32)

    def having(self, relation: str) -> Nodes:
        """Return the nodes that show a relation, with any value; ascending. Texts are not read."""
        stem = stem_key(relation)
        if stem not in self._holders:
            self._holders[stem] = np.unique(self._columns.nodes[self._columns.find_rows(stem)])
        return self._holders[stem]

    def holding(self, relation: str, value: str) -> Nodes:
        """Return the nodes that match a literal constraint, as ``query.match_literal`` decides; ascending."""
        return self._open(relation).find_value(read_wanted(relation, value))

    def is_multiple(self, relation: str) -> bool:
        """Say whether a relation often has several values, so that one shown may not be the only one."""
        return self._open(relation).multiple

    def _open(self, relation: str) -> "_Field":
        stem = stem_key(relation)
        if stem not in self._fields:
            columns, rows = self._columns, self._columns.find_rows(stem)
            texts, places = np.unique(columns.texts[rows], return_inverse=True)
            distinct = columns.distinct.take(pa.array(texts)).to_pylist() if len(texts) else []
            self._fields[stem] = _Field(
                columns.keys.first_keys.get(stem, stem),
                columns.nodes[rows],
                columns.targets[rows],
                columns.counts[rows],
                places.astype(np.int32),
                [tuple(text.split(_SEPARATOR)) for text in distinct],
            )
        return self._fields[stem]

    @cached_property
    def _columns(self) -> _Columns:
        keys = FieldKeys()
        parts: list[tuple[npt.NDArray[np.integer], ...]] = []
        texts: list[pa.Array] = []
        for table in self._corpus.read_fact_tables(COLUMNS):
            stems = keys.number(table["key"])
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
            offsets=np.searchsorted(merged[0][order], np.arange(len(keys.stems) + 1)),
            nodes=merged[1][order].astype(np.uint32),
            targets=merged[2][order].astype(np.int32),
            counts=merged[3][order].astype(np.int32),
            texts=encoded.indices.to_numpy()[order],
            distinct=encoded.dictionary,
        )


@dataclass(frozen=True)
class _Field:
    key: str
    """Key by which values are typed."""
    nodes: Nodes
    """Ascending, one a value."""
    targets: Numbers
    counts: Numbers
    places: Numbers
    """Index into ``texts``."""
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
        return _to_list(self.nodes[order[first:last]])

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
        return _to_list(np.nonzero(fit)[0])

    def _list_unlinked(self, places: list[int]) -> list[int]:
        return _to_list(self.nodes[np.isin(self.places, places) & (self.targets < 0)]) if places else []

    @cached_property
    def _by_target(self) -> tuple[npt.NDArray[np.int64], Numbers]:
        order = np.argsort(self.targets, kind="stable")
        return order, self.targets[order]

    @cached_property
    def _shown(self) -> list[ShownFact]:
        return [read_shown(text, iso, self.key) for text, iso in self.texts]

    @cached_property
    def _by_fold(self) -> dict[str, list[int]]:
        return _group(shown.folded for shown in self._shown)

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        return _group(shown.answer.key if shown.answer else "" for shown in self._shown)

    @cached_property
    def _dates(self) -> tuple[Numbers, Numbers, Numbers]:
        parts = np.zeros((3, len(self.texts)), dtype=np.int32)
        parts[0] = NO_YEAR
        for place, shown in enumerate(self._shown):
            if shown.date is not None:
                parts[:, place] = shown.date.year, shown.date.month, shown.date.day
        return parts[0], parts[1], parts[2]

    @cached_property
    def _joined(self) -> tuple[str, npt.NDArray[np.int64]]:
        pieces = [f"{PADDING} {shown.folded} " for shown in self._shown]
        starts = np.cumsum([0, *map(len, pieces)])[:-1] if pieces else np.zeros(0, dtype=np.int64)
        return "".join(pieces), starts


def _group(texts: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        if text:
            found.setdefault(text, []).append(place)
    return found


def _to_list(numbers: npt.NDArray[np.integer]) -> list[int]:
    found: list[int] = numbers.tolist()
    return found


DRAWN_FROM = 50
"""Candidates for each drawn node; of more nodes, every n-th is a candidate."""


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
"""Subjects of a relation whose answers are typed; more are sampled."""
_DATE = "date:"


class AnswerShares:
    """The answers of every relation, counted on first use of the relation."""

    def __init__(self, corpus: Corpus, facts: FactIndex) -> None:
        self._corpus = corpus
        self._facts = facts
        self._counts: dict[str, Counter[str]] = {}
        self._values: dict[str, frozenset[str]] = {}

    def share(self, relation: str, answer_key: str) -> tuple[float, int]:
        """Return the share of one answer among all observed answers of a relation, and their number.

        An answer counts once for each subject. A month or year counts every date within it, because a question may ask
        for no more.
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
        answers = {}
        for fact in self._corpus.facts(node):
            answer = type_fact(self._corpus, fact) if stem_key(fact.key) == stem else None
            if answer is not None:
                answers[answer.key] = answer
        keys = {part for key in answers for part in _widen(key)}
        return [*sorted(keys), *[""] * len(answers)]


def _widen(key: str) -> tuple[str, ...]:
    if not key.startswith(_DATE):
        return (key,)
    year, *rest = key.removeprefix(_DATE).lstrip("-").split("-")
    start = _DATE + "-" * key.removeprefix(_DATE).startswith("-") + year
    return tuple("-".join([start, *rest[:count]]) for count in range(len(rest) + 1))
