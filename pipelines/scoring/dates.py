"""Calendar dates as a page or a model writes them, and every way to write one.

Years before the common era are astronomical: 44 BC is year -43, written ``-0043``. A numeric date whose day and month
could be exchanged (``05/04/1931``) is no date here, because guessing the order would be guessing the answer.
"""

import calendar
import re
from dataclasses import dataclass
from typing import Literal

Precision = Literal["day", "month", "year"]

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, 1)}
_MONTH_NUMBERS |= {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}
# Letters fold as ASCII: otherwise a dotless i is an i here, and "Aprıl" a month that the table does not have.
_MONTH = rf"(?P<month>(?a:{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))}))\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<early>AD |CE )?(?P<year>\d{1,4})(?P<era> ?(?:BCE|BC|CE|AD|B\.C\.E?\.?|A\.D\.|C\.E\.))?"

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:the )?{_DAY}(?: of)? {_MONTH},? {_YEAR}",
        rf"{_MONTH} (?:the )?{_DAY},? {_YEAR}",
        rf"{_YEAR},? {_MONTH} {_DAY}",
        rf"{_MONTH},?(?: of)? {_YEAR}",
        r"(?P<year>-?\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?:T00:00:00Z?)?",
        r"(?P<year>\d{4})[/.](?P<month>\d{1,2})[/.](?P<day>\d{1,2})",
        r"(?P<year>-?\d{4})-(?P<month>\d{2})",
        rf"{_YEAR}",
        r"(?P<year>-\d{4})",
    )
)
_NUMERIC = re.compile(r"(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4})")
_MAX_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Date:
    """A date at day, month or year precision; a part that is not known is 0."""

    year: int
    month: int = 0
    day: int = 0

    @property
    def precision(self) -> Precision:
        """How fine the date is."""
        return "day" if self.day else "month" if self.month else "year"

    @property
    def iso(self) -> str:
        """ISO 8601 at the date's precision: ``1931-04-05``, ``1931-04`` or ``1931``."""
        year = f"{self.year:04d}" if self.year >= 0 else f"-{-self.year:04d}"
        return "-".join([year, *(f"{part:02d}" for part in (self.month, self.day) if part)])

    def covers(self, other: "Date") -> bool:
        """Say whether ``other`` is this date or a finer date within it: 1931 covers April 1931."""
        return self.year == other.year and self.month in (0, other.month) and (self.day == 0 or self.day == other.day)


def parse_date(text: str) -> Date | None:
    """Return the date that a whole text writes (``5 April 1931``, ``April 5th, 1931``, ``44 BC``), or None."""
    text = " ".join(text.split())
    if not text or len(text) > _MAX_LENGTH:
        return None
    for pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match:
            return _make_date(match.groupdict())
    match = _NUMERIC.fullmatch(text)
    return _read_numeric(match) if match else None


def is_ambiguous_date(text: str) -> bool:
    """Say whether a text is a numeric date that day-first and month-first readers would understand differently."""
    match = _NUMERIC.fullmatch(text.strip())
    return match is not None and _read_numeric(match) is None


def render_date(date: Date) -> tuple[str, ...]:
    """Return every accepted way to write a date, the plain day-first form first."""
    year = render_year(date.year)
    if not date.month:
        return (year, date.iso) if date.year < 0 else (year,)
    month, short = MONTHS[date.month - 1], MONTHS[date.month - 1][:3]
    if not date.day:
        return tuple(dict.fromkeys((f"{month} {year}", f"{month}, {year}", f"{short} {year}", date.iso)))
    day, ordinal = str(date.day), render_ordinal(date.day)
    forms = [
        f"{day} {month} {year}",
        f"{month} {day}, {year}",
        date.iso,
        f"{date.day:02d} {month} {year}",
        f"{month} {date.day:02d}, {year}",
        f"{ordinal} {month} {year}",
        f"{ordinal} of {month} {year}",
        f"{month} {ordinal}, {year}",
        f"{day} {short} {year}",
        f"{short} {day}, {year}",
        f"{month} {day} {year}",
    ]
    return tuple(dict.fromkeys(forms))


def render_year(year: int) -> str:
    """Return a year as prose writes it: ``1931``, ``AD 79``, ``44 BC``."""
    if year <= 0:
        return f"{1 - year} BC"
    return str(year) if year >= 100 else f"AD {year}"


def render_ordinal(number: int) -> str:
    """Return ``1st``, ``2nd``, ``3rd``, ``11th``."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _make_date(parts: dict[str, str | None]) -> Date | None:
    digits, era = parts.get("year") or "", (parts.get("era") or "").upper().replace(".", "").strip()
    year, month, day = int(digits), _read_month(parts.get("month")), int(parts.get("day") or 0)
    marked = bool(era or parts.get("early"))
    if era.startswith("B"):
        year = 1 - year
    elif len(digits) < 3 and not marked:
        return None
    return _check_date(year, month, day) if "day" not in parts or day else None


def _read_month(text: str | None) -> int:
    if not text:
        return 0
    return int(text) if text.isdigit() else _MONTH_NUMBERS[text.lower()]


def _check_date(year: int, month: int, day: int) -> Date | None:
    if month > 12 or (day and not month) or day > 31:
        return None
    # Python's calendar has no year 0 and below; the Gregorian cycle of 400 years stands in for them.
    if day and day > calendar.monthrange(year % 400 + 2000, month)[1]:
        julian_leap_day = month == 2 and day == 29 and year <= 1900 and year % 4 == 0
        return Date(year, month, day) if julian_leap_day else None
    return Date(year, month, day)


def _read_numeric(match: re.Match[str]) -> Date | None:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    readings = {_check_date(year, first, second), _check_date(year, second, first)} if first and second else {None}
    dates = [reading for reading in readings if reading is not None]
    return dates[0] if len(dates) == 1 else None
