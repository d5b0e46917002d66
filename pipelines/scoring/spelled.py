"""Numbers found inside running text: in digits, in words, in Roman numerals."""

import re
from collections.abc import Sequence
from decimal import Decimal

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
_ROMAN = re.compile(r"(?<![^\W_])(?=[IVXLCDM]{2})M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?![^\W_])")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_GROUPED = re.compile(r"(?<!\d)\d{1,3}(?:[, '\u2019.]\d{3})+(?:\.\d+)?(?!\d)")
_SCALED = re.compile(r"(\d[\d,]{0,50})(\.\d{1,50})?[ -]((?ai:thousand|million|billion))")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}

LONGEST_NUMBER = 16
"""Words of a spelled number at most: a longer run is a list, and cutting it everywhere would be quadratic."""


def parse_spelled(word: str) -> int | None:
    """Return the number that one lower-case word from ``zero`` to ``twenty`` means, or None."""
    return _ONES.index(word) if word in _ONES else None


def is_number_word(word: str) -> bool:
    """Say whether a lower-case word may be part of a spelled cardinal number."""
    return word in _ONES or word in _TENS or word in _LARGE or word == "and"


def sum_spelled(words: Sequence[str]) -> int | None:
    """Return the cardinal number that words spell in good order (``three hundred and twenty``), or None.

    What may be read in two ways, such as ``nineteen thirty one``, is none.
    """
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
    """Return the numbers that a text writes in digits, signs dropped, in every way that they can be read.

    ``12.345`` is a decimal number and, as much of the world groups digits, 12345; ``12.345.678`` is no other.
    """
    found = {Decimal(number) for number in _PLAIN.findall(text)}
    for number in _GROUPED.findall(text):
        whole, _, fraction = (re.sub(r"\D", "", part) for part in number.rpartition("."))
        found |= {Decimal(f"{whole}.{fraction}" if whole else fraction), Decimal(whole + fraction)}
    for whole, fraction, scale in _SCALED.findall(text):
        found.add(Decimal(whole.replace(",", "") + fraction) * _LARGE[scale.lower()])
    return found


def find_spelled_numbers(words: Sequence[str]) -> set[int]:
    """Return the numbers that folded words spell: ``three hundred and twenty``, ``third``, ``nineteen thirty one``.

    A run of number words that can be read as a sum and as a year gives both, and each of its words gives itself.
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
    """Return the numbers that capital Roman numerals of at least two letters mean; a single ``I`` is a pronoun."""
    return {_read_roman(match.group()) for match in _ROMAN.finditer(text)}


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


def _read_roman(numeral: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    return sum(-one if one < other else one for one, other in zip(values, [*values[1:], 0], strict=True))
