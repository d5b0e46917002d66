"""``synth audit FILE``: find defects of any visual QA file (Parquet, JSON, JSON lines), whatever its column names."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table
from rich.text import Text

from pipelines.agent.transcript import TOKEN
from pipelines.errors import ConfigError, RecordFailed
from pipelines.names import compile_phrase
from pipelines.pictures import probe_picture
from pipelines.release.rows import PLACEHOLDER

QUESTION_COLUMNS = ("question", "query", "problem", "instruction", "final_question")
ANSWER_COLUMNS = ("answer", "answers", "ground_truth", "final_answer", "label", "answer_aliases", "candidate_answers")
IMAGE_COLUMNS = ("image", "images", "image_path", "image_paths", "image_url", "image_urls", "img", "image_file")
MESSAGE_COLUMNS = ("messages", "conversations", "prompt")
ID_COLUMNS = ("id", "question_id", "data_id", "record_id", "qid", "index")
NESTED_COLUMNS = ("extra_info", "reward_model")
REMOTE = ("http://", "https://", "data:", "s3://", "hf://")
ROWS_AT_ONCE = 50


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


def read_samples(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a file's rows.

    Raises:
        ConfigError: if the file is missing, of another format, or cannot be parsed.
    """
    if path.is_dir():
        raise ConfigError(f"audit {path}: is a folder; name a .parquet, .json or .jsonl file in it")
    if not path.is_file():
        raise ConfigError(f"audit {path}: no such file")
    readers = {".parquet": _read_parquet, ".jsonl": _read_lines, ".ndjson": _read_lines, ".json": _read_document}
    reader = readers.get(path.suffix)
    if reader is None:
        raise ConfigError(f"audit {path}: {path.suffix or 'no suffix'} is not read; give one of {', '.join(readers)}")
    try:
        yield from reader(path)
    except (pa.ArrowInvalid, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"audit {path}: not a readable {path.suffix} file: {error}") from error


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as source:
        for group in range(source.num_row_groups):
            # Asked for all at once, it would keep every group that it has read.
            for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                yield from batch.to_pylist()


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _check_row(json.loads(line), path, f"line {number}")


def _read_document(path: Path) -> Iterator[dict[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = lists[0] if len(lists) == 1 else document
    if not isinstance(document, list):
        raise ConfigError(f"audit {path}: give a list of rows, or an object with one list in it")
    for number, row in enumerate(document):
        yield _check_row(row, path, f"row {number}")


def _check_row(row: object, path: Path, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ConfigError(f"audit {path}: {where} is no object")
    return row


def make_sample(row: Mapping[str, Any], number: int, path: Path) -> Sample:
    """Return a row as a sample; ``number`` is its id when it has none.

    Raises:
        ConfigError: if there is neither a question column nor messages.
    """
    flat = dict(row)
    for name in NESTED_COLUMNS:
        inner = row.get(name)
        flat = (inner if isinstance(inner, dict) else {}) | flat
    messages = [text for name in MESSAGE_COLUMNS for text in _list_contents(flat.get(name))]
    questions = [str(flat[name]) for name in QUESTION_COLUMNS if flat.get(name) is not None]
    if not messages and not any(name in flat for name in QUESTION_COLUMNS):
        known = ", ".join(QUESTION_COLUMNS + MESSAGE_COLUMNS)
        raise ConfigError(
            f"audit {path}: row {number} has no question; its columns are {sorted(row)}, known are {known}"
        )
    question = questions[0] if questions else messages[0].replace("<image>", "").strip() if messages else ""
    return Sample(
        id=next((str(flat[name]) for name in ID_COLUMNS if flat.get(name) is not None), str(number)),
        question=question,
        answers=tuple(text for name in ANSWER_COLUMNS for text in _list_texts(flat.get(name))),
        images=tuple(image for name in IMAGE_COLUMNS for image in _list_images(flat.get(name), path.parent)),
        texts=tuple(messages) or (question,),
        has_messages=bool(messages),
    )


def _list_contents(value: Any) -> Iterator[str]:  # noqa: ANN401 - a foreign value
    if isinstance(value, list):
        for message in value:
            content = message.get("content", message.get("value")) if isinstance(message, dict) else None
            if isinstance(content, str):
                yield content
    elif isinstance(value, str):
        yield value


def _list_texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - a foreign value
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner)
    elif value is not None and not isinstance(value, dict):
        yield str(value)


def _list_images(value: Any, folder: Path) -> Iterator[SampleImage]:  # noqa: ANN401 - a foreign value
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_images(inner, folder) if inner is not None else (SampleImage("", missing=True),)
    elif isinstance(value, bytes):
        yield _open_bytes(value)
    elif isinstance(value, dict):
        content, name = value.get("bytes"), value.get("path") or value.get("image") or value.get("url")
        yield _open_bytes(content) if isinstance(content, bytes) and content else _find_file(name, folder)
    elif value is not None:
        yield _find_file(value, folder)


def _find_file(name: Any, folder: Path) -> SampleImage:  # noqa: ANN401 - a foreign value
    if not isinstance(name, str) or not name.strip():
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
