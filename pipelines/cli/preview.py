"""``synth run --preview N``: a few questions go through every stage before the run, and are shown as cards.

A preview is a run of the first seeds, with keys of its own, in the run's own workspace: what it asks of models is
recorded, so the run that follows does not pay for it again, and nothing that an earlier run made is touched. It ends
before releases, which judge a whole. Limits of a whole that selections applies are here those of a few rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pipelines.cli.commands import run_sample
from pipelines.cli.facets import (
    STAGE_MODELS,
    Refusal,
    describe_cell,
    describe_hop,
    make_grid,
    read_refusals,
    shorten_text,
)
from pipelines.cli.plan import find_built_corpus, make_sample_config
from pipelines.cli.yields import StageYield
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, GateNotMet, SynthError
from pipelines.pictures import PictureStore
from pipelines.run.assembly import Assembly
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import read_parts
from pipelines.run.views import LatestStage
from pipelines.run.workspace import Workspace
from schemas.base import Record
from schemas.datasets import Difficulty, Rollout
from schemas.datasets import Path as WalkedPath
from schemas.proofs import Evidence

MOST_SEEDS = 64
"""Seeds that are drawn at most for each question that is wanted."""
GROWTH = 4
"""By how much the seeds grow at most where too few questions came through."""
SELECTED, LAST = "selections", "trajectories"
CHECKED = (SELECTED, "enhancements", "difficulty")
"""Stages whose rows came through every check of a question; the first that is done is shown."""


@dataclass(frozen=True, slots=True)
class Link:
    """A step of a question's chain, and the sentence that says it."""

    step: str
    sentence: str
    where: str
    """Title of the page, or address of the article."""


@dataclass(frozen=True, slots=True)
class Card:
    """A question that came through every check."""

    record_id: str
    split: str
    question: str
    answer: str
    picture: str
    """Path of its file; may be empty."""
    chain: tuple[Link, ...]
    difficulty: tuple[str, ...]
    """For each condition, how many attempts were right."""
    rollouts: int
    trajectories: int
    """How many of these were accepted."""


@dataclass(frozen=True, slots=True)
class RefusedRow(Refusal):
    """A row that a stage refused or that failed there, as it came in."""

    row: str
    """Its text, or what it is about."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What became of a run's first seeds."""

    recipe: str
    seeds: int
    cards: tuple[Card, ...]
    refused: tuple[RefusedRow, ...]
    """At most as many as questions were wanted, of different stages and reasons first."""
    stages: tuple[StageYield, ...]
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
        drawn, found = _count_selected(sample, root)
        if found >= wanted or seeds >= most or drawn < seeds or not isinstance(ended, GateNotMet | None):
            break
        # A third more than the share so far promises: small numbers vary.
        needed = seeds * wanted * 4 // (3 * found) if found else seeds * GROWTH
        seeds = min(max(needed, seeds + wanted), seeds * GROWTH, most)
    if ended is None:
        ended = run_sample(sample, root, LAST)
    return read_preview(sample, root, wanted), ended


def make_preview_config(config: RunConfig, seeds: int) -> RunConfig:
    """Return the configuration of a preview; of the news so many articles of each source, and of pools nothing."""
    sample = make_sample_config(config, seeds)
    news = config.news.model_copy(update={"per_source": min(seeds, config.news.per_source or seeds)})
    # A mix of a whole that a few questions cannot have.
    releases = config.releases.model_copy(update={"search_free": (0.0, 1.0)})
    return sample.model_copy(update={"news": news, "pools": (), "releases": releases})


def _plan(config: RunConfig, root: Path) -> list[PlannedStage]:
    """Return the stages of a preview that are done; none before its corpus is built."""
    workspace = Workspace(root.resolve())
    folder = find_built_corpus(config, workspace)
    if folder is None:
        return []
    with closing(Assembly(config, workspace, Corpus.open(folder))) as assembly:
        return assembly.plan_stages(LAST)


def _count_selected(config: RunConfig, root: Path) -> tuple[int, int]:
    """Return how many rows the first stage and selections made."""
    made = {plan.name: manifest.rows_out for plan in _plan(config, root) if (manifest := plan.folder.read_manifest())}
    return next(iter(made.values()), 0), made.get(SELECTED, 0)


def read_preview(config: RunConfig, root: Path, wanted: int) -> Preview:
    """Return what the stages of a preview made, with at most so many cards and refused rows."""
    plans = _plan(config, root)
    sealed = [(plan, manifest) for plan in plans if (manifest := plan.folder.read_manifest()) is not None]
    done = [plan for plan, _ in sealed]
    rows = {
        plan.name: {row.record_id: row for row in read_parts(plan.folder, STAGE_MODELS[plan.name])} for plan in done
    }
    tried = [row.parent_id for row in rows.get("rollouts", {}).values()]
    accepted = [row.parent_id for row in rows.get(LAST, {}).values()]
    pictures = PictureStore(Workspace(root.resolve()).images)
    cards = [
        replace(
            _make_card(row, pictures), rollouts=tried.count(row.record_id), trajectories=accepted.count(row.record_id)
        )
        for row in next((rows[name] for name in CHECKED if name in rows), {}).values()
        if isinstance(row, Difficulty)
    ]
    # Those that the teacher answered show the most.
    cards.sort(key=lambda card: (not card.trajectories, not card.rollouts))
    return Preview(
        config.recipe,
        config.seeds.limit,
        tuple(cards[:wanted]),
        tuple(_choose_refused(list(_list_refused(done, rows)), wanted)),
        tuple(StageYield.of(manifest) for _, manifest in sealed),
        tuple(plan.name for plan in plans[len(done) :]),
    )


def _make_card(row: Difficulty, pictures: PictureStore) -> Card:
    picture = pictures.path(row.picture.sha256, row.picture.extension) if row.picture else ""
    return Card(
        row.record_id,
        row.split,
        row.text,
        row.answer.surface,
        str(picture),
        tuple(_list_links(row)),
        tuple(f"{cell.condition}: {cell.solver} {describe_cell(cell)}" for cell in row.cells),
        0,
        0,
    )


def _list_links(row: Difficulty) -> Iterator[Link]:
    """Yield the chain from the picture to the answer."""
    if row.trace is not None:
        for quoted in row.trace.links:
            step = f"{quoted.subject} -{quoted.relation}-> {quoted.object}"
            yield Link(step, quoted.evidence.text, quoted.url)
        return
    for hop in row.proof.hops:
        yield _link(describe_hop(hop, row.proof.nodes), hop.evidence)
    if row.proof.nodes:
        asked = f"{row.proof.nodes[-1].title} -{row.proof.answer_relation}-> {row.answer.surface}"
        # A sentence that says it too tells a reader more than the box it was taken from.
        yield _link(asked, row.proof.corroboration or row.proof.answer_evidence)


def _link(step: str, evidence: Evidence) -> Link:
    return Link(step, evidence.text, evidence.title)


def _list_refused(plans: Sequence[PlannedStage], rows: Mapping[str, Mapping[str, Record]]) -> Iterator[RefusedRow]:
    """Yield what stages refused of rows that another stage made: the first one refuses most of a corpus."""
    for plan in plans:
        for refusal in read_refusals(LatestStage(plan.name, plan.folder)) if plan.sources else ():
            came = (rows[source.name].get(refusal.record_id) for source in plan.sources)
            row = next((row for row in came if row is not None), None)
            yield RefusedRow(**asdict(refusal), row=_name_row(row) if row else "")


def _name_row(row: Record) -> str:
    if isinstance(row, Rollout):
        return f"{row.question} - answered: {row.answer or 'nothing'}"
    if isinstance(row, WalkedPath):
        return " > ".join([*(node.title for node in row.nodes), f"{row.answer_relation}?"])
    return str(getattr(row, "text", "") or getattr(row, "title", ""))


def _choose_refused(refused: Sequence[RefusedRow], most: int) -> list[RefusedRow]:
    """Return one row of each stage, the latest stages first, then rows of further reasons, then others."""
    apart: dict[str, dict[str, list[RefusedRow]]] = {}
    for row in reversed(refused):
        apart.setdefault(row.stage, {}).setdefault(row.reason, []).append(row)
    turns = [
        (place, reason, row)
        for reasons in apart.values()
        for reason, rows in enumerate(reasons.values())
        for place, row in enumerate(rows)
    ]
    return [row for *_, row in sorted(turns, key=lambda turn: turn[:2])[:most]]


def render_preview(preview: Preview) -> Group:
    """Return the cards, then what was refused, then the counts of each stage."""
    refused = [
        Panel(make_grid(_list_refused_lines(row)), title=Text(f"{row.kind} by {row.stage}: {row.reason}"))
        for row in preview.refused
    ]
    cards = [
        Panel(make_grid(_list_card_lines(card)), title=Text(f"{number} of {len(preview.cards)} · {card.record_id}"))
        for number, card in enumerate(preview.cards, 1)
    ]
    table = Table("stage", title=f"{preview.recipe}: what became of {preview.seeds:,} seeds")
    for name in ("in", "kept", "rejected", "failed"):
        table.add_column(name, justify="right")
    table.add_column("most refused for")
    for stage in preview.stages:
        lost = sorted(stage.rejected.items(), key=lambda entry: -entry[1])[:3]
        numbers = (stage.rows_in, stage.kept, sum(stage.rejected.values()), stage.failed)
        table.add_row(stage.stage, *(f"{n:,}" for n in numbers), ", ".join(f"{reason} {n:,}" for reason, n in lost))
    missing = [Text(f"Not done: {', '.join(preview.missing)}.")] if preview.missing else []
    return Group(*cards, *refused, table, *missing)


def _list_card_lines(card: Card) -> Iterator[tuple[str, str]]:
    yield "question", card.question
    yield "answer", card.answer
    yield "picture", card.picture or "none"
    for number, link in enumerate(card.chain, 1):
        yield f"step {number}", link.step
        yield "", f"“{shorten_text(link.sentence)}” ({link.where})"
    for cell in card.difficulty:
        yield "difficulty", cell
    yield "teacher", f"{card.trajectories} of {card.rollouts} attempts accepted, split {card.split}"


def _list_refused_lines(row: RefusedRow) -> Iterator[tuple[str, str]]:
    yield "row", row.row or row.record_id
    yield "seen", row.detail or row.reason
    yield "id", row.record_id
