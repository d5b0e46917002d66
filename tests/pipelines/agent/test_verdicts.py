""""""

import pytest

from pipelines.agent.judging import parse_verdict


@pytest.mark.parametrize(
    "reply",
    ["correct", "Correct.", "YES", "Verdict: correct", "Same year.\n**Verdict:** correct", '{"verdict": "correct"}'],
)
def test_a_clear_yes_is_correct(reply):
    assert parse_verdict(reply) == "correct"


@pytest.mark.parametrize(
    "reply", ["incorrect", "No", '```json\n{"correct": false}\n```', "They differ.\nVerdict: incorrect"]
)
def test_a_clear_no_is_incorrect(reply):
    assert parse_verdict(reply) == "incorrect"


@pytest.mark.parametrize(
    "reply",
    [
        "", "yes and no", "not correct", "Verdict: not correct", '{"verdict": "corr', '{"verdict": "maybe"}', "{}",
        '{"verdict": "correct", "verdict": "incorrect"}', "Verdict: correct\nVerdict: incorrect", "[1]",
        "Verdict: correct\nbut the year differs", "The answer is correct", '{"correct": 1}', "correct\nincorrect",
    ],
)  # fmt: skip
def test_anything_else_is_unscored(reply):
    assert parse_verdict(reply) == "unscored"


def test_a_train_of_thought_before_the_verdict_is_skipped():
    assert parse_verdict("<think>Verdict: incorrect? No.</think>\n\nVerdict: correct") == "correct"
    assert parse_verdict("Verdict: incorrect</think>Verdict: correct") == "correct"


@pytest.mark.parametrize("reply", ["<think>Verdict: correct", " <think>correct", "<think></think>", "correct</think>"])
def test_a_thought_without_an_end_or_a_verdict_after_it_is_unscored(reply):
    assert parse_verdict(reply) == "unscored"
