"""Dates, numbers and measures inside a text, in every way to write them: the values an answer could be read from."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from functools import lru_cache
from itertools import groupby

from pipelines.checks.readings import split_words
from pipelines.names import strip_invisible
from pipelines.scoring.dates import MONTHS, Date, parse_date, render_ordinal
from pipelines.scoring.numbers import Number, format_decimal, parse_number
from pipelines.scoring.spelled import find_digits, find_roman_numbers, find_spelled_numbers
from pipelines.scoring.spotting import find_measures
from pipelines.scoring.units import compare_measures
from schemas.proofs import Answer

_COMMA = re.compile(r"(?<![\d,.])(\d{1,3}(?:[. ]\d{3}){0,6}|\d{1,20}),(\d{1,20})(?![\d,])")
_SCALED = re.compile(
    r"(?<![\w.,])(\d{1,20}(?:[.,]\d{1,20})?) ?(k|(?-i:M)|mn|mln|bn|lakh|crore|dozen|score|trillion)(?!\w)", re.I
)
_SCALES = {"k": 1000, "m": 10**6, "mn": 10**6, "mln": 10**6, "bn": 10**9, "lakh": 10**5, "crore": 10**7, "dozen": 12,
           "score": 20, "trillion": 10**12}  # fmt: skip
_POWER = re.compile(r"(?<![\w.,])(\d{1,20}(?:\.\d{1,20})?) ?(?:e\+?|[x×*·] ?10(?:\^| ?\*\* ?)?)(\d{1,2})(?!\d)", re.I)
_INDIAN = re.compile(r"(?<![\d,])\d{1,2}(?:,\d{2}){1,6},\d{3}(?![\d,])")
_MARKED = re.compile(r"(?<![\d_])\d{1,3}(?:[_·˙٬]\d{3}){1,10}(?![\d_])")
_SPACED = re.compile(r"(?<![\w.,])\d(?:[ -]\d){2,20}(?![\w])")
_FRACTION = re.compile(r"(?<![\d/.,])(?:(\d{1,9})[ -])?(\d{1,4}) ?[/⁄] ?([1-9]\d{0,3})(?![\d/])")
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_LETTERED = re.compile(r"(?<!\w)(?=[OoIl]*\d[\dOoIl]*[OoIl]|[OoIl]+\d)[\dOoIl]{2,20}(?!\w)")
_LETTERS = str.maketrans("OoIl", "0011")
_LOW_ROMAN = re.compile(r"(?<!\w)[ivxlcdm]{5,20}(?!\w)")
_TENTHS = {"twent": "twenty", "thirt": "thirty", "fort": "forty", "fift": "fifty", "sixt": "sixty", "sevent": "seventy",
           "eight": "eighty", "ninet": "ninety"}  # fmt: skip
_ORDINALS = {f"{stem}ieth": ten for stem, ten in _TENTHS.items()} | {
    f"{word}th": word for word in ("hundred", "thousand", "million", "billion")
}
_PARTS = {"half": Decimal("0.5"), "quarter": Decimal("0.25"), "quarters": Decimal("0.75")}
_TIMES = {"twice": 2, "thrice": 3, "dozen": 12}
_NOUGHTS = frozenset(("oh", "nought", "aught"))
_STONE = re.compile(r"(?<![\w.,])(\d{1,4}) ?(?:stones?|st)(?: (\d{1,2}) ?(?:lbs?|pounds?))?(?!\w)", re.I)
_INCHES = re.compile(
    r"(?<![\w.,])(\d{1,5}) ?(?:ft|feet|foot|['′’])"
    r"(?:,? ?(?:and )?(\d{1,2}(?:\.\d{1,3})?) ?(?:inch|inches|in|[\"″”]|''))?(?!\w)",
    re.IGNORECASE,
)
_ONES = "one two three four five six seven eight nine".split()
_FIRST = "first second third fourth fifth sixth seventh eighth ninth".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_DAY_WORDS = (
    *zip(_ONES, _FIRST, strict=True),
    *((teen, "twelfth" if teen == "twelve" else f"{teen}th") for teen in _TEENS),
    ("twenty", "twentieth"),
    *((f"twenty {one}", f"twenty {first}") for one, first in zip(_ONES, _FIRST, strict=True)),
    ("thirty", "thirtieth"),
    ("thirty one", "thirty first"),
)
"""Days of a month in words, the first at 0."""
_STOPS = re.compile('[?!:;"“”]')
_LONGEST_RUN = 16
"""Words of a spelled number."""
_ROUNDINGS = tuple(Decimal(step).scaleb(-1) for step in range(-5, 6))
_SHORT_YEAR = re.compile(r"(?<![\w/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{2})(?![\w/.-]\d)(?!\d)")


def find_numbers(text: str) -> set[Decimal]:
    """Return the size (sign dropped) of every number in a text, in every way that it can be read.

    Digits with any separators, decimal commas, fractions, powers of ten and scales; words, ordinals and dozens; Roman
    numerals.
    """
    text = _plain(text)
    words = _prepare_words(split_words(text))
    spelled = find_spelled_numbers(words) | find_roman_numbers(text)
    found = find_digits(text) | {Decimal(number) for number in spelled}
    if any(map(str.isdigit, text)):
        found.update(_read_rare_digits(text))
    found.update(_read_word_parts(words))
    for match in _LOW_ROMAN.findall(text):
        found.update(map(Decimal, find_roman_numbers(match.upper())))
    return found


def find_value(text: str, answer: Answer) -> str:
    """Return how a text writes the number or date of an answer, or nothing.

    A number counts whatever its unit; a measure also converted to another unit, when it is the same rounded as
    written (:func:`pipelines.scoring.units.compare_measures`); a share also as a percentage and back. Of a date the
    year counts alone, and the day with its month.
    """
    if answer.type == "number":
        number = parse_number(answer.value)
        return "" if number is None else _find_number(text, Number(number.value, answer.unit))
    date = parse_date(answer.value) if answer.type == "date" else None
    return "" if date is None else _find_date(text, date)


def _plain(text: str) -> str:
    """Return a text with plain digits and letters; a fraction sign stands apart from the number before it."""
    return unicodedata.normalize("NFKC", _VULGAR.sub(r" \g<0>", strip_invisible(text)))


def _find_number(text: str, number: Number) -> str:
    value = Decimal(number.value).copy_abs()
    wanted = {value, value / 100} if number.unit == "%" else {value}
    numbers = find_numbers(text)
    if wanted & numbers:
        return format_decimal(value)
    plain = _plain(text)
    if not number.unit and 0 < value < 1 and value * 100 in numbers and re.search(r"%|per ?cent", plain, re.IGNORECASE):
        return f"{format_decimal(value * 100)}%"
    if number.unit:
        for measure in _list_measures(plain):
            if measure.unit not in ("", number.unit) and _is_conversion(measure, number):
                return f"{measure.value} {measure.unit}"
    return ""


def _list_measures(text: str) -> Iterator[Number]:
    """Yield the measures of a text, those of two units (6 ft 2 in, 11 st 4 lb) in the finer one."""
    for feet, inches in _INCHES.findall(text):
        yield Number(format_decimal(Decimal(feet) * 12 + Decimal(inches or 0)), "in") if inches else Number(feet, "ft")
    for stones, pounds in _STONE.findall(text):
        yield Number(str(int(stones) * 14 + int(pounds or 0)), "lb")
    yield from (spot.value for spot in find_measures(_STOPS.sub(" , ", text)))
    yield from (spot.value for spot in find_measures(_write_digits(text)))


def _write_digits(text: str) -> str:
    """Return the numbers that a text spells, each in digits with the three words after it, which may be its unit."""
    words = (*_prepare_words(split_words(text)), "")
    shown: list[str] = []
    run: list[str] = []
    for place, word in enumerate(words):
        if _counts(word) or (word == "and" and run):
            run.append(word)
        elif run:
            shown += [str(max(find_spelled_numbers(run))), *words[place : place + 3], ";"]
            run = []
    return " ".join(shown)


def _is_conversion(measure: Number, number: Number) -> bool:
    """Say whether a measure is a number in another unit, exactly or rounded to the last place that it shows."""
    likeness = compare_measures(measure, number)
    if likeness != "close":
        return likeness == "same"
    value = Decimal(measure.value)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or value.copy_abs() < 10:
        return False
    if _round_digits(Decimal(number.value), len(value.as_tuple().digits)) == _round_digits(value, 0):
        return True
    steps = (Number(format_decimal(value + step.scaleb(exponent)), measure.unit) for step in _ROUNDINGS)
    return any(compare_measures(step, number) == "same" for step in steps)


def _round_digits(value: Decimal, count: int) -> str:
    """Return the leading digits of a number rounded to so many, or all for 0, without zeros at the end."""
    rounded = Context(prec=count).plus(value) if count else value
    return "".join(map(str, rounded.as_tuple().digits)).rstrip("0")


def _find_date(text: str, date: Date) -> str:
    year = date.year if date.year > 0 else 1 - date.year
    plain = _plain(text)
    if Decimal(year) in find_numbers(text) or re.search(rf"(?<!\d){year}(?!\d)", plain):
        return str(year)
    if re.search(rf"(?<![\w’'])['’‘]{year % 100:02d}(?!\d)", plain) and year >= 1000:
        return f"'{year % 100:02d}"
    return _find_day(plain, date, year) if date.day else ""


def _find_day(text: str, date: Date, year: int) -> str:
    words = " ".join(split_words(text))
    month = MONTHS[date.month - 1].lower()
    name = f"{month[:3]}(?:{month[3:]}|t)?" if date.month == 9 else f"{month[:3]}(?:{month[3:]})?"
    for day in (f"0?{date.day}", render_ordinal(date.day), *_DAY_WORDS[date.day - 1]):
        pattern = rf"(?<!\w)(?:{day} (?:day )?(?:of )?(?:the month of )?{name}|{name} (?:the )?{day})(?!\w)"
        if match := re.search(pattern, words):
            return match.group()
    if match := re.search(rf"(?<!\d){year}{date.month:02d}{date.day:02d}(?!\d)", text):
        return match.group()
    shapes = {
        (date.day, date.month, year % 100),
        (date.month, date.day, year % 100),
        (year % 100, date.month, date.day),
    }
    for match in _SHORT_YEAR.finditer(text):
        if (int(match[1]), int(match[3]), int(match[4])) in shapes:
            return match.group()
    return ""


def _prepare_words(words: Sequence[str]) -> list[str]:
    """Return words with ordinals of tens as tens, ``nineteen oh five`` as ``nineteen hundred five``, long runs cut."""
    numbers = [_ORDINALS.get(word, word) for word in words]
    read = [
        "hundred" if word in _NOUGHTS and place and _counts("".join(numbers[place + 1 : place + 2])) else word
        for place, word in enumerate(numbers)
    ]
    return list(_cut_runs(read)) if len(read) > _LONGEST_RUN else read


def _cut_runs(words: Sequence[str]) -> Iterator[str]:
    """Yield words with every long run of number words as overlapping short ones, an empty word after each.

    No number has so many words, and reading a run costs the square of its length.
    """
    for counts, group in groupby(words, key=lambda word: word == "and" or _counts(word)):
        run = list(group)
        if not counts or len(run) <= _LONGEST_RUN:
            yield from run
            continue
        for start in range(0, len(run), _LONGEST_RUN // 2):
            yield from run[start : start + _LONGEST_RUN]
            yield ""


@lru_cache(maxsize=4096)
def _counts(word: str) -> bool:
    return bool(find_spelled_numbers([word]))


def _read_rare_digits(text: str) -> Iterator[Decimal]:
    for whole, fraction in _COMMA.findall(text):
        yield Decimal(re.sub(r"\D", "", whole) + "." + fraction)
    for value, scale in _SCALED.findall(text):
        yield Decimal(value.replace(",", ".")) * _SCALES[scale.lower()]
    for value, power in _POWER.findall(text):
        yield Decimal(value).scaleb(int(power))
    for pattern in (_INDIAN, _MARKED, _SPACED):
        for number in pattern.findall(text):
            yield Decimal(re.sub(r"\D", "", number))
    for whole, over, under in _FRACTION.findall(text):
        yield Decimal(whole or 0) + Decimal(over) / Decimal(under)
    for number in _LETTERED.findall(text):
        yield Decimal(number.translate(_LETTERS))


def _read_word_parts(words: Sequence[str]) -> Iterator[Decimal]:
    """Yield what ``two and a half``, ``twice`` and ``three dozen`` mean."""
    for place, word in enumerate(words):
        if word not in _PARTS and word not in _TIMES:
            continue
        before = [part for part in words[max(0, place - 3) : place] if part not in ("and", "a")]
        counts = find_spelled_numbers(before[-1:]) if before else set()
        if word in _PARTS:
            yield _PARTS[word]
            yield from (count + _PARTS[word] for count in counts)
        elif word in _TIMES:
            yield Decimal(_TIMES[word])
            yield from (
                Decimal(count * _TIMES[word]) for count in find_spelled_numbers(words[max(0, place - 1) : place])
            )
