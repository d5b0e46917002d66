"""Dates as infoboxes write them, as ISO 8601 strings of full or partial precision."""

import re
from collections.abc import Sequence

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, start=1)}
_NUMBERS |= {name.lower()[:3]: number for number, name in enumerate(MONTHS, start=1)}
_MONTH = r"(?P<month>[A-Za-z]{3,9})\.?"
_FORMS = (
    re.compile(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)? {_MONTH},? (?P<year>\d{{3,4}})"),
    re.compile(rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{3,4}})"),
    re.compile(rf"{_MONTH},? (?P<year>\d{{3,4}})(?P<day>)"),
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
    re.compile(r"(?P<year>\d{3,4})(?P<month>)(?P<day>)"),
)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_date(text: str) -> str:
    """Read a text that is a date and nothing else.

    Returns:
        ``YYYY-MM-DD``, ``YYYY-MM`` or ``YYYY``; empty for anything else, also ranges and years BC.
    """
    if not text[-4:].strip().isdigit() and "-" not in text:
        return ""
    for form in _FORMS:
        if match := form.fullmatch(text):
            month = match.group("month")
            number = int(month) if month.isdigit() else _NUMBERS.get(month.lower(), 0) if month else None
            day = int(match.group("day")) if match.group("day") else None
            if number == 0:
                return ""
            return format_iso(int(match.group("year")), number, day)
    return ""


def format_iso(year: int, month: int | None = None, day: int | None = None) -> str:
    """Join the known parts of a date; an impossible one gives an empty string."""
    if not 0 < year < 10_000 or (month is not None and not 1 <= month <= 12):
        return ""
    if month is None:
        return f"{year:04d}"
    if day is None:
        return f"{year:04d}-{month:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}" if 1 <= day <= _DAYS[month - 1] else ""


def read_date_parts(arguments: Sequence[str]) -> tuple[int, int | None, int | None] | None:
    """Read year, month and day from the positional arguments of a date template; None when the year is no number."""
    parts = []
    for argument in arguments[:3]:
        value = argument.strip()
        number = int(value) if value.isdecimal() else _NUMBERS.get(value.lower())
        if number is None:
            break
        parts.append(number)
    if not parts or (len(parts) > 1 and not 1 <= parts[1] <= 12):
        return None
    return parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None


def format_date(year: int, month: int | None, day: int | None, day_first: bool) -> str:
    """Write a date the way English Wikipedia shows it: ``April 5, 1931`` or ``5 April 1931``."""
    if month is None:
        return str(year)
    if day is None:
        return f"{MONTHS[month - 1]} {year}"
    return f"{day} {MONTHS[month - 1]} {year}" if day_first else f"{MONTHS[month - 1]} {day}, {year}"
