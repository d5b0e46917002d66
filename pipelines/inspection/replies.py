"""``synth replies``: what is recorded of each backend, how often it answered, and removing what is not needed."""

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.backends.group_commit import explain_sqlite_error
from pipelines.backends.replies import FILE, connect_replies
from pipelines.errors import ConfigError
from pipelines.inspection.status import format_bytes
from pipelines.workspace import Workspace, read_model
from schemas.manifest import ShardSidecar, Usage
from schemas.reasons import STAGE_REASONS

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
