"""Named runs: the configuration that a workspace keeps of each, and what each has made.

::

    workspace/runs/<name>/
      config.toml    recipe, files and options in one; the run whose file was written last began last
      latest.json    which corpus, keys and releases it used last

A kept configuration holds what a user may write into one, and so names of environment variables and no secret.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.config.writing import write_toml
from pipelines.errors import ConfigError, Damaged
from pipelines.files import write_text
from pipelines.run.workspace import Workspace, pick_releases

CONFIG = "config.toml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
UNSET = "unset"


@dataclass(frozen=True, slots=True)
class NamedRun:
    """What a run is called and made of.

    Attributes:
        name: of the run.
        tables: its configuration, as :func:`pipelines.config.loading.make_config` takes it.
        chosen: whether the name is the user's choice, and not that of a recipe or a file.
    """

    name: str
    tables: Mapping[str, Any]
    chosen: bool = True


@dataclass(frozen=True)
class KeptRun:
    """A run that a workspace knows."""

    workspace: Workspace
    name: str

    @property
    def config(self) -> Path:
        """The kept configuration."""
        return self.workspace.runs / self.name / CONFIG

    def read_tables(self) -> dict[str, Any]:
        """Return the kept configuration.

        Raises:
            Damaged: if it is not what was kept.
        """
        try:
            return tomllib.loads(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            remedy = f"remove it, and begin the run with `synth run {self.name} --config FILE`"
            raise Damaged(self.config, f"cannot be read ({error})", remedy) from error


def check_name(name: str) -> str:
    """Return the name of a run.

    Raises:
        ConfigError: if it cannot be one.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(f"run {name!r}: a name has up to 64 letters of A-Z, digits, and . _ - after the first")
    return name


def list_runs(workspace: Workspace) -> list[KeptRun]:
    """Return the runs that a workspace keeps, the one that began last at the end."""
    paths = sorted(workspace.runs.glob(f"[!.]*/{CONFIG}"), key=lambda path: (path.stat().st_mtime_ns, path))
    return [KeptRun(workspace, path.parent.name) for path in paths]


def find_run(workspace: Workspace, name: str) -> KeptRun:
    """Return a run by its name.

    Raises:
        ConfigError: if the workspace keeps none of that name.
    """
    runs = {run.name: run for run in list_runs(workspace)}
    if name not in runs:
        raise ConfigError(
            f"no run of workspace {workspace.root} is named {name!r}; there are: {', '.join(runs) or 'none'}"
        )
    return runs[name]


def keep_run(workspace: Workspace, named: NamedRun, recipe: str) -> Iterator[str]:
    """Keep the configuration of a run that begins, and yield in words whether it is known and what it has changed.

    The workspace is claimed by the caller.

    Raises:
        ConfigError: if it would take the place of a run of another recipe that nobody named.
    """
    kept = KeptRun(workspace, check_name(named.name))
    before = kept.read_tables() if kept.config.is_file() else None
    if before is not None and not named.chosen and before.get("recipe") != recipe:
        raise ConfigError(
            f"run {named.name}: it is one of recipe {before.get('recipe')}, this is recipe {recipe}; give it a name of "
            f"its own: `synth run NAME ...`, or say `synth run {named.name} ...` to change that run"
        )
    write_text(kept.config, write_toml(named.tables))
    if before is None:
        yield f"run {named.name} begins: recipe {recipe}, kept in {kept.config}"
        return
    changes = list(list_changes(before, named.tables))
    yield f"run {named.name} goes on: recipe {recipe}, {f'changed keys: {len(changes)}' if changes else 'as kept'}"
    yield from (f"run {named.name}: {change}" for change in changes)


def list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield each key whose value differs between two configurations, as ``seeds.limit: 5 -> 8``."""
    old, new = flatten(before), flatten(after)
    for key in sorted(old.keys() | new.keys()):
        # Not by ==: for Python, 1 is True.
        was, now = (repr(found[key]) if key in found else UNSET for found in (old, new))
        if was != now:
            yield f"{key}: {was} -> {now}"


def flatten(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by ``section.key``."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def find_release(root: Path, given: Path) -> Path:
    """Return the folder of a release that is given as a folder, or as the run that made it: ``RUN`` or ``RUN/DATASET``.

    Raises:
        ConfigError: if the run released nothing of that name, or several datasets and none is named.
    """
    workspace, (name, *more) = Workspace(root), given.parts or ("",)
    if given.exists() or len(more) > 1 or not (workspace.runs / name / CONFIG).is_file():
        return given
    found = pick_releases(workspace.read_latest(name))
    wanted = more or (list(found) if len(found) == 1 else [])
    if not wanted or wanted[0] not in found:
        there = ", ".join(f"{name}/{dataset}" for dataset in sorted(found)) or "none"
        raise ConfigError(f"run {name}: name one of its releases; there are: {there}")
    return workspace.releases / wanted[0] / found[wanted[0]]
