"""Trajectories: the rollouts that pass the rejection cascade, with pointers to where each name was seen.

The cascade checks protocol, answer and process. Each rejection names every reason that was found. Nothing that passes
is dropped: how many are wanted of a question decides how many are asked for (:mod:`pipelines.stages.rollouts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipelines.agent.acceptance import Assessment, Cascade
from pipelines.agent.cascade import RolloutFault, list_left_out
from pipelines.agent.judging import UnscoredWatch
from pipelines.checks.rollouts import list_loss
from pipelines.services.prompting import Prompted
from schemas.base import Record, Rejection
from schemas.datasets import Rollout, Trajectory, Verification
from schemas.manifest import ModelEntry


@dataclass(frozen=True, slots=True)
class Trajectories(Prompted):
    """The stage: a rollout in, a trajectory or a rejection out."""

    cascade: Cascade = field(default_factory=Cascade)
    name: str = "trajectories"
    version: int = 5
    input: ClassVar[type[Record]] = Rollout
    output: ClassVar[type[Record]] = Trajectory

    @property
    def watch(self) -> UnscoredWatch | None:
        """What counts its unscored answers."""
        return self.cascade.watch

    def fingerprint(self) -> str:
        return self.cascade.identity

    def models(self) -> tuple[ModelEntry, ...]:
        return self.cascade.models()

    async def __call__(self, record: Rollout) -> Sequence[Trajectory] | Rejection:
        found = await self.cascade.assess(record)
        if not found.accepted:
            return _reject(record.record_id, found.faults)
        rules = self.cascade.rules
        verified = () if self.cascade.verifier is None else rules.verifications
        return (_accept(record, found, verified, list_left_out(rules, record)),)


def _accept(
    rollout: Rollout, found: Assessment, verified: tuple[Verification, ...], left_out: tuple[str, ...]
) -> Trajectory:
    return Trajectory(
        **dict(rollout),
        verdict=found.judgement.verdict,
        decided_by=found.judgement.by,
        supports=found.examination.supports,
        process=None if found.marks is None else found.marks.process,
        verified=verified,
        loss=list_loss(rollout.steps),
        tokens=found.examination.tokens,
        left_out=left_out,
    )


def _reject(record_id: str, faults: Sequence[RolloutFault]) -> Rejection:
    return Rejection(
        record_id=record_id,
        reason=faults[0].reason,
        detail="; ".join(f"{fault.reason}: {fault.detail}" for fault in faults),
        codes=tuple(fault.reason for fault in faults),
    )
