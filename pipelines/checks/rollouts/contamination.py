"""Did a tool show what no tool should: the question itself, its row, a protocol's tags (R7)?"""

from functools import lru_cache

from pipelines.checks.rollouts.locating import list_answer_forms, locate_answer
from pipelines.checks.rollouts.trails import Leg, Trail
from pipelines.checks.verdicts import PASSED, CheckResult

GRAM = 4
"""Successive words of a question that a text is looked through for."""
SHARE = 0.5
"""Share of them in one result, beside the answer, that makes it a copy of the question, not a page on its topic."""
LEFT_OUT = frozenset({"dataset-host"})
"""Flags of a search about what the model never saw."""
LEAST_GRAMS = 3
"""Fewer prove nothing."""


def check_contamination(trail: Trail) -> CheckResult:
    """FAIL (``contaminated``) when an observation is flagged, would be flagged now, or holds question and answer.

    The flags of the row are believed, their absence is not: the stored text is looked through again. A dataset's host
    that was left out of a search's results showed nothing; who goes there is after the data.
    """
    for number, leg in enumerate(trail.legs):
        observation = leg.step.observation
        if observation is None:
            continue
        flags = sorted({*observation.flags, *leg.flags} - (set() if leg.step.tool == "visit" else LEFT_OUT))
        if flags:
            return CheckResult("FAIL", "contaminated", f"step {number}: {', '.join(flags)}")
        if _holds_both(trail, leg):
            return CheckResult("FAIL", "contaminated", f"step {number}: half of the question, and the answer")
    return PASSED


def _holds_both(trail: Trail, leg: Leg) -> bool:
    grams = _list_grams(trail.question)
    if len(grams) < LEAST_GRAMS:
        return False
    texts = [(sight.text, sight.words) for sight in leg.sights] or [(leg.shown, leg.seen)]
    for text, words in texts:
        if sum(gram in words for gram in grams) >= SHARE * len(grams):
            forms = list_answer_forms(trail.rollout)
            if locate_answer(text, words, forms, trail.rollout.reference) is not None:
                return True
    return False


@lru_cache(maxsize=256)
def _list_grams(question: str) -> tuple[str, ...]:
    words = question.split()
    grams = (f" {' '.join(words[start : start + GRAM])} " for start in range(len(words) - GRAM + 1))
    return tuple(dict.fromkeys(grams))
