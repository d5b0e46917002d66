"""Rollouts: attempts of the teacher at each question, in waves, until as many as are wanted are accepted.

A wave asks for as many attempts as are still missing, all at once. What a wave brought is held against the rejection
cascade, the same that the stage ``trajectories`` records, and the next wave begins where something is still missing. No
attempt is made that could only be dropped. Attempts are numbered, and the number decides an attempt's sampling, so that
a run gives the same rollouts however its waves fall.

A rollout is resumed by replay: replies of the model and the tools are recorded, so an interrupted rollout takes its
turns from the recording and requests the first one that is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipelines.agent.acceptance import Cascade, finish_all
from pipelines.agent.attempts import make_decoys
from pipelines.agent.judging import UnscoredWatch
from pipelines.agent.loop import Agent, run_rollout
from pipelines.agent.scenes import TOOL
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from schemas.base import Record, Rejection
from schemas.datasets import Enhancement, Rollout, Split
from schemas.manifest import ModelEntry
from schemas.tasks import TeacherHop, TeacherOracle


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The stage: one question in, its rollouts out, whether they succeed or not.

    Attributes:
        attempts: most rollouts of a question; 5 in OpenSearch-VL (K).
        wanted: accepted rollouts after which no further one is asked for; as many as attempts: all are made at once.
        cascade: says what is accepted.
    """

    agent: Agent
    attempts: int = 5
    wanted: int = 5
    splits: Sequence[Split] = ("sft",)
    cascade: Cascade = field(default_factory=Cascade)
    name: str = "rollouts"
    version: int = 7
    input: ClassVar[type[Record]] = Enhancement
    output: ClassVar[type[Record]] = Rollout

    @property
    def stops_early(self) -> bool:
        """Whether the number of rollouts depends on what is accepted."""
        return self.wanted < self.attempts

    @property
    def watch(self) -> UnscoredWatch | None:
        """What counts its unscored answers."""
        return self.cascade.watch

    def fingerprint(self) -> str:
        decides = self.cascade.identity if self.stops_early else ""
        numbers = [self.attempts, min(self.wanted, self.attempts), sorted(self.splits)]
        return digest_value([*numbers, self.agent.identity, decides])

    def prompts(self) -> dict[str, str]:
        judges = self.cascade.prompts() if self.stops_early else {}
        return {self.agent.prompt.label: self.agent.prompt.digest} | judges

    def models(self) -> tuple[ModelEntry, ...]:
        model, sampling = self.agent.model, self.agent.sampling.describe()
        teacher = ModelEntry(role="teacher", name=model.name, revision=model.identity, sampling=sampling)
        return (teacher, *(self.cascade.models() if self.stops_early else ()))

    async def __call__(self, record: Enhancement) -> Sequence[Rollout] | Rejection:
        if record.split not in self.splits:
            detail = f"{record.split} is not of rollouts.splits"
            return Rejection(record_id=record.record_id, reason="other-split", detail=detail)
        if record.picture is None:
            detail = "the question has no picture, and a rollout begins with img_1"
            return Rejection(record_id=record.record_id, reason="no-teacher-turn", detail=detail)
        rollouts: list[Rollout] = []
        missing = self.wanted
        while missing > 0 and len(rollouts) < self.attempts:
            wave = range(len(rollouts), min(len(rollouts) + missing, self.attempts))
            made = await finish_all([run_rollout(self.agent, record, make_oracle(record, number)) for number in wave])
            rollouts += made
            if len(rollouts) < self.attempts:
                missing -= sum(found.accepted for found in await finish_all(list(map(self.cascade.assess, made))))
        if all(rollout.stop_reason == "failed" for rollout in rollouts):
            error, _, detail = rollouts[0].failure.partition(": ")
            raise RecordFailed(error, detail)
        return rollouts


def make_oracle(question: Enhancement, attempt: int) -> TeacherOracle:
    """Return the proof as a plan for scripted teachers; the answer node is the last hop's object.

    Without a proof the plan ends at what the picture shows, where that is known.
    """
    (wrong,) = make_decoys(question.answer, 1)
    proof, trace = question.proof, question.trace
    titles = {node.page_id: node.title for node in proof.nodes}
    hops = tuple(
        TeacherHop(relation=hop.relation, clause=hop.clause, object_title=titles[hop.object_id]) for hop in proof.hops
    )
    asked = proof.answer_relation
    if trace is not None:
        first, second = trace.links
        hops = (TeacherHop(relation=first.relation, clause="", object_title=first.object, page=second.evidence.title),)
        asked = second.relation
    return TeacherOracle(
        question_id=question.record_id,
        attempt=attempt,
        anchor_title=question.shown_title,
        hops=hops,
        answer_relation=asked,
        answer=question.answer,
        wrong_answer=wrong,
        repair=question.trial.repair if question.trial else TOOL if question.scene else "",
        box=question.scene.box if question.scene else (),
    )
