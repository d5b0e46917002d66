"""What a check says: PASS, FAIL or UNKNOWN, and UNKNOWN never passes."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pipelines.errors import RecordFailed
from pipelines.graph.prose import MASK
from pipelines.names import compile_phrase
from schemas.base import Rejection
from schemas.proofs import Answer
from schemas.reasons import Reason
from schemas.tasks import Tried

TRIES = 2
"""Most requests for one text: the second says what was wrong with the first."""

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
    """Return a row's refusal by the checks that it did not pass: the first is the reason, all are its codes."""
    first = refused[0]
    if first.code not in reasons:
        raise RecordFailed(first.code, first.detail)
    codes = tuple(dict.fromkeys(result.code for result in refused))
    return Rejection(record_id=record_id, reason=cast(Reason, first.code), detail=first.detail, codes=codes)


_LEAKS = frozenset(["alias-leak", "demonym-leak", "answer-leak"])
_TOLD: Mapping[str, str] = {
    "descriptor-lost": "words that must stand there are missing",
    "no-descriptor": "it does not say what can be counted",
    "reading-differs": "a reader understood something else",
    "precision-unasked": "it does not ask for as much as the answer gives",
    "volatile": "it may stop being true",
    "fact-unproved": "it tells something beyond the facts given",
    "reference-missing": "it does not point to the picture as a question must",
    "reference-narrower": "it says more of what the picture shows than its type",
    "no-injection": "it is not in the list",
    "other-opening": "it begins with another word than it must",
}
"""Codes whose details hold nothing but the reply's own words and what its writer was given."""
_UNTOLD: Mapping[str, str] = {
    "alias-leak": "it gives away a hidden name",
    "demonym-leak": "it gives away a hidden name by an adjective made from it",
    "answer-leak": "it gives the answer away",
    "not-unique": "several entities fit it, or none",
    "near-miss": "another entity may fit it, too",
    "too-many-near-misses": "many other entities may fit it, too",
    "stands-alone": "it says so much that it picks out the entity without the subject",
    "answer-changed": "it does not lead to the answer any more",
    "picture-not-needed": "the answer can be found without the subject",
    "unread": "a reader could not decide what it asks",
    "given-away": "a reader finds that it gives away what is hidden",
    "no-text": "it is empty",
}
_READ_INSTEAD = re.compile(r"\b(says|asks for) .*, not ", re.DOTALL)
"""What an evaluator read, to the last ``not``: it comes from a list that the writer never sees."""
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")
_LONGEST_PROBLEM = 600


def list_secrets(names: Sequence[Sequence[str]], answer: Answer) -> tuple[str, ...]:
    """Return what a rewriter is not told: the names of a path's nodes and the answer in its forms."""
    return (*(name for each in names for name in each), answer.surface, answer.value, *answer.aliases)


def explain_refusal(refused: CheckResult, text: str, hidden: Iterable[str] = (), shown: str = "") -> Tried:
    """Return a refused reply with what was wrong with it, for who wrote it.

    Of the detail it tells the reply's own words and what its writer was given, never a hidden name that stands in
    neither, nor what an evaluator knows beside the reply.
    """
    seen, detail = f"{text}\n{shown}".casefold(), ""
    if refused.code in _LEAKS:
        quoted = {(one or other).casefold(): None for one, other in _QUOTED.findall(refused.detail)}
        detail = ", ".join(repr(words) for words in quoted if words in text.casefold())
    elif refused.code in _TOLD:
        detail = _READ_INSTEAD.sub(lambda found: f"does not {found[1].replace('says', 'say').replace('asks', 'ask')} ",
                                   refused.detail)  # fmt: skip
    for name in sorted(set(hidden), key=len, reverse=True):
        if name.strip() and not compile_phrase(name.casefold()).search(seen):
            detail = compile_phrase(name, re.IGNORECASE).sub(MASK, detail)
    plain = {**_TOLD, **_UNTOLD}.get(refused.code, "it did not pass a check")
    return Tried(text=text, problem=(f"{plain}: {detail}" if detail else plain)[:_LONGEST_PROBLEM])
