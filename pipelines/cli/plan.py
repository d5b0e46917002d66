"""``synth plan``: what a run would still process, request from models and tools, and spend.

The estimate starts at the last complete stage. Requests and rows per input row are taken from the largest sealed run of
the same stage, models and prompts in the workspace, such as that of a sample; otherwise the recipe's upper bounds
apply. Shares of a sample are applied to the whole, although quotas refuse more of many rows than of few.

A sample also tells, by domain, how many seeds an accepted question takes and which stages lose them for which reasons
(:mod:`pipelines.cli.yields`): a recipe that wastes its seeds shows before the whole is paid for.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from rich.table import Table

from pipelines.agent.agreement import Interval, bound_mean, estimate_ratio, make_bound, make_exact
from pipelines.agent.attempts import make_plan
from pipelines.agent.depicting import REACH
from pipelines.agent.dialects import find_dialect
from pipelines.agent.pictures import HALVINGS
from pipelines.cli.yields import ACCEPTING, SampleYield, measure_yield
from pipelines.config.settings import CorpusConfig, RunConfig, TargetsConfig
from pipelines.corpus.boxes import needs_survey
from pipelines.corpus.dump import list_parts, read_site, sample_ranges
from pipelines.corpus.scan import RangeJob, scan_ranges, survey_ranges
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput
from pipelines.memory import count_cores
from pipelines.run.assembly import Assembly, list_sources
from pipelines.run.corpora import find_dump, find_export, name_corpus, place_world
from pipelines.run.filling import Filling
from pipelines.run.languages import find_lacks, list_problems
from pipelines.run.plugins import check_plugins
from pipelines.run.progress import SilentReporter, timing
from pipelines.run.quotas import RowCost, TargetRow, count_asked, read_spent, share_costs
from pipelines.run.runner import STAGE_ORDER, PlannedStage, list_pending_shards
from pipelines.run.stage import RecordStage
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.metering import BATCH_SHARE
from pipelines.stages.pools import Pools
from schemas.manifest import Manifest, Usage

HOUR = 3600.0
SAMPLES = 4
SAMPLE_BYTES = 1 << 20
"""How many pieces of a dump are read to judge it, and how long each is."""
SAMPLE_SHARDS = 16
"""Shards that a sample is cut into: how much they differ says how sure its numbers are."""
COLUMNS = ("rows in", "rows out", "shards to do", "requests", "recorded", "tokens", "money", "GPU-h", "hours")


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What is left of one stage; None is not known, or not counted: no model has a price or GPUs."""

    stage: str
    state: str
    """``complete``, ``started`` or ``to do``."""
    basis: Literal["measured", "bound"] = "bound"
    measured_rows: int = 0
    """Rows of the run by which this is estimated."""
    rows_in: Interval | None = None
    rows_out: Interval | None = None
    pending_shards: int = -1
    """-1 while the input is not cut yet."""
    requests: Interval | None = None
    """Still to be made, those that are answered from the recording included."""
    recorded: int | None = None
    """Of these, how many the measured run has recorded already."""
    tokens: Interval | None = None
    """Of the requests that are not recorded, as are money and GPU-hours."""
    money: Interval | None = None
    gpu_hours: Interval | None = None
    hours: Interval | None = None
    """At the pace of the measured run."""


@dataclass(frozen=True, slots=True)
class DumpEstimate:
    """What a dump that is not read yet holds, and what reading it takes, judged by a few of its pieces."""

    pages: int
    articles: int
    links: int
    """Links to articles, in the text of articles; several between the same two count several times."""
    core_seconds: float
    """Seconds of one core to read it; numbering, tables and search index come on top."""
    boxed: int = 0
    """Articles with an infobox in the pieces that were read."""
    sampled: int = 0
    """Articles in these pieces."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What is left of a run."""

    corpus: str
    stages: tuple[StageEstimate, ...]
    dump: DumpEstimate | None = None
    """Set while the corpus is still to be built from a dump."""
    total: StageEstimate | None = None
    """All stages together; None of a number that one stage does not know."""
    budget: tuple[str, ...] = ()
    """How far each limit of the configured budget goes, a sentence each."""
    lacks: tuple[str, ...] = ()
    """What the language of the dump, or what its corpus lacks, takes from the run, a sentence each."""
    sample: SampleYield | None = None
    """What a sample that was run for this estimate made of its seeds."""
    a_trajectory: tuple[RowCost, ...] = ()
    """What an accepted trajectory takes of each stage, by measured runs; empty where a stage was not measured."""
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
    check_plugins(config, workspace.root)
    folder = find_built_corpus(config, workspace)
    if folder is None:
        made = set(list_sources(config.method, bool(config.pools)))
        names = [name for name in STAGE_ORDER[: STAGE_ORDER.index("trajectories")] if name in {"corpus", *made}]
        measured = config.corpus.generate is None and config.method != "news"
        dump = _judge_dump(config.corpus, workspace) if measured else None
        todo = tuple(StageEstimate(name, "to do") for name in names)
        return RunEstimate("to build", todo, dump, lacks=_list_problems(config, workspace))
    with closing(Assembly(config, workspace, Corpus.open(folder))) as assembly:
        targets = read_rounds(assembly).sum_up() if config.targets.wanted else ()
        rows, estimates = make_exact(len(assembly.corpus.article_nodes())), dict[str, StageEstimate]()
        planned = assembly.plan_stages()
        at_once = {plan.name for plan in planned if isinstance(plan.stage, RecordStage)}
        for plan in planned:
            rows_in = estimates[plan.sources[0].name].rows_out if plan.sources else rows
            if isinstance(plan.stage, Pools):
                rows_in = make_exact(plan.stage.count_candidates())
            elif plan.name == "mixtures":
                parts = (estimates[source.name].rows_out for source in plan.sources)
                rows_in = reduce(Interval.plus, filter(None, parts), make_exact(0.0))
            estimates[plan.name] = _estimate_stage(assembly, plan, rows_in or rows)
        a_trajectory = _share_costs(planned, estimates)
        lacks = tuple(lack.describe() for lack in find_lacks(assembly.corpus, assembly.seed_gate, config))
    lacks = (*_list_problems(config, workspace), *lacks)
    stages = tuple(estimates.values())
    limits = {"money": config.budget.money, "tokens": config.budget.tokens, "gpu_hours": config.budget.gpu_hours}
    reach = tuple(_describe_reach(limit, amount, stages) for limit, amount in limits.items() if amount)
    models = [config.models[role] for role in config.roles]
    if not any(model.prices for model in models):
        stages = tuple(replace(stage, money=None) for stage in stages)
    if not any(model.serve.gpus for model in models):
        stages = tuple(replace(stage, gpu_hours=None) for stage in stages)
    return RunEstimate(
        folder.name, stages, None, _sum_stages(stages, at_once), reach, lacks, None, a_trajectory, targets
    )


def _list_problems(config: RunConfig, workspace: Workspace) -> tuple[str, ...]:
    """Return what the language of the dump keeps the run from."""
    if config.corpus.generate is not None:
        return ()
    return tuple(list_problems(config, find_dump(config.corpus, workspace, SilentReporter())))


def _share_costs(plans: Sequence[PlannedStage], estimates: Mapping[str, StageEstimate]) -> tuple[RowCost, ...]:
    """Return what the whole run takes for each accepted trajectory, by the pace of measured runs."""
    used: list[tuple[str, Usage]] = []
    for plan in plans[: [plan.name for plan in plans].index("trajectories") + 1]:
        measured, rows_in = plan.folder.read_manifest() or _find_evidence(plan), estimates[plan.name].rows_in
        if measured is None or rows_in is None:
            return ()
        spent, share = read_spent(measured), rows_in.middle / max(measured.rows_in, 1)
        calls, tokens = round(spent.calls * share), round((spent.tokens_in + spent.tokens_out) * share)
        used.append((plan.name, Usage(calls=calls, tokens_in=tokens, cost=spent.cost * share)))
    accepted = estimates["trajectories"].rows_out
    return share_costs(used, accepted.middle if accepted else 0.0)


def _describe_costs(costs: Sequence[RowCost]) -> Iterator[str]:
    """Yield what an accepted trajectory takes: requests, tokens and money, each with its parts by stage."""
    for name, unit, places in (("calls", "requests", 1), ("tokens", "tokens", 0), ("money", "in money", 4)):
        *parts, whole = [(cost.stage, getattr(cost, name)) for cost in costs] or [("all", 0.0)]
        if whole[1]:
            told = ", ".join(f"{stage} {amount:,.{places}f}" for stage, amount in parts)
            yield f"An accepted trajectory takes {whole[1]:,.{places}f} {unit}: {told}."


def read_rounds(assembly: Assembly) -> Filling:
    """Return the rounds of drawing as far as they are made; the assembly then plans for the one that is next."""
    filling = Filling.of(assembly)
    filling.settle(lambda planned, _: planned[-1].folder.read_manifest() is not None)
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


def _estimate_stage(assembly: Assembly, plan: PlannedStage, rows_in: Interval) -> StageEstimate:
    manifest, nothing = plan.folder.read_manifest(), make_exact(0.0)
    if manifest is not None:
        counts = (make_exact(manifest.rows_in), make_exact(manifest.rows_out))
        nil = dict.fromkeys(("requests", "tokens", "money", "gpu_hours", "hours"), nothing)
        rows = manifest.rows_in
        return StageEstimate(plan.name, "complete", "measured", rows, *counts, pending_shards=0, recorded=0, **nil)
    left, pending, done = _find_left(plan, rows_in)
    state, evidence = "started" if done else "to do", _find_evidence(plan)
    most_rows, most_requests = _bound_rows(assembly.config, plan.name), bound_requests(assembly.config, plan.name)
    if evidence is None:
        asked = left.times(make_bound(most_requests))
        rows_out, spent = rows_in.times(make_bound(most_rows)), None if most_requests else nothing
        return StageEstimate(plan.name, state, "bound", 0, rows_in, rows_out, pending, asked, None, spent, spent, spent)
    rows, used = evidence.rows_in, evidence.usage
    made = used.calls + used.cached_calls
    if plan.name == "seeds":
        rows_out = make_exact(evidence.rows_out + evidence.rejected.get("over-quota", 0))
        quotas = assembly.quotas
        limit = count_asked(quotas).total() if quotas else assembly.config.seeds.limit
        rows_out = rows_out.cap(limit) if limit else rows_out
    else:
        rows_out = rows_in.times(
            _measure(evidence, evidence.rows_out, most_rows, [s.rows_out for s in evidence.shards])
        )
    by_shard = [shard.usage.calls + shard.usage.cached_calls for shard in evidence.shards]
    # The recipe's bound leaves repairs out, at most one a request.
    requests = left.times(_measure(evidence, made, 2 * most_requests, by_shard))
    same_rows = evidence.inputs[0].digest == assembly.corpus.digest
    recorded = min(made, round(requests.middle)) if same_rows else 0
    paid = requests.less(recorded)

    def share(amount: float) -> Interval | None:
        """Return what the unrecorded requests take; replies of a measured run may have been recorded before it."""
        if not made:
            return nothing
        return paid.times(Interval(amount / made, amount / made, amount / used.calls)) if used.calls else None

    return StageEstimate(
        plan.name, state, "measured", rows, rows_in, rows_out, pending, requests, recorded,
        tokens=share(used.tokens_in + used.tokens_out),
        money=None if (money := share(1.0)) is None else money.times(_price_again(assembly.config, plan, used)),
        gpu_hours=share(used.gpu_seconds / HOUR),
        hours=left.scale(evidence.seconds / rows / HOUR),
    )  # fmt: skip


def _price_again(config: RunConfig, plan: PlannedStage, used: Usage) -> Interval:
    """Return what measured requests would cost now: perhaps they were made live, and are now to go in batches.

    Where some of the stage's roles are asked in batches and others live, their parts are not known.
    """
    models = [config.models[entry.role] for entry in plan.stage.models() if entry.role in config.roles]
    shares = {BATCH_SHARE if model.mode == "batch" else 1.0 for model in models if model.prices}
    if shares in (set(), {1.0}) and not used.discount:
        return make_exact(used.cost)
    low, high = (bound(shares or {1.0}) * (used.cost + used.discount) for bound in (min, max))
    return Interval(low=low, middle=min(max(used.cost, low), high), high=high)


def _measure(evidence: Manifest, total: float, most: float, by_shard: Sequence[float]) -> Interval:
    """Return the amount a row of a sealed run, by how much its shards differ and, at least, by its size."""
    overall = bound_mean(total, evidence.rows_in, max(most, total / evidence.rows_in))
    spread = estimate_ratio(by_shard, [shard.rows_in for shard in evidence.shards])
    return overall.join(spread) if spread else overall


def _find_evidence(plan: PlannedStage) -> Manifest | None:
    """Return the largest sealed run of this stage, with the same models and prompts, under any key."""
    wanted = (plan.stage.version, tuple(plan.stage.models()), plan.stage.prompts())
    found = []
    for path in sorted(plan.folder.path.parent.glob("*/manifest.json")):
        try:
            manifest = StageFolder(path.parent).read_manifest()
        except CorruptInput:
            continue  # an unreadable manifest is no evidence; `synth status` names it
        if manifest is not None and manifest.rows_in and manifest.stage == plan.name and manifest.inputs:
            found += [manifest] * ((manifest.stage_version, manifest.models, manifest.prompts) == wanted)
    return max(found, key=lambda manifest: (manifest.rows_in, manifest.kept, manifest.key), default=None)


def _find_left(plan: PlannedStage, rows_in: Interval) -> tuple[Interval, int, int]:
    """Return the rows of shards that are not done, how many shards that is, and how many are done."""
    source = plan.sources[0].folder.read_manifest() if plan.sources else None
    if source is None or not isinstance(plan.stage, RecordStage):
        return rows_in, -1, 0
    pending = list_pending_shards(plan)
    return make_exact(sum(source.shards[n].rows_out for n in pending)), len(pending), len(source.shards) - len(pending)


def _describe_reach(limit: str, amount: float, stages: Sequence[StageEstimate]) -> str:
    """Say in which stage a limit is used up, and after how many rows."""
    left = amount
    for stage in stages:
        wanted: Interval | None = getattr(stage, limit)
        if wanted is None or stage.rows_in is None:
            return f"budget.{limit} {amount:g}: no run has measured what stage {stage.stage} takes."
        if wanted.middle > left:
            rows = stage.rows_in.middle
            reached = f"after about {rows * left / wanted.middle:,.0f} of {rows:,.0f} rows"
            return f"budget.{limit} {amount:g} ends in stage {stage.stage} {reached}."
        left -= wanted.middle
    return f"budget.{limit} {amount:g} is enough."


def _sum_stages(stages: Sequence[StageEstimate], at_once: Collection[str]) -> StageEstimate:
    """Return what all stages take together; a stage that asks nothing may lack a time.

    Of the stages that run at once, each was measured beside the others: the longest is the time of all of them.
    """
    asking = [stage for stage in stages if stage.hours is not None or stage.requests != make_exact(0.0)]

    beside = [stage for stage in asking if stage.stage in at_once]
    longest = max(beside, key=lambda stage: math.inf if stage.hours is None else stage.hours.middle, default=None)

    def add(name: str, among: Sequence[StageEstimate] = stages) -> Interval | None:
        amounts = [getattr(stage, name) for stage in among]
        return None if None in amounts else reduce(Interval.plus, amounts, make_exact(0.0))

    return StageEstimate(
        stage="all",
        state="complete" if all(stage.state == "complete" for stage in stages) else "to do",
        basis="bound" if any(stage.basis == "bound" for stage in asking) else "measured",
        rows_in=stages[0].rows_in,
        rows_out=stages[-1].rows_out,
        requests=add("requests"),
        recorded=sum(stage.recorded or 0 for stage in stages),
        tokens=add("tokens"),
        money=add("money"),
        gpu_hours=add("gpu_hours"),
        hours=add("hours", [stage for stage in asking if stage.stage not in at_once or stage is longest]),
    )


def _bound_rows(config: RunConfig, stage: str) -> int:
    """Return how many rows one row of a stage makes at most."""
    # Of a release: a row of vqa, and one of rl or one of sft for each trajectory.
    released = 1 + min(config.rollouts.wanted, config.rollouts.attempts)
    return {"paths": config.paths.per_seed, "rollouts": config.rollouts.attempts, "releases": released}.get(stage, 1)


def bound_attempts(config: RunConfig, hidden: int, judges: int, a_call: int) -> int:
    """Return the most requests that the attempts at one question lead to.

    Args:
        config: of the run.
        hidden: entities that the question hides at most.
        judges: asked for each answer.
        a_call: requests of one turn of a rollout that calls a tool.
    """
    difficulty = config.difficulty
    if difficulty.preset == "fvqa":
        return difficulty.attempts * (difficulty.max_searches * a_call + 1 + judges)
    plan = make_plan(difficulty.preset, difficulty.max_correct)
    searches = sum({"": 0, "both": 2}.get(step.condition.partition("+")[2], 1) for step in plan.filters)
    endings = difficulty.probe_attempts * hidden
    attempts = (len(plan.filters) * difficulty.attempts + endings) * (1 + judges)
    return attempts + searches + plan.judges_picture


def bound_requests(config: RunConfig, stage: str) -> int:
    """Return the most requests one row of a stage leads to, repairs of unparseable replies left out."""
    groundings, commons = config.groundings, config.commons
    # Each text that is made is read back, and a page for the answer and for each hop.
    hidden, each = max(config.paths.hops) - 1, 1 + 2 * config.rewrites.candidates
    pages = 1 + max(config.paths.hops) if config.method == "paths" else 1
    if config.method == "injection":
        # Two requests more a round: which entity, and behind which fact.
        hidden, each = max(config.injections.rounds) * config.injections.tries, each + 2
    if config.method == "concepts":
        # Nothing is hidden; a question is classified.
        hidden, each, pages = 0, 0, 2
    engines = len(set(groundings.ocr) - {"layer"})
    fetched, others = 2 * commons.fetch, 2 * commons.fetch * REACH * commons.distractors
    judges = int("judge" in config.roles)
    # Of each degradation the strongest is tried first; a search by what it makes is kept.
    trials = len(config.enhancements.degradations) * (4 + 2 * (len(config.enhancements.strengths) + HALVINGS))
    # A scene is looked up by the original, by the whole and by the part; a model may say where the thing lies.
    scenes = 5 + judges if config.high_resolution.share else 0
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
        "groundings": 5 + groundings.candidates * (2 * engines + fetched) + engines + commons.search + others,
        "difficulty": fetched + bound_attempts(config, hidden, judges, a_call),
        "enhancements": max(scenes, trials * (1 + 2 * engines) if config.enhancements.share else 0),
        "rollouts": config.rollouts.attempts * (config.rollouts.max_calls * a_call + 1 + judged),
        "trajectories": judged,
    }.get(stage, 0)


def _judge_dump(config: CorpusConfig, workspace: Workspace) -> DumpEstimate:
    """Read a few samples of a dump in a temporary folder, and scale the result by bytes."""
    dumps = list_parts(find_dump(config, workspace, SilentReporter()))
    site, size = read_site(dumps[0]), sum(dump.stat().st_size for dump in dumps)
    pieces = [(dump, piece) for dump in dumps for piece in sample_ranges(dump, SAMPLES, SAMPLE_BYTES)]
    pieces = pieces[:: -(-len(pieces) // SAMPLES)]
    pages = articles = links = boxed = 0
    with TemporaryDirectory() as scratch, timing() as spent:
        jobs = [RangeJob(dump, piece, site, Path(scratch) / str(number)) for number, (dump, piece) in enumerate(pieces)]
        jobs = survey_ranges(jobs, 1, lambda done, total: None) if needs_survey(site) else jobs
        for part in scan_ranges(jobs, 1, lambda done, total: None):
            pages, articles = pages + part.counts.rows_in, articles + part.counts.articles
            links += sum(len(block.sources) for block in part.read_links())
            boxed += sum(map(bool, part.read_columns("articles", ["infobox"])["infobox"].to_pylist()))
    scale = size / sum(piece.size for _, piece in pieces)
    pages, found, links = (round(count * scale) for count in (pages, articles, links))
    return DumpEstimate(pages, found, links, round(spent[0] * scale, 1), boxed, articles)


def find_built_corpus(config: RunConfig, workspace: Workspace) -> Path | None:
    """Return the folder of a run's corpus, or None while it is still to be built."""
    source = config.corpus
    if source.generate is not None:
        world = place_world(source.generate, workspace)
        if not world.is_dir():
            return None
        source = CorpusConfig(world=str(world))
    if config.method == "news":
        export = find_export(config.model_copy(update={"corpus": source}), workspace, SilentReporter())
        if not export.is_file():
            return None
        source = CorpusConfig(dump=str(export))
    dump = find_dump(source, workspace, SilentReporter())
    if not workspace.corpora.is_dir():
        return None
    with workspace.claim(holder="plan"):
        folder = workspace.corpora / name_corpus(dump, workspace)
    return folder if (folder / "manifest.json").is_file() else None


def render_estimate(estimate: RunEstimate) -> Table:
    """Return the estimate as a table; unknown numbers are ``?``, uncounted ones ``-``."""
    lines = [*estimate.lacks, *estimate.budget, *_describe_costs(estimate.a_trajectory)]
    if (dump := estimate.dump) is not None:
        seconds = dump.core_seconds / count_cores()
        spent = f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / HOUR:,.1f} h"
        lines.append(
            f"The dump holds about {dump.pages:,} pages, {dump.articles:,} articles and {dump.links:,} links; "
            f"{dump.boxed:,} of {dump.sampled:,} articles in a sample have an infobox. "
            f"Reading it takes about {spent} on this machine; the search index comes on top."
        )
    table = Table(title=f"corpus: {estimate.corpus}", caption="\n".join(lines), caption_justify="left")
    for column in ("stage", "state", "by"):
        table.add_column(column)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for stage in (*estimate.stages, *([estimate.total] if estimate.total else [])):
        if stage is estimate.total:
            table.add_section()
        table.add_row(
            stage.stage,
            stage.state,
            f"{stage.measured_rows:,} rows" if stage.measured_rows else stage.basis,
            _show(stage.rows_in),
            _show(stage.rows_out),
            "?" if stage.pending_shards < 0 else f"{stage.pending_shards:,}",
            _show(stage.requests),
            "?" if stage.recorded is None else f"{stage.recorded:,}",
            _show(stage.tokens),
            _show(stage.money, 2, "-"),
            _show(stage.gpu_hours, 2, "-"),
            _show(stage.hours, 2),
        )
    return table


def _show(interval: Interval | None, places: int = 0, unknown: str = "?") -> str:
    """Return the middle over the bounds, or the upper bound alone when nothing else is known."""
    if interval is None:
        return unknown
    middle, low, high = (f"{number:,.{places}f}" for number in (interval.middle, interval.low, interval.high))
    if low == high:
        return middle
    return f"<= {high}" if not interval.low and interval.middle == interval.high else f"{middle}\n{low}-{high}"
