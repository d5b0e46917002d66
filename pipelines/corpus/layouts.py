"""Files of questions that others made, row by row in one shape: published layouts, and any table by its column names.

A layout is a function from a file's row to questions. Each names the page that documents it. Files are hostile input:
nothing is read without a limit, and no name of a picture leads out of its folder.
"""

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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
QUESTION_COLUMNS = ("question", "query", "problem", "instruction", "final_question")
ANSWER_COLUMNS = ("answer", "answers", "ground_truth", "final_answer", "label", "answer_aliases", "candidate_answers")
IMAGE_COLUMNS = ("image", "images", "image_path", "image_paths", "image_url", "image_urls", "img", "image_file")
MESSAGE_COLUMNS = ("messages", "conversations", "prompt")
ID_COLUMNS = ("id", "question_id", "data_id", "record_id", "qid", "index")
NESTED_COLUMNS = ("extra_info", "reward_model")
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


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """A picture as a row has it: its bytes, or a name; of none both are empty."""

    name: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class ForeignQuestion:
    """A question of somebody else's."""

    id: str
    question: str
    answers: tuple[str, ...]
    """The answer, then other accepted forms."""
    pictures: tuple[NamedPicture, ...]
    texts: tuple[str, ...] = ()
    """Its messages, or its question where it has none."""
    has_messages: bool = False
    entity: str = ""
    """What the picture shows, where the file says."""
    language: str = ""


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a file's rows, each with its key: that of an object of rows, else its number.

    Raises:
        ConfigError: if the file is missing, too large, of another format, or cannot be parsed.
    """
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a .parquet, .json or .jsonl file in it")
    if not path.is_file():
        raise ConfigError(f"{path}: no such file")
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ConfigError(f"{path}: {path.suffix or 'no suffix'} is not read; give one of {', '.join(READERS)}")
    try:
        for key, row in reader(path):
            if not isinstance(row, dict):
                raise ConfigError(f"{path}: row {key} is no object")
            yield key, row
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not a readable {path.suffix} file: {error}") from error


def _read_parquet(path: Path) -> Iterator[tuple[str, object]]:
    number = 0
    with pq.ParquetFile(path) as source:
        for group in range(source.num_row_groups):
            # Asked for all at once, it would keep every group that it has read.
            for batch in source.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=[group]):
                for row in batch.to_pylist():
                    yield str(number), row
                    number += 1


def _read_lines(path: Path) -> Iterator[tuple[str, object]]:
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(LINE_BYTES + 1):
            if len(line) > LINE_BYTES:
                raise ConfigError(f"{path}: line {number + 1} has more than {LINE_BYTES >> 20} MiB")
            if line.strip():
                yield str(number), json.loads(line)
            number += 1


def _read_document(path: Path) -> Iterator[tuple[str, object]]:
    if path.stat().st_size > DOCUMENT_BYTES:
        raise ConfigError(f"{path}: has more than {DOCUMENT_BYTES >> 30} GiB; give its rows as lines (.jsonl)")
    document = json.loads(path.read_bytes())
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if len(lists) == 1:
            document = lists[0]
        elif document and all(isinstance(value, dict) for value in document.values()):
            yield from document.items()
            return
    if not isinstance(document, list):
        raise ConfigError(f"{path}: give a list of rows, or an object with one list, or with rows alone, in it")
    yield from ((str(number), row) for number, row in enumerate(document))


READERS: Mapping[str, Callable[[Path], Iterator[tuple[str, object]]]] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".json": _read_document,
}


def read_by_columns(key: str, row: Raw) -> ForeignQuestion | None:
    """Return a row's question by the usual names of columns; None if it has neither a question nor messages."""
    flat = dict(row)
    for name in NESTED_COLUMNS:
        inner = row.get(name)
        flat = (inner if isinstance(inner, dict) else {}) | flat
    messages = tuple(text for name in MESSAGE_COLUMNS for text in _list_contents(flat.get(name)))
    if not messages and not any(name in flat for name in QUESTION_COLUMNS):
        return None
    asked = [flat[name] for name in QUESTION_COLUMNS if isinstance(flat.get(name), str)]
    question = asked[0] if asked else messages[0].replace(PLACEHOLDER, "").strip() if messages else ""
    return ForeignQuestion(
        id=next((str(flat[name]) for name in ID_COLUMNS if flat.get(name) is not None), key),
        question=question,
        answers=tuple(text for name in ANSWER_COLUMNS for text in _list_texts(flat.get(name))),
        pictures=tuple(picture for name in IMAGE_COLUMNS for picture in _list_pictures(flat.get(name))),
        texts=messages or (question,),
        has_messages=bool(messages),
    )


def _list_contents(value: object) -> Iterator[str]:
    """Yield the texts of messages; what an assistant or a system says is no question, but comes in order."""
    if isinstance(value, list):
        for message in value:
            content = message.get("content", message.get("value")) if isinstance(message, dict) else None
            if isinstance(content, str):
                yield content
    elif isinstance(value, str):
        yield value


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner)
    elif isinstance(value, str) and value.startswith("["):
        yield from _list_written(value)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _list_written(value: str) -> Iterator[str]:
    """Yield the texts of a list that is written as JSON, as MMSearch-R1 has its candidate answers; else the text."""
    try:
        written = json.loads(value)
    except (ValueError, RecursionError):
        written = None
    yield from (
        _list_texts([each for each in written if isinstance(each, str)]) if isinstance(written, list) else (value,)
    )


def _list_pictures(value: object) -> Iterator[NamedPicture]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_pictures(inner) if inner is not None else (NamedPicture(),)
    elif isinstance(value, bytes):
        yield NamedPicture(content=value)
    elif isinstance(value, dict):
        content, name = value.get("bytes"), value.get("path") or value.get("image") or value.get("url")
        yield NamedPicture(
            name.strip() if isinstance(name, str) else "", content if isinstance(content, bytes) else b""
        )
    elif value is not None:
        yield NamedPicture(value.strip() if isinstance(value, str) else "")


def _ask(key: str, question: object, answers: object, pictures: object) -> ForeignQuestion:
    asked = question.replace(PLACEHOLDER, "").strip() if isinstance(question, str) else ""
    return ForeignQuestion(key, asked, tuple(_list_texts(answers)), tuple(_list_pictures(pictures)), (asked,))


def _read_text(row: Raw, name: str) -> str:
    value = row.get(name)
    return str(value) if isinstance(value, str | int) else ""


def read_fvqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """FVQA of MMSearch-R1, its Parquet files, and SenseNova-MARS's JSON lines of the same columns.

    ``prompt`` is a list of messages of which the user's is the question, ``images`` hold bytes or paths,
    ``reward_model`` has ``ground_truth`` and ``candidate_answers``, a list written as JSON.
    https://huggingface.co/datasets/lmms-lab/FVQA and the loader of https://github.com/EvolvingLMMs-Lab/multimodal-search-r1
    """
    prompt, reward = row.get("prompt"), row.get("reward_model")
    messages = prompt if isinstance(prompt, list) else [{"content": prompt}]
    users = (each for each in messages if isinstance(each, dict) and each.get("role", "user") == "user")
    reward = reward if isinstance(reward, dict) else {}
    answers = [reward.get("ground_truth"), reward.get("candidate_answers")]
    name = _read_text(row, "data_id") or key
    yield _ask(name, next(users, {}).get("content"), answers, row.get("images"))


def read_fvqa_facts(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """FVQA of Wang et al. 2017, ``all_qs_dict_release.json``: an object of questions by id.

    ``question``, ``answer``, ``img_file``; the picture's name is looked up in the folder of pictures.
    https://github.com/wangpengnorman/FVQA
    """
    yield _ask(key, row.get("question"), row.get("answer"), row.get("img_file"))


def read_livevqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """LiveVQA, ``benchmark.json``: a picture of the news with a question of each of two levels.

    ``level1_qa`` and ``level2_qa`` have ``question``, ``Ground_Truth_List`` and maybe an ``img_path`` of their own;
    ``Ground_Truth`` is the letter of an option and no answer.
    https://github.com/fumingyang2004/LIVEVQA (liveVQA_benchmarks/README.md and unified_benchmark.py)
    """
    name = _read_text(row, "id") or key
    for level in ("level1_qa", "level2_qa"):
        asked = row.get(level)
        if isinstance(asked, dict):
            picture = asked.get("img_path") or row.get("img_path")
            yield _ask(f"{name}/{level}", asked.get("question"), asked.get("Ground_Truth_List"), picture)


def read_infoseek(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """InfoSeek, JSON lines: ``data_id``, ``image_id``, ``question``, ``answer`` and ``answer_eval``.

    A range in ``answer_eval`` is no answer's form. The entity is in the file ``*_withkb.jsonl``.
    https://github.com/open-vision-language/infoseek and https://github.com/edchengg/infoseek_eval
    """
    answers = [row.get("answer"), row.get("answer_eval")]
    yield _ask(_read_text(row, "data_id") or key, row.get("question"), answers, row.get("image_id"))


def read_webqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """WebQA, ``WebQA_train_val.json``: an object of questions by id, ``Q`` with answers ``A`` in whole sentences.

    ``img_posFacts`` are the pictures that answer it, each with ``image_id`` and ``title``. Pictures are lines of
    ``imgs.tsv`` (id, base64), found by ``imgs.lineidx``.
    https://github.com/WebQnA/WebQA (demo/Take_a_look_WebQA.ipynb)
    """
    facts = row.get("img_posFacts")
    shown = [each for each in facts if isinstance(each, dict)] if isinstance(facts, list) else []
    answers = [text.strip('" ') for text in _list_texts(row.get("A"))]
    pictures = [_read_text(each, "image_id") for each in shown]
    yield _ask(key, _unquote(row.get("Q")), answers, pictures)


def _unquote(text: object) -> object:
    return text.strip('" ') if isinstance(text, str) else text


def read_simplevqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """SimpleVQA: ``data_id``, ``image``, ``question``, ``answer``, ``language`` (CN or EN), ``atomic_fact``.

    The picture is a feature of the Hub, or base64 in the JSON form. The atomic fact names what the picture shows.
    https://huggingface.co/datasets/m-a-p/SimpleVQA
    """
    picture = row.get("image")
    if isinstance(picture, str) and len(picture) > LONGEST_NAME:
        picture = _decode(picture)
    asked = _ask(_read_text(row, "data_id") or key, row.get("question"), row.get("answer"), picture)
    yield replace(asked, entity=_read_text(row, "atomic_fact"), language=_read_text(row, "language"))


def _decode(text: str) -> bytes:
    """Return the bytes of base64, none of what is not."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def read_exam(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """MM-SearchExam of VSearcher, JSON lines: ``question``, ``image_path`` and ``answer``.

    A picture that is named by its address is looked up by the last part of it.
    https://github.com/Ruiyang-061X/VSearcher (mmsearcheaxm/mmsearchexam.jsonl)
    """
    yield _ask(key, row.get("question"), row.get("answer"), row.get("image_path"))


def read_usual(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """Any table with usual names of columns, or with names that the configuration maps to usual ones."""
    found = read_by_columns(key, row) or _ask(key, "", (), ())
    yield replace(found, entity=_read_text(row, "entity"), language=_read_text(row, "language"))


Layout = Callable[[str, Raw], Iterator[ForeignQuestion]]
LAYOUTS: Mapping[str, Layout] = {
    "columns": read_usual,
    "fvqa": read_fvqa,
    "fvqa-facts": read_fvqa_facts,
    "livevqa": read_livevqa,
    "infoseek": read_infoseek,
    "webqa": read_webqa,
    "simplevqa": read_simplevqa,
    "mm-searchexam": read_exam,
}


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
    """Return the name of what each InfoSeek question's picture shows, by ``data_id``, from a ``withkb`` file.

    Raises:
        ConfigError: if it cannot be read.
    """
    rows = (row for _, row in read_rows(path))
    return {_read_text(row, "data_id"): _read_text(row, "entity_text") or _read_text(row, "entity_id") for row in rows}


@dataclass(frozen=True)
class PictureFolder:
    """Pictures of a pool: files of a folder by name or id, or the lines of WebQA's ``imgs.tsv``."""

    root: Path
    _offsets: list[int] = field(default_factory=list)

    def read(self, picture: NamedPicture) -> bytes | None:
        """Return a picture's bytes; None where there is none of that name."""
        if picture.content or not picture.name:
            return picture.content or None
        if self.root.suffix == ".tsv":
            return self._read_line(picture.name)
        path = self.find(picture.name)
        if path is None:
            return None
        with path.open("rb") as source:
            return source.read(PICTURE_BYTES + 1)

    def find(self, name: str) -> Path | None:
        """Return the file of a name, an address or an id; None where there is none inside the folder."""
        if name.startswith(REMOTE):
            name = PurePosixPath(unquote(urlsplit(name).path)).name
        place = PurePosixPath(name.removeprefix("file://"))
        if place.is_absolute() or ".." in place.parts or "\0" in name:
            return None
        for candidate in (self.root / place, self.root / place.name):
            if place.name and is_file(candidate):
                return candidate
        return self._by_stem.get(place.name)

    @cached_property
    def _by_stem(self) -> dict[str, Path]:
        """Files below the folder by their names without extension; of two alike the first in order."""
        found: dict[str, Path] = {}
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for name in sorted(files):
                found.setdefault(Path(name).stem, Path(folder, name))
        return found

    def _read_line(self, name: str) -> bytes | None:
        if not name.isdecimal():
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
                self._offsets.extend(map(int, path.read_text("ascii").split()))
            except (OSError, ValueError) as error:
                raise ConfigError(f"{path}: the offsets of {self.root.name} cannot be read: {error}") from error
        return self._offsets


IDS_FROM = 10_000_000
"""WebQA counts its pictures up from a multiple of it: the rest is the line."""
