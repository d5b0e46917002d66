"""``synth run --preview N``: a few questions go through every stage before the run, and are shown as cards.

A preview is a run of the first seeds, with keys of its own, in the run's own workspace: what it asks of models is
recorded, so the run that follows does not pay for it again. It ends before releases, which judge a whole.
"""

from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from rich.console import Group
from rich.text import Text

from pipelines.cli.commands import run_sample
from pipelines.cli.plan import find_built_corpus, make_sample_config
from pipelines.cli.view.cards import Card, Part, list_funnel, make_card, render_card, render_part
from pipelines.cli.view.queries import Explorer, scan_rows
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, GateNotMet, SynthError
from pipelines.run.assembly import Assembly
from pipelines.run.views import LatestStage
from pipelines.run.workspace import Workspace

MOST_SEEDS = 64
"""Seeds that are drawn at most for each question that is wanted."""
GROWTH = 4
"""By how much the seeds grow at most where too few questions came through."""
SELECTED, LAST = "selections", "trajectories"
CHECKED = ("difficulty", "enhancements", SELECTED)
"""Stages whose rows passed every check of a question; the last that is done is shown."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What became of a run's first seeds."""

    cards: tuple[Card, ...]
    refused: tuple[Card, ...]
    """At most as many as questions were wanted, one of each stage and reason first, the last stages first."""
    funnel: Part
    missing: tuple[str, ...] = ()
    """Stages that were not done."""


def preview_run(config: RunConfig, root: Path, wanted: int) -> tuple[Preview, SynthError | None]:
    """Run as many first seeds as it takes until so many questions are selected, then let the teacher answer these.

    Returns:
        The preview as far as it came, and the error that ended it early.

    Raises:
        ConfigError: if the recipe draws no seeds, or as :func:`pipelines.cli.commands.run_recipe`.
    """
    if config.method == "pools":
        raise ConfigError('--preview: method = "pools" draws no seeds; a file with few rows previews a pool')
    seeds, most = wanted, wanted * MOST_SEEDS
    while True:
        sample = make_preview_config(config, seeds)
        ended = run_sample(sample, root, SELECTED)
        done, _ = _plan(sample, root)
        made = {found.stage: manifest.rows_out for found in done if (manifest := found.folder.read_manifest())}
        drawn, selected = next(iter(made.values()), 0), made.get(SELECTED, 0)
        if selected >= wanted or seeds >= most or drawn < seeds or not isinstance(ended, GateNotMet | None):
            break
        # A third more than the share so far promises: small numbers vary.
        needed = seeds * wanted * 4 // (3 * selected) if selected else seeds * GROWTH
        seeds = min(max(needed, seeds + wanted), seeds * GROWTH, most)
    if ended is None:
        ended = run_sample(sample, root, LAST)
    return read_preview(sample, root, wanted), ended


def make_preview_config(config: RunConfig, seeds: int) -> RunConfig:
    """Return the configuration of a preview; of the news so many articles of each source, and of pools nothing."""
    sample = make_sample_config(config, seeds)
    news = config.news.model_copy(update={"per_source": min(seeds, config.news.per_source or seeds)})
    # A few questions cannot have the mix of a whole.
    releases = config.releases.model_copy(update={"search_free": (0.0, 1.0)})
    return sample.model_copy(update={"news": news, "pools": (), "releases": releases})


def _plan(config: RunConfig, root: Path) -> tuple[list[LatestStage], tuple[str, ...]]:
    """Return the stages of a preview that are done, and the names of the others."""
    workspace = Workspace(root.resolve())
    folder = find_built_corpus(config, workspace)
    if folder is None:
        return [], ()
    with closing(Assembly(config, workspace, Corpus.open(folder))) as assembly:
        plans = assembly.plan_stages(LAST)
    done = list(takewhile(lambda plan: plan.folder.read_manifest() is not None, plans))
    return [LatestStage(plan.name, plan.folder) for plan in done], tuple(plan.name for plan in plans[len(done) :])


def read_preview(config: RunConfig, root: Path, wanted: int) -> Preview:
    """Return what the stages of a preview made, with at most so many cards and refused rows."""
    done, missing = _plan(config, root)
    explorer = Explorer(root, done)
    cards, refused = list[Card](), list[Card]()
    checked = [found for found in done if found.stage in CHECKED]
    for found in checked[-1:]:
        # Questions that the teacher answered show the most.
        answered = [scan_rows(each.folder) for each in done if each.stage == LAST]
        order = f"record_id NOT IN (SELECT parent_id FROM {answered[0]}), " if answered else ""
        rows = explorer.ask(f"SELECT record_id FROM {scan_rows(found.folder)} ORDER BY {order}record_id LIMIT {wanted}")
        cards += [make_card(explorer, found.stage, row["record_id"]) for row in rows]
    # The first stage refuses most of a corpus.
    lost = [
        f"SELECT '{found.stage}' AS stage, {place} AS place, record_id, reason "
        f"FROM {scan_rows(found.folder, 'rejected')}"
        for place, found in enumerate(done)
        if place
    ]
    if lost:
        turn = "row_number() OVER (PARTITION BY stage ORDER BY reason, record_id)"
        query = f"FROM ({' UNION ALL '.join(lost)}) ORDER BY {turn}, place DESC LIMIT {wanted}"
        refused += [make_card(explorer, row["stage"], row["record_id"]) for row in explorer.ask(query)]
    return Preview(tuple(cards), tuple(refused), list_funnel(explorer)[0], missing)


def render_preview(preview: Preview) -> Group:
    """Return the cards, then some refused rows, then the counts of each stage."""
    missing = [Text(f"Not done: {', '.join(preview.missing)}.")] if preview.missing else []
    cards = [part for card in (*preview.cards, *preview.refused) for part in render_card(card).renderables]
    return Group(*cards, render_part(preview.funnel), *missing)
