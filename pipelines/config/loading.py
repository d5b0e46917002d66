"""Load RunConfig: TOML files, every key declared, unknown keys refused, secrets as names of environment variables.

A recipe is such a file. A file may extend another one, each ``--config`` names one that lies over the recipe and over
those named before, and ``--set a.b=value`` changes one key. Rules that concern several keys are checked here.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from pipelines.config.profiles import find_profile
from pipelines.config.settings import ROLES, ModelConfig, RunConfig
from pipelines.errors import ConfigError
from pipelines.secrets import MASK, check_variable, is_key, mask_keys
from schemas.datasets import Split
from schemas.reasons import STAGE_REASONS

MAX_ROUNDS = 12
"""Rounds of injection at most: MM-SearchExam has ten."""
CONTACT = "--set contact=you@example.org"
PLAYERS = "scripted"
"""``models = "scripted"`` lays players.toml over what lies below."""
OF_SERVER = frozenset({"base_url", "api_key_env", "revision", "profile", "headers", "prices", "mode", "serve"})
"""Keys of a model that belong to its server: a role with an address of its own does not inherit them."""
LOOKING = ("evaluator", "judge")
"""Roles that look at what others made, so that they do not take the name of ``models.default``."""
CONVERSING = ("teacher", "summariser")
"""Roles whose requests are turns of a rollout."""
_FIRST_STAGES = {
    "path_judge": "paths",
    "writer": "questions",
    "evaluator": "questions",
    "rewriter": "rewrites",
    "teacher": "rollouts",
    "summariser": "rollouts",
}
"""The first stage that asks a role; difficulty for solver and judge."""


def check_whole(config: RunConfig, last: str = "") -> None:
    """Refuse a configuration whose keys do not go together, and what stages up to ``last`` (all if empty) cannot do.

    Raises:
        ConfigError: naming the keys, and what to say instead.
    """
    _check_corpus(config)
    hops, weights = config.paths.hops, config.paths.weights
    if not hops or len(hops) != len(weights) or not all(2 <= h <= 4 for h in hops):
        raise ConfigError("configuration: paths.hops takes lengths of 2 to 4, and paths.weights one weight for each")
    if min(weights) < 0 or not 0 < sum(weights) < float("inf"):
        raise ConfigError(f"configuration: paths.weights {list(weights)}: give weights of 0 or more, not all 0")
    _check_rounds(config)
    _check_concepts(config)
    _check_models(config, last)
    _check_plugin_settings(config)
    _check_pools(config)
    _check_targets(config)
    if reaches(last, "seeds"):
        _check_commons(config)
    if reaches(last, "groundings"):
        _check_sight(config)
    if reaches(last, "difficulty" if config.difficulty.preset == "fvqa" else "rollouts"):
        _check_acting(config)
    shares = sum(config.splits.values())
    if abs(shares - 1.0) > 1e-9:
        raise ConfigError(f"configuration: the shares of splits add up to {shares:g}, not 1")


def _check_rounds(config: RunConfig) -> None:
    """Refuse invalid numbers of rounds, and shares that do not match them."""
    rounds, mix = config.injections.rounds, config.injections.weights
    draws = config.injections.draws or mix
    if not rounds or {len(mix), len(draws)} != {len(rounds)} or not all(1 <= number <= MAX_ROUNDS for number in rounds):
        raise ConfigError(
            f"configuration: injections.rounds takes 1 to {MAX_ROUNDS}; give weights and draws one number for each"
        )
    for given in (mix, draws):
        if min(given) < 0 or not 0 < sum(given) < float("inf"):
            raise ConfigError(f"configuration: injections.weights {list(given)}: give weights of 0 or more, not all 0")


def _check_concepts(config: RunConfig) -> None:
    """Refuse shares that leave nothing between them."""
    low, high = config.releases.search_free
    if low > high:
        raise ConfigError(f"configuration: releases.search_free [{low:g}, {high:g}]: the least share is the larger")


COLUMNS = ("id", "question", "answer", "answer_aliases", "image", "entity", "language")
"""What a pool's columns may be mapped to."""


def _check_targets(config: RunConfig) -> None:
    """Refuse target sizes that no run of this configuration can meet."""
    targets = config.targets
    if not targets.wanted:
        return
    if config.method not in ("paths", "injection"):
        raise ConfigError(f"configuration: targets are for methods paths and injection; method is {config.method}")
    if config.pools:
        raise ConfigError("configuration: targets count what is drawn from the corpus; leave out [[pools]] or targets")
    if config.method == "injection" and "hops" in targets.by:
        raise ConfigError("configuration: targets.by hops: method injection walks no paths of a given length")
    for split, share in config.splits.items():
        _check_target(config, split, share)
    if targets.wants("sft") and "sft" not in config.rollouts.splits:
        raise ConfigError("configuration: targets of sft: rows of sft are rollouts, and rollouts.splits leaves sft out")
    if len(set(targets.by)) < len(targets.by):
        raise ConfigError(f"configuration: targets.by {list(targets.by)}: name each dimension once")


def _check_target(config: RunConfig, split: Split, share: float) -> None:
    targets = config.targets
    if targets.wants(split) and not share:
        raise ConfigError(f"configuration: targets of {split}: splits leave no seed to it")
    if targets.rows[split] and targets.strata.get(split):
        raise ConfigError(f"configuration: targets of {split}: say rows or strata")
    for values in targets.name_strata(split):
        _check_stratum(config, split, values)


def _check_stratum(config: RunConfig, split: str, values: Sequence[str]) -> None:
    by, allowed = config.targets.by, config.target_values
    place = f"configuration: targets.strata.{split} {', '.join(values)!r}"
    if len(values) != len(by):
        raise ConfigError(f"{place}: expected {len(by)} values, as {', '.join(by) or 'nothing'}")
    for dimension, value in zip(by, values, strict=True):
        if dimension != "domain" and value not in allowed[dimension]:
            raise ConfigError(f"{place}: {dimension} {value!r}; there are: {', '.join(allowed[dimension])}")


def _check_pools(config: RunConfig) -> None:
    names, shares = [pool.name for pool in config.pools], [pool.share for pool in config.pools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"configuration: pools: two are named {twice[0]}")
    if config.method == "pools" and not names:
        raise ConfigError("configuration: method pools takes its questions from files; name one under [[pools]]")
    whole = config.method == "pools" and all(shares)
    if whole and abs(sum(shares) - 1.0) > 1e-9:
        raise ConfigError(f"configuration: the shares of all pools add up to {sum(shares):g}, not 1")
    if not whole and sum(shares) >= 1.0:
        raise ConfigError(f"configuration: the shares of pools add up to {sum(shares):g}; nothing is left to others")
    for pool in config.pools:
        if pool.columns and pool.layout != "columns":
            raise ConfigError(f"configuration: pools {pool.name}: columns are for layout columns, not {pool.layout}")
        if strange := sorted(set(pool.columns) - set(COLUMNS)):
            allowed = ", ".join(COLUMNS)
            raise ConfigError(f"configuration: pools {pool.name}: columns has {strange[0]!r}; allowed are {allowed}")


def _check_corpus(config: RunConfig) -> None:
    """Check where the corpus comes from."""
    sources = [bool(config.corpus.dump), bool(config.corpus.world), config.corpus.generate is not None]
    named = config.method == "news" and bool(config.news.source)
    if sum(sources) != 1 and not (named and not any(sources)):
        raise ConfigError(
            "configuration: corpus needs exactly one of dump, world, generate; say --set corpus.dump=FILE or "
            "--set corpus.world=DIR"
        )
    if config.news.fetch and not config.contact:
        raise ConfigError(f"configuration: contact is empty; sites of the news want one: {CONTACT}")


def reaches(last: str, stage: str) -> bool:
    """Return whether a run up to a stage, or of all stages, comes to another one."""
    stages = list(STAGE_REASONS)
    return not last or stages.index(stage) <= stages.index(last)


def is_asked(role: str, last: str) -> bool:
    """Return whether a run up to a stage, or of all stages, may ask a role."""
    return reaches(last, _FIRST_STAGES.get(role, "difficulty"))


def _check_models(config: RunConfig, last: str) -> None:
    for role, model in config.models.items():
        _check_sent(f"models.{role}", model)
    for role in config.roles:
        model, place = config.models[role], f"models.{role}"
        if model.adapter == "openai" and not model.base_url and is_asked(role, last):
            raise ConfigError(
                f"configuration: {place}.base_url is empty; name the server: "
                f"--set {place}.base_url=http://127.0.0.1:8000/v1"
            )
        if len(model.base_url) > 1 and not model.revision:
            raise ConfigError(
                f"configuration: {place}.base_url has several addresses; say that all of them serve one model: "
                f"--set {place}.revision=NAME"
            )
        if model.mode == "batch":
            _check_batch(role, model)


def _check_batch(role: str, model: ModelConfig) -> None:
    """Refuse batches where each request waits for the reply before it, or where no server takes them."""
    why = {
        "each turn of a rollout waits for the turn before it, and a batch may take a day": role in CONVERSING,
        f"the adapter {model.adapter} knows no batches": model.adapter != "openai",
        "vLLM's server, which serve.own starts, has no Batch API": model.serve.own,
        "batches go to one address, and base_url has several": len(model.base_url) > 1,
    }
    for reason in (reason for reason, wrong in why.items() if wrong):
        place = f"models.{role}.mode"
        raise ConfigError(f"configuration: {place} is batch: {reason}; --set {place}=live")


def _check_commons(config: RunConfig) -> None:
    """Check what seeds ask of Commons, and groundings fetch from it."""
    if config.commons.endpoint and not config.contact:
        raise ConfigError(f"configuration: contact is empty; Commons wants one: {CONTACT}")


_FIXED = ("model", "messages", "stream", "n", "tools", "response_format")
"""Keys of a request that synth itself must word."""
_PRIVATE = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_SECRET = re.compile(r"api_?key|authorization|access_?token|secret|cookie|passw", re.IGNORECASE)
"""Names of request keys that hold a secret; ``stop_token`` does not."""


def _check_sent(place: str, model: ModelConfig) -> None:
    try:
        find_profile(model)
    except ConfigError as error:
        raise ConfigError(f"configuration: {place}: {error}") from error
    if fixed := [key for key in _FIXED if key in model.extra_body]:
        raise ConfigError(f"configuration: {place}.extra_body.{fixed[0]}: synth words this key itself; leave it out")
    if secret := next((key for key, value in model.extra_body.items() if _is_secret(key, value)), ""):
        raise ConfigError(
            f"configuration: {place}.extra_body.{secret}: a secret may stand in no configuration; name its variable in "
            'api_key_env, or in headers as "env:VARIABLE"'
        )
    for name, value in model.headers.items():
        if name.lower() == "authorization":
            raise ConfigError(f"configuration: {place}.headers: name the variable of the API key in api_key_env")
        if _PRIVATE.search(name) and not value.startswith("env:"):
            raise ConfigError(
                f'configuration: {place}.headers.{name}: a secret is named by its variable, as "env:VARIABLE"'
            )
        if is_key(value):
            raise ConfigError(
                f'configuration: {place}.headers.{name}: this looks like a key; name its variable, as "env:VARIABLE"'
            )
        if value.startswith("env:"):
            try:
                check_variable(value.removeprefix("env:"))
            except ValueError as error:
                raise ConfigError(f"configuration: {place}.headers.{name}: env: {error}") from None


def _check_plugin_settings(config: RunConfig) -> None:
    for name, settings in config.plugins.settings.items():
        for key, value in settings.items():
            named = isinstance(value, str) and (key.endswith("_env") or value.startswith("env:"))
            if is_key(str(value).removeprefix("env:")) if named else _is_secret(key, value):
                raise ConfigError(
                    f"configuration: plugins.settings.{name}.{key}: a secret may stand in no configuration; name its "
                    "variable, in a setting called ..._env or as env:VARIABLE, for the plugin to read"
                )


def _is_secret(key: str, value: object) -> bool:
    return isinstance(value, str) and bool((_SECRET.search(key) and value) or is_key(value))


def _check_sight(config: RunConfig) -> None:
    groundings = config.groundings
    engines = {*groundings.ocr, config.tools.layout}
    if "layer" in engines and config.corpus.dump:
        raise ConfigError(
            "configuration: the OCR engine layer reads the pictures of generated worlds alone; name another: "
            """--set 'groundings.ocr=["rapidocr"]' --set tools.layout=rapidocr"""
        )
    if config.tools.image_search == "clip" and not config.encoder["pretrained"]:
        raise ConfigError(
            "configuration: encoder.pretrained is empty, so there is no encoder; name weights: "
            "--set encoder.pretrained=openai, or a checkpoint's file"
        )


def _check_acting(config: RunConfig) -> None:
    tools, live = config.tools, config.live
    if tools.summarise is True and not config.summarises:
        raise ConfigError(
            "configuration: tools.summarise without a model to sum up; name models.summariser or models.default"
        )
    if tools.family == "live" and live.images == "serpapi" and "pictures" not in live.urls:
        raise ConfigError(
            "configuration: live.urls.pictures is empty; serpapi looks up addresses, so say where the workspace's "
            "images/ folder is published"
        )
    if tools.family == "live" and live.reader == "direct" and not config.contact:
        raise ConfigError(f"configuration: contact is empty; sites of the web want one: {CONTACT}")


_SECRETS = re.compile(r"(?<=://)[^/\s'\"]*(?=@)|(?<=\?)[^'\"]+")
"""What may be one in an address: user and password, parameters."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The tables of one recipe or file, without what lies below it."""

    source: str
    """As messages name it."""
    tables: dict[str, Any]


def list_recipes() -> list[str]:
    """Return the names of the shipped recipes."""
    folder = resources.files("pipelines.config") / "recipes"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_recipe(name: str) -> dict[str, Any]:
    """Return a shipped recipe's tables over those of the recipe that it extends.

    Raises:
        ConfigError: if there is no such recipe.
    """
    return join_layers(_list_chain(name))


def read_players(recipe: object, dumped: bool = False) -> dict[str, Any]:
    """Return the tables of players.toml for a recipe: the scripted players of the toy world in place of all models.

    Those of one recipe stand under ``[recipes.NAME]`` and lie over those of all. With ``dumped`` the corpus is a dump,
    whose pictures keep their engine: the text layer reads pictures of generated worlds alone.
    """
    players = tomllib.loads((resources.files("pipelines.config") / "players.toml").read_text())
    own = players.pop("recipes").get(recipe, {})
    _lay_over(players, own)
    if dumped:
        del players["groundings"]["ocr"]
    return players


def read_config_file(path: Path) -> dict[str, Any]:
    """Return a configuration file's tables.

    Raises:
        ConfigError: if the file is missing or no TOML, or has a key or a value that no configuration may have.
    """
    try:
        tables = tomllib.loads(path.read_text())
    except FileNotFoundError as error:
        raise ConfigError(f"config {path}: no such file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"config {path}: not TOML: {error}") from error
    _check_alone({key: value for key, value in tables.items() if key != "extends"}, f"config {path}")
    return tables


def _check_alone(tables: Mapping[str, Any], place: str) -> None:
    """Refuse what is wrong whatever lies below; what is missing may come from there."""
    try:
        RunConfig.model_validate({key: value for key, value in tables.items() if (key, value) != ("models", PLAYERS)})
    except ValidationError as error:
        if wrong := [_explain(problem) for problem in error.errors() if problem["type"] != "missing"]:
            raise ConfigError(f"{place}: {'; '.join(wrong)}") from error


def read_layers(recipe: str, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the tables of a recipe with those of files over it, as :func:`list_layers` has them.

    Raises:
        ConfigError: as :func:`list_layers`.
    """
    return join_layers(list_layers(recipe, paths))


def list_layers(recipe: str, paths: Sequence[Path]) -> list[Layer]:
    """Return the layers of a configuration, the last one uppermost.

    Lowest is what is named: the recipe, or what the files extend, with all that extends in its turn. A file says so by
    ``extends`` (a recipe, the path of a file from its own folder, or "" for nothing) or by a recipe's name of its own.
    Where nothing is named the files are the whole configuration.

    Raises:
        ConfigError: if a file is missing or no TOML, there is no such recipe, files extend one another in a circle, or
            two different recipes or files are named.
    """
    files = [(path, read_config_file(path)) for path in paths]
    bases: dict[str, str | Path] = {f"--recipe {recipe}": recipe} if recipe else {}
    for path, tables in files:
        if (base := _take_base(path, tables)) is not None:
            bases[f"{path}: {base or 'nothing'}"] = base
    if len({*bases.values()}) > 1:
        raise ConfigError(f"configuration: more than one recipe is named ({', '.join(bases)}); leave all but one out")
    below = _list_chain(next(iter(bases.values()))) if bases else []
    layers = [*below, *(Layer(str(path), tables) for path, tables in files)]
    if paths and not any("recipe" in layer.tables for layer in layers):
        raise ConfigError(f'config {paths[0]}: names no recipe; say extends = "RECIPE" in it, or --recipe RECIPE')
    return layers


def _take_base(path: Path, tables: dict[str, Any]) -> str | Path | None:
    """Take out what a file extends: a recipe, a file, "" for nothing; None if the file leaves it open."""
    if "extends" not in tables:
        return called if (called := tables.get("recipe")) in list_recipes() else None
    base = tables.pop("extends")
    if not isinstance(base, str):
        raise ConfigError(f"config {path}: extends {base!r}: expected the name of a recipe, or the path of a file")
    if not base or base in list_recipes():
        return base
    if not base.endswith(".toml"):
        raise ConfigError(f"config {path}: extends: {_explain_recipe(base)}; a file's name ends with .toml")
    file = (path.parent / base).resolve()
    if not file.is_file():
        raise ConfigError(f"config {path}: extends {base!r}: no such file ({file})")
    return file


def _list_chain(base: str | Path, above: tuple[str | Path, ...] = ()) -> list[Layer]:
    """Return the layers of a recipe or a file, with all that it extends below it."""
    if base in above:
        circle = " extends ".join(str(each) for each in (*above[above.index(base) :], base))
        raise ConfigError(f"configuration: files extend one another in a circle: {circle}")
    if not base:
        return []
    if isinstance(base, Path):
        layer = Layer(str(base), read_config_file(base))
        below = _take_base(base, layer.tables)
    else:
        layer = Layer(f"recipe {base}", _read_shipped(base))
        below = layer.tables.pop("extends", None)
    return [*([] if below is None else _list_chain(below, (*above, base))), layer]


def _read_shipped(name: str) -> dict[str, Any]:
    if name not in list_recipes():
        raise ConfigError(_explain_recipe(name))
    return tomllib.loads((resources.files("pipelines.config") / "recipes" / f"{name}.toml").read_text())


def _explain_recipe(name: str) -> str:
    return f"recipe {name!r} does not exist; there are: {', '.join(list_recipes())}"


def join_layers(layers: Sequence[Layer]) -> dict[str, Any]:
    """Return the tables of layers over one another: joined key by key, but a list takes the place of a list."""
    tables: dict[str, Any] = {}
    for layer in layers:
        lay_layer(tables, layer.tables)
    return tables


def lay_layer(tables: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Put the values of a layer, such as a file's, over tables."""
    if layer.get("models") == PLAYERS:
        below = tables.get("models", {})
        recipe, corpus = layer.get("recipe", tables.get("recipe")), tables.get("corpus", {}) | layer.get("corpus", {})
        tables["models"] = {}
        _lay_over(tables, read_players(recipe, "dump" in corpus))
        for role, player in tables["models"].items():
            player |= {key: value for key, value in below.get(role, {}).items() if key in ("temperature", "max_tokens")}
        layer = {key: value for key, value in layer.items() if key != "models"}
    _make_room(tables, layer)
    _lay_over(tables, layer)


def _lay_over(tables: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        below = tables.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _lay_over(below, value)
        else:
            tables[key] = deepcopy(value)


def read_settings(settings: Sequence[str]) -> list[dict[str, Any]]:
    """Return the layers that values as ``a.b=value`` make; a value is TOML, and text that is no TOML is a string.

    Raises:
        ConfigError: if there is no ``=``.
    """
    players, named = list[dict[str, Any]](), dict[str, Any]()
    for setting in settings:
        name, equals, raw = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {MASK if is_key(setting) else setting!r}: write it as section.key=value")
        try:
            value = tomllib.loads(f"value = {raw}")["value"]
        except tomllib.TOMLDecodeError:
            value = raw
        for part in reversed(name.strip().split(".")):
            value = {part: value}
        if value == {"models": PLAYERS}:
            players = [value]
        else:
            _lay_over(named, value)
    return [*players, named]


def apply_settings(tables: dict[str, Any], settings: Sequence[str]) -> None:
    """Lay values as ``a.b=value`` over tables.

    Raises:
        ConfigError: as :func:`read_settings`.
    """
    for layer in read_settings(settings):
        lay_layer(tables, layer)


def make_config(tables: dict[str, Any], settings: Sequence[str] = (), last: str = "") -> RunConfig:
    """Return the validated configuration of a run up to a stage, or of all stages.

    Raises:
        ConfigError: naming each key that is unknown or out of range, and what is allowed.
    """
    apply_settings(tables, settings)
    config = parse_config(tables)
    check_whole(config, last)
    return config


def parse_config(tables: dict[str, Any]) -> RunConfig:
    """Return the configuration that tables hold; what a run needs besides, such as a dump, is not checked.

    Raises:
        ConfigError: naming each key that is unknown or out of range, and what is allowed.
    """
    _fill_roles(tables)
    try:
        return RunConfig.model_validate(tables)
    except ValidationError as error:
        raise ConfigError("configuration: " + "; ".join(_explain(problem) for problem in error.errors())) from error


def _make_room(tables: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Take out what cannot stand beside a layer: another corpus, the abilities of a player whom a model replaces."""
    named, corpus = layer.get("corpus") or {}, tables.get("corpus")
    if isinstance(corpus, dict) and {"dump", "world"} & {*named}:
        for key in {"dump", "world", "generate"} - {*named}:
            corpus.pop(key, None)
    groundings = tables.get("groundings")
    if "dump" in named and isinstance(groundings, dict) and groundings.get("ocr") == ["layer"]:
        del groundings["ocr"]  # photographs have no text layer: the engine that reads them is the default
    models: Any = tables.get("models")
    others: Any = layer.get("models")
    for role, own in others.items() if isinstance(models, dict) and isinstance(others, dict) else ():
        below = models.get(role)
        served = isinstance(own, dict) and ("base_url" in own or own.get("adapter", PLAYERS) != PLAYERS)
        if served and isinstance(below, dict) and below.get("adapter") == PLAYERS:
            for key in ("adapter", "name", "extra_body"):
                below.pop(key, None)


def _fill_roles(tables: dict[str, Any]) -> None:
    """Let each role take from ``models.default`` what it does not set.

    The judge is no model that it judges: without a name it is the evaluator's model, or else the default's, whichever
    is neither solver nor teacher.
    """
    models = tables.get("models")
    if not isinstance(models, dict) or not all(isinstance(model, dict) for model in models.values()):
        return
    given, default = {role: models.get(role, {}) for role in ROLES}, models.get("default", {})
    adapter = default.get("adapter", "openai")
    for role, own in given.items():
        if own.get("adapter", adapter) == adapter:
            own_server = OF_SERVER if "base_url" in own else frozenset()
            left_out = own_server | ({"name"} if role in LOOKING else frozenset())
            filled = {key: deepcopy(value) for key, value in default.items() if key not in left_out}
            _lay_over(filled, own)
            models |= {role: filled} if filled else {}
    judged = [_name_model(models.get(role, {})) for role in ("solver", "teacher")]
    for model in (models.get("evaluator", {}), default):
        named = model.get("name") and model.get("adapter") != PLAYERS and _name_model(model) not in judged
        if named and not models.get("judge", {}).get("name"):
            models["judge"] = deepcopy(model) | given["judge"]


def _name_model(model: Mapping[str, Any]) -> tuple[Any, Any]:
    return model.get("name"), model.get("revision")


def explain_missing(roles: Sequence[str]) -> str:
    """Return what to add to a configuration in which roles have no model."""
    named = ", ".join(f"models.{role}" for role in roles)
    tables = {role if role in LOOKING else "default": None for role in roles}
    lines = "".join(
        f'[models.{table}]\nname = "{"MODEL" if table == "default" else "ANOTHER MODEL"}"\n'
        'base_url = "http://127.0.0.1:8000/v1"\n'
        for table in tables
    )
    return (
        f"no model for {named}; add three lines to your configuration for each of these tables:\n{lines}"
        "or choose the scripted players of the toy world on purpose: --set models=scripted"
    )


def find_section(annotation: object) -> type[BaseModel] | None:
    """Return the table that a key is, or holds by name or in a list; None for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(find_section, get_args(annotation))), None)


def _explain(problem: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    where = ".".join(str(part) for part in problem["loc"])
    if problem["loc"][0] == "models" and problem["loc"][2:] == ("[key]",):
        return f"unknown role {problem['loc'][1]}; there are: default, {', '.join(ROLES)}"
    if problem["loc"][-1] == "[key]" and problem["type"] == "literal_error":
        allowed = problem["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return f"unknown key {where.removesuffix('.[key]')}; there are: {allowed}"
    if problem["type"] != "extra_forbidden":
        told = problem["input"]
        is_secret = isinstance(told, str) and is_key(mask_keys(told))
        secret = is_secret or isinstance(told, dict) or "_env" in where or where == "replies"
        given = "" if secret else f" (given {_SECRETS.sub('...', repr(told))})"
        return mask_keys(f"{where}: {problem['msg']}{given}")
    model: Any = RunConfig
    for part in (part for part in problem["loc"][:-1] if isinstance(part, str)):
        model = find_section(model.model_fields[part].annotation) if part in model.model_fields else model
    near = difflib.get_close_matches(str(problem["loc"][-1]), model.model_fields, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(model.model_fields)}"
    return f"unknown key {where}{hint}"
