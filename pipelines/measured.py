"""What sealed runs of a workspace say of a stage: rows that come out of one row, requests, tokens, money, GPU time.

Whether a run is of the very same stage is no guess: a stage's key covers its settings, models and prompts and the keys
of its inputs, and a manifest names those inputs, so the key can be made again with them. A run of which only the models
and prompts are the same comes second. The seeds of a smaller limit are the first ones of a larger one, so replies
to rows that were grown from them are recorded for a larger run, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pipelines.checks.knowledge import digest_checks
from pipelines.errors import CorruptInput
from pipelines.ids import digest_value, make_stage_key
from pipelines.runs import PlannedStage
from pipelines.scoring.intervals import Interval, bound_mean, estimate_ratio, make_exact
from pipelines.stage import AnyStage
from pipelines.stages.seeds import Seeds
from pipelines.workspace import StageFolder
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
