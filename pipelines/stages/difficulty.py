"""Difficulty: attempts at each question under conditions of rising cost (its end alone, its text, picture, searches).

A preset of :mod:`pipelines.agent.attempts` says which conditions are measured and which results refuse a question. A
wrong answer that several attempts give is looked up in the corpus: if it cannot be refuted, the question may have two
answers and is refused (research/quality.md U4).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, get_args

from pipelines.agent.attempts import (
    SOLVER,
    AlternativeCheck,
    Attempt,
    Exhibit,
    Exhibits,
    Filter,
    Plan,
    Searches,
    Series,
    Solver,
    fit_filters,
    hold_against_corpus,
    is_enough,
    refuse_cell,
)
from pipelines.agent.choosing import EaseRater
from pipelines.agent.judging import Jury, UnscoredWatch
from pipelines.checks.leakage import check_answer, list_type_words
from pipelines.checks.standings import find_standing, is_solved
from pipelines.checks.verdicts import refuse
from pipelines.config.settings import DifficultyConfig
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from schemas.base import Record, Rejection
from schemas.datasets import Depiction, Difficulty, Grounding, RefusedQuestion
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, Proof
from schemas.reasons import DifficultyReason
from schemas.tasks import JudgePictureInputs, PictureReply

EndingList = Callable[[Proof, Answer], Sequence[str]]
"""Returns the ends of a question that are asked alone, the shortest first."""
TOO_SIMPLE: DifficultyReason = "picture-too-simple"
REASONS = frozenset(get_args(DifficultyReason))


@dataclass
class QuestionCourse:
    """A question with the results of the steps measured so far."""

    record: Grounding
    exhibits: Exhibits
    endings: Sequence[str]
    steps: tuple[Filter, ...]
    left_out: list[str]
    measured: list[Series]


@dataclass(frozen=True)
class MeasuredDifficulty(Prompted):
    """The stage: grounded questions in, measured questions out, or a rejection by the plan's rules."""

    solver: RoleClient
    jury: Jury
    searches: Searches
    plan: Plan
    settings: DifficultyConfig
    at_once: bool = field(default=False, kw_only=True)
    """Whether all attempts of a condition are made, at once; else none once no further one can change the decision."""
    watch: UnscoredWatch
    contest: AlternativeCheck | None = None
    """Checks repeated wrong answers; None skips the check."""
    list_endings: EndingList = lambda proof, answer: ()
    """Where a plan asks for the ends of a question alone."""
    picture_judge: RoleClient | None = None
    rater: EaseRater | None = None
    """Rates how easily each picture is looked up; None where groundings did."""
    covered: bool = True
    """Whether the checks of words know the language of the questions; the corpus decides it."""
    name: str = "difficulty"
    version: int = 10
    input: ClassVar[type[Record]] = Grounding
    output: ClassVar[type[Record]] = Difficulty

    def fingerprint(self) -> str:
        return digest_value([
            self.solver.identity,
            make_schema(PictureReply),
            self.jury.identity,
            self.searches.identity,
            self.picture_judge.identity if self.picture_judge else "",
            self.contest is not None,
            repr(self.plan),
            self.settings.attempts,
            self.at_once,
            self.settings.probe_attempts,
            self.rater.identity if self.rater else "",
        ])  # fmt: skip

    def models(self) -> tuple[ModelEntry, ...]:
        judge = self.picture_judge
        return (self.solver.describe(SOLVER), *(self.jury.models() or ([judge.describe("judge")] if judge else ())))

    async def __call__(self, record: Grounding) -> Sequence[Difficulty] | Rejection:
        refused = await self._look(record)
        if refused is not None:
            return refused
        course = self._start(record)
        refused = await self._attempt_all(course)
        if refused is not None:
            return refused
        given = [text for series in course.measured for text in series.wrong]
        alternatives = hold_against_corpus(self.contest, record, given)
        if isinstance(alternatives, Rejection):
            return self._show_attempts(course, alternatives)
        cells = tuple(series.sum_up(self.solver) for series in course.measured)
        standing = find_standing(record.proof, record.trace, is_solved(cells), self.covered)
        if standing == "unproved" and record.origin is None:
            refused = _reject(record, "unproved", "no attempt was right and there is no proof")
            return self._show_attempts(course, refused)
        return (
            Difficulty(
                **dict(record) | {"depiction": await self._rate(record)},
                cells=cells,
                standing=standing,
                alternatives=alternatives,
                left_out=tuple(course.left_out),
                tools=self.searches.tools,
            ),
        )

    async def _rate(self, record: Grounding) -> Depiction | None:
        if self.rater is None or record.depiction is None or record.picture is None or not record.proof.nodes:
            return record.depiction
        ease, small = await self.rater.rate(record.picture, record.proof.nodes[0].title)
        return record.depiction.model_copy(update={"ease": ease, "ease_at_training": small})

    async def _look(self, record: Grounding) -> Rejection | None:
        if self.plan.seeks_answer:
            result = check_answer(record.text, record.answer, list_type_words(record.proof.nodes))
            if not result.passed:
                return refuse(record.record_id, [result], REASONS)
        judge = self.picture_judge
        if judge is None or record.picture is None:
            return None
        inputs = JudgePictureInputs(anchor_type=record.proof.nodes[0].type if record.proof.nodes else "")
        try:
            reply = await ask_model(judge, inputs, PictureReply, (record.picture.sha256,))
        except RecordFailed as error:
            return _reject(record, "unscored", f"picture judge: {error}")
        return _reject(record, TOO_SIMPLE, f"says {judge.model.name}") if reply.simple else None

    def _start(self, record: Grounding) -> QuestionCourse:
        pictured = record.picture is not None
        endings = self.list_endings(record.proof, record.answer) if record.proof.nodes else ()
        filters = [step for step in self.plan.filters if endings or step.condition != "clause"]
        steps, lacking = fit_filters(filters, pictured)
        left_out: list[str] = [*lacking]
        if pictured and self.plan.judges_picture and self.picture_judge is None:
            left_out.append(TOO_SIMPLE)
        return QuestionCourse(record, Exhibits(record, self.searches), endings, steps, left_out, [])

    async def _attempt_all(self, course: QuestionCourse) -> Rejection | None:
        for step in course.steps:
            series = await self._attempt_step(course, step)
            reason = refuse_cell(step, series.tally)
            if reason is not None:
                detail = "; ".join(map(self._describe, reversed(course.measured)))
                return self._show_attempts(course, _reject(course.record, reason, detail))
        return None

    def _show_attempts(self, course: QuestionCourse, refused: Rejection) -> RefusedQuestion:
        made = (each for series in course.measured for each in series.list_attempts(self.solver))
        return RefusedQuestion(**dict(refused), attempts=tuple(made))

    async def _attempt_step(self, course: QuestionCourse, step: Filter) -> Series:
        exhibits = [await course.exhibits.show(step.condition)] * self.settings.attempts
        if step.condition == "clause":
            exhibits = [
                Exhibit("clause", ending=each) for each in course.endings for _ in range(self.settings.probe_attempts)
            ]
        solver = Solver(self.solver, self.jury)
        series = Series(step, len(exhibits))
        contested = self.contest is not None and bool(course.record.proof.nodes)
        watched = contested and _shows_truth(course.record, exhibits[0])
        # Where the solver is asked in batches, one batch holds all attempts.
        ended = await _attempt_at_once(solver, course.record, exhibits) if self.at_once else []
        for sample, exhibit in enumerate(exhibits):
            attempt = ended[sample] if ended else await solver.attempt(course.record, exhibit, sample)
            self.watch.add(attempt.verdict, attempt.problem)
            series.add(attempt, watched)
            if not self.at_once and is_enough(step, series.tally, series.planned, watched):
                break
        course.measured.append(series)
        return series

    def _describe(self, series: Series) -> str:
        tally = series.tally
        unscored = f", {tally.unscored} unscored" if tally.unscored else ""
        return (
            f"{tally.correct} of {tally.done} correct{unscored} by {self.solver.model.name} ({series.step.condition})"
        )


async def _attempt_at_once(solver: Solver, record: Grounding, exhibits: Sequence[Exhibit]) -> list[Attempt]:
    made = (solver.attempt(record, exhibit, sample) for sample, exhibit in enumerate(exhibits))
    ended = await asyncio.gather(*made, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in ended if isinstance(outcome, Attempt)]


def _shows_truth(record: Grounding, exhibit: Exhibit) -> bool:
    return exhibit.picture == record.picture and not exhibit.ending


def _reject(record: Grounding, reason: DifficultyReason, detail: str) -> Rejection:
    return Rejection(record_id=record.record_id, reason=reason, detail=detail)
