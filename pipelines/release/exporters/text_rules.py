"""Rules that the readers of chat data have in common, over plain values.

Nothing is imported but the standard library and ``picture_rules``, so that both files can be taken along. Each function
yields faults in words.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeGuard

from pipelines.release.exporters.picture_rules import find_picture_faults

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


def find_embedded_faults(images: object, places: int) -> Iterator[str]:
    """Yield what is wrong with embedded pictures: ``{"bytes": ..., "path": ...}``, a picture's bytes a place."""
    if not isinstance(images, list):
        yield f"images: is {shorten(images)}, not a list"
        return
    for number, image in enumerate(images):
        data = image.get("bytes") if isinstance(image, dict) else None
        yield from find_picture_faults(data, f"images: number {number}")
    if places != len(images):
        yield f"images: {places} placeholders for {len(images)} pictures; there must be one each"
