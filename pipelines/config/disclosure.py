"""The part of a configuration that a release publishes, and one digest over the whole configuration.

A release publishes values whose types cannot hold a path, an address or a private name: numbers, switches and words of
a closed list. It publishes every other value as a digest.
"""

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pipelines.config.settings import RunConfig, Section
from pipelines.config.writing import write_toml
from pipelines.ids import digest_value
from schemas.manifest import PluginEntry

LEFT_OUT = frozenset({"runtime", "corpus", "replies"})
"""Sections that are left out: they decide no row, and the corpus has a digest of its own."""
UNTOLD = frozenset({"models", "live", "budget"})
"""Sections about servers and money: a release publishes one digest for each, whatever its values are."""
TOLD = frozenset({"recipe", "runtime.shard_rows"})
"""Keys published despite their type or section: the recipe's name, and the shard size, which decides the walks."""
SILENT = frozenset({"contact"})
"""Left out even as a digest: it decides no row, and short values can be guessed from their digests."""
Told = bool | int | float | str | list[Any] | None
"""A value as JSON has it."""


def disclose_settings(config: RunConfig) -> tuple[dict[str, Told], dict[str, str]]:
    """Return the public values and the digests (sha256) of the others, each by ``section.key``, sorted.

    A section of ``UNTOLD`` has one digest, under its name.
    """
    sections = config.model_dump(mode="json", include=set(UNTOLD))
    told: dict[str, Told] = {}
    untold = {name: digest_value(section) for name, section in sections.items()}
    for name, value, public in _list_values(config, ""):
        if (name.partition(".")[0] in LEFT_OUT | UNTOLD and name not in TOLD) or name in SILENT:
            continue
        if public:
            told[name] = value
        else:
            untold[name] = digest_value(value)
    return dict(sorted(told.items())), dict(sorted(untold.items()))


def digest_settings(told: Mapping[str, Told], untold: Mapping[str, str], corpus: str) -> str:
    """Return the digest of a configuration and its corpus; anyone can compute it from a release."""
    return digest_value([{name: digest_value(value) for name, value in told.items()} | dict(untold), corpus])


def disclose_plugin(entry: PluginEntry) -> PluginEntry:
    """Return a plugin's entry as a release publishes it: digests replace settings that are text.

    >>> told = {"words": 40, "path": "/home/ann"}
    >>> shown = disclose_plugin(
    ...     PluginEntry(kind="checks", name="a", distribution="b", version="1", sha256="c", settings=told)
    ... )
    >>> shown.settings, list(shown.untold)
    ({'words': 40}, ['path'])
    """
    told = {name: value for name, value in entry.settings.items() if not isinstance(value, str)}
    untold = {name: digest_value(value) for name, value in entry.settings.items() if name not in told}
    return entry.model_copy(update={"settings": told, "untold": untold})


def read_sections(told: Mapping[str, Told]) -> dict[str, Any]:
    """Return values by ``section.key`` as the nested tables of a configuration."""
    tables: dict[str, Any] = {}
    for name, value in told.items():
        *path, key = name.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[key] = value
    return tables


def render_told(told: Mapping[str, Told], untold: Mapping[str, str], corpus: str) -> str:
    """Return the public values as TOML; comments list the others with their digests."""
    lines = [
        "# What of the settings may be told; `synth run --config` with this file and the rest makes the release again.",
        f"# Corpus, by its digest: {corpus}",
        "# Not told, each with the sha256 of its value:",
        *(f"#   {name} {digest}" for name, digest in untold.items()),
    ]
    return "\n".join(lines) + "\n\n" + write_toml(read_sections(told))


def _list_values(section: Section, prefix: str) -> Iterator[tuple[str, Any, bool]]:
    dumped = section.model_dump(mode="json")
    for key, field in type(section).model_fields.items():
        value, name = getattr(section, key), f"{prefix}{key}"
        if isinstance(value, Section):
            yield from _list_values(value, f"{name}.")
        elif isinstance(value, dict) and _is_closed(field.annotation):
            yield from ((f"{name}.{each}", told, True) for each, told in value.items())
        else:
            yield name, dumped[key], name in TOLD or _is_closed(field.annotation)


def _is_closed(annotation: Any) -> bool:  # noqa: ANN401 - a type as annotations give it
    """Say whether values of a type are numbers, switches, words of a closed list, or lists of them."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_closed(parts[0])
    if origin is Literal:
        return True
    if origin in (Union, UnionType, tuple, list, dict):
        return all(part is Ellipsis or _is_closed(part) for part in parts)
    return annotation in (bool, int, float, type(None))
