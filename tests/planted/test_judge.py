"""D23: faults of judges."""

import asyncio

import pytest

from pipelines.graph.answers import compare_answers
from tests.planted.judge_faults import (
    ERRING,
    MISTAKEN,
    UNCLEAR,
    UNMARKED,
    count_answer_faults,
    count_rollout_faults,
    list_open_trials,
)


@pytest.mark.parametrize("count", [300, 30], ids=["answers", "rollouts"])
def test_no_fault_of_a_judge_is_a_silent_accept_or_a_silent_drop(count):
    rows = asyncio.run(count_answer_faults(count)) if count == 300 else list(count_rollout_faults(count))
    assert {row.fault for row in rows if row.judge == "answer"} == {*UNCLEAR, *ERRING}
    assert {row.fault for row in rows if row.judge == "process"} == (set(UNMARKED) if count == 30 else set())
    assert {(row.silent_accepts, row.silent_drops) for row in rows} == {(0, 0)}
    for row in rows:
        if row.fault == "away":
            assert (row.unscored, row.stopped) == (0, count)
        else:
            # A second judge stops what the first one errs on, which is every other answer.
            assert (row.unscored, row.stopped) == (count // 2 if row.fault in MISTAKEN else count, 0), row


def test_faults_are_planted_on_answers_that_the_comparer_leaves_open():
    assert {compare_answers(trial.given, trial.answer) for trial in list_open_trials(300)} == {"unscored"}
