import pytest

from tests.planted.trajectory_faults import MISTAKEN, UNMARKED, count_trajectory_faults

MANY = 30


@pytest.fixture(scope="module")
def rows():
    return count_trajectory_faults(MANY, 3)


def test_no_faulty_judge_lets_a_rollout_pass_or_disappear(rows):
    assert [row for row in rows if row.silent_accepts or row.silent_drops] == []


def test_every_fault_is_planted_in_both_kinds_of_judges(rows):
    assert {row.fault for row in rows if row.asked == "process"} == set(UNMARKED)
    assert {row.fault for row in rows if row.asked == "answer"} >= {"empty", "time-out", "yes and no", *MISTAKEN}
    assert {row.rollouts for row in rows} == {MANY}


def test_rollouts_that_a_judge_says_nothing_of_are_rows_that_say_so(rows):
    for row in rows:
        if row.fault == "away":
            assert (row.stopped, row.unscored) == (MANY, 0)
        elif row.fault not in MISTAKEN:
            assert (row.stopped, row.unscored) == (0, MANY)


def test_judges_that_differ_leave_only_what_one_of_them_errs_on(rows):
    assert {row.unscored for row in rows if row.fault in MISTAKEN} == {MANY // 2}
