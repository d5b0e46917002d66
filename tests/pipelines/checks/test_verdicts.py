from pipelines.checks.verdicts import PASSED, CheckResult, join_results

FAILED = CheckResult("FAIL", "alias-leak")
UNKNOWN = CheckResult("UNKNOWN", "no-names")


def test_only_pass_passes():
    assert [result.passed for result in (PASSED, FAILED, UNKNOWN)] == [True, False, False]


def test_a_failure_outweighs_the_unknown_and_the_unknown_a_pass():
    assert join_results(PASSED, UNKNOWN, FAILED) == FAILED
    assert join_results(PASSED, UNKNOWN) == UNKNOWN
    assert join_results(PASSED, PASSED) == PASSED


def test_nothing_checked_is_unknown():
    assert join_results().outcome == "UNKNOWN"
