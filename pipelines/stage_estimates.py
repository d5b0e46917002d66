"""What is left of each stage of a run and what it takes: by what was measured, or at most by the recipe."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pipelines.agent.repairing import HALVINGS
from pipelines.config import RunConfig
from pipelines.measured import Basis, Evidence, Rates, measure_stage, price_tokens
from pipelines.runs import PlannedStage, list_pending_shards
from pipelines.scoring.filters import make_plan
from pipelines.scoring.intervals import Interval, make_bound, make_exact
from pipelines.settings import ModelConfig, ModelsConfig
from pipelines.stage import RecordStage
from schemas.manifest import Manifest, Usage

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
