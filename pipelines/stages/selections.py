"""Selections: the questions that a release may keep, a share of them with a degraded picture.

What a release would refuse of questions alone is refused here, before the teacher is paid. The share of degraded
pictures is of what is kept, and each degradation has an equal part of it, which no stage could hold that sees one
question at a time.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast, get_args

from pipelines.agent.observations import credit_picture
from pipelines.agent.pictures import DEGRADING_VERSION, degrade_picture
from pipelines.checks.limits import (
    Limits,
    leave_out,
    refuse_elsewhere,
    refuse_over_limits,
    refuse_over_targets,
    sign_questions,
)
from pipelines.checks.sets import Signature
from pipelines.config.settings import EnhancementsConfig
from pipelines.errors import ConservationError, GateNotMet
from pipelines.graph.proofs import make_question_id
from pipelines.ids import digest_value, draw_unit
from pipelines.pictures import PictureStore
from pipelines.services.prompting import WithoutModels
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Degradation, Enhancement, Offer
from schemas.reasons import MixReason

MIXED = frozenset(get_args(MixReason))
SPREAD = 1.15
"""Most pictures of one degradation for one of the scarcest: of three, each then has its third within five points."""
Choice = dict[str, Degradation]
"""The degradation of a question's picture by the question's id."""


@dataclass(frozen=True, slots=True)
class Selections(WithoutModels):
    """The stage: questions with the ways to degrade their picture in, those that a release may keep out.

    Under a limit those with the smallest record ids are kept; with target sizes those that came first, which are of
    earlier rounds, so that a later round takes the place of few questions that were kept and paid for.
    Memory holds a signature a question, never its text.
    """

    limits: Limits
    enhancing: EnhancementsConfig
    pictures: PictureStore
    seed: int
    name: str = "selections"
    version: int = 4
    inputs: ClassVar[tuple[type[Record], ...]] = (Enhancement,)
    output: ClassVar[type[Record]] = Enhancement

    def fingerprint(self) -> str:
        enhancing = self.enhancing
        shares = [enhancing.share, enhancing.degradations, enhancing.substitute, self.seed, DEGRADING_VERSION]
        return digest_value([self.limits.decides, shares if enhancing.share else []])

    def __call__(self, inputs: Sequence[Iterable[Record]]) -> Iterator[Enhancement | Rejection | Failure]:
        signatures, strata = sign_questions(inputs[0], self.limits)
        refused = refuse_elsewhere(inputs[0], signatures, self.limits, self.pictures)
        kept = leave_out(signatures, refused)
        # Before it is asked, every question may be solved.
        refused |= refuse_over_limits(kept, {each.record_id for each in kept}, self.limits)
        _check_mix(kept, refused)
        refused |= refuse_over_targets(leave_out(kept, refused), strata, self.limits)
        offered = {
            row.record_id: tuple(offer.trial.degradation for offer in cast(Enhancement, row).offers)
            for row in inputs[0]
            if row.record_id not in refused and cast(Enhancement, row).offers
        }
        chosen = self._choose(len(signatures) - len(refused), offered)
        for row in inputs[0]:
            if row.record_id in refused:
                yield refused[row.record_id]
            else:
                yield self._settle(cast(Enhancement, row), chosen.get(row.record_id))

    def _choose(self, kept: int, offered: Mapping[str, Collection[Degradation]]) -> Choice:
        order = sorted(offered, key=lambda record_id: draw_unit(self.seed, record_id, "enhance"))
        ways = {record_id: offered[record_id] for record_id in order}
        wanted = round(self.enhancing.share * kept)
        return choose_degradations(ways, self.enhancing.degradations, wanted, self.enhancing.substitute)

    def _settle(self, row: Enhancement, degradation: Degradation | None) -> Enhancement:
        offer = next((offer for offer in row.offers if offer.trial.degradation == degradation), None)
        why = row.left_whole if not row.offers else ""
        row = row.model_copy(update={"offers": (), "left_whole": why})
        return row if offer is None else self._degrade(row, offer)

    def _degrade(self, row: Enhancement, offer: Offer) -> Enhancement:
        picture, trial = row.picture, offer.trial
        if picture is None:
            raise ConservationError(f"selections: {row.record_id} has ways to degrade a picture, and no picture")
        data = self.pictures.read(picture)
        made = degrade_picture(data, trial.degradation, trial.strength, self.seed, row.record_id).data
        stored = self.pictures.add_bytes(made, credit_picture(picture))
        changes = {
            "record_id": make_question_id(row.text, stored.sha256, row.answer, row.proof),
            "parent_id": row.record_id,
            "picture": stored,
            "original": picture,
            "trial": trial,
            "found": offer.found,
        }
        return row.model_copy(update=changes)


def _check_mix(kept: Sequence[Signature], refused: Mapping[str, Rejection]) -> None:
    mixed = [found for each in kept if (found := refused.get(each.record_id)) and found.reason in MIXED]
    if mixed and all(each.record_id in refused for each in kept):
        raise GateNotMet(f"releases.search_free: no split can meet it; {mixed[0].detail}")


def choose_degradations(
    offered: Mapping[str, Collection[Degradation]], degradations: Sequence[Degradation], wanted: int, substitute: bool
) -> Choice:
    """Return which picture is degraded how, as many as are wanted or fewer.

    Each degradation gets an equal part of what is wanted. The one that fewest pictures offer has the first choice, and
    none gets more than 15% more pictures than the one that gets fewest, or one more.
    """
    counts = Counter(way for ways in offered.values() for way in ways if way in degradations)
    scarce = sorted(counts, key=lambda way: (counts[way], degradations.index(way)))
    if not scarce:
        return {}
    each, rest = divmod(wanted, len(scarce if substitute else degradations))
    taken: dict[Degradation, list[str]] = {}
    free = dict(offered)
    for place, way in enumerate(scarce):
        # What is left over goes to those that most pictures offer.
        quota = each + (place >= len(scarce) - rest)
        taken[way] = [record_id for record_id, ways in free.items() if way in ways][:quota]
        free = {record_id: ways for record_id, ways in free.items() if record_id not in set(taken[way])}
    least = min(map(len, taken.values()))
    most = max(least + 1, int(least * SPREAD))
    chosen = {record_id: way for way, ids in taken.items() for record_id in ids[:most]}
    if substitute:
        _fill_up(offered, scarce, chosen, wanted)
    return chosen


def _fill_up(
    offered: Mapping[str, Collection[Degradation]], ways: Sequence[Degradation], chosen: Choice, wanted: int
) -> None:
    counts = Counter(chosen.values())
    queues = {way: iter([record_id for record_id, found in offered.items() if way in found]) for way in ways}
    while len(chosen) < wanted and queues:
        way = min(queues, key=lambda each: counts[each])
        record_id = next((each for each in queues[way] if each not in chosen), None)
        if record_id is None:
            del queues[way]
            continue
        chosen[record_id] = way
        counts[way] += 1
