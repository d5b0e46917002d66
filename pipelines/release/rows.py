"""Row types of the three datasets, in the layouts their trainers read, and how a row is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import ConservationError
from pipelines.release.pictures import name_picture, read_picture
from pipelines.release.transcript import Message, make_messages, show_pictures, strip_page_text
from schemas.base import Nested
from schemas.difficulty import Cell, SearchNeed, Standing
from schemas.enhancements import Enhancement, Trial
from schemas.groundings import Depiction, Ease, Picture
from schemas.proofs import Answer, Proof
from schemas.releases import Dataset, ReleaseEntry
from schemas.trajectories import Trajectory

DATA_SOURCE = "synth"
ABILITY = "multi-hop visual question answering"


class EmbeddedImage(Nested):
    """The Hub's Image feature; ``path`` is a bare name, since a reader opens it when there are no bytes."""

    bytes: bytes
    path: str


class SftRow(Nested):
    """One accepted trajectory. ``messages`` hold one ``<image>`` for each of ``images``, in reading order."""

    id: str
    question_id: str
    images: tuple[EmbeddedImage, ...]
    messages: tuple[Message, ...]
    tools: str
    """JSON array of the tools' schemas."""
    question: str
    answer: str
    answer_aliases: tuple[str, ...]
    hops: int
    n_turns: int
    stop_reason: str
    verdict: str


class RewardModel(Nested):
    """veRL's rule reward; any of ``candidate_answers`` is right, the ground truth is the first of them."""

    style: str
    ground_truth: str
    candidate_answers: tuple[str, ...]


class ExtraInfo(Nested):
    """What veRL hands to reward functions and agent loops."""

    index: int
    split: str
    question: str
    answer: str
    question_id: str
    need_tools_kwargs: bool


class RlRow(Nested):
    """One question in veRL's layout."""

    id: str
    data_source: str
    prompt: tuple[Message, ...]
    images: tuple[EmbeddedImage, ...]
    ability: str
    reward_model: RewardModel
    extra_info: ExtraInfo


class ChainLink(Nested):
    """One hop by names."""

    relation: str
    subject: str
    object: str


class BridgeRow(Nested):
    """One question with its chain, its certificate counts and its difficulty."""

    id: str
    image: EmbeddedImage | None
    question: str
    answer: str
    answer_type: str
    answer_aliases: tuple[str, ...]
    hops: int
    anchor_type: str
    domain: str
    chain: tuple[ChainLink, ...]
    """Hops in order; the last link asks for the answer attribute of the last node."""
    r_chain: tuple[int, ...]
    """Entities that fit each hidden node given the chain; 1 is unique."""
    r_alone: tuple[int, ...]
    """Entities that fit each hidden node's descriptor without the chain."""
    n_img: int | None
    """Distinct answers over all anchors of the type: how much the picture decides."""
    difficulty: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    ease: Ease = ""
    """How easily a search by picture finds the anchor."""
    degradation: str = ""
    """How the picture was degraded; empty where it was not."""
    repair: str = ""
    """The tool that repairs it."""


class ProofRow(Nested):
    """A question, its answer and its whole proof: every column of a row that is not a transcript follows from it."""

    record_id: str
    """The question's id."""
    split: str
    """Split inside the release."""
    domain: str
    text: str
    fuzzy: str
    canonical: str
    picture: Picture | None
    answer: Answer
    proof: Proof
    difficulty: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    depiction: Depiction | None = None
    """Why the picture stands for the anchor."""
    original: Picture | None = None
    """The picture before it was degraded, where it was."""
    trial: Trial | None = None
    """How it was degraded, and what showed that the repair restores it."""


ReleaseRow = SftRow | RlRow | BridgeRow
ROW_TYPES: Mapping[Dataset, type[ReleaseRow]] = {"sft": SftRow, "rl": RlRow, "bridgevqa": BridgeRow}


@dataclass(frozen=True, slots=True)
class Example:
    """A release entry with the question and the trajectory it points at."""

    entry: ReleaseEntry
    question: Enhancement
    trajectory: Trajectory | None

    @property
    def row_id(self) -> str:
        """The row's ``id`` column: the trajectory's id for an SFT row, else the question's."""
        return self.entry.trajectory_id or self.question.record_id

    def list_pictures(self) -> tuple[Picture, ...]:
        """Return the row's pictures in reading order."""
        if self.trajectory is not None:
            return make_messages(self.trajectory)[1]
        return (self.question.picture,) if self.question.picture else ()


def join_examples(
    questions: Sequence[Enhancement], trajectories: Sequence[Trajectory], entries: Sequence[ReleaseEntry]
) -> list[Example]:
    """Return each entry with its rows, sorted by the first picture's sha256, then id.

    Raises:
        ConservationError: if an entry names a question or trajectory that is not there.
    """
    by_question = {question.record_id: question for question in questions}
    by_trajectory = {trajectory.record_id: trajectory for trajectory in trajectories}
    examples = []
    for entry in entries:
        if entry.parent_id not in by_question or (entry.trajectory_id and entry.trajectory_id not in by_trajectory):
            raise ConservationError(
                f"releases: entry {entry.record_id} names {entry.parent_id} {entry.trajectory_id}, which is not there"
            )
        trajectory = by_trajectory[entry.trajectory_id] if entry.trajectory_id else None
        examples.append(Example(entry, by_question[entry.parent_id], trajectory))
    return sorted(examples, key=_order_example)


def _order_example(example: Example) -> tuple[str, str]:
    pictures = example.trajectory.images[:1] if example.trajectory else ()
    first = pictures[0].picture if pictures else example.question.picture
    return (first.sha256 if first else "", example.row_id)


@dataclass(frozen=True, slots=True)
class Transcript:
    """The part of an SFT row that is the trajectory's; the rest follows from the proof."""

    id: str
    images: tuple[EmbeddedImage, ...]
    messages: tuple[Message, ...]
    tools: str
    stop_reason: str
    verdict: str


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes rows of one dataset; pictures are read, hashed and embedded here and nowhere else."""

    root: Path
    tools: str

    def make_row(self, examples: Sequence[Example], index: int) -> ReleaseRow:
        """Return one row of a split's ``examples``.

        Raises:
            CorruptInput: if a picture is missing or has other bytes than its name says.
            GateNotMet: if a transcript would not load in a trainer.
        """
        example = examples[index]
        proof = make_proof_row(example)
        if example.entry.dataset == "sft":
            return make_sft_row(proof, self._make_transcript(example))
        images = tuple(map(self._embed, example.list_pictures()))
        return make_rl_row(proof, images, index) if example.entry.dataset == "rl" else make_bridge_row(proof, images)

    def _embed(self, picture: Picture) -> EmbeddedImage:
        return EmbeddedImage(bytes=read_picture(self.root, picture), path=name_picture(picture))

    def _make_transcript(self, example: Example) -> Transcript:
        trajectory = example.trajectory
        if trajectory is None:
            raise ConservationError(f"releases: sft entry {example.entry.record_id} has no trajectory")
        messages, pictures = make_messages(trajectory)
        images = tuple(map(self._embed, pictures))
        return Transcript(
            trajectory.record_id, images, messages, self.tools, trajectory.stop_reason, trajectory.verdict
        )


def make_proof_row(example: Example) -> ProofRow:
    """Return an example's question with its proof, as rows are made from it and compared with it."""
    question = example.question
    return ProofRow(
        record_id=question.record_id,
        split=example.entry.split,
        domain=question.domain,
        text=question.text,
        fuzzy=question.fuzzy,
        canonical=question.canonical,
        picture=question.picture,
        answer=question.answer,
        proof=question.proof,
        difficulty=question.cells,
        search_need=question.search_need,
        standing=question.standing,
        depiction=question.depiction,
        original=question.original,
        trial=question.trial,
    )


def make_sft_row(proof: ProofRow, transcript: Transcript) -> SftRow:
    """Return the SFT row of a question and one transcript."""
    return SftRow(
        id=transcript.id,
        question_id=proof.record_id,
        images=transcript.images,
        messages=transcript.messages,
        tools=transcript.tools,
        question=strip_page_text(proof.text),
        answer=proof.answer.surface,
        answer_aliases=proof.answer.aliases,
        hops=len(proof.proof.hops),
        n_turns=sum(message.role == "assistant" for message in transcript.messages),
        stop_reason=transcript.stop_reason,
        verdict=transcript.verdict,
    )


def make_rl_row(proof: ProofRow, images: tuple[EmbeddedImage, ...], index: int) -> RlRow:
    """Return the RL row of a question; ``index`` is its place in its split."""
    text, answer = strip_page_text(proof.text), proof.answer.surface
    accepted = tuple(dict.fromkeys((answer, *proof.answer.aliases)))
    return RlRow(
        id=proof.record_id,
        data_source=DATA_SOURCE,
        prompt=(Message(role="user", content=show_pictures(len(images), text)),),
        images=images,
        ability=ABILITY,
        reward_model=RewardModel(style="rule", ground_truth=answer, candidate_answers=accepted),
        extra_info=ExtraInfo(
            index=index,
            split=proof.split,
            question=text,
            answer=answer,
            question_id=proof.record_id,
            need_tools_kwargs=False,
        ),
    )


def make_bridge_row(proof: ProofRow, images: tuple[EmbeddedImage, ...]) -> BridgeRow:
    """Return the BridgeVQA row of a question with at most one picture."""
    return BridgeRow(
        id=proof.record_id,
        image=images[0] if images else None,
        question=strip_page_text(proof.text),
        answer=proof.answer.surface,
        answer_type=proof.answer.type,
        answer_aliases=proof.answer.aliases,
        hops=len(proof.proof.hops),
        anchor_type=proof.proof.nodes[0].type,
        domain=proof.domain,
        chain=make_chain(proof),
        r_chain=list_counts(proof.proof, "chain"),
        r_alone=list_counts(proof.proof, "alone"),
        n_img=next(iter(list_counts(proof.proof, "answers")), None),
        difficulty=proof.difficulty,
        search_need=proof.search_need,
        standing=proof.standing,
        ease=proof.depiction.ease if proof.depiction else "",
        degradation=proof.trial.degradation if proof.trial else "",
        repair=proof.trial.repair if proof.trial else "",
    )


def list_counts(proof: Proof, name: str) -> tuple[int, ...]:
    """Return the proof's counts of one name in node order."""
    return tuple(count.value for count in sorted(proof.counts, key=lambda count: count.node) if count.name == name)


def make_chain(question: Enhancement | ProofRow) -> tuple[ChainLink, ...]:
    """Return the path's hops by title, and the attribute that is asked for as the last link."""
    titles = {node.page_id: node.title for node in question.proof.nodes}
    links = [
        ChainLink(relation=hop.relation, subject=titles[hop.subject_id], object=titles[hop.object_id])
        for hop in question.proof.hops
    ]
    last = question.proof.nodes[-1].title
    links.append(ChainLink(relation=question.proof.answer_relation, subject=last, object=question.answer.surface))
    return tuple(links)
