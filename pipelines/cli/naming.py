"""Which run a command is about: its name, and its configuration from options or a kept run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.config.loading import apply_settings, lay_layer, list_recipes, make_config, read_config_file, read_layers
from pipelines.errors import ConfigError
from pipelines.run.loop import RunRequest
from pipelines.run.naming import NAME, KeptRun, NamedRun, check_name, find_run, list_runs
from pipelines.run.runner import find_last
from pipelines.run.workspace import Workspace, viewing

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What a command line says of a run and its configuration.

    Attributes:
        name: of the run; empty for the recipe's or the file's, or the last one where neither is given.
        recipe: shipped recipe; empty for that of the run or the files.
        configs: TOML files, the last one uppermost.
        settings: values as ``section.key=value``.
        limit: most seeds; 0 for the recipe's own.
    """

    name: str = ""
    recipe: str = ""
    configs: tuple[Path, ...] = ()
    settings: tuple[str, ...] = ()
    limit: int = 0


def make_request(
    choice: RunChoice,
    root: Path,
    until: str = "",
    only: Sequence[str] = (),
    fresh: Sequence[str] = (),
    retry: Sequence[str] = (),
) -> RunRequest:
    """Return the request that a command line makes; `synth run`, its flow, and commands that look at a run begin here.

    A recipe, or a file that names one, begins with a configuration of its own. Else a run that the workspace keeps
    goes on with what was kept: the named one, or the one that began last. In an empty workspace it is the demo.

    Args:
        choice: which run, and what is given for its configuration.
        root: the workspace.
        until: last stage to run, empty for all; what later ones need may be missing.
        only: run just these stages; empty for all.
        fresh: roles and tools that are asked anew.
        retry: rows that ended so are asked anew.

    Raises:
        ConfigError: if there is no such run, recipe or file, or a key or value is wrong.
    """
    if choice.name:
        check_name(choice.name)
    name, tables, kept = _find_base(choice, Workspace(root.resolve()))
    apply_settings(tables, [*([f"seeds.limit={choice.limit}"] if choice.limit else []), *choice.settings])
    config = make_config(deepcopy(tables), (), find_last(until, only))
    named = NamedRun(name, tables, chosen=bool(choice.name or kept))
    return RunRequest(config, root, until, tuple(only), tuple(fresh), tuple(retry), named)


def _find_base(choice: RunChoice, workspace: Workspace) -> tuple[str, dict[str, Any], KeptRun | None]:
    """Return name and configuration that options lie over, and the kept run that they are of."""
    layers = [read_config_file(path) for path in choice.configs]
    if choice.recipe or any("recipe" in layer or "extends" in layer for layer in layers):
        name = choice.name or _name_by_files(layers, choice.configs) or choice.recipe
        return name, read_layers(choice.recipe, choice.configs), None
    # Without a name, a file that names no recipe is refused, and not laid over whatever ran last.
    runs = list_runs(workspace) if choice.name or not layers else []
    kept = next((run for run in reversed(runs) if choice.name in ("", run.name)), None)
    if kept is not None:
        tables = kept.read_tables()
        for layer in layers:
            lay_layer(tables, layer)
        return kept.name, tables, kept
    if choice.name and choice.name not in list_recipes():
        try:
            find_run(workspace, choice.name)
        except ConfigError as error:
            raise ConfigError(f"{error}; no recipe is: `synth run {choice.name} --recipe R` begins it") from error
    recipe = choice.name or ("" if layers else DEMO)
    return recipe, read_layers(recipe, choice.configs), None


def _name_by_files(layers: Sequence[Mapping[str, Any]], paths: Sequence[Path]) -> str:
    """Return the name that a file gives its recipe, the last one's, else how the first file is called."""
    own = [str(layer["recipe"]) for layer in layers if layer.get("recipe", DEMO) not in list_recipes()]
    text = own[-1] if own else paths[0].stem if paths else ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:64]
    return name if NAME.fullmatch(name) or not paths else "run"


@contextmanager
def looking_at(root: Path, run: str) -> Iterator[None]:
    """Look at what a run made inside the block; at the last one's, if no run is named.

    Raises:
        ConfigError: if the workspace keeps no such run.
    """
    with viewing(find_run(Workspace(root), run).name if run else ""):
        yield
