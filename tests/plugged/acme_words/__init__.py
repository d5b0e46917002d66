"""A check of the words that a question may hold."""

from dataclasses import dataclass
from typing import ClassVar

from pipelines.api import PASSED, CheckResult, Claim, Indexes


@dataclass(frozen=True)
class PlainWords:
    """Refuses questions that hold a word that is not plain."""

    word: str = "elevation"
    reasons: ClassVar[dict[str, str]] = {"not-plain": "the question holds a word that its readers do not know"}

    def __call__(self, ground: Indexes, claim: Claim) -> CheckResult:
        if self.word in claim.text:
            return CheckResult("FAIL", "not-plain", f"it says {self.word!r}")
        return PASSED
