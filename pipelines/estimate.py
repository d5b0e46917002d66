"""``synth plan``: what a run would still do, and at most ask of models and tools.

Upper bounds come from the recipe (rows of the last complete stage times requests a row); what a stage did ask a row is
used instead where the workspace has a sealed run of it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from pipelines.assembly import Assembly
from pipelines.config import RunConfig
from pipelines.corpus.build import CorpusOptions
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.parts import Part
from pipelines.corpus.scan import RangeJob, scan_range
from pipelines.corpus.store import Corpus
from pipelines.corpus.streams import sample_ranges
from pipelines.inputs import count_cores, find_dump, name_corpus
from pipelines.progress import SilentReporter, timing
from pipelines.runs import PlannedStage, list_pending_shards
from pipelines.settings import CorpusConfig, GeneratedWorld
from pipelines.stage import RecordStage
from pipelines.workspace import Workspace
from pipelines.world.config import WorldConfig
from pipelines.world.generate import WORLD_FORMAT
from schemas.manifest import Manifest

SAMPLES = 4
SAMPLE_BYTES = 1 << 20
"""How many pieces of a dump are read to judge it, and how long each is."""


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
class DumpEstimate:
    """What a dump that is not read yet holds, and what reading it takes, judged by a few of its pieces."""

    pages: int
    articles: int
    links: int
    """Links to articles, in the text of articles; several between the same two count several times."""
    core_seconds: float
    """Seconds of one core to read it; numbering, tables and search index come on top."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What is left of a run."""

    corpus: str
    stages: tuple[StageEstimate, ...]
    dump: DumpEstimate | None = None
    """Where the corpus is still to be built from a dump."""


def estimate_run(config: RunConfig, root: Path) -> RunEstimate:
    """Estimate a run in a workspace; nothing is generated or built for it, and no workspace is made.

    Raises:
        ConfigError: if the input is missing.
    """
    workspace = Workspace(root.resolve())
    folder = _find_corpus(config.corpus, workspace)
    if folder is None:
        names = ("corpus", "seeds", "paths", "questions", "rewrites", "groundings", "difficulty", "rollouts")
        stages = tuple(StageEstimate(name, "to do", -1, -1, -1) for name in names)
        return RunEstimate(
            "to build", stages, None if config.corpus.generate else _judge_dump(config.corpus, workspace)
        )
    assembly = Assembly(config, workspace, Corpus.open(folder))
    rows, estimates = len(assembly.corpus.article_nodes()), []
    for plan in assembly.plan_stages():
        manifest = plan.folder.read_manifest()
        estimate = _estimate_stage(config, plan, manifest, rows)
        estimates.append(estimate)
        rows = manifest.rows_out if manifest is not None else _bound_rows(config, plan.name, rows)
    return RunEstimate(folder.name, tuple(estimates))


def _judge_dump(config: CorpusConfig, workspace: Workspace) -> DumpEstimate:
    """Read a few pieces of a dump, in a folder that is thrown away, and scale up what they hold by their bytes."""
    dumps = list_parts(find_dump(config, workspace, SilentReporter()))
    site, size = read_site(dumps[0]), sum(dump.stat().st_size for dump in dumps)
    pieces = [(dump, piece) for dump in dumps for piece in sample_ranges(dump, SAMPLES, SAMPLE_BYTES)]
    pieces = pieces[:: -(-len(pieces) // SAMPLES)]
    pages = articles = links = 0
    with TemporaryDirectory() as scratch, timing() as spent:
        for number, (dump, piece) in enumerate(pieces):
            folder = Path(scratch) / str(number)
            counts = scan_range(RangeJob(dump, piece, site, folder, CorpusOptions()))
            pages, articles = pages + counts.rows_in, articles + counts.articles
            links += sum(len(block.sources) for block in Part(folder, counts).read_links())
    scale = size / sum(piece.end - piece.start for _, piece in pieces)
    return DumpEstimate(round(pages * scale), round(articles * scale), round(links * scale), round(spent[0] * scale, 1))


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
    hidden = max(config.paths.hops) - 1
    if config.method == "injection":
        # Two requests more a round: which entity, and behind which fact.
        hidden = max(config.injections.rounds) * config.injections.tries
    requests = 1 + config.rewrites.candidates + (2 if config.method == "injection" else 0)
    return {
        "questions": 1,
        "rewrites": hidden * requests,
        "groundings": 1,
        "difficulty": 3 * config.difficulty.attempts + 1,
        "rollouts": config.rollouts.attempts * 2 * config.rollouts.max_turns,
    }.get(stage, 0)


def render_estimate(estimate: RunEstimate) -> Table:
    """Return the estimate as a table; unknown numbers as ``?``."""
    table = Table(title=f"corpus: {estimate.corpus}")
    for column in ("stage", "state", "rows in at most", "shards to do", "requests at most"):
        table.add_column(column)
    if estimate.dump is not None:
        dump = estimate.dump
        spent = _show_time(dump.core_seconds / count_cores())
        table.caption = (
            f"The dump holds about {dump.pages:,} pages, {dump.articles:,} articles and {dump.links:,} links. "
            f"Reading it takes about {spent} on this machine; the search index comes on top."
        )
    for stage in estimate.stages:
        numbers = (stage.rows_in, stage.pending_shards, stage.requests)
        table.add_row(stage.stage, stage.state, *(f"{number:,}" if number >= 0 else "?" for number in numbers))
    return table


def _show_time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 3600:,.1f} h"
