"""Dates, numbers and units: parsed, rendered, compared, and found in running text.

Years before the common era are astronomical (44 BC is ``-0043``). A numeric date of unknown order (``05/04/1931``) is
not parsed. Values are decimal text, never floats; factors of units are exact (yard and pound of 1959, SI brochure).
"""

import calendar
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Generic, Literal, TypeVar

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH_NUMBERS = {name.lower(): number for number, name in enumerate(MONTHS, 1)}
_MONTH_NUMBERS |= {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}
# Letters fold as ASCII: otherwise a dotless i is an i here, and "Aprıl" a month that the table does not have.
_MONTH = rf"(?P<month>(?a:{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))}))\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
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
    """A date at day, month or year precision; an unknown part is 0."""

    year: int
    month: int = 0
    day: int = 0

    @property
    def precision(self) -> Literal["day", "month", "year"]:
        """``day``, ``month`` or ``year``."""
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
    """Say whether a text is a numeric date whose order of day and month is unknown."""
    match = _NUMERIC.fullmatch(text.strip())
    return match is not None and _read_numeric(match) is None


def render_date(date: Date) -> tuple[str, ...]:
    """Return every accepted way to write a date, the plain day-first form first: ``5 April 1931``, ``AD 79``."""
    year = f"{1 - date.year} BC" if date.year <= 0 else str(date.year) if date.year >= 100 else f"AD {date.year}"
    if not date.month:
        return (year, date.iso) if date.year < 0 else (year,)
    month, short = MONTHS[date.month - 1], MONTHS[date.month - 1][:3]
    if not date.day:
        return tuple(dict.fromkeys((f"{month} {year}", f"{month}, {year}", f"{short} {year}", date.iso)))
    day, ordinal = str(date.day), render_ordinal(date.day)
    forms = (
        f"{day} {month} {year}", f"{month} {day}, {year}", date.iso, f"{date.day:02d} {month} {year}",
        f"{month} {date.day:02d}, {year}", f"{ordinal} {month} {year}", f"{ordinal} of {month} {year}",
        f"{month} {ordinal}, {year}", f"{day} {short} {year}", f"{short} {day}, {year}", f"{month} {day} {year}",
    )  # fmt: skip
    return tuple(dict.fromkeys(forms))


def render_ordinal(number: int) -> str:
    """Return ``1st``, ``2nd``, ``3rd``, ``11th``."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _make_date(parts: dict[str, str | None]) -> Date | None:
    digits, era = parts.get("year") or "", (parts.get("era") or "").upper().replace(".", "").strip()
    year, written, day = int(digits), (parts.get("month") or "0").lower(), int(parts.get("day") or 0)
    month = int(written) if written.isdigit() else _MONTH_NUMBERS[written]
    if era.startswith("B"):
        year = 1 - year
    elif len(digits) < 3 and not (era or parts.get("early")):
        return None
    return _check_date(year, month, day) if "day" not in parts or day else None


def _check_date(year: int, month: int, day: int) -> Date | None:
    if month > 12 or (day and not month) or day > 31:
        return None
    # Python's calendar starts with year 1; the Gregorian cycle has 400 years.
    if day and day > calendar.monthrange(year % 400 + 2000, month)[1]:
        julian_leap_day = month == 2 and day == 29 and year <= 1900 and year % 4 == 0
        return Date(year, month, day) if julian_leap_day else None
    return Date(year, month, day)


def _read_numeric(match: re.Match[str]) -> Date | None:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    readings = {_check_date(year, first, second), _check_date(year, second, first)} if first and second else {None}
    dates = [reading for reading in readings if reading is not None]
    return dates[0] if len(dates) == 1 else None


_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_ORDINALS = (
    "zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_SMALL = {word: value for value, word in enumerate(_ONES)} | _TENS | {word: n for n, word in enumerate(_ORDINALS)}
_LARGE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_CARDINALS = {*_ONES, *_TENS, *_LARGE, "and"}
_ROMAN = re.compile(r"(?<![^\W_])(?=[IVXLCDM]{2})M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?![^\W_])")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_GROUPED = re.compile(r"(?<!\d)\d{1,3}(?:[, '\u2019.]\d{3})+(?:\.\d+)?(?!\d)")
_SCALED = re.compile(r"(\d[\d,]{0,50})(\.\d{1,50})?[ -]((?ai:thousand|million|billion))")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

LONGEST_NUMBER = 16
"""Places at which a run of number words is cut into century and year, which bounds the quadratic cost."""


def parse_spelled(word: str) -> int | None:
    """Return the number of a lower-case word from ``zero`` to ``twenty``, or None."""
    return _ONES.index(word) if word in _ONES else None


def sum_spelled(words: Sequence[str]) -> int | None:
    """Return the cardinal number that words spell (``three hundred and twenty``); None if not one reading only."""
    total, group, least = 0, 0, _LARGE["billion"] * 1000
    room = 1000
    for place, word in enumerate(words):
        if word == "and":
            if (not group and not total) or place == len(words) - 1:
                return None
        elif word == "hundred":
            if not 0 < group < 10:
                return None
            group, room = group * 100, 100
        elif word in _LARGE:
            if not group or _LARGE[word] >= least:
                return None
            total, group, least, room = total + group * _LARGE[word], 0, _LARGE[word], 1000
        else:
            value = _SMALL[word]
            if value >= room or (value == 0 and len(words) > 1):
                return None
            group, room = group + value, 10 if value in _TENS.values() or value == 20 else 1
    return total + group if words and words[0] != "and" else None


def find_digits(text: str) -> set[Decimal]:
    """Return the numbers that a text writes in digits, without signs, in every reading: ``12.345`` is also 12345."""
    found = {Decimal(number) for number in _PLAIN.findall(text)}
    for number in _GROUPED.findall(text):
        whole, _, fraction = (re.sub(r"\D", "", part) for part in number.rpartition("."))
        found |= {Decimal(f"{whole}.{fraction}" if whole else fraction), Decimal(whole + fraction)}
    for whole, fraction, scale in _SCALED.findall(text):
        found.add(Decimal(whole.replace(",", "") + fraction) * _LARGE[scale.lower()])
    return found


def find_spelled_numbers(words: Sequence[str]) -> set[int]:
    """Return the numbers that folded words spell: ``three hundred and twenty``, ``third``, ``nineteen thirty one``.

    A run of number words gives each of its words, and its readings as a sum and as a year.
    """
    found: set[int] = set()
    run: list[str] = []
    for word in (*words, ""):
        if word in _SMALL or word in _LARGE or (word == "and" and run):
            run.append(word)
        elif run:
            found |= _read_run([part for part in run if part != "and"])
            run = []
    return found


def find_roman_numbers(text: str) -> set[int]:
    """Return the numbers of capital Roman numerals of at least two letters; a single ``I`` is a pronoun."""
    found = set()
    for match in _ROMAN.finditer(text):
        values = [_ROMAN_VALUES[letter] for letter in match.group()]
        pairs = zip(values, [*values[1:], 0], strict=True)
        found.add(sum(-one if one < other else one for one, other in pairs))
    return found


def _read_run(run: Sequence[str]) -> set[int]:
    found = {_SMALL[word] for word in run if word in _SMALL}
    found.add(_sum_run(run))
    for cut in range(1, min(len(run), LONGEST_NUMBER)):
        century, rest = _sum_run(run[:cut]), _sum_run(run[cut:])
        if 10 <= century <= 99 and 1 <= rest <= 99:
            found.add(century * 100 + rest)
    return found


def _sum_run(run: Sequence[str]) -> int:
    total, group = 0, 0
    for word in run:
        if word == "hundred":
            group = max(group, 1) * 100
        elif word in _LARGE:
            total, group = total + max(group, 1) * _LARGE[word], 0
        else:
            group += _SMALL[word]
    return total + group


_UNITS = """
m|metre|metres|meter|meters; km|kilometre|kilometres|kilometer|kilometers
cm|centimetre|centimetres|centimeter|centimeters; mm|millimetre|millimetres|millimeter|millimeters; ft|feet|foot
in|inch|inches; yd|yard|yards; mi|mile|miles; nmi|nautical mile|nautical miles
m2|square metre|square metres|square meter|square meters|sq m|m^2
km2|square kilometre|square kilometres|square kilometer|square kilometers|sq km|km^2
sqmi|square mile|square miles|sq mi|mi2; sqft|square foot|square feet|sq ft|ft2; ha|hectare|hectares; acre|acres
m3|cubic metre|cubic metres|cubic meter|cubic meters|m^3
km3|cubic kilometre|cubic kilometres|cubic kilometer|cubic kilometers; L|litre|litres|liter|liters|l
g|gram|grams|gramme|grammes; kg|kilogram|kilograms|kilogramme|kilogrammes|kilo|kilos; mg|milligram|milligrams
lb|pound|pounds|lbs; oz|ounce|ounces; t|tonne|tonnes|metric ton|metric tons; long ton|long tons; short ton|short tons
ton|tons; s|second|seconds|sec|secs; min|minute|minutes|mins; h|hour|hours|hr|hrs; d|day|days; week|weeks
month|months; year|years|yr|yrs; %|percent|per cent; °C|degrees Celsius|degree Celsius|C
°F|degrees Fahrenheit|degree Fahrenheit|F; K|kelvin|kelvins; °|degrees|degree
km/h|kph|kmh|kilometres per hour|kilometers per hour; m/s|metres per second|meters per second; mph|miles per hour|mi/h
kn|knot|knots; W|watt|watts; kW|kilowatt|kilowatts; MW|megawatt|megawatts; GW|gigawatt|gigawatts; hp|horsepower
V|volt|volts; Hz|hertz; kHz|kilohertz; MHz|megahertz; GHz|gigahertz; $|US$|USD|dollar|dollars|US dollars
€|EUR|euro|euros; £|GBP|pounds sterling; ¥|JPY|yen
"""
_SPELLINGS = tuple(tuple(unit.split("|")) for unit in _UNITS.strip().replace("\n", "; ").split("; "))
_EXACT = {spelling: spellings[0] for spellings in _SPELLINGS for spelling in spellings}
# Only words are folded: MW and mW, M and m differ.
_FOLDED = {spelling.lower(): spellings[0] for spellings in reversed(_SPELLINGS) for spelling in spellings}
_BY_UNIT = {spellings[0]: spellings for spellings in _SPELLINGS}
KNOWN_UNITS = frozenset(_BY_UNIT)
CURRENCIES = frozenset("$€£¥")

_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_NUMBER = re.compile(
    r"(?P<sign>[-+\u2013]?) ?(?P<currency>US\$|[$€£¥]?) ?"
    r"(?P<whole>\d{1,3}(?:(?P<gap>[, '\u2019])\d{3})(?:(?P=gap)\d{3})*|\d+)(?P<fraction>\.\d+)?"
    r"(?: (?P<scale>(?a:thousand|million|billion|trillion))\b)?(?P<join>[ -]?)(?P<unit>.*)",
    re.IGNORECASE,
)
_FREE_UNIT = re.compile(r"[^\W\d_]{3,}(?:[ -][^\W\d_]{2,}){0,2}")
_NUMBERS_MAX_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its unit."""

    value: str
    """Plain decimal text without separators, sign of zero or trailing zeros."""
    unit: str = ""
    """Canonical unit (``m``, ``km2``, ``°C``), a free lower-case noun (``inhabitants``), or empty."""


def parse_number(text: str) -> Number | None:
    """Return the number that a whole text writes, or None; ``3.5 million`` is 3500000.

    Commas, spaces or apostrophes may separate groups of three digits; a decimal comma is not read, because ``12,5`` and
    ``12,500`` differ by one keystroke.
    """
    text = " ".join(text.replace("\u2212", "-").split())
    match = _NUMBER.fullmatch(text) if len(text) <= _NUMBERS_MAX_LENGTH else None
    # 1930s is a decade, not 1930 seconds.
    if match is None or (match["unit"] == "s" and not match["join"]):
        return None
    unit = parse_unit(match["unit"].strip())
    if match["currency"]:
        unit = parse_unit(match["currency"]) if unit == "" else None
    if unit is None:
        return None
    digits = re.sub(r"\D", "", match["whole"]) + (match["fraction"] or "")
    value = Decimal(digits).scaleb(_SCALES.get((match["scale"] or "").lower(), 0))
    return Number(format_decimal(-value if match["sign"] in ("-", "\u2013") else value), unit)


def parse_unit(text: str) -> str | None:
    """Return a unit's canonical spelling, ``""`` for an empty text, or None for no possible unit."""
    if not text:
        return ""
    text = unicodedata.normalize("NFKC", text).removesuffix(".").strip()
    known = _EXACT.get(text)
    if known is None and len(text) >= 3:
        known = _FOLDED.get(text.lower())
    if known:
        return known
    return text if _FREE_UNIT.fullmatch(text) and text == text.lower() else None


def parse_number_words(text: str) -> Number | None:
    """Return the number that a whole text spells (``one hundred and five``, ``forty-two metres``), or None."""
    words = text.strip().lower().replace("-", " ").split()
    count = next((place for place, word in enumerate(words) if word not in _CARDINALS), len(words))
    value, unit = sum_spelled(words[:count]), parse_unit(" ".join(words[count:]))
    return None if value is None or unit is None else Number(str(value), unit)


def render_number(number: Number) -> tuple[str, ...]:
    """Return every accepted way to write a number with its unit, the one with separators first."""
    plain, grouped = number.value, group_thousands(number.value)
    values = tuple(dict.fromkeys((grouped, plain, plain.replace("-", "\u2212"))))
    if number.unit in CURRENCIES:
        names = [name for name in _BY_UNIT[number.unit] if name.isalpha() and name.islower() and name.endswith("s")]
        signed = [
            value.replace("-", f"-{number.unit}") if "-" in value else number.unit + value for value in values[:2]
        ]
        return tuple(dict.fromkeys([*signed, *(f"{value} {name}" for value in values for name in names)]))
    if not number.unit:
        return values
    spellings = _BY_UNIT.get(number.unit, (number.unit,))
    glues = number.unit in KNOWN_UNITS and number.unit != "s" and " " not in number.unit
    glued = [f"{value}{number.unit}" for value in values if glues]
    return tuple(dict.fromkeys([*(f"{value} {unit}" for unit in spellings for value in values), *glued]))


def group_thousands(value: str) -> str:
    """Return plain decimal text with commas between groups of three digits: ``-12345.6`` to ``-12,345.6``."""
    whole, dot, fraction = value.partition(".")
    return f"{int(whole):,}{dot}{fraction}" if whole not in ("-0", "-") else value


def format_decimal(value: Decimal) -> str:
    """Return plain decimal text: no exponent, no trailing zeros of the fraction, no minus before zero."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, dot, fraction = digits.partition(".")
    digits = (whole.lstrip("0") or "0") + dot + fraction
    return digits if not digits.strip("0.") else sign + digits


Likeness = Literal["same", "close", "other", "apart"]
"""``same``: one measure. ``close``: one may be a rounding of the other. ``apart``: units that do not compare."""

_FACTORS = """
length m 1; km 1000; cm 0.01; mm 0.001; ft 0.3048; in 0.0254; yd 0.9144; mi 1609.344; nmi 1852
area m2 1; km2 1000000; ha 10000; sqmi 2589988.110336; sqft 0.09290304; acre 4046.8564224
volume m3 1; km3 1000000000; L 0.001
mass kg 1; g 0.001; mg 0.000001; t 1000; lb 0.45359237; oz 0.028349523125; long ton 1016.0469088; short ton 907.18474
time s 1; min 60; h 3600; d 86400; week 604800
speed m/s 1; km/h 0.27777777777777777778; mph 0.44704; kn 0.51444444444444444444
power W 1; kW 1000; MW 1000000; GW 1000000000; hp 745.69987158227022
frequency Hz 1; kHz 1000; MHz 1000000; GHz 1000000000
temperature °C 1; °F 0.55555555555555555556; K 1
"""
_OFFSETS = {"°C": Decimal("273.15"), "°F": Decimal("459.67"), "K": Decimal(0)}
"""Added before the factor."""
_DECIMAL = frozenset("m km cm mm m2 km2 ha m3 km3 L kg g mg t W kW MW GW Hz kHz MHz GHz".split())
"""Units that differ by powers of ten: their conversion needs no rounding."""
_TOLERANCE = Decimal("0.005")
"""Largest relative error of a conversion between systems."""
_FAR = Decimal("0.1")
"""Relative difference beyond which it is not a rounding."""


def _read_factors() -> dict[str, tuple[str, Decimal]]:
    units: dict[str, tuple[str, Decimal]] = {}
    for line in _FACTORS.strip().splitlines():
        dimension, _, rest = line.partition(" ")
        for entry in rest.split("; "):
            name, _, factor = entry.rpartition(" ")
            units[name] = (dimension, Decimal(factor))
    return units


_DIMENSIONS = _read_factors()


ROUND_ZEROS = 2
"""Zeros at the end that tell a rounded number."""


def compare_measures(first: Number, second: Number) -> Likeness:
    """Compare two measures in any order.

    In one unit, or between units that differ by a power of ten, only equal values are the same. Between systems
    (5 km and 3.1 mi) values are the same within half a unit of the last place of either one and within 0.5%.
    """
    if first.unit == second.unit:
        return "same" if first.value == second.value else "other"
    if first.unit not in _DIMENSIONS or second.unit not in _DIMENSIONS:
        return "apart"
    (dimension, _), (other_dimension, _) = _DIMENSIONS[first.unit], _DIMENSIONS[second.unit]
    if dimension != other_dimension:
        return "apart"
    one, other = _convert(first), _convert(second)
    gap, size = abs(one - other), max(abs(one), abs(other))
    if gap == 0:
        return "same"
    rounds = gap <= max(_half_step(first), _half_step(second))
    exact = first.unit in _DECIMAL and second.unit in _DECIMAL
    if rounds and not exact and gap <= _TOLERANCE * size:
        return "same"
    return "close" if rounds or gap <= _FAR * size else "other"


def _convert(number: Number) -> Decimal:
    return (Decimal(number.value) + _OFFSETS.get(number.unit, Decimal(0))) * _DIMENSIONS[number.unit][1]


def _half_step(number: Number) -> Decimal:
    return read_step(Decimal(number.value)) / 2 * _DIMENSIONS[number.unit][1]


def read_step(value: Decimal) -> Decimal:
    """Return a unit of the last place that a number is written to: .01, 1, or 100 where it ends in two zeros or more.

    One zero at the end happens to be there as often as it rounds.
    """
    zeros = int(value.normalize().as_tuple().exponent) if value else 0
    written = int(value.as_tuple().exponent)
    return Decimal(1).scaleb(zeros if zeros >= ROUND_ZEROS else min(written, 0))


ValueT = TypeVar("ValueT")

_SPOTTING_MONTH = (
    "(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS if name != "May") + r"|May|Sept)\b\.?"
)
_SPOTTING_YEAR = r"\d{3,4}(?: ?(?:BCE|BC|CE|AD)\b)?"
_DATE = re.compile(
    rf"(?<![\w.,/-])(?<!\d[ \u00a0])(?:\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? {_SPOTTING_MONTH},? {_SPOTTING_YEAR}"
    rf"|{_SPOTTING_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?,? {_SPOTTING_YEAR}"
    rf"|{_SPOTTING_MONTH},?(?: of)? {_SPOTTING_YEAR}"
    r"|\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}"
    r"|\d{4}(?: ?(?:BCE|BC|CE|AD)\b)?|\d{1,3} ?(?:BCE|BC|CE|AD)\b|AD \d{1,4}"
    r"|(?:(?<=\bin )|(?<=\bfrom )|(?<=\bsince )|(?<=\bby ))\d{3}(?= *(?:[.,;)]|$|and )))"
    r"(?![\w%°]|[.,]\d|[-/]\d{1,2}(?!\d))"
)
_SPOTTING_NUMBER = re.compile(
    r"(?<![\w.,/])(?:(?<![\d\w])[-\u2212\u2013+])?(?:US\$|[$€£¥])?"
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ \u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?"
    r"(?: (?:thousand|million|billion|trillion)\b)?(?![\d])"
)
_SPELLED = re.compile(rf"\b(?:{'|'.join(_ONES)})\b(?!-)", re.IGNORECASE)
_UNIT = re.compile(r"[ \u00a0-]?([^\s,;:?!”()\[\]]+)(?: ([^\s,;:?!”()\[\]]+))?(?: ([^\s,;:?!”()\[\]]+))?")
_LOOK_AHEAD = 60


@dataclass(frozen=True, slots=True)
class Spot(Generic[ValueT]):
    """A value and its span."""

    value: ValueT
    start: int
    end: int


def find_dates(text: str) -> list[Spot[Date]]:
    """Return the dates of a text in order, at the precision written; four digits alone are a year, fewer with an era.

    A year followed by a unit (``1204 m``) or inside a larger number is left out.
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
    # The largest end of all dates up to each one makes the test below logarithmic.
    starts, reaches = [start for start, _ in taken], list(accumulate((end for _, end in taken), max))

    def is_free(spot: Spot[Number]) -> bool:
        before = bisect_left(starts, spot.end)
        return before == 0 or reaches[before - 1] <= spot.start

    spots = filter(is_free, (*_read_digits(text), *_read_spelled(text)))
    return sorted(spots, key=lambda spot: spot.start)


def _read_digits(text: str) -> Iterator[Spot[Number]]:
    for match in _SPOTTING_NUMBER.finditer(text):
        plain = match.group().replace("\u00a0", " ").replace("\u202f", " ").removeprefix("+")
        number = parse_number(plain)
        if number is None:
            continue
        unit, end = ("", match.end()) if number.unit else _read_unit(text, match.end())
        if not unit and text[match.end() : match.end() + 1].isalpha():
            continue
        yield Spot(Number(number.value, number.unit or unit), match.start(), end)


def _read_spelled(text: str) -> Iterator[Spot[Number]]:
    for match in _SPELLED.finditer(text):
        unit, end = _read_unit(text, match.end())
        yield Spot(Number(str(_ONES.index(match.group().lower())), unit), match.start(), end)


def _read_unit(text: str, place: int) -> tuple[str, int]:
    match = _UNIT.match(text, place, place + _LOOK_AHEAD)
    for count in (3, 2, 1) if match else ():
        assert match is not None
        if match[count] is None:
            continue
        words = text[match.start(1) : match.end(count)].rstrip(".")
        unit = parse_unit(words)
        # "in" is mostly a preposition: "5 in Lumby".
        if unit is not None and unit in KNOWN_UNITS and (unit != "in" or words != "in"):
            return unit, match.start(1) + len(words)
    return "", place
