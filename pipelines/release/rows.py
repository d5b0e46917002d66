"""Row types of the three datasets, in the layouts their trainers read."""

from collections.abc import Mapping

from pydantic import ValidationError

from pipelines.release.transcript import Message
from schemas.base import Nested
from schemas.difficulty import Cell, SearchNeed, Standing
from schemas.enhancements import Trial
from schemas.groundings import Depiction, Ease, Picture
from schemas.proofs import Answer, Proof
from schemas.releases import Dataset
from schemas.trajectories import Support

DATA_SOURCE = "synth"
SHOWN_ERRORS = 3
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
    dialect: str
    """Protocol of the assistant's messages and of the system message."""
    loss: tuple[bool, ...]
    """Whether to train on each of the assistant's messages, in order: not on calls that failed."""
    supports: tuple[Support, ...]
    """Where the bridges and the answer were seen: the assistant's message from 0, whose observation shows it, and a
    span of that observation's text."""
    tokens: int
    """Length when trained on, pictures included, as the run's rule counts it."""
    snapshot: str
    """Date of the corpus that the tools searched; empty for live tools."""
    day: str
    """Latest day on which a model or a live tool said any of it; empty where all is scripted or local."""


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
    answer_type: str
    """``date``, ``number``, ``name`` or ``string``."""
    question_id: str
    need_tools_kwargs: bool


class FoundPage(Nested):
    """One page that a search by the question's picture finds."""

    title: str
    url: str
    thumbnail: EmbeddedImage | None


class RlRow(Nested):
    """One question in veRL's layout."""

    id: str
    data_source: str
    prompt: tuple[Message, ...]
    images: tuple[EmbeddedImage, ...]
    ability: str
    reward_model: RewardModel
    extra_info: ExtraInfo
    image_search: tuple[FoundPage, ...]
    """What a search by the picture finds, best first, for trainers that replay it."""


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


def explain_misfit(error: ValidationError) -> str:
    """Return what keeps values from being a row: the first few columns, each with what is wrong with it."""
    found = [f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()[:SHOWN_ERRORS]]
    return "; ".join(found)
