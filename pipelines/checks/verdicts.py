"""What a check says: PASS, FAIL or UNKNOWN, and UNKNOWN never passes."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pipelines.errors import RecordFailed
from schemas.base import Rejection
from schemas.reasons import Reason

Outcome = Literal["PASS", "FAIL", "UNKNOWN"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check on one row."""

    outcome: Outcome
    code: str = ""
    """What was found, as a reason of ``schemas.reasons`` where one fits; empty for PASS."""
    detail: str = ""
    """What exactly was found, for a reader."""

    @property
    def passed(self) -> bool:
        """Whether the row may go on: true for PASS alone."""
        return self.outcome == "PASS"


PASSED = CheckResult("PASS")

Check = Callable[[], CheckResult]
"""A check with everything it looks at; it costs nothing until it is called."""


def run_checks(checks: Iterable[Check], audit: bool = False) -> tuple[CheckResult, ...]:
    """Run checks in order and return those that did not pass: the first, or in audit mode all; empty is a pass."""
    refused = []
    for check in checks:
        result = check()
        if not result.passed:
            refused.append(result)
            if not audit:
                break
    return tuple(refused)


def refuse(record_id: str, refused: Sequence[CheckResult], reasons: Collection[str]) -> Rejection:
    """Return a row's refusal by the checks that it did not pass: the first is the reason, all are its codes.

    Raises:
        RecordFailed: if the first says that there was nothing to check, such as an empty text: no reason against a row.
    """
    first = refused[0]
    if first.code not in reasons:
        raise RecordFailed(first.code, first.detail)
    codes = tuple(dict.fromkeys(result.code for result in refused))
    return Rejection(record_id=record_id, reason=cast(Reason, first.code), detail=first.detail, codes=codes)
