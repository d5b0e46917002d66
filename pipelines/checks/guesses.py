"""Which questions are guessed without their picture: the share of the right answer among those that the words allow."""

from collections.abc import Iterable

from pipelines.checks.sets import Signature
from pipelines.config.settings import ReleasesConfig
from schemas.base import Rejection
from schemas.datasets import Split


def bound_gold(settings: ReleasesConfig, split: Split) -> float:
    """Return the largest gold share that a question of a split may have."""
    return settings.max_gold_share if split == "eval" else settings.max_gold_share_trained


def bound_answers(settings: ReleasesConfig) -> float:
    """Return the largest share of one answer: its own, or that of a gate which would end the run after all is paid."""
    return min(settings.max_answer_share, settings.gates.one_answer, settings.gates.commonest)


def refuse_gold(signatures: Iterable[Signature], settings: ReleasesConfig) -> dict[str, Rejection]:
    """Refuse questions whose gold share is over the bound of their split (``guessed-without-picture``).

    What cannot be counted is let pass and reported as not measured.
    """
    refused: dict[str, Rejection] = {}
    for each in signatures:
        bound = bound_gold(settings, each.split)
        if each.gold_share is not None and each.gold_share > bound:
            detail = f"its answer is {each.gold_share:.1%} of those its words allow; in {each.split} {bound:.0%} may be"
            refused[each.record_id] = Rejection(
                record_id=each.record_id, reason="guessed-without-picture", detail=detail
            )
    return refused
