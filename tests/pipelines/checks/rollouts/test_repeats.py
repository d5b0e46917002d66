import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.rollouts import check_repetition
from tests.pipelines.checks.rollouts.walking import CLEAN, ENGINEER, TOWN, answer, call, fail, search, see, walk


def judge(*steps, **settings):
    return check_repetition(walk(*steps, answer()), **settings)


def test_a_clean_rollout_repeats_nothing():
    assert check_repetition(walk()).passed


@pytest.mark.parametrize("step", CLEAN[:-1])
def test_an_identical_call_is_a_repetition(step):
    result = judge(step, CLEAN[1], step)
    assert (result.outcome, result.code) == ("FAIL", "repetition")
    assert "step 2 as 0 (identical call)" in result.detail


@pytest.mark.parametrize(
    ("first", "second", "repeats"),
    [
        ("Ana Kovač birth place", "birth place of the Ana Kovač", True),
        ("Ana Kovač birth place", "KOVAC, Ana: birth-place?", True),
        ("Ana Kovač birth place", "Ana Kovač death place", False),
        ("Ana Kovač birth place", "Ana Kovač", False),
        ("the who", "who is the", False),
        ("one two three four", "one two three four five", True),
        ("one two three four", "one two three four five six", False),
    ],
)
def test_queries_of_the_same_words_are_a_repetition(first, second, repeats):
    assert judge(search(first, ENGINEER), search(second, TOWN)).passed != repeats


def test_another_query_that_leads_to_the_same_pages_is_a_repetition():
    first, second = search("engineer of Velm", ENGINEER, TOWN), search("Kovač family", ENGINEER, TOWN)
    assert "the same results" in judge(first, second).detail
    assert judge(first, search("Kovač family", TOWN)).passed


def test_a_call_that_failed_may_be_tried_again_but_not_fail_again():
    missing = fail(url="https://example.org/x")
    found = call("visit", see("Title: X"), url="https://example.org/x")
    assert judge(missing, found).passed
    assert not judge(missing, missing).passed
    assert not judge(found, missing).passed


@given(st.lists(st.sampled_from(CLEAN[:-1]), max_size=8))
def test_a_rollout_repeats_exactly_when_a_call_comes_twice(steps):
    assert judge(*steps).passed == (len({step.arguments for step in steps}) == len(steps))
