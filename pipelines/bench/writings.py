"""Other ways to write a value, for plants: numbers in words and Roman numerals, measures in other units.

Written apart from what the checks read with, so that a plant does not lean on the check that must find it.
"""

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
              "twelve": "twelfth"}  # fmt: skip
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_CONVERSIONS = {
    "m": (("ft", 3.28084), ("yd", 1.0936133), ("cm", 100.0), ("km", 0.001)),
    "km": (("mi", 0.62137119), ("m", 1000.0)),
    "kg": (("lb", 2.20462262), ("g", 1000.0)),
    "km2": (("sq mi", 0.38610216), ("hectares", 100.0), ("acres", 247.105381)),
}


def spell_number(number: int) -> str:
    """Return a number below a million in words: ``one thousand two hundred and four``."""
    if number >= 1000:
        rest = f" {'and ' if number % 1000 < 100 else ''}{spell_number(number % 1000)}" if number % 1000 else ""
        return f"{spell_number(number // 1000)} thousand{rest}"
    if number >= 100:
        return f"{_ONES[number // 100]} hundred" + (f" and {spell_number(number % 100)}" if number % 100 else "")
    if number >= 20:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    return _ONES[number]


def spell_ordinal(number: int) -> str:
    """Return ``twenty-first``."""
    words = spell_number(number)
    start = max(words.rfind("-"), words.rfind(" ")) + 1
    head, last = words[:start], words[start:]
    return head + (_IRREGULAR.get(last) or (last[:-1] + "ieth" if last.endswith("y") else f"{last}th"))


def spell_year(year: int) -> str:
    """Return a year as it is said: ``nineteen thirty-one``, ``nineteen oh five``, ``two thousand``."""
    century, rest = divmod(year, 100)
    if century % 10 == 0:
        return spell_number(year)
    return f"{spell_number(century)} " + (
        "hundred" if not rest else f"oh {_ONES[rest]}" if rest < 10 else spell_number(rest)
    )


def write_roman(number: int) -> str:
    """Return a number below 4000 in Roman numerals."""
    shown = ""
    for value, letters in _ROMAN:
        shown += letters * (number // value)
        number %= value
    return shown


def convert_measure(value: int, unit: str) -> tuple[str, ...]:
    """Return a whole measure in other units, to four digits or as many as it is whole with."""
    return tuple(f"{_round(value * factor)} {name}" for name, factor in _CONVERSIONS.get(unit, ()))


def _round(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
