"""Clean rollouts to plant defects in, and what the cascade says of one: through the stage, as a run would ask it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from pipelines.agent.loop import Agent, run_rollout
from pipelines.backends.teacher import ScriptedTeacher
from pipelines.backends.teacher_plan import UNKNOWN
from pipelines.bench.plants import Pair
from pipelines.bench.pools import Pool
from pipelines.bench.scenes import Case
from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from schemas.base import Failure, Rejection
from schemas.enhancements import Enhancement
from schemas.groundings import Grounding
from schemas.reasons import TrajectoryReason
from schemas.rollouts import Rollout
from schemas.trajectories import Trajectory

TEACHER = ScriptedTeacher("bench-teacher")
"""Without a vice."""
ATTEMPTS = 3
"""Rollouts of a question: some read on where others go by a snippet."""
CASCADE = Trajectories()
"""As shipped, with no judge: every answer here is one that the comparer can tell."""
Outcome = Trajectory | Rejection | Failure


@dataclass(frozen=True, slots=True)
class Edits:
    """A rollout edited harmlessly, and edited so that it has a defect."""

    plant: str
    clean: Rollout
    defective: Rollout


Operator = Callable[[Rollout, Vocabulary, Random], Edits | None]
"""Plants one defect, if the rollout leaves room for it."""


def plant_edits(
    operator: Operator, reason: TrajectoryReason, case: Case, words: Vocabulary, rng: Random
) -> Pair | None:
    """Return a pair of rollouts of a question, judged by the cascade; None where no such pair can be made of it."""
    rollout = roll_out(case.pool, case.question, rng.randrange(ATTEMPTS))
    edits = None if rollout is None else operator(rollout, words, rng)
    return None if edits is None else judge_edits(CASCADE, edits, reason)


def judge_edits(cascade: Trajectories, edits: Edits, reason: TrajectoryReason) -> Pair:
    """Return what the cascade says of both twins."""
    clean, _ = _judge(cascade, edits.clean, "")
    defective, codes = _judge(cascade, edits.defective, reason)
    return Pair(edits.plant, clean, defective, (reason,), codes)


@lru_cache(maxsize=4096)
def roll_out(pool: Pool, question: Grounding, attempt: int) -> Rollout | None:
    """Return an attempt of a teacher without vices, None where the corpus does not lead it to the answer."""
    if question.picture is None:
        return None
    asked = Enhancement(**dict(question), cells=())
    rollout = asyncio.run(run_rollout(open_agent(pool), asked, make_oracle(asked, attempt)))
    return None if rollout.answer == UNKNOWN else rollout


@lru_cache(maxsize=16)
def open_agent(pool: Pool) -> Agent:
    """Return the agent of a run over the pool's world, with a teacher without vices."""
    return replace(pool.assemble().make_agent(), model=TEACHER)


def _judge(cascade: Trajectories, rollout: Rollout, reason: str) -> tuple[CheckResult, tuple[str, ...]]:
    """Return the wanted finding where it is one of several, else the reason, and the codes of all."""
    (outcome,) = cascade([[rollout]])
    if isinstance(outcome, Trajectory):
        return PASSED, ()
    if not isinstance(outcome, Rejection):
        return CheckResult("UNKNOWN", outcome.error, outcome.detail or ""), (outcome.error,)
    code = reason if reason in outcome.codes else outcome.reason
    return CheckResult("FAIL", code, outcome.detail or ""), outcome.codes
