from random import Random

import pytest

from schemas.datasets import Rollout
from tests.planted.catalogue import list_editors
from tests.planted.rollout_plants import CASCADE, judge_edits, plant_edits, roll_out
from tests.planted.test_corpus_plants import list_cases
from tests.planted.words import HALVES, Pair, load_half

EDITORS = {title: (reason, operator) for _, title, reason, operator in list_editors()}
EXCUSED = 1
"""Pairs of a kind that may fail: recall is measured by the bench, on many more."""


@pytest.fixture(scope="module")
def rollouts(pool) -> list[Rollout]:
    made = (roll_out(pool, case.question, attempt) for case in list_cases(pool) for attempt in range(2))
    return [rollout for rollout in made if rollout is not None]


def plant(rollouts, title: str, half: str) -> list[Pair]:
    reason, operator = EDITORS[title]
    edits = (operator(rollout, load_half(half), Random(number)) for number, rollout in enumerate(rollouts))
    return [judge_edits(CASCADE, each, reason) for each in edits if each is not None]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("title", EDITORS)
def test_the_cascade_tells_a_rollout_from_its_defective_twin(rollouts, title, half):
    pairs = plant(rollouts, title, half)
    assert [pair for pair in pairs if not pair.clean.passed] == []
    assert len(pairs) > EXCUSED
    assert sum(not pair.caught for pair in pairs) <= EXCUSED


def test_twins_differ_and_are_of_one_question(rollouts):
    for _, operator in EDITORS.values():
        for number, rollout in enumerate(rollouts[:4]):
            edits = operator(rollout, load_half("open"), Random(number))
            if edits is not None:
                assert edits.clean != edits.defective
                assert edits.clean.record_id == edits.defective.record_id == rollout.record_id


def test_a_pair_of_a_question_is_judged_through_the_stage(pool):
    case = list_cases(pool)[0]
    assert roll_out(pool, case.question.model_copy(update={"picture": None}), 0) is None
    reason, operator = EDITORS["no call"]
    pair = plant_edits(operator, reason, case, load_half("open"), Random(1))
    assert pair is None or (pair.flips and pair.codes == ("from-memory",))
