"""One row as everything that looks at rows shows it: the local page, the page to send, ``explain`` and the preview."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Group
from rich.table import Table
from rich.text import Text

from pipelines.cli.view.queries import Explorer, Relative, Row
from pipelines.errors import ConfigError
from pipelines.pictures import PictureStore
from pipelines.release.card import find_cards
from schemas.base import Record
from schemas.datasets import Bridge, Difficulty, Enhancement, Grounding, Picture, Question, Rewrite, Rollout, Trajectory
from schemas.datasets import Path as WalkedPath
from schemas.proofs import Evidence, Hop, PathNode, Proof, ReadFact, Reading, Trace

LONGEST = 1500
MOST_RELATIVES = 400
SHOWN_CANDIDATES = 8
COUNTED = {
    "chain": "R_chain: fit within the chain",
    "alone": "R_alone: fit the words alone",
    "anchors": "anchors tried",
    "answers": "N_img: answers over the anchors",
    "gold": "anchors with this answer",
}
Asked = Question | Rewrite | Grounding | Bridge


@dataclass(frozen=True, slots=True)
class Part:
    """A table about a row."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    links: tuple[str, ...] = ()
    """Address in the view that the first cell of each row leads to."""


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture, its file in the workspace and its credit."""

    label: str
    sha256: str
    file: str
    credit: str


@dataclass(frozen=True, slots=True)
class Card:
    """What there is to see of a row, kept or refused; of a refused one, of the row that came in."""

    stage: str
    record_id: str
    outcome: str
    """``kept``, or why the stage refused the row or failed over it."""
    meaning: str
    """Of the reason."""
    detail: str
    """What the check saw."""
    question: str
    answer: str
    pictures: tuple[ShownPicture, ...]
    parts: tuple[Part, ...]
    releases: tuple[str, ...]
    """``dataset/version`` of each release that holds a row of its line."""
    record: Mapping[str, Any]
    """All that is stored."""

    def render_record(self) -> str:
        """Return all that is stored as JSON."""
        return json.dumps(self.record, ensure_ascii=False, indent=1, default=str)


def explain_record(root: Path, prefix: str) -> Card:
    """Return the row whose id begins with a prefix, as the last stage that had it left it.

    Raises:
        ConfigError: if no row begins so, or several do.
    """
    explorer = Explorer(root)
    found = explorer.find_ids(prefix)
    if prefix not in found and len(found) != 1:
        if not found or not prefix:
            raise ConfigError(
                f"explain: no record of {explorer.root} begins with {prefix!r}; ids look like rollout-0a1b2c3d"
            )
        shown = ", ".join(found[:SHOWN_CANDIDATES])
        raise ConfigError(f"explain: {len(found)} records begin with {prefix!r}; give more of one of: {shown}")
    chosen = prefix if prefix in found else found[0]
    stages = [relative.stage for relative in explorer.trace_line(chosen) if relative.record_id == chosen]
    return make_card(explorer, stages[-1], chosen)


def make_card(explorer: Explorer, stage: str, record_id: str) -> Card:
    """Return one row of a stage.

    Raises:
        ConfigError: if the stage has no such row.
    """
    line = explorer.trace_line(record_id)
    own = [relative for relative in line if relative.record_id == record_id]
    # A question may be kept by a stage and refused by the next under the same id.
    here = next((relative for relative in own if relative.stage == stage), None)
    if here is None:
        raise ConfigError(f"{stage} has no row {record_id!r}")
    kept = [relative.stage for relative in own[: own.index(here) + 1] if relative.outcome == "kept"]
    record = explorer.find_record(kept[-1], record_id) if kept else None
    asked = _find_asked(explorer, record, line)
    return Card(
        stage=stage,
        record_id=record_id,
        outcome=here.outcome,
        meaning="" if here.outcome == "kept" else explain_reason(here.outcome),
        detail=here.detail,
        question=asked.text if asked else "",
        answer=asked.answer.surface if asked else "",
        pictures=tuple(_list_pictures(explorer, record, asked)),
        parts=tuple(part for part in _list_parts(explorer, record, asked, line) if part.rows),
        releases=tuple(explorer.find_holding([relative.record_id for relative in line])),
        record=dump(record),
    )


def dump(record: Record | Row | None) -> Row:
    """Return a row's values by name."""
    return record.model_dump(mode="json") if isinstance(record, Record) else record or {}


def _find_asked(explorer: Explorer, record: object, line: Sequence[Relative]) -> Asked | None:
    """Return the question that a row is, or that a rollout or a release's row is about."""
    if isinstance(record, Asked):
        return record
    for relative in reversed(line):
        if relative.record_id == getattr(record, "parent_id", "") and relative.outcome == "kept":
            found = explorer.find_record(relative.stage, relative.record_id)
            return found if isinstance(found, Asked) else None
    return None


def _list_pictures(explorer: Explorer, record: object, asked: object) -> Iterator[ShownPicture]:
    pictures = list[tuple[str, Picture]]()
    if isinstance(asked, Enhancement) and asked.original is not None:
        pictures.append(("before", asked.original))
    if isinstance(asked, Grounding | Bridge) and asked.picture is not None:
        trial = asked.trial if isinstance(asked, Enhancement) else None
        pictures.append((trial.degradation if trial else "the picture", asked.picture))
    if isinstance(record, Rollout):
        pictures += [(image.id, image.picture) for image in record.images[1:]]
    store = PictureStore(explorer.root / "images")
    for label, picture in pictures:
        credit = f"{picture.file}, {picture.width}x{picture.height}, {picture.author}, {picture.licence}"
        yield ShownPicture(label, picture.sha256, str(store.path(picture.sha256, picture.extension)), credit)


def _list_parts(
    explorer: Explorer, record: Record | Row | None, asked: Asked | None, line: Sequence[Relative]
) -> Iterator[Part]:
    if isinstance(record, Rollout):
        head = ("step", "thought", "call", "observation")
        yield Part("Trajectory", head, tuple(_list_steps(record)))
    if isinstance(record, Trajectory):
        yield Part("Where each name was seen", ("name", "step", "words"), tuple(_list_seen(record)))
    path = asked if asked is not None else record
    yield Part("Path", ("step", "entity", "in the question", "evidence"), tuple(list_path(path)))
    if isinstance(asked, Question | Rewrite | Grounding):
        yield Part("Counts", ("what", "entity", "found", "needed"), tuple(_list_counts(asked.proof)))
    if isinstance(asked, Grounding) and asked.reading:
        title = f"Proof, and what {asked.reading.reader} read in the text alone"
        yield Part(title, ("part", "proof", "reading"), tuple(compare_reading(asked.proof, asked.reading)))
    rewrites = [relative for relative in line if relative.stage == "rewrites" and relative.outcome == "kept"]
    rewrite = explorer.find_record("rewrites", rewrites[0].record_id) if rewrites else None
    if isinstance(rewrite, Rewrite):
        hidden = tuple((step.name, step.descriptor, step.text_after) for step in rewrite.certificates)
        yield Part("How names were hidden", ("name", "hidden as", "text"), hidden)
    if isinstance(asked, Difficulty):
        cells = tuple(
            (cell.condition, cell.solver, count_right(cell), str(cell.unscored), f"{cell.low:.2f}-{cell.high:.2f}")
            for cell in asked.cells
        )
        yield Part("Attempts", ("given", "solver", "right", "unscored", "95%"), cells)
    if asked is not None:
        tried = explorer.list_rollouts(asked.record_id)
        rows = tuple((str(row["attempt"]), row["answer"], row["stop_reason"], row["outcome"]) for row in tried)
        places = tuple(link_row(row["stage"], row["record_id"]) for row in tried)
        yield Part("Rollouts", ("attempt", "answer", "ended", "outcome"), rows, places)
    if isinstance(asked, Grounding) and asked.trace is not None:
        yield Part("Reasoning", ("step",), tuple((step,) for step in asked.trace.steps))
    if not isinstance(record, Rollout):
        fields = dump(record) | dict(getattr(record, "origin", None) or {})
        plain = tuple((name, str(value)) for name, value in fields.items() if value and isinstance(value, str | int))
        yield Part("Row", ("field", "value"), plain)
    yield Part(
        "Lineage",
        ("row", "stage", "outcome", "what the check saw"),
        tuple((each.record_id, each.stage, each.outcome, each.detail) for each in line[:MOST_RELATIVES]),
        tuple(link_row(each.stage, each.record_id) for each in line[:MOST_RELATIVES]),
    )


def link_row(stage: str, record_id: str) -> str:
    """Return the address of a row in the view."""
    return f"/row/{quote(stage, safe='')}/{quote(record_id, safe='')}"


def list_path(record: object) -> Iterator[tuple[str, str, str, str]]:
    """Yield a path from the picture to the answer: the step, where it leads, how it is hidden, and what proves it.

    The arrow leaves the page that states the relation: that of a backward hop points back along the path.
    """
    if isinstance(record, WalkedPath):
        yield from _follow_chain(record.nodes, record.hops, ())
        asked = record.answer_gloss or record.answer_relation
        yield f"{asked} →", record.answer_text, "the answer", quote_evidence(record.answer_evidence)
    elif isinstance(record, Grounding | Bridge) and record.trace is not None:
        yield from _follow_trace(record.trace)
    elif isinstance(record, Question | Rewrite | Grounding) and record.proof.nodes:
        proof = record.proof
        yield from _follow_chain(proof.nodes, proof.hops, proof.descriptors)
        for branch in proof.branches:
            said = "named" if branch.named else f"hidden as “{branch.descriptor}”"
            step = f"{proof.entities[branch.host].title}: {branch.relation} →"
            yield step, branch.node.title, said, quote_evidence(branch.quote or branch.evidence)
        asked = f"{proof.answer_gloss or proof.answer_relation} →"
        yield asked, record.answer.surface, "the answer", quote_evidence(proof.answer_evidence)
        if proof.corroboration is not None:
            yield "confirmed by", record.answer.surface, "", quote_evidence(proof.corroboration)


def _follow_chain(
    nodes: Sequence[PathNode], hops: Sequence[Hop], descriptors: Sequence[str]
) -> Iterator[tuple[str, str, str, str]]:
    yield "begins at", nodes[0].title, nodes[0].type, ""
    for hop, node, descriptor in zip(hops, nodes[1:], descriptors or [""] * len(hops), strict=False):
        relation = hop.gloss or hop.relation
        said = f"{node.type}, hidden as “{descriptor}”" if descriptor else node.type
        yield f"← {relation}" if hop.backward else f"{relation} →", node.title, said, quote_evidence(hop.evidence)


def _follow_trace(trace: Trace) -> Iterator[tuple[str, str, str, str]]:
    yield "begins at", trace.anchor, trace.anchor_kind, quote_evidence(trace.anchor_evidence)
    for link in trace.links:
        yield f"{link.relation} →", link.object, f"{link.source}, {link.published}", quote_evidence(link.evidence)
    yield "decided by", f"{trace.decided_by} {trace.decided_on}".strip(), "", ""


def quote_evidence(evidence: Evidence) -> str:
    """Return a span with its page, revision and offsets; a statement of Wikidata with its property."""
    if evidence.kind == "statement":
        return f"{evidence.text} (Wikidata on {evidence.title}, {evidence.key})"
    place = f"{evidence.title}, revision {evidence.revision}, {evidence.start}-{evidence.end}"
    return f"“{cut(evidence.text)}” ({place})"


def cut(text: str, limit: int = LONGEST) -> str:
    """Return text of at most so many characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def count_right(cell: Any) -> str:  # noqa: ANN401 - a Cell
    """Return how many attempts were right, and how many were planned where fewer were made."""
    planned = f" ({cell.planned} planned)" if cell.planned > cell.attempts else ""
    return f"{cell.correct} of {cell.attempts}{planned}"


def _list_counts(proof: Proof) -> Iterator[tuple[str, str, str, str]]:
    needed = {"answers": proof.thresholds.answers}
    for count in proof.counts:
        least = proof.thresholds.require_alone(count.node) if count.name == "alone" else needed.get(count.name, 0)
        value = f"{'≥' if count.capped else ''}{count.value:,}"
        yield COUNTED[count.name], proof.entities[count.node].title, value, f"≥{least}" if least else ""


def compare_reading(proof: Proof, reading: Reading) -> Iterator[tuple[str, str, str]]:
    """Yield what each step is, what the proof says of it, and what the reader understood."""
    titles = {node.page_id: node.title for node in proof.entities}
    for number, (hop, read) in enumerate(zip_longest(proof.hops, reading.hops), 1):
        proved = f"{titles[hop.subject_id]} -{hop.gloss or hop.relation}-> {titles[hop.object_id]}" if hop else "—"
        said = f"{read.statement or 'no statement'}{', backward' if read.backward else ''}" if read else "—"
        yield f"hop {number}", proved, f"{said}: “{read.words}”" if read else said
    left = {(fact.node, fact.statement or "type"): fact for fact in reading.facts}
    for fact in proof.constraints:
        named = fact.relation.replace("_", " ")
        redundant = " (narrows nothing)" if fact in proof.redundant else ""
        told = f"{proof.entities[fact.node].title}: {named} = {fact.value}{redundant}"
        yield "fact", told, _tell_fact(left.pop((fact.node, named), None))
    for branch, other in zip_longest(proof.branches, left.values()):
        told = (
            f"{titles[proof.entities[branch.host].page_id]}: {branch.relation} = {branch.node.title}" if branch else "—"
        )
        yield "fact", told, _tell_fact(other)
    yield "asked for", proof.answer_relation, f"{reading.asked or 'no statement'} {reading.form}".strip()
    if reading.unsure or reading.instruction:
        yield "doubts", "", f"{reading.unsure} {reading.instruction}".strip()


def _tell_fact(fact: ReadFact | None) -> str:
    return f"{fact.statement or 'type'} = {fact.value}: “{fact.words}”" if fact else "not read as a fact of its own"


def _list_steps(rollout: Rollout) -> Iterator[tuple[str, str, str, str]]:
    for number, step in enumerate(rollout.steps, 1):
        seen = step.observation
        flags = [f"contaminated: {flag}" for flag in seen.flags] if seen else []
        told = [seen.error, seen.warning, *flags, cut(seen.text), *seen.images] if seen else []
        call = f"{step.tool} {cut(step.arguments)}" if step.tool else ""
        yield str(number), step.thought or step.reply, call, "\n".join(filter(None, told))
    ended = f"{rollout.stop_reason}; {rollout.failure}" if rollout.failure else rollout.stop_reason
    judged = f", {rollout.verdict} by {rollout.decided_by}" if isinstance(rollout, Trajectory) else ""
    yield "end", f"answer: {rollout.answer or 'none'}{judged}", ended, f"reference: {rollout.reference.surface}"


def _list_seen(trajectory: Trajectory) -> Iterator[tuple[str, str, str]]:
    for support in trajectory.supports:
        seen = trajectory.steps[support.step].observation
        if seen is not None:
            before, after = max(0, support.start - 60), support.end + 60
            words = f"{seen.text[before : support.start]}[{seen.text[support.start : support.end]}]"
            yield support.what, str(support.step + 1), f"{words}{seen.text[support.end : after]}"


@cache
def read_glossary() -> dict[str, str]:
    """Return a sentence for each reason."""
    told = tomllib.loads((find_cards() / "docs" / "reasons.toml").read_text(encoding="utf-8"))
    return {reason: entry["means"] for reason, entry in told.items()}


def explain_reason(reason: str) -> str:
    """Return what a reason means; empty for another word, such as the name of an error."""
    return read_glossary().get(reason, "")


def list_funnel(explorer: Explorer) -> tuple[Part, Part]:
    """Return the counts of each stage, and the reasons of its refusals with their meaning."""
    counts, reasons, links = list[tuple[str, ...]](), list[tuple[str, ...]](), list[str]()
    for row in explorer.read_funnel():
        stage, rejected = row["stage"], row["rejected"]
        numbers = (row["rows_in"], row["kept"], sum(rejected.values()), row["failed"])
        counts.append((stage, *(f"{number:,}" for number in numbers)))
        for reason, number in sorted(rejected.items(), key=lambda entry: -entry[1]):
            reasons.append((reason, stage, f"{number:,}", explain_reason(reason)))
            links.append("" if stage == "corpus" else f"/?stage={stage}&kind=rejected&reason={quote(reason)}")
    head = ("stage", "in", "kept", "rejected", "failed")
    told = ("reason", "stage", "rows", "meaning")
    return Part("Funnel", head, tuple(counts)), Part("Reasons", told, tuple(reasons), tuple(links))


def render_part(part: Part) -> Table:
    """Return a table of a terminal."""
    table = Table(*part.head, title=part.title, show_edge=False)
    for row in part.rows:
        table.add_row(*row)
    return table


def render_card(card: Card) -> Group:
    """Return a row as text."""
    refused = "" if card.outcome == "kept" else f": {card.outcome}. {card.meaning}"
    head = Table.grid(padding=(0, 2))
    for label, text in (
        (card.record_id, f"{'kept' if card.outcome == 'kept' else 'refused'} by {card.stage}{refused}"),
        ("the check saw", card.detail),
        ("question", card.question),
        ("answer", card.answer),
        *((picture.label, f"{picture.file} ({picture.credit})") for picture in card.pictures),
        ("released in", ", ".join(card.releases) or "no release"),
    ):
        if text:
            head.add_row(Text(label, style="bold"), Text(text, overflow="fold"))
    return Group(head, *(part for each in card.parts for part in ("", render_part(each))), "")
