"""Numbers and dates in a thought, and which of them nothing backs."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import combinations

from pipelines.checks.answer_values import find_numbers
from pipelines.scoring.dates import Date
from pipelines.scoring.numbers import KNOWN_UNITS, Number
from pipelines.scoring.spotting import Spot, find_dates, find_measures
from pipelines.scoring.units import compare_measures

LEAST = 10
"""Whole numbers below count steps, sources and hops."""
MAX_PAIRED = 40
"""Backed numbers of one thought of which sums and differences are taken."""
_NUMERAL = re.compile(r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d{1,20})?(?!\d)|\d{1,20}(?:\.\d{1,20})?")
_GAPS = re.compile("[,\u00a0\u202f]")
_LEFT_OUT = re.compile(
    r"\bimg_\d+\b|https?://\S+"
    r"|\d{1,3}(?:\.\d{1,4})?\s?(?:%|per\s?cent)\s(?:sure|certain|confident|confidence|convinced|positive)\b"
    r"|\bconfiden(?:t|ce)\W{1,3}(?:(?:is|of|at|level)\W{1,2}){0,2}\d{1,3}(?:\.\d{1,4})?\s?(?:%|per\s?cent)",
    re.IGNORECASE,
)
"""Pictures, addresses, and how sure one is."""
_DECADE, _CENTURY = re.compile(r"['’]?s\b"), re.compile(r"(?:st|nd|rd|th)[ -]centur", re.IGNORECASE)


def find_unbacked_numbers(said: str, backing: Sequence[str]) -> Iterator[str]:
    """Yield the numbers and dates of a text that stand in none of some texts.

    Small whole numbers are not looked at. A number is also backed in another unit, in words, as the decade or century
    of one that is shown, and as the sum or difference of two others of the text that are.
    """
    said = _LEFT_OUT.sub(" ; ", said)
    if not any(map(str.isdigit, said)):
        return
    dates = [spot for spot in find_dates(said) if spot.value.precision != "year"]
    yield from (said[spot.start : spot.end] for spot in dates if not _is_date_backed(said, spot, backing))
    numerals = [match for match in _NUMERAL.finditer(said) if not _is_inside(match, dates)]
    values = {match[0]: _read(match[0]) for match in numerals}
    unbacked = [numeral for numeral in values if not any(_stands(numeral, text) for text in backing)]
    unbacked = [numeral for numeral in unbacked if values[numeral] >= LEAST or not _is_whole(values[numeral])]
    if unbacked:
        backed = [value for numeral, value in values.items() if numeral not in unbacked]
        yield from _sift(said, [match for match in numerals if match[0] in unbacked], backed, backing)


def _is_inside(match: re.Match[str], dates: Sequence[Spot[Date]]) -> bool:
    return any(spot.start <= match.start() < spot.end for spot in dates)


def _is_whole(value: Decimal) -> bool:
    return value == value.to_integral_value()


def _stands(numeral: str, text: str) -> bool:
    return numeral in text and _compile(numeral).search(text) is not None


@lru_cache(maxsize=4096)
def _compile(numeral: str) -> re.Pattern[str]:
    """Return what finds a numeral that is no part of a longer one."""
    return re.compile(rf"(?<!\d)(?<!\d[.,]){re.escape(numeral)}(?!\d)(?![.,]\d)")


def _read(numeral: str) -> Decimal:
    return Decimal(_GAPS.sub("", numeral))


def _is_date_backed(said: str, spot: Spot[Date], backing: Sequence[str]) -> bool:
    written = said[spot.start : spot.end]
    if any(written in text for text in backing):
        return True
    year = str(abs(spot.value.year))
    return any(spot.value.covers(other.value) for text in backing if year in text for other in find_dates(text))


def _sift(
    said: str, unbacked: Sequence[re.Match[str]], backed: Sequence[Decimal], backing: Sequence[str]
) -> Iterator[str]:
    """Yield of the numerals that stand nowhere as they are those that nothing else backs."""
    shown = {_read(match[0]) for text in backing for match in _NUMERAL.finditer(text)}
    pairs = list(combinations(dict.fromkeys(backed[:MAX_PAIRED]), 2))
    known = shown | {abs(first - second) for first, second in pairs} | {first + second for first, second in pairs}
    left = [match for match in unbacked if _read(match[0]) not in known and not _is_period(said, match, shown)]
    if not left:
        return
    spelled = set[Decimal]().union(*map(find_numbers, backing))
    measures = [spot.value for text in backing for spot in find_measures(text) if spot.value.unit in KNOWN_UNITS]
    claimed = find_measures(said)
    for match in left:
        spots = [spot.value for spot in claimed if spot.start <= match.start() < spot.end]
        if _read(match[0]) not in spelled and not any(_is_measured(spot, spelled, measures) for spot in spots):
            yield match[0]


def _is_measured(spot: Number, spelled: set[Decimal], measures: Sequence[Number]) -> bool:
    """Say whether a measure is shown at its scale (3.5 million), or in another unit."""
    if Decimal(spot.value).copy_abs() in spelled:
        return True
    return spot.unit in KNOWN_UNITS and any(compare_measures(spot, other) == "same" for other in measures)


def _is_period(said: str, match: re.Match[str], shown: set[Decimal]) -> bool:
    """Say whether a numeral is the decade or the century of a year that is shown."""
    value = _read(match[0])
    if _DECADE.match(said, match.end()) and value % 10 == 0:
        return any(value <= year < value + (100 if value % 100 == 0 else 10) for year in shown)
    if _CENTURY.match(said, match.end()):
        return any((value - 1) * 100 < year <= value * 100 for year in shown)
    return False
