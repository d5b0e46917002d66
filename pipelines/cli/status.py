"""``synth status``: how far the last run is, and stages, releases and folders with counts, requests, cost and size."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.errors import ConfigError
from pipelines.release.manifest import read_release_manifest
from pipelines.run.naming import list_runs
from pipelines.run.progress import RunProgress, read_progress
from pipelines.run.pruning import measure
from pipelines.run.shards import sum_sidecars
from pipelines.run.workspace import StageFolder, Workspace
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
    runs: tuple[str, ...] = ()
    """Names of the runs that are kept, the one that began last at the end: `synth run` goes on with it."""
    run: RunProgress | None = None
    """How far the last run is or came; None before any."""


def summarise_workspace(root: Path) -> WorkspaceStatus:
    """Return where a workspace stands; nothing is written.

    Raises:
        ConfigError: if there is no such folder.
    """
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: no such folder; run `synth run` first")
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
        runs=tuple(run.name for run in list_runs(Workspace(root))),
        run=read_progress(Workspace(root)),
    )


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
    """Return how far the last run is, and the tables of stages, releases and folders."""
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
    return Group(*map(Text, describe_run(status.run) if status.run else ()), stages, releases, folders)


def describe_run(run: RunProgress) -> Iterator[str]:
    """Yield where the last run stands, how far its stages are, and what it used."""
    name, since = run.run or run.recipe, datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds")
    said = f"{run.state}: {run.error}" if run.error else run.state
    ended = "" if run.state in ("running", "finished") else "; `synth run` goes on from there"
    yield f"Run {name} of {run.recipe}, since {since}: {said}{ended}"
    for stage in run.stages:
        yield f"{stage.stage:<14} {stage.done:,}{f' of {stage.total:,}' if stage.total else ''} {stage.unit}"
    asked = f"{run.in_flight:,} requests in flight; " if run.state == "running" else ""
    yield f"{asked}{run.requests:,} asked, {run.recorded:,} recorded before; cost {run.cost:,.4g}"
    if run.waits and run.state == "running":
        yield run.waits
