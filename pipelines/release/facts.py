"""What a report measures of a release's rows, read once: a release's questions and transcripts do not fit into memory.

Strings that many rows share are kept once.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from sys import intern
from typing import NamedTuple

from pipelines.checks.sets import Signature, delexicalise, make_signature
from pipelines.graph.proofs import NO_PROOF
from pipelines.release.guessing import Guessed, read_asked
from pipelines.release.making import Example
from pipelines.release.reviewed import Review
from schemas.datasets import Cell, Depiction, Enhancement, Picture, Trajectory, Trial
from schemas.proofs import Proof, Trace


class CellFacts(NamedTuple):
    """Attempts under one condition by one solver."""

    name: str
    """Condition and solver."""
    planned: int
    attempts: int
    unscored: int
    correct: int
    day: str


class CountFacts(NamedTuple):
    """One count of a proof."""

    name: str
    node: int
    value: int
    capped: bool


class NodeFacts(NamedTuple):
    """One entity of a path."""

    role: str
    page_id: int
    type: str


@dataclass(frozen=True, slots=True)
class ProofFacts:
    """What is measured of a proof."""

    relations: tuple[str, ...]
    """In order, the one asked for last; ``<-`` is before one that leads backward."""
    asked: str
    """The relation that is asked for."""
    nodes: tuple[NodeFacts, ...]
    counts: tuple[CountFacts, ...]
    resolutions: tuple[str, ...]
    """How each near miss was resolved."""
    constraints: int
    redundant: int
    looked_for_misses: bool
    confirmed: bool
    confirmation_required: bool
    compared: bool
    volatile_refused: bool
    shortcuts_checked: bool
    retrieval_checked: bool


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """What is measured of a question."""

    signature: Signature
    text: str
    skeleton: str
    domain: str
    answer_type: str
    characters: int
    words: int
    aliases: int
    hops: str
    """``none`` without a path."""
    anchor_type: str
    proof: ProofFacts
    trace: Trace | None
    depiction: Depiction | None
    trial: Trial | None
    object_share: float | None
    """Of a scene's area; None where the picture is no scene."""
    cells: tuple[CellFacts, ...]
    standing: str
    pool: str
    """Empty for a question made here."""
    alternatives: bool
    swapped: bool
    left_out: tuple[str, ...]
    asked: Guessed
    knowledge: str = ""


def read_question(question: Enhancement) -> QuestionFacts:
    """Return what is measured of a question."""
    answer = question.answer
    return QuestionFacts(
        signature=make_signature(question),
        text=question.text,
        skeleton=delexicalise(question),
        domain=intern(question.domain),
        answer_type=intern(answer.type),
        characters=len(answer.surface),
        words=len(answer.surface.split()),
        aliases=len(answer.aliases),
        hops=question.hops_named,
        anchor_type=intern(question.anchor_type),
        proof=_read_proof(question.proof) if question.trace is None else _read_trace(question.trace),
        trace=question.trace,
        depiction=question.depiction,
        trial=question.trial,
        object_share=question.scene.share if question.scene else None,
        cells=tuple(map(_read_cell, question.cells)),
        standing=intern(question.standing),
        pool=intern(question.origin.pool) if question.origin else "",
        alternatives=bool(question.alternatives),
        swapped=bool(question.swapped_with),
        left_out=tuple(map(intern, question.left_out)),
        knowledge=intern(question.knowledge),
        asked=read_asked(question),
    )


def _read_cell(cell: Cell) -> CellFacts:
    name = intern(f"{cell.condition}, {cell.solver}")
    return CellFacts(name, cell.planned, cell.attempts, cell.unscored, cell.correct, intern(cell.day))


def _read_proof(proof: Proof) -> ProofFacts:
    hops = (f"<-{hop.relation}" if hop.backward else hop.relation for hop in proof.hops)
    return ProofFacts(
        relations=tuple(map(intern, (*hops, proof.answer_relation))) if proof.nodes else (),
        asked=intern(proof.answer_relation),
        nodes=tuple(NodeFacts(intern(node.role), node.page_id, intern(node.type)) for node in proof.nodes),
        counts=tuple(CountFacts(intern(each.name), each.node, each.value, each.capped) for each in proof.counts),
        resolutions=tuple(intern(miss.resolution) for miss in proof.near_misses),
        constraints=len(proof.constraints),
        redundant=len(proof.redundant),
        looked_for_misses=proof.thresholds.near_misses > 0,
        confirmed=proof.corroboration is not None,
        confirmation_required=proof.thresholds.agreement == "required",
        compared=bool(proof.compared_snapshot),
        volatile_refused=not proof.thresholds.volatile,
        shortcuts_checked=proof.shortcuts_checked,
        retrieval_checked=proof.thresholds.retrieval_rank > 0,
    )


def _read_trace(trace: Trace) -> ProofFacts:
    """Return what is measured of a trace: it has relations and ends, and counts nothing."""
    relations = tuple(intern(link.relation) for link in trace.links)
    return replace(_read_proof(NO_PROOF), relations=relations, asked=relations[-1])


class PictureFacts(NamedTuple):
    """What is measured of a picture."""

    side: int
    """The shorter one, pixels."""
    phash: str
    licence: str


@dataclass(slots=True)
class TrajectoryFacts:
    """What is measured of transcripts: a number each, and counts of words."""

    turns: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    marks: list[float] = field(default_factory=list)
    pictures: list[int] = field(default_factory=list)
    supports: list[int] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)
    """By question."""
    tools: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    deciders: Counter[str] = field(default_factory=Counter)

    def add(self, trajectory: Trajectory) -> None:
        """Count a transcript."""
        steps = trajectory.steps
        seen = [step.observation for step in steps if step.observation is not None]
        self.turns.append(len(steps))
        self.calls.append(sum(bool(step.tool) for step in steps))
        self.tokens.append(trajectory.tokens)
        self.marks += [trajectory.process.score] if trajectory.process else []
        self.pictures.append(len(trajectory.images))
        self.supports.append(len(trajectory.supports))
        self.accepted[trajectory.parent_id] += 1
        self.tools.update(step.tool or "answer" for step in steps)
        self.outcomes.update("ok" if each.ok else each.error for each in seen)
        self.stops[trajectory.stop_reason] += 1
        self.deciders[trajectory.decided_by] += 1


@dataclass(slots=True)
class SplitFacts:
    """Rows, questions and the questions' pictures of one split."""

    rows: int = 0
    questions: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)


@dataclass(slots=True)
class ReleaseFacts:
    """What is measured of all rows of a release."""

    questions: dict[str, QuestionFacts] = field(default_factory=dict)
    splits: dict[str, SplitFacts] = field(default_factory=dict)
    pictures: dict[str, PictureFacts] = field(default_factory=dict)
    """By sha256."""
    shown: list[int] = field(default_factory=list)
    """Pictures a row."""
    trajectories: TrajectoryFacts = field(default_factory=TrajectoryFacts)
    reviews: tuple[Review, ...] = ()
    """What people said of these questions."""

    @classmethod
    def of(cls, examples: Iterable[Example]) -> "ReleaseFacts":
        """Read all rows of a release."""
        facts = cls()
        for example in examples:
            facts.add(example)
        return facts

    def add(self, example: Example) -> None:
        """Read one row; a question that several rows share is read once."""
        question = example.question
        if question.record_id not in self.questions:
            self.questions[question.record_id] = read_question(question)
        split = self.splits.setdefault(example.entry.split, SplitFacts())
        split.rows += 1
        split.questions.add(question.record_id)
        if question.picture:
            split.pictures.add(question.picture.sha256)
        pictures = example.list_pictures()
        self.shown.append(len(pictures))
        self.pictures |= {picture.sha256: _read_picture(picture) for picture in pictures}
        if example.trajectory is not None:
            self.trajectories.add(example.trajectory)


def _read_picture(picture: Picture) -> PictureFacts:
    return PictureFacts(min(picture.width, picture.height), picture.phash, intern(picture.licence))
