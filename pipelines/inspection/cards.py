"""One question of a report, with everything a reader needs to judge it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import CorruptInput
from pipelines.inspection.facets import (
    describe_cell,
    describe_evidence,
    describe_hop,
    describe_step,
    describe_thresholds,
    list_near_misses,
    list_told,
    shorten_text,
)
from pipelines.inspection.thumbnails import make_thumbnail
from schemas.difficulty import Difficulty
from schemas.groundings import Grounding
from schemas.proofs import UNCOUNTED, Proof
from schemas.rewrites import Certificate
from schemas.rollouts import Rollout

LONGEST_SHOWN = 600


@dataclass(frozen=True, slots=True)
class Turn:
    """One step of a trajectory for reading."""

    thought: str
    call: str
    observation: str


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """One sampled question with everything a reader needs to judge it."""

    id: str
    split: str
    text: str
    answer: str
    aliases: str
    thumbnail: str
    """``data:`` address, empty when there is none to show."""
    caption: str
    hops: tuple[tuple[str, str], ...]
    """Hop and its evidence; the last one is the answer's."""
    confirmed: str
    """Sentence of the answer's page that says the answer too."""
    counts: str
    required: str
    """What the counts had to reach; empty when nothing was counted."""
    told: tuple[tuple[str, str], ...]
    """Node and what the question says of it beside the chain."""
    near_misses: tuple[tuple[str, str], ...]
    """Node and the entities that were looked up because they might fit too."""
    steps: tuple[str, ...]
    """Which entity was hidden behind what, in the order of the rewriting, with its round of injection."""
    difficulty: tuple[str, ...]
    turns: tuple[Turn, ...]
    outcome: str


def make_card(
    root: Path, question: Grounding, certificates: Sequence[Certificate], rollout: Rollout | None
) -> QuestionCard:
    """Return a question's card; a picture that cannot be shown is named with the reason."""
    proof = question.proof
    thumbnail, caption = _show_picture(root, question)
    hops = [(describe_hop(hop, proof.nodes), describe_evidence(hop.evidence)) for hop in proof.hops]
    asked = f"{proof.nodes[-1].title} -{proof.answer_relation}-> {question.answer.surface}"
    hops.append((asked, describe_evidence(proof.answer_evidence)))
    return QuestionCard(
        id=question.record_id,
        split=question.split,
        text=question.text,
        answer=question.answer.surface,
        aliases=", ".join(question.answer.aliases),
        thumbnail=thumbnail,
        caption=caption,
        hops=tuple(hops),
        confirmed=describe_evidence(proof.corroboration) if proof.corroboration else "",
        counts=_show_counts(proof),
        required=describe_thresholds(proof.thresholds) if proof.thresholds != UNCOUNTED else "",
        told=tuple(list_told(proof)),
        near_misses=tuple(list_near_misses(proof)),
        steps=tuple(map(describe_step, certificates)),
        difficulty=_show_difficulty(question) if isinstance(question, Difficulty) else (),
        turns=tuple(_list_turns(rollout)),
        outcome=f"{rollout.stop_reason}: {rollout.answer or rollout.failure}" if rollout else "",
    )


def _show_counts(proof: Proof) -> str:
    """Return the proof's counts by name, in node order, such as ``chain 1, 1 · alone 6 · answers ≥8``."""
    shown: dict[str, list[str]] = {}
    for count in sorted(proof.counts, key=lambda count: count.node):
        shown.setdefault(count.name, []).append(f"{'≥' if count.capped else ''}{count.value}")
    return " · ".join(f"{name} {', '.join(values)}" for name, values in shown.items())


def _show_difficulty(question: Difficulty) -> tuple[str, ...]:
    cells = tuple(f"{cell.condition}, {cell.solver}: {describe_cell(cell)}" for cell in question.cells)
    need = (f"needs: {question.search_need}",) if question.search_need else ()
    others = tuple(f"also given {other.times} times: {other.text}" for other in question.alternatives)
    return (*cells, question.standing, *need, *others)


def _show_picture(root: Path, question: Grounding) -> tuple[str, str]:
    picture = question.picture
    if picture is None:
        return "", "no picture"
    credit = f"{picture.file} · {picture.author} · {picture.licence}"
    try:
        return make_thumbnail(root, picture), credit
    except CorruptInput as error:
        return "", str(error)


def _list_turns(rollout: Rollout | None) -> list[Turn]:
    steps = rollout.steps if rollout else ()
    return [
        Turn(
            thought=shorten_text(step.thought, LONGEST_SHOWN),
            call=f"{step.tool} {shorten_text(step.arguments, LONGEST_SHOWN)}" if step.tool else "",
            observation=(step.observation.error or shorten_text(step.observation.text, LONGEST_SHOWN))
            if step.observation
            else "",
        )
        for step in steps
    ]
