"""Named runs: the configuration that a workspace keeps of each, and what each has made.

::

    workspace/runs/<name>/
      config.toml    recipe, files and options in one
      config-1.toml  what that was before it was first changed; config-2.toml before the second time
      run.json       recipe, the last stage that was wanted, when and where it began last, when it ended, and which
                     release it makes again
      latest.json    which corpus, keys and releases it used last

A kept configuration holds what a user may write into one, and so names of environment variables and no secret.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from pipelines.config.writing import write_toml
from pipelines.errors import ConfigError, Damaged
from pipelines.files import remove_whole, write_text
from pipelines.release.manifest import MANIFEST, read_release_manifest
from pipelines.run.underway import read_runs
from pipelines.run.workspace import LATEST, RELEASE, Workspace, pick_releases, read_model, read_names, write_model
from schemas.manifest import InputEntry, Manifest, Usage

CONFIG = "config.toml"
NOTE = "run.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
UNSET = "unset"
State = Literal["finished", "ended early", "under way", "stopped"]
"""``ended early``: with the stage that it was to end with, which is not the last one."""


class RunNote(BaseModel, frozen=True, extra="forbid"):
    """``run.json``; times are ISO 8601, UTC."""

    recipe: str
    last: str = ""
    """Stage that it was to end with; empty for all."""
    began: str
    ended: str = ""
    """Empty while the run is under way, and for ever if it was stopped."""
    folder: str = ""
    """Where it was begun: relative paths of its configuration are from there."""
    lineage: tuple[InputEntry, ...] = ()
    """Corpus and stages of the release that it makes again; may be empty."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """What a run is called and made of.

    Attributes:
        name: of the run.
        tables: its configuration, as :func:`pipelines.config.loading.make_config` takes it.
        lineage: corpus and stages of the release that it makes again; may be empty.
        notes: what is to be said of it when it begins.
        chosen: whether the name is the user's choice, and not that of a recipe or a file.
        is_guess: whether neither a name nor a recipe was given, so that it is the demo.
    """

    name: str
    tables: Mapping[str, Any]
    lineage: tuple[InputEntry, ...] = ()
    notes: tuple[str, ...] = ()
    chosen: bool = True
    is_guess: bool = False

    @property
    def corpus(self) -> str:
        """Digest that its corpus must have; empty for any."""
        return next((entry.digest for entry in self.lineage if entry.name == "corpus"), "")

    def compare_lineage(self, used: Mapping[str, str]) -> str:
        """Return from which stage on the rows may differ from the release that was to be made again; may be empty."""
        apart = [entry.name for entry in self.lineage if used.get(entry.name, entry.key) != entry.key]
        apart = [name for name in apart if name != "corpus"]
        return f"{apart[0]}: from here on other rows than the release has may be made" if apart else ""


@dataclass(frozen=True)
class KeptRun:
    """A run that a workspace knows."""

    workspace: Workspace
    name: str

    @property
    def config(self) -> Path:
        """The kept configuration."""
        return self.workspace.runs / self.name / CONFIG

    @cached_property
    def note(self) -> RunNote:
        """When it ran; ``began`` is empty where the run was killed before that was noted.

        Raises:
            Damaged: if the note has other bytes than were written.
        """
        path = self.config.with_name(NOTE)
        return read_model(path, RunNote) if path.is_file() else RunNote(recipe="", began="")

    def find_damage(self) -> str:
        """Return what is wrong with the note; empty for nothing."""
        try:
            return "" if self.note.began else "is missing"
        except Damaged as error:
            return error.what

    def read_tables(self) -> dict[str, Any]:
        """Return the kept configuration.

        Raises:
            Damaged: if it is not what was kept.
        """
        remedy = f"keep it anew with `synth run {self.name} --config FILE`, or `synth runs --forget {self.name}`"
        try:
            return tomllib.loads(self.config.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Damaged(self.config, f"cannot be read ({error})", remedy) from error

    def read_used(self) -> dict[str, str]:
        """Return which corpus, keys and releases it used last; nothing before anything was made."""
        return self.workspace.read_latest(self.name)


def check_name(name: str) -> str:
    """Return the name of a run.

    Raises:
        ConfigError: if it cannot be one.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(f"run {name!r}: a name has up to 64 letters of A-Z, digits, and . _ - after the first")
    return name


def list_runs(workspace: Workspace) -> list[KeptRun]:
    """Return the runs that a workspace keeps, the one that began last at the end.

    Raises:
        ConfigError: if there are several, and the note of one is damaged, so that they cannot be sorted.
    """
    found = list_kept(workspace)
    try:
        return sorted(found, key=lambda run: (run.note.began, run.name)) if len(found) > 1 else found
    except Damaged as error:
        raise ConfigError(f"{error}; `synth run {error.path.parent.name}` writes it again") from error


def list_kept(workspace: Workspace) -> list[KeptRun]:
    """Return the runs that a workspace keeps, by name; no note is read."""
    return [KeptRun(workspace, path.parent.name) for path in sorted(workspace.runs.glob(f"[!.]*/{CONFIG}"))]


def find_run(workspace: Workspace, name: str) -> KeptRun:
    """Return a run by its name.

    Raises:
        ConfigError: if the workspace keeps none of that name.
    """
    names = {run.name: run for run in list_kept(workspace)}
    if name in names:
        return names[name]
    raise ConfigError(explain_missing_run(workspace, name))


def explain_missing_run(workspace: Workspace, name: str) -> str:
    """Return that a workspace keeps no run of a name, and which it keeps."""
    names = [run.name for run in list_kept(workspace)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names) or 'none'}"
    return f"run {name!r}: workspace {workspace.root} keeps none of that name; {hint}"


def keep_run(workspace: Workspace, named: NamedRun, recipe: str, last: str = "") -> Iterator[str]:
    """Keep the configuration of a run that begins, and yield in words whether it is known and what it has changed.

    The workspace is claimed by the caller. ``last`` is the stage that the run ends with; empty for all.

    Raises:
        ConfigError: if it would take the place of another run that was probably meant.
    """
    kept = KeptRun(workspace, check_name(named.name))
    text = write_toml(named.tables)
    try:
        before = kept.read_tables() if kept.config.is_file() else None
    except Damaged as error:
        yield f"run {named.name}: its configuration is kept anew: {error}"
        before = None
    _check_meant(workspace, named, recipe, before)
    changes = [] if before is None else list(list_changes(before, named.tables))
    note = RunNote(recipe=recipe, last=last, began=_tell_time(), folder=str(Path.cwd()), lineage=named.lineage)
    # First, so that a run which is killed right here is the one that began last.
    write_model(kept.config.with_name(NOTE), note)
    aside = _put_aside(kept.config) if changes else ""
    if before is None or changes:
        write_text(kept.config, text)
    if before is None:
        yield f"run {named.name} begins: recipe {recipe}, kept in {kept.config}"
    else:
        changed = f"changed keys: {len(changes)}; before: {aside}" if changes else "as kept"
        yield f"run {named.name} goes on: recipe {recipe}, {changed}"
    yield from (f"run {named.name}: {line}" for line in (*changes, *named.notes))


def _check_meant(workspace: Workspace, named: NamedRun, recipe: str, before: Mapping[str, Any] | None) -> None:
    """Refuse to begin a run in the place of another one that nobody meant to leave.

    Raises:
        ConfigError: if a run of another recipe is called so, or neither what was released here nor this has a name.
    """
    if before is not None and not named.chosen and before.get("recipe") != recipe:
        raise ConfigError(
            f"run {named.name}: it is one of recipe {before.get('recipe')}, this is recipe {recipe}; give it a name of "
            f"its own: `synth run NAME ...`, or say `synth run {named.name} ...` to change that run"
        )
    if named.is_guess and "releases" in workspace.read_latest():
        raise ConfigError(
            f"workspace {workspace.root}: what ran here last has no name, so its recipe is not known; name it: "
            "--recipe RECIPE, or --config FILE"
        )


def _put_aside(config: Path) -> str:
    """Keep a copy of a configuration that is about to change, and return its name; one that is there is taken."""
    text, number = config.read_text(encoding="utf-8"), 1
    while (place := config.with_stem(f"{config.stem}-{number}")).is_file():
        if place.read_text(encoding="utf-8") == text:
            return place.name
        number += 1
    write_text(place, text)
    return place.name


def end_run(workspace: Workspace, named: NamedRun) -> Iterator[str]:
    """Note that a run came to its end, and yield in words where it parts from the release that it was to make again."""
    run = KeptRun(workspace, named.name)
    write_model(run.config.with_name(NOTE), run.note.model_copy(update={"ended": _tell_time()}))
    if apart := named.compare_lineage(run.read_used()):
        yield f"run {named.name}: {apart}"


def _tell_time() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


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


def forget_run(workspace: Workspace, name: str) -> None:
    """Remove what is kept of a run, and nothing that it made; views go on showing that if it ran last, and can be read.

    The workspace is claimed by the caller.

    Raises:
        ConfigError: if there is no such run.
    """
    run = find_run(workspace, name)
    with suppress(Damaged):
        if read_names(workspace.root / LATEST) == {"run": name}:
            workspace.note_latest(run.read_used())
    remove_whole(run.config.parent)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of ``synth runs``."""

    name: str
    recipe: str
    state: State
    time: str
    """When it ended, or else began; ISO 8601, UTC."""
    rows: dict[str, int]
    """Released rows by dataset."""
    releases: dict[str, str]
    """Version by dataset."""
    cost: float
    """Of the stages that it uses; several runs may use the same."""
    config: Path


def summarise_run(run: KeptRun, last: bool) -> RunSummary:
    """Return where a run stands; ``last`` says whether none began after it, since only one can be under way."""
    note, used = run.note, run.read_used()
    alive = last and not note.ended and any(found.is_alive for found in read_runs(run.workspace))
    releases = pick_releases(used)
    folders = {dataset: run.workspace.releases / dataset / version for dataset, version in releases.items()}
    rows = {name: read_release_manifest(path).rows for name, path in folders.items() if (path / MANIFEST).is_file()}
    return RunSummary(
        name=run.name,
        recipe=note.recipe,
        state=("ended early" if note.last else "finished") if note.ended else "under way" if alive else "stopped",
        time=note.ended or note.began,
        rows=rows,
        releases=releases,
        cost=sum(usage.cost for usage in _list_usages(run.workspace, used)),
        config=run.config,
    )


def _list_usages(workspace: Workspace, used: Mapping[str, str]) -> Iterator[Usage]:
    for stage, key in used.items():
        manifest: Manifest | None = None
        if stage != "corpus" and not stage.startswith(RELEASE):
            manifest = workspace.stage(stage, key).read_manifest()
        if manifest is not None:
            yield from (manifest.usage, manifest.stopped)


def find_release(root: Path, given: Path) -> Path:
    """Return the folder of a release that is given as a folder, or as the run that made it: ``RUN`` or ``RUN/DATASET``.

    Raises:
        ConfigError: if the run released nothing of that name, or several datasets and none is named.
    """
    workspace, (name, *more) = Workspace(root), given.parts or ("",)
    if given.exists() or len(more) > 1 or not (workspace.runs / name / CONFIG).is_file():
        return given
    found = pick_releases(KeptRun(workspace, name).read_used())
    wanted = more or (list(found) if len(found) == 1 else [])
    if not wanted or wanted[0] not in found:
        there = ", ".join(f"{name}/{dataset}" for dataset in sorted(found)) or "none"
        raise ConfigError(f"run {name}: name one of its releases; there are: {there}")
    return workspace.releases / wanted[0] / found[wanted[0]]


def describe_others(workspace: Workspace, shown: set[str]) -> str:
    """Return which stages other runs have that the views of this one lack; may be empty."""
    found = []
    for run in list_kept(workspace):
        try:
            used = run.read_used()
        except Damaged as error:
            # The caller reports another error, which damage to a run's note must not replace.
            found.append(f"--run {run.name} cannot be read: {error.path.name} {error.what}")
            continue
        more = sorted({stage for stage in used if stage != "corpus" and ":" not in stage} - shown)
        found += [f"{', '.join(more)} of --run {run.name}"] if more else []
    return "; ".join(found)
