"""``synth status``: stages, releases and folders of a workspace, with counts, requests, cost and size.

Of a run under way: who, where, how far, what it has spent and what it waits for. ``synth replies``: recorded replies by
backend, how often they were reused, and their removal.
"""

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from pipelines.cli.console import to_json
from pipelines.errors import ConfigError
from pipelines.release.manifest import read_release_manifest
from pipelines.run.metrics import render_metrics
from pipelines.run.panel import tell_span
from pipelines.run.plugins import list_absent
from pipelines.run.pruning import measure, opening_store, remove_replies
from pipelines.run.shards import sum_sidecars
from pipelines.run.underway import OUTCOMES, RunProgress, WorkProgress, describe_waits, read_runs
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.clients.ledger import LedgerCheck, Repair, check_ledger, refuse_postgres, repair_ledger
from pipelines.services.clients.replies import read_address
from pipelines.services.clients.sqlite import FILE
from schemas.manifest import Usage
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
    """None if no row was kept; the cost of earlier stages and of recorded replies is not included."""


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
    runs: tuple[RunProgress, ...] = ()
    """The run under way, and runs that were killed and not gone on with."""
    absent: tuple[str, ...] = ()
    """Stages that plugins decided which are not installed as they were, in words."""


def summarise_workspace(root: Path) -> WorkspaceStatus:
    """Return where a workspace stands; nothing is written.

    Raises:
        ConfigError: if there is no such folder.
    """
    _check_workspace(root)
    latest = Workspace(root).read_latest()
    stages = [_summarise_stage(path, latest) for path in root.glob("stages/*/*") if path.is_dir()]
    releases = [(read_release_manifest(folder), measure(folder)) for folder in Workspace(root).list_releases()]
    return WorkspaceStatus(
        root=root,
        corpus=latest.get("corpus", ""),
        stages=tuple(sorted(stages, key=lambda found: (*_find_place(found.stage), found.key))),
        releases=tuple(
            ReleaseStatus(manifest.dataset, manifest.version, manifest.rows, size)
            for manifest, size in sorted(releases, key=lambda found: (found[0].dataset, found[0].version))
        ),
        folders=tuple((path.name, measure(path)) for path in sorted(root.iterdir()) if path.is_dir()),
        runs=tuple(read_runs(Workspace(root))),
        absent=tuple(text for _, _, text in list_absent(root)),
    )


def _check_workspace(root: Path) -> None:
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: no such folder; run `synth run` first")


def _find_place(stage: str) -> tuple[int, str]:
    """Return what sorts stages in pipeline order, unknown ones last."""
    return list(STAGE_REASONS).index(stage) if stage in STAGE_REASONS else len(STAGE_REASONS), stage


def _summarise_stage(path: Path, latest: dict[str, str]) -> StageStatus:
    folder = StageFolder(path)
    sidecars = folder.list_sidecars()
    numbers = sum_sidecars(sidecars)
    usage, rejected, kept = numbers.pop("usage"), numbers.pop("rejected"), numbers["kept"]
    paid, requests = usage + folder.read_stopped(), usage.calls + usage.cached_calls
    return StageStatus(
        stage=path.parent.name,
        key=path.name,
        latest=latest.get(path.parent.name) == path.name,
        sealed=folder.manifest.is_file(),
        shards_done=len(sidecars),
        **numbers,
        rejected=sum(rejected.values()),
        bytes=measure(path),
        requests=requests,
        recorded=usage.cached_calls,
        tokens=paid.tokens_in + paid.tokens_out,
        gpu_hours=paid.gpu_seconds / HOUR,
        cost=paid.cost,
        hit_rate=usage.cached_calls / requests if requests else None,
        cost_per_kept_row=paid.cost / kept if kept else None,
    )


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
"""Columns of requests and cost; a column is left out if no stage has a value for it."""


def render_status(status: WorkspaceStatus) -> Group:
    """Return what is under way, and the tables of stages, releases and folders."""
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
    return Group(*map(render_run, status.runs), stages, releases, folders)


def describe_metrics(root: Path) -> str:
    """Return what the processes of a run under way count, summed up in Prometheus' text format.

    Raises:
        ConfigError: if there is no such workspace.
    """
    _check_workspace(root)
    return render_metrics(read_runs(Workspace(root)))


def describe_status(status: WorkspaceStatus) -> dict[str, Any]:
    """Return a status as ``synth status --json`` prints it; ``runs`` only where there are some."""
    document: dict[str, Any] = to_json(replace(status, runs=()))
    del document["runs"]
    return ({"runs": list(map(describe_run, status.runs))} if status.runs else {}) | document


DAY = 86400
SIZE = "CASE WHEN bytes > 0 THEN bytes ELSE length(CAST(reply AS BLOB)) END"
"""Bytes of a reply; the oldest stores did not record the size."""


@dataclass(frozen=True, slots=True)
class BackendReplies:
    """The recorded replies of one backend identity."""

    backend: str
    replies: int
    bytes: int
    first_day: str
    """Day of the oldest reply as ``2026-11-22``, UTC; empty where no reply's day is known."""
    last_day: str
    failures: int
    """Requests that ended with an error."""
    never_ended: int
    """Requests without a recorded reply or error: in flight now, cut off by a crash, or sent twice."""


@dataclass(frozen=True, slots=True)
class StageCalls:
    """Requests of the finished shards of a stage, under all its keys."""

    stage: str
    calls: int
    cached_calls: int

    @property
    def hit_rate(self) -> float:
        """Share of the requests that a recorded reply answered; 0.0 without requests."""
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
    _find_store(root)
    with opening_store(Workspace(root)) as store:
        backends = _summarise_backends(store) if store else ()
    return RepliesSummary(root, _measure_store(root), backends, _summarise_stages(root))


def prune_replies(root: Path, backend: str = "", older_than_days: float = 0.0, apply: bool = False) -> Pruned:
    """Remove replies with the records of their requests, and requests that never ended, and shrink the file.

    Args:
        root: the workspace. No run may hold it while replies are removed.
        backend: remove only replies whose backend identity contains this; empty for all backends.
        older_than_days: remove only replies at least this old; 0 for any age. A reply without a date is never old.
        apply: remove; otherwise nothing is changed and the result says what would be removed.

    Raises:
        ConfigError: if neither a backend nor an age is given, or there is no such workspace.
        CorruptInput: if the store is damaged.
        Unavailable: if a run holds the workspace, or the disk has no room to rewrite the file.
    """
    if older_than_days < 0:
        raise ConfigError(f"prune: older-than is {older_than_days:g} days; give a number above 0")
    if not backend and not older_than_days:
        raise ConfigError("prune: no rule is given; choose a backend (--backend) or an age (--older-than)")
    before = _measure_store(root)
    _find_store(root)
    with ExitStack() as held:
        if apply:
            held.enter_context(Workspace(root).claim(holder="replies prune"))
        store = held.enter_context(opening_store(Workspace(root)))
        if store is None:
            return Pruned(apply, (), 0, 0)
        _choose(store, backend, older_than_days)
        chosen = _summarise_backends(store, chosen=True)
        if apply:
            remove_replies(store)
    return Pruned(apply, chosen, before, _measure_store(root) if apply else before)


def check_replies(root: Path) -> LedgerCheck:
    """Read every recorded reply of a workspace; raises as :func:`summarise_replies`."""
    folder = Workspace(root).replies
    return check_ledger(folder) if read_address(folder) or _find_store(root) else LedgerCheck(0, {}, ())


def repair_replies(root: Path) -> Repair:
    """Save the replies of a workspace that are whole and set a damaged store aside.

    Raises:
        ConfigError: if there is no such workspace.
        Unavailable: if a run holds the workspace, or the disk has no room for a second store.
    """
    if _find_store(root) is None:
        return Repair(LedgerCheck(0, {}, ()), 0, None)
    with Workspace(root).claim(holder="replies repair"):
        return repair_ledger(Workspace(root).replies)


def _choose(store: sqlite3.Connection, backend: str, older_than_days: float) -> None:
    """Write the keys to remove into a temporary table, ``chosen``."""
    store.execute("CREATE TEMP TABLE chosen (key TEXT PRIMARY KEY) WITHOUT ROWID")
    # Without an age every day is early enough; a reply of unknown day, 0, is never old.
    earliest, latest = (1, time.time() - older_than_days * DAY) if older_than_days else (0, float("inf"))
    test = "(? = '' OR instr(backend, ?) > 0) AND at BETWEEN ? AND ?"
    store.execute(
        "INSERT OR IGNORE INTO temp.chosen "
        f"SELECT key FROM (SELECT key, backend, recorded AS at FROM replies) WHERE {test} UNION ALL "
        f"SELECT key FROM (SELECT key, backend, asked AS at FROM asks) WHERE {test} "
        "AND key NOT IN (SELECT key FROM replies)",
        (backend, backend, earliest, latest) * 2,
    )


def _summarise_backends(store: sqlite3.Connection, chosen: bool = False) -> tuple[BackendReplies, ...]:
    """Return the recorded replies by backend, of all keys or of the chosen ones."""
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
    for folder in sorted(root.glob("stages/*/*")):
        for sidecar in StageFolder(folder).list_sidecars():
            used[folder.parent.name] += sidecar.usage
    names = sorted(used, key=_find_place)
    return tuple(StageCalls(stage, used[stage].calls, used[stage].cached_calls) for stage in names)


def _find_store(root: Path) -> Path | None:
    _check_workspace(root)
    refuse_postgres(Workspace(root).replies, "replies")
    path = Workspace(root).replies / FILE
    return path if path.is_file() else None


def _measure_store(root: Path) -> int:
    """Return the bytes of the store's file, of its write-ahead log, and of the log's index."""
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


def describe_run(run: RunProgress) -> dict[str, Any]:
    """Return a run as ``synth status --json`` prints it; times are UTC."""
    return {
        "run": run.run,
        "recipe": run.recipe,
        "alive": run.is_alive,
        "started": _name_time(run.started),
        "heard": _name_time(run.heard),
        "stage": run.find_stage(),
        "stages": list(run.stages),
        "work": [
            work.model_dump(mode="json") | {"seconds_left": work.seconds_left}
            for work in run.work
            if work.open or work.done
        ],
        "in_flight": run.in_flight,
        "failures": run.failures,
        "usage": run.usage.model_dump(mode="json"),
        "waits": [
            {
                "place": wait.place,
                "cause": wait.cause,
                "seconds": round(run.now - wait.since, 1),
                "requests": wait.requests,
                "until": _name_time(wait.until) if wait.until else None,
            }
            for wait in run.waits
        ],
        "processes": [
            {
                "role": process.role,
                "host": process.host,
                "pid": process.pid,
                "state": process.find_state(run.now),
                "heard_seconds_ago": round(run.now - process.heard, 1),
            }
            for process in run.processes
        ],
    }


def render_run(run: RunProgress) -> RenderableType:
    """Return what is shown of a run, above the stages of its workspace."""
    if not run.is_alive:
        return Group(*(Text(f"{line}") for line in _explain_silence(run)))
    at = run.find_stage()
    where = f"stage {at} of {len(run.stages)}" if at else "at no stage yet" if not run.stages else "between stages"
    head = (
        f"Run {run.run} of {run.recipe}, since {_name_time(run.started)} ({tell_span(run.now - run.started)}): {where}"
    )
    table = Table("stage", *(Column(name, justify="right") for name in _COLUMNS), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for work in run.work:
        if work.open:
            table.add_row(Text(work.what), *_list_cells(work))
    waits = describe_waits(run.waits, run.now)
    lines = [_tell_requests(run.in_flight, run.failures, run.usage), *([waits] if waits else []), *_list_processes(run)]
    return Group(Text(head, style="bold"), table, *map(Text, lines), Text(""))


_COLUMNS = ("done", "of", "a second", "time left", *OUTCOMES, "backlog", "shards")


def _list_cells(work: WorkProgress) -> list[str]:
    left = work.seconds_left
    done = f"{work.done:,}" + ("" if work.unit == "rows" else f" {work.unit}")
    numbers = [work.outcomes.get(name, 0) for name in OUTCOMES] + [work.backlog_rows, work.backlog_shards]
    times = [f"{work.rate:,.1f}", "-" if left is None else tell_span(left)]
    return [done, f"{work.total:,}" if work.total else "-", *times, *(f"{number:,}" for number in numbers)]


def _tell_requests(in_flight: int, failures: int, usage: Usage) -> str:
    said = f"{in_flight:,} requests in flight; {usage.calls:,} asked, {usage.cached_calls:,} recorded, "
    said += f"{failures:,} failed, {usage.retries:,} sent again; {usage.tokens_in + usage.tokens_out:,} tokens"
    return said + f"; cost {usage.cost:,.4g}"


def _list_processes(run: RunProgress) -> list[str]:
    return [
        f"{process.role} {process.pid} on {process.host}: {process.find_state(run.now)}, "
        f"last heartbeat {tell_span(run.now - process.heard)} ago"
        for process in run.processes
    ]


def _explain_silence(run: RunProgress) -> list[str]:
    head = f"Run {run.run} of {run.recipe} did not end and has no heartbeat: `synth run` goes on from there"
    return [head, *_list_processes(run), ""]


def _name_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
