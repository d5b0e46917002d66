"""Decontamination: which questions share words, facts or pictures with benchmarks (research/quality.md C1).

Rules of words are those of the literature. Runs of 8 words that cover half of a question are Tülu 3's (arXiv
2411.15124), a run of 13 is the longest of GPT-3 (arXiv 2005.14165, appendix C); near texts are those of
:mod:`pipelines.checks.near`. Questions of a path are long, and two of one template are not one question. So runs must
cover half of the longer question or nearly all of the benchmark's; and the answer must be the same, or what is shared
must hold half of the benchmark's names and numbers. An answer alone is no hit; with the entity it is. Entities
meet by title: proofs hold no other name, so a benchmark that writes an alias shares its entity unseen.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from pipelines.checks.copies import PictureIndex, describe_picture
from pipelines.checks.near import Sketches, find_alike, shingle_text
from pipelines.checks.sets import Pictured, list_entities
from pipelines.config.settings import BenchmarkConfig
from pipelines.corpus.layouts import (
    ForeignQuestion,
    PictureFolder,
    UnreadRow,
    read_entities,
    read_layout,
    read_questions,
    read_rows,
)
from pipelines.errors import ConfigError, RecordFailed
from pipelines.graph.answers import type_reference
from pipelines.ids import digest_value
from pipelines.names import UNSPACED, fold_name, is_common_word, list_writings, split_words
from schemas.base import Rejection
from schemas.datasets import Picture, Scene
from schemas.manifest import BenchmarkEntry
from schemas.proofs import Answer
from schemas.reasons import BenchmarkReason

RUN: Final = 8
"""Words of a run that is looked for."""
LONG_RUN: Final = 13
"""Words of a run that is a hit by itself."""
COVERED: Final = 0.5
"""Share of the longer question's words, and of the names and numbers in the benchmark's, that must be shared."""
CONTAINED: Final = 0.8
"""Share of the benchmark's words that is enough, however long the other question is."""
NEAR: Final = 0.8
"""Similarity from which two texts are near: Jaccard of their runs of three words."""
TEMPLATED: Final = 3
"""Questions of one benchmark from which on a run, or a whole text, is its template and says nothing."""
SENTENCE: Final = 40
"""Words of the longest answer whose phrases are taken for answers: WebQA's are sentences, those of reports too many."""
PHRASE: Final = 4
AT_ONCE: Final = 1024
"""Questions that are compared at once."""
WELL_KNOWN: Final = (
    "MMSearch", "BrowseComp-VL", "SimpleVQA", "InfoSeek", "FVQA-test", "LiveVQA", "VDR-Bench", "MM-SearchExam",
)  # fmt: skip
"""Benchmarks that systems of this kind report."""
_HIT = re.compile(r"(?:^|; )(\S+) [^;]*: (benchmark-[a-z]+)(?=;|$)")
ReadPicture = Callable[[Picture], bytes | None]


class OwnQuestion(Pictured, Protocol):
    """A question of ours, released or to be."""

    @property
    def text(self) -> str:
        """As asked."""

    @property
    def answer(self) -> Answer:
        """Typed."""

    @property
    def scene(self) -> Scene | None:
        """The other pictures that it is asked with, if it is a scene."""


class Overlap(NamedTuple):
    """What a question shares with a row of a benchmark."""

    record_id: str
    benchmark: str
    row: str
    kind: BenchmarkReason


@dataclass(frozen=True, slots=True)
class BenchmarkQuestion:
    """A benchmark's question as it is compared."""

    benchmark: str
    row: str
    text: str
    """Its folded words, a space before and after each."""
    answers: frozenset[str]
    """Folded forms; empty if the file gives none."""
    specific: frozenset[str]
    """Words of names and numbers in the question."""
    entity: str
    """Folded; empty where the file does not say."""

    @property
    def words(self) -> tuple[str, ...]:
        """Folded."""
        return tuple(self.text.split())


def _list_specific(text: str) -> Iterator[str]:
    begins = True
    for mark in text.split():
        letters = mark.lstrip(_OPENING)
        if UNSPACED.search(mark) or any(map(str.isdigit, mark)) or (letters[:1].isupper() and not begins):
            yield from (word for word in split_words(mark) if not is_common_word(word))
        begins = mark.endswith(_ENDING)


_OPENING = "\"'“”‘’«(["
_ENDING = (".", "?", "!", ":", '."', '?"', ".”", "?”")


def _list_answers(forms: Iterable[str]) -> Iterator[str]:
    for form in forms:
        words = fold_name(form).split()
        yield " ".join(words)
        if PHRASE < len(words) <= SENTENCE:
            for size in range(1, PHRASE + 1):
                yield from (" ".join(words[start : start + size]) for start in range(len(words) - size + 1))


def _hold(name: str, asked: ForeignQuestion, entity: str) -> BenchmarkQuestion:
    forms = [form for form in asked.answers if form.strip()]
    typed = type_reference(asked.question, forms[0], forms[1:]) if forms else None
    known = {typed.key, *map(fold_name, typed.aliases)} if typed else set[str]()
    answers = frozenset(filter(None, known.union(_list_answers(forms))))
    text, specific = _join_words(asked.question), frozenset(_list_specific(asked.question))
    return BenchmarkQuestion(name, asked.id.replace(";", ","), text, answers, specific, fold_name(entity))


def _join_words(text: str) -> str:
    return f" {' '.join(split_words(text))} "


Runs = Mapping[str, Sequence[tuple[int, int]]]


def index_runs(held: Mapping[int, BenchmarkQuestion]) -> Runs:
    """Return runs of words with the questions that hold them and their place there.

    Runs that several questions of one benchmark share are left out. ``held`` has each text of a benchmark once.
    """
    found: defaultdict[str, defaultdict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for number, each in held.items():
        for place, run in enumerate(_list_runs(each.words)):
            found[run][each.benchmark].append((number, place))
    return {
        run: [where for spots in named.values() if len(spots) < TEMPLATED for where in spots]
        for run, named in found.items()
    }


def _list_runs(words: Sequence[str]) -> list[str]:
    return [" ".join(words[place : place + RUN]) for place in range(len(words) - RUN + 1)]


class BenchmarkIndex:
    """The questions of benchmarks, found by what a question of ours shares with them."""

    def __init__(self, held: Sequence[BenchmarkQuestion], pictures: PictureIndex) -> None:
        """Take questions, and their pictures, whose marks are the questions' places."""
        self._held = held
        self._pictures = pictures
        self._alike: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._by_answer: defaultdict[str, list[int]] = defaultdict(list)
        for place, each in enumerate(held):
            self._alike[each.text][each.benchmark].append(place)
            for answer in each.answers:
                self._by_answer[answer].append(place)
        # A text that a benchmark asks of many pictures is its template: with whom it is shared says nothing.
        told = {places[0]: held[places[0]] for each in self._alike.values() for places in each.values()
                if len(places) < TEMPLATED}  # fmt: skip
        self._runs, self._told = index_runs(told), list(told)
        self._near = Sketches([shingle_text(each.text) for each in told.values()], NEAR)

    def find(self, rows: Sequence[OwnQuestion], read: ReadPicture | None) -> Iterator[Overlap]:
        """Yield what questions share with benchmarks, question by question."""
        texts, near = [_join_words(row.text) for row in rows], defaultdict[int, list[int]](list)
        for one, other, _ in find_alike(Sketches(list(map(shingle_text, texts)), NEAR), self._near):
            near[one].append(self._told[other])
        for number, (row, own) in enumerate(zip(rows, texts, strict=True)):
            answers = {row.answer.key, *map(fold_name, (row.answer.surface, *row.answer.aliases))}
            found = dict[tuple[int, BenchmarkReason], None]()
            found |= dict.fromkeys(self._find_words(own, answers, near[number]))
            found |= dict.fromkeys(self._find_facts(row, answers))
            if read is not None:
                found |= dict.fromkeys(self._find_pictures(row, read))
            for place, kind in found:
                yield Overlap(row.record_id, self._held[place].benchmark, self._held[place].row, kind)

    def _find_words(self, text: str, answers: set[str], near: Sequence[int]) -> Iterator[tuple[int, BenchmarkReason]]:
        own = text.split()
        same = [place for places in self._alike.get(text, {}).values() if len(places) < TEMPLATED for place in places]
        yield from ((place, "benchmark-question") for place in same if self._is_asked(place, set(own), answers))
        shares: defaultdict[int, set[int]] = defaultdict(set)
        for run in dict.fromkeys(_list_runs(own)):
            for place, start in self._runs.get(run, ()):
                shares[place].update(range(start, start + RUN))
        for place, places in shares.items():
            words = self._held[place].words
            enough = min(COVERED * max(len(words), len(own)), CONTAINED * len(words))
            shared = {words[each] for each in places}
            if (len(places) >= enough or _is_long(places)) and self._tells(place, shared, answers):
                yield place, "benchmark-words"
        yield from ((place, "benchmark-near") for place in near if self._is_asked(place, set(own), answers))

    def _tells(self, place: int, shared: set[str], answers: set[str]) -> bool:
        held = self._held[place]
        if not held.answers or not answers.isdisjoint(held.answers):
            return True
        return bool(held.specific) and len(held.specific & shared) >= COVERED * len(held.specific)

    def _is_asked(self, place: int, shared: set[str], answers: set[str]) -> bool:
        # Of a text without names, uncommon words tell.
        held = self._held[place]
        rare = {word for word in held.words if not is_common_word(word)}
        unnamed = not held.specific and bool(rare) and len(rare & shared) >= COVERED * len(rare)
        return unnamed or self._tells(place, shared, answers)

    def _find_facts(self, row: OwnQuestion, answers: set[str]) -> Iterator[tuple[int, BenchmarkReason]]:
        entities = list_entities(row)
        if not entities:
            return
        same = sorted({place for answer in answers for place in self._by_answer.get(answer, ())})
        last, first = (self._list_about(same, entities[place]) for place in (-1, 0))
        yield from ((place, "benchmark-fact") for place in sorted(last))
        yield from ((place, "benchmark-entity") for place in sorted(first - last))

    def _list_about(self, places: Sequence[int], title: str) -> set[int]:
        names = {fold_name(name) for name in list_writings(title)} - {""}
        found = {place for place in places if self._held[place].entity in names}
        for name in names:
            if not is_common_word(name):
                spelled = f" {name} "
                found.update([place for place in places if spelled in self._held[place].text])
        return found

    def _find_pictures(self, row: OwnQuestion, read: ReadPicture) -> Iterator[tuple[int, BenchmarkReason]]:
        shown = [row.original or row.picture, *(part.picture for part in (row.scene.parts if row.scene else ()))]
        for picture in filter(None, shown):
            data = read(picture)
            yield from ((place, "benchmark-picture") for place in (self._find_copies(data) if data else ()))

    def _find_copies(self, data: bytes) -> list[int]:
        return sorted(map(int, self._pictures.find(describe_picture(data))))

    def find_shown(self, record_id: str, data: bytes) -> Iterator[Overlap]:
        """Yield the benchmark questions whose picture is that of a question of ours, by its bytes."""
        for place in self._find_copies(data):
            yield Overlap(record_id, self._held[place].benchmark, self._held[place].row, "benchmark-picture")


def _is_long(places: set[int]) -> bool:
    ends = [place for place in places if place + 1 not in places]
    return any(all(end - back in places for back in range(LONG_RUN)) for end in ends)


@dataclass(frozen=True)
class Benchmarks:
    """Benchmarks that questions are kept apart from. Nothing is read before it is needed."""

    settings: tuple[BenchmarkConfig, ...] = ()
    digest_file: Callable[[Path], str] = str
    """Of the contents of a file, or of all files of a folder with their names."""

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """Digest of each benchmark: its name, what else is said of it, and its files."""
        return tuple(map(self._digest, self.settings))

    def _digest(self, own: BenchmarkConfig) -> str:
        files = [[self.digest_file(Path(each)) for each in paths if each]
                 for paths in (own.path, (own.images,), (own.entities,))]  # fmt: skip
        return digest_value([own.name, own.layout, sorted(own.columns.items()), files])

    @cached_property
    def _opened(self) -> tuple[BenchmarkIndex, tuple[BenchmarkEntry, ...]]:
        held, pictures = list[BenchmarkQuestion](), PictureIndex()
        entries = [
            _read_benchmark(own, digest, held, pictures)
            for own, digest in zip(self.settings, self.digests, strict=True)
        ]
        return BenchmarkIndex(held, pictures), tuple(entries)

    @property
    def index(self) -> BenchmarkIndex:
        """All their questions."""
        return self._opened[0]

    @property
    def entries(self) -> tuple[BenchmarkEntry, ...]:
        """What was read of each, without hits."""
        return self._opened[1] if self.settings else ()

    def refuse(self, rows: Iterable[OwnQuestion], read: ReadPicture | None) -> dict[str, Rejection]:
        """Return the rejections of questions that share something with a benchmark, by what was found first."""
        found: defaultdict[str, list[Overlap]] = defaultdict(list)
        for overlap in find_overlaps(rows, self, read):
            found[overlap.record_id].append(overlap)
        return {record_id: _refuse(record_id, overlaps) for record_id, overlaps in found.items()}


def find_overlaps(rows: Iterable[OwnQuestion], benchmarks: Benchmarks, read: ReadPicture | None) -> Iterator[Overlap]:
    """Yield what questions share with benchmarks: rows of a stage or of a release's proofs, in their order."""
    asked = iter(rows if benchmarks.settings else ())
    while batch := list(islice(asked, AT_ONCE)):
        yield from benchmarks.index.find(batch, read)


def _refuse(record_id: str, overlaps: Sequence[Overlap]) -> Rejection:
    firsts = {(each.benchmark, each.kind): each for each in reversed(overlaps)}
    told = sorted(f"{each.benchmark} {each.row}: {each.kind}" for each in firsts.values())
    kinds = tuple(dict.fromkeys(each.kind for each in overlaps))
    return Rejection(record_id=record_id, reason=kinds[0], detail="; ".join(told), codes=kinds)


def count_hits(rejections: Iterable[Rejection]) -> Mapping[str, Mapping[str, int]]:
    """Return, by benchmark and kind, how many questions were refused for it; of refusals by a benchmark alone."""
    hits: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for rejection in rejections:
        for name, kind in dict.fromkeys(_HIT.findall(rejection.detail)):
            hits[name][kind] += 1
    return {name: dict(sorted(kinds.items())) for name, kinds in hits.items()}


def probe_benchmarks(benchmarks: Sequence[BenchmarkConfig]) -> None:
    """Look whether the files of benchmarks are there and hold questions, before anything is paid."""
    names = [own.name for own in benchmarks]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"configuration: releases.benchmarks: {', '.join(twice)} twice; give each its own name")
    for own in benchmarks:
        for named in filter(None, (*own.path, own.images, own.entities)):
            if not Path(named).exists():
                raise ConfigError(f"configuration: releases.benchmarks {own.name}: {named}: no such file")
        if own.images:
            PictureFolder(Path(own.images)).probe()
        if own.entities:
            next(read_rows(Path(own.entities)), None)
        for path in own.path:
            rows = read_questions(Path(path), own.layout, own.columns)
            if not any(isinstance(row, ForeignQuestion) and row.question for row in rows):
                raise ConfigError(
                    f"configuration: releases.benchmarks {own.name}: {path} has no question; set its layout or columns"
                )


def _read_benchmark(
    own: BenchmarkConfig, digest: str, held: list[BenchmarkQuestion], pictures: PictureIndex
) -> BenchmarkEntry:
    folder = PictureFolder(Path(own.images)) if own.images else None
    entities = read_entities(Path(own.entities)) if own.entities else {}
    counts: Counter[str] = Counter()
    layouts = {own.layout or ("columns" if own.columns else read_layout(Path(path))): None for path in own.path}
    for path in own.path:
        for asked in read_questions(Path(path), own.layout, own.columns):
            if isinstance(asked, UnreadRow) or not asked.question:
                counts["unread"] += 1
                continue
            counts["questions"] += 1
            for picture in asked.pictures:
                data = picture.content or (folder.read(picture) if folder else None)
                counts["pictures" if _add_picture(pictures, len(held), data) else "missing"] += 1
            held.append(_hold(own.name, asked, asked.entity or entities.get(asked.id, "")))
    return BenchmarkEntry(
        name=own.name,
        layouts=tuple(layouts),
        digest=digest,
        questions=counts["questions"],
        unread=counts["unread"],
        pictures=counts["pictures"],
        pictures_missing=counts["missing"],
    )


def _add_picture(pictures: PictureIndex, place: int, data: bytes | None) -> bool:
    try:
        description = describe_picture(data) if data else None
    except RecordFailed:
        description = None
    if description is not None:
        pictures.add(str(place), description)
    return description is not None


def list_unchecked(entries: Sequence[BenchmarkEntry]) -> list[str]:
    """Return the well-known benchmarks that no configured one is named as, whatever case and marks.

    A layout tells nothing: other files have it too, and FVQA's training rows have that of its test.
    """
    names = {_squeeze(entry.name) for entry in entries}
    return [name for name in WELL_KNOWN if _squeeze(name) not in names]


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def describe_benchmarks(entries: Sequence[BenchmarkEntry]) -> dict[str, dict[str, str | int]]:
    """Return what questions were kept apart from, and what was not looked at, for card and report."""
    table: dict[str, dict[str, str | int]] = {}
    for entry in entries:
        told = {"refused": sum(entry.hits.values()), **{kind: entry.hits[kind] for kind in sorted(entry.hits)}}
        table[entry.name] = {
            "layout": " and ".join(entry.layouts),
            "questions": entry.questions,
            "rows not read": entry.unread,
            "pictures": entry.pictures,
            "pictures missing": entry.pictures_missing,
            "digest": entry.digest,
            **told,
        }
    why = {"why": "no benchmark of this name is configured"}
    return table | {f"not checked: {name}": dict(why) for name in list_unchecked(entries)}
