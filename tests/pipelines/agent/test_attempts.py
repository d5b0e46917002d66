"""Which attempts a difficulty preset makes, and what they decide."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.attempts import (
    Filter,
    Tally,
    is_settled,
    make_decoys,
    make_plan,
    refuse_cell,
)
from pipelines.graph.answers import compare_answers, type_answer

VERDICTS = ("correct", "incorrect", "unscored")
OUTCOMES = st.lists(st.sampled_from(VERDICTS), max_size=8)


def count(verdicts) -> Tally:
    tally = Tally()
    for verdict in verdicts:
        tally = tally.add(verdict)
    return tally


def bound(max_correct) -> Filter:
    return Filter("text", "solved-without-tools", max_correct)


def list_steps(preset, **changes):
    steps = make_plan(preset, **changes).filters
    return [(step.condition, step.max_correct, step.reason) for step in steps]


# presets


def test_opensearch_vl_filters_without_tools_and_then_with_one_image_search():
    assert list_steps("opensearch-vl") == [
        ("text", 0, "solved-without-tools"),
        ("image", 0, "solved-without-tools"),
        ("image+image-search", 0, "solved-by-one-image-search"),
    ]


# bounds


@pytest.mark.parametrize(
    ("tally", "reason"),
    [
        (Tally(8, 1, 0), "solved-without-tools"),
        (Tally(8, 1, 3), "solved-without-tools"),
        (Tally(8, 0, 1), "unscored"),
        (Tally(8, 0, 0), None),
    ],
)
def test_a_bound_refuses_what_was_solved_or_might_have_been(tally, reason):
    assert refuse_cell(bound(0), tally) == reason


@cache
def list_decisions(tally, planned, max_correct):
    """Return every decision that some continuation of the attempts leads to."""
    if tally.done == planned:
        return frozenset([refuse_cell(bound(max_correct), tally)])
    return frozenset().union(*(list_decisions(tally.add(verdict), planned, max_correct) for verdict in VERDICTS))


@given(OUTCOMES, st.integers(0, 4), st.integers(0, 9))
def test_attempts_stop_exactly_when_no_continuation_changes_decision_or_reason(verdicts, left, max_correct):
    tally = count(verdicts)
    planned = tally.done + left
    settled = is_settled(tally, planned, max_correct)
    assert settled == (len(list_decisions(tally, planned, max_correct)) == 1)
    if settled and max_correct < planned:
        # A decision that stands is the one that is read off at the stop.
        assert list_decisions(tally, planned, max_correct) == {refuse_cell(bound(max_correct), tally)}


def typed(text, relation="label"):
    answer = type_answer(text, "", relation)
    assert answer is not None
    return answer


@pytest.mark.parametrize("text", ["5 April 1931", "12 km", "-3 °C", "$7", "Kelmor Bridge", "Ana Dvořák", "Marn"])
def test_a_decoy_is_incorrect_and_of_the_same_type(text):
    answer = typed(text)
    decoys = make_decoys(answer, 5)
    assert len(set(decoys)) == 5
    assert {compare_answers(decoy, answer) for decoy in decoys} == {"incorrect"}
    assert {typed(decoy).type for decoy in decoys} == {answer.type}
