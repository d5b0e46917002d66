"""``synth config`` and ``synth init``: every key with its value, who set it and its meaning; a file to begin with."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from pipelines.config.loading import (
    PLAYERS,
    Layer,
    find_section,
    join_layers,
    list_layers,
    parse_config,
    read_players,
    read_recipe,
    read_settings,
)
from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError
from pipelines.files import explain_os_error, write_text
from pipelines.secrets import mask_keys

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its value, who set it (a recipe, a file, ``--set``, ``models.default`` or ``default``), its meaning."""

    key: str
    value: Any
    origin: str
    default: Any
    meaning: str


def list_keys(
    recipe: str = "",
    paths: Sequence[Path] = (),
    settings: Sequence[str] = (),
    prefixes: Sequence[str] = (),
) -> list[Key]:
    """Return the keys under any of the prefixes, all if there is none.

    Nothing is run, so what a run needs besides, such as a dump, may be missing.

    Raises:
        ConfigError: if there is no key under a prefix, or a key or a value is wrong.
    """
    layers = list_layers(recipe or ("" if paths else "demo"), paths)
    layers += [Layer("--set", each) for each in read_settings(settings)]
    tables = join_layers(layers)
    set_by: dict[str, str] = {}
    for layer in layers:
        said = layer.tables
        if said.get("models") == PLAYERS:
            said = said | read_players(tables.get("recipe"))
        set_by |= dict.fromkeys(_flatten(said), layer.source)
    kept = {name: set_by[name] for name in _flatten(tables) if name in set_by}
    keys = [replace(key, origin=_find_origin(key.key, kept)) for key in _walk(RunConfig, parse_config(tables), "")]
    for prefix in prefixes:
        if not any(_is_under(key.key, prefix) for key in keys):
            raise ConfigError(
                f"config {prefix}: no key under this name; there are: {', '.join(RunConfig.model_fields)}"
            )
    return [key for key in keys if not prefixes or any(_is_under(key.key, prefix) for prefix in prefixes)]


def _is_under(key: str, prefix: str) -> bool:
    return f"{key}.".startswith(f"{prefix}.")


def _flatten(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the name of each value, and of each table, as ``section.key``."""
    for key, value in table.items():
        yield f"{above}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{above}{key}.")


def _find_origin(name: str, set_by: Mapping[str, str]) -> str:
    section, _, rest = name.partition(".")
    _, _, key = rest.partition(".")
    if name in set_by or section != "models":
        return set_by.get(name, DEFAULT)
    above = ("models.default", *(["models.evaluator"] if rest.startswith("judge.") else []))
    return next((role for role in reversed(above) if f"{role}.{key}" in set_by), DEFAULT)


def _walk(model: type[BaseModel], values: BaseModel | None, prefix: str) -> Iterator[Key]:
    """Yield the keys of a table; of tables by a name of their own (``NAME``) those that are no default follow."""
    for name, field in model.model_fields.items():
        section, own = find_section(field.annotation), getattr(values, name, None)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if section is None:
            yield Key(prefix + name, default if values is None else own, DEFAULT, default, field.description or "")
        elif isinstance(own, dict | tuple):
            yield from _walk(section, None, f"{prefix}{name}.NAME.")
            for each, table in own.items() if isinstance(own, dict) else enumerate(own):
                found = _walk(section, table, f"{prefix}{name}.{each}.")
                yield from (key for key in found if key.value != key.default)
        else:
            yield from _walk(section, own, f"{prefix}{name}.")


def render_keys(keys: Sequence[Key]) -> Group:
    """Return the keys as a list, each with its meaning below it."""
    lines: list[Text | Padding] = []
    for key in keys:
        said = mask_keys("" if key.value is None else json.dumps(key.value, ensure_ascii=False))
        lines.append(Text.assemble((key.key, "bold"), f" = {said}  ", (f"({key.origin})", "cyan")))
        lines.append(Padding(Text(key.meaning), (0, 0, 0, 4), expand=False))
    return Group(*lines)


def describe_keys(keys: Sequence[Key]) -> list[dict[str, Any]]:
    """Return the keys as JSON values; keys of services are masked."""
    told = [{"key": each.key, "value": each.value, "from": each.origin, "meaning": each.meaning} for each in keys]
    return json.loads(mask_keys(json.dumps(told)))  # type: ignore[no-any-return]


_STARTER = """\
# Your runs of the recipe {recipe}. Fill this in, see whether all is there, ask what it costs, run:
#   synth doctor --config {path}
#   synth plan --config {path} --sample 20
#   synth run --config {path}
# `synth config --config {path}` lists every key with its value, who set it, and what it means.
extends = "{recipe}"
# contact = "you@example.org"  # Commons and other services want one

[corpus]
{corpus}

[commons]
fetch = false  # true fetches the pictures that do not lie beside the dump

[encoder]
pretrained = ""  # weights that rank pictures, as "openai"; needs `pip install 'synth[clip]'`

[budget]
money = 0.0  # ends a run in order when it is spent; 0 is no limit
"""
_MODELS = """
# Any server that speaks OpenAI's /chat/completions will do. This model has every role that names no other.
[models.default]
name = "MODEL"
base_url = "http://127.0.0.1:8000/v1"
profile = "vllm"  # or openai, azure, anthropic, gemini, openrouter, deepseek, sglang
# api_key_env = "VARIABLE"  # environment variable that holds the key
# prices = { input = 1.0, output = 4.0 }  # of a million tokens

[models.evaluator]  # reads every text back and judges answers, so it is another model
name = "ANOTHER-MODEL"
base_url = "http://127.0.0.1:8001/v1"
profile = "vllm"
"""
_DUMP = 'dump = "wiki-pages-articles-multistream.xml.bz2"  # tables and images/ are found beside it'


def write_starter(folder: Path, recipe: str) -> Path:
    """Write a configuration for a recipe that loads as it is, and return its path.

    Raises:
        ConfigError: if there is no such recipe, or the folder has such a file already.
    """
    path, tables = folder / "synth.toml", read_recipe(recipe)
    if path.exists():
        raise ConfigError(f"init {path}: exists already; remove it, or choose another folder")
    generated = tables.get("corpus", {}).get("generate", {})
    corpus = f"generate = {{ entities = {generated['entities']} }}  # a toy Wikipedia" if generated else _DUMP
    text = _STARTER.format(recipe=recipe, path=path, corpus=corpus)
    text += "" if generated else _MODELS  # players of the toy world have their roles already
    try:
        write_text(path, text)
    except OSError as error:
        raise explain_os_error(error, f"init {folder}") from error
    return path
