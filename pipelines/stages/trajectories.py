"""Trajectories: the rollouts that pass the rejection cascade, with pointers to where each name was seen.

The cascade checks protocol, answer and process. Of the rollouts without faults, those with the fewest steps are kept,
if a process judge is configured only those it marks well. Each rejection names every reason that was found.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, ClassVar, TypeVar

from pipelines.agent.cascade import (
    DEFAULTS,
    ESTIMATED,
    FATAL_ERRORS,
    CascadeResult,
    RolloutFault,
    TokenCounter,
    examine_rollout,
    find_faults,
)
from pipelines.agent.judging import COMPARER_ALONE, Judgement, Jury, ProcessJudgement, ProcessJury, UnscoredWatch
from pipelines.checks.rollouts import list_loss
from pipelines.config.settings import TrajectoriesConfig
from pipelines.errors import ConservationError
from pipelines.ids import digest_value
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Rollout, Trajectory
from schemas.manifest import ModelEntry

__all__ = ["QUESTIONS_AT_ONCE", "Trajectories", "find_faults"]

QUESTIONS_AT_ONCE = 32
"""Questions whose rollouts are judged at the same time, and held in memory."""
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class _JudgedRollout:
    """A rollout with its judgement and the result of the cascade."""

    rollout: Rollout
    judgement: Judgement
    examination: CascadeResult


@dataclass(frozen=True, slots=True)
class Trajectories:
    """The stage: rollouts in, at most ``rules.max_accepted`` trajectories a question out.

    Attributes:
        rules: the section of the configuration.
        jury: judges answers that the comparer leaves open.
        process: marks rollouts without faults until enough are kept; None makes no request.
        watch: stops the run if too many answers are unscored; None counts none.
        counter: counts tokens.
    """

    rules: TrajectoriesConfig = DEFAULTS
    jury: Jury = COMPARER_ALONE
    process: ProcessJury | None = None
    watch: UnscoredWatch | None = None
    counter: TokenCounter = ESTIMATED
    fatal_errors: int = FATAL_ERRORS
    name: str = "trajectories"
    version: int = 3
    inputs: ClassVar[tuple[type[Record], ...]] = (Rollout,)
    output: ClassVar[type[Record]] = Trajectory

    def fingerprint(self) -> str:
        """Digest of the rules, the judges and how lengths are counted."""
        process = "" if self.process is None else self.process.identity
        settings = [self.rules.model_dump(), self.fatal_errors]
        return digest_value([*settings, self.jury.identity, process, self.counter.identity])

    def prompts(self) -> dict[str, str]:
        """Those of the judges."""
        return self.jury.prompts() | ({} if self.process is None else self.process.prompts())

    def models(self) -> tuple[ModelEntry, ...]:
        """The judges."""
        return self.jury.models() + (() if self.process is None else self.process.models())

    def __call__(self, inputs: Sequence[Iterable[Rollout]]) -> Iterator[Trajectory | Rejection | Failure]:
        """Yield one row for every rollout, in input order.

        Raises:
            ConservationError: if a question's rollouts do not come one after the other, as then the cap cannot hold.
            GateNotMet: if too many answers or ways are unscored.
            ServiceError: if a judge is away.
        """
        questions = _group_rollouts(inputs[0])
        with asyncio.Runner() as runner:
            while some := list(islice(questions, QUESTIONS_AT_ONCE)):
                judged = iter(runner.run(self._judge([rollout for rollouts in some for rollout in rollouts])))
                cases = [[self._examine(rollout, next(judged)) for rollout in rollouts] for rollouts in some]
                marked = runner.run(_finish([self._mark(_rank(group)) for group in cases]))
                for group, marks in zip(cases, marked, strict=True):
                    yield from self._select(group, marks)

    async def _judge(self, rollouts: Sequence[Rollout]) -> list[Judgement]:
        """Return the judgements of the answers."""
        judge = self.jury.judge
        judged = await _finish([judge(each.question, each.answer, each.reference, each.record_id) for each in rollouts])
        if self.watch is not None:
            for judgement in judged:
                self.watch.add(judgement.verdict, judgement.detail)
        return judged

    def _examine(self, rollout: Rollout, judgement: Judgement) -> _JudgedRollout:
        found = examine_rollout(rollout, judgement, self.rules, self.counter, self.fatal_errors)
        return _JudgedRollout(rollout, judgement, found)

    async def _mark(self, ranked: Sequence[_JudgedRollout]) -> dict[str, ProcessJudgement]:
        """Return the process judge's marks of a question's best rollouts, as many as it takes to keep enough."""
        marked: dict[str, ProcessJudgement] = {}
        kept = 0
        while self.process is not None and kept < self.rules.max_accepted and len(marked) < len(ranked):
            some = ranked[len(marked) :][: self.rules.max_accepted - kept]
            for case, judgement in zip(
                some, await _finish([self.process.mark(each.rollout) for each in some]), strict=True
            ):
                marked[case.rollout.record_id] = judgement
                kept += self._find_process_fault(judgement) is None
                if self.watch is not None:
                    self.watch.add("unscored" if judgement.process is None else "correct", judgement.problem)
        return marked

    def _find_process_fault(self, judgement: ProcessJudgement) -> RolloutFault | None:
        if judgement.process is None:
            return RolloutFault("process-unscored", judgement.problem)
        if judgement.process.score >= self.rules.min_process:
            return None
        marks = judgement.process
        given = f"{marks.relevance}, {marks.progression}, {marks.evidence}, {marks.cross_modal}"
        return RolloutFault("poor-process", f"marks {given}; the least mean is {self.rules.min_process:g}")

    def _select(
        self, cases: Sequence[_JudgedRollout], marked: Mapping[str, ProcessJudgement]
    ) -> Iterator[Trajectory | Rejection]:
        faults = {case.rollout.record_id: list(case.examination.faults) for case in cases}
        for name, judgement in marked.items():
            fault = self._find_process_fault(judgement)
            faults[name] += [] if fault is None else [fault]
        left = [case for case in _rank(cases) if not faults[case.rollout.record_id]]
        for case in left[self.rules.max_accepted :]:
            why = f"{self.rules.max_accepted} rollouts with fewer steps or earlier attempts were kept"
            faults[case.rollout.record_id].append(RolloutFault("over-cap", why))
        for case in cases:
            name = case.rollout.record_id
            yield _reject(name, faults[name]) if faults[name] else _accept(case, marked.get(name))


async def _finish(asked: Sequence[Coroutine[Any, Any, ValueT]]) -> list[ValueT]:
    """Return the results of several requests; all finish before the first error is raised, as they are paid."""
    given = await asyncio.gather(*asked, return_exceptions=True)
    done: list[ValueT] = []
    for each in given:
        if isinstance(each, BaseException):
            raise each
        done.append(each)
    return done


def _group_rollouts(rows: Iterable[Rollout]) -> Iterator[list[Rollout]]:
    """Yield each question's rollouts: the rollouts stage writes them one after the other."""
    seen: set[str] = set()
    for question, group in groupby(rows, key=lambda rollout: rollout.parent_id):
        if question in seen:
            raise ConservationError(f"trajectories: the rollouts of {question} do not come one after the other")
        seen.add(question)
        yield list(group)


def _rank(cases: Sequence[_JudgedRollout]) -> list[_JudgedRollout]:
    """Return the rollouts without faults, those with the fewest steps first."""
    faultless = [case for case in cases if not case.examination.faults]
    return sorted(faultless, key=lambda case: (len(case.rollout.steps), case.rollout.attempt))


def _accept(case: _JudgedRollout, marks: ProcessJudgement | None) -> Trajectory:
    return Trajectory(
        **dict(case.rollout),
        verdict=case.judgement.verdict,
        decided_by=case.judgement.by,
        supports=case.examination.supports,
        process=None if marks is None else marks.process,
        loss=list_loss(case.rollout.steps),
        tokens=case.examination.tokens,
    )


def _reject(record_id: str, faults: Sequence[RolloutFault]) -> Rejection:
    return Rejection(
        record_id=record_id,
        reason=faults[0].reason,
        detail="; ".join(f"{fault.reason}: {fault.detail}" for fault in faults),
        codes=tuple(fault.reason for fault in faults),
    )
