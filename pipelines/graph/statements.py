"""What the sentences of an article say of a relation: an extractor that never looks into the infobox.

In a sentence every date, number or known value of the relation is a candidate, and each cue word of the relation states
the candidate next to it. The life span in a first sentence, ``(12 May 1860 – 3 June 1920)``, states birth and death.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Literal

from pipelines.graph.prose import Sentence
from pipelines.graph.stems import EVERYWHERE, WORD, fold_word, stem_word
from pipelines.names import fold_name
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import KNOWN_UNITS, Number
from pipelines.scoring.spotting import find_dates, find_measures
from pipelines.scoring.units import compare_measures
from schemas.proofs import Answer

Likeness = Literal["same", "close", "other"]
"""``close`` neither confirms nor denies: a coarser date, a rounded number."""
Strength = Literal["stated", "near", "held"]
"""``stated``: a cue's own value. ``near``: one farther off, across a clause perhaps. ``held``: no cue at hand."""

_BREAK = re.compile(r"[;,()]|\b(?:and|but|while|whereas|who|which|where|before|after|until|since)\b", re.IGNORECASE)
_LIFE = re.compile(r"\(([^()]{1,160})\)")
_DASH = re.compile(r" ?[–—-] | ?– ?")
_BORN = re.compile(r"\b(?:born|b\.)", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|d\.)", re.IGNORECASE)
_AROUND = re.compile(
    r"\b(?:about|around|approximately|approx\.?|nearly|almost|over|under|circa|c\.|ca\.|some|roughly|more than"
    r"|less than|at least|estimated(?: at)?|early|late|mid)[ -]?$",
    re.IGNORECASE,
)
_SCALE = re.compile(r"thousand|million|billion|trillion")
_TOKEN = re.compile(r"[^\s,;:()\[\]\"“”]+")
_MAX_GAP = 120
"""Characters between a cue and what it may state."""
_STATED_GAP = 45
_BEFORE = 2
"""How much farther away a value counts that stands before its cue."""
_BREAK_COST = 40
_MAX_PHRASE = 6
_MAX_CANDIDATES = 40
"""Values read of one sentence: with more it is a table, and every cue is measured against each."""
_ROUNDED = 0.1


@dataclass(frozen=True, slots=True)
class Reading:
    """A value in a sentence, beside the answer."""

    likeness: Likeness
    strength: Strength
    text: str
    """As the sentence writes it."""
    elsewhere: bool = False
    """Whether its place in the sentence says that it is of another relation: the death in a life span."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    likeness: Likeness
    start: int
    end: int
    role: str = ""
    """``birth`` or ``death`` in a life span: then the place says what it is, whatever words stand near."""


def read_sentence(
    sentence: Sentence, answer: Answer, cues: frozenset[str], values: frozenset[str]
) -> tuple[Reading, ...]:
    """Return what a sentence says that is of the answer's type.

    Args:
        sentence: of the answer node's page.
        answer: looked for in every writing.
        cues: stems of the relation's cue words.
        values: folded, other known values of the relation, for answers that are text.
    """
    text = sentence.text
    if answer.type == "date":
        found = _list_dates(sentence, answer)
    elif answer.type == "number":
        found = _list_numbers(text, answer)
    else:
        found = _list_phrases(text, answer, values)
    candidates = list(islice(found, _MAX_CANDIDATES))
    strengths = _find_strengths(text, cues, candidates)
    readings = []
    for candidate, strength in zip(candidates, strengths, strict=True):
        if candidate.role:
            strength = "stated" if candidate.role in cues else "held"
        elsewhere = bool(candidate.role) and strength == "held"
        readings.append(Reading(candidate.likeness, strength, text[candidate.start : candidate.end], elsewhere))
    return tuple(readings)


def _list_dates(sentence: Sentence, answer: Answer) -> Iterator[_Candidate]:
    expected = parse_date(answer.value)
    spots = find_dates(sentence.text) if expected else []
    roles = _find_life(sentence, [spot.start for spot in spots]) if sentence.lead else {}
    for spot in spots:
        assert expected is not None
        likeness: Likeness = "other"
        if expected.covers(spot.value):
            likeness = "same"
        elif spot.value.covers(expected) or _AROUND.search(sentence.text[max(0, spot.start - 20) : spot.start]):
            likeness = "close"
        yield _Candidate(likeness, spot.start, spot.end, roles.get(spot.start, ""))


def _find_life(sentence: Sentence, starts: Sequence[int]) -> dict[int, str]:
    """Return by offset which dates of a lead sentence are birth and death: in its first parenthesis that holds one."""
    for life in _LIFE.finditer(sentence.text):
        inside = [start for start in starts if life.start() < start < life.end()]
        if not inside:
            continue
        dash = _DASH.search(sentence.text, life.start(), life.end())
        if dash and len(inside) == 2 and inside[0] < dash.start() < inside[1]:
            return {inside[0]: "birth", inside[1]: "death"}
        if len(inside) > 1:
            return {}
        if _DIED.search(life[1]) or (dash and dash.start() < inside[0]):
            return {inside[0]: "death"}
        return {inside[0]: "birth"} if dash or _BORN.search(life[1]) else {}
    return {}


def _list_numbers(text: str, answer: Answer) -> Iterator[_Candidate]:
    expected = Number(answer.value, answer.unit)
    spots = find_measures(text)
    for number, spot in enumerate(spots):
        likeness = _compare_numbers(expected, spot.value)
        bare = "," not in text[spot.start : spot.end]
        if likeness is None or (likeness == "other" and bare and _is_year(spot.value) and not _is_year(expected)):
            continue
        about = _AROUND.search(text[max(0, spot.start - 20) : spot.start]) or _SCALE.search(text, spot.start, spot.end)
        # The second of "320 m (1,050 ft)" converts the first; only where it agrees does it say anything.
        converted = number > 0 and text[spots[number - 1].end : spot.start].strip() == "("
        if likeness == "other" and (converted or (about and _is_rounding(expected, spot.value))):
            likeness = "close"
        yield _Candidate(likeness, spot.start, spot.end)


def _compare_numbers(expected: Number, found: Number) -> Likeness | None:
    """Return how a number compares with the answer; None where it measures something else."""
    unit = expected.unit if expected.unit in KNOWN_UNITS else ""
    if bool(unit) != bool(found.unit):
        # A number without a unit may be the value of which the infobox knows the unit, but is no other value of it.
        return "same" if unit and found.value == expected.value else None
    likeness = compare_measures(Number(expected.value, unit), found)
    if likeness == "other" and _drops_decimals(expected, found):
        return "close"
    return None if likeness == "apart" else likeness


def _is_rounding(expected: Number, found: Number) -> bool:
    """Say whether a number may be a rounding of the answer: near it, and with fewer digits that count."""
    if expected.unit != found.unit and found.unit:
        return False
    value, other = float(expected.value), float(found.value)
    rounder = len(_strip_zeros(found.value)) < len(_strip_zeros(expected.value))
    return rounder and abs(value - other) <= _ROUNDED * max(abs(value), abs(other))


def _drops_decimals(expected: Number, found: Number) -> bool:
    """Say whether a number is the answer without some of its decimals: 468 for 467.63."""
    decimals = len(found.value.partition(".")[2])
    if expected.unit != found.unit or decimals >= len(expected.value.partition(".")[2]):
        return False
    return abs(Decimal(expected.value) - Decimal(found.value)) <= Decimal("0.5").scaleb(-decimals)


def _strip_zeros(value: str) -> str:
    return value.strip("-").replace(".", "").strip("0")


def _is_year(number: Number) -> bool:
    return not number.unit and number.value.isdigit() and 1000 <= int(number.value) <= 2100


def _list_phrases(text: str, answer: Answer, values: frozenset[str]) -> Iterator[_Candidate]:
    """Yield where the answer or another known value stands, the longest phrase at each place."""
    forms = fold_forms(answer)
    starts = _list_first_words(values) | _list_first_words(forms)
    words = [(match.start(), match.end(), fold_word(match.group())) for match in _TOKEN.finditer(text)]
    done = 0
    for place, (start, _, word) in enumerate(words):
        if place < done or word.partition(" ")[0] not in starts:
            continue
        run = words[place : place + _MAX_PHRASE]
        for count in range(len(run), 0, -1):
            phrase = " ".join(part for _, _, part in run[:count])
            if phrase in forms or phrase in values:
                yield _Candidate("same" if phrase in forms else "other", start, run[count - 1][1])
                done = place + count
                break


@lru_cache(maxsize=256)
def fold_forms(answer: Answer) -> frozenset[str]:
    """Return the folded forms of an answer."""
    return frozenset(fold_name(form) for form in (answer.surface, answer.value, *answer.aliases)) - {""}


@lru_cache(maxsize=256)
def _list_first_words(phrases: frozenset[str]) -> frozenset[str]:
    return frozenset(phrase.partition(" ")[0] for phrase in phrases)


def _find_strengths(text: str, cues: frozenset[str], candidates: Sequence[_Candidate]) -> list[Strength]:
    """Return for each candidate whether a cue states it: every cue states the one that is nearest to it."""
    strengths: list[Strength] = ["held"] * len(candidates)
    free = [number for number, candidate in enumerate(candidates) if not candidate.role]
    for match in WORD.finditer(text) if free else ():
        word = fold_word(match.group())
        if word in EVERYWHERE or stem_word(word) not in cues:
            continue
        costs = [(_measure(text, match, candidates[number]), number) for number in free]
        cost, nearest = min(costs)
        if cost <= _MAX_GAP and strengths[nearest] != "stated":
            strengths[nearest] = "stated" if cost <= _STATED_GAP else "near"
    return strengths


def _measure(text: str, cue: re.Match[str], candidate: _Candidate) -> int:
    """Return how far a value is from a cue: characters between, more across a clause's end or before the cue."""
    if candidate.start >= cue.end():
        between, weight = text[cue.end() : candidate.start], 1
    elif candidate.end <= cue.start():
        between, weight = text[candidate.end : cue.start()], _BEFORE
    else:
        return _MAX_GAP + 1
    return min(len(between) * weight + _BREAK_COST * len(_BREAK.findall(between[:_MAX_GAP])), _MAX_GAP + 1)
