"""Literal values: how they are drawn, and how they look in prose, in an infobox and in Wikidata."""

import math
from dataclasses import dataclass
from random import Random

from pipelines.world.ontology import Attribute, ValueKind

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
LAST_YEAR = 2020


@dataclass(frozen=True, slots=True)
class Value:
    """One literal.

    Attributes:
        text: canonical short form, the gold answer: ``5 April 1931``, ``1931``, ``320 m``, ``48,213``, ``granite``.
        number: the amount of a quantity or count, the year of a date, 0.0 of a text.
        month: 1 to 12, or 0 for a date of year precision and for other kinds; ``day`` likewise.
        unit: unit symbol as ``{{convert}}`` takes it, or empty.
    """

    kind: ValueKind
    text: str
    number: float = 0.0
    month: int = 0
    day: int = 0
    unit: str = ""

    @property
    def iso(self) -> str:
        """A date as ``YYYY-MM-DD``; a year as ``YYYY-01-01``, the way Wikidata's simple values do."""
        return f"{int(self.number):04d}-{self.month or 1:02d}-{self.day or 1:02d}"


def draw_value(attribute: Attribute, year: int, rng: Random) -> Value | None:
    """Draw a value of ``attribute`` for an entity whose principal year is ``year``.

    Returns:
        None when the date would lie after the world's present (a person still alive).
    """
    if attribute.kind == "date":
        return _draw_date(attribute, year, rng)
    if attribute.kind == "text":
        return Value("text", rng.choice(attribute.words))
    amount = _draw_amount(attribute.low, attribute.high, rng)
    if attribute.kind == "count":
        return Value("count", f"{int(amount):,}", float(int(amount)))
    unit = {"km2": "km²"}.get(attribute.unit, attribute.unit)
    return Value("quantity", f"{amount:,g} {unit}", amount, unit=attribute.unit)


def show_inline(value: Value, rng: Random) -> str:
    """The value in running text: dates in one of two orders, numbers with their unit."""
    if value.kind == "date" and value.day and rng.random() < 0.25:
        return f"{MONTHS[value.month - 1]} {value.day}, {int(value.number)}"
    if value.kind == "quantity" and value.unit not in ("minutes", "t") and rng.random() < 0.3:
        return f"{{{{convert|{value.number:g}|{value.unit}}}}}"
    return value.text


def show_boxed(value: Value, attribute: Attribute, rng: Random) -> str:
    """The value as an infobox holds it, in one of the forms that enwiki uses."""
    plain = rng.random() < 0.4
    if value.kind == "date":
        return _box_date(value, attribute.stamp, plain)
    if value.kind == "count":
        return f"{{{{formatnum:{int(value.number)}}}}}" if rng.random() < 0.1 else value.text
    if value.kind == "quantity":
        return _box_quantity(value, attribute.other, plain, rng)
    return value.text


def _draw_date(attribute: Attribute, year: int, rng: Random) -> Value | None:
    when = year + rng.randint(int(attribute.low), int(attribute.high))
    if when > LAST_YEAR:
        return None
    if rng.random() >= attribute.day_share:
        return Value("date", str(when), float(when))
    month, day = rng.randint(1, 12), rng.randint(1, 28)
    return Value("date", f"{day} {MONTHS[month - 1]} {when}", float(when), month, day)


def _draw_amount(low: float, high: float, rng: Random) -> float:
    amount = math.exp(rng.uniform(math.log(low), math.log(high + 1)))
    if high < 1000 and amount < 100:
        return round(amount, 1) if rng.random() < 0.5 else float(round(amount))
    return float(round(amount))


def _box_date(value: Value, stamp: str, plain: bool) -> str:
    year = int(value.number)
    if not stamp or plain:
        return value.text
    if not value.day:
        return f"{{{{{stamp}|{year}}}}}"
    tail = "|df=yes" if stamp == "start date" else "|df=y"
    name = "birth date and age" if stamp == "birth date" and year > 1945 else stamp
    return f"{{{{{name}|{year}|{value.month}|{value.day}{tail}}}}}"


def _box_quantity(value: Value, other: str, plain: bool, rng: Random) -> str:
    if plain or not other:
        return value.text
    name = "cvt" if rng.random() < 0.2 else "convert"
    tail = "|abbr=on" if name == "convert" and rng.random() < 0.3 else ""
    return f"{{{{{name}|{value.number:g}|{value.unit}|{other}{tail}}}}}"
