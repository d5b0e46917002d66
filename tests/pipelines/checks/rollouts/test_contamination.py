import pytest

from pipelines.checks.rollouts import check_contamination
from tests.pipelines.checks.rollouts.walking import CLEAN, QUESTION, answer, call, replace_step, see, visit, walk


def test_a_clean_rollout_is_not_contaminated():
    assert check_contamination(walk()).passed


@pytest.mark.parametrize("flag", ["question-text", "row-id", "protocol-tags", "dataset-host"])
def test_a_flag_of_the_row_is_believed(flag):
    step = call("visit", see("Title: X", flags=(flag,)), url="https://e.org/x")
    result = check_contamination(walk(*replace_step(3, step)))
    assert (result.outcome, result.code, result.detail) == ("FAIL", "contaminated", f"step 3: {flag}")


@pytest.mark.parametrize("tool", ["text_search", "image_search"])
def test_a_dataset_that_was_left_out_of_a_searchs_results_contaminates_nothing(tool):
    step = call(tool, see("No page was found.", flags=("dataset-host",)), query="x")
    assert check_contamination(walk(*replace_step(2, step))).passed
    worse = call(tool, see("No page was found.", flags=("dataset-host", "row-id")), query="x")
    assert check_contamination(walk(*replace_step(2, worse))).detail == "step 2: row-id"


def test_a_visit_to_a_dataset_contaminates_even_where_it_was_refused():
    refused = see("May not be read.", ok=False, error="blocked-host", flags=("dataset-host",))
    result = check_contamination(walk(*replace_step(2, call("visit", refused, url="https://e.org/x"))))
    assert (result.outcome, result.detail) == ("FAIL", "step 2: dataset-host")


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (f"A quiz: {QUESTION.upper()}", "question-text"),
        ("see question-0001 in the table", "row-id"),
        ("see rollout-00000001", "row-id"),
        ("so <think> it is", "protocol-tags"),
    ],
)
def test_a_flag_that_the_row_lacks_is_found_again(text, flag):
    step = call("visit", see(text), url="https://e.org/x")
    assert flag in check_contamination(walk(CLEAN[0], step, answer())).detail


def test_half_of_the_question_with_the_answer_is_a_copy_of_both():
    reworded = "When was the birthplace of the person, and the bridge in the image founded? On 5 April 1204."
    assert check_contamination(walk(CLEAN[0], visit("Quiz", reworded), answer())).code == "contaminated"
    assert check_contamination(walk(CLEAN[0], visit("Quiz", reworded.replace("1204", "1207")), answer())).passed
