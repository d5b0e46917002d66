"""What a workspace holds that nothing living needs, and its removal.

Living is what any run that is kept used last and what a release cites, each with all that it was made from. What is
younger than the last note of a run (``latest.json``) is living, too: a run that was interrupted goes on with it.
Recorded replies and pictures stay: they were paid for, or fetched.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpus.manifest import read_manifest
from pipelines.files import remove_whole
from pipelines.ids import digest_file
from pipelines.release.manifest import read_release_manifest
from pipelines.run.corpora import DUMP_PATTERN
from pipelines.run.workspace import RELEASE, Workspace, read_names


@dataclass(frozen=True, slots=True)
class Leftover:
    """What nothing living needs, of one kind and for one reason."""

    kind: str
    """A stage's name, or ``corpora``, ``worlds``, ``logs``."""
    bytes: int
    why: str
    paths: tuple[Path, ...]


def find_leftovers(workspace: Workspace) -> list[Leftover]:
    """Return what nothing living needs; nothing is changed. The workspace is claimed by the caller.

    Raises:
        ConfigError: if a release's manifest cannot be read.
        CorruptInput: if a manifest or a ``latest.json`` is damaged.
    """
    since = max((path.stat().st_mtime for path in workspace.list_latest()), default=0.0)
    stages = _list_folders(workspace.root / "stages", "*/[!.]*")
    living = _find_living(workspace, [path for path in stages if path.stat().st_mtime >= since])
    found: dict[str, list[Path]] = {}
    for path in stages:
        if (path.parent.name, path.name) not in living:
            found.setdefault(path.parent.name, []).append(path)
    corpora = [path for path in _list_folders(workspace.corpora) if ("corpus", path.name) not in living]
    corpora = [path for path in corpora if path.stat().st_mtime < since]
    kept = [path for path in _list_folders(workspace.corpora) if path not in corpora]
    worlds = [path for path in _list_worlds(workspace, kept) if path.stat().st_mtime < since]
    logs = [path for path in sorted(workspace.logs.glob("*")) if path.is_file() and path.stat().st_mtime < since]
    told = [(kind, paths, "no run and no release uses this key") for kind, paths in found.items()]
    told += [
        ("corpora", corpora, "nothing that stays is made from it"),
        ("worlds", worlds, "no corpus that stays was built from it"),
        ("logs", logs, "older than the last run"),
    ]
    return [Leftover(kind, sum(map(measure, paths)), why, tuple(paths)) for kind, paths, why in told if paths]


def _find_living(workspace: Workspace, young: Sequence[Path]) -> set[tuple[str, str]]:
    """Return name and key of the stages and corpora that stay."""
    used = {pair for path in workspace.list_latest() for pair in read_names(path).items()}
    # A stage of an earlier round of drawing is noted as ``seeds@KEY``.
    waiting = [(name.partition("@")[0], key) for name, key in used if name != "run" and not name.startswith(RELEASE)]
    waiting += [(path.parent.name, path.name) for path in young]
    for folder in workspace.list_releases():
        waiting += [(entry.name, entry.key) for entry in read_release_manifest(folder).lineage]
    found = set[tuple[str, str]]()
    while waiting:
        name, key = waiting.pop()
        if (name, key) not in found:
            found.add((name, key))
            sealed = None if name == "corpus" else workspace.stage(name, key).read_manifest()
            waiting += [(entry.name, entry.key) for entry in sealed.inputs] if sealed else []
    return found


def remove_leftovers(leftovers: Sequence[Leftover]) -> None:
    """Remove what goes. A folder goes whole or not at all, however this ends.

    Raises:
        OSError: if something cannot be removed.
    """
    for path in (path for leftover in leftovers for path in leftover.paths):
        remove_whole(path)


def _list_folders(folder: Path, pattern: str = "[!.]*") -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_dir())


def measure(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder tree; a run may write and remove some meanwhile."""
    size = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):
            size += file.stat().st_size if file.is_file() else 0
    return size


def _list_worlds(workspace: Workspace, corpora: Sequence[Path]) -> list[Path]:
    """Return generated worlds that none of the corpora was built from, or takes its pictures from."""
    manifests = {path: read_manifest(path / "manifest.json") for path in corpora if (path / "manifest.json").is_file()}
    dumps = {file.sha256 for manifest in manifests.values() for file in manifest.inputs if file.role == "dump"}
    pictured = {(path / manifest.images_dir).resolve() for path, manifest in manifests.items()}
    return [
        world
        for world in _list_folders(workspace.worlds)
        if not any(folder.is_relative_to(world.resolve()) for folder in pictured)
        and not any(digest_file(dump) in dumps for dump in world.glob(DUMP_PATTERN))
    ]
