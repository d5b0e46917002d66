"""Typed short answers: made from infobox values, compared with given answers, and counted over attempts.

The comparer never guesses: a difference that needs knowledge of the world (another name, a numeric date of unknown
order, a rough conversion) is ``unscored`` and left to a judge. A part of the answer is not the answer, and an answer
with several candidates is incorrect (research/quality.md 1D, A1 to A4).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from pipelines.graph.values import (
    KNOWN_UNITS,
    Date,
    Likeness,
    Number,
    compare_measures,
    is_ambiguous_date,
    parse_date,
    parse_number,
    parse_number_words,
    parse_unit,
    render_date,
    render_number,
)
from pipelines.names import fold_name, is_common_word, strip_diacritics, strip_invisible
from schemas.datasets import Verdict
from schemas.proofs import Answer, AnswerType, Derivation

_DATE_TEXT = """
date year yearbuilt born birthdate died deathdate built erected constructed completed completion finished opened
open opening reopened closed founded foundation established est created made formed formation started start begun
began ended end published pub publication released release premiere premiered issued discovered discovery
described launched commissioned decommissioned introduced inaugurated incorporated dissolved demolished
destroyed first married
"""
_DATE_WORDS = frozenset(_DATE_TEXT.split())
_COUNT_TEXT = "number num no count total size population capacity pages toll quantity units by"
_COUNT_WORDS = frozenset(_COUNT_TEXT.split())
_UNIT_TAILS = frozenset(("m", "km", "km2", "cm", "mm", "ft", "mi", "sqmi", "kg", "lb", "ha"))

_HEDGE = re.compile(
    r"\b(about|around|approx|approximately|approximation|circa|ca|roughly|nearly|almost|over|under|at least|at most"
    r"|more than|less than|fewer than|up to|between|either|or|possibly|probably|perhaps|presumed|estimated?|est"
    r"|various|several|many|multiple|numerous|unknown|uncertain|undetermined|disputed|unclear|varies|tba|tbd|tbc"
    r"|n/?a|none|see|not known|et al|etc)\b|\bc\. ?\d|\bfl\. ?\d|[~≈<>≥≤±?]|\d ?\+",
    re.IGNORECASE,
)
_TITLE_HEDGES = frozenset({"over", "under", "around", "about", "many", "see"})
_LIST = re.compile(r"[;•·|\n\r\t‧∙●]| / |,|\bas well as\b")
_JOINED = re.compile(r"\b(?:and|&|\+) +[A-Z\u00c0-\u00de\d]", re.UNICODE)
_RANGE = re.compile(r"\d[^\W\d_]{0,2} ?(?:[–—−]|-| to | x | × |×|/) ?\d")
_URL = re.compile(
    r"https?:|www\.|\b[\w-]+\.(?:com|org|net|edu|gov|info|co\.\w\w|jpe?g|png|svg|gif|webp|tiff?|og[gv]|pdf)\b|@\w+\.",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[a-z\d][.!?] +[A-Z]|\b(?:is|was|are|were|has|had|have|been|which|that|because)\b")
_MARKUP = re.compile(r"\{\{|\}\}|\[\[|\]\]|</?\w+[^>]*>|'''?")
_PARTICLE_TEXT = """
of the and de van von der den da di do dos das du del della la le les el al bin ibn y e in on at to a an for und et av
af zu zum ten ter
"""
_PARTICLES = frozenset(_PARTICLE_TEXT.split())
_MAX_WORDS = 12
_FINER: dict[Derivation, tuple[str, ...]] = {"month": ("day",), "year": ("day", "month")}


def type_answer(text: str, iso: str, relation: str) -> Answer | None:
    """Return a value as a typed answer, or None unless it is a single, certain, short value.

    Refused are empty values, lists, ranges, hedges (``about``, ``c.``, ``?``), sentences, URLs and leftover markup.
    Conversions and remarks in parentheses are dropped. The caller bounds the length (:func:`count_tokens`).
    ``iso`` is the date of its markup; ``relation`` decides whether a bare year is a date and may have a
    unit (``elevation_m``).
    """
    surface = _clean_text(text)
    if surface is None or (not surface and not iso):
        return None
    date = parse_date(surface)
    if iso or (date and (date.month or date.year < 0 or is_date_key(relation))):
        return _type_date(surface, date, parse_date(iso))
    if _refuses(surface):
        return None
    number = parse_number(surface)
    if number:
        return _type_number(surface, number, relation)
    if re.fullmatch(r"(?:the )?\d{3,4}['’]?s(?: BC)?", surface):
        return None
    # A date or a quantity that did not parse (spring 1931, 6 ft 2 in) is not a name.
    if any(char.isdigit() for char in surface) and (
        is_date_key(relation) or re.match(r"[-+$€£¥]?\d[\d.,]*(?: [^A-Z]|$)", surface)
    ):
        return None
    return _type_text(surface)


_ASKS_WHEN = re.compile(r"\b(?:when|(?:what|which) (?:year|date|day|month))\b", re.IGNORECASE)


def type_reference(question: str, text: str, aliases: Iterable[str] = ()) -> Answer | None:
    """Return an answer from outside as a typed one, with ``aliases`` as further accepted forms; else None."""
    answer = type_answer(text, "", "date" if _ASKS_WHEN.search(question) else "")
    if answer is None:
        return None
    given = (" ".join(strip_invisible(alias).split()) for alias in aliases)
    forms = dict.fromkeys((*answer.aliases, *given))
    return answer.model_copy(update={"aliases": tuple(form for form in forms if form and form != answer.surface)})


def count_tokens(text: str) -> int:
    """Return the number of white-space separated tokens (published bound: six)."""
    return len(text.split())


def make_answer(surface: str, value: Date | Number) -> Answer:
    """Return the typed answer of a date or a number; all renderings but the surface are aliases."""
    if isinstance(value, Date):
        aliases = tuple(form for form in render_date(value) if form != surface)
        return Answer(type="date", value=value.iso, precision=value.precision, unit="", surface=surface,
                      aliases=aliases, key=f"date:{value.iso}")  # fmt: skip
    aliases = tuple(form for form in render_number(value) if form != surface)
    key = f"number:{value.value} {value.unit}".rstrip()
    return Answer(type="number", value=value.value, precision="", unit=value.unit, surface=surface, aliases=aliases,
                  key=key)  # fmt: skip


def derive_answer(answer: Answer, derivation: Derivation) -> Answer | None:
    """Return the month and year, or the year, of a finer date."""
    if not derivation:
        return answer
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is None or date.precision not in _FINER[derivation]:
        return None
    coarse = Date(date.year, date.month if derivation == "month" else 0)
    return make_answer(render_date(coarse)[0], coarse)


def _clean_text(text: str) -> str | None:
    text = unicodedata.normalize("NFC", strip_invisible(text)).strip()
    text = re.sub(r"\[(?:\d+|[a-z]|note \d+|citation needed)\]", "", text)
    if _MARKUP.search(text) or "O.S." in text:
        return None
    outside = re.sub(r"\s*\([^()]*\)", "", re.sub(r"\s*\([^()]*\)", "", text)).strip()
    if "(" in outside or ")" in outside or (text and not outside):
        return None
    outside = re.sub(r"[^\S\n\r\t]+", " ", outside)
    for opening, closing in ('""', "“”", "«»", "„“"):
        if len(outside) > 2 and outside[0] == opening and outside[-1] == closing:
            outside = outside[1:-1].strip()
    return outside


def is_date_key(relation: str) -> bool:
    """Say whether an infobox key is about a date: ``opened``, ``established_date1``, but not ``number_built``."""
    words = set(re.findall(r"[a-z]+", relation.lower()))
    if any(word.endswith(("year", "date")) for word in words):
        return True
    return bool(words & _DATE_WORDS) and not words & _COUNT_WORDS


def _refuses(surface: str) -> bool:
    if _LIST.search(re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", surface)) or _JOINED.search(surface):
        return True
    if _RANGE.search(surface) or _URL.search(surface) or _SENTENCE.search(surface):
        return True
    if len(surface.split()) > _MAX_WORDS or (surface.endswith(".") and len(surface.split()) > 3):
        return True
    hedge = _HEDGE.search(surface)
    # Inside a capitalised title (Bridge over the Kelm) the word belongs to the name; at its start it may hedge.
    return hedge is not None and not (
        hedge.group().lower() in _TITLE_HEDGES and hedge.start() > 0 and _is_name(surface, hedge.group())
    )


def _type_date(surface: str, date: Date | None, marked: Date | None) -> Answer | None:
    if date is None and surface:
        return None
    known = [value for value in (date, marked) if value is not None]
    if not known or (date and marked and not (date.covers(marked) or marked.covers(date))):
        return None
    finest = max(known, key=lambda value: (value.month > 0) + (value.day > 0))
    shown = surface if finest == date and surface != finest.iso else render_date(finest)[0]
    return make_answer(shown, finest)


def _type_number(surface: str, number: Number, relation: str) -> Answer:
    # area_sq_mi has two words for one unit.
    key, _, tail = re.sub(r"_sq_?km$", "_km2", re.sub(r"_sq_mi$", "_sqmi", relation.lower())).rpartition("_")
    # population_density_km2 is not an area.
    if not number.unit and tail in _UNIT_TAILS and not re.search(r"density|per\b|rate\b", key):
        unit = parse_unit(tail) or ""
        number, surface = Number(number.value, unit), f"{surface} {unit}"
    return make_answer(surface, number)


def _type_text(surface: str) -> Answer | None:
    if not any(char.isalnum() for char in surface):
        return None
    bare = " ".join(strip_diacritics(surface).split())
    return Answer(
        type="name" if _is_name(surface) else "string",
        value=surface,
        precision="",
        unit="",
        surface=surface,
        aliases=(bare,) if bare not in (surface, "") else (),
        key=f"text:{fold_name(surface)}",
    )


def _is_name(surface: str, spared: str = "") -> bool:
    words = [word for word in re.split(r"[\s-]+", surface) if word and word not in _PARTICLES and word != spared]
    return bool(words) and all(any(char.isupper() for char in word) or not word[0].isalpha() for word in words)


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
"""Dots must separate thousands here: no number has two decimal points."""
_SWAPPED = str.maketrans(".,", ",.")
_BY_LIKENESS: dict[Likeness, Verdict] = {
    "same": "correct", "close": "unscored", "other": "incorrect", "apart": "unscored",
}  # fmt: skip
LONGEST_ANSWER = 300
"""Characters; longer answers are not decided."""
_LIKE = 0.8
"""Similarity of folded names from which a misspelling is possible, so the comparer does not decide."""


def covers_date(coarse: Answer, fine: Answer) -> bool:
    """Say whether one answer is a date, and another one is that date or one within it."""
    outer, inner = parse_date(coarse.value), parse_date(fine.value)
    return fine.type == "date" and outer is not None and inner is not None and outer.covers(inner)


def compare_answers(given: str, reference: Answer) -> Verdict:
    """Compare a short answer with a reference: ``correct``, ``incorrect``, or ``unscored`` when undecided.

    Value, surface and aliases of the reference are right. Dates match by value and precision, numbers by value and unit
    (which may be missing; a conversion must be right to half a unit of its last place and to 0.5%), text by its folded
    form.
    """
    bare, given = given.strip(), _clean_given(given)
    accepted = (reference.surface, reference.value, *reference.aliases)
    literal = reference.type in ("date", "number")
    # Cleaning removes the last dot of "U.S.", so the bare text is compared too.
    writings = dict.fromkeys((given, bare))
    if given and any(_equals(writing, form, literal) for form in accepted if form for writing in writings):
        return "correct"
    if not given or fold_name(given) in _NO_ANSWER:
        return "incorrect"
    if len(given) > LONGEST_ANSWER:
        return "unscored"
    return _COMPARERS[reference.type](given, reference)


def is_no_answer(given: str) -> bool:
    """Say whether a reply is empty or declines to answer."""
    given = _clean_given(given)
    return not given or fold_name(given) in _NO_ANSWER


def is_hedged(given: str, reference: Answer) -> bool:
    """Say whether an answer hedges or lists candidates in words that no accepted form contains."""
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
        # The reference cannot decide the day of a finer date.
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
    found = parse_number(text.translate(_SWAPPED))
    return found is not None and found.value == expected.value and found.unit in ("", expected.unit)


def _drop_conversion(given: str) -> str:
    match = re.fullmatch(r"([^()]+) \(([^()]+)\)", given)
    return match[1] if match and parse_number(match[2]) else given


def _compare_names(given: str, reference: Answer) -> Verdict:
    if is_hedged(given, reference):
        return "incorrect"
    folded = fold_name(given)
    forms = [fold_name(form) for form in (reference.surface, reference.value, *reference.aliases) if form]
    return "unscored" if any(_may_be_same(folded, form) for form in forms) else "incorrect"


def _compare_strings(given: str, reference: Answer) -> Verdict:
    if is_hedged(given, reference):
        return "incorrect"
    numeral = parse_date(given) is not None or parse_number(given) is not None
    return "incorrect" if numeral and not _find_numerals(reference.value) else "unscored"


def _may_be_same(first: str, second: str) -> bool:
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
    # USA for United States: an acronym may have one more word.
    return letters in initials or any(len(form) > 1 and letters[:-1] == form for form in initials)


_COMPARERS: dict[str, Callable[[str, Answer], Verdict]] = {
    "date": _compare_dates,
    "number": _compare_numbers,
    "name": _compare_names,
    "string": _compare_strings,
}


COMPARED = 32
"""Distinct dates or numbers that are compared by value; further ones only by their words."""
_READERS = {"date": parse_date, "number": parse_number}
_REPEATS_NUMERALS = re.compile(r"-?\d+(?:[.,:/]\d+)*")
_DASHES = str.maketrans("\u2212\u2013", "--")


@dataclass(frozen=True, slots=True)
class Repeat:
    """An answer as first written, and its number of attempts."""

    text: str
    times: int


def find_repeats(given: Iterable[str], answer_type: AnswerType) -> tuple[Repeat, ...]:
    """Return the answers that were given more than once, the most frequent first, then in the order given.

    Two answers are the same when they fold alike with the same numerals. Dates and numbers are also the same when the
    comparer accepts one for the other: ``12 May 1900`` is ``May 12, 1900``, and ``2 km`` is ``2000 m``.
    """
    counts: Counter[str] = Counter()
    same: dict[str, str] = {}
    shown: dict[str, str] = {}
    known: dict[str, Answer] = {}
    for text in given:
        words = _fold_words(text)
        if words not in same:
            value = _READERS[answer_type](text) if answer_type in _READERS else None
            reading = None if value is None else make_answer(text, value)
            same[words] = next((own for own, other in known.items() if _are_same(text, reading, other)), words)
            shown.setdefault(same[words], text)
            if reading is not None and same[words] == words and len(known) < COMPARED:
                known[words] = reading
        counts[same[words]] += 1
    return tuple(Repeat(shown[words], times) for words, times in counts.most_common() if times > 1)


def _fold_words(text: str) -> str:
    numerals = " ".join(_REPEATS_NUMERALS.findall(text.translate(_DASHES)))
    return f"{fold_name(text).removeprefix('the ') or text.strip()}\n{numerals}"


def _are_same(text: str, reading: Answer | None, other: Answer) -> bool:
    if compare_answers(text, other) == "correct":
        return True
    return reading is not None and compare_answers(other.surface, reading) == "correct"
