"""What a report counts on a release's rows, read once: a release's questions and transcripts do not fit into memory.

Of each question its signature and its words are kept; all else is added up, as numbers or counts under a name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

from pipelines.checks.sets import Signature, make_signature
from pipelines.release.guessing import Guessed, read_asked
from pipelines.release.making import Example
from pipelines.release.reviewed import Review, name_group
from schemas.datasets import Cell, Depiction, Enhancement, Picture, Trajectory
from schemas.proofs import Proof, Trace

Number = int | float
DEPICTS = {None: "not stated", True: "yes", False: "no"}
COUNTS = ("chain", "alone", "anchors", "answers")


class QuestionFacts(NamedTuple):
    """What the report compares questions by."""

    signature: Signature
    asked: Guessed
    stratum: str
    """Hops, domain and how often it was solved, in words."""


class PictureFacts(NamedTuple):
    """What is measured of a picture."""

    side: int
    """The shorter one, pixels."""
    phash: str
    licence: str


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
    numbers: defaultdict[str, list[Number]] = field(default_factory=lambda: defaultdict(list))
    words: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    flags: defaultdict[str, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))
    """In how many questions something holds, and in how many it does not."""
    cells: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Attempts by condition and solver, added up."""
    days: dict[str, str] = field(default_factory=dict)
    """Latest reply by condition and solver."""
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
            group = name_group(question.hops_named, question.domain, question.cells)
            self.questions[question.record_id] = QuestionFacts(
                make_signature(question), read_asked(question), intern(group)
            )
            self._add_question(question)
        split = self.splits.setdefault(example.entry.split, SplitFacts())
        split.rows += 1
        split.questions.add(question.record_id)
        if question.picture:
            split.pictures.add(question.picture.sha256)
        pictures = example.list_pictures()
        self.numbers["pictures a row"].append(len(pictures))
        self.pictures |= {picture.sha256: _read_picture(picture) for picture in pictures}
        if example.trajectory is not None:
            self._add_trajectory(example.trajectory)

    def _add_question(self, question: Enhancement) -> None:
        numbers, words, flags, answer = self.numbers, self.words, self.flags, question.answer
        words["hops"][question.hops_named] += 1
        words["answer types"][answer.type] += 1
        words["domains"][question.domain] += 1
        words["anchor types"][question.anchor_type] += 1
        numbers["characters"].append(len(answer.surface))
        numbers["words"].append(len(answer.surface.split()))
        numbers["aliases"].append(len(answer.aliases))
        words["pools"].update([question.origin.pool] if question.origin and question.origin.pool else [])
        words["search need"].update([question.search_need] if question.search_need else [])
        words["knowledge"].update([question.knowledge] if question.knowledge else [])
        words["standing"][f"standing: {question.standing}"] += 1
        words["standing"]["search need not measured"] += not question.search_need
        words["standing"]["with wrong answers given twice, all refuted"] += bool(question.alternatives)
        words["standing"].update(f"left out: {name}" for name in question.left_out)
        for cell in question.cells:
            self._add_cell(cell)
        self._add_proof(question.proof)
        if question.trace is not None:
            self._add_trace(question.trace)
        if question.depiction is not None:
            self._add_depiction(question.depiction)
        if question.trial is not None:
            trial = question.trial
            words["trials"][f"{trial.degradation}, {trial.repair}, shown by {trial.test}"] += 1
            numbers[f"strength of {trial.degradation}"].append(trial.strength)
        if question.scene is not None:
            numbers["share of the scene's area"].append(question.scene.share)
        flags["degraded"][question.trial is not None] += 1

    def _add_cell(self, cell: Cell) -> None:
        name = f"{cell.condition}, {cell.solver}"
        told = {"questions": 1, "planned": cell.planned, "attempts": cell.attempts, "unscored": cell.unscored}
        asked, never = cell.attempts > cell.unscored, cell.correct == 0
        self.cells[name].update({**told, "correct": cell.correct, "asked": asked, "never solved": never})
        self.days[name] = max(self.days.get(name, ""), cell.day)

    def _add_proof(self, proof: Proof) -> None:
        numbers, words, flags, least = self.numbers, self.words, self.flags, proof.thresholds
        for count in proof.counts:
            places = [count.name] if count.name != "alone" else ["alone", f"alone, {'later' if count.node > 1 else 1}"]
            for name in places:
                numbers[f"count {name}"].append(count.value)
                words["capped"][name] += count.capped
        numbers["near misses"].append(len(proof.near_misses))
        words["resolutions"].update(miss.resolution for miss in proof.near_misses)
        numbers["constraints"].append(len(proof.constraints))
        numbers["redundant"].append(len(proof.redundant))
        for name, holds in (
            ("near misses looked for", least.near_misses > 0),
            ("answer confirmed by a sentence", proof.corroboration is not None),
            ("confirmation required", least.agreement == "required"),
            ("volatile facts refused", not least.volatile),
            ("checked: no path shorter by two links", proof.shortcuts_checked),
            ("checked: not found by one search", least.retrieval_rank > 0),
            ("questions with a redundant constraint", bool(proof.redundant)),
        ):
            flags[name][holds] += 1

    def _add_trace(self, trace: Trace) -> None:
        first, second = trace.links[0], trace.links[1]
        self.words["news sources"][first.source] += 1
        self.words["news days"][first.published] += 1
        self.flags["questions with facts of two articles"][first.evidence.page_id != second.evidence.page_id] += 1
        self.flags["decided by a person"][bool(trace.decided_on)] += 1

    def _add_depiction(self, seen: Depiction) -> None:
        for name, value in (
            ("ranked by", seen.ranker),
            ("from", seen.source),
            ("to look up", seen.ease or "not searched"),
            ("to look up at training resolution", seen.ease_at_training or "not searched"),
            ("read by", " and ".join(seen.engines) or "no engine"),
            ("Commons says it depicts the anchor", DEPICTS[seen.depicts]),
        ):
            self.words[name][value] += 1
        self.flags["with text that tells nothing"][bool(seen.text)] += 1
        self.numbers["candidates a question"].append(seen.candidates)
        if seen.margin is not None:
            self.numbers["score"].append(seen.score)
            self.numbers["margin over the best distractor"].append(seen.margin)
            self.numbers["distractors"].append(seen.distractors)
            self.flags["over the absolute threshold"][bool(seen.over_threshold)] += 1

    def _add_trajectory(self, trajectory: Trajectory) -> None:
        steps = trajectory.steps
        seen = [step.observation for step in steps if step.observation is not None]
        for name, number in (
            ("turns", len(steps)),
            ("tool calls", sum(bool(step.tool) for step in steps)),
            ("training tokens", trajectory.tokens),
            ("pictures", len(trajectory.images)),
            ("supports", len(trajectory.supports)),
        ):
            self.numbers[name].append(number)
        self.numbers["process mark"] += [trajectory.process.score] if trajectory.process else []
        self.words["accepted"][trajectory.parent_id] += 1
        self.words["tools"].update(step.tool or "answer" for step in steps)
        self.words["tool outcomes"].update("ok" if each.ok else each.error for each in seen)
        self.words["stop reasons"][trajectory.stop_reason] += 1
        self.words["decided by"][trajectory.decided_by] += 1


def _read_picture(picture: Picture) -> PictureFacts:
    return PictureFacts(min(picture.width, picture.height), picture.phash, intern(picture.licence))
