"""What verification found."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a row or file, and which."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What verification found in one release."""

    dataset: str
    version: str
    rows: int
    """Those with a path or a trace: whatever verification derives again, and whose proof is missing."""
    verified: int
    problems: tuple[Problem, ...]
    claims: tuple[str, ...] = ()
    """What the proofs demanded, in words: a release made under weak thresholds verifies and says so."""
    unproved: int = 0
    """Rows from outside, of pools: neither a path nor a trace stands behind them."""
    held: int = 0
    """Those of them in which all holds that can be told without one."""
    root: str = ""
    """sha256 of the manifest: who has it from the release's author knows a manifest that somebody else sealed."""
    underived: tuple[str, ...] = ()
    """What was not derived but taken from the release itself, in words."""

    @property
    def passed(self) -> bool:
        """Whether every row and every file holds, and there was at least one row."""
        whole = self.verified == self.rows and self.held == self.unproved
        return self.rows + self.unproved > 0 and whole and not self.problems

    def describe(self) -> str:
        """Return how many rows verify; those without a proof are told apart."""
        return describe_rows([self])


def describe_rows(reports: Sequence[VerifyReport]) -> str:
    """Return ``41/41``, and of rows without a proof how many there are: they are never counted as proved."""
    count = f"{sum(each.verified for each in reports)}/{sum(each.rows for each in reports)}"
    unproved, held = sum(each.unproved for each in reports), sum(each.held for each in reports)
    if not unproved:
        return count
    wrong = f", {unproved - held} of them with problems" if held < unproved else ""
    return f"{count} proved rows verify; {unproved} rows are from outside and have no proof{wrong}"
