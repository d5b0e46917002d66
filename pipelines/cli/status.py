"""``synth status``: which stages are there, how far each is, what it asked and cost, and what it takes on disk.

``synth replies``: what is recorded of each backend, how often it answered, and removing what is not needed.
"""

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.errors import ConfigError
from pipelines.release.manifest import MANIFEST, read_release_manifest
from pipelines.run.workspace import StageFolder, Workspace, read_model
from pipelines.services.clients.replies import FILE, connect_replies, explain_sqlite_error
from schemas.manifest import ShardSidecar, Usage
from schemas.reasons import STAGE_REASONS

SHOWN_KEY = 8
STAGE_WIDTH = 12
UNITS = ("B", "kB", "MB", "GB", "TB")
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class StageStatus:
    """One stage under one key. Counts of an unsealed stage are those of its finished shards."""

    stage: str
    key: str
    latest: bool
    """Whether the last run used this key."""
    sealed: bool
    shards_done: int
    rows_in: int
    kept: int
    rejected: int
    failed: int
    rows_out: int
    bytes: int
    requests: int = 0
    recorded: int = 0
    """Requests of these that were answered from the recording."""
    tokens: int = 0
    gpu_hours: float = 0.0
    cost: float = 0.0
    hit_rate: float | None = None
    """Share of requests that were answered from the recording; None without requests."""
    cost_per_kept_row: float | None = None
    """None where no row was kept; what the rows cost in stages before is not in it, nor what was recorded before."""


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """One published version."""

    dataset: str
    version: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class WorkspaceStatus:
    """Everything in a workspace; ``folders`` are the bytes of each top-level folder."""

    root: Path
    corpus: str
    stages: tuple[StageStatus, ...]
    releases: tuple[ReleaseStatus, ...]
    folders: tuple[tuple[str, int], ...]


def summarise_workspace(root: Path) -> WorkspaceStatus:
    """Return where a workspace stands; nothing is written.

    Raises:
        ConfigError: if there is no such folder.
    """
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: there is no such folder; run synth run first")
    latest = Workspace(root).read_latest()
    order = {stage: place for place, stage in enumerate(STAGE_REASONS)}
    stages = [_summarise_stage(path, latest) for path in root.glob("stages/*/*") if path.is_dir()]
    releases = [
        _summarise_release(path.parent) for path in root.glob(f"releases/*/*/{MANIFEST}") if _is_seen(path.parent)
    ]
    return WorkspaceStatus(
        root=root,
        corpus=latest.get("corpus", ""),
        stages=tuple(sorted(stages, key=lambda found: (order.get(found.stage, len(order)), found.stage, found.key))),
        releases=tuple(sorted(releases, key=lambda found: (found.dataset, found.version))),
        folders=tuple((path.name, measure_folder(path)) for path in sorted(root.iterdir()) if path.is_dir()),
    )


def _is_seen(folder: Path) -> bool:
    return not folder.name.startswith(".")


def _summarise_stage(path: Path, latest: dict[str, str]) -> StageStatus:
    folder = StageFolder(path)
    sidecars = list(_read_sidecars(path))
    usage = sum((sidecar.usage for sidecar in sidecars), Usage())
    paid = usage + folder.read_stopped()
    kept, requests = sum(sidecar.kept for sidecar in sidecars), usage.calls + usage.cached_calls
    return StageStatus(
        stage=path.parent.name,
        key=path.name,
        latest=latest.get(path.parent.name) == path.name,
        sealed=folder.manifest.is_file(),
        shards_done=len(sidecars),
        rows_in=sum(sidecar.rows_in for sidecar in sidecars),
        kept=kept,
        rejected=sum(sum(sidecar.rejected.values()) for sidecar in sidecars),
        failed=sum(sidecar.failed for sidecar in sidecars),
        rows_out=sum(sidecar.rows_out for sidecar in sidecars),
        bytes=measure_folder(path),
        requests=requests,
        recorded=usage.cached_calls,
        tokens=paid.tokens_in + paid.tokens_out,
        gpu_hours=paid.gpu_seconds / HOUR,
        cost=paid.cost,
        hit_rate=usage.cached_calls / requests if requests else None,
        cost_per_kept_row=paid.cost / kept if kept else None,
    )


def _read_sidecars(path: Path) -> Iterator[ShardSidecar]:
    for sidecar in sorted(path.glob("part-*.json")):
        yield ShardSidecar.model_validate_json(sidecar.read_bytes())


def _summarise_release(folder: Path) -> ReleaseStatus:
    manifest = read_release_manifest(folder)
    return ReleaseStatus(manifest.dataset, manifest.version, manifest.rows, measure_folder(folder))


def measure_folder(folder: Path) -> int:
    """Return the bytes of all files in a folder tree."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def format_bytes(count: int) -> str:
    """Return a byte count for reading, such as ``3.4 MB``."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {UNITS[unit]}"


def _show_money(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:,.4g}"


NOTHING = ("-", "0")
SPENT: Mapping[str, Callable[[StageStatus], str]] = {
    "asked": lambda found: f"{found.requests:,}",
    "recorded": lambda found: "-" if found.hit_rate is None else f"{found.hit_rate:.0%}",
    "tokens": lambda found: f"{found.tokens:,}",
    "GPU-h": lambda found: f"{found.gpu_hours:.3g}",
    "cost": lambda found: _show_money(found.cost),
    "a kept row": lambda found: _show_money(found.cost_per_kept_row),
}
"""Columns of what stages asked and cost, left out where no stage has anything to show."""


def render_status(status: WorkspaceStatus) -> Group:
    """Return the tables of stages, releases and folders."""
    stage, key = Column("stage", no_wrap=True, min_width=STAGE_WIDTH), Column("key", no_wrap=True, min_width=SHOWN_KEY)
    numbers = [Column(name, justify="right") for name in ("in", "kept", "rejected", "failed", "out")]
    disk = Column("disk", justify="right", no_wrap=True)
    shown = [name for name, show in SPENT.items() if any(show(found) not in NOTHING for found in status.stages)]
    spent = [Column(name, justify="right", no_wrap=True) for name in shown]
    stages = Table(stage, key, "state", *numbers, *spent, disk, title="Stages", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for found in status.stages:
        state = "sealed" if found.sealed else f"{found.shards_done} shards done"
        name = Text(found.stage, style="bold" if found.latest else "dim")
        counts = (found.rows_in, found.kept, found.rejected, found.failed, found.rows_out)
        cells = [*map(str, counts), *(SPENT[column](found) for column in shown), format_bytes(found.bytes)]
        stages.add_row(name, found.key[:SHOWN_KEY], state, *cells)
    releases = Table("dataset", "version", "rows", "disk", title="Releases", box=SIMPLE_HEAD)
    for release in status.releases:
        releases.add_row(release.dataset, release.version, str(release.rows), format_bytes(release.bytes))
    folders = Table("folder", "disk", title=Text(f"Workspace {status.root}"), box=SIMPLE_HEAD)
    for folder, size in status.folders:
        folders.add_row(Text(folder), format_bytes(size))
    return Group(stages, releases, folders)


DAY = 86400
SIZE = "CASE WHEN bytes > 0 THEN bytes ELSE length(CAST(reply AS BLOB)) END"
"""Bytes of a reply; the first stores did not note them."""


@dataclass(frozen=True, slots=True)
class BackendReplies:
    """What is recorded of one backend identity."""

    backend: str
    replies: int
    bytes: int
    first_day: str
    """Day of the oldest reply as ``2026-11-22``, UTC; empty where no reply's day is known."""
    last_day: str
    failures: int
    """Requests that ended with an error."""
    never_ended: int
    """Requests with neither a reply nor an error on record: under way now, cut off by a crash, or answered twice."""


@dataclass(frozen=True, slots=True)
class StageCalls:
    """What the finished shards of a stage asked for, under all its keys."""

    stage: str
    calls: int
    cached_calls: int

    @property
    def hit_rate(self) -> float:
        """Share of the requests that the recording answered, 0.0 where nothing was asked for."""
        asked = self.calls + self.cached_calls
        return self.cached_calls / asked if asked else 0.0


@dataclass(frozen=True, slots=True)
class RepliesSummary:
    """The recording of a workspace."""

    root: Path
    file_bytes: int
    """Size of the store's file and its log."""
    backends: tuple[BackendReplies, ...]
    """Largest first."""
    stages: tuple[StageCalls, ...]
    """In pipeline order."""


@dataclass(frozen=True, slots=True)
class PruneRules:
    """Which replies go: those that meet every rule given."""

    backend_contains: str = ""
    """A part of the backend's identity; empty: not asked for."""
    older_than_days: float = 0.0
    """Age; 0: not asked for. A reply whose day is not known is not old."""
    used: frozenset[str] | None = None
    """Identities in use, whose replies stay; None: not asked for."""

    @property
    def given(self) -> bool:
        """Whether there is any rule."""
        return bool(self.backend_contains) or self.older_than_days > 0 or self.used is not None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a pruning removed, or would remove."""

    applied: bool
    backends: tuple[BackendReplies, ...]
    bytes_before: int
    """Size of the store's file and its log."""
    bytes_after: int
    """As before where nothing was removed."""


def summarise_replies(root: Path) -> RepliesSummary:
    """Return what the recording of a workspace holds and how often it answered.

    Raises:
        ConfigError: if there is no such workspace.
        CorruptInput: if a sidecar or the store is damaged.
        Unavailable: if the store cannot be read now.
    """
    backends: tuple[BackendReplies, ...] = ()
    if _find_store(root) is not None:
        with _opening(root) as store:
            backends = _summarise_backends(store)
    return RepliesSummary(root, _measure_store(root), backends, _summarise_stages(root))


def prune_replies(root: Path, rules: PruneRules, apply: bool = False) -> Pruned:
    """Remove replies with the notes of their requests, and requests that never ended, and give their space back.

    Args:
        root: the workspace. No run may hold it while replies are removed.
        rules: what goes.
        apply: remove; otherwise nothing is changed and the result says what would go.

    Raises:
        ConfigError: if no rule is given or there is no such workspace.
        CorruptInput: if the store is damaged.
        Unavailable: if a run holds the workspace, or the disk has no room to rewrite the file.
    """
    if not rules.given:
        raise ConfigError("prune: no rule is given; say of which backend (--backend) or how old (--older-than)")
    if rules.older_than_days < 0:
        raise ConfigError(f"prune: replies cannot be older than {rules.older_than_days:g} days; give a number above 0")
    if _find_store(root) is None:
        return Pruned(apply, (), 0, 0)
    before = _measure_store(root)
    if not apply:
        with _opening(root) as store:
            _choose(store, rules)
            return Pruned(False, _summarise_backends(store, chosen=True), before, before)
    with Workspace(root).claim(), _opening(root) as store:
        removed = _remove(store, rules)
    return Pruned(True, removed, before, _measure_store(root))


def _remove(store: sqlite3.Connection, rules: PruneRules) -> tuple[BackendReplies, ...]:
    _choose(store, rules)
    removed = _summarise_backends(store, chosen=True)
    store.execute("BEGIN IMMEDIATE")
    for table in ("asks", "failures", "replies"):
        store.execute(f"DELETE FROM {table} WHERE key IN (SELECT key FROM temp.chosen)")
    store.execute("COMMIT")
    store.execute("VACUUM")
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return removed


def _choose(store: sqlite3.Connection, rules: PruneRules) -> None:
    """Fill a table of this connection alone with the keys that go."""
    store.execute("CREATE TEMP TABLE chosen (key TEXT PRIMARY KEY) WITHOUT ROWID")
    store.execute("CREATE TEMP TABLE used (backend TEXT PRIMARY KEY) WITHOUT ROWID")
    store.executemany("INSERT INTO temp.used VALUES (?)", [(backend,) for backend in sorted(rules.used or ())])
    tests, values = ["1"], list[str | float]()
    if rules.backend_contains:
        tests.append("instr(backend, ?) > 0")
        values.append(rules.backend_contains)
    if rules.older_than_days > 0:
        tests.append("at BETWEEN 1 AND ?")
        values.append(time.time() - rules.older_than_days * DAY)
    if rules.used is not None:
        tests.append("backend NOT IN (SELECT backend FROM temp.used)")
    test = " AND ".join(tests)
    store.execute(
        "INSERT OR IGNORE INTO temp.chosen "
        f"SELECT key FROM (SELECT key, backend, recorded AS at FROM replies) WHERE {test} UNION ALL "
        f"SELECT key FROM (SELECT key, backend, asked AS at FROM asks) WHERE {test} "
        "AND key NOT IN (SELECT key FROM replies)",
        (*values, *values),
    )


def _summarise_backends(store: sqlite3.Connection, chosen: bool = False) -> tuple[BackendReplies, ...]:
    """Return what is recorded by backend, of all keys or of the chosen ones."""
    where = "WHERE key IN (SELECT key FROM temp.chosen)" if chosen else ""
    asks, failures = (
        dict(store.execute(f"SELECT backend, count(*) FROM {table} {where} GROUP BY backend").fetchall())
        for table in ("asks", "failures")
    )
    replies = {
        backend: rest
        for backend, *rest in store.execute(
            f"SELECT backend, count(*), sum({SIZE}), min(nullif(recorded, 0)), max(recorded) "
            f"FROM replies {where} GROUP BY backend"
        )
    }
    found = []
    for backend in {**asks, **failures, **replies}:
        count, size, first, last = replies.get(backend, (0, 0, 0, 0))
        failed = failures.get(backend, 0)
        lost = max(0, asks.get(backend, 0) - count - failed)
        found.append(BackendReplies(backend, count, size, _name_day(first), _name_day(last), failed, lost))
    return tuple(sorted(found, key=lambda entry: (-entry.bytes, entry.backend)))


def _summarise_stages(root: Path) -> tuple[StageCalls, ...]:
    used: defaultdict[str, Usage] = defaultdict(Usage)
    for path in sorted(root.glob("stages/*/*/part-*.json")):
        used[path.parts[-3]] += read_model(path, ShardSidecar).usage
    order = {stage: place for place, stage in enumerate(STAGE_REASONS)}
    names = sorted(used, key=lambda stage: (order.get(stage, len(order)), stage))
    return tuple(StageCalls(stage, used[stage].calls, used[stage].cached_calls) for stage in names)


def _find_store(root: Path) -> Path | None:
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: there is no such folder; run synth run first")
    path = Workspace(root).replies / FILE
    return path if path.is_file() else None


@contextmanager
def _opening(root: Path) -> Iterator[sqlite3.Connection]:
    folder = Workspace(root).replies
    with closing(connect_replies(folder)) as store:
        try:
            yield store
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, f"reply store {folder / FILE}") from error


def _measure_store(root: Path) -> int:
    """Return the bytes of the store's file, of what is not yet written into it, and of the log's index."""
    folder, size = Workspace(root).replies, 0
    for ending in ("", "-wal", "-shm"):
        # The log goes when the last of a store's users closes it.
        with suppress(FileNotFoundError):
            size += (folder / f"{FILE}{ending}").stat().st_size
    return size


def _name_day(seconds: int | None) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else ""


def render_replies(summary: RepliesSummary) -> Group:
    """Return the tables of backends and stages."""
    title = Text(f"Recorded replies of {summary.root}: {format_bytes(summary.file_bytes)} on disk")
    calls = Table("stage", *_make_numbers("asked", "recorded", "hit rate"), title="Requests", box=SIMPLE_HEAD)
    for stage in summary.stages:
        calls.add_row(Text(stage.stage), str(stage.calls), str(stage.cached_calls), f"{100 * stage.hit_rate:.1f}%")
    return Group(_make_table(title, summary.backends), calls)


def render_pruned(pruned: Pruned) -> Group:
    """Return what was removed, or would be, as a table with a closing line."""
    size = sum(backend.bytes for backend in pruned.backends)
    count = sum(backend.replies for backend in pruned.backends)
    if not pruned.backends:
        return Group(Text("nothing to remove"))
    if pruned.applied:
        freed = format_bytes(max(0, pruned.bytes_before - pruned.bytes_after))
        line = f"{count} replies removed; the file is {freed} smaller"
    else:
        line = f"{count} replies of {format_bytes(size)} would be removed; nothing is changed yet"
    return Group(_make_table(Text("Replies that go"), pruned.backends), Text(line))


def _make_table(title: Text, backends: tuple[BackendReplies, ...]) -> Table:
    backend, days = Column("backend", overflow="fold"), (Column("first", no_wrap=True), Column("last", no_wrap=True))
    numbers = _make_numbers("replies", "size", "failed", "never ended")
    table = Table(backend, *numbers, *days, title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for found in backends:
        counts = (str(found.replies), format_bytes(found.bytes), str(found.failures), str(found.never_ended))
        table.add_row(Text(found.backend), *counts, found.first_day, found.last_day)
    return table


def _make_numbers(*names: str) -> list[Column]:
    return [Column(name, justify="right") for name in names]
