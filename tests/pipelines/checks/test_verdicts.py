import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.verdicts import PASSED, CheckResult, refuse, run_checks
from pipelines.errors import RecordFailed

FAILED = CheckResult("FAIL", "alias-leak", "Kelm")
UNKNOWN = CheckResult("UNKNOWN", "no-names")
OTHER = CheckResult("FAIL", "volatile", "today")


def test_only_pass_passes():
    assert [result.passed for result in (PASSED, FAILED, UNKNOWN)] == [True, False, False]


def test_the_first_that_does_not_pass_ends_the_run_and_later_checks_cost_nothing():
    called = []

    def check(result):
        return lambda: called.append(result) or result

    assert run_checks(map(check, (PASSED, UNKNOWN, FAILED))) == (UNKNOWN,)
    assert called == [PASSED, UNKNOWN]


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


def test_what_is_no_reason_of_the_stage_fails_the_record_instead_of_refusing_it():
    with pytest.raises(RecordFailed, match="no-names"):
        refuse("q-1", (UNKNOWN, FAILED), {"alias-leak"})
