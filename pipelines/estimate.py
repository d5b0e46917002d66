"""``synth plan``: what a run would still do, ask of models and tools, and spend.

Rows are followed from the last complete stage on. What a stage makes and asks of a row is what sealed runs of it in the
workspace did, such as that of a sample (``pipelines.measured``); without any, upper bounds come from the recipe. A
sample's shares are taken to hold for the whole: stages that look at all rows together, such as quotas, refuse more of
many rows than of few, and the first seeds of a small limit are spread more evenly over domains than those of a large
one.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import reduce
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
from pipelines.errors import ConfigError
from pipelines.inputs import count_cores, find_dump, name_corpus
from pipelines.measured import Measurements
from pipelines.progress import SilentReporter, timing
from pipelines.runs import STAGE_ORDER
from pipelines.scoring.intervals import Interval, make_exact
from pipelines.settings import CorpusConfig, GeneratedWorld
from pipelines.stage_estimates import (
    Prices,
    Reach,
    StageEstimate,
    estimate_stage,
    find_reach,
    hide_uncounted,
    make_rates,
    price_rows,
    price_stage,
    read_prices,
)
from pipelines.workspace import Workspace
from pipelines.world.config import WorldConfig
from pipelines.world.generate import WORLD_FORMAT

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
