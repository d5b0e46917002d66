"""What trainers' data loaders drop, shift or fail on, as one pydantic model for each row or document that they read.

Written from the sources of, and run against, LLaMA-Factory 0.9.5, ms-swift 4.6.0, TRL 1.16.0, veRL 0.9.1, the registry
of rLLM 1f81bd8 (version 2) and the dataset classes of MMSearch-R1 and SenseNova-MARS. A row without a fault is loaded
whole, with every picture in its place.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    Json,
    RootModel,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from pipelines.errors import RecordFailed
from pipelines.pictures import read_header
from pipelines.release.rows import list_misfits, shorten

IMAGE = "<image>"
OTHER_MEDIA = ("<video>", "<audio>")
CONTROL = re.compile(
    r"<[|｜][^<>]{0,64}[|｜]>|</?\s{0,8}(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)\s{0,8}>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
"""Control tokens of common chat templates; a tokenizer reads them as such wherever they stand."""
SURROGATE = re.compile("[\ud800-\udfff]")
TURNS = re.compile(r"</?(?:think|tool_call|tool_response)>")
"""Tags that only the assistant, and a template around a tool's reply, may write."""
WRAPPED = ("<tool_response>", "</tool_response>")
MAX_RATIO = 200
"""Of the longer to the shorter side; Qwen's picture loader raises an error beyond."""
IN_LLAMAFACTORY = re.compile(r"\{\{(?:content|idx)\}\}")
IN_MS_SWIFT = re.compile(r"\{\{(?:SYSTEM|QUERY|RESPONSE|ROUND[01])\}\}")
"""Variables of a reader's template, which it fills in wherever they stand."""

Row = Mapping[str, Any]


class Loaded(BaseModel, strict=True):
    """A value as a trainer reads it; other fields than those declared are ignored."""

    @model_validator(mode="after")
    def _run_check(self, info: ValidationInfo) -> Self:
        self._check(info.context or {})
        return self

    def _check(self, context: Mapping[str, Any]) -> None:
        """Raise ValueError where the fields do not fit together; ``context`` is that of :func:`find_faults`."""


def find_faults(model: type[BaseModel], value: object, **context: object) -> Iterator[str]:
    """Yield each way in which a value does not fit a model, with its place in the value."""
    try:
        model.model_validate(value, context=context)
    except ValidationError as error:
        yield from list_misfits(error)


def find_repeats(ids: Sequence[str]) -> Iterator[str]:
    """Yield the ids that several rows share, in any split: readers join results by id without a check."""
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            yield f"id: {shorten(name)} stands for more than one row"
        seen.add(name)


def describe_picture_fault(data: bytes) -> str:
    """Return why a picture cannot be loaded: not PNG, JPEG, GIF or WebP, or far too narrow; empty when it can."""
    try:
        header = read_header(data)
    except RecordFailed as error:
        return f"is not a PNG, JPEG, GIF or WebP file: {error}"
    width, height = header.width, header.height
    if max(width, height) > MAX_RATIO * min(width, height):
        return f"is {width} x {height} pixels: the sides may differ by a factor of {MAX_RATIO} at most"
    return ""


def _check_picture(data: bytes) -> bytes:
    if fault := describe_picture_fault(data):
        raise ValueError(fault)
    return data


def _check_text(text: str) -> str:
    for medium in OTHER_MEDIA:
        if medium in text:
            raise ValueError(f"holds {medium}, for which there is no such medium")
    if token := CONTROL.search(text):
        raise ValueError(f"holds {token[0]!r}, which is tokenised as a control token")
    if SURROGATE.search(text):
        raise ValueError("holds an unpaired surrogate, which is not a unicode character")
    return text


def _check_shown(text: str, variable: re.Pattern[str] | None = None) -> str:
    """Check a message of the user or a tool: it may not hold the model's tags or a template's variables."""
    _check_text(text)
    inside = text.replace(IMAGE, "").strip()
    if inside.startswith(WRAPPED[0]) and inside.endswith(WRAPPED[1]):
        inside = inside[len(WRAPPED[0]) : -len(WRAPPED[1])]
    if tag := TURNS.search(inside):
        raise ValueError(f"holds {tag[0]}, which only the model may write")
    if variable and (filled := variable.search(text)):
        raise ValueError(f"holds {filled[0]}, which the reader's template fills in")
    return text


def _check_said(text: str) -> str:
    """Check a message of the model or the system."""
    _check_text(text)
    if IMAGE in text:
        raise ValueError(f"holds {IMAGE}; pictures stand in messages of the user or a tool")
    return text


def _check_filled(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def _check_file(name: str, info: ValidationInfo) -> str:
    exists: Callable[[str], bool] = (info.context or {})["exists"]
    if name.startswith(("/", "~")) or ".." in name.split("/"):
        raise ValueError(f"{shorten(name)} leads out of the folder")
    if not exists(name):
        raise ValueError(f"{shorten(name)} is missing")
    return name


def _check_count(texts: Sequence[str], images: Sequence[object] | None) -> None:
    """Check that all messages together hold one ``<image>`` for each picture."""
    found, pictures = sum(text.count(IMAGE) for text in texts), len(images or ())
    if found != pictures:
        raise ValueError(f"{found} placeholders for {pictures} pictures; there must be one each")


def _check_alternation(roles: Sequence[str]) -> None:
    turns = list(roles[1:] if roles[:1] == ["system"] else roles)
    if turns != ["user", "assistant"] * (len(turns) // 2) or not turns:
        raise ValueError(f"roles are {shorten(turns)}; user and assistant must alternate and the assistant must end")


def _check_truth(truth: str, candidates: Sequence[str]) -> None:
    if truth not in candidates:
        raise ValueError("the ground truth is not among the candidate answers")


def _check_known(value: object) -> object:
    if value is None:
        raise ValueError("is null")
    return value


Text = Annotated[str, AfterValidator(_check_text)]
Said = Annotated[str, AfterValidator(_check_said)]
Filled = Annotated[str, AfterValidator(_check_filled)]
PictureBytes = Annotated[bytes, AfterValidator(_check_picture)]
FileName = Annotated[str, AfterValidator(_check_file)]
Files = list[FileName]
"""Relative names of files that exist; the context says which: ``exists``."""
Answers = Json[list[str]]
"""A list as JSON: a list column comes out of Parquet as an array, which reward managers that ask for a list refuse."""


class NamedTool(Loaded):
    """A tool's schema, bare or as a function."""

    name: Annotated[str, Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, value: object) -> object:
        return value.get("function", value) if isinstance(value, dict) else value


Tools = Annotated[Json[list[NamedTool]] | None, BeforeValidator(lambda tools: None if tools == "" else tools)]
"""A JSON array as text: as structures, fields of one tool become nulls of all others."""


def _check_call(text: str) -> None:
    try:
        call = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError(f"the call is not JSON: {shorten(text)}") from None
    if isinstance(call, list):
        raise ValueError("several calls in one turn")
    name = call.get("name") if isinstance(call, dict) and "function" not in call else None
    if not isinstance(name, str) or not name:
        raise ValueError(f"the call has no name: {shorten(text)}")
    if not isinstance(call.get("arguments"), dict):
        raise ValueError("the arguments of the call are not an object; text would be encoded a second time")


def _refuse_constant(literal: str) -> float:
    raise ValueError(f"{literal} is not a JSON number")


THOUGHT = re.compile(r"<think>\n(?P<thought>.*?)\n</think>\n\n", re.DOTALL)
HUMAN, MODEL = ("human", "observation"), ("gpt", "function_call")


COLUMNS = {"messages": "conversations", "images": "images", "system": "system", "tools": "tools"}


class DatasetEntry(Loaded):
    """One dataset of LLaMA-Factory's ``dataset_info.json``, as synth writes it.

    ``formatting`` openai loses the content of every turn that calls a tool. Tags that ``tags`` leaves out are None, and
    rows with calls vanish: there must be none.
    """

    file_name: Annotated[FileName, Field(pattern=r"\.jsonl$")]
    formatting: Literal["sharegpt"]
    columns: dict[str, str]
    tags: None = None

    def _check(self, context: Mapping[str, Any]) -> None:
        if self.columns != COLUMNS:
            raise ValueError(f"columns are {shorten(self.columns)}; a column that is not named is not read")


class DatasetInfo(RootModel[Annotated[dict[str, DatasetEntry], Field(min_length=1)]]):
    """LLaMA-Factory's ``dataset_info.json``."""


class SharegptTurn(Loaded):
    """One turn as LLaMA-Factory reads it."""

    speaker: str = Field(alias="from")
    value: str

    def _check(self, context: Mapping[str, Any]) -> None:
        if self.speaker in MODEL:
            _check_text(self.value)
        else:
            _check_shown(self.value, IN_LLAMAFACTORY if self.speaker == "human" else None)
        if self.speaker == "function_call":
            _check_call(self._read_call())

    def _read_call(self) -> str:
        """Return the call: JSON alone, JSON after a thought in exactly the template's form, or in tool_call tags."""
        opened, closed = "<tool_call>", "</tool_call>"
        if opened in self.value and closed in self.value:
            if self.value.count(opened) > 1:
                raise ValueError("several calls in one turn")
            return self.value.partition(opened)[2].partition(closed)[0]
        thought = THOUGHT.match(self.value)
        if thought is None and "<think>" in self.value:
            raise ValueError(f"the thought must be '<think>\\n...\\n</think>\\n\\n': {shorten(self.value)}")
        return self.value[thought.end() :] if thought else self.value


class SharegptRow(Loaded):
    """One row as LLaMA-Factory reads it; where the turns are out of order, it drops the row with a warning."""

    conversations: Annotated[list[SharegptTurn], Field(min_length=1)]
    images: Files | None = None
    system: Said | None = None
    tools: Tools = None

    def _check(self, context: Mapping[str, Any]) -> None:
        roles = [turn.speaker for turn in self.conversations]
        if roles[0] == "system":
            raise ValueError("turn 0 (system) takes the place of the column system; leave it out")
        if roles[0] == "observation":
            raise ValueError("turn 0 is an observation without a call")
        for number, role in enumerate(roles):
            if role not in (allowed := MODEL if number % 2 else HUMAN):
                raise ValueError(f"turn {number} is from {shorten(role)}; it must be from {' or '.join(allowed)}")
        if len(roles) % 2:
            raise ValueError(f"{len(roles)} turns; the last one must be gpt or function_call")
        _check_count([turn.value for turn in self.conversations], self.images)


REPLIES = ("tool_response", "tool")


class SwiftMessage(Loaded):
    """One message as ms-swift reads it."""

    role: Literal["system", "user", "assistant", "tool_call", "tool_response", "tool"]
    content: str
    loss: bool | None = None

    def _check(self, context: Mapping[str, Any]) -> None:
        if self.role in ("user", *REPLIES):
            _check_shown(self.content, IN_MS_SWIFT)
        else:
            _check_said(self.content)
        if self.role == "tool_call":
            _check_call(self.content)
        if self.role in ("assistant", "tool_call"):
            if self.loss is None:
                raise ValueError("loss is missing; it must be true or false")
        elif self.loss:
            raise ValueError(f"a message of {self.role} has a loss; only the model's are trained on")
        thoughts = self.content.count("<think>")
        whole = thoughts == 1 and self.content.startswith("<think>") and "</think>" in self.content
        if self.role == "assistant" and thoughts and not whole:
            raise ValueError(f"the thought must be '<think>\\n...\\n</think>', first: {shorten(self.content)}")


class SwiftRow(Loaded):
    """One row as ms-swift reads it; its loader itself checks almost nothing."""

    messages: Annotated[list[SwiftMessage], Field(min_length=1)]
    images: Files | None = None
    tools: Tools = None

    def _check(self, context: Mapping[str, Any]) -> None:
        self._check_order([message.role for message in self.messages])
        texts = [message.content for message in self.messages]
        _check_count(texts, self.images)
        if not self.images and any("<img>" in text and "</img>" in text for text in texts):
            raise ValueError("a message holds <img>...</img>, which becomes a placeholder in rows without pictures")

    @staticmethod
    def _check_order(roles: Sequence[str]) -> None:
        """Consecutive messages of one kind are merged; a tool's reply must follow a call, a call must have a reply."""
        turns = list(roles[1:] if roles[0] == "system" else roles)
        if "system" in turns:
            raise ValueError("a system message stands after the beginning")
        if not turns or turns[0] != "user" or turns[-1] != "assistant":
            raise ValueError(f"roles are {shorten(turns)}; the user must begin and the assistant must end")
        for number, (here, after) in enumerate(pairwise(turns)):
            if here == after:
                raise ValueError(f"turns {number} and {number + 1} are both of {here} and would be merged")
            if after in REPLIES and here != "tool_call":
                raise ValueError(f"turn {number + 1} is a tool's reply without a call")
            if here == "tool_call" and after not in (*REPLIES, "user"):
                raise ValueError(f"the call of turn {number} has no reply")


class LoadedImage(Loaded):
    """An embedded picture; a path alone is not opened."""

    bytes: PictureBytes


class BareImage(LoadedImage, extra="forbid"):
    """An embedded picture where the path must be null."""

    path: None


class LoadedPart(Loaded):
    """A piece of a message for TRL: text, or the place of a picture, which holds nothing."""

    type: Literal["text", "image"]
    text: str | None
    image: None = None

    def _check(self, context: Mapping[str, Any]) -> None:
        if (self.type == "image") != (self.text is None):
            raise ValueError("a part is either a text or the empty place of a picture")
        if self.text is not None and IMAGE in self.text:
            raise ValueError(f"holds {IMAGE} as text, which is not read as a picture")


class TrlMessage(Loaded):
    """A message for TRL: plain text would put all pictures before the first question."""

    role: str
    content: Annotated[list[LoadedPart], Field(min_length=1)]

    def _check(self, context: Mapping[str, Any]) -> None:
        for part in self.content:
            if part.text is not None:
                (_check_shown if self.role == "user" else _check_text)(part.text)
            elif self.role != "user":
                raise ValueError(f"a message of {self.role} has a picture; only those of user are filled in")


class LoadedTrlRow(Loaded):
    """One row as TRL reads it; with pictures, tools are not passed to the template."""

    messages: Annotated[list[TrlMessage], Field(min_length=1)]
    images: list[LoadedImage]
    tools: None = None

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_alternation([message.role for message in self.messages])
        places = [IMAGE for message in self.messages for part in message.content if part.type == "image"]
        _check_count(places, self.images)


class VerlSftMessage(Loaded):
    """A message as veRL's multi-turn reader takes it."""

    role: str
    content: str

    def _check(self, context: Mapping[str, Any]) -> None:
        (_check_shown if self.role == "user" else _check_said)(self.content)


class LoadedVerlSftRow(Loaded):
    """One row as veRL's multi-turn SFT reader takes it: it refuses tools as text, and fills structures with nulls."""

    messages: Annotated[list[VerlSftMessage], Field(min_length=1)]
    images: list[LoadedImage]
    tools: None = None

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_alternation([message.role for message in self.messages])
        _check_count([message.content for message in self.messages], self.images)


PLACEHOLDER_PROMPT = [{"role": "user", "content": "placeholder"}]
"""What rLLM puts where veRL wants a prompt."""


class PromptMessage(Loaded):
    """A message of a prompt. Placeholders in a list of parts are not counted, so the content must be text."""

    role: Literal["system", "user", "assistant"]
    content: Text


class RuleReward(Loaded):
    """A rule reward, whose ground truth is text in the whole file."""

    style: Literal["rule"]
    ground_truth: Filled


class ToolArguments(Loaded):
    """What a tool is created with. Missing fields would be nulls, and ``None.get`` the tool's reply."""

    create_kwargs: Annotated[dict[str, Annotated[Any, AfterValidator(_check_known)]], Field(min_length=1)]


class VerlExtra(Loaded):
    """``extra_info`` for veRL; the context says which tools every row has arguments for: ``tools``."""

    index: int
    candidate_answers: Answers
    need_tools_kwargs: Literal[True]
    tools_kwargs: dict[str, ToolArguments]

    def _check(self, context: Mapping[str, Any]) -> None:
        wanted = sorted(context["tools"])
        if sorted(self.tools_kwargs) != wanted:
            raise ValueError(f"tools_kwargs has {sorted(self.tools_kwargs)}; every row must have {wanted}")


class LoadedVerlRow(Loaded):
    """One row as veRL reads it.

    With ``filter_overlong_prompts``, its default, a row that raises an error is dropped as too long. Its own agent
    loops are two; another name is an assertion error.
    """

    prompt: Annotated[list[PromptMessage], Field(min_length=1)]
    images: list[BareImage]
    reward_model: RuleReward
    data_source: Filled
    agent_name: Literal["tool_agent", "single_turn_agent"]
    extra_info: VerlExtra

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_count([message.content for message in self.prompt], self.images)
        _check_truth(self.reward_model.ground_truth, self.extra_info.candidate_answers)


class LoadedRllmRow(Loaded):
    """One row of rLLM's Arrow file."""

    id: Filled
    question: Annotated[Said, AfterValidator(_check_filled)]
    answer: Filled
    candidate_answers: Answers
    images: list[PictureBytes]

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_truth(self.answer, self.candidate_answers)


def find_rllm_faults(row: Row, first: Row) -> Iterator[str]:
    """Yield what rLLM would lose of one row, or of the file when it is registered again.

    Args:
        row: as the Arrow file gives it.
        first: the file's first row, which alone decides the columns and whether there are pictures.
    """
    if list(row) != list(first):
        yield f"row: has {list(row)}; the first one has {list(first)}, and other columns are lost"
    if row.get("images") and not first.get("images"):
        yield "images: the first row has none, so these are not known as pictures when the rows are registered again"
    yield from find_faults(LoadedRllmRow, row)


def find_companion_faults(companion: Row, row: Row) -> Iterator[str]:
    """Yield where rLLM's row for veRL is not its own row with wrapped pictures."""
    wrapped = {**row, "images": [{"bytes": image, "path": ""} for image in row.get("images") or ()]}
    if companion.get("extra_info") != wrapped:
        yield "extra_info: is not the row with its pictures as bytes and an empty path"
    if companion.get("prompt") != PLACEHOLDER_PROMPT:
        yield f"prompt: is {shorten(companion.get('prompt'))}; rLLM puts a placeholder there"


MMSEARCH_SOURCE = "mmsearch_r1"


class MmsearchMessage(Loaded):
    """The question; the reader puts its own prompt, which ends with a placeholder, before it."""

    role: Literal["user"]
    content: Said


class MmsearchReward(RuleReward):
    """The reward with its accepted answers."""

    candidate_answers: Answers


class IndexedExtra(Loaded):
    """``extra_info`` of which the index is read."""

    index: int


class LoadedMmsearchRow(Loaded):
    """One row as MMSearch-R1 reads it: one bare question, one picture, and a source that has a reward."""

    prompt: Annotated[list[MmsearchMessage], Field(min_length=1, max_length=1)]
    images: Annotated[list[BareImage], Field(min_length=1, max_length=1)]
    reward_model: MmsearchReward
    data_source: Annotated[str, Field(pattern=MMSEARCH_SOURCE)]
    extra_info: IndexedExtra

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_truth(self.reward_model.ground_truth, self.reward_model.candidate_answers)


class CacheMeta(Loaded):
    """``meta.json`` of the image-search cache; the context names the other files of its folder: ``files``."""

    search_results: list[dict[str, Any]]

    def _check(self, context: Mapping[str, Any]) -> None:
        if not all("title" in result for result in self.search_results):
            raise ValueError("a result has no title")
        stems = sorted(name.partition(".")[0] for name in context["files"])
        if stems != [f"img_{number:03d}" for number in range(len(self.search_results))]:
            raise ValueError(f"thumbnails are {shorten(stems)} for {len(self.search_results)} titles, in this order")


MarsReward = Literal[
    "f1_score", "llm_score", "llm_score_allow_no_answer_tag", "em_score", "em_score_mcq", "format_score"
]
MARS_RESULTS = 5
"""``image_search_max_results``: later results are cut off."""


class MarsTemplate(Loaded):
    """How SenseNova-MARS makes a prompt of a row."""

    name: str
    arguments: dict[str, Any]


class MarsEntry(Loaded):
    """One dataset of a manifest; the context holds the lines of each file (``lines``) and ``train``.

    Below a ``repeat_time`` of 1 rows are left out at random; without a root thumbnails are looked for where the trainer
    was started.
    """

    annotation: str
    length: int
    root: Filled
    repeat_time: Annotated[float, Field(ge=1)]
    reward_fn: list[MarsReward]
    unused_reward_fn: list[Any]
    input_template: MarsTemplate

    def _check(self, context: Mapping[str, Any]) -> None:
        lines = context["lines"]
        if self.annotation not in lines:
            raise ValueError(f"the annotation {shorten(self.annotation)} does not exist; root is not searched for it")
        if self.length != lines[self.annotation]:
            raise ValueError(f"length is {self.length} for {lines[self.annotation]} lines; loading stops there")
        if context["train"] and not self.reward_fn:
            raise ValueError("reward_fn is empty")


class MarsManifest(RootModel[Annotated[dict[str, MarsEntry], Field(min_length=1)]]):
    """A manifest of SenseNova-MARS: its datasets by name."""


def find_manifest_faults(name: str, manifest: object, lines: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with a manifest of SenseNova-MARS.

    Args:
        name: the manifest's file name, which alone says whether it is trained on.
        manifest: the document.
        lines: lines that are not blank of each annotation file, by its path as the manifest has it.
    """
    if ("train" in name) == ("test" in name):
        yield f"{name}: the name must hold either train or test; with both it is trained on"
    yield from (f"{name}: {fault}" for fault in find_faults(MarsManifest, manifest, lines=lines, train="train" in name))


class LoadedMarsTrajectory(Loaded):
    """One trajectory in the layout of a manifest's rows: messages with pictures as files, the answer and the tools."""

    index: Any
    messages: Annotated[list[PromptMessage], Field(min_length=3)]
    images: Files
    question: Filled
    reward_model: RuleReward
    source: Filled
    tools: Annotated[list[dict[str, Any]], Field(min_length=1)]

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_count([message.content for message in self.messages], self.images)
        turns = [message.role for message in self.messages if message.role != "system"]
        if turns != ["user", "assistant"] * (len(turns) // 2):
            raise ValueError("user and assistant do not take turns, or the assistant does not end")


class LoadedMarsRow(Loaded):
    """One row as SenseNova-MARS reads it; without an index, the row's name would be its place after repeats."""

    index: Any
    prompt: Annotated[list[PromptMessage], Field(min_length=1)]
    images: Files
    reward_model: RuleReward
    image_search_title_list: Annotated[list[str], Field(max_length=MARS_RESULTS)]
    image_search_thumbnail_list: Files

    def _check(self, context: Mapping[str, Any]) -> None:
        _check_count([message.content for message in self.prompt], self.images)
        if any(message.role == "system" for message in self.prompt):
            raise ValueError("the prompt has a system message; the manifest's is put in, and two are an error")
        titles, thumbnails = len(self.image_search_title_list), len(self.image_search_thumbnail_list)
        if titles != thumbnails:
            raise ValueError(f"image search: {titles} titles for {thumbnails} thumbnails; there must be one for each")
