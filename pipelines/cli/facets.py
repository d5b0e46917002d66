"""Records of a workspace's latest stages, and what a reader sees of each: labelled lines, and what a reason means."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
from rich.table import Table
from rich.text import Text

from pipelines.release.card import find_cards
from pipelines.run.shards import read_parts
from pipelines.run.views import LatestStage, list_latest
from schemas.base import Record
from schemas.datasets import (
    Anchor,
    Article,
    Bridge,
    Cell,
    Certificate,
    Depiction,
    Difficulty,
    Enhancement,
    Grounding,
    Origin,
    Picture,
    Question,
    ReleaseEntry,
    Rewrite,
    Rollout,
    Scene,
    Seed,
    Trajectory,
    Trial,
)
from schemas.datasets import Path as WalkedPath
from schemas.proofs import UNCOUNTED, Branch, Evidence, Hop, PathNode, Proof, Resolution, Thresholds, Trace

Lines = Iterator[tuple[str, str]]
LONGEST = 400
NAMED_MISSES = 5
AGREEMENTS = {
    "required": "a sentence says the answer too",
    "uncontradicted": "no sentence says another answer",
}


def describe_record(record: Record) -> list[tuple[str, str]]:
    """Return labelled lines of a record; an unknown kind of record shows its fields."""
    for kind, describe in DESCRIBERS:
        if isinstance(record, kind):
            return [("parent", record.parent_id), *describe(record)]
    return [(name, shorten_text(str(value))) for name, value in record.model_dump().items()]


def shorten_text(text: str, limit: int = LONGEST) -> str:
    """Return text of at most ``limit`` characters, cut with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def describe_hop(hop: Hop, nodes: tuple[PathNode, ...]) -> str:
    """Return a hop by titles in path order; the arrow leaves the page that states it.

    ``Kelm Bridge -architect-> Mira Tolland`` leads forward, ``Ostrava <-birth_place- Mira Tolland`` backward.
    """
    titles = {node.page_id: node.title for node in nodes}
    subject, target = titles[hop.subject_id], titles[hop.object_id]
    said = hop.gloss or hop.relation
    return f"{target} <-{said}- {subject}" if hop.backward else f"{subject} -{said}-> {target}"


def describe_branch(proof: Proof, branch: Branch) -> str:
    """Return a fact beside the chain by titles, and how the question hides the entity that it leads to."""
    said = "named" if branch.named else f"hidden as {branch.descriptor!r}"
    return f"{proof.entities[branch.host].title} -{branch.relation}-> {branch.node.title} ({said})"


def describe_evidence(evidence: Evidence) -> str:
    """Return a span with its page, revision and offsets; a statement with its property."""
    if evidence.kind == "statement":
        return f"{evidence.text}  (Wikidata on {evidence.title}, {evidence.key})"
    where = f"{evidence.title}, revision {evidence.revision}, {evidence.start}-{evidence.end}"
    return f"{shorten_text(evidence.text)}  ({where})"


def describe_picture(picture: Picture | None) -> str:
    """Return a picture's file, size, author, licence and source."""
    if picture is None:
        return "none"
    size = f"{picture.width}x{picture.height}"
    return f"{picture.file}, {size}, {picture.author}, {picture.licence}, {picture.source_url}, {picture.sha256}"


def describe_origin(origin: Origin) -> str:
    """Return where a question without a proof comes from, and its licence."""
    shown = f", shows {origin.entity}" if origin.entity else ""
    licence = origin.licence or "licence unknown"
    return f"no proof: row {origin.row} of the pool {origin.pool}{shown}, {licence}, {origin.source or 'no address'}"


def describe_proof(proof: Proof) -> Lines:
    """Yield chain and branches with their evidence, what the question says of each node, and counts with thresholds."""
    for hop in proof.hops:
        yield f"hop {hop.index}", describe_hop(hop, proof.nodes)
        yield "", describe_evidence(hop.evidence)
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        yield f"branch {number}", describe_branch(proof, branch)
        yield "", describe_evidence(branch.evidence)
        if branch.quote is not None:
            yield "", describe_evidence(branch.quote)
    part = f", only the {proof.derivation}" if proof.derivation else ""
    yield "asks for", f"{proof.answer_relation} of {proof.nodes[-1].title}{part}"
    yield "", describe_evidence(proof.answer_evidence)
    if proof.corroboration is not None:
        yield "confirmed by", describe_evidence(proof.corroboration)
    if proof.compared_snapshot:
        yield "also true in", f"the dump of {proof.compared_snapshot}"
    yield from list_told(proof)
    for count in proof.counts:
        bound = "at least " if count.capped else ""
        yield f"count {count.name}", f"{bound}{count.value} at node {count.node} ({proof.entities[count.node].title})"
    yield from list_near_misses(proof)
    if proof.thresholds != UNCOUNTED:
        yield "had to reach", describe_thresholds(proof.thresholds)
    if proof.shortcuts_checked:
        yield "shorter paths", "looked for and ruled out"


def list_told(proof: Proof) -> Lines:
    """Yield what the question says of each node beside its place in the chain; redundant facts are marked."""
    for place, node in enumerate(proof.entities):
        told = [
            f"{fact.relation} = {fact.value}{' (redundant)' if fact in proof.redundant else ''}"
            for fact in proof.constraints
            if fact.node == place
        ]
        if told:
            yield "told", f"{node.title}: {'; '.join(told)}"


def list_near_misses(proof: Proof) -> Lines:
    """Yield how many entities were looked up in their articles for each node, by what these say, and the first of them.

    In brackets stand the relations that an entity's infobox leaves open.
    """
    for place, node in enumerate(proof.entities):
        for resolution in get_args(Resolution):
            misses = [miss for miss in proof.near_misses if (miss.node, miss.resolution) == (place, resolution)]
            if misses:
                named = "; ".join(f"{miss.title} ({', '.join(miss.unknown)})" for miss in misses[:NAMED_MISSES])
                more = f"; {len(misses) - NAMED_MISSES} more" if len(misses) > NAMED_MISSES else ""
                yield "near misses", f"{node.title}: {len(misses)} {resolution}: {named}{more}"


def describe_thresholds(thresholds: Thresholds) -> str:
    """Return what a proof's counts had to reach, and which further checks were made."""
    parts = [f"R_alone {thresholds.alone_first} at the first hidden node, {thresholds.alone} later"]
    if thresholds.answers:
        parts.append(f"N_img {thresholds.answers}")
    if thresholds.near_misses:
        parts.append(f"at most {thresholds.near_misses} near misses a node, all refuted")
    if thresholds.answer_share < 1.0:
        parts.append(f"answer at most {thresholds.answer_share:.1%} of its relation")
    if thresholds.retrieval_rank:
        parts.append(f"page not among the first {thresholds.retrieval_rank} of one search")
    if thresholds.agreement != "off":
        parts.append(AGREEMENTS[thresholds.agreement])
    if not thresholds.volatile:
        parts.append("nothing that changes with time")
    return "; ".join(parts)


def describe_step(step: Certificate) -> str:
    """Return which entity a step hid behind what, in which round of injection, and what was counted."""
    counts = [f"{step.chain_count} in the chain", f"{step.alone_count} alone"]
    if step.near_misses:
        counts.append(f"{step.near_misses} near misses looked up")
    round_number = f"round {step.round}: " if step.round else ""
    return f"{round_number}{step.name} as {step.descriptor!r} ({', '.join(counts)})"


def _describe_seed(seed: Seed) -> Lines:
    yield "entity", f"{seed.title} ({seed.type}, {seed.domain}), {seed.qid}, {seed.in_degree} articles link here"
    yield "split", seed.split
    if seed.concept:
        asked = "its name" if seed.asks == "visual" else "a fact of it"
        yield (
            "concept",
            f"{seed.concept}, of the list's {seed.band}, frequency {seed.frequency:,}; {asked} is asked for",
        )


def _describe_path(path: WalkedPath) -> Lines:
    for hop in path.hops:
        yield f"hop {hop.index}", describe_hop(hop, path.nodes)
        yield "", describe_evidence(hop.evidence)
    yield "asks for", f"{path.answer_relation} of {path.nodes[-1].title}: {path.answer_text}"
    yield "walks", str(path.walks)
    if path.marks is not None:
        marks = path.marks
        given = ", ".join(
            f"{name} {getattr(marks, name)}" for name in ("interest", "naturalness", "determinacy", "need")
        )
        yield "marked", f"{given}: {marks.reason}"


def _describe_question(question: Question) -> Lines:
    yield "canonical", question.text
    yield "answer", f"{question.answer.surface} ({question.answer.type}, {question.answer.value})"


def _describe_rewrite(rewrite: Rewrite) -> Lines:
    yield "question", rewrite.text
    for step in rewrite.certificates:
        yield "hides", describe_step(step)
        yield "", step.text_after
        tried = [f"{candidate.descriptor!r}: {candidate.verdict}" for candidate in step.candidates]
        yield "", "tried " + "; ".join(tried)


def _describe_grounding(grounding: Grounding) -> Lines:
    yield "question", grounding.text
    also = f", also {', '.join(grounding.answer.aliases)}" if grounding.answer.aliases else ""
    yield "answer", f"{grounding.answer.surface} ({grounding.answer.type}){also}"
    yield "split", grounding.split
    yield "picture", describe_picture(grounding.picture)
    if grounding.depiction is not None:
        yield "chosen", describe_depiction(grounding.depiction)
    if grounding.origin is not None:
        yield "from outside", describe_origin(grounding.origin)
    if grounding.trace is not None:
        yield from describe_trace(grounding.trace)
    elif grounding.proof.nodes:
        yield from describe_proof(grounding.proof)


def describe_trace(trace: Trace) -> Lines:
    """Yield the reasoning of a question about the news, the spans that it quotes, and who found it sound."""
    for step in trace.steps:
        yield "step", step
    for link in trace.links:
        yield "quoted", f"{link.source}, {link.published}, <{link.url}>"
        yield "", describe_evidence(link.evidence)
    yield "decided by", f"{trace.decided_by} {trace.decided_on}".strip()


def _describe_difficulty(difficulty: Difficulty) -> Lines:
    yield from _describe_grounding(difficulty)
    for cell in difficulty.cells:
        interval = f"95% {cell.low:.2f}-{cell.high:.2f}"
        solved = f"{describe_cell(cell)} correct, {cell.unscored} unscored, {interval}"
        yield cell.condition, f"{cell.solver}: {solved}{f', {cell.day}' if cell.day else ''}"
    if difficulty.search_need:
        yield "needs", difficulty.search_need
    if difficulty.knowledge:
        yield "knowledge", difficulty.knowledge
    yield "standing", difficulty.standing
    if difficulty.swapped_with:
        yield "swapped with", f"the picture of {difficulty.swapped_with}"
    if difficulty.left_out:
        yield "left out", ", ".join(difficulty.left_out)
    for other in difficulty.alternatives:
        yield "also given", f"{shorten_text(other.text)!r} {other.times} times, refuted"


def _describe_enhancement(enhancement: Enhancement) -> Lines:
    yield from _describe_difficulty(enhancement)
    if enhancement.trial is not None:
        yield "degraded", describe_trial(enhancement.trial)
        yield "before", describe_picture(enhancement.original)
    if enhancement.scene is not None:
        yield "scene", describe_scene(enhancement.scene)
        yield "before", describe_picture(enhancement.original)
    if enhancement.left_whole:
        yield "not degraded", enhancement.left_whole


def describe_depiction(depiction: Depiction) -> str:
    """Return why a picture stands for its anchor, and how easily it is seen through."""
    parts = [f"best of {depiction.candidates} ({depiction.source}) by {depiction.ranker}, score {depiction.score:.2f}"]
    if depiction.margin is not None:
        parts.append(f"{depiction.margin:+.3f} over {depiction.distractors} distractors")
    if depiction.depicts is not None:
        parts.append(f"Commons says it {'depicts it' if depiction.depicts else 'depicts something else'}")
    if depiction.ease:
        at_training = "" if depiction.ease == depiction.ease_at_training else f", {depiction.ease_at_training} small"
        parts.append(f"{depiction.ease} to look up{at_training}")
    if depiction.text:
        parts.append(f"reads {shorten_text(' / '.join(depiction.text), 80)!r}")
    return "; ".join(parts)


def describe_scene(scene: Scene) -> str:
    """Return where a question's picture lies in a scene, and what was measured there."""
    box = ", ".join(map(str, scene.box))
    seen = f"a search by the whole at {scene.training_pixels:,} pixels {'finds' if scene.whole else 'misses'} it"
    part = f"by the part {'finds' if scene.cropped else 'misses'} it"
    return f"{scene.share:.1%} of the area at [{box}], among {len(scene.parts)} others; {seen}, {part}"


def describe_trial(trial: Trial) -> str:
    """Return how a picture was degraded, what repairs it and what showed that."""
    numbers = ", ".join(f"{parameter.name} {parameter.value:g}" for parameter in trial.parameters)
    strength = f"{trial.degradation} of strength {trial.strength:g} ({numbers})"
    return f"{strength}, repaired by {trial.repair}, as {trial.test} shows"


def describe_cell(cell: Cell) -> str:
    """Return how many attempts were right, and how many were planned where fewer were made: ``1 of 2 (8 planned)``."""
    planned = f" ({cell.planned} planned)" if cell.planned > cell.attempts else ""
    return f"{cell.correct} of {cell.attempts}{planned}"


def _describe_rollout(rollout: Rollout) -> Lines:
    yield "attempt", f"{rollout.attempt} by {rollout.teacher} in {rollout.dialect}, stopped: {rollout.stop_reason}"
    if rollout.fatal_begins is not None:
        yield "fatal", f"errors begin at step {rollout.fatal_begins} and are fatal at step {rollout.fatal_reached}"
    for number, step in enumerate(rollout.steps, 1):
        yield f"turn {number}", shorten_text(step.thought)
        if step.tool:
            yield "", f"{step.tool} {shorten_text(step.arguments)}"
        if step.observation is not None:
            outcome = step.observation.error or shorten_text(step.observation.text)
            flags = f" (contaminated: {', '.join(step.observation.flags)})" if step.observation.flags else ""
            yield "", f"-> {outcome}{flags}"
    yield "answer", f"{rollout.answer} (reference {rollout.reference.surface})"


def _describe_trajectory(trajectory: Trajectory) -> Lines:
    yield from _describe_rollout(trajectory)
    yield "verdict", f"{trajectory.verdict} by {trajectory.decided_by}"
    yield "length", f"{trajectory.tokens:,} tokens when trained on"
    if trajectory.process is not None:
        marks = trajectory.process
        yield "process", f"{marks.score:.2f} of 5 by {marks.judge}"
    for support in trajectory.supports:
        yield "seen", f"{support.what}: step {support.step}, characters {support.start}-{support.end}"


def _describe_article(article: Article) -> Lines:
    yield "article", f"{article.title} ({article.source}, {article.published}) <{article.url}>"
    yield "caption", article.caption


def _describe_anchor(anchor: Anchor) -> Lines:
    yield from _describe_article(anchor)
    yield "shows", f"{anchor.name} ({anchor.kind})"
    yield "", describe_evidence(anchor.evidence)
    yield "split", anchor.split


def _describe_bridge(bridge: Bridge) -> Lines:
    yield "question", bridge.text
    yield "answer", bridge.answer.surface
    yield "reasoning", f"{bridge.verdict}: {bridge.remark}"
    yield from describe_trace(bridge.trace)


def _describe_entry(entry: ReleaseEntry) -> Lines:
    yield "row of", f"{entry.dataset}, split {entry.split}"
    if entry.trajectory_id:
        yield "trajectory", entry.trajectory_id


DESCRIBERS: tuple[tuple[type[Record], Callable[..., Lines]], ...] = (
    (Enhancement, _describe_enhancement),
    (Difficulty, _describe_difficulty),
    (Grounding, _describe_grounding),
    (Trajectory, _describe_trajectory),
    (Rollout, _describe_rollout),
    (Rewrite, _describe_rewrite),
    (Question, _describe_question),
    (WalkedPath, _describe_path),
    (Seed, _describe_seed),
    (Anchor, _describe_anchor),
    (Article, _describe_article),
    (Bridge, _describe_bridge),
    (ReleaseEntry, _describe_entry),
)
"""Narrower kinds first: an Enhancement is a Difficulty, a Difficulty a Grounding, a Trajectory a Rollout."""


STAGE_MODELS: Mapping[str, type[Record]] = {
    "seeds": Seed,
    "paths": WalkedPath,
    "questions": Question,
    "rewrites": Rewrite,
    "articles": Article,
    "anchors": Anchor,
    "bridges": Bridge,
    "groundings": Grounding,
    "pools": Grounding,
    "mixtures": Grounding,
    "difficulty": Difficulty,
    "enhancements": Enhancement,
    "selections": Enhancement,
    "rollouts": Rollout,
    "trajectories": Trajectory,
    "releases": ReleaseEntry,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused or failed row."""

    stage: str
    record_id: str
    kind: str
    """``rejected`` or ``failed``."""
    reason: str
    detail: str


def read_stage(root: Path, stage: str) -> Iterator[Record]:
    """Yield the kept rows of a stage's latest sealed output; nothing without one."""
    for found in list_latest(root):
        if found.stage == stage and stage in STAGE_MODELS:
            yield from read_parts(found.folder, STAGE_MODELS[stage])


def read_refusals(found: LatestStage) -> Iterator[Refusal]:
    """Yield what a stage refused, then what failed in it."""
    for kind, column in (("rejected", "reason"), ("failed", "error")):
        for path in sorted(found.folder.path.glob(f"{kind}-*.parquet")):
            for row in pq.read_table(path, columns=["record_id", column, "detail"]).to_pylist():
                yield Refusal(found.stage, row["record_id"], kind, row[column], row["detail"])


@cache
def read_glossary() -> dict[str, str]:
    """Return a sentence for each reason."""
    told = tomllib.loads((find_cards() / "docs" / "reasons.toml").read_text(encoding="utf-8"))
    return {reason: entry["means"] for reason, entry in told.items()}


def explain_reason(reason: str) -> str:
    """Return what a reason means; empty for another word, such as the name of an error."""
    return read_glossary().get(reason, "")


def make_grid(lines: Iterable[tuple[str, str]]) -> Table:
    """Return labelled lines as they are printed; all text is shown as text, never as markup."""
    grid = Table.grid(padding=(0, 2))
    for label, text in lines:
        grid.add_row(Text(label, style="dim"), Text(text, overflow="fold"))
    return grid
