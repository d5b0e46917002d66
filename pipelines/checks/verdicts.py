"""What a check says: PASS, FAIL or UNKNOWN, and UNKNOWN never passes."""

from dataclasses import dataclass
from typing import Literal

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
