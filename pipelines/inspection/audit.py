"""``synth audit FILE``: defects of any visual QA file, ours or not: Parquet, JSON or JSON lines."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.table import Table
from rich.text import Text

from pipelines.agent.transcript import TOKEN
from pipelines.errors import ConfigError
from pipelines.inspection.samples import Sample, make_sample, read_samples
from pipelines.release.transcript import PLACEHOLDER

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
    for number, row in enumerate(read_samples(path)):
        sample = make_sample(row, number, path)
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
    return re.search(rf"(?<!\w){re.escape(folded)}(?!\w)", question.casefold()) is not None


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
