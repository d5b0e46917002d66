"""What a reader wants to see of each record: labelled lines of plain text."""

from collections.abc import Callable, Iterator

from schemas.base import Record
from schemas.difficulty import Difficulty
from schemas.groundings import Grounding, Picture
from schemas.paths import Path
from schemas.proofs import Evidence, Hop, PathNode, Proof
from schemas.questions import Question
from schemas.releases import ReleaseEntry
from schemas.rewrites import Rewrite
from schemas.rollouts import Rollout
from schemas.seeds import Seed
from schemas.trajectories import Trajectory

Lines = Iterator[tuple[str, str]]
LONGEST = 400


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
    """Return a hop by titles, such as ``Kelm Bridge -architect-> Mira Tolland``."""
    titles = {node.page_id: node.title for node in nodes}
    return f"{titles[hop.subject_id]} -{hop.relation}-> {titles[hop.object_id]}"


def describe_evidence(evidence: Evidence) -> str:
    """Return a span with its page, revision and offsets."""
    where = f"{evidence.title}, revision {evidence.revision}, {evidence.start}-{evidence.end}"
    return f"{shorten_text(evidence.text)}  ({where})"


def describe_picture(picture: Picture | None) -> str:
    """Return a picture's file, size, author, licence and source."""
    if picture is None:
        return "none"
    size = f"{picture.width}x{picture.height}"
    return f"{picture.file}, {size}, {picture.author}, {picture.licence}, {picture.source_url}, {picture.sha256}"


def describe_proof(proof: Proof) -> Lines:
    """Yield the chain with its evidence, then the counts."""
    for hop in proof.hops:
        yield f"hop {hop.index}", describe_hop(hop, proof.nodes)
        yield "", describe_evidence(hop.evidence)
    yield "asks for", f"{proof.answer_relation} of {proof.nodes[-1].title}"
    yield "", describe_evidence(proof.answer_evidence)
    for count in proof.counts:
        bound = "at least " if count.capped else ""
        yield f"count {count.name}", f"{bound}{count.value} at node {count.node} ({proof.nodes[count.node].title})"


def _describe_seed(seed: Seed) -> Lines:
    yield "entity", f"{seed.title} ({seed.type}, {seed.domain}), {seed.qid}, {seed.in_degree} articles link here"
    yield "split", seed.split


def _describe_path(path: Path) -> Lines:
    for hop in path.hops:
        yield f"hop {hop.index}", describe_hop(hop, path.nodes)
        yield "", describe_evidence(hop.evidence)
    yield "asks for", f"{path.answer_relation} of {path.nodes[-1].title}: {path.answer_text}"
    yield "walks", str(path.walks)


def _describe_question(question: Question) -> Lines:
    yield "canonical", question.text
    yield "answer", f"{question.answer.surface} ({question.answer.type}, {question.answer.value})"


def _describe_rewrite(rewrite: Rewrite) -> Lines:
    yield "question", rewrite.text
    for step in rewrite.certificates:
        yield f"hides {step.name}", f"{step.descriptor!r}: {step.chain_count} in the chain, {step.alone_count} alone"
        yield "", step.text_after
        tried = [f"{candidate.descriptor!r}: {candidate.verdict}" for candidate in step.candidates]
        yield "", "tried " + "; ".join(tried)


def _describe_grounding(grounding: Grounding) -> Lines:
    yield "question", grounding.text
    also = f", also {', '.join(grounding.answer.aliases)}" if grounding.answer.aliases else ""
    yield "answer", f"{grounding.answer.surface} ({grounding.answer.type}){also}"
    yield "split", grounding.split
    yield "picture", describe_picture(grounding.picture)
    yield from describe_proof(grounding.proof)


def _describe_difficulty(difficulty: Difficulty) -> Lines:
    yield from _describe_grounding(difficulty)
    for cell in difficulty.cells:
        interval = f"95% {cell.low:.2f}-{cell.high:.2f}"
        solved = f"{cell.correct} of {cell.attempts} correct, {cell.unscored} unscored, {interval}"
        yield cell.condition, f"{cell.solver}: {solved}"


def _describe_rollout(rollout: Rollout) -> Lines:
    yield "attempt", f"{rollout.attempt} by {rollout.teacher}, stopped: {rollout.stop_reason}"
    for number, step in enumerate(rollout.steps, 1):
        yield f"turn {number}", shorten_text(step.thought)
        if step.tool:
            yield "", f"{step.tool} {shorten_text(step.arguments)}"
        if step.observation is not None:
            outcome = step.observation.error or shorten_text(step.observation.text)
            yield "", f"-> {outcome}"
    yield "answer", f"{rollout.answer} (reference {rollout.reference.surface})"


def _describe_trajectory(trajectory: Trajectory) -> Lines:
    yield from _describe_rollout(trajectory)
    yield "verdict", f"{trajectory.verdict} by {trajectory.decided_by}"
    for support in trajectory.supports:
        yield "seen", f"{support.what}: step {support.step}, characters {support.start}-{support.end}"


def _describe_entry(entry: ReleaseEntry) -> Lines:
    yield "row of", f"{entry.dataset}, split {entry.split}"
    if entry.trajectory_id:
        yield "trajectory", entry.trajectory_id


DESCRIBERS: tuple[tuple[type[Record], Callable[..., Lines]], ...] = (
    (Difficulty, _describe_difficulty),
    (Grounding, _describe_grounding),
    (Trajectory, _describe_trajectory),
    (Rollout, _describe_rollout),
    (Rewrite, _describe_rewrite),
    (Question, _describe_question),
    (Path, _describe_path),
    (Seed, _describe_seed),
    (ReleaseEntry, _describe_entry),
)
"""Narrower kinds first: a Difficulty is a Grounding too, a Trajectory a Rollout."""
