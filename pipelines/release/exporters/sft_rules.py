"""What the readers of SFT data drop, shift or fail on, as rules over plain dictionaries.

Read from and run against LLaMA-Factory 0.9.5, ms-swift 4.6.0, TRL 1.16.0 and veRL 0.9.1. Each function yields what is
wrong with one row, in words; a row without a fault is loaded whole, with every picture where it belongs. It needs
``text_rules.py`` and ``picture_rules.py`` beside it and the standard library, nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipelines.release.exporters.text_rules import (
    IMAGE,
    are_texts,
    find_alternation_faults,
    find_call_faults,
    find_count_faults,
    find_embedded_faults,
    find_file_faults,
    find_shown_faults,
    find_text_faults,
    find_tools_faults,
    shorten,
)

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
    yield from find_embedded_faults(row.get("images"), places)
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
    yield from find_embedded_faults(row.get("images"), sum(message["content"].count(IMAGE) for message in messages))
    if row.get("tools") is not None:
        yield "tools: as text they are refused, as structures they fill up with nulls; put them into the system message"
