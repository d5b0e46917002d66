"""``synth audit FILE``: find defects of any visual QA file (Parquet, JSON, JSON lines), whatever its column names."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from pipelines.agent.transcript import TOKEN
from pipelines.corpus.layouts import (
    MESSAGE_COLUMNS,
    PLACEHOLDER,
    QUESTION_COLUMNS,
    REMOTE,
    NamedPicture,
    read_by_columns,
    read_rows,
)
from pipelines.errors import ConfigError, RecordFailed
from pipelines.names import compile_phrase
from pipelines.pictures import probe_picture


@dataclass(frozen=True, slots=True)
class SampleImage:
    """A picture of a row. ``mark`` tells pictures apart: sha256 of embedded bytes, else path or address."""

    mark: str
    missing: bool = False
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A row as far as an audit needs it."""

    id: str
    question: str
    answers: tuple[str, ...]
    images: tuple[SampleImage, ...]
    texts: tuple[str, ...]
    """Texts searched for placeholders: the messages, or the question without messages."""
    has_messages: bool


def make_sample(row: Mapping[str, Any], key: str, path: Path) -> Sample:
    """Return a row as a sample; ``key`` is its id when it has none.

    Raises:
        ConfigError: if there is neither a question column nor messages.
    """
    read = read_by_columns(key, row)
    if read is None:
        known = ", ".join(QUESTION_COLUMNS + MESSAGE_COLUMNS)
        raise ConfigError(f"audit {path}: row {key} has no question; its columns are {sorted(row)}, known are {known}")
    images = tuple(_look_at(picture, path.parent) for picture in read.pictures)
    return Sample(read.id, read.question, read.answers, images, read.texts, read.has_messages)


def _look_at(picture: NamedPicture, folder: Path) -> SampleImage:
    return _open_bytes(picture.content) if picture.content else _find_file(picture.name, folder)


def _find_file(name: str, folder: Path) -> SampleImage:
    if not name.strip():
        return SampleImage("", missing=True)
    if name.startswith(REMOTE):
        return SampleImage(name)
    return SampleImage(name, missing=not (folder / name.removeprefix("file://")).is_file())


def _open_bytes(content: bytes) -> SampleImage:
    mark = hashlib.sha256(content).hexdigest()
    try:
        probe_picture(content)
    except RecordFailed:
        return SampleImage(mark, unreadable=True)
    return SampleImage(mark)


EXAMPLES = 5
SHORTEST_ANSWER = 2
DEFECTS: Final[dict[str, str]] = {
    "missing-question": "no question text",
    "missing-answer": "no answer",
    "missing-image": "no picture: none named, or a local file that is not there",
    "unreadable-image": "embedded bytes that are no whole JPEG, PNG, GIF or WebP picture",
    "answer-in-question": "the question says an answer, as whole words",
    "duplicate-question": "same question, pictures and messages as an earlier row",
    "duplicate-image": "a picture that an earlier row with another question has",
    "placeholder-mismatch": "the number of <image> in the text is not the number of pictures",
    "control-token": "a control token or another medium's placeholder in the text",
    "duplicate-id": "same id as an earlier row",
}


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect: how many rows have it, and the ids of the first of them."""

    name: str
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found in a file."""

    path: Path
    rows: int
    images: int
    """Distinct pictures by content, path or address."""
    defects: tuple[Defect, ...]

    @property
    def passed(self) -> bool:
        """Whether there are rows and none has a defect."""
        return self.rows > 0 and not self.defects


def audit_file(path: Path) -> AuditReport:
    """Read a file once and count its defects.

    Raises:
        ConfigError: if the file is missing, of another format, or has no question column.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    memory = Memory()
    rows = 0
    for key, row in read_rows(path):
        sample = make_sample(row, key, path)
        rows += 1
        for name in dict.fromkeys((*find_defects(sample), *memory.find_repeats(sample))):
            counts[name] += 1
            if len(found[name]) < EXAMPLES:
                found[name].append(sample.id)
    if not rows:
        raise ConfigError(f"audit {path}: the file has no rows")
    defects = tuple(Defect(name, counts[name], tuple(found[name])) for name in DEFECTS if counts[name])
    return AuditReport(path, rows, len(memory.images), defects)


def find_defects(sample: Sample) -> Iterator[str]:
    """Yield the defects that one row shows by itself."""
    if not sample.question.strip():
        yield "missing-question"
    if not any(answer.strip() for answer in sample.answers):
        yield "missing-answer"
    if not sample.images or any(image.missing for image in sample.images):
        yield "missing-image"
    if any(image.unreadable for image in sample.images):
        yield "unreadable-image"
    if any(contains_answer(sample.question, answer) for answer in sample.answers):
        yield "answer-in-question"
    placeholders = sum(text.count(PLACEHOLDER) for text in sample.texts)
    if (placeholders or sample.has_messages) and placeholders != len(sample.images):
        yield "placeholder-mismatch"
    if any(TOKEN.search(text.replace(PLACEHOLDER, "")) for text in sample.texts):
        yield "control-token"


def contains_answer(question: str, answer: str) -> bool:
    """Say whether a question holds an answer as whole words, case aside; one-letter answers are not looked for."""
    folded = answer.casefold().strip()
    if len(folded) < SHORTEST_ANSWER:
        return False
    return compile_phrase(folded).search(question.casefold()) is not None


@dataclass(slots=True)
class Memory:
    """What earlier rows had: ids, questions with their pictures, and each picture's first question."""

    ids: set[str] = field(default_factory=set)
    questions: set[str] = field(default_factory=set)
    images: dict[str, str] = field(default_factory=dict)

    def find_repeats(self, sample: Sample) -> Iterator[str]:
        """Yield what a row repeats, and remember it.

        Two conversations about one question are no duplicates of each other; of a conversation's pictures only the
        first is the question's own, the others are what tools showed.
        """
        text = " ".join(sample.question.casefold().split())
        marks = [image.mark for image in sample.images if image.mark]
        question = _digest([text, *marks, *(sample.texts if sample.has_messages else ())])
        told = marks[:1] if sample.has_messages else marks
        if sample.id in self.ids:
            yield "duplicate-id"
        if text and question in self.questions:
            yield "duplicate-question"
        elif any(self.images.get(mark, text) != text for mark in told):
            yield "duplicate-image"
        self.ids.add(sample.id)
        self.questions.add(question)
        for mark in marks:
            self.images.setdefault(mark, text)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def render_audit(report: AuditReport) -> Table:
    """Return the defects as a table, with counts, shares and the first ids."""
    title = Text(f"{report.path}: {report.rows} rows, {report.images} distinct pictures")
    table = Table("defect", "rows", "share", "what it is", "first ids", title=title)
    for defect in report.defects:
        share = f"{100 * defect.rows / report.rows:.1f}%"
        table.add_row(defect.name, str(defect.rows), share, DEFECTS[defect.name], Text(", ".join(defect.examples)))
    if not report.defects:
        table.add_row("none", "0", "0.0%", "", "")
    return table
