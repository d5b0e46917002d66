"""Read question files by other authors, row by row in one shape: published layouts, and tables by column names.

A layout is a function from a file's row to questions. ``read_questions`` reads any file and recognises its layout from
its rows. Files are hostile input: every read has a limit, and no picture name leads out of its folder.
"""

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.images import is_file
from pipelines.errors import ConfigError

Raw = Mapping[str, Any]
"""A row as its file has it, or a part of one."""

PLACEHOLDER = "<image>"
QUESTION_COLUMNS = ("question", "query", "problem", "final_question")
ANSWER_COLUMNS = ("answer", "answers", "ground_truth", "final_answer", "label", "gt_answer", "answer_aliases",
                  "candidate_answers", "alternative_gt_answers")  # fmt: skip
IMAGE_COLUMNS = ("image", "images", "image_path", "image_paths", "image_url", "image_urls", "img", "img_path",
                 "image_file", "query_image")  # fmt: skip
ID_COLUMNS = ("id", "question_id", "data_id", "sample_id", "record_id", "qid", "index")
REMOTE = ("http://", "https://", "data:", "s3://", "hf://")
ROWS_AT_ONCE = 8
"""Rows of a Parquet file in memory: each may hold pictures."""
LINE_BYTES = 64 << 20
"""Longest line of JSON."""
DOCUMENT_BYTES = 1 << 30
"""Largest JSON file that is not read line by line."""
PICTURE_BYTES = 128 << 20
LONGEST_NAME = 255
"""Of a file; a longer text is base64."""
SAMPLED_ROWS = 40
"""Rows from which a file's layout is recognised."""


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """A picture as a row gives it: its bytes or a name."""

    name: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class ForeignQuestion:
    """A question by another author."""

    id: str
    question: str
    """Without placeholders of pictures."""
    answers: tuple[str, ...]
    """The answer, then other accepted forms."""
    pictures: tuple[NamedPicture, ...]
    entity: str = ""
    """What the picture shows, if the file says so."""
    language: str = ""


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row that holds no question that its layout knows."""

    key: str
    why: str


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | UnreadRow]]:
    """Yield a file's rows, each with its key: that of an object of rows, else its number."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; give a .parquet, .json or .jsonl file")
    try:
        for key, row in _choose_reader(path)(path):
            yield key, row if isinstance(row, dict | UnreadRow) else UnreadRow(key, f"row {key} is no object")
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not a readable {path.suffix} file: {error}") from error


def _choose_reader(path: Path) -> Callable[[Path], Iterator[tuple[str, object]]]:
    with path.open("rb") as source:
        start = source.read(4096)
    if start.startswith(b"PAR1") or path.suffix in (".parquet", ".pq"):
        return _read_parquet
    first = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if path.suffix in (".jsonl", ".ndjson") and first != b"[":
        return _read_lines
    if path.suffix == ".json" or first in (b"[", b"{"):
        return _read_document
    raise ConfigError(f"{path}: {path.suffix or 'no suffix'} is not read; give Parquet, JSON or JSON lines")


def _read_parquet(path: Path) -> Iterator[tuple[str, object]]:
    number = 0
    with pq.ParquetFile(path) as source:
        for group in range(source.num_row_groups):
            # One iterator over all groups would keep every group that it has read.
            for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                for row in batch.to_pylist():
                    yield str(number), row
                    number += 1


def _read_lines(path: Path) -> Iterator[tuple[str, object]]:
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(LINE_BYTES + 1):
            if len(line) > LINE_BYTES:
                raise ConfigError(f"{path}: a line has more than {LINE_BYTES >> 20} MiB")
            if line.strip():
                yield str(number), _parse_line(line, number)
                number += 1


def _parse_line(line: bytes, number: int) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return UnreadRow(str(number), f"row {number} is no JSON: {error}")


def _read_document(path: Path) -> Iterator[tuple[str, object]]:
    if path.stat().st_size > DOCUMENT_BYTES:
        raise ConfigError(f"{path}: has more than {DOCUMENT_BYTES >> 30} GiB; give its rows as lines (.jsonl)")
    document = json.loads(path.read_bytes())
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if document and all(isinstance(value, dict) for value in document.values()):
            yield from document.items()
            return
        if len(lists) == 1:
            document = lists[0]
    if not isinstance(document, list):
        raise ConfigError(f"{path}: give a list of rows, or an object with one list, or with rows alone, in it")
    yield from ((str(number), row) for number, row in enumerate(document))


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner)
    elif isinstance(value, str) and value.startswith("["):
        yield from _list_written(value)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _list_written(value: str) -> Iterator[str]:
    try:
        written = json.loads(value)
    except (ValueError, RecursionError):
        written = [value]
    yield from (each for each in written if isinstance(each, str))


def _list_pictures(value: object) -> Iterator[NamedPicture]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_pictures(inner)
    elif isinstance(value, bytes):
        yield NamedPicture(content=value)
    elif isinstance(value, dict):
        name = next((value[key] for key in ("path", "image", "url") if isinstance(value.get(key), str)), "")
        content = value.get("bytes")
        yield NamedPicture(name, content) if isinstance(content, bytes) and content else _name_picture(name)
    elif isinstance(value, str):
        yield _name_picture(value)


def _name_picture(name: str) -> NamedPicture:
    name = name.strip()
    head, comma, encoded = name.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return NamedPicture(content=_decode(encoded))
    content = _decode(name) if len(name) > LONGEST_NAME and not name.startswith(REMOTE) else b""
    return NamedPicture(content=content) if content else NamedPicture(name)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _ask(key: str, question: object, answers: object, pictures: object, row: Raw | None = None) -> ForeignQuestion:
    row = row or {}
    return ForeignQuestion(
        next((str(row[name]) for name in ID_COLUMNS if isinstance(row.get(name), str | int)), key),
        question.replace(PLACEHOLDER, "").strip() if isinstance(question, str) else "",
        tuple(_list_texts(answers)),
        tuple(_list_pictures(pictures)),
        language=_read_text(row, "language"),
    )


def _read_text(row: Raw, name: str) -> str:
    value = row.get(name)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def read_columns(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """Any table with usual names of columns, or with names that the configuration maps to usual ones.

    So read MM-SearchExam and the raw trajectories of VSearcher, MMSearch, SimpleVQA and VDR-Bench, and our releases.
    """
    if any(name in row for name in QUESTION_COLUMNS):
        asked = next((row[name] for name in QUESTION_COLUMNS if isinstance(row.get(name), str)), "")
        answers = [row.get(name) for name in ANSWER_COLUMNS]
        pictures = chain.from_iterable(_list_pictures(row.get(name)) for name in IMAGE_COLUMNS)
        entity = _read_text(row, "entity")
        yield replace(_ask(key, asked, answers, (), row), pictures=tuple(pictures), entity=entity)


def read_fvqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """FVQA of MMSearch-R1, its Parquet files and ``.pq``, and SenseNova-MARS's JSON lines of the same columns.

    ``prompt`` is a list of messages of which the user's is the question, ``images`` hold bytes or paths,
    ``reward_model`` has ``ground_truth`` and ``candidate_answers``, a list written as JSON.
    https://huggingface.co/datasets/lmms-lab/FVQA and the loader of https://github.com/EvolvingLMMs-Lab/multimodal-search-r1
    """
    prompt, reward = row.get("prompt"), row.get("reward_model")
    turns = [turn for turn in (prompt if isinstance(prompt, list) else ()) if isinstance(turn, dict)]
    asked = next((turn.get("content") for turn in turns if turn.get("role") == "user"), "")
    told = [reward.get("ground_truth"), reward.get("candidate_answers")] if isinstance(reward, dict) else []
    yield _ask(key, asked, told, row.get("images"), row)


def read_livevqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """LiveVQA, ``benchmark.json``: a picture of the news with a question of each of two levels.

    ``level1_qa`` and ``level2_qa`` have ``question``, ``Ground_Truth_List`` and maybe an ``img_path`` of their own;
    ``Ground_Truth`` is the letter of an option and no answer. A row of LiveVQA-new is one such question: known from
    readers of it, not from its page.
    https://github.com/fumingyang2004/LIVEVQA (liveVQA_benchmarks/README.md and unified_benchmark.py)
    """
    name = _read_text(row, "id") or key
    levels = {f"{name}/{level}": row[level] for level in LEVELS if isinstance(row.get(level), dict)}
    for mark, asked in (levels or {name: row}).items():
        if "question" in asked:
            picture = asked.get("img_path") or row.get("img_path")
            yield _ask(mark, asked["question"], asked.get("Ground_Truth_List"), picture)


LEVELS = ("level1_qa", "level2_qa")


def read_infoseek(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """InfoSeek, JSON lines: ``data_id``, ``image_id``, ``question``, ``answer`` and ``answer_eval``.

    A range in ``answer_eval`` is no answer's form. The entity is in the file ``*_withkb.jsonl``, or in the rows of one
    that was joined with it, as ``entity_text``.
    https://github.com/open-vision-language/infoseek and https://github.com/edchengg/infoseek_eval
    """
    asked = _ask(key, row.get("question"), [row.get("answer"), row.get("answer_eval")], row.get("image_id"), row)
    yield replace(asked, entity=_read_text(row, "entity_text"))


def read_webqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """WebQA, ``WebQA_train_val.json``: an object of questions by id, ``Q`` with answers ``A`` in whole sentences.

    ``img_posFacts`` are the pictures that answer it, each with ``image_id``; a question that texts answer has none.
    Pictures are lines of ``imgs.tsv`` (id, base64), found by ``imgs.lineidx``.
    https://github.com/WebQnA/WebQA (demo/Take_a_look_WebQA.ipynb)
    """
    facts = row.get("img_posFacts") if isinstance(row.get("img_posFacts"), list) else []
    shown = [_read_text(each, "image_id") for each in facts or () if isinstance(each, dict)]
    answers = [text.strip('" ') for text in _list_texts(row.get("A"))]
    yield _ask(key, _read_text(row, "Q").strip('" '), answers, shown, {"id": row.get("Guid")})


Layout = Callable[[str, Raw], Iterator[ForeignQuestion]]
LAYOUTS: Mapping[str, Layout] = {
    "columns": read_columns,
    "vsearcher": read_columns,
    "fvqa": read_fvqa,
    "livevqa": read_livevqa,
    "infoseek": read_infoseek,
    "webqa": read_webqa,
}
RECOGNISED: Mapping[str, Callable[[Raw], bool]] = {
    "livevqa": lambda row: any(isinstance(row.get(level), dict) for level in LEVELS) or "Ground_Truth_List" in row,
    "webqa": lambda row: "Q" in row and ("img_posFacts" in row or "txt_posFacts" in row),
    "infoseek": lambda row: all(name in row for name in ("image_id", "data_id", "question")),
    "fvqa": lambda row: "prompt" in row and "reward_model" in row,
}
"""How to recognise a row of each layout, in the order of the tests."""


def read_layout(path: Path) -> str:
    """Return the layout that more than half of a file's first rows have, ``columns`` if none fits."""
    rows = [row for _, row in islice(read_rows(path), SAMPLED_ROWS) if isinstance(row, dict)]
    fitting = (layout for layout, holds in RECOGNISED.items() if 2 * sum(map(holds, rows)) > len(rows))
    return next(fitting, "columns")


def read_questions(
    path: Path, layout: str = "", columns: Mapping[str, str] | None = None
) -> Iterator[ForeignQuestion | UnreadRow]:
    """Yield the questions of a file, and an :class:`UnreadRow` for each row without a question.

    Args:
        path: Parquet, JSON or JSON lines.
        layout: one of ``LAYOUTS``; empty: recognised from the rows.
        columns: place of each usual column in another kind of table; see ``map_columns``.
    """
    read = LAYOUTS["columns" if columns else layout or read_layout(path)]
    for key, row in read_rows(path):
        if isinstance(row, UnreadRow):
            yield row
            continue
        found = list(read(key, map_columns(row, columns) if columns else row))
        yield from found
        if not found:
            shown = ", ".join(sorted(map(str, row))[:COLUMNS_SHOWN])
            yield UnreadRow(key, f"has no question; its columns are {shown}")


COLUMNS_SHOWN = 20


def map_columns(row: Raw, columns: Mapping[str, str]) -> Raw:
    """Return the values of a row under other names; a dot in a place leads into a nested column."""
    found: dict[str, Any] = {}
    for name, place in columns.items():
        value: Any = row
        for part in place.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        found[name] = value
    return found


def read_entities(path: Path) -> dict[str, str]:
    """Return the name of the entity in each InfoSeek question's picture, by ``data_id``, from a ``withkb`` file."""
    rows = [row for _, row in read_rows(path) if isinstance(row, dict)]
    return {_read_text(row, "data_id"): _read_text(row, "entity_text") or _read_text(row, "entity_id") for row in rows}


@dataclass(frozen=True)
class PictureFolder:
    """Pictures of a pool: files of a folder by name or id, or the lines of WebQA's ``imgs.tsv``."""

    root: Path
    _offsets: list[int] = field(default_factory=list)

    def probe(self) -> None:
        """Check that the folder or table can hold pictures, before any request is paid."""
        if self._is_table:
            self._list_offsets()
        elif not self.root.is_dir():
            raise ConfigError(f"{self.root}: give a folder of pictures, or a table (.tsv) with its .lineidx")

    @property
    def _is_table(self) -> bool:
        return self.root.suffix == ".tsv" and not self.root.is_dir()

    def read(self, picture: NamedPicture) -> bytes | None:
        """Return a picture's bytes, or None if no picture has that name."""
        if picture.content or not picture.name:
            return picture.content or None
        try:
            if self._is_table:
                return self._read_line(picture.name)
            path = self.find(picture.name)
            return _read_bounded(path) if path else None
        except OSError as error:
            raise ConfigError(f"{self.root}: {picture.name!r} cannot be read: {error}") from error

    def find(self, name: str) -> Path | None:
        """Return the file of a name, an address or an id, or None if the folder has no such file."""
        if name.startswith(REMOTE):
            name = _name_remote(name)
        place = PurePosixPath(name.removeprefix("file://"))
        if place.is_absolute() or ".." in place.parts or "\0" in name:
            return None
        for candidate in (self.root / place, self.root / place.name):
            if place.name and is_file(candidate):
                return candidate
        return self._by_stem.get(place.name)

    @cached_property
    def _by_stem(self) -> dict[str, Path]:
        # Numbers are known without zeros before them too; of two alike the first in order is found.
        found: dict[str, Path] = {}
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for name in sorted(files):
                found.setdefault(Path(name).stem, Path(folder, name))
        numbered = {stem.lstrip("0") or "0": path for stem, path in found.items() if stem.isdecimal()}
        return numbered | found

    def _read_line(self, name: str) -> bytes | None:
        if not name.isdecimal() or len(name) > LONGEST_ID:
            return None
        offsets = self._list_offsets()
        number = int(name) % IDS_FROM
        if number >= len(offsets):
            return None
        with self.root.open("rb") as table:
            table.seek(offsets[number])
            found, _, content = table.readline(2 * PICTURE_BYTES).decode("ascii", "replace").strip().partition("\t")
        return _decode(content) if found == name else None

    def _list_offsets(self) -> list[int]:
        if not self._offsets:
            path = self.root.with_suffix(".lineidx")
            try:
                size = self.root.stat().st_size
                offsets = [int(each) for each in _read_bounded(path).decode("ascii").split()]
            except (OSError, ValueError) as error:
                raise ConfigError(f"{path}: the offsets of {self.root.name} cannot be read: {error}") from error
            if wrong := [each for each in offsets if not 0 <= each < size]:
                raise ConfigError(f"{path}: {self.root.name} has {size} bytes, and none at {wrong[0]}")
            self._offsets.extend(offsets)
        return self._offsets


def _read_bounded(path: Path) -> bytes:
    with path.open("rb") as source:
        return source.read(PICTURE_BYTES + 1)


def _name_remote(address: str) -> str:
    try:
        return PurePosixPath(unquote(urlsplit(address).path)).name
    except ValueError:
        return ""


LONGEST_ID = 20
"""Digits."""
IDS_FROM = 10_000_000
"""WebQA counts its pictures up from a multiple of it: the rest is the line."""
