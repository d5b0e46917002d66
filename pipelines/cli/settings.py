"""``synth config``: every key of the configuration with its default, its meaning and a recipe's value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.table import Table

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its place, its default, its meaning, and its value in a configuration."""

    name: str
    """As ``section.key``; ``NAME`` stands for a name of your own."""
    type: str
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


def _walk(model: type[BaseModel], value: BaseModel | None, prefix: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        own = getattr(value, name, None)
        section = _find_section(field)
        if section is None:
            default = None if field.is_required() else field.get_default(call_default_factory=True)
            yield Key(prefix + name, _describe_type(field), default, field.description or "", own, field.is_required())
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


def _describe_type(field: FieldInfo) -> str:
    annotation = field.annotation
    return (
        getattr(annotation, "__name__", str(annotation))
        if not get_args(annotation)
        else str(annotation).replace("typing.", "")
    )


def render_keys(keys: Sequence[Key], title: str) -> Table:
    """Return the keys as a table; a value that is the default is left out."""
    table = Table(title=title)
    for column in ("key", "default", "here", "meaning"):
        table.add_column(column, overflow="fold")
    for key in keys:
        here = "" if key.value is None or key.value == key.default else repr(key.value)
        table.add_row(key.name, "(required)" if key.required else repr(key.default), here, key.meaning)
    return table
