"""Units that measure the same: how many of the base unit each is, exactly, and when two measures may be one.

Factors are those of the international yard and pound (1959) and of the SI brochure; decimal throughout, no floats.
"""

from decimal import Decimal
from typing import Literal

from pipelines.scoring.numbers import Number

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
"""Added before the factor: a zero of temperature is no zero."""
_DECIMAL = frozenset("m km cm mm m2 km2 ha m3 km3 L kg g mg t W kW MW GW Hz kHz MHz GHz".split())
"""Units of which one is a power of ten of another: whoever converts them does not round."""
_TOLERANCE = Decimal("0.005")
"""Largest share by which a conversion between systems may be off."""
_FAR = Decimal("0.1")
"""Share beyond which no rounding explains a difference."""


def _read_factors() -> dict[str, tuple[str, Decimal]]:
    units: dict[str, tuple[str, Decimal]] = {}
    for line in _FACTORS.strip().splitlines():
        dimension, _, rest = line.partition(" ")
        for entry in rest.split("; "):
            name, _, factor = entry.rpartition(" ")
            units[name] = (dimension, Decimal(factor))
    return units


_UNITS = _read_factors()


def compare_measures(first: Number, second: Number) -> Likeness:
    """Return how two measures compare; the order does not matter.

    In one unit, or between units that differ by a power of ten, only equal values are the same. Between systems
    (5 km and 3.1 mi) the same is what differs by at most half a unit of the last place that either one writes, and by
    no more than 0.5%.
    """
    if first.unit == second.unit:
        return "same" if first.value == second.value else "other"
    if first.unit not in _UNITS or second.unit not in _UNITS:
        return "apart"
    (dimension, _), (other_dimension, _) = _UNITS[first.unit], _UNITS[second.unit]
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
    return (Decimal(number.value) + _OFFSETS.get(number.unit, Decimal(0))) * _UNITS[number.unit][1]


def _half_step(number: Number) -> Decimal:
    """Return half a unit of the last place written, in the base unit."""
    exponent = Decimal(number.value).as_tuple().exponent
    return Decimal("0.5").scaleb(exponent if isinstance(exponent, int) else 0) * _UNITS[number.unit][1]
