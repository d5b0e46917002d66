"""The card of a repository on the Hub that holds datasets of ours, perhaps beside what others have put there.

The front matter is merged key by key: a value that we wrote last time may be replaced, any other stays, and of
``configs`` and ``dataset_info`` only the entries of our datasets are ours. Lines that are not ours keep their bytes.
In the text each of our datasets has one section between two comments; edits in it are overwritten.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]

from pipelines.errors import ConfigError

Front = Mapping[str, Any]
FRONT = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)(?:^|\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
KEY = re.compile(r"^(?=[A-Za-z_][\w-]*[ \t]*:)", re.MULTILINE)
NAMED = ("configs", "dataset_info")
"""Keys whose entries belong to one config each, by its ``config_name``."""


def split_card(text: str) -> tuple[str, str]:
    """Return a card's front matter, without its fences, and its text; the first is may be empty."""
    found = FRONT.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def read_front(front: str, name: str) -> dict[str, Any]:
    """Return front matter as a mapping; ``name`` says whose card it is.

    Raises:
        ConfigError: if it is no YAML mapping, or its configs are no mappings.
    """
    try:
        values = yaml.safe_load(front) or {}
        entries = [entry for key in NAMED for entry in _list_entries(values, key)]
    except (yaml.YAMLError, AttributeError) as error:
        told = " ".join(str(error).split())
        raise ConfigError(f"card of {name}: its front matter is no YAML: {told}; mend it and push again") from error
    if not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"card of {name}: configs or dataset_info are no mappings; mend it and push again")
    return dict(values)


def merge_card(current: str, written: Front, wanted: Front, sections: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a card with our front matter and sections, and the configs that others have given our names.

    Args:
        current: the card in the repository; may be empty.
        written: what our last push wrote into the front matter; may be empty.
        wanted: what this one writes, of all our datasets.
        sections: Markdown by dataset; the sections of other datasets stay.

    Raises:
        ConfigError: if the card's front matter is no YAML mapping, or cannot be edited without touching other keys.
    """
    front, body = split_card(current)
    before = read_front(front, "the repository")
    values = {
        key: value
        for key, value in wanted.items()
        if key not in NAMED and (key not in before or before[key] == written.get(key))
    }
    conflicts: dict[str, None] = {}
    for key in NAMED:
        ours, own = (_by_name(_list_entries(each, key)) for each in (wanted, written))
        # What we wrote before may have been the default, or not.
        found = [(_name(entry), entry) for entry in _list_entries(before, key)]
        for name, entry in found:
            if name in ours and _drop_default(entry) != _drop_default(own.get(name, {})):
                conflicts[f"README.md: the config {name!r} there is not ours"] = None
        others = [entry for name, entry in found if name not in ours and entry != own.get(name)]
        if key == "configs" and len(others) == 1 and _name(others[0]) != "default":
            # A config that was alone is loaded without a name, as before.
            others = [{**others[0], "default": True}]
        values[key] = [*others, *(map(_drop_default, ours.values()) if others else ours.values())]
    for name, text in sections.items():
        body = _put_section(body, name, text)
    edited = _set_keys(front, {key: value for key, value in values.items() if before.get(key) != value})
    if read_front(edited, "the repository") != before | values:
        raise ConfigError("card of the repository: its front matter is written in a way that cannot be edited safely; "
                          "write each key at the start of a line")  # fmt: skip
    return f"---\n{edited}---\n{body}", list(conflicts)


def join_fronts(fronts: Sequence[Front]) -> dict[str, Any]:
    """Return one front matter for several datasets: lists are joined, names put one after the other."""
    joined: dict[str, Any] = {}
    for front in fronts:
        for key, value in front.items():
            if key not in joined:
                joined[key] = value
            elif isinstance(value, list):
                joined[key] = [*joined[key], *(entry for entry in value if entry not in joined[key])]
            elif value != joined[key]:
                joined[key] = f"{joined[key]}; {value}"
    # One config at most is loaded without a name: that of the first dataset.
    configs = joined.get("configs", [])
    return {**joined, "configs": [*configs[:1], *map(_drop_default, configs[1:])]}


def _list_entries(front: Front, key: str) -> list[dict[str, Any]]:
    found = front.get(key) or []
    return found if isinstance(found, list) else [found]


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("config_name", "default"))


def _by_name(entries: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {_name(entry): entry for entry in entries}


def _drop_default(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "default"}


def _set_keys(front: str, values: Front) -> str:
    """Return front matter with keys set, each on one line of JSON, which is YAML; other lines keep their bytes."""
    head, *blocks = KEY.split(front)
    lines, left = [head] if head.strip() else [], dict(values)
    for block in blocks:
        key = block[: block.index(":")].strip()
        remarks = [line for line in block.splitlines() if line.startswith("#")]
        lines.append("\n".join([_write(key, left.pop(key)), *remarks]) if key in left else block)
    lines += [_write(key, value) for key, value in left.items()]
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _write(key: str, value: object) -> str:
    return f"{key}: {json.dumps(value, ensure_ascii=False, default=str)}"


def _put_section(body: str, name: str, text: str) -> str:
    """Return a text with a dataset's section replaced, or added at the end."""
    begin = f"<!-- synth {name}: synth push writes what stands in here -->"
    end = f"<!-- end of synth {name} -->"
    section = f"{begin}\n{text.strip()}\n{end}\n"
    # A browser's editor may end lines otherwise.
    found = re.search(rf"{re.escape(begin)}\r?\n.*?\r?\n{re.escape(end)}(?:\r?\n|\Z)", body, re.DOTALL)
    if found:
        return body[: found.start()] + section + body[found.end() :]
    gap = "\n" if body.endswith("\n") or not body.strip() else "\n\n"
    return f"{body.strip() and body}{gap}{section}"
