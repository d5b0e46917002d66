"""Rollouts with one planted defect each, as small sets of minimal pairs."""

from functools import partial
from itertools import islice
from random import Random

from schemas.reasons import TrajectoryReason
from tests.mutants.corpora import SCENES, WORDS, Corpora, Judge, flips
from tests.planted.catalogue import list_editors
from tests.planted.rollout_plants import CASCADE, Edits, Operator, judge_edits, roll_out
from tests.planted.words import Pair


def list_trajectory_sets(corpora: Corpora) -> dict[str, Judge]:
    return {f"D22 {title}": keep_edits(corpora, operator, reason) for _, title, reason, operator in list_editors()}


def keep_edits(corpora: Corpora, operator: Operator, reason: TrajectoryReason) -> Judge:
    """Return what judges the same edits each time: the first whose pairs flip while the checks are right.

    Pairs that only this check refuses come first, as of others a mutant may leave the refusal to another check.
    """
    kept: list[Edits] = []
    judge_pair = partial(judge_edits, CASCADE, reason=reason)

    def judge() -> list[Pair]:
        if not kept:
            made = (
                edits
                for case in corpora.cases
                for attempt in range(2)
                if (rollout := roll_out(case.pool, case.question, attempt)) is not None
                and (edits := operator(rollout, WORDS, Random(f"{rollout.record_id}:{attempt}"))) is not None
            )
            kept.extend(islice((edits for edits in made if flips(judge_pair(edits))), SCENES))
        return [judge_pair(edits) for edits in kept]

    return judge
