"""Values of infobox fields, and what a constraint wants of them: exact, or for dates a decade or a century.

Comparing is three-valued: what a field shows may fit, may not, or may leave it open, as ``1871`` does for 4 May 1871.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from pipelines.corpus.store import Corpus
from pipelines.graph.relations import type_value
from pipelines.names import fold_name
from pipelines.scoring.dates import Date, parse_date, render_ordinal
from schemas.proofs import Answer

KEPT_VALUES = 1 << 16
KEPT_NAMES = 1 << 14
LEAST_NAME = 3
"""Characters of a name that is looked for: shorter ones are codes and initials."""
FIRST_YEAR = 1000
"""Years before it are given no decade or century: too few sources say when in it."""
PADDING = "\x01"
"""Between texts that are searched as one; no folded text holds it."""
_DECADE = re.compile(r"(?:the )?(\d{3})0['’]?s")
_CENTURY = re.compile(r"(?:the )?(\d{1,2})(?:st|nd|rd|th)[ -]centur(?:y|ies)", re.IGNORECASE)


class Match(Enum):
    """Whether a value, a field or an entity is what is wanted."""

    YES = "yes"
    OPEN = "open"
    """Nothing shown speaks for it or against it."""
    NO = "no"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The value of a literal constraint."""

    folded: str
    answer: Answer | None
    date: Date | None
    years: tuple[int, int] | None
    """First and last year of a date, decade or century; None for other values."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A value of an infobox field."""

    folded: str
    answer: Answer | None
    """None for what is no single, certain value."""
    date: Date | None


@lru_cache(maxsize=KEPT_VALUES)
def read_wanted(relation: str, value: str) -> Wanted:
    """Return what a literal constraint asks of a relation."""
    answer = type_value(value, "", relation)
    date = parse_date(answer.value) if answer is not None and answer.type == "date" else None
    years = (date.year, date.year) if date is not None else parse_period(value)
    return Wanted(fold_name(value), answer if years is None or date else None, date, years)


@lru_cache(maxsize=KEPT_VALUES)
def read_shown(text: str, iso: str, key: str) -> Shown:
    """Return the value of a field with its type."""
    answer = type_value(text, iso, key)
    date = parse_date(answer.value) if answer is not None and answer.type == "date" else None
    return Shown(fold_name(text), answer, date)


def compare_value(wanted: Wanted, shown: Shown) -> Match:
    """Return whether a shown value is the wanted one.

    Equal folded texts or equal typed values fit, and so does a date within the wanted one. A date is left open by a
    coarser one and by anything that is no certain date; a number by anything that is no number of the same unit; words
    by longer or shorter wording of the same words.
    """
    if wanted.folded and wanted.folded == shown.folded and not (is_number(wanted.answer) and is_number(shown.answer)):
        return Match.YES
    if wanted.answer is not None and shown.answer is not None and wanted.answer.key == shown.answer.key:
        return Match.YES
    if wanted.years is not None:
        return _compare_dates(wanted, shown)
    if is_number(wanted.answer):
        return Match.NO if is_number(shown.answer) and _share_unit(wanted, shown) else Match.OPEN
    if holds_phrase(shown.folded, wanted.folded) or holds_phrase(wanted.folded, shown.folded) or not shown.folded:
        return Match.OPEN
    return Match.NO


def is_number(answer: Answer | None) -> bool:
    """Say whether a value is a number, whose folded text has lost its sign and its decimal point."""
    return answer is not None and answer.type == "number"


def _share_unit(wanted: Wanted, shown: Shown) -> bool:
    return wanted.answer is not None and shown.answer is not None and wanted.answer.unit == shown.answer.unit


def _compare_dates(wanted: Wanted, shown: Shown) -> Match:
    if shown.date is None or wanted.years is None:
        return Match.OPEN
    if wanted.date is None:
        return Match.YES if wanted.years[0] <= shown.date.year <= wanted.years[1] else Match.NO
    if wanted.date.covers(shown.date):
        return Match.YES
    return Match.OPEN if shown.date.covers(wanted.date) else Match.NO


def holds_phrase(text: str, phrase: str) -> bool:
    """Say whether a folded text holds a folded phrase as whole words; an empty one it does not."""
    return bool(phrase) and f" {phrase} " in f" {text} "


def parse_period(text: str) -> tuple[int, int] | None:
    """Return the first and last year of a decade or a century, or None.

    ``1900s`` is neither: a reader may take it for a decade or for a century.
    """
    text = " ".join(text.split())
    decade = _DECADE.fullmatch(text)
    if decade:
        first = int(decade[1]) * 10
        return (first, first + 9) if first % 100 and first >= FIRST_YEAR else None
    century = _CENTURY.fullmatch(text)
    if century and int(century[1]) * 100 > FIRST_YEAR:
        return int(century[1]) * 100 - 99, int(century[1]) * 100
    return None


def list_periods(date: Date) -> tuple[str, ...]:
    """Return a date's decade and century as a descriptor says them; none before the year 1001."""
    if date.year <= FIRST_YEAR:
        return ()
    decade = (f"{date.year // 10 * 10}s",) if date.year // 10 % 10 else ()
    return (*decade, f"{render_ordinal((date.year - 1) // 100 + 1)} century")


@lru_cache(maxsize=KEPT_NAMES)
def fold_names(corpus: Corpus, node: int) -> frozenset[str]:
    """Return the folded names of an entity that are long enough to be looked for; its title always."""
    names = {fold_name(name) for name in corpus.aliases(node)}
    title = fold_name(corpus.page(node).title)
    return frozenset({title, *(name for name in names if len(name) >= LEAST_NAME)} - {""})
