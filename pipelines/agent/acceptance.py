"""Whether a rollout is accepted: the answer by the jury, the way by the cascade, what is left by the process judge.

One rule for two stages: ``rollouts`` asks it to know when enough are accepted, ``trajectories`` to decide and record.
Judges are models whose replies are recorded, so that the second stage pays nothing for what the first has asked.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pipelines.agent.cascade import (
    DEFAULTS,
    ESTIMATED,
    FATAL_ERRORS,
    CascadeResult,
    RolloutFault,
    TokenCounter,
    examine_rollout,
)
from pipelines.agent.judging import COMPARER_ALONE, Judgement, Jury, ProcessJudgement, ProcessJury, UnscoredWatch
from pipelines.config.settings import TrajectoriesConfig
from pipelines.ids import digest_value
from schemas.datasets import Rollout
from schemas.manifest import ModelEntry

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Assessment:
    """A rollout's judgement, the result of the cascade, the process judge's marks, and every reason against it."""

    judgement: Judgement
    examination: CascadeResult
    marks: ProcessJudgement | None
    """None where no process judge is configured, or other faults decide already."""
    faults: tuple[RolloutFault, ...]
    """In the order of the cascade; empty for a rollout that is accepted."""

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.faults


@dataclass(frozen=True, slots=True)
class Cascade:
    """Everything that accepts or refuses a rollout, which is judged by itself: no other rollout counts.

    Attributes:
        rules: the section of the configuration.
        jury: judges answers that the comparer leaves open.
        process: marks rollouts without faults; None makes no request.
        watch: stops the run if too many answers are unscored; None counts none.
        counter: counts tokens.
    """

    rules: TrajectoriesConfig = DEFAULTS
    jury: Jury = COMPARER_ALONE
    process: ProcessJury | None = None
    watch: UnscoredWatch | None = None
    counter: TokenCounter = ESTIMATED
    fatal_errors: int = FATAL_ERRORS

    @property
    def identity(self) -> str:
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

    async def assess(self, rollout: Rollout) -> Assessment:
        """Return every reason against a rollout; the process judge is asked only where there is no other.

        Raises:
            GateNotMet: if too many answers or ways are unscored.
            ServiceError: if a judge is away.
        """
        judgement = await self.jury.judge(rollout.question, rollout.answer, rollout.reference, rollout.record_id)
        self._watch(judgement.verdict == "unscored", judgement.detail)
        found = examine_rollout(rollout, judgement, self.rules, self.counter, self.fatal_errors)
        if self.process is None or found.faults:
            return Assessment(judgement, found, None, found.faults)
        marks = await self.process.mark(rollout)
        self._watch(marks.process is None, marks.problem)
        return Assessment(judgement, found, marks, self._list_process_faults(marks))

    def _watch(self, unscored: bool, problem: str) -> None:
        if self.watch is not None:
            self.watch.add("unscored" if unscored else "correct", problem)

    def _list_process_faults(self, marks: ProcessJudgement) -> tuple[RolloutFault, ...]:
        given = marks.process
        if given is None:
            return (RolloutFault("process-unscored", marks.problem),)
        if given.score >= self.rules.min_process:
            return ()
        four = f"{given.relevance}, {given.progression}, {given.evidence}, {given.cross_modal}"
        return (RolloutFault("poor-process", f"marks {four}; the least mean is {self.rules.min_process:g}"),)


async def finish_all(asked: Sequence[Coroutine[Any, Any, ValueT]]) -> list[ValueT]:
    """Return the results of several requests; all finish before the first error is raised, as they are paid."""
    given = await asyncio.gather(*asked, return_exceptions=True)
    done: list[ValueT] = []
    for each in given:
        if isinstance(each, BaseException):
            raise each
        done.append(each)
    return done
