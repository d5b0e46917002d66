"""What trainers' data loaders drop, shift or fail on, as rules over plain values; each yields faults in words.

Read from and run against LLaMA-Factory 0.9.5, ms-swift 4.6.0, TRL 1.16.0, veRL 0.9.1, the registry of rLLM 1f81bd8
(version 2) and the dataset classes of MMSearch-R1 and SenseNova-MARS. A row without a fault is loaded whole, with every
picture where it belongs.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeGuard

from pipelines.errors import RecordFailed
from pipelines.pictures import read_header

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
SHOWN = 60
"""Characters of a value that a fault quotes."""
MAX_RATIO = 200
"""Of the longer to the shorter side; Qwen's picture loader raises an error beyond."""

Row = Mapping[str, Any]
Turns = list[dict[str, Any]]
Exists = Callable[[str], bool]


def shorten(value: object) -> str:
    """Return a value as a fault quotes it."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def find_picture_faults(data: object, where: str) -> Iterator[str]:
    """Yield what is wrong with a picture's bytes: not PNG, JPEG, GIF or WebP, or far too narrow."""
    if not isinstance(data, bytes) or not data:
        yield f"{where} has no bytes: a path alone is not opened"
        return
    try:
        header = read_header(data)
    except RecordFailed as error:
        yield f"{where} is not a PNG, JPEG, GIF or WebP file: {error}"
        return
    width, height = header.width, header.height
    if max(width, height) > MAX_RATIO * min(width, height):
        yield f"{where} is {width} x {height}: sides may differ by a factor of {MAX_RATIO} at most"


def find_text_faults(text: object, where: str) -> Iterator[str]:
    """Yield what no message may hold: placeholders of other media, control tokens, unpaired surrogates."""
    if not isinstance(text, str):
        yield f"{where}: is {type(text).__name__}, not text"
        return
    for medium in OTHER_MEDIA:
        if medium in text:
            yield f"{where}: holds {medium}, which is counted as a medium that is not there"
    if token := CONTROL.search(text):
        yield f"{where}: holds {token[0]!r}, which is tokenised as a control token"
    if SURROGATE.search(text):
        yield f"{where}: holds an unpaired surrogate, which is no character"


def find_shown_faults(text: object, where: str, variable: re.Pattern[str] | None = None) -> Iterator[str]:
    """Yield what a user's or a tool's message may not hold: also the model's tags and a template's variables."""
    yield from find_text_faults(text, where)
    if not isinstance(text, str):
        return
    inside = text.replace(IMAGE, "").strip()
    if inside.startswith(WRAPPED[0]) and inside.endswith(WRAPPED[1]):
        inside = inside[len(WRAPPED[0]) : -len(WRAPPED[1])]
    if tag := TURNS.search(inside):
        yield f"{where}: holds {tag[0]}, which only the model may write"
    if variable and (filled := variable.search(text)):
        yield f"{where}: holds {filled[0]}, which the reader's template fills in"


def find_count_faults(texts: Sequence[str], images: object) -> Iterator[str]:
    """Yield a fault unless all messages together hold one ``<image>`` for each picture."""
    found, pictures = sum(text.count(IMAGE) for text in texts), _count(images)
    if found != pictures:
        yield f"images: {found} placeholders for {pictures} pictures; there must be one each"


def find_file_faults(names: object, exists: Exists) -> Iterator[str]:
    """Yield what is wrong with a list of picture files: relative names of files that exist."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield f"images: is {shorten(names)}, not a list of paths"
        return
    for name in names:
        if name.startswith(("/", "~")) or ".." in name.split("/"):
            yield f"images: {shorten(name)} leads out of the folder"
        elif not exists(name):
            yield f"images: {shorten(name)} is missing"


def find_embedded_faults(images: object, bare: bool = False) -> Iterator[str]:
    """Yield what is wrong with embedded pictures, ``{"bytes": ..., "path": ...}``; ``bare``: the path must be null."""
    if not isinstance(images, list):
        yield f"images: is {shorten(images)}, not a list"
        return
    for number, image in enumerate(images):
        where = f"images: picture {number}"
        whole = isinstance(image, dict) and set(image) == {"bytes", "path"} and image["path"] is None
        if bare and not whole:
            yield f"{where} is {shorten(image)}; it is a struct of bytes and of a path that is null"
        else:
            yield from find_picture_faults(image.get("bytes") if isinstance(image, dict) else None, where)


def find_tools_faults(tools: object) -> Iterator[str]:
    """Yield what is wrong with tools' schemas: a JSON array, as text, of objects with a name each."""
    if tools in (None, ""):
        return
    if not isinstance(tools, str):
        yield f"tools: is {type(tools).__name__}; as structures, fields of one tool become nulls of all others"
        return
    try:
        listed = json.loads(tools)
    except (ValueError, RecursionError):
        yield f"tools: is not JSON: {shorten(tools)}"
        return
    if not isinstance(listed, list) or not all(map(_has_name, listed)):
        yield f"tools: is not an array of objects with a name: {shorten(tools)}"


def _has_name(tool: object) -> bool:
    inner = tool.get("function", tool) if isinstance(tool, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("name"), str) and bool(inner["name"])


def find_call_faults(text: str, where: str) -> Iterator[str]:
    """Yield what is wrong with a call: JSON with a name and arguments that are an object, not text."""
    try:
        call = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        yield f"{where}: the call is not JSON: {shorten(text)}"
        return
    if isinstance(call, list):
        yield f"{where}: holds several calls; there is one a turn"
    elif not _has_name(call) or "function" in call:
        yield f"{where}: the call has no name: {shorten(text)}"
    elif isinstance(call.get("arguments"), str):
        yield f"{where}: the arguments are text, which is encoded a second time; they must be an object"
    elif not isinstance(call.get("arguments"), dict):
        yield f"{where}: the arguments are no object: {shorten(text)}"


def _refuse(literal: str) -> float:
    raise ValueError(f"{literal} is no JSON number")


def are_texts(turns: object, keys: tuple[str, str]) -> TypeGuard[Turns]:
    """Say whether a value is a list of objects with text under both keys."""
    if not isinstance(turns, list) or not turns:
        return False
    return all(isinstance(turn, dict) and all(isinstance(turn.get(key), str) for key in keys) for turn in turns)


def find_alternation_faults(roles: Sequence[str]) -> Iterator[str]:
    """Yield a fault unless, after at most one system message, user and assistant alternate and the assistant ends."""
    turns = list(roles[1:] if roles[:1] == ["system"] else roles)
    if turns != ["user", "assistant"] * (len(turns) // 2) or not turns:
        yield f"messages: roles are {shorten(turns)}; user and assistant take turns and the assistant ends"


THOUGHT = re.compile(r"<think>\n(?P<thought>.*?)\n</think>\n\n", re.DOTALL)
IN_LLAMAFACTORY = re.compile(r"\{\{(?:content|idx)\}\}")
IN_MS_SWIFT = re.compile(r"\{\{(?:SYSTEM|QUERY|RESPONSE|ROUND[01])\}\}")
ROLES = {
    "user_tag": "human",
    "assistant_tag": "gpt",
    "observation_tag": "observation",
    "function_tag": "function_call",
    "system_tag": "system",
}
HUMAN, MODEL = ("human", "observation"), ("gpt", "function_call")
SWIFT_ROLES = ("system", "user", "assistant", "tool_call", "tool_response", "tool")
REPLIES = ("tool_response", "tool")
DATA_FILES = (".json", ".jsonl", ".parquet", ".csv", ".arrow", ".txt")


def find_dataset_faults(document: object, exists: Exists) -> Iterator[str]:
    """Yield what is wrong with LLaMA-Factory's ``dataset_info.json``."""
    if not isinstance(document, dict) or not document:
        yield "dataset_info.json: is no object with datasets"
        return
    for name, entry in document.items():
        yield from (f"dataset_info.json: {name}: {fault}" for fault in _find_entry_faults(entry, exists))


def _find_entry_faults(entry: object, exists: Exists) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "is no object"
        return
    file, form = entry.get("file_name"), entry.get("formatting")
    if not isinstance(file, str) or not file.endswith(DATA_FILES):
        yield f"file_name is {shorten(file)}; it takes one of {', '.join(DATA_FILES)}"
    elif not exists(file):
        yield f"file_name {shorten(file)} is missing"
    if form == "openai":
        yield "formatting openai loses the content of every turn that calls a tool; take sharegpt"
    elif form != "sharegpt":
        yield f"formatting is {shorten(form)}; conversations need sharegpt"
    tags = entry.get("tags", dict.fromkeys(("role_tag", "content_tag", *ROLES), ""))
    missing = [
        tag
        for tag in ("role_tag", "content_tag", *ROLES)
        if not isinstance(tags, dict) or not isinstance(tags.get(tag), str)
    ]
    if missing:
        yield f"tags leaves out {', '.join(missing)}, which are then none: rows with calls vanish; leave tags out"
    columns = entry.get("columns")
    for column in ("messages", "images", "system", "tools"):
        if not isinstance(columns, dict) or not columns.get(column) or not isinstance(columns[column], str):
            yield f"columns has no {column}, which is then not read"


def name_as_default(row: Row, entry: Row) -> Row:
    """Return a sharegpt row under LLaMA-Factory's default names, where its entry has others for columns and tags."""
    columns = {"messages": "conversations", **(entry.get("columns") or {})}
    named = {**row, "conversations": row.get(columns["messages"])}
    named |= {column: row.get(columns.get(column, "")) for column in ("images", "system", "tools")}
    tags, turns = entry.get("tags"), named["conversations"]
    if not tags or not are_texts(turns, (tags["role_tag"], tags["content_tag"])):
        return named
    defaults = {tags[tag]: role for tag, role in ROLES.items()}
    words = [(turn[tags["role_tag"]], turn[tags["content_tag"]]) for turn in turns]
    return named | {"conversations": [{"from": defaults.get(role, role), "value": value} for role, value in words]}


def find_llamafactory_faults(row: Row, exists: Exists) -> Iterator[str]:
    """Yield what LLaMA-Factory would drop, shift or fail on in one sharegpt row."""
    turns = row.get("conversations")
    if not are_texts(turns, ("from", "value")):
        yield "conversations: is no list of turns with from and value"
        return
    yield from _find_order_faults([turn["from"] for turn in turns])
    for number, turn in enumerate(turns):
        where = f"turn {number} ({turn['from']})"
        if turn["from"] in MODEL:
            yield from find_text_faults(turn["value"], where)
        else:
            yield from find_shown_faults(turn["value"], where, IN_LLAMAFACTORY if turn["from"] == "human" else None)
        if turn["from"] == "function_call":
            yield from _find_function_faults(turn["value"], where)
    system = row.get("system") or ""
    yield from find_text_faults(system, "system")
    if IMAGE in system:
        yield f"system: holds {IMAGE}, which no picture stands for"
    yield from find_tools_faults(row.get("tools"))
    yield from find_file_faults(row.get("images") or [], exists)
    yield from find_count_faults([turn["value"] for turn in turns], row.get("images"))


def _find_order_faults(roles: Sequence[str]) -> Iterator[str]:
    """LLaMA-Factory drops a row with a warning where the turns are out of order."""
    if roles[0] == "system":
        yield "turn 0 (system): wins over the column system; leave it out"
        roles = roles[1:]
    for number, role in enumerate(roles):
        allowed = MODEL if number % 2 else HUMAN
        if role not in allowed:
            yield f"turn {number}: is from {role!r}; only {' or '.join(allowed)} may stand here"
            return
    if len(roles) % 2:
        yield f"conversations: {len(roles)} turns; the last one must be gpt or function_call"
    if roles and roles[0] == "observation":
        yield "turn 0: is an observation of nothing"


def _find_function_faults(value: str, where: str) -> Iterator[str]:
    """A call is JSON alone, JSON after a thought in exactly the template's form, or JSON in tool_call tags."""
    opened, closed = "<tool_call>", "</tool_call>"
    if opened in value and closed in value:
        call = value.partition(opened)[2].partition(closed)[0]
        if value.count(opened) > 1:
            yield f"{where}: holds several calls; there is one a turn"
    else:
        found = THOUGHT.match(value)
        call = value[found.end() :] if found else value
        if found is None and "<think>" in value:
            yield f"{where}: the thought must be '<think>\\n...\\n</think>\\n\\n' and nothing else: {shorten(value)}"
            return
    yield from find_call_faults(call, where)


def find_ms_swift_faults(row: Row, exists: Exists) -> Iterator[str]:
    """Yield what ms-swift would shift, drop or fail on in one row; its loader checks almost nothing."""
    messages = row.get("messages")
    if not are_texts(messages, ("role", "content")):
        yield "messages: is no list of messages with role and content"
        return
    yield from _find_role_faults([message["role"] for message in messages])
    for number, message in enumerate(messages):
        yield from _find_swift_faults(message, f"message {number} ({message['role']})")
    yield from find_tools_faults(row.get("tools"))
    images, texts = row.get("images") or [], [message["content"] for message in messages]
    yield from find_file_faults(images, exists)
    yield from find_count_faults(texts, images)
    if not images and any("<img>" in text and "</img>" in text for text in texts):
        yield "messages: hold <img>...</img>, which becomes a placeholder in rows without pictures"


def _find_swift_faults(message: Row, where: str) -> Iterator[str]:
    role, content, loss = message["role"], message["content"], message.get("loss")
    said = role in ("assistant", "tool_call")
    yield from _find_spoken_faults(content, where, role not in ("user", *REPLIES), IN_MS_SWIFT)
    if role == "tool_call":
        yield from find_call_faults(content, where)
    if said and not isinstance(loss, bool):
        yield f"{where}: loss is {shorten(loss)}; it must be true or false"
    if not said and loss:
        yield f"{where}: has a loss, though it is not the model's"
    whole = content.count("<think>") == 1 and content.startswith("<think>") and "</think>" in content
    if role == "assistant" and "<think>" in content and not whole:
        yield f"{where}: the thought must be '<think>\\n...\\n</think>' and an empty line: {shorten(content)}"


def _find_spoken_faults(text: str, where: str, said: bool, variable: re.Pattern[str] | None = None) -> Iterator[str]:
    """Hold a message to the rules of what the model or the system says, or of what the model is shown."""
    if not said:
        yield from find_shown_faults(text, where, variable)
        return
    yield from find_text_faults(text, where)
    if IMAGE in text:
        yield f"{where}: holds {IMAGE}; pictures stand in what the model is shown"


def _find_role_faults(roles: Sequence[str]) -> Iterator[str]:
    unknown = [role for role in roles if role not in SWIFT_ROLES]
    if unknown:
        yield f"messages: role {shorten(unknown[0])}; known are {', '.join(SWIFT_ROLES)}"
        return
    if "system" in roles[1:]:
        yield "messages: system stands after the beginning"
    turns = [role for role in roles if role != "system"]
    if not turns or turns[0] != "user":
        yield "messages: the first must be the user's"
    if turns and turns[-1] != "assistant":
        yield f"messages: the last is of {turns[-1]}; it must be of assistant"
    # Consecutive messages of one kind are merged; a tool's reply must follow a call, a call must have a reply.
    for number, (here, after) in enumerate(pairwise(turns)):
        if here == after == "tool_call":
            yield f"messages: turns {number} and {number + 1} are calls; there is one a turn"
        elif here == after:
            yield f"messages: turns {number} and {number + 1} are both of {here} and would be merged"
        elif after in REPLIES and here != "tool_call":
            yield f"messages: turn {number + 1} is a tool's reply without a call"
        elif here == "tool_call" and after not in (*REPLIES, "user"):
            yield f"messages: the call of turn {number} has no reply"


def find_trl_faults(row: Row) -> Iterator[str]:
    """Yield what TRL would shift or fail on in one row with typed content."""
    messages = row.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        yield "messages: is no list of messages"
        return
    yield from find_alternation_faults([str(message.get("role")) for message in messages])
    places = 0
    for number, message in enumerate(messages):
        where = f"message {number} ({message.get('role')})"
        parts = message.get("content")
        if isinstance(parts, str):
            yield f"{where}: is plain text; all pictures would be put before the first question"
        elif not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
            yield f"{where}: its content is no list of parts"
        else:
            yield from _find_part_faults(parts, str(message.get("role")), where)
            places += sum(part.get("type") == "image" for part in parts)
    yield from find_embedded_faults(row.get("images"))
    yield from find_count_faults([IMAGE] * places, row.get("images"))
    if row.get("tools"):
        yield "tools: are not passed to the template with pictures; put them into the system message"


def _find_part_faults(parts: Sequence[Row], role: str, where: str) -> Iterator[str]:
    for part in parts:
        text = part.get("text")
        if part.get("type") == "image":
            if role != "user":
                yield f"{where}: has a picture; only those of user are filled in"
            if text is not None or "image" in part:
                yield f"{where}: the place of a picture holds something already"
        elif part.get("type") == "text":
            yield from (find_shown_faults if role == "user" else find_text_faults)(text, where)
            if IMAGE in str(text):
                yield f"{where}: holds {IMAGE} as text, which is not read as a picture"
        else:
            yield f"{where}: a part is of type {shorten(part.get('type'))}; it must be text or image"


def find_verl_sft_faults(row: Row) -> Iterator[str]:
    """Yield what veRL's multi-turn SFT reader would shift or fail on in one row."""
    messages = row.get("messages")
    if not are_texts(messages, ("role", "content")):
        yield "messages: is no list of messages with role and text as content"
        return
    yield from find_alternation_faults([message["role"] for message in messages])
    for number, message in enumerate(messages):
        where = f"message {number} ({message['role']})"
        yield from _find_spoken_faults(message["content"], where, message["role"] != "user")
    yield from find_embedded_faults(row.get("images"))
    yield from find_count_faults([message["content"] for message in messages], row.get("images"))
    if row.get("tools") is not None:
        yield "tools: as text they are refused, as structures they fill up with nulls; put them into the system message"


AGENTS = ("tool_agent", "single_turn_agent")
"""Agent loops that veRL registers itself; another name is an assertion error."""
PLACEHOLDER_PROMPT = [{"role": "user", "content": "placeholder"}]
"""What rLLM puts where veRL wants a prompt."""


def find_prompt_faults(prompt: object) -> Iterator[str]:
    """Yield what is wrong with a prompt: a list of messages whose content is text."""
    if not isinstance(prompt, list) or not prompt:
        yield f"prompt: is {shorten(prompt)}, not a list of messages"
        return
    for number, message in enumerate(prompt):
        if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
            yield f"prompt: message {number} is {shorten(message)}, which has no role of a chat"
            continue
        # Placeholders in a list of parts are not counted, so the reader finds too many pictures.
        yield from find_text_faults(message.get("content"), f"prompt: message {number}")


def find_struct_faults(value: object, where: str) -> Iterator[str]:
    """Yield structs without fields, which Parquet cannot hold."""
    if value == {}:
        yield f"{where}: is an empty struct, which Parquet cannot hold"
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from find_struct_faults(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value[:1]:
            yield from find_struct_faults(inner, where)


def find_truth_faults(reward_model: object) -> Iterator[str]:
    """Yield what is wrong with a rule reward, whose ground truth is text in the whole file."""
    if not isinstance(reward_model, dict):
        yield f"reward_model: is {shorten(reward_model)}, not a struct"
        return
    yield from _find_blank_faults(reward_model, "ground_truth", "reward_model.")
    if reward_model.get("style") != "rule":
        yield f"reward_model.style: is {shorten(reward_model.get('style'))}; it is rule"


def _find_blank_faults(row: Row, name: str, where: str = "") -> Iterator[str]:
    if not isinstance(row.get(name), str) or not row[name].strip():
        yield f"{where}{name}: is {shorten(row.get(name))}; it is text in every row"


def find_answers_faults(text: object, truth: object, where: str) -> Iterator[str]:
    """Yield what is wrong with candidate answers: a list as JSON text that holds the ground truth.

    A list column comes out of Parquet as an array, which reward managers that ask for ``list`` refuse.
    """
    try:
        values = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        yield f"{where}: is {shorten(text)}; it is a list of texts as JSON"
    elif truth not in values:
        yield f"{where}: the ground truth is not among them"


def _get_struct(row: Row, name: str) -> Row:
    """Return a field that is a struct; empty where it is anything else."""
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def find_verl_faults(row: Row, tools: Sequence[str]) -> Iterator[str]:
    """Yield what veRL would drop or fail on in one row.

    With ``filter_overlong_prompts``, its default, a row that raises an error is dropped as too long.

    Args:
        row: as Parquet gives it.
        tools: names of the tools that every row of the file has arguments for.
    """
    yield from find_prompt_faults(row.get("prompt"))
    yield from find_embedded_faults(row.get("images"), bare=True)
    yield from find_count_faults(list_texts(row.get("prompt")), row.get("images"))
    yield from find_truth_faults(row.get("reward_model"))
    if not isinstance(row.get("data_source"), str) or not row["data_source"]:
        yield f"data_source: is {shorten(row.get('data_source'))}, not a name"
    if row.get("agent_name") not in AGENTS:
        yield f"agent_name: is {shorten(row.get('agent_name'))}; it is one of {', '.join(AGENTS)}"
    yield from find_struct_faults(dict(row), "row")
    extra = _get_struct(row, "extra_info")
    if not isinstance(extra.get("index"), int):
        yield f"extra_info: is {shorten(row.get('extra_info'))}; it is a struct with an index"
        return
    truth = _get_struct(row, "reward_model").get("ground_truth")
    yield from find_answers_faults(extra.get("candidate_answers"), truth, "extra_info.candidate_answers")
    # Rows with other keys are joined to one struct whose missing fields are null, and ``None.get`` becomes the reply.
    arguments = extra.get("tools_kwargs")
    if extra.get("need_tools_kwargs") is not True or not isinstance(arguments, dict):
        yield "extra_info: need_tools_kwargs is true, and tools_kwargs has the arguments of every tool"
        return
    if sorted(arguments) != sorted(tools):
        yield f"extra_info.tools_kwargs: has {sorted(arguments)}; every row has {sorted(tools)}"
    for name, value in arguments.items():
        created = value.get("create_kwargs") if isinstance(value, dict) else None
        if not isinstance(created, dict) or not created or None in created.values():
            yield f"extra_info.tools_kwargs.{name}: is {shorten(value)}; its create_kwargs has fields and no nulls"


def find_verl_tool_faults(schema: object) -> Iterator[str]:
    """Yield what veRL leaves out of a tool's schema: of a property it keeps only type, description and enum."""
    function = schema.get("function") if isinstance(schema, dict) else None
    parameters = function.get("parameters") if isinstance(function, dict) else None
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(function, dict) or not isinstance(properties, dict):
        yield f"tool: is {shorten(schema)}; it is a function with parameters that have properties"
        return
    for name, value in properties.items():
        lost = sorted(set(value) - {"type", "description", "enum"})
        if lost or "type" not in value:
            yield f"tool {function.get('name')}: of {name} veRL drops {', '.join(lost) or 'everything: it has no type'}"


def find_registry_faults(registry: object, files: Mapping[str, tuple[int, Sequence[str]]]) -> Iterator[str]:
    """Yield what is wrong with rLLM's ``registry.json``.

    Args:
        registry: the document.
        files: number of rows and columns of each file, by its path relative to the folder of ``registry.json``.
    """
    datasets = registry.get("datasets") if isinstance(registry, dict) else None
    if not isinstance(registry, dict) or registry.get("version") != 2 or not isinstance(datasets, dict):
        yield "registry: is not of version 2; an older one is taken for a table of absolute paths and rewritten"
        return
    for name, entry in datasets.items():
        splits = entry.get("splits") if isinstance(entry, dict) else None
        if not isinstance(splits, dict) or not isinstance(entry.get("metadata"), dict) or not splits:
            yield f"registry: {name} needs metadata and splits"
            continue
        for split, told in splits.items():
            where = f"registry: {name} {split}"
            path = told.get("path") if isinstance(told, dict) else None
            if not isinstance(path, str) or path not in files:
                yield f"{where}: the file {shorten(path)} is not there; it would be found missing and be None"
            elif (told.get("num_examples"), list(told.get("fields", ()))) != (files[path][0], list(files[path][1])):
                yield f"{where}: says {told.get('num_examples')} rows of {told.get('fields')}; the file has others"


def find_rllm_faults(row: Row, first: Row) -> Iterator[str]:
    """Yield what rLLM would lose of one row, or of the file when it is registered again.

    Args:
        row: as the Arrow file gives it.
        first: the file's first row, which alone decides the columns and whether there are pictures.
    """
    if list(row) != list(first):
        yield f"row: has {list(row)}; the first one has {list(first)}, and other columns are lost"
    for name in ("id", "question", "answer"):
        yield from _find_blank_faults(row, name)
    yield from find_text_faults(row.get("question"), "question")
    if IMAGE in str(row.get("question")):
        yield f"question: holds {IMAGE}, which stands for a picture wherever a prompt is made of it"
    yield from find_answers_faults(row.get("candidate_answers"), row.get("answer"), "candidate_answers")
    yield from find_struct_faults(dict(row), "row")
    images = row.get("images")
    if not isinstance(images, list) or not all(isinstance(image, bytes) for image in images):
        yield f"images: is {shorten(images)}, not a list of bytes"
        return
    if images and not first.get("images"):
        yield "images: the first row has none, so these are not known as pictures when the rows are registered again"
    for number, image in enumerate(images):
        yield from find_picture_faults(image, f"images: picture {number}")


def find_companion_faults(companion: Row, row: Row) -> Iterator[str]:
    """Yield where rLLM's row for veRL is not its own row with wrapped pictures."""
    wrapped = {**row, "images": [{"bytes": image, "path": ""} for image in row.get("images") or ()]}
    if companion.get("extra_info") != wrapped:
        yield "extra_info: is not the row with its pictures as bytes and an empty path"
    if companion.get("prompt") != PLACEHOLDER_PROMPT:
        yield f"prompt: is {shorten(companion.get('prompt'))}; rLLM puts a placeholder there"


def find_repeats(ids: Sequence[str]) -> Iterator[str]:
    """Yield ids that stand for more than one row, in any split: readers join results by id without a check."""
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            yield f"id: {shorten(name)} stands for more than one row"
        seen.add(name)


def list_texts(prompt: object) -> list[str]:
    """Return the messages' contents that are text."""
    messages = prompt if isinstance(prompt, list) else []
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    return [content for content in contents if isinstance(content, str)]


MARS_REWARDS = ("f1_score", "llm_score", "llm_score_allow_no_answer_tag", "em_score", "em_score_mcq", "format_score")
MARS_RESULTS = 5
"""``image_search_max_results``: later results are cut off."""
MMSEARCH_SOURCE = "mmsearch_r1"


def find_mmsearch_faults(row: Row) -> Iterator[str]:
    """Yield what MMSearch-R1 would drop or fail on in one row.

    Its dataset class puts its own first prompt, which ends with a placeholder, before the question: a row has one
    picture and no placeholder.
    """
    yield from find_prompt_faults(row.get("prompt"))
    yield from find_embedded_faults(row.get("images"), bare=True)
    yield from find_truth_faults(row.get("reward_model"))
    texts, pictures = list_texts(row.get("prompt")), _count(row.get("images"))
    if len(texts) != 1 or row["prompt"][0].get("role") != "user":
        yield f"prompt: has {len(texts)} messages; only the first one is read, and it is the question"
    if any(IMAGE in text for text in texts):
        yield f"prompt: holds {IMAGE}; the reader adds one and would look for a second picture"
    if pictures != 1:
        yield f"images: {pictures} pictures; the reader's prompt shows one"
    if MMSEARCH_SOURCE not in str(row.get("data_source")):
        yield f"data_source: is {shorten(row.get('data_source'))}; without {MMSEARCH_SOURCE} there is no reward"
    model = _get_struct(row, "reward_model")
    yield from find_answers_faults(
        model.get("candidate_answers"), model.get("ground_truth"), "reward_model.candidate_answers"
    )
    if not isinstance(_get_struct(row, "extra_info").get("index"), int):
        yield f"extra_info: is {shorten(row.get('extra_info'))}; its index is read"


def find_cache_faults(meta: object, files: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with one folder of the image-search cache.

    Args:
        meta: its ``meta.json``.
        files: names of the other files in it; the n-th result's thumbnail is ``img_00n``.
    """
    results = meta.get("search_results") if isinstance(meta, dict) else None
    if not isinstance(results, list) or not all(isinstance(found, dict) and "title" in found for found in results):
        yield f"meta.json: is {shorten(meta)}; it has search_results with a title each"
        return
    stems = sorted(name.partition(".")[0] for name in files)
    if stems != [f"img_{number:03d}" for number in range(len(results))]:
        yield f"thumbnails: are {shorten(stems)} for {len(results)} titles; there is one for each, in order"


def find_manifest_faults(name: str, manifest: object, lines: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with a manifest of SenseNova-MARS.

    Args:
        name: the manifest's file name, which alone says whether it is trained on.
        manifest: the document.
        lines: lines that are not blank of each annotation file, by its path as the manifest has it.
    """
    if ("train" in name) == ("test" in name):
        yield f"{name}: the name has to hold either train or test; with both it is trained on"
    if not isinstance(manifest, dict) or not manifest:
        yield f"{name}: is {shorten(manifest)}, not a table of datasets"
        return
    for title, entry in manifest.items():
        if isinstance(entry, dict):
            faults = _find_annotation_faults(entry, lines, "train" in name)
            yield from (f"{name}: {title}: {fault}" for fault in faults)
        else:
            yield f"{name}: {title} is {shorten(entry)}, not an entry"


def _find_annotation_faults(entry: Row, lines: Mapping[str, int], train: bool) -> Iterator[str]:
    if entry.get("annotation") not in lines:
        yield f"the annotation {shorten(entry.get('annotation'))} is not there; it is not looked for in root"
    elif entry.get("length") != lines[entry["annotation"]]:
        yield f"length is {entry.get('length')} for {lines[entry['annotation']]} lines; loading stops there"
    if not isinstance(entry.get("root"), str) or not entry["root"]:
        yield "without a root thumbnails are looked for where the trainer was started"
    if not isinstance(entry.get("repeat_time"), int | float) or entry["repeat_time"] < 1:
        yield f"repeat_time is {shorten(entry.get('repeat_time'))}; below 1 rows are left out at random"
    rewards = entry.get("reward_fn")
    if not isinstance(rewards, list) or (train and not rewards) or not set(rewards) <= set(MARS_REWARDS):
        yield f"reward_fn is {shorten(rewards)}; it lists some of {', '.join(MARS_REWARDS)}"
    if not isinstance(entry.get("unused_reward_fn"), list):
        yield "unused_reward_fn is required"
    template = entry.get("input_template")
    if not isinstance(template, dict) or not isinstance(template.get("arguments"), dict) or "name" not in template:
        yield "input_template is required, with name and arguments"


def find_mars_faults(row: Row, exists: Exists) -> Iterator[str]:
    """Yield what SenseNova-MARS would shift or fail on in one row; ``exists`` takes paths relative to the root."""
    prompt = row.get("prompt")
    yield from find_prompt_faults(prompt)
    if isinstance(prompt, list) and any(isinstance(one, dict) and one.get("role") == "system" for one in prompt):
        yield "prompt: has a system message; the manifest's system prompt is put in, and two are an error"
    yield from find_file_faults(row.get("images"), exists)
    yield from find_count_faults(list_texts(prompt), row.get("images"))
    yield from _find_blank_faults(_get_struct(row, "reward_model"), "ground_truth", "reward_model.")
    titles, thumbnails = row.get("image_search_title_list"), row.get("image_search_thumbnail_list")
    yield from find_file_faults(thumbnails, exists)
    if not isinstance(titles, list) or not isinstance(thumbnails, list) or len(titles) != len(thumbnails):
        yield f"image search: {_count(titles)} titles for {_count(thumbnails)} thumbnails; there is one for each"
    elif len(titles) > MARS_RESULTS:
        yield f"image search: {len(titles)} results; what comes after {MARS_RESULTS} is cut off"
    if "index" not in row:
        yield "index: is missing; the row's name would be its place after repeats"


def _count(values: object) -> int:
    return len(values) if isinstance(values, list) else 0
