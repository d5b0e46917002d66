"""What a workspace holds that nothing living needs, and its removal.

Living is what any run that is kept used last, what a configuration uses that the caller names, and what a release
cites, each with all that it was made from. What is younger than the last note of a run (``latest.json``) is living,
too: a run that was interrupted goes on with it. What costs hours or money to make again goes only if it is named.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
from sqlalchemy import delete, select

from pipelines.corpus.manifest import read_manifest
from pipelines.files import remove_whole
from pipelines.ids import digest_file
from pipelines.release.manifest import read_release_manifest
from pipelines.run.corpora import DUMP_PATTERN
from pipelines.run.underway import place_progress
from pipelines.run.views import connect_database
from pipelines.run.workspace import RELEASE, StageFolder, Workspace, read_names
from pipelines.services.clients.replies import ASKS, FILE, REPLIES, Ledger, open_ledger, read_address
from schemas.manifest import ShardSidecar

Kind = Literal["stages", "corpora", "worlds", "pictures", "logs", "replies"]
StageKey = tuple[str, str]
"""A stage's name and key."""
DIGEST = re.compile("[0-9a-f]{64}")
BATCH = 500


@dataclass(frozen=True, slots=True)
class Leftover:
    """What nothing living needs, of one kind and for one reason."""

    kind: Kind
    name: str
    """The stage's name, or the kind again."""
    number: int
    bytes: int
    why: str
    goes: bool
    """Whether to remove it; otherwise it is only reported."""
    paths: tuple[Path, ...] = ()
    keys: frozenset[str] = field(default=frozenset(), repr=False)
    """Of recorded replies, which have no files of their own."""


@dataclass(frozen=True, slots=True)
class Living:
    """What stays.

    Attributes:
        stages: folders by name and key.
        corpora: names of corpora.
        since: what is not older than this (seconds since 1970) stays, too; 0 where no run has ended here.
    """

    stages: frozenset[StageKey]
    corpora: frozenset[str]
    since: float

    def keeps(self, path: Path) -> bool:
        """Say whether a path is too young to go."""
        return path.stat().st_mtime >= self.since


def find_living(workspace: Workspace, more: Iterable[StageKey] = ()) -> Living:
    """Return what the runs that are kept, the last one, the releases and the keys that are named need.

    Raises:
        ConfigError: if a release's manifest cannot be read.
        CorruptInput: if a manifest or a ``latest.json`` is damaged.
    """
    notes = {path: read_names(path) for path in workspace.list_latest()}
    used = {pair for note in notes.values() for pair in note.items()}
    roots = {(name, key) for name, key in used if name != "run" and not name.startswith(RELEASE)} | set(more)
    for folder in workspace.list_releases():
        roots |= {(entry.name, entry.key) for entry in read_release_manifest(folder).lineage}
    since = max((path.stat().st_mtime for path in notes), default=0.0)
    young = {(path.parent.name, path.name) for path in _list_stages(workspace) if path.stat().st_mtime >= since}
    found, waiting = set[StageKey](), [*roots, *young]
    while waiting:
        name, key = waiting.pop()
        if (name, key) in found:
            continue
        found.add((name, key))
        sealed = None if name == "corpus" else workspace.stage(name, key).read_manifest()
        waiting += [(entry.name, entry.key) for entry in sealed.inputs] if sealed else []
    corpora = frozenset(key for name, key in found if name == "corpus")
    return Living(frozenset(found), corpora, since)


def find_leftovers(workspace: Workspace, living: Living, named: Sequence[Kind] = ()) -> list[Leftover]:
    """Return what nothing living needs; nothing is changed.

    Args:
        workspace: claimed by the caller, so that no run makes anything meanwhile.
        living: what stays.
        named: which of the costly kinds go, too.

    Raises:
        CorruptInput, Unavailable: if rows, manifests or replies cannot be read.
    """
    dead, kept = _split_stages(workspace, living)
    found = _tell_stages(dead)
    named_corpora = "corpora" in named
    idle = [path for path in _list_folders(workspace.corpora) if path.name not in living.corpora]
    corpora = [path for path in idle if not living.keeps(path)]
    why = "nothing that stays is made from it" + ("" if named_corpora else ", and it took long: say --corpora")
    found.append(_tell("corpora", corpora, why, named_corpora))
    gone = set(corpora) if named_corpora else set[Path]()
    found.append(_tell("worlds", _list_worlds(workspace, living, gone), "no corpus here was built from it", True))
    replies = _find_replies(workspace, dead, kept, "replies" in named)
    known = not read_address(workspace.replies) and ((workspace.replies / FILE).is_file() or not any(_read_notes(kept)))
    why = "no living row cites it" if known else "recorded replies that are not here may name it"
    found.append(_tell("pictures", _list_pictures(workspace, living, kept, replies), why, known))
    files = sorted([*workspace.logs.glob("*"), *place_progress(workspace).glob("*")])
    logs = [path for path in files if path.is_file() and not living.keeps(path)]
    found.append(_tell("logs", logs, "older than the last run", True))
    return [leftover for leftover in (*found, replies) if leftover.number]


def remove_leftovers(workspace: Workspace, leftovers: Sequence[Leftover]) -> None:
    """Remove what goes. A folder goes whole or not at all, however this ends.

    Raises:
        OSError: if something cannot be removed.
        Unavailable: if the store of replies cannot be written.
    """
    going = [leftover for leftover in leftovers if leftover.goes]
    # First of all, as the stages that go are what says which replies they used.
    for keys in (leftover.keys for leftover in going if leftover.keys):
        with _opening_store(workspace) as store:
            if store:
                _remove_replies(store, sorted(keys))
    for path in (path for leftover in going for path in leftover.paths):
        remove_whole(path)


def _split_stages(workspace: Workspace, living: Living) -> tuple[list[StageFolder], list[StageFolder]]:
    folders = {(path.parent.name, path.name): StageFolder(path) for path in _list_stages(workspace)}
    dead = [folder for name, folder in folders.items() if name not in living.stages]
    return dead, [folder for name, folder in folders.items() if name in living.stages]


def _list_stages(workspace: Workspace) -> list[Path]:
    return sorted(path for path in workspace.root.glob("stages/*/*") if path.is_dir())


def _list_folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("[!.]*") if path.is_dir())


def measure(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder tree; a run may write and remove some meanwhile."""
    size = 0
    for file in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):
            size += file.stat().st_size if file.is_file() else 0
    return size


def _tell(kind: Kind, paths: Sequence[Path], why: str, goes: bool, name: str = "") -> Leftover:
    return Leftover(kind, name or kind, len(paths), sum(map(measure, paths)), why, goes, tuple(paths))


def _tell_stages(dead: Sequence[StageFolder]) -> list[Leftover]:
    by_name: defaultdict[str, list[Path]] = defaultdict(list)
    for folder in dead:
        by_name[folder.path.parent.name].append(folder.path)
    why = "no current configuration and no release cites this key"
    return [_tell("stages", paths, why, True, name) for name, paths in by_name.items()]


def _list_worlds(workspace: Workspace, living: Living, gone: set[Path]) -> list[Path]:
    """Return generated worlds that no corpus which stays was built from, or takes its pictures from."""
    corpora = [
        path for path in _list_folders(workspace.corpora) if path not in gone and (path / "manifest.json").is_file()
    ]
    manifests = {path: read_manifest(path / "manifest.json") for path in corpora}
    dumps = {file.sha256 for manifest in manifests.values() for file in manifest.inputs if file.role == "dump"}
    pictured = {(path / manifest.images_dir).resolve() for path, manifest in manifests.items()}
    return [
        world
        for world in _list_folders(workspace.worlds)
        if not living.keeps(world)
        and not any(folder.is_relative_to(world.resolve()) for folder in pictured)
        and not any(digest_file(dump) in dumps for dump in world.glob(DUMP_PATTERN))
    ]


def _list_pictures(workspace: Workspace, living: Living, kept: Sequence[StageFolder], replies: Leftover) -> list[Path]:
    """Return pictures that neither a row that stays nor a recorded reply that stays names."""
    old = [path for path in sorted(workspace.images.glob("??/*")) if not living.keeps(path)]
    if not old:
        return []
    cited = _read_digests(part for folder in kept for part in sorted(folder.path.glob("part-*.parquet")))
    gone = replies.keys if replies.goes else frozenset[str]()
    for key, text in _read_replies(workspace):
        if key not in gone:
            cited.update(DIGEST.findall(text))
    return [path for path in old if path.stem not in cited]


def _read_digests(parts: Iterable[Path]) -> set[str]:
    """Return everything in the rows of files that is written as a sha256 is."""
    found = set[str]()
    statement = f"SELECT DISTINCT unnest(regexp_extract_all(rows::VARCHAR, '{DIGEST.pattern}')) FROM rows"
    with connect_database() as connection:
        for part in parts:
            with pq.ParquetFile(part) as source:
                for batch in source.iter_batches(BATCH):
                    connection.register("rows", batch)
                    found.update(digest for (digest,) in connection.execute(statement).fetchall())
    return found


def _read_replies(workspace: Workspace) -> Iterator[tuple[str, str]]:
    with _opening_store(workspace) as store:
        rows = store.reader.execute(select(REPLIES.c.key, REPLIES.c.reply)).yield_per(BATCH) if store else ()
        yield from ((key, reply) for key, reply in rows)


def _find_replies(
    workspace: Workspace, dead: Sequence[StageFolder], kept: Sequence[StageFolder], named: bool
) -> Leftover:
    """Return the replies that only stages which go have used; those that no stage is known to have used stay."""
    if read_address(workspace.replies):
        return Leftover(
            "replies", "replies", 0, 0, "they are in PostgreSQL, where other workspaces may use them", False
        )
    keys = set[str]().union(*_read_notes(dead))
    for used in _read_notes(kept) if keys else ():
        keys.difference_update(used)
    found: dict[str, int] = {}
    with _opening_store(workspace) as store:
        for some in _cut(sorted(keys)):
            found |= {key: len(reply) for key, reply in store.find(some).items()} if store else {}
    unknown = [folder.path for folder in kept if not _knows_replies(folder)]
    why = "only stages that go have used them" + ("" if named else ", and they were paid for: say --replies")
    if unknown:
        why = f"{unknown[0].parent.name}/{unknown[0].name} is not finished or damaged, and may use them: run it first"
    goes = named and not unknown
    return Leftover("replies", "replies", len(found), sum(found.values()), why, goes, keys=frozenset(found))


def _read_notes(folders: Iterable[StageFolder]) -> Iterator[list[str]]:
    for folder in folders:
        for path in sorted(folder.path.glob("used-*.txt")):
            yield path.read_text(encoding="utf-8").split()


def _knows_replies(folder: StageFolder) -> bool:
    """Say whether a stage is sealed and every shard of it noted the replies that it used, in a note that is whole."""
    manifest = folder.read_manifest()
    return manifest is not None and all(_is_noted(folder.used(sidecar.shard), sidecar) for sidecar in manifest.shards)


def _is_noted(note: Path, sidecar: ShardSidecar) -> bool:
    if not note.is_file():
        return not (sidecar.usage.calls or sidecar.usage.cached_calls)
    return sidecar.used is None or digest_file(note) == sidecar.used.sha256


def _remove_replies(store: Ledger, keys: Sequence[str]) -> None:
    """Remove replies, what is noted of their requests, and the room that they took."""
    with store.transaction():
        for some in _cut(keys):
            for table in (ASKS, REPLIES):
                store.connection.execute(delete(table).where(table.c.key.in_(some)))
    store.connection.exec_driver_sql("VACUUM")
    store.connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


def _cut(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))


@contextmanager
def _opening_store(workspace: Workspace) -> Iterator[Ledger | None]:
    """Open the store of replies; None without one."""
    if not (workspace.replies / FILE).is_file():
        yield None
        return
    with closing(open_ledger(workspace.replies)) as store:
        yield store
