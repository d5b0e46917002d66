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
    ESTIMATE,
    CascadeResult,
    RolloutFault,
    examine_rollout,
)
from pipelines.agent.judging import (
    COMPARER_ALONE,
    Judgement,
    Jury,
    ProcessJudgement,
    ProcessJury,
    UnscoredWatch,
    Verifier,
)
from pipelines.config.settings import TrajectoriesConfig
from pipelines.ids import digest_value
from pipelines.services.prompting import Prompted
from schemas.datasets import Rollout
from schemas.manifest import ModelEntry
from schemas.reasons import TrajectoryReason
from schemas.tasks import VerificationReply

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
class Cascade(Prompted):
    """Everything that accepts or refuses a rollout, which is judged by itself: no other rollout counts.

    Attributes:
        rules: the section of the configuration.
        jury: judges answers that the comparer leaves open.
        process: marks rollouts without faults; None makes no request.
        verifier: verifies them, in the place of marks; None makes no request.
        watch: stops the run if too many answers are unscored; None counts none.
    """

    rules: TrajectoriesConfig = DEFAULTS
    jury: Jury = COMPARER_ALONE
    process: ProcessJury | None = None
    watch: UnscoredWatch | None = None
    verifier: Verifier | None = None

    @property
    def identity(self) -> str:
        judges = [each.identity for each in (self.jury, *self._judges)]
        return digest_value([self.rules.model_dump(), *judges, ESTIMATE])

    @property
    def _judges(self) -> tuple[ProcessJury | Verifier, ...]:
        return tuple(each for each in (self.process, self.verifier) if each is not None)

    def models(self) -> tuple[ModelEntry, ...]:
        found = (each.models() for each in (self.jury, *self._judges))
        return next(filter(None, found), ())

    async def assess(self, rollout: Rollout) -> Assessment:
        """Return every reason against a rollout; whoever judges the way is asked only where there is no other."""
        judgement = await self.jury.judge(rollout.question, rollout.answer, rollout.reference, rollout.record_id)
        self._watch(judgement.verdict == "unscored", judgement.detail)
        found = examine_rollout(rollout, judgement, self.rules)
        marks, faults = None, found.faults
        if self.process is not None and not faults:
            marks = await self.process.mark(rollout)
            self._watch(marks.process is None, marks.problem)
            faults = self._list_process_faults(marks)
        if self.verifier is not None and not faults:
            faults = self._list_verification_faults(await self.verifier.verify(rollout))
        return Assessment(judgement, found, marks, faults)

    def _list_verification_faults(self, said: VerificationReply | str) -> tuple[RolloutFault, ...]:
        self._watch(isinstance(said, str), said if isinstance(said, str) else "")
        if isinstance(said, str):
            return (RolloutFault("unverified", said),)
        false: list[TrajectoryReason] = []
        if "coherence" in self.rules.verifications and not said.coherent:
            false.append("incoherent")
        if "plausibility" in self.rules.verifications and not said.plausible:
            false.append("implausible")
        return tuple(RolloutFault(reason, f"from step {said.step} on") for reason in false)

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
