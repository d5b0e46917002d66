"""Which questions a release refuses: duplicates, what splits share, and what is over a limit.

Told of questions alone before the teacher is paid, and once more when it is known which of them have trajectories. The
question that comes first in the order given wins among duplicates and under every limit; callers order by what does not
depend on the order of rows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from pipelines.checks.benchmarks import Benchmarks, OwnQuestion
from pipelines.checks.copies import describe_picture
from pipelines.checks.quotas import Quotas, Stratum, place_question, refuse_surplus
from pipelines.checks.repeats import (
    NEAR_PATH,
    NEAR_PATH_ACROSS,
    NEAR_TEXT,
    NEAR_TEXT_ACROSS,
    refuse_near,
    refuse_near_across,
)
from pipelines.checks.sets import (
    Apart,
    Signature,
    make_signature,
    refuse_anchors,
    refuse_answers,
    refuse_apart,
    refuse_duplicates,
    refuse_facts,
    refuse_guessed,
    refuse_like_pictures,
    refuse_shared,
    refuse_skeletons,
)
from pipelines.checks.shares import narrow_bounds, refuse_mix, refuse_rounds
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.pictures import PictureStore
from schemas.base import Record, Rejection
from schemas.datasets import Enhancement, Split

MAX_PER_ANSWER = 5
"""Questions of a split sharing an answer or an answer node."""
MAX_PER_ANCHOR = 3
"""Questions of a split sharing an anchor."""
ROUNDS_TOLERANCE = 0.05
"""How far the share of a number of rounds of injection may be from its weight."""
COMMONEST, ONE_ANSWER = 0.1, 0.5
"""Gates of a dataset: largest share of a split that is right by the commonest answer of what is asked for, and of one
answer among its questions that ask for one relation."""
PASSES = 16
"""Most passes in which the share limits are applied in turn."""
Limit = Callable[[Sequence[Signature]], dict[str, Rejection]]
"""Returns its rejections among the questions kept so far."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a release may keep."""

    settings: ReleasesConfig = field(default_factory=ReleasesConfig)
    apart: Apart = frozenset()
    """What no question may share with other releases."""
    benchmarks: Benchmarks = field(default_factory=Benchmarks)
    """What no question may share anything with."""
    rounds: Mapping[int, float] = field(default_factory=dict)
    """Shares by number of rounds of injection; empty is no limit."""
    quotas: Quotas | None = None
    """Most questions by stratum; None is no limit."""
    per_answer: int = MAX_PER_ANSWER

    @property
    def decides(self) -> list[object]:
        """All of it, as part of a stage's fingerprint."""
        own = self.settings
        caps = [self.per_answer, MAX_PER_ANCHOR, bound_answers(own), own.max_skeleton_share, *own.search_free]
        caps += [own.max_gold_share]
        near = [NEAR_TEXT, NEAR_TEXT_ACROSS, NEAR_PATH, NEAR_PATH_ACROSS, own.max_per_fact]
        others: list[object] = [sorted(self.apart), self.benchmarks.digests]
        others += [self.quotas.decides] if self.quotas else []
        return [caps, near, sorted(self.rounds.items()), ROUNDS_TOLERANCE, own.exam, *others]


def sign_questions(rows: Iterable[Record], limits: Limits) -> tuple[list[Signature], dict[str, Stratum]]:
    """Return the signatures of questions in the order in which they are kept, and their strata by record id."""
    signatures, strata = list[Signature](), dict[str, Stratum]()
    for row in rows:
        signatures.append(make_signature(row, limits.settings.exam))
        if limits.quotas:
            strata[row.record_id] = place_question(cast(Enhancement, row), limits.quotas.by)
    if not limits.quotas:
        signatures.sort(key=lambda signature: signature.record_id)
    return signatures, strata


def leave_out(signatures: Iterable[Signature], refused: Collection[str]) -> list[Signature]:
    """Return the signatures of what is not refused."""
    return [each for each in signatures if each.record_id not in refused]


def refuse_elsewhere(
    rows: Iterable[Record], signatures: Sequence[Signature], limits: Limits, store: PictureStore | None
) -> dict[str, Rejection]:
    """Return the rejections of what a benchmark or another release has, needs no picture, or is in two splits.

    What nearly repeats a question of another split, or shows a copy of its picture, is in two. Without a store no
    pictures are compared but by their recorded hashes.
    """
    refused = limits.benchmarks.refuse(cast(Iterable[OwnQuestion], rows), store.read if store else None)
    kept = leave_out(signatures, refused)
    refused |= refuse_apart(kept, limits.apart) | refuse_gold(kept, limits.settings)
    refused |= refuse_shared(leave_out(signatures, refused))
    refused |= refuse_near_across(leave_out(signatures, refused))
    if store is None:
        return refused
    kept = leave_out(signatures, refused)
    return refused | refuse_like_pictures(kept, lambda sha256: describe_picture(store.load(sha256)[0]))


def refuse_over_limits(
    signatures: Sequence[Signature], solved: Collection[str], limits: Limits
) -> dict[str, Rejection]:
    """Return the rejections of duplicates and near ones, then of each limit in turn, by the rows kept so far."""
    settings = limits.settings
    kept, refused = refuse_duplicates(signatures)
    for refuse in (
        refuse_near,
        partial(refuse_facts, cap=settings.max_per_fact),
        partial(refuse_anchors, cap=MAX_PER_ANCHOR),
        partial(refuse_answers, cap=limits.per_answer),
    ):
        refused |= refuse(kept)
        kept = leave_out(kept, refused)
    return refused | _refuse_shares(kept, solved, limits)


def _refuse_shares(kept: Sequence[Signature], solved: Collection[str], limits: Limits) -> dict[str, Rejection]:
    refused: dict[str, Rejection] = {}
    # Shares are of what is kept: what one of them refuses may leave too much under the other.
    for number in range(PASSES + 1):
        pulling = []
        for setting, limit in _list_shares(limits, solved, number).items():
            over = limit(kept)
            kept = leave_out(kept, over)
            refused |= over
            pulling += [setting] if over else []
        if not pulling:
            return refused
    if any(limit(kept) for limit in _list_shares(limits, solved, 0).values()):
        raise GateNotMet(f"{' and '.join(pulling)} cannot all be met: each refuses what another needs; widen one")
    return refused


def refuse_over_targets(
    signatures: Sequence[Signature], strata: Mapping[str, Stratum], limits: Limits
) -> dict[str, Rejection]:
    """Return the rejections of what is beyond target sizes, and of what is over a share of the rest.

    What a share refuses of the rest makes room for others of its stratum. Fewer questions repeat one another no more
    and are over no other limit.
    """
    quotas = limits.quotas
    if quotas is None:
        return {}
    refused: dict[str, Rejection] = {}
    for _ in range(PASSES):
        left = leave_out(signatures, refused)
        surplus = refuse_surplus(left, strata, quotas.questions)
        kept = leave_out(left, surplus)
        over = _refuse_shares(kept, {each.record_id for each in kept}, limits)
        refused |= over
        if not over:
            break
    return refused | surplus


def _list_shares(limits: Limits, solved: Collection[str], number: int) -> dict[str, Limit]:
    own = limits.settings
    low, high = own.search_free
    return {
        f"releases.search_free [{low:g}, {high:g}]": partial(_refuse_mix, bounds=own.search_free, number=number),
        f"releases.max_skeleton_share {own.max_skeleton_share:g}": partial(
            refuse_skeletons, solved=solved, share=own.max_skeleton_share
        ),
        f"releases.max_answer_share {bound_answers(own):g}": partial(
            refuse_guessed, solved=solved, share=bound_answers(own)
        ),
        f"a tolerance of {ROUNDS_TOLERANCE:g} of injection.weights": partial(
            refuse_rounds, shares=limits.rounds, tolerance=ROUNDS_TOLERANCE
        ),
    }


def _refuse_mix(signatures: Sequence[Signature], bounds: tuple[float, float], number: int) -> dict[str, Rejection]:
    """Refuse what a split has too much of, questions that need no search or those that do, in pass ``number``.

    The share limits pull at each other. A share found broken again is brought further inside its bounds, by twice as
    much in each pass, so that all are met in a few passes and not a row at a time.
    """
    over = refuse_mix(signatures, bounds)
    if not over or not number:
        return over
    return refuse_mix(signatures, narrow_bounds(bounds, 2.0 ** (number - PASSES)))


def bound_gold(settings: ReleasesConfig, split: Split) -> float:
    """Return the largest gold share that a question of a split may have; training only learns to guess by it."""
    return settings.max_gold_share if split == "eval" else min(1.0, 2.0 * settings.max_gold_share)


def bound_answers(settings: ReleasesConfig) -> float:
    """Return the largest share of one answer: its own, or that of a gate which would end the run after all is paid."""
    return min(settings.max_answer_share, ONE_ANSWER, COMMONEST)


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
