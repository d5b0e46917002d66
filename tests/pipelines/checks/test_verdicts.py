from pipelines.checks.verdicts import PASSED, CheckResult

FAILED = CheckResult("FAIL", "alias-leak")
UNKNOWN = CheckResult("UNKNOWN", "no-names")


def test_only_pass_passes():
    assert [result.passed for result in (PASSED, FAILED, UNKNOWN)] == [True, False, False]
