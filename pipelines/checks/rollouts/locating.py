"""Finding an answer in what a tool showed, whatever way it is written there."""

import re
from dataclasses import dataclass
from functools import lru_cache

from pipelines.checks.rollouts.trails import fold_words
from pipelines.names import fold_name, is_common_word
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import Number
from pipelines.scoring.spotting import find_dates, find_measures
from pipelines.scoring.units import compare_measures
from schemas.proofs import Answer
from schemas.rollouts import Rollout

MAX_FORMS = 60
"""Accepted forms that are looked for."""
SHORT_ACRONYM = 4
"""Letters from which capitals may be found in small letters."""
_WORD = re.compile(r"\S+")
_DIGIT = re.compile(r"\d")
_SPELLED = frozenset(map(str, range(21)))
"""Numbers that are also read in words."""
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Form:
    """What one writing of an answer is found by."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    folded: str
    """Empty where it must be found as it is written."""


def list_answer_forms(rollout: Rollout) -> tuple[str, ...]:
    """Return how a rollout's answer may be written: as given, and every accepted form."""
    reference = rollout.reference
    forms = (rollout.answer, reference.surface, reference.value, *reference.aliases)
    return tuple(dict.fromkeys(form.strip() for form in forms if form.strip()))[:MAX_FORMS]


def locate_answer(text: str, words: str, forms: tuple[str, ...], reference: Answer) -> Span | None:
    """Return where a text holds an answer, as it is written in one of its forms or as the same value; None nowhere.

    Args:
        text: as it is shown.
        words: the same, folded.
        forms: writings of the answer.
        reference: of which type it is.
    """
    return locate_form(text, words, forms) or locate_value(text, reference)


def locate_form(text: str, words: str, forms: tuple[str, ...]) -> Span | None:
    """Return where a text holds one of some writings as whole words, whatever their case and, of names, accents.

    Short capitals such as ``US`` are found as capitals only.
    """
    plain = text.casefold()
    return next((span for form in forms if (span := _locate_form(text, plain, words, form)) is not None), None)


def locate_value(text: str, reference: Answer, bare: bool = True) -> Span | None:
    """Return where a text holds a date in any writing, or a finer one; or a number, in another unit as well.

    Args:
        text: as it is shown.
        reference: what is looked for.
        bare: whether a number that should have a unit may stand without one.
    """
    if reference.type == "date":
        return _locate_date(text, reference)
    return _locate_number(text, reference, bare) if reference.type == "number" else None


def _locate_form(text: str, plain: str, words: str, form: str) -> Span | None:
    read = _read_form(form)
    if all(word in plain for word in read.words):
        found = read.pattern.search(text)
        if found is not None:
            return found.span()
    return _locate_words(text, read.folded.split()) if read.folded and read.folded in words else None


@lru_cache(maxsize=4096)
def _read_form(form: str) -> _Form:
    words = form.split()
    body = r"\s+".join(re.escape(word) for word in words)
    pattern = re.compile(rf"(?<!\w)(?<!\d[.,]){body}(?!\w)(?![.,]\d)", re.IGNORECASE)
    # Folding drops signs and decimal points: 5 would be found in 1,5. Of US and WHO it makes words of any sentence.
    folded = "" if _DIGIT.search(form) else fold_words(form)
    if _is_acronym(form, folded):
        return _Form(tuple(word.casefold() for word in words), re.compile(pattern.pattern), "")
    return _Form(tuple(word.casefold() for word in words), pattern, folded if folded.strip() else "")


def _is_acronym(form: str, folded: str) -> bool:
    """Say whether a form is capitals that are another word in small letters, or may well be."""
    return form.isupper() and (len(folded.strip()) < SHORT_ACRONYM or is_common_word(folded.strip()))


def _locate_words(text: str, wanted: list[str]) -> Span | None:
    """Return the span of the pieces of a text whose folded words hold those that are wanted, in order."""
    found = [(word, match.span()) for match in _WORD.finditer(text) for word in fold_name(match[0]).split()]
    size = len(wanted)
    for place in range(len(found) - size + 1):
        if found[place][0] == wanted[0] and [word for word, _ in found[place : place + size]] == wanted:
            return found[place][1][0], found[place + size - 1][1][1]
    return None


def _locate_date(text: str, reference: Answer) -> Span | None:
    wanted = parse_date(reference.value)
    if wanted is None or not any(str(year) in text for year in (abs(wanted.year), abs(wanted.year - 1))):
        return None
    return next(((spot.start, spot.end) for spot in find_dates(text) if wanted.covers(spot.value)), None)


def _locate_number(text: str, reference: Answer, bare: bool) -> Span | None:
    if _DIGIT.search(text) is None and reference.value.strip("-") not in _SPELLED:
        return None
    wanted = Number(reference.value, reference.unit)
    spots = (spot for spot in find_measures(text) if spot.value.unit or bare or not wanted.unit)
    return next(((spot.start, spot.end) for spot in spots if _is_same(spot.value, wanted)), None)


def _is_same(found: Number, wanted: Number) -> bool:
    if found.value == wanted.value and (not found.unit or not wanted.unit or found.unit == wanted.unit):
        return True
    return compare_measures(found, wanted) == "same"
