"""Measures and numbers as ``{{convert}}`` and ``{{formatnum}}`` show them."""

import re
from collections.abc import Sequence

from pipelines.corpus.templates import RANGE_WORDS, UNITS

NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")


class Unreadable(ValueError):
    """Some part of a value has no certain rendering; the whole value is given up."""


def show_conversion(words: Sequence[str]) -> str:
    """Show the measure that ``{{convert}}`` starts from, such as ``320 m`` or ``6 ft 4 in``, without the rest.

    Raises:
        Unreadable: the arguments are no number and unit.
    """
    text, position = "", 0
    while position + 1 < len(words) and NUMBER.fullmatch(words[position]):
        number, unit = words[position], words[position + 1]
        position += 2
        if unit in RANGE_WORDS:
            text += group_digits(number) + RANGE_WORDS[unit]
            continue
        return _finish_convert(text + _show_measure(number, unit), words[position:])
    raise Unreadable("convert")


def _finish_convert(text: str, rest: Sequence[str]) -> str:
    """Append the smaller unit of a pair such as ``6|ft|4|in``; the units converted to are left out."""
    if len(rest) >= 2 and NUMBER.fullmatch(rest[0]) and rest[1] in ("in", "oz", "lb", "ft", "yd", "ch"):
        return f"{text} {_show_measure(rest[0], rest[1])}"
    return text


def _show_measure(number: str, unit: str) -> str:
    number = group_digits(number)
    shown = UNITS.get(unit, unit)
    return number + shown if shown.startswith(("/", "°")) else f"{number} {shown}"


def group_digits(number: str) -> str:
    """Write an integer part of four digits or more with commas.

    Raises:
        Unreadable: the text is no number.
    """
    whole, point, fraction = number.partition(".")
    if not NUMBER.fullmatch(number):
        raise Unreadable("number")
    digits = whole.lstrip("+-−")
    sign = whole[: len(whole) - len(digits)]
    return f"{sign}{int(digits):,}{point}{fraction}" if digits.isdecimal() and len(digits) > 3 else number
