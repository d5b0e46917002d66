import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.scoring.verdicts import parse_verdict


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


@given(st.text(max_size=60))
def test_any_reply_gets_a_verdict(reply):
    assert parse_verdict(reply) in ("correct", "incorrect", "unscored")
