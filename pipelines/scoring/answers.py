"""From a cleaned infobox value to a typed short answer (research/quality.md 1D, rules A1 to A4)."""

import re
import unicodedata

from pipelines.names import fold_name, strip_diacritics, strip_invisible
from pipelines.scoring.dates import Date, parse_date, render_date
from pipelines.scoring.numbers import Number, parse_number, parse_unit, render_number
from schemas.proofs import Answer, Derivation

_DATE_TEXT = """
date year yearbuilt born birthdate died deathdate built erected constructed completed completion finished opened
open opening reopened closed founded foundation established est created made formed formation started start begun
began ended end published pub publication released release premiere premiered issued discovered discovery
described launched commissioned decommissioned introduced inaugurated incorporated dissolved demolished
destroyed first married
"""
_DATE_WORDS = frozenset(_DATE_TEXT.split())
_COUNT_WORDS = frozenset(
    (
        "number",
        "num",
        "no",
        "count",
        "total",
        "size",
        "population",
        "capacity",
        "pages",
        "toll",
        "quantity",
        "units",
        "by",
    )
)
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
    """Return a value as a typed answer, or None when it is no single, certain, short value.

    Refused are empty values, lists, ranges, hedges (``about``, ``c.``, ``?``), sentences, URLs and leftover markup.
    Conversions and remarks in parentheses are dropped. The bound on tokens is the caller's, see :func:`count_tokens`.

    Args:
        text: the value, cleaned of markup.
        iso: the date its markup gives (``1931-04-05``, ``1931-04`` or ``1931``), or empty.
        relation: the infobox key. It decides whether a bare year is a date (``opened``) and may carry a unit
            (``elevation_m``).
    """
    surface = _clean_text(text)
    if surface is None or (not surface and not iso):
        return None
    date = parse_date(surface)
    if iso or (date and (date.month or date.year < 0 or _dates(relation))):
        return _type_date(surface, date, parse_date(iso))
    if _refuses(surface):
        return None
    number = parse_number(surface)
    if number:
        return _type_number(surface, number, relation)
    if re.fullmatch(r"(?:the )?\d{3,4}['’]?s(?: BC)?", surface):
        return None
    # A date that did not parse (19th century, spring 1931) or a quantity that did not (6 ft 2 in) is no name.
    if any(char.isdigit() for char in surface) and (
        _dates(relation) or re.match(r"[-+$€£¥]?\d[\d.,]*(?: [^A-Z]|$)", surface)
    ):
        return None
    return _type_text(surface)


def count_tokens(text: str) -> int:
    """Return the number of white-space separated tokens, the unit of the published bound of six."""
    return len(text.split())


def make_answer(surface: str, value: Date | Number) -> Answer:
    """Return the typed answer for a date or a number, with every rendering but the surface as alias."""
    if isinstance(value, Date):
        aliases = tuple(form for form in render_date(value) if form != surface)
        return Answer(type="date", value=value.iso, precision=value.precision, unit="", surface=surface,
                      aliases=aliases, key=f"date:{value.iso}")  # fmt: skip
    aliases = tuple(form for form in render_number(value) if form != surface)
    key = f"number:{value.value} {value.unit}".rstrip()
    return Answer(type="number", value=value.value, precision="", unit=value.unit, surface=surface, aliases=aliases,
                  key=key)  # fmt: skip


def derive_answer(answer: Answer, derivation: Derivation) -> Answer | None:
    """Return what is asked of a fact instead of all of it: the month and year, or the year, of a fuller date.

    Returns:
        The answer itself for no derivation; None for what is no date, or no finer than what would be left of it.
    """
    if not derivation:
        return answer
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is None or date.precision not in _FINER[derivation]:
        return None
    coarse = Date(date.year, date.month if derivation == "month" else 0)
    return make_answer(render_date(coarse)[0], coarse)


def _clean_text(text: str) -> str | None:
    """Return the text without footnote marks and parentheses, or None when it holds markup or unpaired parentheses."""
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


def _dates(relation: str) -> bool:
    """Say whether an infobox key asks for a date: ``opened``, ``established_date1``, but not ``number_built``."""
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
    # Inside a capitalised title such as Bridge over the Kelm the word belongs to the name; at its start it may hedge.
    return hedge is not None and not (
        hedge.group().lower() in _TITLE_HEDGES and hedge.start() > 0 and _is_name(surface, hedge.group())
    )


def _type_date(surface: str, date: Date | None, marked: Date | None) -> Answer | None:
    """Return the finer of the date in the text and the date in the markup; None when they contradict each other."""
    if date is None and surface:
        return None
    known = [value for value in (date, marked) if value is not None]
    if not known or (date and marked and not (date.covers(marked) or marked.covers(date))):
        return None
    finest = max(known, key=lambda value: (value.month > 0) + (value.day > 0))
    shown = surface if finest == date and surface != finest.iso else render_date(finest)[0]
    return make_answer(shown, finest)


def _type_number(surface: str, number: Number, relation: str) -> Answer:
    # area_sq_mi is written with two words for one unit.
    key, _, tail = re.sub(r"_sq_?km$", "_km2", re.sub(r"_sq_mi$", "_sqmi", relation.lower())).rpartition("_")
    # population_density_km2 counts people in each square kilometre, not square kilometres.
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
    """Say whether every word but the particles starts with a capital or a digit, or holds a capital (``iPhone``)."""
    words = [word for word in re.split(r"[\s-]+", surface) if word and word not in _PARTICLES and word != spared]
    return bool(words) and all(any(char.isupper() for char in word) or not word[0].isalpha() for word in words)
