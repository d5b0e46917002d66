"""Which attempts a difficulty preset makes, and what they decide."""

from functools import cache
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.attempts import (
    Filter,
    Preset,
    Tally,
    fit_filters,
    is_enough,
    is_settled,
    make_decoys,
    make_plan,
    refuse_cell,
)
from pipelines.graph.answers import compare_answers, type_answer
from schemas.proofs import Answer

VERDICTS = ("correct", "incorrect", "unscored")
OUTCOMES = st.lists(st.sampled_from(VERDICTS), max_size=8)


def count(verdicts) -> Tally:
    tally = Tally()
    for verdict in verdicts:
        tally = tally.add(verdict)
    return tally


def bound(max_correct) -> Filter:
    return Filter("text", "solver", max_correct, "solved-without-tools")


def list_steps(preset, **changes):
    steps = make_plan(preset, **changes).filters
    return [(step.condition, step.role, step.max_correct, step.reason) for step in steps]


# presets


def test_opensearch_vl_filters_without_tools_and_then_with_one_image_search():
    assert list_steps("opensearch-vl") == [
        ("text", "solver", 0, "solved-without-tools"),
        ("image", "solver", 0, "solved-without-tools"),
        ("image+image-search", "solver", 0, "solved-by-one-image-search"),
    ]


# questions that lack a picture


def test_a_question_without_a_picture_is_measured_by_its_words_and_once():
    steps, left_out = fit_filters(make_plan("opensearch-vl").filters, pictured=False, swappable=False)
    assert [step.condition for step in steps] == ["text"]
    assert left_out == ["image", "image+image-search"]


@pytest.mark.parametrize("preset", get_args(Preset))
def test_no_preset_leaves_a_question_unmeasured(preset):
    steps, _ = fit_filters(make_plan(preset).filters, pictured=False, swappable=False)
    assert steps
    assert {step.condition.partition("+")[0] for step in steps} == {"text"}


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


def test_a_measurement_has_enough_at_its_end():
    measurement = Filter("image")
    assert not is_enough(measurement, Tally(7, 7, 0), 8, watched=False)
    assert is_enough(measurement, Tally(8, 0, 0), 8, watched=False)


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


@given(
    st.sampled_from(["date", "number", "name", "string"]), st.text(max_size=20), st.text(max_size=20), st.integers(0, 4)
)
def test_no_decoy_is_ever_right(kind, value, surface, count):
    answer = Answer(type=kind, value=value, precision="", unit="", surface=surface, aliases=(), key=value)
    decoys = make_decoys(answer, count)
    assert len(set(decoys)) == count
    assert "correct" not in {compare_answers(decoy, answer) for decoy in decoys}
