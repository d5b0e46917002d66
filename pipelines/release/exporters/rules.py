"""Rules that the readers of chat data have in common, over plain values.

Nothing is imported but the standard library and ``picture_rules``, so that both files can be taken along. Each function
yields faults in words.

What the readers of SFT data drop, shift or fail on, as rules over plain dictionaries.

Read from and run against LLaMA-Factory 0.9.5, ms-swift 4.6.0, TRL 1.16.0 and veRL 0.9.1. Each function yields what is
wrong with one row, in words; a row without a fault is loaded whole, with every picture where it belongs. It needs
``text_rules.py`` and ``picture_rules.py`` beside it and the standard library, nothing else.

What veRL and rLLM drop, shift or fail on in RL data, as rules over plain dictionaries.

Nothing is imported but the standard library, ``text_rules`` and ``picture_rules``, so that the three files can be taken
along. Read from, and run against, veRL 0.9.1 and the registry of rLLM 1f81bd8 (version 2). Each function yields what is
wrong, in words; a row without a fault is loaded whole.

What MMSearch-R1 and SenseNova-MARS drop, shift or fail on; both replay a search by picture from the data.

Rules over plain dictionaries, read from the two projects' own dataset classes. Nothing is imported but the standard
library, ``rl_rules``, ``text_rules`` and ``picture_rules``.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeGuard

from pipelines.release.exporters.base import find_picture_faults

IMAGE = "<image>"
OTHER_MEDIA = ("<video>", "<audio>")
CONTROL = re.compile(
    r"<[|｜][^<>]{0,64}[|｜]>|</?\s{0,8}(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)\s{0,8}>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
"""Control tokens of common chat templates: a tokenizer takes them for real wherever they stand."""
SURROGATE = re.compile("[\ud800-\udfff]")
TURNS = re.compile(r"</?(?:think|tool_call|tool_response)>")
"""Tags that only the assistant, and a template around a tool's reply, may write."""
WRAPPED = ("<tool_response>", "</tool_response>")
SHOWN = 60
"""Characters of a value that a fault quotes."""

Turns = list[dict[str, Any]]


def shorten(value: object) -> str:
    """Return a value as a fault quotes it."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def find_text_faults(text: object, where: str) -> Iterator[str]:
    """Yield what no message may hold: other media's placeholders, control tokens, halves of a character."""
    if not isinstance(text, str):
        yield f"{where}: is {type(text).__name__}, not text"
        return
    for medium in OTHER_MEDIA:
        if medium in text:
            yield f"{where}: holds {medium}, which is counted as a medium that is not there"
    token = CONTROL.search(text)
    if token:
        yield f"{where}: holds {token[0]!r}, which is tokenised as a control token"
    if SURROGATE.search(text):
        yield f"{where}: holds an unpaired surrogate, which is no character"


def find_shown_faults(text: object, where: str, variable: re.Pattern[str] | None = None) -> Iterator[str]:
    """Yield what a user's or a tool's message may not hold: besides, the model's tags and a template's variables."""
    yield from find_text_faults(text, where)
    if not isinstance(text, str):
        return
    inside = text.replace(IMAGE, "").strip()
    if inside.startswith(WRAPPED[0]) and inside.endswith(WRAPPED[1]):
        inside = inside[len(WRAPPED[0]) : -len(WRAPPED[1])]
    tag = TURNS.search(inside)
    if tag:
        yield f"{where}: holds {tag[0]}, which only the model may write"
    filled = variable.search(text) if variable else None
    if filled:
        yield f"{where}: holds {filled[0]}, which the reader's template fills in"


def find_count_faults(texts: Sequence[str], pictures: int) -> Iterator[str]:
    """Yield whether there is not one ``<image>`` for each picture, in all messages together."""
    count = sum(text.count(IMAGE) for text in texts)
    if count != pictures:
        yield f"images: {count} placeholders for {pictures} pictures; there must be one each"


def find_file_faults(names: object, exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield what is wrong with a list of picture files: relative names of files that are there."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield f"images: is {shorten(names)}, not a list of paths"
        return
    for name in names:
        if name.startswith(("/", "~")) or ".." in name.split("/"):
            yield f"images: {shorten(name)} leads out of the folder"
        elif not exists(name):
            yield f"images: {shorten(name)} is missing"


def find_tools_faults(tools: object, where: str = "tools") -> Iterator[str]:
    """Yield what is wrong with tools' schemas: a JSON array, as text, of objects with a name each."""
    if tools in (None, ""):
        return
    if not isinstance(tools, str):
        yield f"{where}: is {type(tools).__name__}; as structures, fields of one tool become nulls of all others"
        return
    try:
        listed = json.loads(tools)
    except (ValueError, RecursionError):
        yield f"{where}: is no JSON: {shorten(tools)}"
        return
    if not isinstance(listed, list) or not all(_has_name(tool) for tool in listed):
        yield f"{where}: is no array of objects with a name: {shorten(tools)}"


def _has_name(tool: object) -> bool:
    if not isinstance(tool, dict):
        return False
    inner = tool.get("function", tool)
    return isinstance(inner, dict) and isinstance(inner.get("name"), str) and bool(inner["name"])


def find_call_faults(text: str, where: str) -> Iterator[str]:
    """Yield what is wrong with a call: JSON with a name and arguments that are an object, not text."""
    try:
        call = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        yield f"{where}: the call is no JSON: {shorten(text)}"
        return
    if isinstance(call, list):
        yield f"{where}: holds several calls; there is one a turn"
        return
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
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
    """Yield whether, after at most one system message, user and assistant do not take turns up to the assistant."""
    turns = list(roles[1:] if roles[:1] == ["system"] else roles)
    if turns != ["user", "assistant"] * (len(turns) // 2) or not turns:
        yield f"messages: roles are {shorten(turns)}; user and assistant take turns and the assistant ends"


def find_embedded_faults_text_rules(images: object, places: int) -> Iterator[str]:
    """Yield what is wrong with embedded pictures: ``{"bytes": ..., "path": ...}``, a picture's bytes a place."""
    if not isinstance(images, list):
        yield f"images: is {shorten(images)}, not a list"
        return
    for number, image in enumerate(images):
        data = image.get("bytes") if isinstance(image, dict) else None
        yield from find_picture_faults(data, f"images: number {number}")
    if places != len(images):
        yield f"images: {places} placeholders for {len(images)} pictures; there must be one each"


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
DATA_FILES = (".json", ".jsonl", ".parquet", ".csv", ".arrow", ".txt")


def find_dataset_faults(document: object, exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield what is wrong with LLaMA-Factory's ``dataset_info.json``."""
    if not isinstance(document, dict) or not document:
        yield "dataset_info.json: is no object with datasets"
        return
    for name, entry in document.items():
        yield from (f"dataset_info.json: {name}: {fault}" for fault in _find_entry_faults(entry, exists))


def _find_entry_faults(entry: object, exists: Callable[[str], bool]) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "is no object"
        return
    file = entry.get("file_name")
    if not isinstance(file, str) or not file.endswith(DATA_FILES):
        yield f"file_name is {shorten(file)}; it takes one of {', '.join(DATA_FILES)}"
    elif not exists(file):
        yield f"file_name {shorten(file)} is missing"
    if entry.get("formatting") == "openai":
        yield "formatting openai loses the content of every turn that calls a tool; take sharegpt"
    elif entry.get("formatting") != "sharegpt":
        yield f"formatting is {shorten(entry.get('formatting'))}; conversations need sharegpt"
    if "tags" in entry:
        yield from _find_tag_faults(entry["tags"])
    columns = entry.get("columns")
    for column in ("messages", "images", "system", "tools"):
        if not isinstance(columns, dict) or not columns.get(column) or not isinstance(columns[column], str):
            yield f"columns has no {column}, which is then not read"


def _find_tag_faults(tags: object) -> Iterator[str]:
    wanted = ("role_tag", "content_tag", *ROLES)
    missing = [tag for tag in wanted if not isinstance(tags, dict) or not isinstance(tags.get(tag), str)]
    if missing:
        yield f"tags leaves out {', '.join(missing)}, which are then none: rows with calls vanish; leave tags out"


def name_as_default(row: Mapping[str, Any], entry: Mapping[str, Any]) -> Mapping[str, Any]:
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


def find_llamafactory_faults(row: Mapping[str, Any], exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield what LLaMA-Factory would drop, shift or fail on in one sharegpt row."""
    turns = row.get("conversations")
    if not are_texts(turns, ("from", "value")):
        yield "conversations: is no list of turns with from and value"
        return
    yield from _find_order_faults(turns)
    for number, turn in enumerate(turns):
        where = f"turn {number} ({turn['from']})"
        if turn["from"] in MODEL:
            yield from find_text_faults(turn["value"], where)
        else:
            yield from find_shown_faults(turn["value"], where, IN_LLAMAFACTORY if turn["from"] == "human" else None)
        if turn["from"] == "function_call":
            yield from _find_function_faults(turn["value"], where)
    yield from find_text_faults(row.get("system") or "", "system")
    if IMAGE in (row.get("system") or ""):
        yield f"system: holds {IMAGE}, which no picture stands for"
    yield from find_tools_faults(row.get("tools"))
    images = row.get("images") or []
    yield from find_file_faults(images, exists)
    yield from find_count_faults([turn["value"] for turn in turns], len(images))


def _find_order_faults(turns: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """LLaMA-Factory drops a row with a warning where the turns are out of order."""
    if turns[0]["from"] == "system":
        yield "turn 0 (system): wins over the column system; leave it out"
        turns = turns[1:]
    for number, turn in enumerate(turns):
        allowed = MODEL if number % 2 else HUMAN
        if turn["from"] not in allowed:
            yield f"turn {number}: is from {turn['from']!r}; only {' or '.join(allowed)} may stand here"
            return
    if len(turns) % 2:
        yield f"conversations: {len(turns)} turns; the last one must be gpt or function_call"
    if turns and turns[0]["from"] == "observation":
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


def find_ms_swift_faults(row: Mapping[str, Any], exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield what ms-swift would shift, drop or fail on in one row; its loader checks almost nothing."""
    messages = row.get("messages")
    if not are_texts(messages, ("role", "content")):
        yield "messages: is no list of messages with role and content"
        return
    yield from _find_role_faults([message["role"] for message in messages])
    for number, message in enumerate(messages):
        where = f"message {number} ({message['role']})"
        yield from _find_swift_faults(message, where)
    yield from find_tools_faults(row.get("tools"))
    images = row.get("images") or []
    yield from find_file_faults(images, exists)
    texts = [message["content"] for message in messages]
    yield from find_count_faults(texts, len(images))
    if not images and any("<img>" in text and "</img>" in text for text in texts):
        yield "messages: hold <img>...</img>, which becomes a placeholder in rows without pictures"


def _find_swift_faults(message: Mapping[str, Any], where: str) -> Iterator[str]:
    role, content, loss = message["role"], message["content"], message.get("loss")
    if role in ("user", "tool_response", "tool"):
        yield from find_shown_faults(content, where, IN_MS_SWIFT)
    else:
        yield from find_text_faults(content, where)
    if role == "tool_call":
        yield from find_call_faults(content, where)
    if role in ("assistant", "tool_call") and not isinstance(loss, bool):
        yield f"{where}: loss is {shorten(loss)}; it must be true or false"
    if role not in ("assistant", "tool_call") and loss:
        yield f"{where}: has a loss, though it is not the model's"
    if role in ("system", "assistant", "tool_call") and IMAGE in content:
        yield f"{where}: holds {IMAGE}; pictures stand in what the model is shown"
    if role == "assistant" and "<think>" in content and not _is_thought_whole(content):
        yield f"{where}: the thought must be '<think>\\n...\\n</think>' and an empty line: {shorten(content)}"


def _is_thought_whole(content: str) -> bool:
    return content.count("<think>") == 1 and content.startswith("<think>") and "</think>" in content


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
    yield from _find_step_faults(turns)


def _find_step_faults(turns: Sequence[str]) -> Iterator[str]:
    """Consecutive messages of one kind are merged; a tool's reply must follow a call, a call must be replied to."""
    for number, (here, after) in enumerate(pairwise(turns)):
        reply = after in ("tool_response", "tool")
        if here == "tool_call" and after == "tool_call":
            yield f"messages: turns {number} and {number + 1} are calls; there is one a turn"
        elif here == after and here != "assistant":
            yield f"messages: turns {number} and {number + 1} are both of {here} and would be merged"
        elif here == "assistant" and after == "assistant":
            yield f"messages: turns {number} and {number + 1} are both of assistant and would be merged"
        elif reply and here != "tool_call":
            yield f"messages: turn {number + 1} is a tool's reply without a call"
        elif here == "tool_call" and not reply and after != "user":
            yield f"messages: the call of turn {number} has no reply"
        elif here == "user" and after not in ("assistant", "tool_call"):
            yield f"messages: turn {number} of the user is followed by {after}"


def find_trl_faults(row: Mapping[str, Any]) -> Iterator[str]:
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
    yield from find_embedded_faults_text_rules(row.get("images"), places)
    if row.get("tools"):
        yield "tools: are not passed to the template with pictures; put them into the system message"


def _find_part_faults(parts: Sequence[Mapping[str, Any]], role: str, where: str) -> Iterator[str]:
    for part in parts:
        if part.get("type") == "image":
            if role != "user":
                yield f"{where}: has a picture; only those of user are filled in"
            if part.get("text") is not None or "image" in part:
                yield f"{where}: the place of a picture holds something already"
        elif part.get("type") == "text":
            find = find_shown_faults if role == "user" else find_text_faults
            yield from find(part.get("text"), where)
            if IMAGE in str(part.get("text")):
                yield f"{where}: holds {IMAGE} as text, which is not read as a picture"
        else:
            yield f"{where}: a part is of type {shorten(part.get('type'))}; it must be text or image"


def find_verl_sft_faults(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what veRL's multi-turn SFT reader would shift or fail on in one row."""
    messages = row.get("messages")
    if not are_texts(messages, ("role", "content")):
        yield "messages: is no list of messages with role and text as content"
        return
    yield from find_alternation_faults([message["role"] for message in messages])
    for number, message in enumerate(messages):
        where = f"message {number} ({message['role']})"
        find = find_shown_faults if message["role"] == "user" else find_text_faults
        yield from find(message["content"], where)
        if message["role"] != "user" and IMAGE in message["content"]:
            yield f"{where}: holds {IMAGE}; pictures stand in what the model is shown"
    yield from find_embedded_faults_text_rules(
        row.get("images"), sum(message["content"].count(IMAGE) for message in messages)
    )
    if row.get("tools") is not None:
        yield "tools: as text they are refused, as structures they fill up with nulls; put them into the system message"


AGENTS = ("tool_agent", "single_turn_agent")
"""Agent loops that veRL registers itself; another name is an assertion."""
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
        # Placeholders in a list of parts are not counted, so the pictures are said to be too many.
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
    """Yield what is wrong with a rule reward: its ground truth is text, of one type in the whole file."""
    if not isinstance(reward_model, dict):
        yield f"reward_model: is {shorten(reward_model)}, not a struct"
        return
    truth = reward_model.get("ground_truth")
    if not isinstance(truth, str) or not truth.strip():
        yield f"reward_model.ground_truth: is {shorten(truth)}; it is text in every row"
    if reward_model.get("style") != "rule":
        yield f"reward_model.style: is {shorten(reward_model.get('style'))}; it is rule"


def find_embedded_faults(images: object) -> Iterator[str]:
    """Yield what is wrong with pictures as veRL opens them: ``{"bytes": ..., "path": None}`` of whole files."""
    if not isinstance(images, list):
        yield f"images: is {shorten(images)}, not a list"
        return
    for number, image in enumerate(images):
        where = f"images: picture {number}"
        if not isinstance(image, dict) or set(image) != {"bytes", "path"} or image["path"] is not None:
            yield f"{where} is {shorten(image)}; it is a struct of bytes and of a path that is null"
        else:
            yield from find_picture_faults(image["bytes"], where)


def find_answers_faults(text: object, truth: object, where: str) -> Iterator[str]:
    """Yield what is wrong with candidate answers: a list as JSON text, the ground truth among them.

    As a list they come out of Parquet as an array, which reward managers that ask for ``list`` refuse.
    """
    try:
        values = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        yield f"{where}: is {shorten(text)}; it is a list of texts as JSON"
    elif truth not in values:
        yield f"{where}: the ground truth is not among them"


def find_verl_faults(row: Mapping[str, Any], tools: Sequence[str]) -> Iterator[str]:
    """Yield what veRL would drop or fail on in one row.

    With ``filter_overlong_prompts``, its default, a row that raises is dropped as too long, with one printed line.

    Args:
        row: as Parquet gives it.
        tools: names of the tools that the file's rows have arguments for, the same in every row.
    """
    yield from find_prompt_faults(row.get("prompt"))
    yield from find_embedded_faults(row.get("images"))
    yield from find_count_faults(list_texts(row.get("prompt")), count(row.get("images")))
    yield from find_truth_faults(row.get("reward_model"))
    if not isinstance(row.get("data_source"), str) or not row["data_source"]:
        yield f"data_source: is {shorten(row.get('data_source'))}, not a name"
    if row.get("agent_name") not in AGENTS:
        yield f"agent_name: is {shorten(row.get('agent_name'))}; it is one of {', '.join(AGENTS)}"
    for name, value in row.items():
        yield from find_struct_faults(value, name)
    extra = row.get("extra_info")
    if not isinstance(extra, dict) or not isinstance(extra.get("index"), int):
        yield f"extra_info: is {shorten(extra)}; it is a struct with an index"
        return
    truth = row["reward_model"].get("ground_truth") if isinstance(row.get("reward_model"), dict) else None
    yield from find_answers_faults(extra.get("candidate_answers"), truth, "extra_info.candidate_answers")
    yield from find_tools_kwargs_faults(extra, tools)


def find_tools_kwargs_faults(extra: Mapping[str, Any], tools: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a row's arguments of tools.

    Rows with other keys are joined to one struct whose missing fields are null, and ``None.get`` of a tool that a row
    does not name becomes the tool's reply: the same keys in every row, and nothing null.
    """
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
    """Yield what veRL leaves out of a tool's schema: of a property it keeps type, description and enum alone."""
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


def find_registry_faults(
    registry: object, counts: Mapping[str, int], fields: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield what is wrong with rLLM's ``registry.json``.

    Args:
        registry: the document.
        counts: rows of each file, by its path relative to the folder of ``registry.json``.
        fields: columns of each.
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
            if not isinstance(path, str) or path not in counts:
                yield f"{where}: the file {shorten(path)} is not there; it would be found missing and be None"
            elif told.get("num_examples") != counts[path] or list(told.get("fields", ())) != list(fields[path]):
                yield f"{where}: says {told.get('num_examples')} rows of {told.get('fields')}; the file has others"


def find_rllm_faults(row: Mapping[str, Any], first: Mapping[str, Any]) -> Iterator[str]:
    """Yield what rLLM would lose of one row, or of the file when it is registered again.

    Args:
        row: as the Arrow file gives it.
        first: the file's first row, which alone decides columns, and whether pictures are known as such.
    """
    if list(row) != list(first):
        yield f"row: has {list(row)}; the first one has {list(first)}, and other columns are lost"
    for name in ("id", "question", "answer"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            yield f"{name}: is {shorten(row.get(name))}; it is text in every row"
    yield from find_text_faults(row.get("question"), "question")
    if IMAGE in str(row.get("question")):
        yield f"question: holds {IMAGE}, which stands for a picture wherever a prompt is made of it"
    yield from find_answers_faults(row.get("candidate_answers"), row.get("answer"), "candidate_answers")
    images = row.get("images")
    if not isinstance(images, list) or not all(isinstance(image, bytes) for image in images):
        yield f"images: is {shorten(images)}, not a list of bytes"
        return
    if images and not first.get("images"):
        yield "images: the first row has none, so these are not known as pictures when the rows are registered again"
    for number, image in enumerate(images):
        yield from find_picture_faults(image, f"images: picture {number}")
    for name, value in row.items():
        yield from find_struct_faults(value, name)


def find_companion_faults(companion: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Yield where rLLM's row for veRL is not its own row with wrapped pictures."""
    wrapped = {**row, "images": [{"bytes": image, "path": ""} for image in row.get("images") or ()]}
    if companion.get("extra_info") != wrapped:
        yield "extra_info: is not the row with its pictures as bytes and an empty path"
    if companion.get("prompt") != PLACEHOLDER_PROMPT:
        yield f"prompt: is {shorten(companion.get('prompt'))}; rLLM puts a placeholder there"


def find_repeats(ids: Sequence[str]) -> Iterator[str]:
    """Yield ids that stand for more than one row, whatever their split: nobody checks, and results are joined by id."""
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


def count(values: object) -> int:
    """Return how many elements a list has; 0 for what is none."""
    return len(values) if isinstance(values, list) else 0


MARS_REWARDS = ("f1_score", "llm_score", "llm_score_allow_no_answer_tag", "em_score", "em_score_mcq", "format_score")
MARS_RESULTS = 5
"""``image_search_max_results``: what comes after is cut off."""
MMSEARCH_SOURCE = "mmsearch_r1"


def find_mmsearch_faults(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what MMSearch-R1 would drop or fail on in one row.

    Its dataset class puts its own first prompt, which ends with a placeholder, before the question: one picture a row
    and no placeholder in it.
    """
    yield from find_prompt_faults(row.get("prompt"))
    yield from find_embedded_faults(row.get("images"))
    yield from find_truth_faults(row.get("reward_model"))
    texts = list_texts(row.get("prompt"))
    if len(texts) != 1 or row["prompt"][0].get("role") != "user":
        yield f"prompt: has {len(texts)} messages; only the first one is read, and it is the question"
    if any(IMAGE in text for text in texts):
        yield f"prompt: holds {IMAGE}; the reader adds one and would look for a second picture"
    if count(row.get("images")) != 1:
        yield f"images: {count(row.get('images'))} pictures; the reader's prompt shows one"
    if MMSEARCH_SOURCE not in str(row.get("data_source")):
        yield f"data_source: is {shorten(row.get('data_source'))}; without {MMSEARCH_SOURCE} there is no reward"
    model = row.get("reward_model")
    if isinstance(model, dict):
        answers, truth = model.get("candidate_answers"), model.get("ground_truth")
        yield from find_answers_faults(answers, truth, "reward_model.candidate_answers")
    extra = row.get("extra_info")
    if not isinstance(extra, dict) or not isinstance(extra.get("index"), int):
        yield f"extra_info: is {shorten(extra)}; its index is read"


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
        if not isinstance(entry, dict):
            yield f"{name}: {title} is {shorten(entry)}, not an entry"
            continue
        yield from find_entry_faults(f"{name}: {title}", entry, lines, "train" in name)


def find_entry_faults(where: str, entry: Mapping[str, Any], lines: Mapping[str, int], train: bool) -> Iterator[str]:
    """Yield what is wrong with one dataset of a MARS manifest."""
    if entry.get("annotation") not in lines:
        yield f"{where}: the annotation {shorten(entry.get('annotation'))} is not there; it is not looked for in root"
    elif entry.get("length") != lines[entry["annotation"]]:
        yield f"{where}: length is {entry.get('length')} for {lines[entry['annotation']]} lines; loading stops there"
    if not isinstance(entry.get("root"), str) or not entry["root"]:
        yield f"{where}: without a root thumbnails are looked for where the trainer was started"
    if not isinstance(entry.get("repeat_time"), int | float) or entry["repeat_time"] < 1:
        yield f"{where}: repeat_time is {shorten(entry.get('repeat_time'))}; below 1 rows are left out at random"
    rewards = entry.get("reward_fn")
    if not isinstance(rewards, list) or (train and not rewards) or not set(rewards) <= set(MARS_REWARDS):
        yield f"{where}: reward_fn is {shorten(rewards)}; it lists some of {', '.join(MARS_REWARDS)}"
    if not isinstance(entry.get("unused_reward_fn"), list):
        yield f"{where}: unused_reward_fn is required"
    template = entry.get("input_template")
    if not isinstance(template, dict) or not isinstance(template.get("arguments"), dict) or "name" not in template:
        yield f"{where}: input_template is required, with name and arguments"


def find_mars_faults(row: Mapping[str, Any], exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield what SenseNova-MARS would shift or fail on in one row.

    Args:
        row: one line.
        exists: whether a file of that path relative to the root is there.
    """
    yield from find_prompt_faults(row.get("prompt"))
    prompt = row.get("prompt")
    if isinstance(prompt, list) and any(isinstance(one, dict) and one.get("role") == "system" for one in prompt):
        yield "prompt: has a system message; the manifest's system prompt is put in, and two are an error"
    yield from find_file_faults(row.get("images"), exists)
    yield from find_count_faults(list_texts(prompt), count(row.get("images")))
    model = row.get("reward_model")
    truth = model.get("ground_truth") if isinstance(model, dict) else None
    if not isinstance(truth, str) or not truth.strip():
        yield f"reward_model.ground_truth: is {shorten(truth)}; it is text in every row"
    titles, thumbnails = row.get("image_search_title_list"), row.get("image_search_thumbnail_list")
    yield from find_file_faults(thumbnails, exists)
    if not isinstance(titles, list) or not isinstance(thumbnails, list) or len(titles) != len(thumbnails):
        yield f"image search: {count(titles)} titles for {count(thumbnails)} thumbnails; there is one for each"
    elif len(titles) > MARS_RESULTS:
        yield f"image search: {len(titles)} results; what comes after {MARS_RESULTS} is cut off"
    if "index" not in row:
        yield "index: is missing; the row's name would be its place after repeats"
