"""``synth status``: stages, releases and folders of a workspace, with counts, requests, cost and size.

Of a run under way: who, where, how far, what it has spent and what it waits for.
"""

from collections.abc import Callable, Mapping
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
from pipelines.run.pruning import measure
from pipelines.run.shards import sum_sidecars
from pipelines.run.underway import OUTCOMES, RunProgress, WorkProgress, describe_waits, read_runs
from pipelines.run.workspace import StageFolder, Workspace
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
