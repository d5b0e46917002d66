"""RunConfig: one TOML file, every key declared here, unknown keys refused, secrets only as environment names.

A recipe under ``pipelines/recipes`` is such a file; ``--config`` names another and ``--set a.b=value`` changes one key.
Units are in the field's description. Published numbers are the defaults of the recipe that publishes them.
"""

import difflib
import re
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.config_rules import check_whole
from pipelines.errors import ConfigError
from pipelines.settings.run import RunConfig

__all__ = ["RunConfig", "apply_setting", "list_recipes", "make_config", "read_config_file", "read_recipe"]
_SECRETS = re.compile(r"(?<=://)[^/\s'\"]*(?=@)|(?<=\?)[^'\"]+")
"""What may be one in an address: user and password, parameters."""


def list_recipes() -> list[str]:
    """Return the names of the shipped recipes."""
    folder = resources.files("pipelines") / "recipes"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_recipe(name: str) -> dict[str, Any]:
    """Return a shipped recipe's tables.

    Raises:
        ConfigError: if there is no such recipe.
    """
    if name not in list_recipes():
        raise ConfigError(f"recipe {name!r} does not exist; there are: {', '.join(list_recipes())}")
    return tomllib.loads((resources.files("pipelines") / "recipes" / f"{name}.toml").read_text())


def read_config_file(path: Path) -> dict[str, Any]:
    """Return a configuration file's tables.

    Raises:
        ConfigError: if the file is missing or no TOML.
    """
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError as error:
        raise ConfigError(f"config {path}: no such file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config {path}: not TOML: {error}") from error


def apply_setting(tables: dict[str, Any], setting: str) -> None:
    """Apply one ``a.b=value``; the value is TOML, and text that is no TOML is a string.

    Raises:
        ConfigError: if there is no ``=`` or a part of the name is no table.
    """
    name, equals, raw = setting.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {setting!r}: write it as section.key=value")
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw
    *parents, last = name.strip().split(".")
    table = tables
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {setting!r}: {parent} is a value, not a section")
    table[last] = value


def make_config(tables: dict[str, Any], settings: Sequence[str] = ()) -> RunConfig:
    """Return the validated configuration.

    Raises:
        ConfigError: naming each key that is unknown or out of range, and what is allowed.
    """
    for setting in settings:
        apply_setting(tables, setting)
    _keep_one_source(tables, settings)
    _drop_abilities(tables, settings)
    try:
        config = RunConfig.model_validate(tables)
    except ValidationError as error:
        raise ConfigError("configuration: " + "; ".join(_explain(problem) for problem in error.errors())) from error
    check_whole(config)
    return config


def _keep_one_source(tables: dict[str, Any], settings: Sequence[str]) -> None:
    """Let ``--set corpus.dump`` or ``corpus.world`` take the place of the recipe's own source."""
    named = {setting.split("=", 1)[0].strip() for setting in settings}
    corpus = tables.get("corpus")
    if isinstance(corpus, dict) and named & {"corpus.dump", "corpus.world"}:
        for key in ("dump", "world", "generate"):
            if not any(name == f"corpus.{key}" or name.startswith(f"corpus.{key}.") for name in named):
                corpus.pop(key, None)
        groundings = tables.get("groundings")
        named_engine = "corpus.dump" not in named or "groundings.ocr" in named
        if isinstance(groundings, dict) and groundings.get("ocr") == ["layer"] and not named_engine:
            groundings.pop("ocr")  # photographs have no text layer: the engine that reads them is the default


def _drop_abilities(tables: dict[str, Any], settings: Sequence[str]) -> None:
    """Let ``--set models.solver.adapter=openai`` take the place of a scripted player with all its abilities."""
    named = {setting.split("=", 1)[0].strip() for setting in settings}
    models = tables.get("models")
    for name in named:
        place = name.split(".")
        if place[0] != "models" or place[-1] != "adapter" or not isinstance(models, dict):
            continue
        prefix = name.removesuffix("adapter")
        table: Any = models
        for part in place[1:-1]:
            table = table.get(part) if isinstance(table, dict) else None
        if isinstance(table, dict) and not any(other.startswith(f"{prefix}settings") for other in named):
            table.pop("settings", None)


def _explain(problem: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        return f"{where}: {problem['msg']} (given {_SECRETS.sub('...', repr(problem['input']))})"
    model: Any = RunConfig
    for part in problem["loc"][:-1]:
        annotation = model.model_fields[str(part)].annotation
        arguments = [a for a in getattr(annotation, "__args__", (annotation,)) if a is not type(None)]
        model = arguments[0]
    near = difflib.get_close_matches(str(problem["loc"][-1]), model.model_fields, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(model.model_fields)}"
    return f"unknown key {where}{hint}"
