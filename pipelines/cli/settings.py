"""``synth config keys``: every key of the configuration with its type, default and meaning, and a recipe's value."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from pipelines.config.schema import describe_values
from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError


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
