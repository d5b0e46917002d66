import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipelines.errors import ConfigError
from pipelines.inspection.explain import explain_record, render_explanation, trace_line

QUESTION = "question-0000000000000001"


def render(explanation):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(render_explanation(explanation))
    return capture.get()


def test_a_question_is_explained_with_what_was_made_from_it(workspace):
    explanation = explain_record(workspace, QUESTION)
    assert [row.stage for row in explanation.rows] == ["difficulty", "trajectories", "releases", "releases"]
    assert {name.split("/")[0] for name in explanation.releases} == {"bridgevqa", "sft"}


def test_a_rollout_is_explained_with_its_question(workspace):
    explanation = explain_record(workspace, "rollout-0000000000000002")
    assert [row.record.record_id for row in explanation.rows][:2] == [
        "question-0000000000000002",
        "rollout-0000000000000002",
    ]


def test_a_refused_row_is_explained_by_its_reason(workspace):
    explanation = explain_record(workspace, "question-refused0000001")
    assert [(row.stage, row.reason, row.detail) for row in explanation.refusals] == [
        ("difficulty", "solved-without-tools", "3 of 8")
    ]
    assert "solved-without-tools" in render(explanation)


def test_an_ambiguous_prefix_lists_what_it_could_be(workspace):
    with pytest.raises(ConfigError, match=r"question-refused0000001, question-refused0000002"):
        explain_record(workspace, "question-ref")


def test_an_unknown_prefix_is_refused(workspace):
    with pytest.raises(ConfigError, match="no record"):
        explain_record(workspace, "nothing")


def test_the_explanation_shows_evidence_picture_and_difficulty(workspace):
    text = render(explain_record(workspace, QUESTION))
    assert "1 of 8 correct" in text
    assert "Mira Tolland" in text


def test_the_explanation_draws_the_proof_from_anchor_to_answer(workspace):
    text = render(explain_record(workspace, QUESTION))
    assert "Kelm Bridge 1 -architect-> Mira Tolland 1 -birth place-> Ostrava 1 -founded-> = 1201" in text


def test_siblings_are_no_part_of_a_records_line():
    links = [("b1", "a"), ("b2", "a"), ("c1", "b1"), ("c2", "b2")]
    assert trace_line("b1", links) == {"a", "b1", "c1"}


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=20))
def test_tracing_ends_on_any_links(links):
    assert "a" in trace_line("a", links)
