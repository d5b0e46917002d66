"""Is a given answer the reference answer? Decided by type, on the whole answer, or not decided at all.

The comparer never guesses: what needs knowledge of the world (another name of the same thing, a numeric date of unknown
order, a rough conversion) is ``unscored`` and left to a judge. A part of the answer never counts as the
answer, and an answer that names several candidates is incorrect even when one of them is right.
"""

import re
from collections.abc import Callable
from difflib import SequenceMatcher

from pipelines.names import fold_name, is_common_word, strip_invisible
from pipelines.scoring.dates import is_ambiguous_date, parse_date
from pipelines.scoring.numbers import KNOWN_UNITS, Number, parse_number, parse_number_words
from pipelines.scoring.units import Likeness, compare_measures
from schemas.proofs import Answer
from schemas.trajectories import Verdict

_NO_ANSWER = frozenset(
    fold_name(text)
    for text in (
        "unknown", "not known", "n/a", "na", "none", "no answer", "i don't know", "i do not know", "don't know",
        "not sure", "unsure", "cannot determine", "cannot be determined", "can't tell", "unanswerable", "undetermined",
        "not available", "not found", "not specified", "i am not sure", "i'm not sure", "it is unknown", "idk",
    )
)  # fmt: skip
_HEDGES = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|probably|presumably|likely|around|approximately|approx|circa|roughly|nearly"
    r"|almost|about|between|at least|at most|more than|less than|up to|i think|i believe|i guess|could be|might be|not)"
    r"\b|\bc(?:a)?\. ?\d|[?~≈±]",
    re.IGNORECASE,
)
_LISTS = re.compile(r"[;|\n•·]|\band\b|&| / |(?<=\w)/(?=\w)", re.IGNORECASE)
_RANGES = re.compile(r"\d[^\W\d_]{0,2} ?(?:–|—|-| to ) ?\d")
_DATE_RANGES = re.compile(r"(?<![\d-])\d{1,4} ?(?:–|—|-| to ) ?\d{1,4}(?![\d-])")
_NUMERALS = re.compile(r"(?:(?<![\w.])[-\u2212\u2013])?\d+(?:[.,:/]\d+)*")
_DATE_LEAD = re.compile(
    r"^(?:(?:on|in) )?(?:the )?(?:year )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:the (?=\d))?",
    re.IGNORECASE,
)
_MONTH_YEAR = re.compile(r"(0?[1-9]|1[0-2])/(\d{4})")
_SHORT_YEAR = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2}")
_MINUS = re.compile(r"^(?:minus|negative) (?=\d)", re.IGNORECASE)
_DOTTED = re.compile(r"-?\d{1,3}(?:\.\d{3}){2,}(?![\d.,])")
"""Thousands set apart by dots, beyond doubt: no number has two decimal points."""
_SWAPPED = str.maketrans(".,", ",.")
_BY_LIKENESS: dict[Likeness, Verdict] = {
    "same": "correct", "close": "unscored", "other": "incorrect", "apart": "unscored",
}  # fmt: skip
LONGEST_ANSWER = 300
"""Characters; what is longer is no short answer, and is not decided."""
_LIKE = 0.8
"""Similarity of folded names from which a slip of spelling is possible, and the comparer does not decide."""


def compare_answers(given: str, reference: Answer) -> Verdict:
    """Return whether a short answer is the reference: ``correct``, ``incorrect``, or ``unscored`` when undecided.

    Any one of the reference's value, surface and aliases is right. Dates match by value and precision, numbers by value
    and unit (a missing unit is forgiven, a conversion must be right to half a unit of its last place and to 0.5%), text
    by its folded form.
    """
    bare, given = given.strip(), _clean_given(given)
    accepted = (reference.surface, reference.value, *reference.aliases)
    literal = reference.type in ("date", "number")
    # "U.S." loses its last dot in cleaning, and is then not the acronym that it was.
    writings = dict.fromkeys((given, bare))
    if given and any(_equals(writing, form, literal) for form in accepted if form for writing in writings):
        return "correct"
    if not given or fold_name(given) in _NO_ANSWER:
        return "incorrect"
    if len(given) > LONGEST_ANSWER:
        return "unscored"
    return _COMPARERS[reference.type](given, reference)


def is_no_answer(given: str) -> bool:
    """Say whether a reply is empty or says that it has no answer."""
    given = _clean_given(given)
    return not given or fold_name(given) in _NO_ANSWER


def is_hedged(given: str, reference: Answer) -> bool:
    """Say whether an answer hedges or names several candidates in words that no accepted form contains itself."""
    own = set().union(*map(_find_hedges, (reference.surface, reference.value, *reference.aliases)))
    return not _find_hedges(given) <= own


def _find_hedges(text: str) -> set[str]:
    return {match.group().lower().strip() for match in (*_HEDGES.finditer(text), *_LISTS.finditer(text))}


def _clean_given(given: str) -> str:
    given = strip_invisible(given).strip()
    if "\n" not in given:
        given = " ".join(given.split())
    while len(given) > 2 and (given[0] + given[-1]) in ('""', "''", "“”", "‘’", "**", "``"):
        given = given[1:-1].strip()
    return given[:-1].rstrip() if given.endswith((".", "!")) and not given.endswith("..") else given


def _equals(given: str, form: str, literal: bool) -> bool:
    """Compare a given answer with one accepted form.

    Folding drops signs and decimal points, so folded texts are equal only where their numerals are; and it takes a
    micro sign for an m, so dates and numbers are compared unfolded here and by value later.
    """
    if given == form:
        return True
    if literal or _find_numerals(given) != _find_numerals(form):
        return False
    return _fold_answer(given) == _fold_answer(form)


def _fold_answer(text: str) -> str:
    folded = fold_name(text)
    return folded.removeprefix("the ") if len(folded) > 6 else folded


def _find_numerals(text: str) -> list[str]:
    return [numeral.replace("\u2212", "-").replace("\u2013", "-") for numeral in _NUMERALS.findall(text)]


def _compare_dates(given: str, reference: Answer) -> Verdict:
    expected = parse_date(reference.value)
    found = parse_date(_clean_date(given))
    if expected is None:
        return "unscored"
    if found is not None:
        if found == expected:
            return "correct"
        # A finer date within the asked year may still be wrong in its day, which the reference cannot tell.
        return "unscored" if expected.covers(found) else "incorrect"
    if is_ambiguous_date(_clean_date(given)) or _SHORT_YEAR.fullmatch(given):
        return "unscored"
    if is_hedged(given, reference) or _DATE_RANGES.search(given):
        return "incorrect"
    years = re.findall(r"(?<!\d)\d{3,4}(?!\d)", given)
    if not any(char.isdigit() for char in given) or (years and str(abs(expected.year)) not in years):
        return "incorrect"
    return "unscored"


def _clean_date(given: str) -> str:
    """Drop ``on``, ``in``, ``the year`` and a weekday, and the dots and blanks that other languages set."""
    bare = _DATE_LEAD.sub("", given)
    bare = re.sub(r"(?<=\d)\. (?=\d)", ".", bare)
    bare = re.sub(r"(?<=\d)\. ?(?=[^\W\d])", " ", bare)
    month = _MONTH_YEAR.fullmatch(bare)
    return f"{month[2]}-{int(month[1]):02d}" if month else bare


def _compare_numbers(given: str, reference: Answer) -> Verdict:
    expected = Number(reference.value, reference.unit)
    verdict = _compare_number(_drop_conversion(given), expected)
    if verdict is not None:
        return verdict
    if is_hedged(given, reference) or _RANGES.search(given):
        return "incorrect"
    return "unscored" if any(char.isdigit() for char in given) or " " in given else "incorrect"


def _compare_number(text: str, expected: Number) -> Verdict | None:
    """Return how a text compares with a number; None where it is none."""
    text = _MINUS.sub("-", text)
    found = parse_number(text) or parse_number_words(text)
    if found is None:
        grouped = parse_number(text.replace(".", ",")) if _DOTTED.match(text) else None
        return None if grouped is None else _compare_number(text.replace(".", ","), expected)
    same = found.value == expected.value
    if not same and _is_other_grouping(text, expected):
        return "unscored"
    if found.unit == expected.unit or not found.unit:
        return "correct" if same else "incorrect"
    if not expected.unit and found.unit not in KNOWN_UNITS:
        return "correct" if same else "incorrect"
    return _BY_LIKENESS[compare_measures(found, expected)]


def _is_other_grouping(text: str, expected: Number) -> bool:
    """Say whether a number is the reference once dot and comma change places: 1.204 is 1204 in half of the world."""
    found = parse_number(text.translate(_SWAPPED))
    return found is not None and found.value == expected.value and found.unit in ("", expected.unit)


def _drop_conversion(given: str) -> str:
    """Drop a conversion in parentheses (``18 m (59 ft)``), but no other remark: it may take the answer back."""
    match = re.fullmatch(r"([^()]+) \(([^()]+)\)", given)
    return match[1] if match and parse_number(match[2]) else given


def _compare_names(given: str, reference: Answer) -> Verdict:
    if is_hedged(given, reference):
        return "incorrect"
    folded = fold_name(given)
    forms = [fold_name(form) for form in (reference.surface, reference.value, *reference.aliases) if form]
    return "unscored" if any(_may_be_same(folded, form) for form in forms) else "incorrect"


def _compare_strings(given: str, reference: Answer) -> Verdict:
    """Leave every other wording to the judge: two common nouns may mean the same and share no letter."""
    if is_hedged(given, reference):
        return "incorrect"
    numeral = parse_date(given) is not None or parse_number(given) is not None
    return "incorrect" if numeral and not _find_numerals(reference.value) else "unscored"


def _may_be_same(first: str, second: str) -> bool:
    """Say whether two unequal names share a word, are initials of one another, or are spelled nearly alike."""
    words, others = first.split(), second.split()
    if {word for word in words if len(word) > 2} & {word for word in others if len(word) > 2}:
        return True
    if _abbreviates(words, others) or _abbreviates(others, words):
        return True
    if not first.isascii() or not second.isascii():
        return True
    return SequenceMatcher(None, first, second, autojunk=False).ratio() >= _LIKE


def _abbreviates(short: list[str], long: list[str]) -> bool:
    letters = "".join(short)
    weighty = [word for word in long if len(word) > 3 or not is_common_word(word)]
    initials = {"".join(word[0] for word in words) for words in (long, weighty)}
    if len(long) < 2 or len(letters) < 2:
        return False
    # USA for United States: an acronym may count a word more than the name says.
    return letters in initials or any(len(form) > 1 and letters[:-1] == form for form in initials)


_COMPARERS: dict[str, Callable[[str, Answer], Verdict]] = {
    "date": _compare_dates,
    "number": _compare_numbers,
    "name": _compare_names,
    "string": _compare_strings,
}
