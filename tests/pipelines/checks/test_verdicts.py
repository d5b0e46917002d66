"""How results of checks become one verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.agreement import check_timeless, check_volatility, is_volatile
from pipelines.checks.verdicts import PASSED, CheckResult, explain_refusal, refuse, run_checks

FAILED = CheckResult("FAIL", "alias-leak", "Kelm")
UNKNOWN = CheckResult("UNKNOWN", "no-names")
OTHER = CheckResult("FAIL", "volatile", "today")


@given(st.lists(st.sampled_from([PASSED, FAILED, UNKNOWN, OTHER])))
def test_audit_mode_returns_all_that_did_not_pass_and_the_other_the_first(results):
    checks = [lambda result=result: result for result in results]
    refused = tuple(result for result in results if result is not PASSED)
    assert run_checks(checks, audit=True) == refused
    assert run_checks(checks) == refused[:1]


def test_a_refusal_names_the_first_as_its_reason_and_each_code_once():
    row = refuse("q-1", (FAILED, OTHER, FAILED), {"alias-leak", "volatile"})
    assert (row.record_id, row.reason, row.detail, row.codes) == (
        "q-1",
        "alias-leak",
        "Kelm",
        ("alias-leak", "volatile"),
    )


@pytest.mark.parametrize(
    "relation",
    ["population_total", "Population", "num_employees", "students", "visitors", "circulation", "leader_name2", "mayor",
     "CurrentChampion", "record_attendance", "latest_release", "LargestCity", "GDP_PPP", "num_episodes", "ranking",
     "current_owner", "key_people", "speakers", "population_urban", "leader_party", "last_first_mayor"],
)  # fmt: skip
def test_what_changes_with_time_is_volatile(relation):
    assert is_volatile(relation)
    assert check_volatility(relation, allowed=False).code == "volatile"
    assert check_volatility(relation, allowed=True).passed


@pytest.mark.parametrize(
    "words",
    ["the current mayor", "as of 2020", "so far", "the latest", "LATEST", "the largest city", "Currently",
     "most recent", "up to date", "this year", "today's", "still stands", "last season", "nowadays", "the incumbent"],
)  # fmt: skip
def test_words_that_date_a_question_are_found(words):
    result = check_timeless(f"What is the length of {words} in the image?")
    assert (result.outcome, result.code) == ("FAIL", "volatile")


@pytest.mark.parametrize(
    "text",
    ["In what year was the bridge in the image opened?", "Whose motto is “Now and today”?",
     "On what date did the last king die?", "What is the highest point of the island?",
     "Which year saw the opening of the tower that dates from the 19th century?",
     "In what year was the small yet tall tower in the image opened?"],
)  # fmt: skip
def test_a_timeless_question_passes(text):
    assert check_timeless(text).passed


def explain(code, detail, text="The pupil of TOLLAND's house", **known):
    return explain_refusal(CheckResult("FAIL", code, detail), text, **known).problem


def test_a_leak_is_told_by_the_replys_own_words_and_never_by_the_hidden_name():
    detail = "node 1: 'Mira Tolland' as \"TOLLAND's\" (rare word)"
    assert explain("alias-leak", detail) == 'it gives away a hidden name: "tolland\'s"'
    assert explain("answer-leak", "'5' as 'five'", "All five of them") == "it gives the answer away: 'five'"


def test_what_an_evaluator_read_instead_is_not_told_but_what_it_should_have_read_is():
    problem = explain("reading-differs", "step 2 ('the pupil') says rowed to ____, not far, in 1911, not birth place")
    assert problem == "a reader understood something else: step 2 ('the pupil') does not say birth place"
    assert explain("reading-differs", "asks for death date, not birth date").endswith("does not ask for birth date")
    assert explain("unread", "reader:1 is unsure: r3 or r4") == "a reader could not decide what it asks"


def test_a_hidden_name_is_masked_unless_the_reply_or_what_was_shown_holds_it():
    detail = "'Ostrel' of 'the town of Ostrel' is not in the question"
    assert "Ostrel" not in explain("descriptor-lost", detail, hidden=["Ostrel"])
    assert "Ostrel" in explain("descriptor-lost", detail, hidden=["Ostrel"], shown="How long is OSTREL?")
    assert explain("one-retrieval", "the question finds 'Ostrel' at rank 1") == "it did not pass a check"


def test_every_reason_that_a_text_can_be_refused_for_has_words_of_its_own():
    textual = (
        "alias-leak demonym-leak answer-leak not-unique stands-alone answer-changed near-miss too-many-near-misses "
        "no-descriptor descriptor-lost reading-differs unread given-away precision-unasked volatile fact-unproved "
        "reference-missing reference-narrower picture-not-needed no-injection"
    ).split()
    problems = {explain(code, "") for code in textual}
    assert len(problems) == len(textual)
    assert "it did not pass a check" not in problems
