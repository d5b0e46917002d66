"""Does a picture show the anchor? Decided by what the rankers measured (OpenSearch-VL, 3.1; research/quality.md I6).

An absolute similarity passes any bridge for a bridge. The margin asks for more likeness to the anchor than to anybody
of its kind, in both directions, so that a wrong picture would have to win twice.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from pipelines.checks.verdicts import PASSED, CheckResult

CODE = "picture-of-another"
METADATA_PASSES = 0.5
"""Points of the metadata ranker that a picture needs; what they are given for stands in
:mod:`pipelines.agent.file_evidence`."""


@dataclass(frozen=True, slots=True)
class DepictionRules:
    """What a ranked picture must have."""

    decides: Literal["margin", "threshold", "both"]
    threshold: float
    """Cosine similarity to the anchor's description; it has to be exceeded."""
    min_margin: float
    """Similarity beyond that of the best other; it has to be exceeded, so that 0 asks for a true difference."""
    distractors: int
    """Entities it has to be held against for its margin to count."""


class Measured(Protocol):
    """What a ranker measured of a candidate, as :class:`pipelines.agent.depicting.Ranked` has it."""

    @property
    def score(self) -> float:
        """Similarity, or the metadata ranker's points."""

    @property
    def margin(self) -> float | None:
        """Similarity beyond that of the best other."""

    @property
    def distractors(self) -> int:
        """Entities it was held against."""

    @property
    def over_threshold(self) -> bool | None:
        """None with the metadata ranker."""

    @property
    def note(self) -> str:
        """Who came nearest, or what speaks for and against it."""


def check_depiction(ranked: Measured, rules: DepictionRules) -> CheckResult:
    """Say whether a candidate shows the anchor by the rules.

    Returns:
        FAIL (``picture-of-another``) where the model prefers another entity or the similarity is too low; UNKNOWN
        where too few entities were there to compare with, or the metadata say too little.
    """
    if ranked.over_threshold is None:
        return _check_points(ranked)
    if rules.decides != "threshold":
        result = _check_margin(ranked, rules)
        if not result.passed or rules.decides == "margin":
            return result
    # Written so that a similarity that is no number does not pass.
    if ranked.score > rules.threshold:
        return PASSED
    return CheckResult("FAIL", CODE, f"similarity {ranked.score:.3f}, more than {rules.threshold} is allowed")


def _check_points(ranked: Measured) -> CheckResult:
    if ranked.score >= METADATA_PASSES:
        return PASSED
    return CheckResult("UNKNOWN", CODE, f"{ranked.score:.2f} points, allowed from {METADATA_PASSES}: {ranked.note}")


def _check_margin(ranked: Measured, rules: DepictionRules) -> CheckResult:
    if ranked.margin is None or ranked.distractors < rules.distractors:
        detail = f"{ranked.distractors} entities to hold it against, allowed from {rules.distractors}"
        return CheckResult("UNKNOWN", CODE, detail)
    if ranked.margin > rules.min_margin:
        return PASSED
    detail = f"margin {ranked.margin:+.3f}, more than {rules.min_margin} is allowed; {ranked.note}"
    return CheckResult("FAIL", CODE, detail)
