"""Read question files by other authors, row by row in one shape: published layouts, and tables by column names.

A layout is a function from a file's row to questions. Each function names the page that documents its layout, or says
what is uncertain. ``read_questions`` reads any file and recognises its layout from its rows. Files are hostile input:
every read has a limit, and no picture name leads out of its folder.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
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
IMAGE_COLUMNS = (
    "image", "images", "image_path", "image_paths", "image_url", "image_urls", "img", "img_path", "image_file",
    "query_image", "image_packed",
)  # fmt: skip
MESSAGE_COLUMNS = ("messages", "conversations", "prompt")
ID_COLUMNS = ("id", "question_id", "data_id", "sample_id", "record_id", "qid", "index")
NESTED_COLUMNS = ("extra_info", "reward_model")
CATEGORY_COLUMNS = ("category", "subfield", "domain", "topic", "question_type", "ability", "Qcate", "original_category")
SPLIT_COLUMNS = ("split", "data_split")
USERS = ("user", "human")
ASSISTANTS = ("assistant", "gpt", "function_call", "tool_call")
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
    """A picture as a row gives it: its bytes or a name; both are empty if the row has no picture."""

    name: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a conversation. A picture without a name of its own stands in ``text`` as ``<image>``."""

    role: str
    text: str
    pictures: tuple[NamedPicture, ...] = ()
    """Those that the message itself names, as messages of typed content do."""


@dataclass(frozen=True, slots=True)
class ForeignQuestion:
    """A question by another author."""

    id: str
    question: str
    """Without placeholders of pictures."""
    answers: tuple[str, ...]
    """The answer, then other accepted forms. A conversation without a column has its last turn's answer."""
    pictures: tuple[NamedPicture, ...]
    texts: tuple[str, ...] = ()
    """Its messages, or its question where it has none, as the file has them."""
    messages: tuple[Message, ...] = ()
    placeholders: bool = False
    """Whether its layout needs one ``<image>`` in the texts for each picture; other layouts have none, or as many."""
    pictureless: bool = False
    """Whether its layout says that the question has no picture, so that none is missing."""
    entity: str = ""
    """What the picture shows, if the file says so."""
    qid: str = ""
    """The Wikidata item of what the picture shows, if the file gives it."""
    language: str = ""
    split: str = ""
    category: str = ""

    @property
    def has_messages(self) -> bool:
        """Whether the row is a conversation."""
        return bool(self.messages)

    @property
    def asked_with(self) -> tuple[NamedPicture, ...]:
        """The pictures of the question itself; tools returned the other pictures of a conversation."""
        if not self.messages:
            return self.pictures
        roles = [message.role in USERS for message in self.messages]
        opening = self.messages[: roles.index(True) + 1 if True in roles else 1]
        count = sum(message.text.count(PLACEHOLDER) + len(message.pictures) for message in opening)
        return self.pictures[: count or 1]


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """A row that holds no question that its layout knows."""

    key: str
    why: str


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a file's rows, each with its key: that of an object of rows, else its number.

    Parquet is recognised by its content, whatever the file's suffix; an object of JSON lines may span several lines.

    Raises:
        ConfigError: if the file is missing, too large, of another format, or cannot be parsed.
    """
    for key, row in _read_any(path):
        if isinstance(row, UnreadRow):
            raise ConfigError(f"{path}: {row.why}")
        yield key, row


def _read_any(path: Path) -> Iterator[tuple[str, dict[str, Any] | UnreadRow]]:
    """Yield a file's rows as :func:`read_rows` does, with an :class:`UnreadRow` for each row that is not an object."""
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder; name a .parquet, .json or .jsonl file in it")
    if not path.is_file():
        raise ConfigError(f"{path}: no such file")
    try:
        for key, row in _choose_reader(path)(path):
            yield key, row if isinstance(row, dict | UnreadRow) else UnreadRow(key, f"row {key} is no object")
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not a readable {path.suffix} file: {_explain(error)}") from error


def _explain(error: Exception) -> str:
    """Return an error's message, without Python's hint for long numbers."""
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition("; use sys.")[0]


def _choose_reader(path: Path) -> Callable[[Path], Iterator[tuple[str, object]]]:
    with path.open("rb") as source:
        start = source.read(SNIFFED)
    if start.startswith(b"PAR1") or path.suffix in PARQUET_ENDINGS:
        return _read_parquet
    first = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first == b"[" or (path.suffix == ".json" and not _holds_lines(path)):
        return _read_document
    if first == b"{" or path.suffix in LINE_ENDINGS:
        return _read_lines
    raise ConfigError(f"{path}: {path.suffix or 'no suffix'} is not read; give Parquet, JSON or JSON lines")


def _holds_lines(path: Path) -> bool:
    """Return whether the first line of a file is a whole object and another line follows."""
    with path.open("rb") as lines:
        first, second = lines.readline(LINE_BYTES), lines.readline(SNIFFED)
    try:
        return bool(second.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


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
    """Yield the objects of a file of lines; an object may span several lines, as some in BrowseComp-VL do."""
    text, number, line = "", 0, 1
    with path.open("rb") as lines:
        while (more := _take_lines(lines, path, len(text))) or text:
            text += more
            rows, rest = _split_objects(text, number, line, last=not more)
            line += text[: len(text) - len(rest)].count("\n")
            text = rest
            for row in rows:
                yield str(number), row
                number += 1


def _take_lines(lines: BinaryIO, path: Path, pending: int) -> str:
    """Return the next lines, as many as double a pending object before it is parsed again."""
    taken, length = list[bytes](), 0
    while length <= pending and (line := lines.readline(LINE_BYTES + 1)):
        length += len(line)
        if length + pending > LINE_BYTES:
            raise ConfigError(f"{path}: a line or an object has more than {LINE_BYTES >> 20} MiB")
        taken.append(line)
    return b"".join(taken).decode("utf-8-sig")


def _split_objects(text: str, number: int, line: int, last: bool) -> tuple[list[object], str]:
    """Return the values at the start of a text, and the rest, whose value is incomplete.

    Text that cannot be parsed is one row, up to the next line that may start another.
    """
    rows = list[object]()
    start, end = _skip_blanks(text, 0), len(text.rstrip())
    line += text.count("\n", 0, start)
    while start < end:
        try:
            row, after = LENIENT.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            position = error.pos if isinstance(error, json.JSONDecodeError) else -1
            open_ended = position >= end or "Unterminated string" in str(error)
            if open_ended and not last:
                break
            key = str(number + len(rows))
            row = UnreadRow(key, f"line {line}: row {key} {'has no end' if open_ended else _explain(error)}")
            following = NEXT_ROW.search(text, start)
            after = following.end() if following else len(text)
        rows.append(row)
        after = _skip_blanks(text, after)
        line += text.count("\n", start, after)
        start = after
    return rows, text[start:]


def _skip_blanks(text: str, start: int) -> int:
    found = BLANKS.match(text, start)
    return found.end() if found else start


BLANKS = re.compile(r"\s*")
NEXT_ROW = re.compile(r"\n(?=[^\s}])")
LENIENT = json.JSONDecoder(strict=False)
"""Lets a string hold line breaks."""


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


SNIFFED = 4096
PARQUET_ENDINGS = (".parquet", ".pq")
LINE_ENDINGS = (".jsonl", ".ndjson")


def read_by_columns(key: str, row: Raw) -> ForeignQuestion | None:
    """Return a row's question by the usual column names; None if the row has neither a question nor messages."""
    flat = dict(row)
    for name in NESTED_COLUMNS:
        flat = {**_read_nested(row, name), **flat}
    column = next((name for name in MESSAGE_COLUMNS if _list_messages(flat.get(name))), "")
    messages = _list_messages(flat.get(column)) if column else ()
    if not messages and not any(name in flat for name in QUESTION_COLUMNS):
        return None
    asked = next((flat[name] for name in QUESTION_COLUMNS if isinstance(flat.get(name), str)), "")
    pictures = chain.from_iterable(_list_pictures(flat.get(name)) for name in IMAGE_COLUMNS)
    return replace(
        _ask(key, asked, [flat.get(name) for name in ANSWER_COLUMNS], (), flat),
        question=asked.replace(PLACEHOLDER, "").strip() or _find_question(messages),
        answers=tuple(text for name in ANSWER_COLUMNS for text in _list_texts(flat.get(name))) or _find_final(messages),
        pictures=_join_pictures(pictures, messages),
        texts=tuple(message.text for message in messages) or (asked,),
        messages=messages,
        # A prompt alone may leave its pictures to the loader, as MMSearch-R1's does.
        placeholders=column in MESSAGE_COLUMNS[:2] and not any(message.pictures for message in messages),
    )


def _list_messages(value: object) -> tuple[Message, ...]:
    """Return the messages of a conversation: of roles and contents, or of LLaMA-Factory's ``from`` and ``value``."""
    if isinstance(value, str) and value.strip():
        return (Message("user", value),)
    if not isinstance(value, list):
        return ()
    turns = [each for each in value if isinstance(each, dict)]
    return tuple(
        Message(
            str(turn.get("role") or turn.get("from") or "user"),
            *_read_content(turn.get("value") if turn.get("content") is None else turn.get("content")),
        )
        for turn in turns
    )


def _read_content(content: object) -> tuple[str, tuple[NamedPicture, ...]]:
    """Return a message's text and the pictures in it.

    Content is text, or a list of typed parts as in OpenAI's chat (``image_url``) and responses (``input_image``), TRL
    and Qwen (``image``), and LLaMA-Factory's next layout (``value``). A part that only marks the place of a
    picture becomes ``<image>`` in the text. https://platform.openai.com/docs/api-reference/chat/create
    """
    if isinstance(content, str):
        return content, ()
    texts, pictures = list[str](), list[NamedPicture]()
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = str(part.get("type") or "")
            if "image" in kind or (not kind and ("image" in part or "image_url" in part)):
                named = [part[name] for name in PART_SOURCES if part.get(name)]
                pictures.extend(_list_pictures(named[:1]))
                texts += [] if named else [PLACEHOLDER]
            else:
                texts.extend(str(part[name]) for name in ("text", "value") if isinstance(part.get(name), str))
    return "\n".join(texts), tuple(pictures)


PART_SOURCES = ("image_url", "image", "bytes", "url", "path", "value")


def _find_question(messages: Sequence[Message]) -> str:
    """Return the first user message, without placeholders and the labels that OpenSearch-VL puts before it."""
    asked = next((message.text for message in messages if message.role in USERS), "")
    asked = asked or next((message.text for message in messages if message.role != "system"), "")
    return LABELS.sub("", asked.replace(PLACEHOLDER, "")).strip()


LABELS = re.compile(r"^(?:\s*image_id:\s*\S+)*\s*(?:question:\s*)?", re.IGNORECASE)
THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>|<reason>.*?</reason>", re.DOTALL)
FINAL = re.compile(r"<answer>(.*?)</answer>|<response>(.*?)</response>|\\boxed\{([^{}]+)\}", re.DOTALL)


def _find_final(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the answer in an assistant's last turn: the content of its tags, else all but the thought."""
    if not messages or messages[-1].role not in ASSISTANTS:
        return ()
    text = messages[-1].text
    tagged = [next(filter(None, found), "").strip() for found in FINAL.findall(text)]
    said = tagged[-1] if tagged else THOUGHT.sub("", text).strip()
    return (said,) if said else ()


def _join_pictures(named: Iterable[NamedPicture], messages: Sequence[Message]) -> tuple[NamedPicture, ...]:
    """Return the pictures of a row's column and of its messages; the column may repeat pictures of the messages."""
    inside = [picture for message in messages for picture in message.pictures]
    return (*(picture for picture in named if picture not in inside), *inside)


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_texts(inner)
    elif isinstance(value, str) and value.startswith("["):
        yield from _list_written(value)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _list_written(value: str) -> Iterator[str]:
    """Yield the texts of a list in JSON, as in MMSearch-R1's candidate answers; yield any other text as it is."""
    try:
        written = json.loads(value)
    except (ValueError, RecursionError):
        written = None
    yield from (
        _list_texts([each for each in written if isinstance(each, str)]) if isinstance(written, list) else (value,)
    )


def _list_pictures(value: object) -> Iterator[NamedPicture]:
    """Yield pictures: bytes, also as a list of numbers or base64, names, addresses, and objects with any of these."""
    if isinstance(value, list | tuple):
        if content := _join_numbers(value):
            yield NamedPicture(content=content)
            return
        for inner in value:
            yield from _list_pictures(inner) if inner is not None else (NamedPicture(),)
    elif isinstance(value, bytes):
        yield NamedPicture(content=value)
    elif isinstance(value, dict):
        yield _read_picture(value)
    elif isinstance(value, str) and value.lstrip().startswith("[{"):
        yield from _list_packed(value)
    elif value is not None:
        yield _name_picture(value.strip() if isinstance(value, str) else "")


def _name_picture(name: str) -> NamedPicture:
    head, comma, encoded = name.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return NamedPicture(content=_decode(encoded))
    content = _decode(name) if len(name) > LONGEST_NAME and not name.startswith(REMOTE) else b""
    return NamedPicture(content=content) if content else NamedPicture(name)


def _read_picture(value: Raw) -> NamedPicture:
    content, data = value.get("bytes"), value.get("data")
    name = next((value[each] for each in ("path", "image", "url", "filename") if isinstance(value.get(each), str)), "")
    if isinstance(content, list | tuple):
        content = _join_numbers(content)
    elif isinstance(data, str):
        content = _decode(data)
    elif value and all(str(each).isdecimal() for each in value):
        # Bytes that a table made a struct of: {"0": 137, "1": 80, ...}.
        content = _join_numbers([value[each] for each in sorted(value, key=int)])
    if isinstance(content, bytes) and content:
        return NamedPicture(name.strip(), content)
    return _name_picture(name.strip())


def _join_numbers(values: Sequence[object]) -> bytes:
    """Return the bytes that a list of numbers spells, or b"" for any other list."""
    numbers = [each for each in values if isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= BYTE]
    return bytes(numbers) if numbers and len(numbers) == len(values) else b""


BYTE = 255


def _list_packed(value: str) -> Iterator[NamedPicture]:
    """Yield the pictures of Vision-DeepResearch's ``image_packed``: file names and base64, a list written as JSON."""
    try:
        packed = json.loads(value)
    except (ValueError, RecursionError):
        packed = []
    yield from (_read_picture(each) for each in packed if isinstance(each, dict))


def _ask(key: str, question: object, answers: object, pictures: object, row: Raw | None = None) -> ForeignQuestion:
    """Return a question with the usual columns; ``key`` is its id if ``row`` has no id."""
    row = row or {}
    asked = question if isinstance(question, str) else ""
    named = next((str(row[name]) for name in ID_COLUMNS if isinstance(row.get(name), str | int)), key)
    return ForeignQuestion(
        named,
        asked.replace(PLACEHOLDER, "").strip(),
        tuple(_list_texts(answers)),
        tuple(_list_pictures(pictures)),
        (asked,),
        language=_read_text(row, "language"),
        split=next(filter(None, (_read_text(row, name) for name in SPLIT_COLUMNS)), ""),
        category=next(filter(None, (_read_text(row, name) for name in CATEGORY_COLUMNS)), ""),
    )


def _read_nested(row: Raw, name: str) -> Raw:
    inner = row.get(name)
    return inner if isinstance(inner, dict) else {}


def _read_text(row: Raw, name: str) -> str:
    value = row.get(name)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def read_fvqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """FVQA of MMSearch-R1, its Parquet files and ``.pq``, and SenseNova-MARS's JSON lines of the same columns.

    ``prompt`` is a list of messages of which the user's is the question, ``images`` hold bytes or paths,
    ``reward_model`` has ``ground_truth`` and ``candidate_answers``, a list written as JSON. The prompt has no
    ``<image>``: the loader puts it there. ``image_urls`` are null in what was published.
    https://huggingface.co/datasets/lmms-lab/FVQA and the loader of https://github.com/EvolvingLMMs-Lab/multimodal-search-r1
    """
    asked = next((each for each in _list_messages(row.get("prompt")) if each.role in USERS), None)
    reward = _read_nested(row, "reward_model")
    answers = [reward.get("ground_truth"), reward.get("candidate_answers")]
    names = {"id": row.get("data_id"), "category": row.get("category"), "split": row.get("split")}
    yield _ask(key, asked.text if asked else "", answers, row.get("images"), names)


def read_fvqa_facts(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """FVQA of Wang et al. 2017, ``all_qs_dict_release.json``: an object of questions by id.

    ``question``, ``answer``, ``img_file``; the picture's name is looked up in the folder of pictures.
    https://github.com/wangpengnorman/FVQA
    """
    yield _ask(key, row.get("question"), row.get("answer"), row.get("img_file"))


def read_livevqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """LiveVQA, ``benchmark.json``: a picture of the news with a question of each of two levels.

    ``level1_qa`` and ``level2_qa`` have ``question``, ``Ground_Truth_List`` and maybe an ``img_path`` of their own;
    ``Ground_Truth`` is the letter of an option and no answer. A row of LiveVQA-new is one such question, with ``level``
    and ``topic``: known from readers of it, not from its page.
    https://github.com/fumingyang2004/LIVEVQA (liveVQA_benchmarks/README.md and unified_benchmark.py)
    """
    name = _read_text(row, "id") or key
    levels = {f"{name}/{level}": row[level] for level in LEVELS if isinstance(row.get(level), dict)}
    for mark, asked in (levels or {name: row}).items():
        if "question" in asked:
            picture = asked.get("img_path") or row.get("img_path")
            said = _ask(mark, asked["question"], asked.get("Ground_Truth_List"), picture)
            topic = _read_text(asked, "question_type") or _read_text(asked, "topic") or _read_text(row, "source")
            yield replace(said, category=topic)


LEVELS = ("level1_qa", "level2_qa")


def read_infoseek(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """InfoSeek, JSON lines: ``data_id``, ``image_id``, ``question``, ``answer`` and ``answer_eval``.

    A range in ``answer_eval`` is no answer's form. The entity is in the file ``*_withkb.jsonl``, or in the rows of one
    that was joined with it, as ``entity_text`` and ``entity_id``.
    https://github.com/open-vision-language/infoseek and https://github.com/edchengg/infoseek_eval
    """
    asked = _ask(key, row.get("question"), [row.get("answer"), row.get("answer_eval")], row.get("image_id"), row)
    yield replace(asked, entity=_read_text(row, "entity_text"), qid=_read_text(row, "entity_id"))


def read_webqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """WebQA, ``WebQA_train_val.json``: an object of questions by id, ``Q`` with answers ``A`` in whole sentences.

    ``img_posFacts`` are the pictures that answer it, each with ``image_id`` and ``title``; a question that texts answer
    has none. Pictures are lines of ``imgs.tsv`` (id, base64), found by ``imgs.lineidx``.
    https://github.com/WebQnA/WebQA (demo/Take_a_look_WebQA.ipynb)
    """
    facts = row.get("img_posFacts")
    shown = [each for each in facts if isinstance(each, dict)] if isinstance(facts, list) else []
    answers = [text.strip('" ') for text in _list_texts(row.get("A"))]
    asked = row.get("Q")
    question = asked.strip('" ') if isinstance(asked, str) else asked
    names = {"id": row.get("Guid"), "split": row.get("split"), "Qcate": row.get("Qcate")}
    read = _ask(key, question, answers, [_read_text(each, "image_id") for each in shown], names)
    yield replace(read, pictureless=not shown and bool(row.get("txt_posFacts")))


def read_simplevqa(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """SimpleVQA: ``data_id``, ``image``, ``question``, ``answer``, ``language`` (CN or EN), ``atomic_fact``.

    The picture is a feature of the Hub, or base64 in the JSON form. The atomic fact names what the picture shows.
    https://huggingface.co/datasets/m-a-p/SimpleVQA
    """
    asked = _ask(key, row.get("question"), row.get("answer"), row.get("image"), row)
    yield replace(asked, entity=_read_text(row, "atomic_fact"))


def _decode(text: str) -> bytes:
    """Return the bytes of base64 text, or b"" if the text is not base64."""
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


def read_mmsearch(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """MMSearch, split ``end2end``: ``sample_id``, ``query``, ``query_image``, ``gt_answer`` and others of its forms.

    Those are ``alternative_gt_answers``. A query without a picture is one of text; ``image_search_result`` is a
    screenshot, not the question's picture. ``area`` is news or knowledge, ``subfield`` the topic.
    https://github.com/CaraJ7/MMSearch (eval_end2end.py)
    """
    answers = [row.get("gt_answer"), row.get("alternative_gt_answers")]
    asked = _ask(key, row.get("query"), answers, row.get("query_image"), row)
    yield replace(asked, pictureless="query_image" in row and not row["query_image"])


def read_browsecomp(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """BrowseComp-VL of WebWatcher, ``bc_vl_level1.jsonl``: ``question``, ``image_path``, ``answers`` and ``domain``.

    An object may go on over several lines. Known from readers of the file, which lies at
    https://github.com/Alibaba-NLP/DeepResearch (WebAgent/WebWatcher/benchmark).
    """
    yield _ask(key, row.get("question"), [row.get("answers"), row.get("answer")], row.get("image_path"), row)


def read_vdr(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """VDR-Bench: ``id``, ``question``, ``answer`` and ``image`` as bytes; the id's second part is the category.

    Vision-DeepResearch packs this and other benchmarks with ``image_packed``, a list of file names and base64 that is
    written as JSON. Known from readers of the files, not from their page.
    https://github.com/Osilly/Vision-DeepResearch (rllm/eval/unpack_parquet.py)
    """
    pictures = row.get("image_packed") or row.get("images") or row.get("image")
    asked = _ask(key, row.get("question"), [row.get("answer"), row.get("answers")], pictures, row)
    parts = asked.id.split("_")
    yield replace(asked, category=asked.category or (parts[1] if len(parts) > 1 else ""))


def read_conversation(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """A conversation: LLaMA-Factory's sharegpt, OpenSearch-VL's and VSearcher's for SFT, messages of typed content.

    ``conversations`` of ``from`` and ``value``, or ``messages`` of ``role`` and ``content``; ``images`` in the order of
    the placeholders. OpenSearch-VL writes calls as text in the turns of ``gpt`` and ends with ``<response>``. Raw
    trajectories of VSearcher have ``question``, ``image_url`` and ``answer`` beside ``messages`` with typed content.
    https://github.com/hiyouga/LLaMA-Factory (data/README.md), https://github.com/shawn0728/OpenSearch-VL
    (SFT/data/dataset_info.json) and https://github.com/Ruiyang-061X/VSearcher (rejection_sampling_finetuning)
    """
    found = read_by_columns(key, row)
    if found is not None and found.messages:
        yield found


def read_alpaca(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """LLaMA-Factory's alpaca: ``instruction``, ``input``, ``output``, maybe ``images``, ``system`` and ``history``.

    Placeholders stand in the instruction or the input. https://github.com/hiyouga/LLaMA-Factory (data/README.md)
    """
    parts = [row[name] for name in ("instruction", "input") if isinstance(row.get(name), str) and row[name]]
    history = row.get("history") if isinstance(row.get("history"), list) else []
    past = [tuple(_list_texts(turn)) for turn in history or ()]
    asked = _ask(key, "\n".join(parts), row.get("output"), row.get("images"), row)
    turns = [*chain.from_iterable(past), asked.texts[0], *asked.answers]
    yield replace(asked, texts=tuple(turns), placeholders=True)


def read_verl(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """Rows of verl for RL: ``prompt`` (messages), ``images``, ``reward_model`` and ``extra_info``.

    The question is ``extra_info.question`` where it is given, since a prompt may hold instructions too. verl wants an
    ``<image>`` in the prompt for each picture.
    https://verl.readthedocs.io/en/latest/preparation/prepare_data.html
    """
    extra, reward = (_read_nested(row, name) for name in NESTED_COLUMNS)
    messages = _list_messages(row.get("prompt"))
    answers = [reward.get("ground_truth"), reward.get("candidate_answers"), extra.get("answer")]
    pictures = _join_pictures(_list_pictures(row.get("images")), messages)
    asked = _ask(key, extra.get("question"), answers, (), {**extra, **row})
    yield replace(
        asked,
        question=asked.question or _find_question(messages),
        answers=tuple(dict.fromkeys(asked.answers)),
        pictures=pictures,
        texts=tuple(message.text for message in messages) or asked.texts,
        messages=messages,
        placeholders=not any(message.pictures for message in messages),
    )


def read_usual(key: str, row: Raw) -> Iterator[ForeignQuestion]:
    """Any table with usual names of columns, or with names that the configuration maps to usual ones."""
    found = read_by_columns(key, row)
    if found is not None:
        yield replace(found, entity=_read_text(row, "entity"), qid=_read_text(row, "entity_qid"))


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
    "mmsearch": read_mmsearch,
    "browsecomp-vl": read_browsecomp,
    "vdr": read_vdr,
    "opensearch-vl": read_conversation,
    "vsearcher": read_conversation,
    "sharegpt": read_conversation,
    "messages": read_conversation,
    "alpaca": read_alpaca,
    "verl": read_verl,
}


def _has(*names: str) -> Callable[[Raw], bool]:
    return lambda row: all(name in row for name in names)


def _is_fvqa(row: Raw) -> bool:
    rewarded = "candidate_answers" in _read_nested(row, "reward_model") and "extra_info" not in row
    searched = "image_search_title_list" in row
    return "prompt" in row and (rewarded or searched or "mmsearch_r1" in _read_text(row, "data_source"))


def _is_trajectory(row: Raw) -> bool:
    return "messages" in row and ("termination" in row or "prediction" in row)


def _is_searched(row: Raw) -> bool:
    """Return whether a row is an OpenSearch-VL conversation: calls and the final answer are text in gpt's turns."""
    turns = _list_messages(row.get("conversations"))
    return any(turn.role == "gpt" and ("<tool_call>" in turn.text or "<response>" in turn.text) for turn in turns)


def _is_packed(row: Raw) -> bool:
    return "question" in row and ("image_packed" in row or isinstance(row.get("image"), bytes))


RECOGNISED: Mapping[str, Callable[[Raw], bool]] = {
    "livevqa": lambda row: any(isinstance(row.get(level), dict) for level in LEVELS) or "Ground_Truth_List" in row,
    "webqa": lambda row: "Q" in row and ("img_posFacts" in row or "txt_posFacts" in row),
    "fvqa-facts": _has("img_file", "question"),
    "infoseek": _has("image_id", "data_id", "question"),
    "simplevqa": lambda row: "question" in row and ("atomic_fact" in row or "atomic_question" in row),
    "mmsearch": _has("query", "gt_answer"),
    "browsecomp-vl": _has("question", "image_path", "answers"),
    "mm-searchexam": lambda row: set(row) == {"question", "image_path", "answer"},
    "fvqa": _is_fvqa,
    "verl": _has("prompt", "reward_model"),
    "vsearcher": _is_trajectory,
    "opensearch-vl": _is_searched,
    "sharegpt": _has("conversations"),
    "messages": _has("messages"),
    "alpaca": _has("instruction", "output"),
    "vdr": _is_packed,
}
"""How to recognise a row of each layout, in the order of the tests."""


def recognise_layout(rows: Sequence[Raw]) -> str:
    """Return the layout of more than half of some rows of a file, or ``columns`` if no layout fits."""
    for layout, holds in RECOGNISED.items():
        if 2 * sum(map(holds, rows)) > len(rows):
            return layout
    return "columns"


def read_layout(path: Path) -> str:
    """Return the layout that a file's first rows have.

    Raises:
        ConfigError: if it cannot be read.
    """
    return recognise_layout([row for _, row in islice(_read_any(path), SAMPLED_ROWS) if isinstance(row, dict)])


def read_questions(
    path: Path, layout: str = "", columns: Mapping[str, str] | None = None
) -> Iterator[ForeignQuestion | UnreadRow]:
    """Yield the questions of a file, and an :class:`UnreadRow` for each row without a question.

    Args:
        path: Parquet, JSON or JSON lines.
        layout: one of ``LAYOUTS``; empty: recognised from the rows.
        columns: place of each usual column in another kind of table; see ``map_columns``.

    Raises:
        ConfigError: if the file cannot be read.
    """
    read = LAYOUTS["columns" if columns else layout or read_layout(path)]
    unread, read_any = "", False
    for key, row in _read_any(path):
        if isinstance(row, UnreadRow):
            unread = unread or row.why
            yield row
            continue
        read_any = True
        found = list(read(key, map_columns(row, columns) if columns else row))
        yield from found
        if not found:
            shown = ", ".join(sorted(map(str, row))[:COLUMNS_SHOWN])
            yield UnreadRow(key, f"has neither a question nor messages; its columns are {shown}")
    if unread and not read_any:
        raise ConfigError(f"{path}: none of its rows can be read; {unread}")


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
    """Return the name of the entity in each InfoSeek question's picture, by ``data_id``, from a ``withkb`` file.

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

    def probe(self) -> None:
        """Check that the folder or table can hold pictures, before any request is paid.

        Raises:
            ConfigError: if it is neither a folder nor a table, or the table's offsets cannot be read.
        """
        if self._is_table:
            self._list_offsets()
        elif not self.root.is_dir():
            raise ConfigError(f"{self.root}: give a folder of pictures, or a table (.tsv) with its .lineidx")

    @property
    def _is_table(self) -> bool:
        return self.root.suffix == ".tsv" and not self.root.is_dir()

    def read(self, picture: NamedPicture) -> bytes | None:
        """Return a picture's bytes, or None if no picture has that name.

        Raises:
            ConfigError: if a file or a table is there and cannot be read.
        """
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
        """Files below the folder by their names without extension, and numbers without zeros before them too.

        Of two alike the first in order is found.
        """
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
                written = _read_bounded(path)
                offsets = [int(each) for each in written.decode("ascii").split()]
            except (OSError, ValueError) as error:
                raise ConfigError(f"{path}: the offsets of {self.root.name} cannot be read: {error}") from error
            if len(written) > PICTURE_BYTES:
                raise ConfigError(f"{path}: has more than {PICTURE_BYTES >> 20} MiB")
            if wrong := [each for each in offsets if not 0 <= each < size]:
                raise ConfigError(f"{path}: {self.root.name} has {size} bytes, and none at {wrong[0]}")
            self._offsets.extend(offsets)
        return self._offsets


def _read_bounded(path: Path) -> bytes:
    with path.open("rb") as source:
        return source.read(PICTURE_BYTES + 1)


def _name_remote(address: str) -> str:
    """Return the last part of an address's path, or "" for an invalid address."""
    try:
        return PurePosixPath(unquote(urlsplit(address).path)).name
    except ValueError:
        return ""


LONGEST_ID = 20
"""Digits."""
IDS_FROM = 10_000_000
"""WebQA counts its pictures up from a multiple of it: the rest is the line."""
