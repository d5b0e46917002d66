"""Integrity of a workspace: sealed stages, pictures, corpora, releases, replies, derived files.

Nothing is changed here. :mod:`pipelines.run.mending` makes again what can be made again, at the start of a run.
"""

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.checksums import CHECKSUMS, is_sealed, read_checksums
from pipelines.corpus.manifest import read_manifest
from pipelines.errors import ConfigError, CorruptInput, Damaged, ServiceError
from pipelines.ids import digest_file
from pipelines.release.manifest import MANIFEST, find_changes, read_release_manifest
from pipelines.run.naming import NOTE, KeptRun, list_kept
from pipelines.run.views import CATALOGUE, connect_database
from pipelines.run.workspace import LATEST, NAME, RELEASE, StageFolder, Workspace, pick_releases, read_model, read_names
from pipelines.services.clients.batch import read_batch_note
from pipelines.services.clients.ledger import check_ledger
from pipelines.services.clients.news import HASH, REFUSED, is_fetched
from pipelines.services.clients.replies import ADDRESS, PATIENCE, open_ledger, read_address, read_epochs, try_patiently
from pipelines.services.clients.sqlite import FILE, connect_replies, is_busy
from pipelines.services.clients.vendors import read_vendors
from schemas.manifest import FileEntry, Manifest, RetryNote, ShardSidecar, Usage

RUN = "`synth run` makes it again"
REPAIR = "`synth replies repair` saves what is whole"
REPLAYS = "`synth run` makes it again from recorded replies: nothing is asked twice"
CHECKED_BYTES = 1 << 30
"""Bytes of pictures, and of releases, whose content each run checks; of more, ``synth status --check`` does."""


REPLIES_READ = 1000
"""Replies in memory at a time; one has some kB."""
_ADDRESS = re.compile(r"(env:\w+|postgres(ql)?://\S+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_STORED = re.compile(r"[0-9a-f]{64}\.[a-z]+")
"""Name of a picture in the store; other files there are not ours."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that is not as it was written."""

    path: Path
    what: str
    """A predicate, such as ``is missing``."""
    remedy: str

    def describe(self) -> str:
        """Return one line: which file, what is wrong with it, what to do."""
        return f"{self.path}: {self.what}; {self.remedy}"


@dataclass(slots=True)
class StageDamage:
    """What is wrong with a stage's folder."""

    folder: StageFolder
    manifest: Manifest | None = None
    """None where the stage is not sealed, or its manifest is damaged."""
    findings: list[Finding] = field(default_factory=list)
    shards: dict[int, ShardSidecar | None] = field(default_factory=dict)
    """Those that must be made again, with their sidecars where these can be read."""
    sidecars: list[ShardSidecar] = field(default_factory=list)
    """Those that the manifest alone still has."""
    notes: list[Path] = field(default_factory=list)
    """Notes of what stopped runs used that cannot be read."""
    lost: bool = False
    """Whether the manifest cannot be read, or a note of what stopped runs used is missing."""

    def add(self, path: Path, what: str, remedy: str = REPLAYS) -> None:
        """Add a finding."""
        self.findings.append(Finding(path, what, remedy))


def examine_stage(folder: StageFolder, was_sealed: bool = False) -> StageDamage:
    """Hold the files of a stage against its manifest and sidecars, sealed or not.

    Args:
        folder: of the stage; it may be missing.
        was_sealed: whether it is known to have been complete.
    """
    found = StageDamage(folder)
    try:
        found.manifest = folder.read_manifest()
    except Damaged as error:
        found.add(error.path, error.what)
        found.lost = True
    if found.manifest is None and was_sealed and not found.lost and not folder.unsealed.exists():
        found.add(folder.manifest, "is missing, and the stage was complete")
    sidecars = _read_sidecars(found)
    entries = [(s.shard, entry) for s in sidecars.values() for entry in (*s.files, *([s.used] if s.used else []))]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        checked = pool.map(lambda pair: _examine_file(folder.path, pair[1]), entries)
        for (shard, entry), what in zip(entries, checked, strict=True):
            if what:
                found.add(folder.path / entry.name, what)
                found.shards[shard] = sidecars[shard]
    _examine_notes(found)
    return found


def _read_sidecars(found: StageDamage) -> dict[int, ShardSidecar]:
    """Return the sidecars by shard: the manifest's where the stage is sealed, else those that can be read."""
    folder = found.folder
    sealed = {sidecar.shard: sidecar for sidecar in found.manifest.shards} if found.manifest else {}
    numbers = sealed or [int(path.stem.partition("-")[2]) for path in sorted(folder.path.glob("part-*.json"))]
    read: dict[int, ShardSidecar] = {}
    for shard in numbers:
        try:
            sidecar = folder.read_sidecar(shard)
            what = "is missing" if sidecar is None else "is not what was sealed"
        except Damaged as error:
            sidecar, what = None, error.what
        if sealed and sidecar != sealed[shard]:
            found.add(folder.sidecar(shard), what, RUN)
            found.sidecars.append(sealed[shard])
            sidecar = sealed[shard]
        if sidecar is None:
            found.add(folder.sidecar(shard), what)
            found.shards[shard] = None
        else:
            read[shard] = sidecar
    return read


def _examine_file(folder: Path, entry: FileEntry) -> str:
    """Return what is wrong with a file, empty for nothing."""
    path = folder / entry.name
    if not path.is_file():
        return "is missing"
    return "" if digest_file(path) == entry.sha256 else "has other bytes than were sealed"


def _examine_notes(found: StageDamage) -> None:
    """Look at the notes of what stopped runs used: a manifest has their sum."""
    total = Usage()
    for path in sorted(found.folder.path.glob("stopped-*.json")):
        try:
            total += read_model(path, Usage)
        except Damaged as error:
            found.add(path, error.what, "`synth run` counts again without it; nothing else is lost")
            found.notes.append(path)
    for path in sorted(found.folder.path.glob("retry-*.json")):
        try:
            read_model(path, RetryNote)
        except Damaged as error:
            found.add(path, error.what, "`synth run` goes on without it; name --retry again")
            found.notes.append(path)
    if found.manifest is not None and not found.notes and total != found.manifest.stopped:
        found.add(found.folder.path / "stopped-*.json", "are not those the manifest has the sum of", RUN)
        found.lost = True


def find_damage(root: Path) -> Iterator[Finding]:
    """Look at everything in a workspace, and yield what is damaged or missing.

    Raises:
        ConfigError: if there is no such folder.
    """
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: no such folder; run `synth run` first")
    workspace = Workspace(root)
    yield from examine_notes(workspace)
    yield from _examine_marks(workspace)
    yield from _examine_corpora(workspace)
    yield from _examine_stages(workspace)
    yield from _examine_replies(workspace)
    yield from examine_pictures(workspace)
    yield from _examine_releases(workspace)
    yield from _examine_derived(workspace)
    yield from examine_catalogue(workspace)


def examine_notes(workspace: Workspace) -> Iterator[Finding]:
    """Look at notes and kept marks of the workspace: each is made again, or learned again, by the next run."""
    finished = (workspace.root / CATALOGUE).is_file()
    readers = (
        *((path, read_names, finished, "`synth run` notes again what it uses") for path in _list_notes(workspace)),
        (workspace.root / "inputs.json", read_names, finished, "`synth run` hashes the inputs again"),
        (workspace.vendors, read_vendors, False, "`synth run` learns again what servers refuse"),
    )
    for path, read, wanted, remedy in readers:
        if wanted and not path.is_file():
            yield Finding(path, "is missing", remedy)
        try:
            read(path)
        except Damaged as error:
            yield Finding(path, error.what, remedy)
    for run in list_kept(workspace):
        if what := run.find_damage():
            yield Finding(run.config.with_name(NOTE), what, f"`synth run {run.name}` writes it again")
    for path in sorted(workspace.derived.glob("*.npy")):
        if not is_sealed(path):
            yield Finding(path, "has other bytes than were written", RUN)


def _examine_marks(workspace: Workspace) -> Iterator[Finding]:
    """Look at short notes that have no seal, and that no run makes again."""
    marks = (
        (workspace.root / NAME, r"[0-9a-f]{32}", "bring it back: claims of the workspace go by it"),
        (
            workspace.replies / ADDRESS,
            _ADDRESS.pattern,
            "write replies.address of the configuration into it",
        ),
        (workspace.root / "flow-run.txt", r"[0-9a-f-]{36}", "remove it: the next flow run writes it"),
    )
    for run in (KeptRun(workspace, path.name) for path in sorted(workspace.runs.glob("[!._]*")) if path.is_dir()):
        try:
            run.read_tables()
        except Damaged as error:
            yield Finding(run.config, error.what, error.remedy)
    for path, form, remedy in marks:
        if path.is_file() and not re.fullmatch(form, path.read_text(encoding="utf-8", errors="replace").strip()):
            yield Finding(path, "is not as it was written", remedy)


def _list_notes(workspace: Workspace) -> list[Path]:
    """Return the notes of what runs used that are there or should be, the last run's first."""
    found = [workspace.root / LATEST]
    # Where it is damaged, who reads what is listed here finds that out.
    with suppress(Damaged):
        last = read_names(found[0]).get("run")
        found += [workspace.runs / last / LATEST] if last else []
    return list(dict.fromkeys([*found, *workspace.list_latest()]))


def read_notes(workspace: Workspace) -> list[Mapping[str, str]]:
    """Return what runs used, each with a name and the last one; those whose notes are damaged are left out."""
    found: list[Mapping[str, str]] = []
    for path in workspace.list_latest():
        with suppress(Damaged):
            found.append(read_names(path))
    return [note for note in found if "run" not in note]


def list_used(workspace: Workspace) -> set[tuple[str, str]]:
    """Return the corpora and the stages, each with its key, that any run here used last."""
    used = {pair for note in read_notes(workspace) for pair in note.items()}
    return {(name, key) for name, key in used if not name.startswith(RELEASE)}


def _examine_corpora(workspace: Workspace) -> Iterator[Finding]:
    remedy = "`synth run` builds this corpus again from its dump"
    names = {path.name for path in workspace.corpora.glob("[!.]*")}
    names |= {key for name, key in list_used(workspace) if name == "corpus"}
    for folder in (workspace.corpora / name for name in sorted(names)):
        if not (folder / "manifest.json").is_file():
            yield Finding(folder / "manifest.json", "is missing", remedy)
            continue
        try:
            read_manifest(folder / "manifest.json")
        except Damaged as error:
            yield Finding(error.path, error.what, remedy)
            continue
        except ConfigError as error:
            yield Finding(folder / "manifest.json", f"is of another version ({error})", remedy)
            continue
        yield from _examine_folder(folder, remedy)
    for folder in sorted(path for path in workspace.worlds.glob("[!.]*") if path.is_dir()):
        yield from _examine_folder(folder, "`synth run` generates this world again")
    yield from _examine_news(workspace)


def _examine_news(workspace: Workspace) -> Iterator[Finding]:
    """Look at exports of articles, and at pictures that were fetched for them.

    An export without checksums is of an older synth: a run that uses it writes it again.
    """
    for seal in sorted(workspace.news.glob(f"[!.]*/{CHECKSUMS}")):
        yield from _examine_folder(
            seal.parent,
            "`synth run` writes these articles again from their source; where no run uses that, remove the folder",
        )
    for seal in sorted(workspace.news.glob(f"pictures/[!.]*{HASH}")):
        picture = seal.with_suffix("")
        if not is_fetched(picture) and not seal.with_suffix(REFUSED).exists():
            what = "has other bytes than were fetched" if picture.is_file() else "is missing"
            remedy = f"`synth run` fetches it again for articles that name it; where none does, remove {picture}*"
            yield Finding(picture, what, remedy)


def _examine_folder(folder: Path, remedy: str) -> Iterator[Finding]:
    """Check every byte of a folder that has checksums."""
    try:
        files = read_checksums(folder)
    except Damaged as error:
        yield Finding(error.path, error.what, remedy)
        return
    if not files:
        yield Finding(folder / CHECKSUMS, "is missing", remedy)
    for file in files.values():
        try:
            file.check_size()
            file.recheck()
        except Damaged as error:
            yield Finding(error.path, error.what, remedy)


def _examine_stages(workspace: Workspace) -> Iterator[Finding]:
    """Look at each stage that is there, and for each that a run or a sealed stage was made with."""
    named = {(name, key) for name, key in list_used(workspace) if name != "corpus"}
    present = {(path.parent.name, path.name) for path in workspace.root.glob("stages/*/[!.]*") if path.is_dir()}
    for name, key in sorted(named | present):
        try:
            found = examine_stage(workspace.stage(name, key), was_sealed=(name, key) in named)
        except ConfigError as error:
            yield Finding(workspace.stage(name, key).path, f"cannot be read ({error})", "nothing is changed there")
            continue
        yield from found.findings
        if name == "releases" and found.manifest is not None:
            yield from examine_receipt(workspace, found.folder)


def examine_replies_missing(workspace: Workspace) -> Iterator[Finding]:
    """Yield the store of replies if stages used replies and it is gone."""
    store = workspace.replies / FILE
    if read_address(workspace.replies):
        # They are in PostgreSQL, which looks after its own.
        return
    if not store.is_file() and next(workspace.root.glob("stages/*/*/used-*.txt"), None) is not None:
        yield Finding(
            store,
            "is missing",
            "is it mounted? Bring it back; if it was removed on purpose, make an empty file there: what is not done is "
            "asked, and paid, again",
        )


def count_replies(workspace: Workspace, keys: Sequence[str]) -> int:
    """Return of how many keys there is a reply.

    Raises:
        CorruptInput: if a reply is damaged.
        Unavailable: if the store cannot be read now.
    """
    if not keys:
        return 0
    with closing(open_ledger(workspace.replies, read_address(workspace.replies), reads=True)) as ledger:
        parts = [keys[start : start + REPLIES_READ] for start in range(0, len(keys), REPLIES_READ)]
        return sum(len(try_patiently(ledger, partial(ledger.find, part), PATIENCE)) for part in parts)


def examine_receipt(workspace: Workspace, folder: StageFolder) -> Iterator[Finding]:
    """Look at the note of what was published from a stage of releases."""
    receipt = folder.path / "published.json"
    remedy = "`synth run` publishes again, and what is the same stays"
    of_stage = [note for note in read_notes(workspace) if note.get("releases") == folder.path.name]
    published = any(pick_releases(note) for note in of_stage)
    if published and not receipt.is_file():
        yield Finding(receipt, "is missing", remedy)
    try:
        read_names(receipt)
    except Damaged as error:
        yield Finding(receipt, error.what, remedy)


def _examine_replies(workspace: Workspace) -> Iterator[Finding]:
    store = workspace.replies / FILE
    kept = read_address(workspace.replies)
    # An address that is damaged leads to no database, and is told of by itself.
    is_damaged = kept and not _ADDRESS.fullmatch(kept)
    if not is_damaged and (kept or store.is_file()) and (what := _read_all_replies(workspace)):
        yield Finding(*((workspace.replies / ADDRESS, what, "mend the database") if kept else (store, what, REPAIR)))
    yield from examine_replies_missing(workspace)
    try:
        read_epochs(workspace.replies)
    except CorruptInput as error:
        path = workspace.replies / "fresh.json"
        yield Finding(path, "is damaged", f"remove it, and name --fresh-replies again where you had ({error})")
    for path in sorted(workspace.batches.glob("*.json")):
        try:
            read_batch_note(path)
        except CorruptInput:
            yield Finding(path, "is damaged", "remove it: its requests are asked, and paid, again")


def _read_all_replies(workspace: Workspace) -> str:
    """Return what is wrong with the store of replies, empty for nothing."""
    try:
        check = check_ledger(workspace.replies)
    except (ConfigError, ServiceError) as error:
        return f"cannot be read ({error})"
    return "" if check.sound else f"is damaged: {check.explain()}"


def examine_pictures(workspace: Workspace, most: int = 0, cited: Iterable[Path] | None = None) -> Iterator[Finding]:
    """Look at the pictures in the store, each named by its sha256, and for those that rows cite.

    Args:
        workspace: that has the store.
        most: bytes up to which their content is read; 0 for any number.
        cited: parts of stages whose rows cite pictures; None for all there are.
    """
    paths = sorted(path for path in workspace.images.glob("??/*") if _STORED.fullmatch(path.name) and path.is_file())
    if not most or sum(path.stat().st_size for path in paths) <= most:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for path, digest in zip(paths, pool.map(digest_file, paths), strict=True):
                if digest != path.stem:
                    yield Finding(path, "has other bytes than its name says", REPLAYS)
    if cited is None:
        cited = sorted(workspace.root.glob("stages/*/[!.]*/part-*.parquet"))
    try:
        missing = read_pictures(cited)
    except Damaged:
        # Told with the stage that it belongs to.
        return
    for path in paths:
        missing.pop(path.stem, None)
    for sha256, picture in sorted(missing.items()):
        yield Finding(workspace.images / sha256[:2] / f"{sha256}.{picture.extension}", "is missing", REPLAYS)


@dataclass(frozen=True, slots=True)
class CitedPicture:
    """A picture that a row names."""

    sha256: str
    extension: str
    file: str
    """Name of the file it is, or is made of, at its source."""


def read_pictures(parts: Iterable[Path]) -> dict[str, CitedPicture]:
    """Return the pictures that rows cite, by sha256; of each part only the columns that name pictures are read.

    Raises:
        Damaged: if a part cannot be read.
    """
    found: dict[str, CitedPicture] = {}
    names = [field.name for field in fields(CitedPicture)]
    for part in parts:
        try:
            with pq.ParquetFile(part) as rows:
                paths = [rows.schema.column(number).path for number in range(len(rows.schema))]
                for place in (path.removesuffix("sha256") for path in paths if path.endswith(".sha256")):
                    table = rows.read(columns=[place + name for name in names])
                    values = zip(*(_flatten(table, place + name) for name in names), strict=True)
                    found |= {sha256: CitedPicture(sha256, *rest) for sha256, *rest in values if sha256}
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise Damaged(part, f"cannot be read ({error})") from error
    return found


def find_replied_pictures(workspace: Workspace, wanted: Set[str]) -> dict[str, CitedPicture]:
    """Return pictures by sha256 that no row names but a recorded reply does: the thumbnails of hits.

    All replies are read once.

    Raises:
        Unavailable, CorruptInput: if the store of replies cannot be read.
    """
    found: dict[str, CitedPicture] = {}
    for reply in _scan_replies(workspace.replies) if wanted else ():
        waiting = [] if wanted.isdisjoint(_SHA256.findall(reply)) else [json.loads(reply)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict) and (sha256 := str(value.get("sha256"))) in wanted:
                found[sha256] = CitedPicture(sha256, str(value.get("extension", "")), str(value.get("file", "")))
            waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found


def _scan_replies(folder: Path) -> Iterator[str]:
    if address := read_address(folder):
        from pipelines.services.clients.postgres import scan_replies

        yield from (bytes(row[2]).decode(errors="replace") for row in scan_replies(address))
    elif (folder / FILE).is_file():
        with closing(connect_replies(folder)) as store:
            yield from (str(reply) for (reply,) in store.execute("SELECT reply FROM replies"))


def _flatten(table: pa.Table, path: str) -> list[str]:
    """Return the values of a column inside structs and lists, in order."""
    name, *inner = path.replace(".list.element", "").split(".")
    values = table[name].combine_chunks()
    for step in (*inner, ""):
        while pa.types.is_list(values.type):
            values = values.flatten()
        values = values.field(step) if step else values
    found: list[str] = values.to_pylist()
    return found


def _examine_releases(workspace: Workspace) -> Iterator[Finding]:
    receipts = read_receipts(workspace)
    folders = {path for path in workspace.releases.glob("*/[!.]*") if path.is_dir()} | receipts.keys()
    for folder in sorted(folders):
        yield from examine_release(folder, receipts.get(folder, ""))


def examine_release(folder: Path, sealed: str, most: int = 0) -> Iterator[Finding]:
    """Hold a release against its manifest, and that against its sha256 where it is known (``sealed`` not empty)."""
    remedy = "`synth run` publishes this version again, where it makes the same rows"
    manifest = folder / MANIFEST
    if not manifest.is_file():
        yield Finding(manifest, "is missing", remedy)
    elif sealed and digest_file(manifest) != sealed:
        yield Finding(manifest, "has other bytes than were published", remedy)
    else:
        try:
            changes = find_changes(folder, read_release_manifest(folder), most)
        except ConfigError as error:
            changes = [str(error)]
        if changes:
            yield Finding(folder, f"is damaged: {'; '.join(changes)}", remedy)


def read_receipts(workspace: Workspace, receipts: Iterable[Path] | None = None) -> dict[Path, str]:
    """Return the folders of the releases that receipts name, all or some, each with the sha256 of its manifest."""
    found = {}
    for receipt in (
        receipts if receipts is not None else sorted(workspace.root.glob("stages/releases/*/published.json"))
    ):
        try:
            entries = read_names(receipt)
        except Damaged:
            continue
        entries.pop("mark", None)
        for dataset, entry in entries.items():
            version, _, rest = entry.partition(" ")
            found[workspace.releases / dataset / version] = rest.partition(" ")[2]
    return found


def _examine_derived(workspace: Workspace) -> Iterator[Finding]:
    for folder in sorted(path for path in workspace.derived.glob("image-indexes/[!.]*") if path.is_dir()):
        yield from _examine_folder(folder, RUN)
    store = workspace.derived / "embeddings" / "embeddings.db"
    if store.is_file():
        try:
            with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
                said = [line for (line,) in connection.execute("PRAGMA integrity_check(1)")]
        except sqlite3.Error as error:
            said = ["ok" if is_busy(error) else str(error)]
        if said != ["ok"]:
            yield Finding(store, f"is damaged: {said[0]}", RUN)


def examine_catalogue(workspace: Workspace) -> Iterator[Finding]:
    """Look at the catalogue of views."""
    path = workspace.root / CATALOGUE
    if not path.is_file():
        if read_notes(workspace):
            yield Finding(path, "is missing", RUN)
        return
    try:
        with connect_database(path) as catalogue:
            catalogue.execute("SELECT * FROM duckdb_views()").fetchall()
    except duckdb.Error as error:
        said = " ".join(str(error).split())
        # Another process may hold it, or a newer DuckDB may have written it; one of this process says so otherwise.
        if isinstance(error, duckdb.ConnectionException) or any(
            mark in said for mark in ("set lock", "version number")
        ):
            return
        yield Finding(path, f"is damaged: {said[:120]}", RUN)
