"""What a question must go on saying while it is reworded: the entities it names, word for word."""

import re
from collections.abc import Iterable

from pipelines.checks.leakage import split_words
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.clauses import MASK, mask_names
from pipelines.names import fold_name
from schemas.proofs import Answer

_NOT_FIRST = re.compile(r"(?<=[^\s.!?])\s+[\"'“‘(]*(?=\w)")
_WORD = re.compile(r"[\w'’-]+")


def check_named(text: str, name: str) -> CheckResult:
    """FAIL (``descriptor-lost``) when a text does not hold a name exactly as it is written, as whole words."""
    if name.strip() and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        return PASSED
    return CheckResult("FAIL", "descriptor-lost", f"{name!r} does not stand in {text!r}")


def check_kept(before: str, after: str, hidden: str) -> CheckResult:
    """FAIL (``descriptor-lost``) when a name or number of a question is gone, other than the name that was hidden.

    Names are told by their capitals, wherever but at the beginning of a sentence, where any word has one.

    Args:
        before: the question that was to be reworded.
        after: the question as reworded.
        hidden: the name that had to go.
    """
    left = mask_names(before, [hidden])
    words = [found[0] for place in _NOT_FIRST.finditer(left) if (found := _WORD.match(left, place.end()))]
    marked = [word for word in words if word[0].isupper() or word[0].isdigit()]
    there = set(split_words(after))
    lost = [word for word in marked if word not in MASK and not there.issuperset(split_words(word))]
    if lost:
        return CheckResult("FAIL", "descriptor-lost", f"{lost} of {before!r} are not in {after!r}")
    return PASSED


def check_not_bridge(answer: Answer, titles: Iterable[str]) -> CheckResult:
    """FAIL (``answer-is-bridge``) when an answer reads like the title of an entity of the path."""
    folded = fold_name(answer.surface)
    if any(folded == fold_name(title) for title in titles):
        return CheckResult("FAIL", "answer-is-bridge", answer.surface)
    return PASSED
