"""The form of an answer, and whether the question asks for it (research/quality.md A1, A4).

Which attribute a question asks for is for the evaluator to read. Names that a rewording must keep are compared word for
word.
"""

import re
from collections.abc import Iterable

from pipelines.checks.leakage import split_bare_words
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.answers import count_tokens, covers_date, type_answer
from pipelines.graph.prose import MASK, mask_names
from pipelines.graph.values import KNOWN_UNITS, parse_unit
from pipelines.names import compile_phrase, fold_name, list_writings
from schemas.proofs import Answer

_DAY = re.compile(
    r"\b(?:(?:what|which) (?:exact |full |calendar )?(?:date|day)|(?:full|exact|calendar) date"
    r"|day, month,? and year)\b",
    re.IGNORECASE,
)
_SOME_DATE = re.compile(r"\b(?:when|the date|date of|birth ?date|birthday)\b", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:month and (?:the )?year|(?:what|which|the) month)\b", re.IGNORECASE)
_YEAR = re.compile(
    r"\b(?:(?:what|which) (?:calendar )?year|(?:the|its|his|her|their) year|year (?:was|is|did|in|of|given|listed))\b",
    re.IGNORECASE,
)
_LESS = re.compile(r"\b(?:(?:what|which) (?:decade|century)|how (?:many years|old|long ago))\b", re.IGNORECASE)
_MEASURED = "length|height|width|depth|elevation|altitude|area|mass|weight|diameter|wingspan|displacement|distance"
_MEASURE = re.compile(
    rf"\bhow (?:long|tall|high|deep|wide|heavy|far|large an area|big an area)\b"
    rf"|^(?:what|which) (?:is|was|are|were) the (?:[a-z]+ ){{0,3}}(?:{_MEASURED})\b(?! (?:code|class))"
    rf"|\b(?:what|which) (?:[a-z]+ ){{0,2}}(?:{_MEASURED}) (?:is|was|does|did|has|have)\b",
    re.IGNORECASE,
)
_UNIT_WORD = re.compile(r"[^\s,;?()]+")


def check_form(text: str, answer: Answer, max_tokens: int) -> CheckResult:
    """FAIL when an answer is no single, certain, short value."""
    for form in dict.fromkeys((text or answer.surface, answer.surface)):
        typed = type_answer(form, answer.value if answer.type == "date" else "", answer.type)
        words = typed is not None and answer.type == "name" and typed.type == "string"
        if typed is None or (typed.type != answer.type and not words):
            return CheckResult("FAIL", "answer-form", f"{form!r} is no single certain {answer.type}")
        if not _says(typed, answer):
            return CheckResult("FAIL", "answer-form", f"{form!r} is not {answer.value} {answer.unit}".rstrip())
    if count_tokens(answer.surface) > max_tokens:
        return CheckResult("FAIL", "answer-too-long", f"{answer.surface!r} has more than {max_tokens} words")
    return PASSED


def check_precision(question: str, answer: Answer) -> CheckResult:
    """FAIL (``precision-unasked``) when the question does not ask for as much as the answer gives.

    A date must not be asked for at another precision than it has: ``when`` asks for a day. Whether words that none of
    the patterns knows ask for it is for the evaluator to read. A measure without a unit must be asked for in
    one (``How many metres``), because 320 is no length.
    """
    if answer.type == "date":
        asked = _find_precision(question)
        if asked and asked != answer.precision:
            detail = f"the answer is a {answer.precision}, asked is a {asked if asked != 'less' else 'span'}"
            return CheckResult("FAIL", "precision-unasked", detail)
    if answer.type == "number" and not answer.unit and _MEASURE.search(question) and not _names_unit(question):
        return CheckResult("FAIL", "precision-unasked", f"{answer.surface!r} has no unit, and none is asked for")
    return PASSED


def _says(typed: Answer, answer: Answer) -> bool:
    if answer.type == "date":
        return covers_date(answer, typed)
    if answer.type == "number":
        return typed.value == answer.value and typed.unit in ("", answer.unit)
    return fold_name(typed.surface) == fold_name(answer.surface)


def _find_precision(question: str) -> str:
    patterns = (("less", _LESS), ("day", _DAY), ("month", _MONTH), ("year", _YEAR))
    found = [(match.start(), name) for name, pattern in patterns if (match := pattern.search(question))]
    if found:
        return min(found)[1]
    return "day" if _SOME_DATE.search(question) else ""


def _names_unit(question: str) -> bool:
    words = _UNIT_WORD.findall(question)
    # A unit of one or two letters may be any word.
    return any(len(word) > 2 and parse_unit(word) in KNOWN_UNITS for word in words)


_NOT_FIRST = re.compile(r"(?<=[^\s.!?])\s+[\"'“‘(]*(?=\w)")
_WORD = re.compile(r"[\w'’-]+")


def check_named(text: str, name: str) -> CheckResult:
    """FAIL (``descriptor-lost``) when a text lacks a name as whole words, letter by letter, its bracket aside."""
    if any(form.strip() and compile_phrase(form).search(text) for form in list_writings(name)):
        return PASSED
    return CheckResult("FAIL", "descriptor-lost", f"{name!r} does not stand in {text!r}")


def check_kept(before: str, after: str, hidden: str) -> CheckResult:
    """FAIL (``descriptor-lost``) when a name or number of a question is gone, other than the hidden name.

    Names are recognised by their capitals, except at the beginning of a sentence, where every word has one.
    """
    left = mask_names(before, list_writings(hidden))
    words = [found[0] for place in _NOT_FIRST.finditer(left) if (found := _WORD.match(left, place.end()))]
    marked = [word for word in words if word[0].isupper() or word[0].isdigit()]
    there = set(split_bare_words(after))
    lost = [word for word in marked if word not in MASK and not there.issuperset(split_bare_words(word))]
    if lost:
        return CheckResult("FAIL", "descriptor-lost", f"{lost} of {before!r} are not in {after!r}")
    return PASSED


def check_not_bridge(answer: Answer, titles: Iterable[str]) -> CheckResult:
    """FAIL (``answer-is-bridge``) when a name of an answer reads like the title of an entity of the path."""
    forms = {fold_name(form) for form in (answer.surface, *answer.aliases)}
    if any(not forms.isdisjoint(map(fold_name, list_writings(title))) for title in titles):
        return CheckResult("FAIL", "answer-is-bridge", answer.surface)
    return PASSED
