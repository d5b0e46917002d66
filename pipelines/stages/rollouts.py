"""Rollouts: K attempts of the teacher at each question, run concurrently.

A rollout is resumed by replay: replies of the model and the tools are recorded, so an interrupted rollout takes its
turns from the recording and requests the first one that is missing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.agent.attempts import make_decoys
from pipelines.agent.loop import Agent, run_rollout
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from schemas.base import Record, Rejection
from schemas.datasets import Enhancement, Rollout
from schemas.manifest import ModelEntry
from schemas.tasks import TeacherHop, TeacherOracle


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The stage: one question in, ``attempts`` rollouts out, whether they succeed or not."""

    agent: Agent
    attempts: int = 5
    """K; 5 in OpenSearch-VL."""
    name: str = "rollouts"
    version: int = 6
    input: ClassVar[type[Record]] = Enhancement
    output: ClassVar[type[Record]] = Rollout

    def fingerprint(self) -> str:
        """Digest of the attempts and the whole agent: model, prompt, tools, limits, sampling."""
        return digest_value([self.attempts, self.agent.identity])

    def prompts(self) -> dict[str, str]:
        """Label and digest of the agent's prompt."""
        return {self.agent.prompt.label: self.agent.prompt.digest}

    def models(self) -> tuple[ModelEntry, ...]:
        """The teacher."""
        model, sampling = self.agent.model, self.agent.sampling.describe()
        return (ModelEntry(role="teacher", name=model.name, revision=model.identity, sampling=sampling),)

    async def __call__(self, record: Enhancement) -> Sequence[Rollout] | Rejection:
        """Run all attempts at once; the rows are in the order of the attempts, whichever ends first.

        If a service is away, the other attempts still finish, so that what was paid for is recorded. A failed attempt
        is a row beside the others.

        Raises:
            RecordFailed: if every attempt failed, with the first one's reason.
            ServiceError: if the teacher or a tool's backend is away.
        """
        if record.picture is None:
            detail = "the question has no picture, and a rollout begins with img_1"
            return Rejection(record_id=record.record_id, reason="no-teacher-turn", detail=detail)
        attempts = [run_rollout(self.agent, record, make_oracle(record, number)) for number in range(self.attempts)]
        return _take_all(await asyncio.gather(*attempts, return_exceptions=True))


def _take_all(ended: Sequence[Rollout | BaseException]) -> list[Rollout]:
    """Return the rollouts that did not fail; raise the first error if all failed."""
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
    rollouts = [outcome for outcome in ended if isinstance(outcome, Rollout)]
    if all(rollout.stop_reason == "failed" for rollout in rollouts):
        error, _, detail = rollouts[0].failure.partition(": ")
        raise RecordFailed(error, detail)
    return rollouts


def make_oracle(question: Enhancement, attempt: int) -> TeacherOracle:
    """Return the proof as a plan for scripted teachers; the answer node is the last hop's object."""
    (wrong,) = make_decoys(question.answer, 1)
    proof = question.proof
    titles = {node.page_id: node.title for node in proof.nodes}
    return TeacherOracle(
        question_id=question.record_id,
        attempt=attempt,
        anchor_title=proof.nodes[0].title,
        hops=tuple(
            TeacherHop(relation=hop.relation, clause=hop.clause, object_title=titles[hop.object_id])
            for hop in proof.hops
        ),
        answer_relation=proof.answer_relation,
        answer=question.answer,
        wrong_answer=wrong,
        repair=question.trial.repair if question.trial else "",
    )
