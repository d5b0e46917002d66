"""Plugins: what other distributions add by entry points, loaded by name when a configuration asks for it.

Nothing is imported before it is asked for, so a broken plugin breaks only the run that names it. A plugin is known by
its distribution, its version and the sha256 of its sources: all three are part of the key of each stage that it
decides, so another version makes exactly these stages again, and those that follow from them.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, get_args

from pipelines.errors import ConfigError
from pipelines.ids import digest_value
from schemas.manifest import PluginEntry, PluginKind, PluginSetting

GROUPS: Final[Mapping[PluginKind, str]] = {kind: f"synth.{kind}" for kind in get_args(PluginKind)}
"""Groups of entry points; what each is called with and returns is told in :mod:`pipelines.api`."""

_INSTALLERS = re.compile(r"(^|/)__pycache__/|^\.\./|^[^/]+\.(dist|egg)-info/|^__editable__|^[^/]+\.pth$")
"""What installers write for themselves: it differs from machine to machine, and decides no row."""


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
    """Return how what is installed differs from a plugin that was used, and what to install; empty if it does not."""
    wanted = entry.describe()
    remedy = f"pip install '{entry.distribution}=={entry.version}'"
    try:
        now = make_entry(entry.kind, find_entry(entry.kind, entry.name))
    except ConfigError:
        return f"{wanted} is not installed: {remedy}"
    if (now.distribution, now.version) != (entry.distribution, entry.version):
        return f"{wanted} is wanted, {now.distribution} {now.version} is installed: {remedy}"
    return "" if now.sha256 == entry.sha256 else f"{wanted} is wanted, its sources have changed"


def find_folder(found: EntryPoint) -> Path:
    """Return the folder of the package that an entry point names.

    Raises:
        ConfigError: if there is none.
    """
    spec = _find_spec(found, found.module)
    folders = [*(spec.submodule_search_locations or ()), Path(str(spec.origin)).parent]
    return Path(folders[0])


def _name_distribution(found: EntryPoint) -> tuple[str, str]:
    return (found.dist.name, found.dist.version) if found.dist is not None else ("an unnamed distribution", "")


def _digest_sources(found: EntryPoint) -> str:
    """Return the sha256 over names and bytes of all files that may decide: prompts and tables do, too.

    These are the files of the distribution, and the package that is named. An editable install records none of its
    files: all packages and modules beside the named one are taken.
    """
    files = {str(file): Path(str(file.locate())) for file in (found.dist and found.dist.files) or ()}
    root, places = _find_places(found)
    for place in places:
        paths = place.rglob("*") if place.is_dir() else [place]
        files |= {path.relative_to(root).as_posix(): path for path in paths}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        if not _INSTALLERS.search(name) and path.is_file():
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _find_places(found: EntryPoint) -> tuple[Path, list[Path]]:
    """Return the folder that a plugin is imported from, and the packages and modules in it that may be the plugin's."""
    parts = found.module.split(".")
    for depth in range(len(parts)):
        spec = _find_spec(found, ".".join(parts[: depth + 1]))
        if spec.origin is not None:
            break
    else:
        what = f"{found.module} is a namespace, which others may share; give it an __init__.py"
        raise ConfigError(f"plugin {describe_entry(found)} cannot be loaded: {what}")
    place = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    if not place.exists():
        raise ConfigError(f"plugin {describe_entry(found)} cannot be loaded: {found.module} is in no file")
    root = place.parents[depth]
    told = found.dist.read_text("direct_url.json") if found.dist is not None else None
    if not json.loads(told or "{}").get("dir_info", {}).get("editable"):
        return root, [place]
    packages = [init.parent for folder in (root, place.parent) for init in folder.glob("*/__init__.py")]
    return root, [place, *packages, *root.glob("*.py"), *place.parent.glob("*.py")]


def _find_spec(found: EntryPoint, module: str) -> ModuleSpec:
    """Return where a module lies; only the packages that it is in are imported for it."""
    try:
        spec = find_spec(module)
    except ImportError as error:
        raise ConfigError(f"plugin {describe_entry(found)} cannot be loaded: {error}") from error
    if spec is None:
        raise ConfigError(f"plugin {describe_entry(found)} cannot be loaded: there is no module {module}")
    return spec
