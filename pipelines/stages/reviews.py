"""Reviews: the second phase of the filter, where people decide what a model left open (BridgeVQA, section 3.3).

The dataset is called ``groundings``: from here on a question about the news goes the way of every other. What nobody
has decided yet is refused as ``undecided``; a run writes it out for people and reads back what they said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, get_args

from pipelines.graph.proofs import NO_PROOF, make_question_id
from pipelines.ids import digest_value
from pipelines.services.prompting import WithoutModels
from schemas.base import Record, Rejection
from schemas.datasets import Bridge, Grounding
from schemas.reasons import GroundingReason

REASONS = frozenset(get_args(GroundingReason))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said of a chain of reasoning."""

    accepted: bool
    decided_by: str
    decided_on: str
    """Day as ``2026-11-22``."""


@dataclass(frozen=True)
class Reviews(WithoutModels):
    """The stage: questions with a model's verdict in, those that it or a person found sound out."""

    decisions: Mapping[str, Decision] = field(default_factory=dict)
    """By the id of the bridge; a person's word is above the model's."""
    name: str = "groundings"
    version: int = 2
    input: ClassVar[type[Record]] = Bridge
    output: ClassVar[type[Record]] = Grounding

    def fingerprint(self) -> str:
        return digest_value(["reviews", sorted((key, repr(value)) for key, value in self.decisions.items())])

    async def __call__(self, record: Bridge) -> Sequence[Grounding] | Rejection:
        decision = self.decisions.get(record.record_id)
        if decision is None and record.verdict != "yes":
            return Rejection(record_id=record.record_id, reason="undecided", detail=record.remark)
        if decision is not None and not decision.accepted:
            detail = f"by {decision.decided_by} on {decision.decided_on}"
            return Rejection(record_id=record.record_id, reason="refused-by-person", detail=detail)
        trace = record.trace
        if decision is not None:
            by = {"decided_by": decision.decided_by, "decided_on": decision.decided_on}
            trace = trace.model_copy(update=by)
        return (
            Grounding(
                record_id=make_question_id(record.text, record.picture.sha256, record.answer, NO_PROOF),
                parent_id=record.record_id,
                split=record.split,
                domain=trace.anchor_kind,
                text=record.text,
                fuzzy=record.text,
                canonical=record.text,
                picture=record.picture,
                answer=record.answer,
                proof=NO_PROOF,
                trace=trace,
            ),
        )
