"""Load RunConfig: TOML files, every key declared, unknown keys refused, secrets as names of environment variables.

A recipe is such a file. A file may extend another one, each ``--config`` names one that lies over the recipe and over
those named before, and ``--set a.b=value`` changes one key. Rules that concern several keys are checked here.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.config.profiles import find_profile
from pipelines.config.settings import CommonsConfig, ModelConfig, RunConfig, TargetConfig
from pipelines.errors import ConfigError
from pipelines.secrets import MASK, check_variable, is_key, mask_keys
from schemas.reasons import STAGE_REASONS

MAX_ROUNDS = 12
"""Rounds of injection at most: MM-SearchExam has ten."""
ADAPTERS = {
    "writer": ("templates", "openai"),
    "rewriter": ("templates", "openai"),
    "solver": ("knower", "openai"),
    "teacher": ("teacher", "openai"),
    "evaluator": ("grammar", "openai"),
    "path_judge": ("templates", "openai"),
    "namer": ("templates", "openai"),
    "judge": ("judge", "openai"),
    "second_judge": ("judge", "openai"),
    "image_judge": ("judge", "openai"),
    "process_judge": ("judge", "openai"),
    "summariser": ("templates", "openai"),
}
"""Adapters that can play each role."""
NEEDED_ROLES = ("writer", "rewriter", "solver", "teacher", "path_judge", "namer")
"""Roles that ``models.default`` plays. The evaluator, which every run needs too, must be another model."""
OTHER_ROLES = ("evaluator", "process_judge")
"""Roles that ``models.default`` does not play: they look at what it made."""
CONVERSING = ("teacher", "summariser")
"""Roles whose requests are turns of a rollout."""
_FIRST_STAGES = {
    "path_judge": "paths",
    "writer": "questions",
    "evaluator": "questions",
    "rewriter": "rewrites",
    "namer": "anchors",
    "teacher": "rollouts",
    "summariser": "rollouts",
    "process_judge": "trajectories",
}
"""The first stage that asks a role; difficulty for solvers and judges."""


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
    _check_batches(config)
    _check_pools(config)
    _check_targets(config)
    if reaches(last, "seeds"):
        _check_commons(config.commons)
    if reaches(last, "groundings"):
        _check_sight(config)
    if reaches(last, "difficulty" if config.difficulty.preset == "fvqa" else "rollouts"):
        _check_acting(config)
    shares = config.splits.sft + config.splits.rl + config.splits.eval
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
    """Refuse shares that leave nothing between them, and several solvers where one is to choose its searches."""
    low, high = config.releases.search_free
    if low > high:
        raise ConfigError(f"configuration: releases.search_free [{low:g}, {high:g}]: the least share is the larger")
    head, tail = config.concepts.head, config.concepts.tail
    if config.method == "concepts" and head + tail > 1.0:
        raise ConfigError(f"configuration: concepts.head {head:g} and concepts.tail {tail:g} overlap; give at most 1")
    solvers = config.difficulty.solvers
    if config.difficulty.preset == "fvqa" and len(solvers) != 1:
        raise ConfigError(f"configuration: preset fvqa labels by one solver, difficulty.solvers names {len(solvers)}")


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
    for split, share in config.splits:
        _check_target(config, split, share)
    if targets.sft.wanted and "sft" not in config.rollouts.splits:
        raise ConfigError("configuration: targets.sft: rows of sft are rollouts, and rollouts.splits leaves sft out")
    if len(set(targets.by)) < len(targets.by):
        raise ConfigError(f"configuration: targets.by {list(targets.by)}: name each dimension once")


def _check_target(config: RunConfig, split: str, share: float) -> None:
    target: TargetConfig = getattr(config.targets, split)
    if target.wanted and (not share or (config.seeds.splits and split not in config.seeds.splits)):
        raise ConfigError(f"configuration: targets.{split}: splits and seeds.splits leave no seed to it")
    if (target.rows > 0) + (target.each > 0) + bool(target.strata) > 1:
        raise ConfigError(f"configuration: targets.{split}: say one of rows, each and strata")
    for values in target.named:
        _check_stratum(config, split, values)


def _check_stratum(config: RunConfig, split: str, values: Sequence[str]) -> None:
    by, allowed = config.targets.by, config.target_values
    place = f"configuration: targets.{split}.strata {', '.join(values)!r}"
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
    if config.news.fetch and not config.news.contact:
        raise ConfigError("configuration: news.contact is empty; name a contact: --set news.contact=you@example.org")


def reaches(last: str, stage: str) -> bool:
    """Return whether a run up to a stage, or of all stages, comes to another one."""
    stages = list(STAGE_REASONS)
    return not last or stages.index(stage) <= stages.index(last)


def is_asked(role: str, last: str) -> bool:
    """Return whether a run up to a stage, or of all stages, may ask a role."""
    return reaches(last, _FIRST_STAGES.get(role, "difficulty"))


def _check_models(config: RunConfig, last: str) -> None:
    models = config.models
    for role in models.list_roles():
        model, allowed = models.get(role), (*ADAPTERS.get(role, ADAPTERS["solver"]), "plugin")
        place = models.name_place(role)
        if model.adapter not in allowed:
            raise ConfigError(f"configuration: {place}.adapter {model.adapter!r}; allowed: {', '.join(allowed)}")
        if (model.adapter == "plugin") != bool(model.plugin):
            raise ConfigError(f'configuration: {place}.plugin {model.plugin!r}: it goes with adapter = "plugin"')
        if model.adapter == "openai" and not model.base_url and is_asked(role, last):
            raise ConfigError(
                f"configuration: {place}.base_url is empty; name the server: "
                f"--set {place}.base_url=http://127.0.0.1:8000/v1"
            )
        if model.settings and model.adapter in ("templates", "grammar", "openai"):
            raise ConfigError(
                f"configuration: {place}.settings: {model.adapter} takes none, given {sorted(model.settings)}"
            )
        _check_sent(place, model)
        if model.more_urls and not model.revision:
            raise ConfigError(
                f"configuration: {place}.more_urls without a revision; say that all of them serve one model: "
                f"--set {place}.revision=NAME"
            )
    clash = sorted(set(models.solvers) & set(type(models).model_fields))
    if clash:
        raise ConfigError(f"configuration: models.solvers.{clash[0]}: {clash[0]} is a role; choose another name")
    known = {"solver", *models.solvers}
    named = [*config.difficulty.solvers, *filter(None, [config.difficulty.text_solver])]
    strange = [name for name in named if name not in known]
    if strange or not config.difficulty.solvers:
        raise ConfigError(
            f"configuration: difficulty.solvers {list(config.difficulty.solvers)}, text_solver "
            f"{config.difficulty.text_solver!r}; there are: {', '.join(sorted(known))}"
        )


def _check_batches(config: RunConfig) -> None:
    """Refuse batches where each request waits for the reply before it, or where no server takes them."""
    for role in config.models.list_roles():
        model, place = config.models.get(role), config.models.name_place(role)
        if model.mode == "live":
            continue
        if role in CONVERSING:
            raise ConfigError(
                f"configuration: {place}.mode is batch, but each turn of a rollout waits for the turn before it, and a "
                f"batch may take a day: --set {place}.mode=live"
            )
        why = {
            f"the adapter {model.adapter} knows no batches": model.adapter != "openai",
            "vLLM's server, which serve.own starts, has no Batch API": model.serve.own,
            "batches go to one address, and more_urls names others": bool(model.more_urls),
        }
        for reason in (reason for reason, wrong in why.items() if wrong):
            raise ConfigError(f"configuration: {place}.mode is batch: {reason}; --set {place}.mode=live")


def _check_commons(commons: CommonsConfig) -> None:
    """Check what seeds ask of Commons, and groundings fetch from it."""
    if (commons.endpoint or commons.search) and not commons.contact:
        raise ConfigError(
            "configuration: commons.contact is empty; name a contact: --set commons.contact=you@example.org"
        )
    if commons.search and not commons.fetch:
        raise ConfigError("configuration: commons.search needs commons.fetch: --set commons.fetch=true")


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
    groundings, encoder = config.groundings, config.encoder
    engines = {*groundings.ocr, config.tools.layout}
    if "layer" in engines and config.corpus.dump:
        raise ConfigError(
            "configuration: the OCR engine layer reads the pictures of generated worlds alone; name another: "
            """--set 'groundings.ocr=["rapidocr"]' --set tools.layout=rapidocr"""
        )
    if (groundings.ranker == "clip" or config.image_search.method == "clip") and not encoder.pretrained:
        raise ConfigError(
            "configuration: encoder.pretrained is empty, so there is no encoder; name weights: "
            "--set encoder.pretrained=openai, or a checkpoint's file"
        )


def _check_acting(config: RunConfig) -> None:
    tools, live = config.tools, config.live
    if tools.summarise is True and not config.summarises:
        raise ConfigError(
            "configuration: tools.summarise without models.summariser; name one: "
            "--set models.summariser.adapter=templates --set models.summariser.name=templates"
        )
    if tools.family == "live" and live.images == "serpapi" and not live.picture_base:
        raise ConfigError(
            "configuration: live.picture_base is empty; serpapi looks up addresses, so say where the workspace's "
            "images/ folder is published"
        )
    if tools.family == "live" and live.reader == "direct" and not live.contact:
        raise ConfigError("configuration: live.contact is empty; name a contact: --set live.contact=you@example.org")


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
    return _join(_list_chain(name))


def choose_players(tables: dict[str, Any]) -> None:
    """Lay players.toml over the tables: the scripted players of the toy world in the place of models.

    Sampling settings stay. The players of one recipe stand under ``[recipes.NAME]`` and lie over those of all. The
    text layer reads pictures of generated worlds alone, so that a dump's keep their engine.
    """
    players = tomllib.loads((resources.files("pipelines.config") / "players.toml").read_text())
    own = players.pop("recipes").get(tables.get("recipe"), {})
    _lay_over(players, own)
    if "dump" in _list_keys(tables.get("corpus")):
        del players["groundings"]["ocr"]
    models = tables.setdefault("models", {})
    models.pop("default", None)
    for role, player in players.pop("models").items():
        models[role] = {**models.get(role, {}), **player}
    _lay_over(tables, players)


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
        RunConfig.model_validate(tables)
    except ValidationError as error:
        if wrong := [_explain(problem) for problem in error.errors() if problem["type"] != "missing"]:
            raise ConfigError(f"{place}: {'; '.join(wrong)}") from error


def read_layers(recipe: str, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the tables of a recipe with those of files over it, as :func:`list_layers` has them.

    Raises:
        ConfigError: as :func:`list_layers`.
    """
    return _join(list_layers(recipe, paths))


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


def _join(layers: Sequence[Layer]) -> dict[str, Any]:
    """Return the tables of layers over one another: joined key by key, but a list takes the place of a list."""
    tables: dict[str, Any] = {}
    for layer in layers:
        lay_layer(tables, layer.tables)
    return tables


def lay_layer(tables: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Put the values of a layer, such as a file's, over tables."""
    _keep_one_source(tables, {"corpus." + key for key in _list_keys(layer.get("corpus"))})
    _lay_over(tables, deepcopy(dict(layer)))


def _list_keys(table: object) -> list[str]:
    return list(table) if isinstance(table, dict) else []


def _lay_over(tables: dict[str, Any], layer: dict[str, Any], place: str = "") -> None:
    """Put the values of a layer into tables; a model takes the place of a scripted player with all its abilities."""
    for key, value in layer.items():
        below = tables.get(key)
        if not isinstance(value, dict) or not isinstance(below, dict):
            tables[key] = value
            continue
        if place in ("models.", "models.solvers.") and ("base_url" in value or "adapter" in value):
            below.pop("settings", None)
            below.pop("adapter", None)
        _lay_over(below, value, f"{place}{key}.")


def apply_setting(tables: dict[str, Any], setting: str) -> None:
    """Apply one ``a.b=value``; the value is TOML, and text that is no TOML is a string.

    Raises:
        ConfigError: if there is no ``=`` or a part of the name is no table.
    """
    name, equals, raw = setting.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {MASK if is_key(setting) else setting!r}: write it as section.key=value")
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw
    *parents, last = name.strip().split(".")
    table = tables
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {name.strip()}: {parent} is a value, not a section")
    table[last] = value


def apply_settings(tables: dict[str, Any], settings: Sequence[str]) -> None:
    """Apply every ``a.b=value``; what is named takes the place of what cannot stand beside it.

    Raises:
        ConfigError: as :func:`apply_setting`.
    """
    for setting in settings:
        apply_setting(tables, setting)
    _keep_one_source(tables, {setting.split("=", 1)[0].strip() for setting in settings})
    _drop_abilities(tables, settings)


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


def _keep_one_source(tables: dict[str, Any], named: Set[str]) -> None:
    """Let ``corpus.dump`` or ``corpus.world``, where they are named, take the place of the recipe's own source."""
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


def _fill_roles(tables: dict[str, Any]) -> None:
    """Let ``models.default`` play the roles that every run needs and that name no model; their own keys stay."""
    models = tables.get("models")
    if not isinstance(models, dict) or not isinstance(default := models.get("default"), dict):
        return
    tools = tables.get("tools")
    summed = isinstance(tools, dict) and bool(tools.get("summarise"))
    for role in (*NEEDED_ROLES, *(["summariser"] if summed else [])):
        own = models.get(role, {})
        if isinstance(own, dict) and not own.get("name"):
            models[role] = {**default, **own}


def explain_missing(roles: Sequence[str]) -> str:
    """Return what to add to a configuration in which roles have no model."""
    named = ", ".join(f"models.{role}" for role in roles)
    tables = {role if role in OTHER_ROLES else "default": None for role in roles}
    lines = "".join(
        f'[models.{table}]\nname = "{"MODEL" if table == "default" else "ANOTHER MODEL"}"\n'
        'base_url = "http://127.0.0.1:8000/v1"\n'
        for table in tables
    )
    return (
        f"no model for {named}; add three lines to your configuration for each of these tables:\n{lines}"
        "or choose the scripted players of the toy world on purpose: --models scripted"
    )


def _explain(problem: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        told = problem["input"]
        is_secret = isinstance(told, str) and is_key(mask_keys(told))
        secret = is_secret or where.endswith("_env") or where == "replies.address"
        given = "" if secret else f" (given {_SECRETS.sub('...', repr(told))})"
        return mask_keys(f"{where}: {problem['msg']}{given}")
    model: Any = RunConfig
    for part in (part for part in problem["loc"][:-1] if isinstance(part, str)):
        annotation = model.model_fields[part].annotation
        arguments = [a for a in getattr(annotation, "__args__", (annotation,)) if a is not type(None)]
        model = arguments[0]
    near = difflib.get_close_matches(str(problem["loc"][-1]), model.model_fields, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(model.model_fields)}"
    return f"unknown key {where}{hint}"
