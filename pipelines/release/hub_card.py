"""The card of a repository on the Hub that holds datasets of ours, perhaps beside what others have put there.

The front matter is merged key by key: a value that we wrote last time may be replaced, any other stays, and of
``configs`` and ``dataset_info`` only the entries of our datasets are ours. Lines that are not ours keep their bytes.
In the text each of our datasets has one section between two comments.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from pipelines.errors import ConfigError

Front = Mapping[str, Any]
FRONT = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)(?:^|\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
KEY = re.compile(r"^(?=[A-Za-z_][\w-]*[ \t]*:)", re.MULTILINE)
NAMED = ("configs", "dataset_info")
"""Keys whose entries belong to one config each, by its ``config_name``."""


@dataclass(frozen=True, slots=True)
class DatasetSection:
    """What a card says of one dataset of ours."""

    front: Front
    """``configs`` and ``dataset_info`` of this dataset alone, beside the usual keys."""
    text: str
    """Markdown; empty to leave the section in the card as it is."""


@dataclass(frozen=True, slots=True)
class MergedCard:
    """A card with our sections, what it now says of ours in its front matter, and what stood in the way of that."""

    text: str
    front: Front
    conflicts: tuple[str, ...]


def split_card(text: str) -> tuple[str, str]:
    """Return a card's front matter, without its fences, and its text; the first is may be empty."""
    found = FRONT.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def read_front(front: str, name: str) -> dict[str, Any]:
    """Return front matter as a mapping.

    ``name`` says whose card it is, for messages.

    Raises:
        ConfigError: if it is no YAML mapping.
    """
    try:
        values = yaml.safe_load(front) if front.strip() else {}
    except yaml.YAMLError as error:
        told = " ".join(str(error).split())
        raise ConfigError(f"card of {name}: its front matter is no YAML: {told}; mend it and push again") from error
    if values is not None and not isinstance(values, dict):
        raise ConfigError(f"card of {name}: its front matter is no mapping of keys to values; mend it and push again")
    return dict(values or {})


def digest_section(text: str) -> str:
    """Return the digest (sha256, 64 hex digits) by which a section is known again."""
    return hashlib.sha256(text.strip().encode()).hexdigest()


def merge_card(
    current: str, written: Front, sections: Mapping[str, DatasetSection], known: Mapping[str, str]
) -> MergedCard:
    """Return a card with the sections of our datasets; all else in it stays as it is.

    Args:
        current: the card in the repository; may be empty.
        written: what our last push wrote into the front matter; may be empty.
        sections: our datasets by name, in the order in which they came into the repository.
        known: digests of our sections in the card as the last push left them, by dataset.

    Raises:
        ConfigError: if the card's front matter is no YAML mapping, or cannot be edited without touching other keys.
    """
    front, body = split_card(current)
    before = read_front(front, "the repository")
    wanted = join_fronts([section.front for section in sections.values()])
    values, conflicts = _merge_front(before, written, wanted)
    for name, section in sections.items():
        if section.text:
            body, edited = _put_section(body, name, section.text, known.get(name, ""))
            conflicts += [f"README.md: the section of {name} was edited since it was pushed"] if edited else []
    changed = {key: value for key, value in values.items() if key not in before or before[key] != value}
    edited_front = _set_keys(front, changed)
    if read_front(edited_front, "the repository") != before | values:
        raise ConfigError("card of the repository: its front matter is written in a way that cannot be edited safely; "
                          "write each key at the start of a line")  # fmt: skip
    return MergedCard(f"---\n{edited_front}---\n{body}", wanted, tuple(conflicts))


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
    joined["configs"] = [
        {key: value for key, value in entry.items() if key != "default" or place == 0}
        for place, entry in enumerate(joined.get("configs", []))
    ]
    return joined


def _merge_front(before: Front, written: Front, wanted: Front) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the keys that are ours to set, and the configs that others have given our names."""
    values = {
        key: value
        for key, value in wanted.items()
        if key not in NAMED and (key not in before or before[key] == written.get(key))
    }
    conflicts: dict[str, None] = {}
    for key in NAMED:
        found = _list_entries(before, key)
        ours, own = _by_name(wanted.get(key, [])), _by_name(written.get(key, []))
        others = [entry for entry in found if _name(entry) not in ours and entry not in own.values()]
        for entry in found:
            # What we wrote before may have been the default, or not.
            if _name(entry) in ours and _drop_default(entry) != _drop_default(own.get(_name(entry), {})):
                conflicts[f"README.md: the config {_name(entry)!r} there is not ours"] = None
        values[key] = [*_keep_default(others, key), *_give_way(list(ours.values()), others)]
    return values, list(conflicts)


def _list_entries(front: Front, key: str) -> list[dict[str, Any]]:
    found = front.get(key) or []
    entries = found if isinstance(found, list) else [found]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f"card of the repository: {key} is no list of mappings; mend it and push again")
    return entries


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("config_name", "default"))


def _by_name(entries: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {_name(entry): entry for entry in entries}


def _drop_default(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "default"}


def _keep_default(others: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Let a config that was alone be loaded without a name as before."""
    if key == "configs" and len(others) == 1 and _name(others[0]) != "default":
        return [{**others[0], "default": True}]
    return others


def _give_way(ours: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_drop_default(entry) for entry in ours] if others else ours


def _set_keys(front: str, values: Front) -> str:
    """Return front matter with keys set, each on one line of JSON, which is YAML; other lines keep their bytes."""
    head, *blocks = KEY.split(front)
    lines, left = [head] if head.strip() else [], dict(values)
    for block in blocks:
        key = block[: block.index(":")].strip()
        if key in left:
            remarks = [line for line in block.splitlines() if line.startswith("#")]
            block = "\n".join([f"{key}: {_write(left.pop(key))}", *remarks])
        lines.append(block)
    lines += [f"{key}: {_write(value)}" for key, value in left.items()]
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _write(value: Any) -> str:  # noqa: ANN401 - a JSON value
    return json.dumps(value, ensure_ascii=False, default=str)


def _put_section(body: str, name: str, text: str, known: str) -> tuple[str, bool]:
    """Return a text with a dataset's section replaced, or added at the end, and whether others had edited it."""
    begin, end = f"<!-- synth {name} -->\n", f"\n<!-- end of synth {name} -->\n"
    section = f"{begin}{text.strip()}{end}"
    # A browser's editor may end lines otherwise.
    plain = re.compile(
        re.escape(begin.strip()) + r"\r?\n(.*?)\r?\n" + re.escape(end.strip()) + r"(?:\r?\n|\Z)", re.DOTALL
    )
    found = plain.search(body)
    if found is None:
        gap = "\n" if body.endswith("\n") or not body.strip() else "\n\n"
        return (f"{body}{gap}{section}" if body.strip() else f"\n{section}"), False
    inside = found[1].replace("\r\n", "\n")
    return body[: found.start()] + section + body[found.end() :], digest_section(inside) != known
