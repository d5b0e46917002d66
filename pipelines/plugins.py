"""Plugins: what other distributions add by entry points, loaded by name when a configuration asks for it.

Nothing is imported before it is asked for, so a broken plugin breaks only the run that names it. A plugin is known by
its distribution, its version and the sha256 of its sources: all three are part of the key of each stage that it
decides, so another version makes exactly these stages again, and those that follow from them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, get_args

from pipelines.errors import ConfigError
from pipelines.ids import digest_value
from schemas.manifest import PluginEntry, PluginKind, PluginSetting

GROUPS: Final[Mapping[PluginKind, str]] = {kind: f"synth.{kind}" for kind in get_args(PluginKind)}
"""Groups of entry points; what each is called with and returns is told in :mod:`pipelines.api`."""


@dataclass(frozen=True)
class Plugin:
    """A plugin that is loaded."""

    entry: PluginEntry
    made: Any = field(compare=False)
    """What its entry point made: a check, a stage, a backend, an exporter or a source."""

    @property
    def identity(self) -> str:
        """Digest of all that decides what it does: distribution, version, sources and settings."""
        return digest_value(self.entry)


def list_names(kind: PluginKind) -> tuple[str, ...]:
    """Return the names of installed plugins; none is imported."""
    return tuple(sorted({found.name for found in entry_points(group=GROUPS[kind])}))


def load_plugin(kind: PluginKind, name: str, settings: Mapping[str, PluginSetting] | None = None) -> Plugin:
    """Import a plugin and make it with its settings.

    Raises:
        ConfigError: if it is not installed, two distributions have it, or it cannot be imported or made; the message
            names the distribution.
    """
    found, told = find_entry(kind, name), dict(settings or {})
    where = describe_entry(found)
    try:
        made = found.load()
        made = made if kind == "prompts" else made(**told)
    except Exception as error:
        raise ConfigError(f"plugin {where} cannot be loaded: {type(error).__name__}: {error}") from error
    try:
        reasons = {str(reason): str(meaning) for reason, meaning in dict(getattr(made, "reasons", {})).items()}
        entry = make_entry(kind, found).model_copy(update={"reasons": reasons, "settings": told})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"plugin {where}: its reasons are no mapping of a reason to its meaning: {error}") from error
    return Plugin(entry, made)


def find_entry(kind: PluginKind, name: str) -> EntryPoint:
    """Return a plugin's entry point without importing it.

    Raises:
        ConfigError: if no distribution has it, or several do.
    """
    found = {_name_distribution(each): each for each in entry_points(group=GROUPS[kind], name=name)}
    if not found:
        known = ", ".join(list_names(kind)) or "none"
        raise ConfigError(f"plugin {name!r} of {GROUPS[kind]} is not installed; installed are: {known}")
    if len(found) > 1:
        owners = " and ".join(" ".join(owner) for owner in sorted(found))
        raise ConfigError(f"plugin {name!r} of {GROUPS[kind]} is in {owners}; uninstall one")
    return next(iter(found.values()))


def make_entry(kind: PluginKind, found: EntryPoint) -> PluginEntry:
    """Return what a plugin is known by, as it lies on disk.

    Raises:
        ConfigError: if its sources cannot be found.
    """
    distribution, version = _name_distribution(found)
    return PluginEntry(
        kind=kind, name=found.name, distribution=distribution, version=version, sha256=_digest_sources(found)
    )


def describe_entry(found: EntryPoint) -> str:
    """Return a plugin in words: its name, group, distribution and version."""
    distribution, version = _name_distribution(found)
    return f"{found.name!r} of {found.group}, from {distribution} {version} ({found.value}),"


def explain_absence(entry: PluginEntry) -> str:
    """Return why a plugin is not there as it was, and what to install; empty if it is."""
    wanted = f"{entry.distribution} {entry.version}"
    remedy = f"pip install '{entry.distribution}=={entry.version}'"
    try:
        now = make_entry(entry.kind, find_entry(entry.kind, entry.name))
    except ConfigError:
        return f"{entry.name!r} of {wanted} is not installed: {remedy}"
    if (now.distribution, now.version) != (entry.distribution, entry.version):
        return f"{entry.name!r} of {wanted} is wanted, {now.distribution} {now.version} is installed: {remedy}"
    return "" if now.sha256 == entry.sha256 else f"{entry.name!r} of {wanted} is wanted, its sources have changed"


def find_folder(found: EntryPoint) -> Path:
    """Return the folder of the package that an entry point names.

    Raises:
        ConfigError: if there is none.
    """
    return _find_sources(found, found.module)[0]


def _name_distribution(found: EntryPoint) -> tuple[str, str]:
    return (found.dist.name, found.dist.version) if found.dist is not None else ("an unnamed distribution", "")


def _digest_sources(found: EntryPoint) -> str:
    """Return the sha256 over names and bytes of all files of the plugin's package: prompts and tables decide, too."""
    digest = hashlib.sha256()
    folder, module = _find_sources(found, found.module.partition(".")[0])
    for path in sorted(folder.rglob("*")) if module is None else [module]:
        name = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in name.parts:
            content = path.read_bytes()
            digest.update(f"{name.as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _find_sources(found: EntryPoint, module: str) -> tuple[Path, Path | None]:
    """Return the folder of a package, or that of a module and its file; a top-level one is not imported for it."""
    try:
        spec = find_spec(module)
    except ImportError as error:
        raise ConfigError(f"plugin {describe_entry(found)} cannot be loaded: {error}") from error
    if spec is None or (not spec.submodule_search_locations and spec.origin is None):
        raise ConfigError(f"plugin {describe_entry(found)} cannot be loaded: there is no module {module}")
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))), None
    file = Path(str(spec.origin))
    return file.parent, file
