"""Dates and numbers found inside running text, each with its span."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

from pipelines.scoring.dates import MONTHS, Date, parse_date
from pipelines.scoring.numbers import KNOWN_UNITS, Number, parse_number, parse_number_word, parse_unit

ValueT = TypeVar("ValueT")

_MONTH = "(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS if name != "May") + r"|May|Sept)\b\.?"
_YEAR = r"\d{3,4}(?: ?(?:BCE|BC|CE|AD)\b)?"
_DATE = re.compile(
    rf"(?<![\w.,/-])(?<!\d[ \u00a0])(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH},? {_YEAR}"
    rf"|{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?,? {_YEAR}"
    rf"|{_MONTH},?(?: of)? {_YEAR}"
    r"|\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}"
    r"|\d{4}(?: ?(?:BCE|BC|CE|AD)\b)?|\d{1,3} ?(?:BCE|BC|CE|AD)\b|AD \d{1,4}"
    r"|(?:(?<=\bin )|(?<=\bfrom )|(?<=\bsince )|(?<=\bby ))\d{3}(?= *(?:[.,;)]|$|and )))"
    r"(?![\w%°]|[.,]\d|[-/]\d{1,2}(?!\d))"
)
_NUMBER = re.compile(
    r"(?<![\w.,/])(?:(?<![\d\w])[-\u2212\u2013+])?(?:US\$|[$€£¥])?"
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?"
    r"(?: (?:thousand|million|billion|trillion)\b)?(?![\d])"
)
_SPELLED = re.compile(
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty)\b(?!-)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[ \u00a0-]?([^\s,;:?!”()\[\]]+)(?: ([^\s,;:?!”()\[\]]+))?(?: ([^\s,;:?!”()\[\]]+))?")
_LOOK_AHEAD = 60


@dataclass(frozen=True, slots=True)
class Spot(Generic[ValueT]):
    """A value and where it stands."""

    value: ValueT
    start: int
    end: int


def find_dates(text: str) -> list[Spot[Date]]:
    """Return the dates of a text in order, at the precision written; four digits alone are a year, fewer with an era.

    A year followed by a unit (``1204 m``) is none, nor is a part of a larger number.
    """
    found = []
    for match in _DATE.finditer(text):
        date = parse_date(match.group())
        if date is not None and not (date.precision == "year" and _read_unit(text, match.end())[0]):
            found.append(Spot(date, match.start(), match.end()))
    return found


def find_measures(text: str) -> list[Spot[Number]]:
    """Return the numbers of a text in order, with a known unit where one follows; parts of dates are left out."""
    taken = sorted((spot.start, spot.end) for spot in find_dates(text) if spot.value.precision != "year")
    # The furthest that any of the dates up to each one reaches: of a page of dates, one look tells.
    starts, reaches = [start for start, _ in taken], list(accumulate((end for _, end in taken), max))

    def is_free(spot: Spot[Number]) -> bool:
        before = bisect_left(starts, spot.end)
        return before == 0 or reaches[before - 1] <= spot.start

    spots = filter(is_free, (*_read_digits(text), *_read_words(text)))
    return sorted(spots, key=lambda spot: spot.start)


def _read_digits(text: str) -> Iterator[Spot[Number]]:
    for match in _NUMBER.finditer(text):
        plain = match.group().replace("\u00a0", " ").replace("\u202f", " ").removeprefix("+")
        number = parse_number(plain)
        if number is None:
            continue
        unit, end = ("", match.end()) if number.unit else _read_unit(text, match.end())
        if not unit and text[match.end() : match.end() + 1].isalpha():
            continue
        yield Spot(Number(number.value, number.unit or unit), match.start(), end)


def _read_words(text: str) -> Iterator[Spot[Number]]:
    for match in _SPELLED.finditer(text):
        number = parse_number_word(match.group().lower())
        if number is not None:
            unit, end = _read_unit(text, match.end())
            yield Spot(Number(number.value, unit), match.start(), end)


def _read_unit(text: str, place: int) -> tuple[str, int]:
    """Return the known unit that follows a number, the longest of up to three words, and where it ends."""
    match = _UNIT.match(text, place, place + _LOOK_AHEAD)
    for count in (3, 2, 1) if match else ():
        assert match is not None
        if match[count] is None:
            continue
        words = text[match.start(1) : match.end(count)].rstrip(".")
        unit = parse_unit(words)
        # One letter after a space may be any word: in "5 in Lumby" or "12 a day" nothing is measured.
        if unit in KNOWN_UNITS and (unit != "in" or words != "in"):
            return unit, match.start(1) + len(words)
    return "", place
