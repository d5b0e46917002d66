import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.release.quality import count_rows, measure_prior


def guess_by_definition(answers):
    right = 0.0
    for place, (group, answer) in enumerate(answers):
        others = [other for at, (its, other) in enumerate(answers) if its == group and at != place]
        most = max((others.count(other) for other in others), default=0)
        frequent = {other for other in others if others.count(other) == most}
        right += (answer in frequent) / len(frequent) if frequent else 0.0
    return right / len(answers) if answers else 0.0


@given(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("abcd")), max_size=25))
def test_the_prior_is_what_guessing_from_all_other_rows_gets_right(answers):
    assert measure_prior(answers) == pytest.approx(guess_by_definition(answers), abs=1e-4)


def test_an_answer_does_not_vouch_for_itself():
    assert measure_prior([("x", "a"), ("y", "b")]) == 0.0
    assert measure_prior([("x", "a"), ("x", "a")]) == 1.0


def test_rows_in_which_something_holds_are_counted_with_their_share():
    assert count_rows([True, False, False, True]) == {"rows": 2, "share": 0.5}
    assert count_rows([]) == {"rows": 0, "share": 0.0}
