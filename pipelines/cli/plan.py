"""``synth plan``: what a run would still process, request from models and tools, and spend.

Requests and rows of a stage are shares of the largest sealed run of the same stage, models and prompts in the
workspace, such as that of a sample; otherwise the recipe's upper bounds apply. Shares of a sample are applied to the
whole, although quotas refuse more of many rows than of few.
"""

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from pipelines.agent.attempts import MAX_SEARCHES, make_plan
from pipelines.agent.choosing import FETCHED_OTHERS
from pipelines.agent.depicting import LISTED, REACH
from pipelines.agent.dialects import find_dialect
from pipelines.agent.pictures import HALVINGS
from pipelines.cli.yields import ACCEPTING, SampleYield, measure_yield
from pipelines.config.settings import CorpusConfig, RunConfig, TargetsConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput
from pipelines.graph.proofs import CANDIDATES
from pipelines.run.assembly import Assembly
from pipelines.run.corpora import find_dump, find_export, name_corpus, place_world
from pipelines.run.filling import Filling
from pipelines.run.plugins import check_plugins
from pipelines.run.progress import Reporter
from pipelines.run.quotas import TargetRow, count_asked
from pipelines.run.readiness import Finding, check_corpus, check_dump
from pipelines.run.runner import PlannedStage, list_pending_shards
from pipelines.run.stage import RecordStage
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.metering import BATCH_SHARE
from pipelines.stages.enhancements import STRENGTHS
from pipelines.stages.pools import Pools
from schemas.manifest import Manifest

HOUR = 3600.0
SAMPLE_SHARDS = 16
"""Shards that a sample is cut into, so that its stages have work for all cores."""
AMOUNTS = ("requests", "tokens", "money", "gpu_hours", "hours")


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What is left of one stage; None is not known, or not counted: no model has a price or GPUs."""

    stage: str
    by: str
    """``done``, ``at most``, or how many rows of an earlier run this is estimated by."""
    rows_in: float
    rows_out: float
    requests: float | None = 0.0
    """Still to be paid: those that are recorded are not counted."""
    tokens: float | None = 0.0
    money: float | None = 0.0
    gpu_hours: float | None = 0.0
    hours: float | None = 0.0


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What is left of a run."""

    corpus: str
    """Empty while the corpus is still to be built: then nothing is known of the stages."""
    stages: tuple[StageEstimate, ...] = ()
    """The last is the sum of all; stages that run at once take as long as the longest of them."""
    warnings: tuple[str, ...] = ()
    sample: SampleYield | None = None
    """What a sample that was run for this estimate made of its seeds."""
    targets: tuple[TargetRow, ...] = ()
    """The strata of the target sizes, as far as the rounds so far have come."""


def make_sample_config(config: RunConfig, seeds: int) -> RunConfig:
    """Return the configuration of a sample of a run: its first seeds, cut into small shards.

    In the run's own workspace it pays for nothing twice. It ends before releases: quotas and duplicates of a few rows
    say nothing of many.

    Raises:
        ConfigError: if fewer than one seed is wanted.
    """
    if seeds < 1:
        raise ConfigError(f"plan: a sample of {seeds} seeds; give 1 or more")
    limit = min(seeds, config.seeds.limit or seeds)
    runtime = config.runtime.model_copy(update={"shard_rows": max(limit // SAMPLE_SHARDS, 1)})
    seeds_config = config.seeds.model_copy(update={"limit": limit})
    return config.model_copy(update={"seeds": seeds_config, "targets": TargetsConfig(), "runtime": runtime})


def estimate_run(config: RunConfig, root: Path) -> RunEstimate:
    """Estimate a run in a workspace; nothing is generated or built for it, and no workspace is made.

    Raises:
        ConfigError: if the input is missing.
    """
    workspace = Workspace(root.resolve())
    check_plugins(config)
    folder = find_built_corpus(config, workspace)
    found = list[Finding]()
    if config.corpus.generate is None and config.method != "news":
        found += check_dump(config, find_dump(config.corpus, workspace, Reporter()))
    if folder is None:
        return RunEstimate("", warnings=tuple(finding.said for finding in found))
    with closing(Assembly(config, workspace, Corpus.open(folder))) as assembly:
        targets = read_rounds(assembly).sum_up() if config.targets.wanted else ()
        estimates, planned = dict[str, StageEstimate](), assembly.plan_stages()
        for plan in planned:
            rows_in: float = sum(estimates[source.name].rows_out for source in plan.sources)
            if isinstance(plan.stage, Pools):
                rows_in = plan.stage.count_candidates()
            elif not plan.sources:
                rows_in = len(assembly.corpus.article_nodes())
            elif plan.name != "mixtures":
                rows_in = estimates[plan.sources[0].name].rows_out
            estimates[plan.name] = _estimate_stage(assembly, plan, rows_in)
        found += check_corpus(assembly.corpus, assembly.seed_gate, config)
    stages = list(estimates.values())
    models = [config.models[role] for role in config.roles]
    if not any(model.prices for model in models):
        stages = [replace(stage, money=None) for stage in stages]
    if not any(model.serve.gpus for model in models):
        stages = [replace(stage, gpu_hours=None) for stage in stages]
    at_once = {plan.name for plan in planned if isinstance(plan.stage, RecordStage)}
    stages.append(_sum_stages(stages, at_once))
    return RunEstimate(folder.name, tuple(stages), tuple(finding.said for finding in found), None, targets)


def read_rounds(assembly: Assembly) -> Filling:
    """Return the rounds of drawing as far as they are made; the assembly then plans for the one that is next."""
    filling = Filling.of(assembly)
    filling.settle(lambda planned: planned[-1].folder.read_manifest() is not None)
    return filling


def measure_sample(config: RunConfig, root: Path) -> SampleYield | None:
    """Return what the stages of a sample made of its seeds so far, by domain; None before its corpus is built."""
    workspace = Workspace(root.resolve())
    folder = find_built_corpus(config, workspace)
    if folder is None:
        return None
    with closing(Assembly(config, workspace, Corpus.open(folder))) as assembly:
        plans = assembly.plan_stages(ACCEPTING)
        return measure_yield(root, plans, math.prod(_bound_rows(config, plan.name) for plan in plans))


def _estimate_stage(assembly: Assembly, plan: PlannedStage, rows_in: float) -> StageEstimate:
    config, manifest = assembly.config, plan.folder.read_manifest()
    if manifest is not None:
        return StageEstimate(plan.name, "done", manifest.rows_in, manifest.rows_out)
    left, measured = _count_left(plan, rows_in), _find_measured(plan)
    most = bound_requests(config, plan.name)
    if measured is None:
        spent = None if most else 0.0
        rows_out = rows_in * _bound_rows(config, plan.name)
        return StageEstimate(plan.name, "at most", rows_in, rows_out, left * most, spent, spent, spent, spent)
    used, share = measured.usage, left / measured.rows_in
    rows_out = rows_in * measured.rows_out / measured.rows_in
    if plan.name == "seeds":
        quotas = assembly.quotas
        limit = count_asked(quotas).total() if quotas else config.seeds.limit
        rows_out = measured.rows_out + measured.rejected.get("over-quota", 0)
        rows_out = min(rows_out, limit) if limit else rows_out
    made = used.calls + used.cached_calls
    # Of the same corpus, the measured run has recorded its own requests.
    recorded = made if measured.inputs[0].digest == assembly.corpus.digest else 0
    requests = max(made * share - recorded, 0.0)
    # Replies of a measured run may have been recorded before it.
    pace = requests / used.calls if used.calls else None if requests else 0.0
    modes = {config.models[entry.role].mode for entry in plan.stage.models() if entry.role in config.roles}
    price = (used.cost + used.discount) * (BATCH_SHARE if modes == {"batch"} else 1.0)
    amounts = (used.tokens_in + used.tokens_out, price, used.gpu_seconds / HOUR)
    tokens, money, gpus = (None if pace is None else amount * pace for amount in amounts)
    hours = measured.seconds * share / HOUR
    return StageEstimate(
        plan.name, f"{measured.rows_in:,} rows", rows_in, rows_out, requests, tokens, money, gpus, hours
    )


def _find_measured(plan: PlannedStage) -> Manifest | None:
    """Return the largest sealed run of this stage, with the same models and prompts, under any key."""
    wanted = (plan.stage.version, tuple(plan.stage.models()), plan.stage.prompts())
    found = []
    for path in sorted(plan.folder.path.parent.glob("*/manifest.json")):
        try:
            manifest = StageFolder(path.parent).read_manifest()
        except CorruptInput:
            continue  # `synth doctor --deep` names it
        if manifest is not None and manifest.rows_in and manifest.stage == plan.name and manifest.inputs:
            found += [manifest] * ((manifest.stage_version, manifest.models, manifest.prompts) == wanted)
    return max(found, key=lambda manifest: (manifest.rows_in, manifest.kept, manifest.key), default=None)


def _count_left(plan: PlannedStage, rows_in: float) -> float:
    """Return the rows of the shards that are not done."""
    source = plan.sources[0].folder.read_manifest() if plan.sources else None
    if source is None or not isinstance(plan.stage, RecordStage):
        return rows_in
    return sum(source.shards[number].rows_out for number in list_pending_shards(plan))


def _sum_stages(stages: Sequence[StageEstimate], at_once: set[str]) -> StageEstimate:
    sums: dict[str, float | None] = {}
    for name in AMOUNTS:
        amounts = [getattr(stage, name) for stage in stages]
        sums[name] = None if None in amounts else sum(amounts)
    if sums["hours"] is not None:
        beside = [stage.hours or 0.0 for stage in stages if stage.stage in at_once]
        sums["hours"] += max(beside, default=0.0) - sum(beside)
    bounded = any(stage.by == "at most" and stage.requests for stage in stages)
    return StageEstimate("all", "at most" if bounded else "", stages[0].rows_in, stages[-1].rows_out, **sums)


def _bound_rows(config: RunConfig, stage: str) -> int:
    """Return how many rows one row of a stage makes at most."""
    # Of a release: a row of vqa, and one of rl or one of sft for each trajectory.
    released = 1 + min(config.rollouts.wanted, config.rollouts.attempts)
    return {"paths": config.paths.per_seed, "rollouts": config.rollouts.attempts, "releases": released}.get(stage, 1)


def bound_attempts(config: RunConfig, hidden: int, judges: int, a_call: int) -> int:
    """Return the most requests that the attempts at one question lead to.

    The question hides so many entities, so many judges are asked for each answer, and a turn that calls a tool makes
    ``a_call`` requests.
    """
    difficulty = config.difficulty
    if difficulty.preset == "fvqa":
        return difficulty.attempts * (MAX_SEARCHES * a_call + 1 + judges)
    plan = make_plan(difficulty.preset)
    searches = sum({"": 0, "both": 2}.get(step.condition.partition("+")[2], 1) for step in plan.filters)
    endings = difficulty.probe_attempts * hidden
    attempts = (len(plan.filters) * difficulty.attempts + endings) * (1 + judges)
    return attempts + searches + plan.judges_picture


def bound_requests(config: RunConfig, stage: str) -> int:
    """Return the most requests one row of a stage leads to, repairs of unparseable replies left out."""
    groundings, commons = config.groundings, config.commons
    # Each text that is made is read back, and a page for the answer and for each hop.
    hidden, each = max(config.paths.hops) - 1, 1 + 2 * CANDIDATES
    pages = 1 + max(config.paths.hops) if config.method == "paths" else 1
    if config.method == "injection":
        # Two requests more a round: which entity, and behind which fact.
        hidden, each = max(config.injections.rounds) * config.injections.tries, each + 2
    if config.method == "concepts":
        # Nothing is hidden; a question is classified.
        hidden, each, pages = 0, 0, 2
    engines = len(set(groundings.ocr) - {"layer"})
    fetched, others = 2 * commons.fetch, 2 * commons.fetch * REACH * FETCHED_OTHERS
    judges = int("judge" in config.roles)
    # Of each degradation the strongest is tried first; a search by what it makes is kept.
    trials = len(config.enhancements.degradations) * (4 + 2 * (len(STRENGTHS) + HALVINGS))
    # A scene is looked up by the original, by the whole and by the part; a model may say where the thing lies.
    scenes = 5 + judges if config.enhancements.high_resolution else 0
    summed = config.summarises
    read = config.tools.pages_read if find_dialect(config.rollouts.dialect).reads_pages(summed) else 0
    # A guided walk ranks the steps at each node and the answers at its end, and has its marks. Pages are read once: the
    # seed's, and those after each hop.
    longest, walks = max(config.paths.hops), config.paths.per_seed * config.paths.walks
    guided = 1 + walks * (longest + 2 + longest) if config.paths.guide == "model" else 0
    a_call = 2 + max(read * (1 + summed), summed)
    # Of the answer and of the way, each once more when a reply gives no verdict.
    judged = 4 * judges
    return {
        "paths": guided,
        "questions": 2 + pages,
        "rewrites": hidden * each,
        # Each candidate is asked about, fetched and read at two scales; the one that is taken is read and looked up
        # once more. Others of its type are gone through until enough can be fetched.
        "groundings": 5 + LISTED * (2 * engines + fetched) + engines + others,
        "difficulty": fetched + bound_attempts(config, hidden, judges, a_call),
        "enhancements": max(scenes, trials * (1 + 2 * engines) if config.enhancements.share else 0),
        "rollouts": config.rollouts.attempts * (config.rollouts.max_calls * a_call + 1 + judged),
        "trajectories": judged,
    }.get(stage, 0)


def find_built_corpus(config: RunConfig, workspace: Workspace) -> Path | None:
    """Return the folder of a run's corpus, or None while it is still to be built."""
    source = config.corpus
    if source.generate is not None:
        world = place_world(source.generate, workspace)
        if not world.is_dir():
            return None
        source = CorpusConfig(world=str(world))
    if config.method == "news":
        export = find_export(config.model_copy(update={"corpus": source}), workspace, Reporter())
        if not export.is_file():
            return None
        source = CorpusConfig(dump=str(export))
    dump = find_dump(source, workspace, Reporter())
    if not workspace.corpora.is_dir():
        return None
    with workspace.claim(holder="plan"):
        folder = workspace.corpora / name_corpus(dump, workspace)
    return folder if (folder / "manifest.json").is_file() else None


def render_estimate(estimate: RunEstimate) -> Table:
    """Return the estimate as a table; unknown numbers are ``?``, uncounted ones are left out."""
    lines = list(estimate.warnings)
    if not estimate.corpus:
        lines.append("The corpus is still to be built: `synth run --until seeds` builds it, then plan counts.")
    shown = [name for name in AMOUNTS if name not in ("money", "gpu_hours")]
    shown += [
        name for name in ("money", "gpu_hours") if any(getattr(each, name) is not None for each in estimate.stages)
    ]
    title = f"still to do on {estimate.corpus or 'a corpus to build'}"
    table = Table("stage", "by", title=title, caption="\n".join(lines))
    for name in ("rows in", "rows out", *shown):
        table.add_column(name.replace("_", " "), justify="right")
    for stage in estimate.stages:
        if stage.stage == "all":
            table.add_section()
        numbers = [f"{stage.rows_in:,.0f}", f"{stage.rows_out:,.0f}"]
        for name in shown:
            amount, places = getattr(stage, name), 0 if name in ("requests", "tokens") else 2
            numbers.append("?" if amount is None else f"{amount:,.{places}f}")
        table.add_row(stage.stage, stage.by, *numbers)
    return table
