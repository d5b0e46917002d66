"""Attempts at a question under one condition, and what they come to."""

from dataclasses import dataclass, field

from pipelines.agent.conditions import Exhibit, make_answer_inputs
from pipelines.agent.judging import Jury
from pipelines.errors import RecordFailed
from pipelines.prompting import Asking, ask_on_day
from pipelines.scoring.agreement import wilson_interval
from pipelines.scoring.compare import compare_answers, is_no_answer
from pipelines.scoring.filters import Filter, Tally
from schemas.difficulty import Cell
from schemas.groundings import Grounding
from schemas.tasks import AnswerReply
from schemas.trajectories import Verdict

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one model at one question."""

    verdict: Verdict
    given: str = ""
    """The answer; empty where there is none."""
    day: str = ""
    """On which the model first replied so; empty for scripted players."""
    problem: str = ""
    """Why nobody could score it."""


@dataclass(frozen=True, slots=True)
class Solver:
    """Who attempts, and who judges its answers."""

    role: str
    asking: Asking
    jury: Jury

    async def attempt(self, record: Grounding, exhibit: Exhibit, sample: int) -> Attempt:
        """Return one attempt. A reply that does not parse twice is unscored, never wrong; not to know is wrong.

        Raises:
            ServiceError: if the model or a judge is away.
        """
        inputs = make_answer_inputs(record, exhibit)
        try:
            reply, day = await ask_on_day(self.asking, inputs, AnswerReply, exhibit.images, sample)
        except RecordFailed as error:
            return Attempt("unscored", problem=str(error))
        # "Na" is no answer, unless sodium's symbol is asked for.
        if is_no_answer(reply.answer) and compare_answers(reply.answer, record.answer) != "correct":
            return Attempt("incorrect", day=day)
        trial = f"{record.record_id}:{exhibit.condition}:{self.role}:{sample}"
        judgement = await self.jury.judge(record.text, reply.answer, record.answer, trial)
        return Attempt(judgement.verdict, reply.answer, day, judgement.detail)


@dataclass
class Series:
    """The attempts of one step so far."""

    step: Filter
    tally: Tally = field(default_factory=Tally)
    wrong: list[str] = field(default_factory=list)
    """Wrong answers that may be right ones, one an attempt, in order."""
    day: str = ""

    def add(self, attempt: Attempt, watched: bool) -> None:
        """Count an attempt; its wrong answer is kept where it is watched for."""
        self.tally = self.tally.add(attempt.verdict)
        self.day = max(self.day, attempt.day)
        if watched and attempt.verdict == "incorrect" and attempt.given:
            self.wrong.append(attempt.given)

    def sum_up(self, asking: Asking, planned: int) -> Cell:
        """Return the attempts as a row has them."""
        tally = self.tally
        low, high = wilson_interval(tally.correct, tally.done - tally.unscored)
        return Cell(
            condition=self.step.condition,
            role=self.step.role,
            solver=asking.model.name,
            prompt=asking.prompt.label,
            day=self.day,
            planned=planned,
            attempts=tally.done,
            correct=tally.correct,
            unscored=tally.unscored,
            low=round(low, DIGITS),
            high=round(high, DIGITS),
        )
