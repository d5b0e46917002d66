"""Trajectories: the rollouts that survive the rejection cascade, with pointers to where each name was seen."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import ClassVar

from pipelines.agent.judging import COMPARER_ALONE, Judgement, Jury, UnscoredWatch
from pipelines.agent.spans import ANSWER, find_supports
from pipelines.agent.transcript import BadTurn, parse_turn
from pipelines.errors import ConservationError
from pipelines.ids import digest_value
from pipelines.scoring.compare import compare_answers
from schemas.base import Failure, Record, Rejection
from schemas.manifest import ModelEntry
from schemas.reasons import TrajectoryReason
from schemas.rollouts import Rollout, Step
from schemas.trajectories import Trajectory

BAD_CALLS = ("unknown-tool", "bad-arguments")
"""Calls that do not fit the tools' schemas are malformed steps (VSearcher's rule)."""
NO_ANSWERS = ("", "unknown")
QUESTIONS_AT_ONCE = 32
"""Questions whose rollouts are judged at the same time, and held in memory."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason against a rollout."""

    reason: TrajectoryReason
    detail: str


@dataclass(frozen=True, slots=True)
class Trajectories:
    """The stage: format, answer given, answer right, and at most ``max_accepted`` a question."""

    max_accepted: int = 2
    """2 in VSearcher and in OpenSearch-VL."""
    jury: Jury = COMPARER_ALONE
    """Asked of answers that the comparer leaves open."""
    watch: UnscoredWatch | None = None
    """Stops the run when too many answers are unscored; without it none is counted."""
    name: str = "trajectories"
    version: int = 2
    inputs: ClassVar[tuple[type[Record], ...]] = (Rollout,)
    output: ClassVar[type[Record]] = Trajectory

    def fingerprint(self) -> str:
        """Digest of the cap and the judges."""
        return digest_value({"max_accepted": self.max_accepted, "jury": self.jury.identity})

    def prompts(self) -> dict[str, str]:
        """Those of the judges."""
        return self.jury.prompts()

    def models(self) -> tuple[ModelEntry, ...]:
        """The judges."""
        return self.jury.models()

    def __call__(self, inputs: Sequence[Iterable[Rollout]]) -> Iterator[Trajectory | Rejection | Failure]:
        """Yield one row for every rollout, in input order.

        Raises:
            ConservationError: if a question's rollouts do not come one after the other, as then the cap cannot hold.
            GateNotMet: if too many answers are unscored.
            ServiceError: if a judge is away.
        """
        questions = _group_rollouts(inputs[0])
        with asyncio.Runner() as runner:
            while some := list(islice(questions, QUESTIONS_AT_ONCE)):
                judged = runner.run(self._judge([rollout for rollouts in some for rollout in rollouts]))
                for rollouts in some:
                    yield from self._select(rollouts, judged)

    async def _judge(self, rollouts: Sequence[Rollout]) -> dict[str, Judgement]:
        """Return the judgements by rollout."""
        asked = (self.jury.judge(each.question, each.answer, each.reference, each.record_id) for each in rollouts)
        judged: dict[str, Judgement] = {}
        # All are let finish before the first error is raised: what was sent is paid for, and recorded when it comes.
        for rollout, judgement in zip(rollouts, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(judgement, BaseException):
                raise judgement
            if self.watch is not None:
                self.watch.add(judgement.verdict, judgement.detail)
            judged[rollout.record_id] = judgement
        return judged

    def _select(self, rollouts: Sequence[Rollout], judged: Mapping[str, Judgement]) -> Iterator[Trajectory | Rejection]:
        findings = [find_faults(rollout, judged[rollout.record_id]) for rollout in rollouts]
        faultless = [rollout for rollout, faults in zip(rollouts, findings, strict=True) if not faults]
        faultless.sort(key=lambda rollout: (len(rollout.steps), rollout.attempt))
        kept = {rollout.record_id for rollout in faultless[: self.max_accepted]}
        for rollout, faults in zip(rollouts, findings, strict=True):
            if rollout.record_id in kept:
                yield accept_rollout(rollout, judged[rollout.record_id])
                continue
            over = Finding("over-cap", f"{self.max_accepted} rollouts with fewer steps or earlier attempts were kept")
            yield _reject(rollout, faults or (over,))


def _group_rollouts(rows: Iterable[Rollout]) -> Iterator[list[Rollout]]:
    """Yield each question's rollouts: the rollouts stage writes them one after the other."""
    seen: set[str] = set()
    for question, group in groupby(rows, key=lambda rollout: rollout.parent_id):
        if question in seen:
            raise ConservationError(f"trajectories: the rollouts of {question} do not come one after the other")
        seen.add(question)
        yield list(group)


def find_faults(rollout: Rollout, judgement: Judgement | None = None) -> tuple[Finding, ...]:
    """Return every reason against a rollout, in the order of the cascade: format, answer given, right, and seen.

    A missing answer is not compared, so it is never wrong as well.

    Args:
        rollout: with its reference.
        judgement: of its answer; without one the comparer alone decides.
    """
    faults = []
    problem = _find_format_problem(rollout)
    if problem:
        faults.append(Finding("format", problem))
    if rollout.answer.strip().casefold() in NO_ANSWERS:
        faults.append(Finding("no-answer", f"stopped by {rollout.stop_reason}, answer {rollout.answer!r}"))
        return tuple(faults)
    held = judgement or Judgement(compare_answers(rollout.answer, rollout.reference), "comparer")
    against = f"{rollout.answer!r} against {rollout.reference.surface!r}"
    if held.verdict == "incorrect":
        faults.append(Finding("wrong-answer", f"{rollout.answer!r} instead of {rollout.reference.surface!r}"))
    elif held.verdict == "unscored":
        faults.append(Finding("unscored", f"{against} ({held.detail})" if held.detail else against))
    elif not any(support.what == ANSWER for support in find_supports(rollout)):
        faults.append(Finding("unsupported", f"{rollout.answer!r} is right but stands in no observation"))
    return tuple(faults)


def _find_format_problem(rollout: Rollout) -> str:
    if not rollout.steps:
        return "" if rollout.stop_reason in ("turn-limit", "context-limit") else "no step"
    *calls, last = rollout.steps
    answered = rollout.stop_reason == "answered"
    for number, step in enumerate(rollout.steps):
        problem = _find_step_problem(step, answers=answered and step is last)
        if problem:
            return f"step {number}: {problem}"
    return "" if rollout.stop_reason != "format" else f"step {len(calls)}: stopped by format"


def _find_step_problem(step: Step, *, answers: bool) -> str:
    try:
        turn = parse_turn(step.reply)
    except BadTurn as error:
        return str(error)
    if (turn.thought, turn.tool, turn.arguments) != (step.thought, step.tool, step.arguments):
        return "the step is not what its reply says"
    if answers:
        return "the last step makes a call" if step.tool else ""
    if not step.tool or step.observation is None:
        return "a step before the answer must be a call with its observation"
    return f"{step.tool}: {step.observation.error}" if step.observation.error in BAD_CALLS else ""


def accept_rollout(rollout: Rollout, judgement: Judgement) -> Trajectory:
    """Return a rollout as a trajectory whose answer was found correct."""
    supports = find_supports(rollout)
    return Trajectory(**dict(rollout), verdict=judgement.verdict, decided_by=judgement.by, supports=supports)


def _reject(rollout: Rollout, faults: Sequence[Finding]) -> Rejection:
    return Rejection(
        record_id=rollout.record_id,
        reason=faults[0].reason,
        detail="; ".join(f"{fault.reason}: {fault.detail}" for fault in faults),
        codes=tuple(fault.reason for fault in faults),
    )
