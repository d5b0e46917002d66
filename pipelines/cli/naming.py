"""Which run a command is about: its name, and its configuration from options, a kept run or a release.

A release tells of its configuration what holds no path, address or name of somebody's own; the rest is given again.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.cli.commands import lay_options
from pipelines.config.disclosure import digest_settings, disclose_settings, read_sections
from pipelines.config.loading import (
    apply_settings,
    lay_layer,
    list_recipes,
    make_config,
    read_config_file,
    read_layers,
    read_recipe,
)
from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError
from pipelines.plugins import explain_absence
from pipelines.release.manifest import ReleaseManifest, read_release_manifest
from pipelines.run.jsonlog import start_json_log
from pipelines.run.loop import RunRequest
from pipelines.run.naming import (
    NAME,
    KeptRun,
    NamedRun,
    RunSummary,
    check_name,
    explain_missing_run,
    find_run,
    flatten,
    forget_run,
    list_kept,
    list_runs,
    summarise_run,
)
from pipelines.run.runner import find_last
from pipelines.run.workspace import Workspace, viewing

RULES_NO_ROW = frozenset({"budget"})
"""Settings that a release does not tell and need not: they decide no row of a finished run."""


@dataclass(frozen=True, slots=True)
class Retold:
    """What a release tells of the configuration it was made by.

    ``tables`` is the shipped recipe of its name, if there is one, with what the release tells over it.
    """

    folder: Path
    manifest: ReleaseManifest
    tables: dict[str, Any]

    def hold(self, config: RunConfig, given: Collection[str]) -> Iterator[str]:
        """Compare a configuration and its plugins with the release's, and yield in words what differs.

        ``given`` are keys, or sections, that the user gave values for.

        Raises:
            ConfigError: if a value that the release does not tell is neither the recipe's nor given.
        """
        told, untold = disclose_settings(config)
        apart = [
            name
            for name, digest in self.manifest.untold.items()
            if untold.get(name) != digest and name not in RULES_NO_ROW
        ]
        missing = [name for name in apart if not any(_touches(key, name) for key in given)]
        if missing:
            corpus = (
                ""
                if any(_touches(key, "corpus") for key in given)
                else f"; its corpus has digest {self.manifest.corpus[:16]}: if that is not the recipe's, give "
                "--set corpus.dump=FILE, corpus.world=DIR or the keys of corpus.generate, too"
            )
            raise ConfigError(
                f"release {self.folder}: it was made with other values of {', '.join(missing)} than recipe "
                f"{self.manifest.recipe} has, and does not tell them; give them again: --models scripted, "
                f"--set {missing[0]}{'.KEY' if '.' not in missing[0] else ''}=VALUE or --config FILE{corpus}"
            )
        apart += [name for name, value in self.manifest.told.items() if told.get(name) != value]
        for name in apart:
            yield f"{name}: not the value that the release was made with, so its rows may differ"
        for entry in self.manifest.plugins:
            if why := explain_absence(entry):
                yield f"plugin {why}; the release was made with that, so its rows may differ"


def _touches(key: str, name: str) -> bool:
    """Say whether two dotted names are the same, or one lies in the other."""
    return f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.")


def read_retold(folder: Path) -> Retold:
    """Return what a release tells of its configuration.

    Raises:
        ConfigError: if the folder is no release, its settings are not those it has the digest of, or this synth reads
            them differently.
    """
    manifest = read_release_manifest(folder)
    if digest_settings(manifest.told, manifest.untold, manifest.corpus) != manifest.config_digest:
        raise ConfigError(f"release {folder}: its settings are not those it has the digest of; see `synth verify`")
    tables = read_recipe(manifest.recipe) if manifest.recipe in list_recipes() else {}
    told = read_sections({name: value for name, value in manifest.told.items() if value is not None})
    lay_layer(tables, told)
    return Retold(folder, manifest, tables)


DEMO = "demo"
PATHS: Mapping[str, Any] = {
    "corpus": {"dump": None, "world": None},
    "news": {"source": None, "decisions": None},
    "concepts": {"list": None},
    "encoder": {"pretrained": None},
    "tools": {"edsr": None},
    "trajectories": {"tokenizer": None},
    "pools": {"path": None, "images": None, "entities": None},
    "releases": {"apart_from": None, "benchmarks": {"path": None, "images": None, "entities": None}},
    "runtime": {"corpora": None},
}
"""Keys whose values may be relative paths."""


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What a command line says of a run and its configuration.

    Attributes:
        name: of the run; empty for the recipe's or the file's, or the last one where neither is given.
        recipe: shipped recipe; empty for that of the run or the files.
        configs: TOML files, the last one uppermost.
        settings: values as ``section.key=value``.
        limits: as settings, which override them.
        models: ``scripted`` for the players of the toy world.
        release: folder of a release whose configuration is taken.
    """

    name: str = ""
    recipe: str = ""
    configs: tuple[Path, ...] = ()
    settings: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    models: str = ""
    release: Path | None = None


@dataclass(frozen=True, slots=True)
class _Base:
    """What options lie over."""

    name: str
    tables: dict[str, Any]
    retold: Retold | None = None
    kept: KeptRun | None = None
    is_guess: bool = False
    """Whether nothing is named and nothing is kept, so that it is the demo."""


def make_request(
    choice: RunChoice,
    root: Path,
    until: str = "",
    only: Sequence[str] = (),
    fresh: Sequence[str] = (),
    retry: Sequence[str] = (),
) -> RunRequest:
    """Return the request that a command line makes; `synth run`, its flow, and commands that look at a run begin here.

    A recipe, a file that names one, or a release begins with a configuration of its own. Else a run that the workspace
    keeps goes on with what was kept: the named one, or the one that began last. In an empty workspace it is the demo.

    Args:
        choice: which run, and what is given for its configuration.
        root: the workspace.
        until: last stage to run, empty for all; what later ones need may be missing.
        only: run just these stages; empty for all.
        fresh: roles and tools that are asked anew.
        retry: rows that ended so are asked anew.

    Raises:
        ConfigError: if there is no such run, recipe, file or release, or a key or value is wrong.
    """
    if choice.name:
        check_name(choice.name)
    base = _find_base(choice, Workspace(root.resolve()))
    tables = lay_options(base.tables, choice.limits, choice.settings, choice.models)
    config = make_config(deepcopy(tables), (), find_last(until, only))
    named = NamedRun(base.name, tables, chosen=bool(choice.name or base.kept), is_guess=base.is_guess)
    if base.retold is not None:
        notes = tuple(base.retold.hold(config, _list_given(choice)))
        named = replace(named, lineage=base.retold.manifest.lineage, notes=notes)
    elif base.kept is not None and not base.kept.find_damage():
        named = replace(named, lineage=base.kept.note.lineage)
    return RunRequest(config, root, until, tuple(only), tuple(fresh), tuple(retry), named)


def _find_base(choice: RunChoice, workspace: Workspace) -> _Base:
    layers = [read_config_file(path) for path in choice.configs]
    if choice.release is not None:
        return _retell(choice, workspace, choice.release, layers)
    if choice.recipe or any("recipe" in layer or "extends" in layer for layer in layers):
        tables = read_layers(choice.recipe, choice.configs)
        return _Base(choice.name or _name_by_files(layers, choice.configs) or choice.recipe, tables)
    if choice.name:
        kept = next((run for run in list_kept(workspace) if run.name == choice.name), None)
    else:
        # Without a name, a file that names no recipe is refused, and not laid over whatever ran last.
        kept = next(reversed(list_runs(workspace)), None) if not layers else None
    if kept is not None:
        tables = _read_from_here(kept)
        for layer in layers:
            lay_layer(tables, layer)
        return _Base(kept.name, tables, kept=kept)
    if choice.name and choice.name not in list_recipes():
        raise _explain_unknown(choice.name, workspace)
    recipe = choice.name or ("" if layers else DEMO)
    return _Base(recipe, read_layers(recipe, choice.configs), is_guess=not (choice.name or layers))


def _explain_unknown(name: str, workspace: Workspace) -> ConfigError:
    """Return why a name is refused that is neither a run's nor a recipe's."""
    begins = f"`synth run {name} --recipe R` begins it"
    return ConfigError(f"{explain_missing_run(workspace, name)}; no recipe is called so either: {begins}")


def _read_from_here(kept: KeptRun) -> dict[str, Any]:
    """Return a kept configuration whose relative paths lead where they led from the folder that it was begun in."""
    tables = kept.read_tables()
    begun = "" if kept.find_damage() else kept.note.folder
    if begun and Path(begun) != Path.cwd():
        _root_paths(tables, PATHS, Path(begun))
    return tables


def _root_paths(table: dict[str, Any], keys: Mapping[str, Any], folder: Path) -> None:
    """Make what is a file or folder below ``folder`` absolute, in place: a word of another kind stays as it is."""
    for key, inner in keys.items():
        value = table.get(key)
        if isinstance(inner, dict):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict):
                    _root_paths(each, inner, folder)
        elif isinstance(value, list):
            table[key] = [_root(each, folder) for each in value]
        elif value is not None:
            table[key] = _root(value, folder)


def _root(value: object, folder: Path) -> object:
    return str(folder / value) if isinstance(value, str) and value and (folder / value).exists() else value


def _retell(choice: RunChoice, workspace: Workspace, folder: Path, layers: Sequence[dict[str, Any]]) -> _Base:
    if choice.recipe:
        raise ConfigError(f"--recipe {choice.recipe}: the release names its recipe; leave one of the two out")
    retold = read_retold(folder)
    if workspace.root.is_relative_to(folder.resolve()):
        raise ConfigError(f"workspace {workspace.root}: lies in the release {folder}; name another with --workspace")
    tables = deepcopy(retold.tables)
    for layer in layers:
        lay_layer(tables, layer)
    return _Base(choice.name or _make_name(retold.manifest.recipe), tables, retold)


def _name_by_files(layers: Sequence[Mapping[str, Any]], paths: Sequence[Path]) -> str:
    """Return the name that a file gives its recipe, the last one's, else how the first file is called."""
    own = [str(layer["recipe"]) for layer in layers if layer.get("recipe", "demo") not in list_recipes()]
    return _make_name(own[-1] if own else paths[0].stem) if paths else ""


def _make_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:64]
    return name if NAME.fullmatch(name) else "run"


def _list_given(choice: RunChoice) -> list[str]:
    """Return the keys, or sections, that a command line gives values for."""
    keys = [setting.partition("=")[0].strip() for setting in (*choice.limits, *choice.settings)]
    keys += [key for path in choice.configs for key in flatten(read_config_file(path))]
    return [*keys, *(["models"] if choice.models else [])]


def choose_log(choice: RunChoice, root: Path) -> None:
    """Begin a log in JSON if the configuration asks for one, although the rest of it may be wrong."""
    tables: dict[str, Any] = {}
    # :func:`make_request` says what is wrong, in the log that is chosen here.
    with suppress(ConfigError):
        tables = _find_base(choice, Workspace(root.resolve())).tables
        apply_settings(tables, choice.settings)
    runtime = tables.get("runtime")
    if isinstance(runtime, dict) and runtime.get("log") == "json":
        start_json_log()


@contextmanager
def looking_at(root: Path, run: str) -> Iterator[None]:
    """Look at what a run made inside the block; at the last one's, if no run is named.

    Raises:
        ConfigError: if the workspace keeps no such run.
    """
    with viewing(find_run(Workspace(root), run).name if run else ""):
        yield


def summarise_runs(root: Path) -> list[RunSummary]:
    """Return the runs of a workspace, the one that began last at the end."""
    runs = list_runs(Workspace(root))
    return [summarise_run(run, run is runs[-1]) for run in runs]


def forget_kept(root: Path, name: str) -> None:
    """Remove what is kept of a run, while no run holds the workspace."""
    workspace = Workspace(root.resolve())
    find_run(workspace, name)
    with workspace.claim(holder="runs"):
        forget_run(workspace, name)


def render_runs(runs: Sequence[RunSummary]) -> Group:
    """Return the runs as a table; the last one is what `synth run` goes on with."""
    if not runs:
        return Group(Text("no run is kept here; `synth run` makes a demo"))
    rows, cost = Column("rows released"), Column("cost", justify="right")
    table = Table(Column("run", no_wrap=True), "recipe", "state", "last (UTC)", rows, cost, box=SIMPLE_HEAD)
    for run in runs:
        released = ", ".join(f"{dataset} {count:,}" for dataset, count in run.rows.items()) or "-"
        time = datetime.fromisoformat(run.time).strftime("%Y-%m-%d %H:%M") if run.time else "-"
        table.add_row(Text(run.name), Text(run.recipe), run.state, time, released, f"{run.cost:,.4g}")
    return Group(table, Text(f"`synth run` goes on with {runs[-1].name}"))
