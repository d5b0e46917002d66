"""``synth status``: which stages are there, how far each is, what it asked and cost, and what it takes on disk."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from pipelines.errors import ConfigError
from pipelines.release.manifest import MANIFEST, read_release_manifest
from pipelines.workspace import StageFolder, Workspace
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
