"""One run: which stages there are, which of their shards are missing, run them, seal.

The CLI runs this in process; ``flows`` runs the same functions under Prefect, a task a shard. What is done is
decided by sidecars and manifests alone, so both may stop anywhere and go on anywhere, and both write the same bytes.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import ConfigError
from pipelines.progress import Reporter, timing
from pipelines.record_running import run_record_shards
from pipelines.running import run_dataset_stage, run_source_stage
from pipelines.shards import Origin, check_part, seal_stage
from pipelines.stage import AnyStage, DatasetStage, RecordStage, SourceStage
from pipelines.workspace import StageFolder
from schemas.manifest import InputEntry, Manifest, Usage

STAGE_ORDER = (
    "corpus",
    "seeds",
    "paths",
    "questions",
    "rewrites",
    "groundings",
    "difficulty",
    "enhancements",
    "rollouts",
    "trajectories",
    "releases",
)


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """A stage of a run with its key, its folder and where its rows come from."""

    stage: AnyStage
    key: str
    folder: StageFolder
    sources: tuple["PlannedStage", ...]
    config_digest: str

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name


@dataclass(frozen=True, slots=True)
class StageReport:
    """What a stage did in this run, as ``synth run --json`` prints it."""

    stage: str
    key: str
    ran: bool
    """False when it was complete before: then calls, tokens and seconds are 0."""
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int
    seconds: float
    usage: Usage
    paid: float = 0.0
    """What the stage cost in all runs, those included that were stopped before it was complete."""

    @classmethod
    def from_manifest(cls, manifest: Manifest, ran: bool, seconds: float, usage: Usage) -> "StageReport":
        """Return the report of a sealed stage."""
        return cls(
            stage=manifest.stage,
            key=manifest.key,
            ran=ran,
            rows_in=manifest.rows_in,
            kept=manifest.kept,
            rejected=manifest.rejected,
            failed=manifest.failed,
            rows_out=manifest.rows_out,
            seconds=round(seconds, 3),
            usage=usage,
            paid=manifest.usage.cost + manifest.stopped.cost,
        )

    def summarise(self) -> str:
        """Return one line for the log."""
        line = (
            f"{self.rows_in:,} in, {self.kept:,} kept, {sum(self.rejected.values()):,} rejected, {self.failed:,} failed"
        )
        line += f", {self.rows_out:,} out"
        if not self.ran:
            return line + " (done before)"
        return line + f", {self.seconds:.1f} s"

    def describe_reasons(self) -> str:
        """Return what rows were refused for, with counts."""
        return ", ".join(f"{reason} {count:,}" for reason, count in self.rejected.items())


def select_stages(planned: Sequence[PlannedStage], until: str, only: Sequence[str]) -> list[PlannedStage]:
    """Return the stages to run.

    Args:
        planned: all stages of the recipe in order.
        until: last stage to run, empty for all.
        only: run just these, whose inputs must be complete; empty for all.

    Raises:
        ConfigError: if a name is no stage, nothing is left to run, or an input of a named stage is not complete.
    """
    check_stage_names([until, *only] if until else list(only))
    names = [plan.name for plan in planned]
    chosen = [plan for plan in planned if not only or plan.name in only]
    if until:
        last = names.index(until) if until in names else -1
        chosen = [plan for plan in chosen if names.index(plan.name) <= last]
    if not chosen:
        raise ConfigError(f"--until {until} comes before --stage {', '.join(only)}: nothing is left to run")
    running = {plan.name for plan in chosen}
    for plan in chosen:
        for source in plan.sources:
            if source.name not in running and source.folder.read_manifest() is None:
                raise ConfigError(
                    f"--stage {plan.name}: {source.name} is not complete under this configuration; "
                    f"run `synth run --until {source.name}` first"
                )
    return chosen


def check_stage_names(names: Sequence[str]) -> None:
    """Refuse names that are no stages.

    Raises:
        ConfigError: naming the stages there are.
    """
    for name in names:
        if name not in STAGE_ORDER:
            raise ConfigError(f"stage {name!r} does not exist; there are: {', '.join(STAGE_ORDER)}")


def list_pending_shards(plan: PlannedStage) -> list[int]:
    """Return the shards of a record stage that are not done for the input as it is cut now."""
    pending = []
    for shard, source in enumerate(read_source(plan).shards):
        sidecar = plan.folder.read_sidecar(shard)
        if sidecar is None or sidecar.source != source.files[0].sha256:
            pending.append(shard)
    return pending


def count_shards(plan: PlannedStage) -> int:
    """Return how many shards a record stage has: as many as its input.

    Raises:
        ConfigError: if the input is not sealed.
    """
    return len(read_source(plan).shards)


def read_source(plan: PlannedStage) -> Manifest:
    """Return the manifest of a stage's first input.

    Raises:
        ConfigError: if the input is not sealed.
    """
    manifest = plan.sources[0].folder.read_manifest()
    if manifest is None:
        raise ConfigError(f"{plan.name}: its input {plan.sources[0].name} is not complete")
    return manifest


def run_planned_shards(
    plan: PlannedStage, shards: Sequence[int], concurrency: int, reporter: Reporter | None = None
) -> Usage:
    """Run shards of a record stage, many records of them at once, and return what they used."""
    assert isinstance(plan.stage, RecordStage)
    sidecars, sources = read_source(plan).shards, []
    for shard in shards:
        source = plan.sources[0].folder.part(shard)
        check_part(source, sidecars[shard])
        sources.append((shard, source))
    return run_record_shards(plan.stage, plan.folder, sources, concurrency, reporter)


def run_planned_whole(plan: PlannedStage, shard_rows: int) -> int:
    """Run a stage that is not cut into shards beforehand; return how many shards it wrote."""
    if isinstance(plan.stage, SourceStage):
        return run_source_stage(plan.stage, plan.folder, shard_rows)
    assert isinstance(plan.stage, DatasetStage)
    return run_dataset_stage(plan.stage, plan.folder, [source.folder for source in plan.sources])


def seal_planned(plan: PlannedStage, shards: int, corpus: InputEntry) -> Manifest:
    """Seal a stage whose shards are all done."""
    inputs = [corpus]
    for source in plan.sources:
        manifest = source.folder.read_manifest()
        if manifest is None:
            raise ConfigError(f"{plan.name}: its input {source.name} is not complete")
        inputs.append(InputEntry(name=source.name, key=source.key, digest=manifest.digest))
    rows_in = read_source(plan).rows_out if plan.sources else -1
    origin = Origin(tuple(inputs), plan.config_digest, read_git_commit(), rows_in)
    return seal_stage(plan.stage, plan.folder, shards, origin)


def run_stage(
    plan: PlannedStage, corpus: InputEntry, shard_rows: int, concurrency: int, reporter: Reporter
) -> StageReport:
    """Run what is missing of one stage and seal it; nothing is done when it is sealed already."""
    sealed = plan.folder.read_manifest()
    if sealed is not None:
        report = StageReport.from_manifest(sealed, ran=False, seconds=0.0, usage=Usage())
        reporter.begin(plan.name, 0, "rows")
        reporter.finish(report.summarise())
        return report
    usage = Usage()
    with timing() as spent:
        if isinstance(plan.stage, RecordStage):
            shards = count_shards(plan)
            pending = list_pending_shards(plan)
            rows = sum(read_source(plan).shards[shard].rows_out for shard in pending)
            reporter.begin(plan.name, rows, "rows")
            usage = run_planned_shards(plan, pending, concurrency, reporter)
        else:
            reporter.begin(plan.name, 0, "rows")
            shards = run_planned_whole(plan, shard_rows)
        manifest = seal_planned(plan, shards, corpus)
    if not isinstance(plan.stage, RecordStage):
        usage = manifest.usage
    report = StageReport.from_manifest(manifest, ran=True, seconds=spent[0], usage=usage)
    reporter.finish(report.summarise())
    return report


def read_git_commit() -> str:
    """Return the commit of the code with ``+dirty`` for local changes; empty outside a git checkout."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
