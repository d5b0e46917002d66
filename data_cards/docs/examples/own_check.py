"""A check of your own: try it on the questions of a workspace, then give it to every run.

    python data_cards/docs/examples/own_check.py [WORKSPACE]

A package of yours with these lines in its ``pyproject.toml``, installed beside synth, makes a plugin of it::

    [project.entry-points."synth.checks"]
    short = "own_check:ShortQuestions"

and ``synth run --set 'plugins.checks=["short"]' --set 'plugins.settings={short={words=30}}'`` asks it of every finished
question, after synth's own checks. What it refuses is in the funnel and in ``rejections`` as ``short:too-long``.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from pipelines.api import PASSED, CheckResult, Claim, Indexes, open_workspace


@dataclass(frozen=True)
class ShortQuestions:
    """Refuses questions of more than so many words."""

    words: int = 30
    reasons: ClassVar[dict[str, str]] = {"too-long": "the question has more words than its readers take in at once"}

    def __call__(self, ground: Indexes, claim: Claim) -> CheckResult:
        """Count the words of a question; the corpus in ``ground`` is there for checks that need it."""
        count = len(claim.text.split())
        return CheckResult("FAIL", "too-long", f"{count} words") if count > self.words else PASSED


def main(folder: str) -> None:
    """Print what the check would refuse in a workspace."""
    workspace, check = open_workspace(folder), ShortQuestions()
    ground, counts = workspace.open_corpus(), Counter[str]()
    for record_id, claim in workspace.list_claims():
        result = check(ground, claim)
        counts[result.outcome] += 1
        if not result.passed and counts["FAIL"] <= 3:
            print(f"{record_id}: {result.code}, {result.detail}: {claim.text}")
    print(f"{counts['FAIL']} of {counts.total()} questions would be refused")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "my-workspace")
