"""``synth config``: every key with its type, default and meaning; a configuration, and where its values are from."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from pipelines.config.loading import Layer, apply_setting, choose_players, list_layers, read_layers
from pipelines.config.schema import describe_values
from pipelines.config.settings import RunConfig
from pipelines.config.writing import write_toml
from pipelines.errors import ConfigError
from pipelines.secrets import mask_keys


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its place, its default, its meaning, and its value in a configuration."""

    name: str
    """As ``section.key``; ``NAME`` stands for a name of your own."""
    type: str
    """In TOML's words."""
    allowed: str
    """What its values are held to; empty where all of the type are allowed."""
    default: Any
    meaning: str
    value: Any
    required: bool = False
    """Whether it must be given: it has no default, and None stands for one."""


def list_keys(config: RunConfig, wanted: Sequence[str] = ()) -> list[Key]:
    """Return the keys in the order of the settings, or those under the names that are wanted.

    Raises:
        ConfigError: if there is no key under a name.
    """
    keys = list(_walk(RunConfig, config, ""))
    if not wanted:
        return keys
    for name in wanted:
        if not any(_is_under(key.name, name) for key in keys):
            sections = ", ".join(RunConfig.model_fields)
            raise ConfigError(f"config {name}: no key under this name; there are: {sections}")
    return [key for key in keys if any(_is_under(key.name, name) for name in wanted)]


def _is_under(key: str, name: str) -> bool:
    return key == name or key.startswith(f"{name}.")


_describe = cache(describe_values)


def _walk(model: type[BaseModel], value: BaseModel | None, prefix: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        own = getattr(value, name, None)
        section = _find_section(field)
        if section is None:
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            described = _describe(model)[name]
            yield Key(prefix + name, *described, default, field.description or "", own, field.is_required())
        elif isinstance(own, dict):
            yield from _walk(section, None, f"{prefix}{name}.NAME.")
        elif section is model:
            continue
        else:
            yield from _walk(section, own, f"{prefix}{name}.")


def _find_section(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table that a key is, or holds by name; None for a plain value."""
    types = [field.annotation, *get_args(field.annotation)]
    return next((each for each in types if isinstance(each, type) and issubclass(each, BaseModel)), None)


def render_keys(keys: Sequence[Key], recipe: str) -> Group:
    """Return the keys as a list with two or three lines each; a value that is the default is left out."""
    lines: list[Text | Padding] = []
    for key in keys:
        own = "" if key.value is None or key.value == key.default else f"; {recipe}: {_write_value(key.value)}"
        default = "required" if key.required else f"default {_write_value(key.default)}"
        lines.append(Text.assemble((key.name, "bold"), f"  {key.type}, {default}", (own, "cyan")))
        told = [key.meaning, f"allowed: {key.allowed}" if key.allowed else ""]
        lines += [Padding(Text(text), (0, 0, 0, 4), expand=False) for text in told if text]
    return Group(*lines)


def _write_value(value: Any) -> str:  # noqa: ANN401 - any value that a configuration has
    """Return a value as TOML has it; none is what is not set."""
    if value is None:
        return "not set"
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {_write_value(entry)}" for key, entry in value.items()) + " }" if value else "{}"
        )
    return json.dumps(value, ensure_ascii=False)


DEFAULT = "default"
_KEY = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9_-]+) = ')
"""How the writer of TOML begins the line of a key; what stands in arrays is indented."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a configuration, and where it comes from."""

    path: tuple[str, ...]
    value: Any
    source: str
    """A recipe or a file, ``--set``, ``--models scripted``, ``models.default``, or ``default``."""


def list_sources(recipe: str, paths: Sequence[Path], settings: Sequence[str], models: str = "") -> list[Layer]:
    """Return where values of a configuration may come from, the last one uppermost.

    Raises:
        ConfigError: as :func:`read_layers`.
    """
    layers = list_layers(recipe, paths)
    if models:
        tables = read_layers(recipe, paths)
        players = {key: value for key, value in tables.items() if key in ("recipe", "corpus")}
        known = tuple(players)
        choose_players(players)
        layers.append(Layer(f"--models {models}", {key: players[key] for key in players if key not in known}))
    for setting in settings:
        table: dict[str, Any] = {}
        apply_setting(table, setting)
        layers.append(Layer("--set", table))
    return layers


def trace_values(config: RunConfig, sources: Sequence[Layer]) -> list[Value]:
    """Return every value of a configuration with the uppermost of its sources that says it."""
    leaves = _list_leaves(config.model_dump(mode="json"))
    defaults = dict(_list_leaves(RunConfig(recipe="").model_dump(mode="json")))
    return [Value(path, value, _find_source(path, value, sources, defaults)) for path, value in leaves]


def _list_leaves(tables: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tables.items():
        if isinstance(value, dict) and value:
            yield from _list_leaves(value, (*above, key))
        elif value is not None:
            yield (*above, key), value


def _find_source(path: tuple[str, ...], value: Any, sources: Sequence[Layer], defaults: Mapping[Any, Any]) -> str:  # noqa: ANN401
    """Return who says a value, if need be in other words: a table of an array may leave out what is the default."""
    said = [(layer.source, _get(layer.tables, path)) for layer in reversed(sources)]
    if exact := [source for source, given in said if given == value]:
        return exact[0]
    if defaults.get(path) == value:
        return DEFAULT
    if loose := [source for source, given in said if given is not None]:
        return loose[0]
    filled = path[0] == "models" and any(
        _get(layer.tables, ("models", "default", *path[2:])) == value for layer in sources
    )
    return "models.default" if filled else DEFAULT


def _get(tables: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - any value of TOML
    for key in path:
        tables = tables.get(key) if isinstance(tables, dict) else None
    return tables


def render_values(values: Sequence[Value]) -> str:
    """Return values as TOML that is a configuration by itself, each with its source as a comment; keys are masked."""
    tables: dict[str, Any] = {"extends": ""}
    for each in values:
        table = tables
        for part in each.path[:-1]:
            table = table.setdefault(part, {})
        table[each.path[-1]] = each.value
    sources = {each.path: each.source for each in values} | {("extends",): "this is the whole configuration"}
    lines = []
    above: tuple[str, ...] = ()
    for line in write_toml(tables).splitlines():
        if line.startswith("["):
            above = _read_path(line)
        elif named := _KEY.match(line):
            path = (*above, *_read_path(f"{named[0]}0"))
            line += f"  # {next(sources[path[:end]] for end in range(len(path), 0, -1) if path[:end] in sources)}"
        lines.append(line)
    return mask_keys("\n".join(lines) + "\n")


def describe_origins(values: Sequence[Value]) -> list[dict[str, Any]]:
    """Return values with their sources as JSON values; keys of services are masked as in :func:`render_values`."""
    told = [{"key": ".".join(each.path), "value": each.value, "from": each.source} for each in values]
    return json.loads(mask_keys(json.dumps(told)))  # type: ignore[no-any-return]


def _read_path(line: str) -> tuple[str, ...]:
    """Return the path of the one key or table that a line of TOML names."""
    found: Any = tomllib.loads(line)
    path = []
    while found:
        found = found[0] if isinstance(found, list) else found
        if not isinstance(found, dict) or not found:
            break
        path.append(next(iter(found)))
        found = found[path[-1]]
    return tuple(path)
