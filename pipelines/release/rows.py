"""Row types of the three datasets, in the layouts their trainers read, and how a row is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import ConservationError
from pipelines.release.pictures import name_picture, read_picture
from pipelines.release.transcript import Message, make_messages, show_pictures, strip_page_text
from schemas.base import Nested
from schemas.difficulty import Cell, Difficulty
from schemas.groundings import Picture
from schemas.proofs import Proof
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


ReleaseRow = SftRow | RlRow | BridgeRow
ROW_TYPES: Mapping[Dataset, type[ReleaseRow]] = {"sft": SftRow, "rl": RlRow, "bridgevqa": BridgeRow}


@dataclass(frozen=True, slots=True)
class Example:
    """A release entry with the question and the trajectory it points at."""

    entry: ReleaseEntry
    question: Difficulty
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
    questions: Sequence[Difficulty], trajectories: Sequence[Trajectory], entries: Sequence[ReleaseEntry]
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
        if example.entry.dataset == "sft":
            return self._make_sft(example)
        return self._make_rl(example, index) if example.entry.dataset == "rl" else self._make_bridge(example)

    def _embed(self, picture: Picture) -> EmbeddedImage:
        return EmbeddedImage(bytes=read_picture(self.root, picture), path=name_picture(picture))

    def _make_sft(self, example: Example) -> SftRow:
        question, trajectory = example.question, example.trajectory
        if trajectory is None:
            raise ConservationError(f"releases: sft entry {example.entry.record_id} has no trajectory")
        messages, pictures = make_messages(trajectory)
        return SftRow(
            id=trajectory.record_id,
            question_id=question.record_id,
            images=tuple(map(self._embed, pictures)),
            messages=messages,
            tools=self.tools,
            question=strip_page_text(question.text),
            answer=question.answer.surface,
            answer_aliases=question.answer.aliases,
            hops=len(question.proof.hops),
            n_turns=len(trajectory.steps),
            stop_reason=trajectory.stop_reason,
            verdict=trajectory.verdict,
        )

    def _make_rl(self, example: Example, index: int) -> RlRow:
        question = example.question
        text = strip_page_text(question.text)
        images = tuple(map(self._embed, example.list_pictures()))
        prompt = show_pictures(len(images), text)
        return RlRow(
            id=question.record_id,
            data_source=DATA_SOURCE,
            prompt=(Message(role="user", content=prompt),),
            images=images,
            ability=ABILITY,
            reward_model=RewardModel(
                style="rule", ground_truth=question.answer.surface, candidate_answers=list_answers(question)
            ),
            extra_info=ExtraInfo(
                index=index,
                split=example.entry.split,
                question=text,
                answer=question.answer.surface,
                question_id=question.record_id,
                need_tools_kwargs=False,
            ),
        )

    def _make_bridge(self, example: Example) -> BridgeRow:
        question = example.question
        proof = question.proof
        return BridgeRow(
            id=question.record_id,
            image=self._embed(question.picture) if question.picture else None,
            question=strip_page_text(question.text),
            answer=question.answer.surface,
            answer_type=question.answer.type,
            answer_aliases=question.answer.aliases,
            hops=len(proof.hops),
            anchor_type=proof.nodes[0].type,
            domain=question.domain,
            chain=make_chain(question),
            r_chain=list_counts(proof, "chain"),
            r_alone=list_counts(proof, "alone"),
            n_img=next(iter(list_counts(proof, "answers")), None),
            difficulty=question.cells,
        )


def list_answers(question: Difficulty) -> tuple[str, ...]:
    """Return every accepted form of the answer: as the page shows it, then the aliases, each once."""
    return tuple(dict.fromkeys((question.answer.surface, *question.answer.aliases)))


def list_counts(proof: Proof, name: str) -> tuple[int, ...]:
    """Return the proof's counts of one name in node order."""
    return tuple(count.value for count in sorted(proof.counts, key=lambda count: count.node) if count.name == name)


def make_chain(question: Difficulty) -> tuple[ChainLink, ...]:
    """Return the path's hops by title, and the attribute that is asked for as the last link."""
    titles = {node.page_id: node.title for node in question.proof.nodes}
    links = [
        ChainLink(relation=hop.relation, subject=titles[hop.subject_id], object=titles[hop.object_id])
        for hop in question.proof.hops
    ]
    last = question.proof.nodes[-1].title
    links.append(ChainLink(relation=question.proof.answer_relation, subject=last, object=question.answer.surface))
    return tuple(links)
