"""Rows of foreign visual QA files, whatever their columns are called."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import ConfigError, RecordFailed
from pipelines.pictures import probe_picture

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
    """Where placeholders are looked for: the messages, or the question when there are none."""
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
