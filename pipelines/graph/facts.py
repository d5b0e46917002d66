"""All facts that infoboxes show, by relation and by value, also those with several values: what counting looks up.

A relation here is the stem of a key: ``leader_name1`` and ``leader_name2`` are two values of ``leader_name``. Fields of
layout are left out. :mod:`pipelines.graph.matching` says of one entity what this index says of all of them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.store import Corpus
from pipelines.graph.relations import is_layout, stem_key
from pipelines.graph.values import PADDING, Shown, Wanted, fold_names, is_number, read_shown, read_wanted
from pipelines.scoring.dates import Date

Nodes = npt.NDArray[np.uint32]
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
    def _shown(self) -> list[Shown]:
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
