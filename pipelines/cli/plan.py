"""``synth plan``: what a run would still do, ask of models and tools, and spend.

Rows are followed from the last complete stage on. What a stage makes and asks of a row is what sealed runs of it in the
workspace did, such as that of a sample (``pipelines.cli.plan``); without any, upper bounds come from the recipe. A
sample's shares are taken to hold for the whole: stages that look at all rows together, such as quotas, refuse more of
many rows than of few, and the first seeds of a small limit are spread more evenly over domains than those of a large
one.

What is left of each stage of a run and what it takes: by what was measured, or at most by the recipe.

What sealed runs of a workspace say of a stage: rows that come out of one row, requests, tokens, money, GPU time.

Whether a run is of the very same stage is no guess: a stage's key covers its settings, models and prompts and the keys
of its inputs, and a manifest names those inputs, so the key can be made again with them. A run of which only the models
and prompts are the same comes second. The seeds of a smaller limit are the first ones of a larger one, so replies
to rows that were grown from them are recorded for a larger run, too.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from rich.table import Table

from pipelines.agent.agreement import Interval, bound_mean, estimate_ratio, make_bound, make_exact
from pipelines.agent.attempts import make_plan
from pipelines.agent.pictures import HALVINGS
from pipelines.checks.knowledge import digest_checks
from pipelines.config.settings import CorpusConfig, GeneratedWorld, ModelConfig, ModelsConfig, RunConfig
from pipelines.corpus.build import CorpusOptions
from pipelines.corpus.dump import list_parts, read_site, sample_ranges
from pipelines.corpus.scan import Part, RangeJob, scan_range
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput
from pipelines.ids import digest_value, make_stage_key
from pipelines.run.assembly import Assembly
from pipelines.run.corpora import count_cores, find_dump, name_corpus
from pipelines.run.progress import SilentReporter, timing
from pipelines.run.runner import STAGE_ORDER, PlannedStage, list_pending_shards
from pipelines.run.stage import AnyStage, RecordStage
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.stages.seeds import Seeds
from pipelines.toy.knowledge import WorldConfig
from pipelines.toy.publishing import WORLD_FORMAT
from schemas.manifest import Manifest, Usage

Basis = Literal["measured", "other settings", "bound"]
"""Where numbers come from: a run of the very same stage, one with the same models and prompts alone, or the recipe."""
OVER_QUOTA = "over-quota"
"""Why seeds beyond the limit are refused: all of them were eligible."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Sealed runs of one stage that speak for a planned one."""

    basis: Basis
    largest: Manifest
    paid: Usage
    """Of all runs on rows of the largest one: what one of them found recorded, another one paid."""
    nested: bool
    """Whether the rows are among those of the planned stage, or the other way round: same corpus, same seeds."""

    @property
    def requests(self) -> int:
        """Requests that the largest run's rows led to."""
        return _count_requests(self.largest.usage)


@dataclass(frozen=True, slots=True)
class Rates:
    """What one row that comes into a stage leads to; None is not known."""

    basis: Basis
    measured_rows: int
    rows_out: Interval
    requests: Interval
    tokens: Interval | None = None
    """Of a request."""
    money: Interval | None = None
    """Of a request, at the prices of then."""
    gpu_seconds: Interval | None = None
    """Of a request."""
    seconds: float | None = None
    """At the pace of then."""
    recorded: int | None = None
    """Requests of the measured rows, which the planned run makes, too: recorded, unless replies were pruned since; None
    where that cannot be told."""


@dataclass(slots=True)
class Measurements:
    """Evidence for the stages of a plan, looked up in pipeline order."""

    corpus: str
    """Digest of the corpus."""
    nested: dict[str, set[str]] = field(default_factory=dict)
    """Keys by stage of what was grown from the same seeds."""

    def find(self, plan: PlannedStage) -> Evidence | None:
        """Return what speaks for a stage; its sources must have been looked up before."""
        sealed = list(_read_sealed(plan))
        same = [manifest for manifest in sealed if _is_same(plan.stage, manifest)]
        grown = [manifest for manifest in same if self._is_nested(plan, manifest)]
        self.nested[plan.name] = {manifest.key for manifest in grown}
        if grown:
            paid = sum((manifest.usage for manifest in grown), Usage())
            return Evidence("measured", _take_largest(grown), paid, nested=True)
        if same:
            return _make_lone("measured", _take_largest(same))
        alike = [manifest for manifest in sealed if _is_alike(plan.stage, manifest)]
        return _make_lone("other settings", _take_largest(alike)) if alike else None

    def _is_nested(self, plan: PlannedStage, manifest: Manifest) -> bool:
        corpus, *sources = manifest.inputs
        if corpus.digest != self.corpus:
            return False
        return all(source.key in self.nested.get(source.name, ()) for source in sources)


def _make_lone(basis: Basis, manifest: Manifest) -> Evidence:
    return Evidence(basis, manifest, manifest.usage, nested=False)


def _take_largest(manifests: Sequence[Manifest]) -> Manifest:
    return max(manifests, key=lambda manifest: (manifest.rows_in, manifest.kept, manifest.key))


def _read_sealed(plan: PlannedStage) -> Iterator[Manifest]:
    """Yield what is sealed of a stage under any key; what cannot be read says nothing."""
    for path in sorted(plan.folder.path.parent.glob("*/manifest.json")):
        try:
            manifest = StageFolder(path.parent).read_manifest()
        except CorruptInput:
            continue
        if manifest is not None and manifest.rows_in and manifest.stage == plan.name and manifest.inputs:
            yield manifest


def _is_same(stage: AnyStage, manifest: Manifest) -> bool:
    """Say whether a manifest is of this very stage, over whatever rows; of seeds, up to whatever limit."""
    inputs = [manifest.inputs[0].digest, *(source.key for source in manifest.inputs[1:])]
    stages = [stage]
    if isinstance(stage, Seeds):
        stages += [replace(stage, limit=limit) for limit in (0, manifest.rows_out)]
    return any(_make_key(candidate, inputs) == manifest.key for candidate in stages)


def _make_key(stage: AnyStage, inputs: Sequence[str]) -> str:
    """Return the key of a stage over given inputs, as ``Assembly.plan_stages`` makes it."""
    decides = [stage.fingerprint(), *filter(None, [digest_checks(stage.name)])]
    return make_stage_key(stage.name, stage.version, digest_value(decides), inputs)


def _is_alike(stage: AnyStage, manifest: Manifest) -> bool:
    models, prompts = tuple(stage.models()), stage.prompts()
    return (manifest.stage_version, manifest.models, manifest.prompts) == (stage.version, models, prompts)


def measure_seeds(stage: Seeds, evidence: Evidence) -> Rates:
    """Return the rates of seeds: how many there are is known from any limit, since what is beyond it was judged."""
    manifest = evidence.largest
    eligible = manifest.rows_out + manifest.rejected.get(OVER_QUOTA, 0)
    # Pictures beyond the limit were not looked up, and may not do.
    least = eligible if stage.metadata is None else manifest.rows_out
    limit = stage.limit or eligible
    amounts = sorted(min(count, limit) / manifest.rows_in for count in (least, eligible))
    return replace(
        _measure(evidence, 1.0, 0.0),
        rows_out=Interval(amounts[0], amounts[1], amounts[1]),
        requests=make_exact(evidence.requests / manifest.rows_in),
    )


def measure_stage(plan: PlannedStage, evidence: Evidence, most_rows: float, most_requests: float) -> Rates:
    """Return the rates of a stage.

    Args:
        plan: the stage.
        evidence: sealed runs of it.
        most_rows: rows out of one row in, at most, by the recipe.
        most_requests: requests of one row, at most, by the recipe.
    """
    if isinstance(plan.stage, Seeds):
        return measure_seeds(plan.stage, evidence)
    return _measure(evidence, most_rows, most_requests)


def _measure(evidence: Evidence, most_rows: float, most_requests: float) -> Rates:
    manifest = evidence.largest
    rows = manifest.rows_in
    made = max(most_rows, manifest.rows_out / manifest.kept if manifest.kept else 0.0)
    rows_out = bound_mean(manifest.rows_out, rows, made)
    by_shard = _compare_shards(manifest, lambda shard: shard.rows_out)
    requests = _compare_shards(manifest, lambda shard: _count_requests(shard.usage))
    paid = evidence.paid
    return Rates(
        basis=evidence.basis,
        measured_rows=rows,
        rows_out=rows_out.join(by_shard) if by_shard else rows_out,
        requests=requests or _bound_requests(evidence.requests, rows, most_requests),
        tokens=_share_out(paid.tokens_in + paid.tokens_out, evidence),
        money=_share_out(paid.cost, evidence),
        gpu_seconds=_share_out(paid.gpu_seconds, evidence),
        seconds=manifest.seconds / rows,
        recorded=evidence.requests if evidence.nested else None,
    )


def _bound_requests(requests: int, rows: int, most: float) -> Interval:
    # The recipe's bound leaves repairs out, at most one a request.
    return bound_mean(requests, rows, most if requests <= most * rows else 2 * most)


def _compare_shards(manifest: Manifest, count: Callable[..., float]) -> Interval | None:
    return estimate_ratio([count(shard) for shard in manifest.shards], [shard.rows_in for shard in manifest.shards])


def _share_out(amount: float, evidence: Evidence) -> Interval | None:
    """Return what a request takes.

    Of a request that was answered from the recording nobody knows whether it would have been again: repeats within a
    run always are, those that an earlier run paid are not. The first is the middle, the second the upper bound.
    """
    if not evidence.requests:
        return make_exact(0.0)
    if not evidence.paid.calls:
        return None
    share = amount / max(evidence.requests, evidence.paid.calls)
    return Interval(share, share, amount / evidence.paid.calls)


def _count_requests(usage: Usage) -> int:
    return usage.calls + usage.cached_calls


def price_tokens(rates: Rates, prices: Mapping[str, tuple[float, float]], stage: AnyStage) -> Rates:
    """Return rates with money where tokens were counted before anybody named a price.

    Args:
        rates: of the stage.
        prices: by role, of a million tokens, the cheaper and the dearer direction.
        stage: whose roles are asked.
    """
    if rates.money is None or rates.tokens is None or rates.money.high > 0:
        return rates
    asked = [prices[entry.role] for entry in stage.models() if entry.role in prices] or [(0.0, 0.0)]
    cheap, dear = min(low for low, _ in asked) / 1e6, max(high for _, high in asked) / 1e6
    middle = sum(low + high for low, high in asked) / (2e6 * len(asked))
    tokens = rates.tokens
    return replace(rates, money=Interval(tokens.low * cheap, tokens.middle * middle, tokens.high * dear))


HOUR = 3600.0
JUDGES = ("judge", "second_judge", "process_judge")


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What is left of one stage; None is not known, or cannot be before an earlier stage has run."""

    stage: str
    state: str
    """``complete``, ``started`` or ``to do``."""
    basis: Basis = "bound"
    measured_rows: int = 0
    """Rows that the run had by which this is estimated."""
    rows_in: Interval | None = None
    rows_out: Interval | None = None
    pending_shards: int = -1
    """-1 where the input is not cut yet."""
    requests: Interval | None = None
    """Still to be made, those that are answered from the recording included."""
    recorded: int | None = None
    """Of these, how many are recorded already; None where that cannot be told."""
    tokens: Interval | None = None
    """Of the requests that are not recorded."""
    money: Interval | None = None
    """The same; None where no model has a price, too."""
    gpu_hours: Interval | None = None
    """The same; None where no model has GPUs, too."""
    hours: Interval | None = None
    """Of all rows left, at the pace of the measured run."""
    money_a_row: Interval | None = None
    """What a row that comes out has cost by then, all stages up to this one and what is spent already together."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one limit of the budget goes."""

    limit: str
    """``money``, ``tokens`` or ``gpu_hours``."""
    amount: float
    enough: bool
    stage: str = ""
    """Where it ends, or from where on nothing can be told; empty where it is enough."""
    rows: int = -1
    """About how many rows of that stage it is enough for; -1 where that cannot be told."""
    rows_in: int = -1

    def describe(self) -> str:
        """Return it as a sentence."""
        if self.enough:
            return f"budget.{self.limit} {self.amount:g} is enough."
        if self.rows < 0:
            return f"budget.{self.limit} {self.amount:g}: nobody has measured what stage {self.stage} takes."
        reached = f"after about {self.rows:,} of {self.rows_in:,} rows"
        return f"budget.{self.limit} {self.amount:g} ends in stage {self.stage} {reached}."


@dataclass(frozen=True, slots=True)
class Prices:
    """What of a run's models is counted."""

    by_role: dict[str, tuple[float, float]]
    """Of a million tokens, the cheaper and the dearer direction, by role."""
    money: bool
    gpus: bool


def read_prices(models: ModelsConfig) -> Prices:
    """Return what the models of a run cost."""
    roles = {role: models.get(role) for role in models.list_roles()}
    return Prices(
        by_role={role: (min(m.price_in, m.price_out), max(m.price_in, m.price_out)) for role, m in roles.items()},
        money=any(map(_has_price, roles.values())),
        gpus=any(model.gpus for model in roles.values()),
    )


def _has_price(model: ModelConfig) -> bool:
    return bool(model.price_in or model.price_out or (model.gpus and model.gpu_price))


def make_rates(config: RunConfig, plan: PlannedStage, evidence: Evidence | None, prices: Prices) -> Rates:
    """Return what a row of a stage leads to: measured where there is evidence, at most by the recipe where not."""
    most_rows, most_requests = _bound_rows(config, plan.name), requests_a_row(config, plan.name)
    if evidence is not None:
        return price_tokens(measure_stage(plan, evidence, most_rows, most_requests), prices.by_role, plan.stage)
    bound = Rates("bound", 0, make_bound(most_rows), make_bound(most_requests))
    if most_requests:
        return bound
    nothing = make_exact(0.0)
    return replace(bound, tokens=nothing, money=nothing, gpu_seconds=nothing, recorded=0)


def estimate_stage(plan: PlannedStage, rates: Rates, rows_in: Interval, limit: int = 0) -> StageEstimate:
    """Return what is left of a stage; money and GPU-hours whether anybody counts them or not.

    Args:
        plan: the stage.
        rates: what one row leads to.
        rows_in: that come in, all of them.
        limit: most rows that come out, 0 for no limit.
    """
    manifest = plan.folder.read_manifest()
    if manifest is not None:
        return _describe_complete(manifest)
    left = _find_left(plan, rows_in)
    requests = left.rows.times(rates.requests)
    recorded = rates.recorded
    if recorded is not None:
        recorded = min(max(recorded - left.used.calls - left.used.cached_calls, 0), round(requests.middle))
    asked = requests.less(recorded or 0)
    rows_out = rows_in.times(rates.rows_out)
    return StageEstimate(
        stage=plan.name,
        state="started" if left.done else "to do",
        basis=rates.basis,
        measured_rows=rates.measured_rows,
        rows_in=rows_in,
        rows_out=rows_out.cap(limit) if limit else rows_out,
        pending_shards=left.pending,
        requests=requests,
        recorded=recorded,
        tokens=rates.tokens and asked.times(rates.tokens),
        money=rates.money and asked.times(rates.money),
        gpu_hours=rates.gpu_seconds and asked.times(rates.gpu_seconds).scale(1 / HOUR),
        hours=None if rates.seconds is None else left.rows.scale(rates.seconds / HOUR),
    )


def _describe_complete(manifest: Manifest) -> StageEstimate:
    nothing = make_exact(0.0)
    return StageEstimate(
        stage=manifest.stage,
        state="complete",
        basis="measured",
        measured_rows=manifest.rows_in,
        rows_in=make_exact(manifest.rows_in),
        rows_out=make_exact(manifest.rows_out),
        pending_shards=0,
        requests=nothing,
        recorded=0,
        tokens=nothing,
        money=nothing,
        gpu_hours=nothing,
        hours=nothing,
    )


@dataclass(frozen=True, slots=True)
class _Left:
    """Rows of the shards that are not done, how many shards that is (-1 before the input is cut), and the others."""

    rows: Interval
    pending: int = -1
    done: int = 0
    used: Usage = field(default_factory=Usage)


def _find_left(plan: PlannedStage, rows_in: Interval) -> _Left:
    source = plan.sources[0].folder.read_manifest() if plan.sources else None
    if source is None or not isinstance(plan.stage, RecordStage):
        return _Left(rows_in)
    pending = set(list_pending_shards(plan))
    done = [plan.folder.read_sidecar(shard) for shard in range(len(source.shards)) if shard not in pending]
    used = sum((sidecar.usage for sidecar in done if sidecar is not None), Usage())
    rows = make_exact(sum(source.shards[shard].rows_out for shard in pending))
    return _Left(rows, len(pending), len(done), used)


def hide_uncounted(estimate: StageEstimate, prices: Prices) -> StageEstimate:
    """Return an estimate without money or GPU-hours where no model of the run has a price or GPUs."""
    return replace(
        estimate,
        money=estimate.money if prices.money else None,
        money_a_row=estimate.money_a_row if prices.money else None,
        gpu_hours=estimate.gpu_hours if prices.gpus else None,
    )


def price_stage(rates: Rates, rows_in: Interval) -> Interval | None:
    """Return the money that a whole stage takes, what is spent already included; None where nobody can tell."""
    if not rows_in.high:
        return make_exact(0.0)
    return rates.money and rows_in.times(rates.requests).times(rates.money)


def price_rows(spent: Interval, rows: Interval) -> Interval | None:
    """Return what a row costs when all of them cost so much together; None for no rows."""
    if rows.middle < 1:
        return None
    return spent.times(Interval(1 / rows.high, 1 / rows.middle, 1 / max(rows.low, 1.0)))


def find_reach(limit: str, amount: float, stages: Sequence[StageEstimate]) -> Reach:
    """Return how far a limit goes: in which stage it is used up, after how many rows."""
    left = amount
    for stage in stages:
        wanted: Interval | None = getattr(stage, limit)
        if wanted is None or stage.rows_in is None:
            return Reach(limit, amount, False, stage.stage)
        if wanted.middle > left:
            rows = stage.rows_in.middle
            return Reach(limit, amount, False, stage.stage, round(rows * left / wanted.middle), round(rows))
        left -= wanted.middle
    return Reach(limit, amount, True)


def _bound_rows(config: RunConfig, stage: str) -> int:
    """Return how many rows one row of a stage makes at most."""
    return {
        "paths": config.paths.per_seed,
        "rollouts": config.rollouts.attempts,
        # A row of bridgevqa, and one of rl or one of sft for each trajectory.
        "releases": 1 + max(config.trajectories.max_accepted, 1),
    }.get(stage, 1)


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
        "groundings": 1 + _bound_looks(config),
        "difficulty": _bound_attempts(config),
        "enhancements": _bound_trials(config),
        "rollouts": config.rollouts.attempts * (config.rollouts.max_calls * _bound_call(config) + 1),
        # The judges of the answer, once more where a reply gives no verdict, and the judge of the way.
        "trajectories": 2 * sum(getattr(config.models, role) is not None for role in JUDGES),
    }.get(stage, 0)


def _bound_call(config: RunConfig) -> int:
    """Return the most requests of a tool call: the turn that makes it, the search, and pages read and summed up."""
    return 2 + (2 * config.tools.pages_read if config.tools.summarise else 0)


def _bound_looks(config: RunConfig) -> int:
    """Return the most requests of choosing a picture: every candidate read, fetched, and one looked up twice."""
    groundings, commons = config.groundings, config.commons
    engines = len(set(groundings.ocr) - {"layer"})
    fetched = commons.fetch * (1 + bool(commons.api)) + commons.search
    # Each engine reads a picture at two scales, and the one that is taken once more, as a student sees it.
    return groundings.candidates * (2 * engines + fetched) + engines + 2


def _bound_trials(config: RunConfig) -> int:
    """Return the most requests of degrading a picture: it is looked up and read before, degraded and repaired."""
    enhancements = config.enhancements
    if not enhancements.share:
        return 0
    engines = len(set(config.groundings.ocr) - {"layer"})
    return (1 + 2 * (len(enhancements.strengths) + HALVINGS)) * (1 + 2 * engines)


def _bound_attempts(config: RunConfig) -> int:
    """Return the most requests of a question's difficulty: attempts and their judging, searches, the picture."""
    difficulty, models = config.difficulty, config.models
    plan = make_plan(difficulty.preset, difficulty.solvers, difficulty.text_solver, difficulty.max_correct)
    judges = sum(model is not None for model in (models.judge, models.second_judge))
    searches = sum({"": 0, "both": 2}.get(step.condition.partition("+")[2], 1) for step in plan.filters)
    return len(plan.filters) * difficulty.attempts * (1 + judges) + searches + plan.judges_picture


SAMPLES = 4
SAMPLE_BYTES = 1 << 20
"""How many pieces of a dump are read to judge it, and how long each is."""
SAMPLE_SHARDS = 16
"""Shards that a sample is cut into: how much they differ says how sure its numbers are."""
COLUMNS = (
    "rows in", "rows out", "shards to do", "requests", "recorded", "tokens", "money", "money a row", "GPU-h", "hours",
)  # fmt: skip


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
    total: StageEstimate | None = None
    """All stages together; None of a number that one stage does not know."""
    budget: tuple[Reach, ...] = ()
    """How far each limit of the configured budget goes."""


def make_sample_config(config: RunConfig, seeds: int) -> RunConfig:
    """Return the configuration of a sample of a run: its first seeds, cut into small shards.

    Run in the run's own workspace it pays for nothing twice, and :func:`estimate_run` of the whole goes by it. Its end
    is the stage before releases: quotas and duplicates of a few rows say nothing of many.

    Raises:
        ConfigError: if no seeds are wanted.
    """
    if seeds < 1:
        raise ConfigError(f"plan: a sample of {seeds} seeds; give 1 or more")
    limit = min(seeds, config.seeds.limit or seeds)
    runtime = config.runtime.model_copy(update={"shard_rows": max(limit // SAMPLE_SHARDS, 1)})
    chosen = config.seeds.model_copy(update={"limit": limit})
    return config.model_copy(update={"seeds": chosen, "runtime": runtime})


def estimate_run(config: RunConfig, root: Path) -> RunEstimate:
    """Estimate a run in a workspace; nothing is generated or built for it, and no workspace is made.

    Raises:
        ConfigError: if the input is missing.
    """
    workspace = Workspace(root.resolve())
    folder = _find_corpus(config.corpus, workspace)
    if folder is None:
        names = STAGE_ORDER[: STAGE_ORDER.index("trajectories")]
        stages = tuple(StageEstimate(name, "to do") for name in names)
        return RunEstimate(
            "to build", stages, None if config.corpus.generate else _judge_dump(config.corpus, workspace)
        )
    prices = read_prices(config.models)
    with closing(Assembly(config, workspace, Corpus.open(folder))) as assembly:
        stages = _estimate_stages(assembly, prices)
    limits = {"money": config.budget.money, "tokens": config.budget.tokens, "gpu_hours": config.budget.gpu_hours}
    reaches = tuple(find_reach(limit, amount, stages) for limit, amount in limits.items() if amount)
    stages = tuple(hide_uncounted(stage, prices) for stage in stages)
    return RunEstimate(folder.name, stages, None, _sum_stages(stages), reaches)


def _estimate_stages(assembly: Assembly, prices: Prices) -> tuple[StageEstimate, ...]:
    config, measurements = assembly.config, Measurements(assembly.corpus.digest)
    articles = make_exact(len(assembly.corpus.article_nodes()))
    spent: Interval | None = make_exact(0.0)
    estimates: dict[str, StageEstimate] = {}
    for plan in assembly.plan_stages():
        rates = make_rates(config, plan, measurements.find(plan), prices)
        rows_in = estimates[plan.sources[0].name].rows_out if plan.sources else articles
        assert rows_in is not None
        estimate = estimate_stage(plan, rates, rows_in, config.seeds.limit if plan.name == "seeds" else 0)
        cost = None if estimate.basis == "bound" else price_stage(rates, rows_in)
        spent = spent.plus(cost) if spent and cost else None
        each = price_rows(spent, estimate.rows_out) if spent and estimate.rows_out else None
        estimates[plan.name] = replace(estimate, money_a_row=each)
    return tuple(estimates.values())


def _sum_stages(stages: Sequence[StageEstimate]) -> StageEstimate:
    """Return what all stages take together; what comes in and out is that of the first and the last one.

    The time of stages that ask nobody is left out where it is not known; a row's price is that of the last stage that
    has one.
    """
    asking = [stage for stage in stages if stage.hours is not None or stage.requests != make_exact(0.0)]

    def add(name: str, among: Sequence[StageEstimate] = stages) -> Interval | None:
        amounts = [getattr(stage, name) for stage in among]
        return None if None in amounts else reduce(Interval.plus, amounts, make_exact(0.0))

    recorded = [stage.recorded for stage in stages if stage.recorded is not None]
    prices = [stage.money_a_row for stage in stages if stage.money_a_row is not None]
    return StageEstimate(
        stage="all",
        state="complete" if all(stage.state == "complete" for stage in stages) else "to do",
        basis="bound" if any(stage.basis == "bound" for stage in asking) else "measured",
        rows_in=stages[0].rows_in,
        rows_out=stages[-1].rows_out,
        requests=add("requests"),
        recorded=sum(recorded) if len(recorded) == len(stages) else None,
        tokens=add("tokens"),
        money=add("money"),
        gpu_hours=add("gpu_hours"),
        hours=add("hours", asking),
        money_a_row=prices[-1] if prices else None,
    )


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


def render_estimate(estimate: RunEstimate) -> Table:
    """Return the estimate as a table; unknown numbers as ``?``, what nobody counts as ``-``."""
    table = Table(title=f"corpus: {estimate.corpus}", caption=_write_caption(estimate), caption_justify="left")
    for column in ("stage", "state", "by"):
        table.add_column(column)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for stage in estimate.stages:
        table.add_row(*_show_stage(stage))
    if estimate.total is not None:
        table.add_section()
        table.add_row(*_show_stage(estimate.total))
    return table


def _show_stage(stage: StageEstimate) -> list[str]:
    by = stage.basis if stage.basis == "bound" or not stage.measured_rows else f"{stage.measured_rows:,} rows"
    by = by if stage.basis != "other settings" else f"{by}, other settings"
    # Without a price or GPUs nothing is unknown: there is nothing to count.
    return [
        stage.stage,
        stage.state,
        by,
        _show_interval(stage.rows_in),
        _show_interval(stage.rows_out),
        "?" if stage.pending_shards < 0 else f"{stage.pending_shards:,}",
        _show_interval(stage.requests),
        "?" if stage.recorded is None else f"{stage.recorded:,}",
        _show_interval(stage.tokens),
        _show_interval(stage.money, 2, "-"),
        _show_interval(stage.money_a_row, 4, "-"),
        _show_interval(stage.gpu_hours, 2, "-"),
        _show_interval(stage.hours, 2),
    ]


def _show_interval(interval: Interval | None, places: int = 0, unknown: str = "?") -> str:
    """Return the middle over the bounds, or the upper bound alone where nothing else is known."""
    if interval is None:
        return unknown
    middle, low, high = (f"{number:,.{places}f}" for number in (interval.middle, interval.low, interval.high))
    if low == high:
        return middle
    if not interval.low and interval.middle == interval.high:
        return f"<= {high}"
    return f"{middle}\n{low}-{high}"


def _write_caption(estimate: RunEstimate) -> str:
    lines = [reach.describe() for reach in estimate.budget]
    priced = [stage for stage in estimate.stages if stage.money_a_row is not None and stage.money_a_row.middle]
    if priced and priced[-1].money_a_row is not None:
        rows = 1 / priced[-1].money_a_row.middle
        lines.append(f"A unit of money makes about {rows:,.3g} rows of {priced[-1].stage}.")
    if estimate.dump is not None:
        dump = estimate.dump
        spent = _show_time(dump.core_seconds / count_cores())
        lines.append(
            f"The dump holds about {dump.pages:,} pages, {dump.articles:,} articles and {dump.links:,} links. "
            f"Reading it takes about {spent} on this machine; the search index comes on top."
        )
    return "\n".join(lines)


def _show_time(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 3600:,.1f} h"
