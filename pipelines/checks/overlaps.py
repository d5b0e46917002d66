"""What rows of other people's files repeat of one another, within a file and between files.

In memory are the indexes alone: of a row its id, some numbers and what :class:`pipelines.checks.near.TextIndex` holds,
of a distinct picture what :class:`pipelines.checks.copies.PictureIndex` holds. No text and no picture is kept: a row of
thirteen words takes about 4 kB (measured on 12,000), so a million take 4 GB.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.checks.copies import PictureIndex, describe_picture
from pipelines.checks.foreign import SHORT, type_foreign
from pipelines.checks.near import TextIndex
from pipelines.errors import RecordFailed
from pipelines.names import fold_name, is_common_word

SIMILARITY = 0.8
"""Jaccard similarity of word triples from which two questions are near duplicates."""
SPECIFIC_WORDS = 12
"""Words from which a question is one of a kind, even if it names nothing."""
BEGINNING, END = 5, 3
"""Words of a question that make its template: those between them may be anything."""
ENDS = 1000
"""Characters of either end of a question in which its template is looked for."""
FEW = 3
"""Rows that may share an answer before it is a class that many things belong to."""
RARE_LETTERS = 7
_SLOTS = re.compile(
    r"[“\"«][^”\"»]+[”\"»]|(?<=[^\s.?!:;\"“”‘'(«]) +[A-Z\u00c0-\u00de][\w’'-]*(?:,? (?:of |the |de )?[A-Z\u00c0-\u00de]"
    r"[\w’'-]*)*|\d[\d.,]*"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture that a question is asked with."""

    mark: str
    """sha256 of its content, or its address."""
    data: bytes = b""
    """Empty for one that cannot be opened, or shows too little to be known again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row is."""

    file: int
    number: int
    id: str


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A row as far as it can be repeated."""

    place: Place
    question: str
    answers: tuple[str, ...]
    entity: str
    pictures: tuple[Shown, ...]
    texts: tuple[str, ...]
    """Of a conversation, whose question may be answered more than once; else empty."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A row that repeats another one."""

    name: str
    row: Place
    other: Place
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered of a row, digests of eight bytes each."""

    place: Place
    text: int
    answer: int
    picture: int
    """Of the first picture that its own looks like; 0 without one."""
    specific: bool


@dataclass(slots=True)
class Repeats:
    """Rows of one or several files, and which of them repeat earlier ones."""

    rows: list[_Known] = field(default_factory=list)
    _first: dict[int, int] = field(default_factory=dict)
    """Number of the first row with a value, by a hash of what it is, its file (-1 for any) and the value."""
    _distinct: Counter[int] = field(default_factory=Counter)
    """Pictures by file."""
    _answers: Counter[tuple[int, int]] = field(default_factory=Counter)
    _pictures: PictureIndex = field(default_factory=PictureIndex)
    _like: dict[str, str] = field(default_factory=dict)
    """The first picture that each picture looks like, perhaps itself."""
    _texts: TextIndex = field(default_factory=lambda: TextIndex(SIMILARITY))

    def find(self, row: AskedRow) -> Iterator[Repeat]:
        """Yield what a row repeats of earlier ones, and remember it."""
        told = row.pictures[:1] if row.texts else row.pictures
        likes = [self._find_like(picture) for picture in told]
        answer = type_foreign(row.answers[0]).key if row.answers else ""
        known = _Known(
            row.place,
            digest(fold_name(row.question)),
            digest(answer) if answer else 0,
            digest(likes[0]) if likes else 0,
            is_specific(row.question),
        )
        number = len(self.rows)
        self.rows.append(known)
        self._answers[row.place.file, known.answer] += 1
        found = [*self._find_own(row, known), *self._find_shown(row, known, [*zip(told, likes, strict=True)])]
        found += self._find_overlaps(row, known, answer, likes)
        if row.question.strip():
            self._texts.add([(str(number), row.question)])
        yield from {repeat.name: repeat for repeat in reversed(found)}.values()

    def find_near(self) -> Iterator[Repeat]:
        """Yield each question that nearly repeats another one with the same picture, or the same rare answer, once."""
        seen: set[tuple[str, Place]] = set()
        for pair in self._texts.find_pairs():
            later, earlier = sorted((self.rows[int(pair.first)], self.rows[int(pair.second)]),
                                    key=lambda known: (known.place.file, known.place.number), reverse=True)  # fmt: skip
            if later.text == earlier.text or _is_one_row(later.place, earlier.place):
                continue
            if (later.picture and later.picture == earlier.picture) or self._share_answer(later, earlier):
                within = later.place.file == earlier.place.file
                name = "near-duplicate-question" if within else "overlap-question"
                if (name, later.place) not in seen:
                    seen.add((name, later.place))
                    yield Repeat(name, later.place, earlier.place, f"{pair.similarity:.0%} alike")

    def count_pictures(self, file: int) -> int:
        """Return how many distinct pictures a file's questions are asked with."""
        return self._distinct[file]

    def _share_answer(self, one: _Known, other: _Known) -> bool:
        rare = all(self._answers[each.place.file, each.answer] <= FEW for each in (one, other))
        return bool(one.answer) and one.answer == other.answer and one.specific and other.specific and rare

    def _find_like(self, picture: Shown) -> str:
        """Return the mark of the first picture that this one looks like, or its own mark."""
        if picture.mark not in self._like:
            self._like[picture.mark] = picture.mark
            if picture.data:
                try:
                    description = describe_picture(picture.data)
                except RecordFailed:
                    # The audit says so of the file; here it is compared by its content alone.
                    return picture.mark
                found = self._pictures.find(description)
                self._pictures.add(picture.mark, description)
                self._like[picture.mark] = self._like[found[0]] if found else picture.mark
        return self._like[picture.mark]

    def _find_own(self, row: AskedRow, known: _Known) -> Iterator[Repeat]:
        """Yield what a row repeats of its own file but for its pictures."""
        first = self._see("duplicate-id", row.place.file, digest(row.place.id))
        if first is not None:
            yield Repeat("duplicate-id", known.place, first.place)
        if not row.question.strip():
            return
        marks = [picture.mark for picture in row.pictures]
        # Two conversations about one question may take two ways, to one answer.
        same = self._see("duplicate-question", row.place.file, digest(fold_name(row.question), *marks, *row.texts))
        asked = None
        if row.answers and len(row.answers[0].split()) <= SHORT:
            asked = self._see("contradiction", row.place.file, digest(fold_name(row.question), *marks))
        if asked is not None and asked.answer != known.answer:
            yield Repeat("contradiction", known.place, asked.place)
        elif same is not None:
            yield Repeat("duplicate-question", known.place, same.place)

    def _find_shown(self, row: AskedRow, known: _Known, pictures: Sequence[tuple[Shown, str]]) -> Iterator[Repeat]:
        """Yield the pictures of a row that other rows have, with another question, or as copies."""
        for picture, like in pictures:
            seen = len(self._first)
            own = self._see("picture", row.place.file, digest(picture.mark))
            self._distinct[row.place.file] += len(self._first) - seen
            near = self._see("like", row.place.file, digest(like))
            if own is not None and own.text != known.text and not _is_one_row(own.place, known.place):
                yield Repeat("duplicate-image", known.place, own.place)
            elif own is None and near is not None and not _is_one_row(near.place, known.place):
                yield Repeat("like-image", known.place, near.place)

    def _find_overlaps(self, row: AskedRow, known: _Known, answer: str, likes: Sequence[str]) -> Iterator[Repeat]:
        """Yield what a row shares with earlier files."""
        entity = fold_name(row.entity)
        values: list[tuple[str, int]] = [("overlap-picture", digest(like)) for like in likes]
        if known.picture:
            values.append(("overlap-question", digest(str(known.text), str(known.picture))))
        if known.answer and known.specific:
            values.append(("overlap-question", digest(str(known.text), str(known.answer))))
        if entity:
            values += [("overlap-entity", digest(entity)), ("overlap-fact", digest(entity, answer))]
        if is_rare(answer) and self._answers[row.place.file, known.answer] <= FEW:
            values.append(("overlap-answer", known.answer))
        shared: set[str] = set()
        for name, value in values:
            other = self._see(name, -1, value)
            # A question that is shared is so with its answer.
            if other is not None and other.place.file != row.place.file and not (name == "overlap-answer" and shared):
                shared.add(name)
                yield Repeat(name, known.place, other.place)

    def _see(self, name: str, file: int, value: int) -> _Known | None:
        """Return the first row with a value, None if it is the one that was added last."""
        last = len(self.rows) - 1
        first = self._first.setdefault(hash((name, file, value)), last)
        return None if first == last else self.rows[first]


def digest(*parts: str) -> int:
    """Return eight bytes of a digest as a number."""
    whole = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "big")


def make_skeleton(question: str) -> str:
    """Return a question's beginning and end without names, quotations and numbers: what stands between is a slot."""
    if len(question) > 2 * ENDS:
        question = f"{question[:ENDS]} {question[-ENDS:]}"
    words = fold_name(_SLOTS.sub(" _ ", question)).split()
    return " ".join(words if len(words) <= BEGINNING + END else (*words[:BEGINNING], "_", *words[-END:]))


def is_specific(question: str) -> bool:
    """Say whether a question names something, or is too long to be asked of many pictures."""
    return len(question.split()) >= SPECIFIC_WORDS or _SLOTS.search(question[:ENDS]) is not None


def is_rare(answer: str) -> bool:
    """Say whether an answer, by its key, is a name of several words or of a long and rare one."""
    kind, _, value = answer.partition(":")
    words = fold_name(value).split()
    if kind != "text" or not 1 <= len(words) <= SPECIFIC_WORDS or any(map(str.isdigit, value)):
        return False
    return len(words) > 1 or (len(words[0]) >= RARE_LETTERS and not is_common_word(words[0]))


def _is_one_row(one: Place, other: Place) -> bool:
    """Say whether two questions come of one row of a file, as LiveVQA's two levels do: they have one picture."""
    stem = one.id.rpartition("/")[0]
    return one.file == other.file and bool(stem) and other.id.rpartition("/")[0] == stem
