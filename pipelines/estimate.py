"""``synth plan``: what a run would still do, and at most ask of models and tools.

Upper bounds come from the recipe (rows of the last complete stage times requests a row); what a stage did ask a row is
used instead where the workspace has a sealed run of it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from pipelines.assembly import Assembly
from pipelines.config import CorpusConfig, GeneratedWorld, RunConfig
from pipelines.corpus.build import CorpusOptions
from pipelines.corpus.store import Corpus
from pipelines.inputs import find_dump, name_corpus
from pipelines.progress import SilentReporter
from pipelines.runs import PlannedStage, list_pending_shards
from pipelines.stage import RecordStage
from pipelines.workspace import Workspace
from pipelines.world.config import WorldConfig
from pipelines.world.generate import WORLD_FORMAT
from schemas.manifest import Manifest


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What is left of one stage. Counts of -1 are not known before an earlier stage has run."""

    stage: str
    state: str
    """``complete``, ``started`` or ``to do``."""
    rows_in: int
    pending_shards: int
    requests: int
    """Requests still to be made at most, replies already recorded not subtracted."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What is left of a run."""

    corpus: str
    stages: tuple[StageEstimate, ...]


def estimate_run(config: RunConfig, root: Path) -> RunEstimate:
    """Estimate a run in a workspace; nothing is generated or built for it, and no workspace is made.

    Raises:
        ConfigError: if the input is missing.
    """
    workspace = Workspace(root.resolve())
    folder = _find_corpus(config.corpus, workspace)
    if folder is None:
        names = ("corpus", "seeds", "paths", "questions", "rewrites", "groundings", "difficulty", "rollouts")
        return RunEstimate("to build", tuple(StageEstimate(name, "to do", -1, -1, -1) for name in names))
    assembly = Assembly(config, workspace, Corpus.open(folder))
    rows, estimates = len(assembly.corpus.article_nodes()), []
    for plan in assembly.plan_stages():
        manifest = plan.folder.read_manifest()
        estimate = _estimate_stage(config, plan, manifest, rows)
        estimates.append(estimate)
        rows = manifest.rows_out if manifest is not None else _bound_rows(config, plan.name, rows)
    return RunEstimate(folder.name, tuple(estimates))


def _find_corpus(config: CorpusConfig, workspace: Workspace) -> Path | None:
    """Return the folder of a run's corpus, or None while it is still to be built."""
    if config.generate is not None:
        world = _find_world(config.generate, workspace)
        if world is None:
            return None
        config = CorpusConfig(world=str(world))
    dump = find_dump(config, workspace, SilentReporter())
    if not workspace.corpora.is_dir():
        return None
    with workspace.claim():
        folder = workspace.corpora / name_corpus(dump, CorpusOptions(), workspace)
    return folder if (folder / "manifest.json").is_file() else None


def _find_world(config: GeneratedWorld, workspace: Workspace) -> Path | None:
    """Return the world that an earlier run generated from the same settings, or None."""
    wanted = asdict(WorldConfig(config.entities, config.seed, config.missing))
    for path in sorted(workspace.worlds.glob("[!.]*/world.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if (document["format"], document["config"]) == (WORLD_FORMAT, wanted):
            return path.parent
    return None


def _estimate_stage(config: RunConfig, plan: PlannedStage, manifest: Manifest | None, rows: int) -> StageEstimate:
    if manifest is not None:
        return StageEstimate(plan.name, "complete", manifest.rows_in, 0, 0)
    source = plan.sources[0].folder.read_manifest() if plan.sources else None
    pending = len(list_pending_shards(plan)) if source is not None and isinstance(plan.stage, RecordStage) else -1
    started = source is not None and 0 <= pending < len(source.shards)
    return StageEstimate(
        plan.name, "started" if started else "to do", rows, pending, rows * requests_a_row(config, plan.name)
    )


def _bound_rows(config: RunConfig, stage: str, rows: int) -> int:
    """Return how many rows a stage can make at most."""
    if stage == "seeds":
        return min(rows, config.seeds.limit or rows)
    return rows * {"paths": config.paths.per_seed, "rollouts": config.rollouts.attempts}.get(stage, 1)


def requests_a_row(config: RunConfig, stage: str) -> int:
    """Return the most requests one row of a stage leads to, repairs of unparseable replies left out."""
    bridges = max(config.paths.hops) - 1
    return {
        "questions": 1,
        "rewrites": bridges * (1 + config.rewrites.candidates),
        "groundings": 1,
        "difficulty": 3 * config.difficulty.attempts + 1,
        "rollouts": config.rollouts.attempts * 2 * config.rollouts.max_turns,
    }.get(stage, 0)


def render_estimate(estimate: RunEstimate) -> Table:
    """Return the estimate as a table; unknown numbers as ``?``."""
    table = Table(title=f"corpus: {estimate.corpus}")
    for column in ("stage", "state", "rows in at most", "shards to do", "requests at most"):
        table.add_column(column)
    for stage in estimate.stages:
        numbers = (stage.rows_in, stage.pending_shards, stage.requests)
        table.add_row(stage.stage, stage.state, *(f"{number:,}" if number >= 0 else "?" for number in numbers))
    return table
