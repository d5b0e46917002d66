"""What seeds became: of a sample by domain, with where rows are lost, and of target sizes by stratum."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table

from pipelines.agent.agreement import bound_mean
from pipelines.cli.view.queries import Explorer, scan_rows
from pipelines.run.quotas import TargetRow
from pipelines.run.runner import PlannedStage
from pipelines.run.views import LatestStage

ACCEPTING = "enhancements"
"""The last stage whose rows are accepted questions. Limits of a release are shares of a whole: a sample cannot tell."""
SHOWN_LOSSES = 3


@dataclass(frozen=True, slots=True)
class DomainYield:
    """What became of the seeds of one domain, or of all."""

    domain: str
    seeds: int
    accepted: int | None
    """Questions; None while the last stage is not done."""
    ratio: tuple[float, float | None, float | None] | None
    """Seeds per accepted question between the ends of its 95% interval; None within it is unbounded."""
    lost: dict[str, int]
    """Rows by the stage that lost them and its reason, the most first."""


@dataclass(frozen=True, slots=True)
class SampleYield:
    """What became of a sample's seeds; the last line is that of all domains."""

    domains: tuple[DomainYield, ...]
    missing: tuple[str, ...] = ()
    """Stages that are not done."""


def measure_yield(root: Path, plans: Sequence[PlannedStage], most: int) -> SampleYield:
    """Count the rows of a sample's stages by the domain of their seed.

    Args:
        root: the workspace.
        plans: the stages from the seeds to the one that accepts questions, in order.
        most: rows that one seed leads to at most.
    """
    done = list(takewhile(lambda plan: plan.folder.read_manifest() is not None, plans))
    explorer = Explorer(root, [LatestStage(plan.name, plan.folder) for plan in done])
    counted = "SELECT domain, count(*) AS rows FROM {} GROUP BY domain ORDER BY domain"
    seeds, *_, made = [
        {row["domain"]: row["rows"] for row in explorer.ask(counted.format(scan_rows(plan.folder)))}
        for plan in (*done[:1], *done[-1:])
    ] or [{}, {}]
    lost: dict[str, Counter[str]] = {domain: Counter() for domain in seeds}
    for plan in done[1:]:
        for kind, reason in (("rejected", "reason"), ("failed", "'failed'")):
            rows = explorer.ask(
                f"SELECT domain, {reason} AS reason, count(*) AS rows FROM {scan_rows(plan.folder, kind)} "
                f"JOIN {scan_rows(plan.sources[0].folder)} USING (record_id) GROUP BY ALL"
            )
            for row in rows:
                lost[row["domain"]][f"{plan.name} {row['reason']}"] += row["rows"]
    missing = tuple(plan.name for plan in plans[len(done) :])

    def sum_up(name: str, domains: Sequence[str]) -> DomainYield:
        drawn = sum(seeds[domain] for domain in domains)
        accepted = None if missing else sum(made.get(domain, 0) for domain in domains)
        losses = sum((lost[domain] for domain in domains), Counter[str]())
        ratio = None
        if accepted is not None and drawn:
            # Seeds are drawn alone, and the rows of one seed may all share its lot.
            share = bound_mean(accepted, drawn, most)
            middle, high = (1 / amount if amount else None for amount in (share.middle, share.low))
            ratio = 1 / share.high, middle, high
        return DomainYield(name, drawn, accepted, ratio, dict(losses.most_common()))

    return SampleYield((*(sum_up(name, [name]) for name in seeds), sum_up("all", list(seeds))), missing)


def render_yield(found: SampleYield) -> Group:
    """Return a line for each domain and one for all; ``?`` is not known yet."""
    table = Table(title="what the sample made of its seeds", box=SIMPLE, padding=0)
    table.add_column("domain")
    for column in ("seeds", "accepted", "seeds per\naccepted"):
        table.add_column(column, justify="right")
    table.add_column("most rows were lost by")
    for line in found.domains:
        low, middle, high = (
            "?" if line.ratio is None else "∞" if number is None else f"{number:,.1f}"
            for number in line.ratio or (None,) * 3
        )
        lost = "; ".join(f"{loss} {rows:,}" for loss, rows in list(line.lost.items())[:SHOWN_LOSSES])
        accepted = "?" if line.accepted is None else f"{line.accepted:,}"
        table.add_row(line.domain, f"{line.seeds:,}", accepted, f"{middle}\n{low}-{high}", lost)
    note = "Seeds per accepted question stand over their 95% interval; ∞ is unbounded."
    if found.missing:
        note = f"Not done: {', '.join(found.missing)}. How many questions are accepted is not known yet."
    return Group(table, note)


def render_targets(rows: Sequence[TargetRow]) -> Table:
    """Return a line for each stratum."""
    table = Table(title="target sizes", box=SIMPLE, padding=0)
    table.add_column("stratum")
    for column in ("wanted", "accepted", "seeds"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for row in rows:
        table.add_row(row.stratum, f"{row.wanted:,}", f"{row.accepted:,}", f"{row.drawn:,}", row.state)
    return table
