"""Numbers with units as a page or a model writes them. Values are decimal text, never floats: 0.1 stays 0.1."""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal

from pipelines.scoring.spelled import is_number_word, parse_spelled, sum_spelled

_UNITS = """
m|metre|metres|meter|meters
km|kilometre|kilometres|kilometer|kilometers
cm|centimetre|centimetres|centimeter|centimeters
mm|millimetre|millimetres|millimeter|millimeters
ft|feet|foot
in|inch|inches
yd|yard|yards
mi|mile|miles
nmi|nautical mile|nautical miles
m2|square metre|square metres|square meter|square meters|sq m|m^2
km2|square kilometre|square kilometres|square kilometer|square kilometers|sq km|km^2
sqmi|square mile|square miles|sq mi|mi2
sqft|square foot|square feet|sq ft|ft2
ha|hectare|hectares
acre|acres
m3|cubic metre|cubic metres|cubic meter|cubic meters|m^3
km3|cubic kilometre|cubic kilometres|cubic kilometer|cubic kilometers
L|litre|litres|liter|liters|l
g|gram|grams|gramme|grammes
kg|kilogram|kilograms|kilogramme|kilogrammes|kilo|kilos
mg|milligram|milligrams
lb|pound|pounds|lbs
oz|ounce|ounces
t|tonne|tonnes|metric ton|metric tons
long ton|long tons
short ton|short tons
ton|tons
s|second|seconds|sec|secs
min|minute|minutes|mins
h|hour|hours|hr|hrs
d|day|days
week|weeks
month|months
year|years|yr|yrs
%|percent|per cent
°C|degrees Celsius|degree Celsius|C
°F|degrees Fahrenheit|degree Fahrenheit|F
K|kelvin|kelvins
°|degrees|degree
km/h|kph|kmh|kilometres per hour|kilometers per hour
m/s|metres per second|meters per second
mph|miles per hour|mi/h
kn|knot|knots
W|watt|watts
kW|kilowatt|kilowatts
MW|megawatt|megawatts
GW|gigawatt|gigawatts
hp|horsepower
V|volt|volts
Hz|hertz
kHz|kilohertz
MHz|megahertz
GHz|gigahertz
$|US$|USD|dollar|dollars|US dollars
€|EUR|euro|euros
£|GBP|pounds sterling
¥|JPY|yen
"""
_SPELLINGS = tuple(tuple(line.split("|")) for line in _UNITS.strip().splitlines())
_EXACT = {spelling: spellings[0] for spellings in _SPELLINGS for spelling in spellings}
# Case is folded in words alone: MW and mW, M and m are different things.
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
_MAX_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Number:
    """A number: ``value`` is plain decimal text without separators, sign of zero or trailing zeros."""

    value: str
    unit: str = ""
    """Canonical unit (``m``, ``km2``, ``°C``), a free lower-case noun (``inhabitants``), or empty."""


def parse_number(text: str) -> Number | None:
    """Return the number that a whole text writes, or None.

    Thousands may be set apart by commas, spaces or apostrophes, in proper groups of three; a decimal comma is not read,
    because ``12,5`` and ``12,500`` differ by one keystroke. ``3.5 million`` is 3500000.
    """
    text = " ".join(text.replace("\u2212", "-").split())
    match = _NUMBER.fullmatch(text) if len(text) <= _MAX_LENGTH else None
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
    """Return a unit's canonical spelling, ``""`` for no text, or None where the text can be no unit."""
    if not text:
        return ""
    text = unicodedata.normalize("NFKC", text).removesuffix(".").strip()
    known = _EXACT.get(text)
    if known is None and len(text) >= 3:
        known = _FOLDED.get(text.lower())
    if known:
        return known
    return text if _FREE_UNIT.fullmatch(text) and text == text.lower() else None


def parse_number_word(text: str) -> Number | None:
    """Return the number that a word from ``zero`` to ``twenty`` means, with its unit if one follows, or None."""
    word, _, rest = text.strip().partition(" ")
    value, unit = parse_spelled(word.lower()), parse_unit(rest.strip())
    return None if value is None or unit is None else Number(str(value), unit)


def parse_number_words(text: str) -> Number | None:
    """Return the number that several words spell (``one hundred and five``, ``forty-two metres``), or None."""
    words = text.strip().lower().replace("-", " ").split()
    count = next((place for place, word in enumerate(words) if not is_number_word(word)), len(words))
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
