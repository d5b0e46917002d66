"""What seeds became: of a sample by domain, with where rows are lost, and of target sizes by stratum."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Self

import pyarrow.parquet as pq
from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table

from pipelines.agent.agreement import bound_mean
from pipelines.cli.facets import read_refusals
from pipelines.run.quotas import TargetRow
from pipelines.run.runner import PlannedStage
from pipelines.run.views import LatestStage
from schemas.manifest import Manifest

ACCEPTING = ("difficulty", "enhancements")
"""Stages that accept questions: the second refuses none, but rows may fail in it. Limits of a release, which selections
applies, are shares of a whole: a sample tells nothing of them."""
FAILED = "failed"
SHOWN_LOSSES = 3


@dataclass(frozen=True, slots=True)
class Ratio:
    """Seeds per accepted question with a 95% interval; None is unbounded."""

    low: float
    middle: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class StageYield:
    """What a sealed stage made of all its rows, or of those of some domains; ``rows_in = kept + rejected + failed``."""

    stage: str
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Return what a whole stage made."""
        return cls(**{field.name: getattr(manifest, field.name) for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class DomainYield:
    """What became of the seeds of one domain, or of all."""

    domain: str
    seeds: int
    stages: tuple[StageYield, ...]
    """Those after the seeds that are done."""
    accepted: int | None
    """Rows of the last stage; None while it is not done."""
    seeds_per_accepted: Ratio | None
    lost_most: tuple[str, ...]
    """The largest losses, each as ``stage reason rows``."""


@dataclass(frozen=True, slots=True)
class SampleYield:
    """What became of a sample's seeds."""

    domains: tuple[DomainYield, ...]
    total: DomainYield
    missing: tuple[str, ...] = ()
    """Stages that are not done."""


@dataclass(frozen=True, slots=True)
class _Tally:
    """Rows of a sealed stage by domain."""

    stage: str
    came: Counter[str]
    lost: Counter[tuple[str, str]]
    """By domain and reason."""
    made: Counter[str]


def measure_yield(plans: Sequence[PlannedStage], most: int) -> SampleYield:
    """Count the rows of a sample's stages by the domain of their seed.

    Args:
        plans: the stages from the seeds to the last of ``ACCEPTING``, in order.
        most: rows that one seed leads to at most.
    """
    tallies: list[_Tally] = []
    domains: dict[str, dict[str, str]] = {}
    for plan in plans:
        if plan.folder.read_manifest() is None:
            break
        came = domains[plan.sources[0].name] if plan.sources else {}
        parts = (
            pq.read_table(path, columns=["record_id", "domain"]) for path in plan.folder.path.glob("part-*.parquet")
        )
        domains[plan.name] = {row["record_id"]: row["domain"] for part in parts for row in part.to_pylist()}
        refused = read_refusals(LatestStage(plan.name, plan.folder)) if plan.sources else ()
        lost = Counter((came[row.record_id], FAILED if row.kind == FAILED else row.reason) for row in refused)
        tallies.append(_Tally(plan.name, Counter(came.values()), lost, Counter(domains[plan.name].values())))
    complete = len(tallies) == len(plans)
    names = sorted(tallies[0].made) if tallies else []
    return SampleYield(
        tuple(_sum_rows(name, [name], tallies, most, complete) for name in names),
        _sum_rows("all", names, tallies, most, complete),
        tuple(plan.name for plan in plans[len(tallies) :]),
    )


def _sum_rows(name: str, domains: Collection[str], tallies: Sequence[_Tally], most: int, complete: bool) -> DomainYield:
    """Add the rows of some domains up."""
    stages, losses = [], Counter[str]()
    for tally in tallies[1:]:
        lost = Counter[str]()
        for (domain, reason), rows in tally.lost.items():
            lost[reason] += rows if domain in domains else 0
        lost = +lost
        losses.update({f"{tally.stage} {reason}": rows for reason, rows in lost.items()})
        came, made = (sum(counts[domain] for domain in domains) for counts in (tally.came, tally.made))
        kept, failed = came - lost.total(), lost.pop(FAILED, 0)
        stages.append(StageYield(tally.stage, came, kept, dict(sorted(lost.items())), failed, made))
    seeds = sum(tallies[0].made[domain] for domain in domains) if tallies else 0
    accepted = stages[-1].rows_out if complete else None
    ratio = None if accepted is None or not seeds else _divide(seeds, accepted, most)
    shown = tuple(f"{loss} {rows:,}" for loss, rows in losses.most_common(SHOWN_LOSSES))
    return DomainYield(name, seeds, tuple(stages), accepted, ratio, shown)


def _divide(seeds: int, accepted: int, most: int) -> Ratio:
    """Return the seeds per accepted question: seeds are drawn alone, the rows of one seed may all share its lot."""
    share = bound_mean(accepted, seeds, most)
    return Ratio(1 / share.high, *(1 / amount if amount else None for amount in (share.middle, share.low)))


def render_yield(found: SampleYield) -> Group:
    """Return two tables of 80 columns, each with a line for each domain and one for all; ``?`` is not known yet."""
    counts = Table(title="what the sample made of its seeds", box=SIMPLE, padding=0)
    losses = Table(title="where most rows were lost", box=SIMPLE, padding=0)
    names = [name for name in (*(stage.stage for stage in found.total.stages), *found.missing) if name != "seeds"]
    names = [name for name in names if name not in ACCEPTING]
    counts.add_column("domain")
    for column in ("seeds", *names, "accepted", "seeds per\naccepted"):
        counts.add_column(column, justify="right")
    for column in ("domain", "stage, reason and rows"):
        losses.add_column(column)
    for line in (*found.domains, found.total):
        made = {stage.stage: f"{stage.rows_out:,}" for stage in line.stages}
        accepted = "?" if line.accepted is None else f"{line.accepted:,}"
        numbers = [f"{line.seeds:,}", *(made.get(name, "?") for name in names), accepted]
        counts.add_row(line.domain, *numbers, _show_ratio(line.seeds_per_accepted))
        losses.add_row(line.domain, "; ".join(line.lost_most))
    note = "Seeds per accepted question stand over their 95% interval; ∞ is unbounded."
    if found.missing:
        note = f"Not done: {', '.join(found.missing)}. How many questions are accepted is not known yet."
    return Group(counts, note, losses)


def _show_ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "?"
    low, middle, high = (
        "∞" if number is None else f"{number:,.1f}" for number in (ratio.low, ratio.middle, ratio.high)
    )
    return f"{middle}\n{low}-{high}"


def render_targets(rows: Sequence[TargetRow]) -> Table:
    """Return a line for each stratum; ``-`` where no row is accepted yet."""
    table = Table(title="target sizes", box=SIMPLE, padding=0)
    table.add_column("stratum")
    for column in ("wanted", "accepted", "seeds", "calls a row", "tokens a row", "money a row"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for row in rows:
        costs = (_show(row.calls, 1), _show(row.tokens, 0), _show(row.money, 4))
        table.add_row(row.stratum, f"{row.wanted:,}", f"{row.accepted:,}", f"{row.drawn:,}", *costs, row.state)
    return table


def _show(number: float | None, places: int) -> str:
    return "-" if number is None else f"{number:,.{places}f}"
