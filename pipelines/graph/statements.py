"""What the sentences of an article state, and which entities may fit a node by facts that their infoboxes lack.

Every date, number or known value in a sentence is a candidate; a cue word of the relation states the nearest one. The
life span of a first sentence states birth and death.

A rival (research/quality.md U2) may fit a node: no fact excludes it, and some are open. Rivals are searched among
articles that link to the previous entity, or have one of its names in a passage of the search index or in an unlinked
value of the field. Pronouns, descriptions, names under three letters and names only in other templates are missed. A
field with other values is taken as complete, unless its relation often has several. Lists and disambiguation pages are
excluded.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Literal

from pipelines.corpus.store import Corpus
from pipelines.corpus.templates import render_value
from pipelines.corpus.wikitext import find_sentence, plain_text
from pipelines.graph.cues import EVERYWHERE, WORD, fold_word, stem_word
from pipelines.graph.facts import Match, Wanted, fold_names, holds_phrase, list_periods, read_wanted
from pipelines.graph.prose import Sentence, list_prose, show_sentence
from pipelines.graph.query import (
    TYPE,
    Indexes,
    Query,
    Side,
    follow_chain,
    is_of_other_domain,
    list_constraints_of,
    match_constraint,
    match_relation,
)
from pipelines.graph.values import (
    KNOWN_UNITS,
    Date,
    Number,
    compare_measures,
    find_dates,
    find_measures,
    parse_date,
    read_step,
    render_date,
)
from pipelines.names import fold_name
from schemas.proofs import Answer, Constraint, Resolution

Likeness = Literal["same", "close", "other"]
"""``close`` neither confirms nor denies: a coarser date, a rounded number."""
Strength = Literal["stated", "near", "held"]
"""``stated``: next to a cue. ``near``: farther off, perhaps in another clause. ``held``: without a cue."""

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
"""Characters between a cue and its value, at most."""
_STATED_GAP = 45
_BEFORE = 2
"""Factor on the distance of a value before its cue."""
_BREAK_COST = 40
_MAX_PHRASE = 6
_MAX_CANDIDATES = 40
"""Values read per sentence; a sentence with more is a table."""
_ROUNDED = 0.1
_ROUNDED_ALIKE = Decimal("0.005")
"""Share of a number by which a rounding of it may differ and still say the same, as between systems of units."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A value in a sentence, beside the answer."""

    likeness: Likeness
    strength: Strength
    text: str
    """As in the sentence."""
    role: str = ""
    """``birth`` or ``death`` in a life span."""

    @property
    def elsewhere(self) -> bool:
        """Whether its place shows another relation: the death in a life span."""
        return bool(self.role) and self.strength == "held"


@dataclass(frozen=True, slots=True)
class _Mention:
    likeness: Likeness
    start: int
    end: int
    role: str = ""
    """``birth`` or ``death`` in a life span, which cues do not change."""


def read_sentence(
    sentence: Sentence, answer: Answer, cues: frozenset[str], values: frozenset[str]
) -> tuple[Statement, ...]:
    """Return the values of a sentence that have the answer's type."""
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
        shown = text[candidate.start : candidate.end]
        readings.append(Statement(candidate.likeness, strength, shown, candidate.role))
    return tuple(readings)


def _list_dates(sentence: Sentence, answer: Answer) -> Iterator[_Mention]:
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
        yield _Mention(likeness, spot.start, spot.end, roles.get(spot.start, ""))


def _find_life(sentence: Sentence, starts: Sequence[int]) -> dict[int, str]:
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


def _list_numbers(text: str, answer: Answer) -> Iterator[_Mention]:
    expected = Number(answer.value, answer.unit)
    spots = find_measures(text)
    for number, spot in enumerate(spots):
        likeness = _compare_numbers(expected, spot.value)
        bare = "," not in text[spot.start : spot.end]
        if likeness is None or (likeness == "other" and bare and _is_year(spot.value) and not _is_year(expected)):
            continue
        about = _AROUND.search(text[max(0, spot.start - 20) : spot.start]) or _SCALE.search(text, spot.start, spot.end)
        # The second of "320 m (1,050 ft)" converts the first, so it cannot deny the answer.
        converted = number > 0 and text[spots[number - 1].end : spot.start].strip() == "("
        if likeness == "other" and (converted or (about and _is_rounding(expected, spot.value))):
            likeness = "close"
        yield _Mention(likeness, spot.start, spot.end)


def _compare_numbers(expected: Number, found: Number) -> Likeness | None:
    unit = expected.unit if expected.unit in KNOWN_UNITS else ""
    if bool(unit) != bool(found.unit):
        # A number without a unit may be the value of a field with a unit, but does not deny it.
        return "same" if unit and found.value == expected.value else None
    likeness = compare_measures(Number(expected.value, unit), found)
    if likeness == "other" and expected.unit == found.unit:
        likeness = _compare_rounded(Decimal(expected.value), Decimal(found.value))
    if likeness == "other" and _drops_decimals(expected, found):
        return "close"
    return None if likeness == "apart" else likeness


def _compare_rounded(expected: Decimal, found: Decimal) -> Likeness:
    steps = [read_step(value) for value in (expected, found)]
    gap = abs(expected - found)
    if steps[0] == steps[1] or gap >= max(steps):
        return "other"
    return "same" if gap <= _ROUNDED_ALIKE * abs(expected) else "other"


def _is_rounding(expected: Number, found: Number) -> bool:
    if expected.unit != found.unit and found.unit:
        return False
    value, other = float(expected.value), float(found.value)
    rounder = len(_strip_zeros(found.value)) < len(_strip_zeros(expected.value))
    return rounder and abs(value - other) <= _ROUNDED * max(abs(value), abs(other))


def _drops_decimals(expected: Number, found: Number) -> bool:
    decimals = len(found.value.partition(".")[2])
    if expected.unit != found.unit or decimals >= len(expected.value.partition(".")[2]):
        return False
    return abs(Decimal(expected.value) - Decimal(found.value)) <= Decimal("0.5").scaleb(-decimals)


def _strip_zeros(value: str) -> str:
    return value.strip("-").replace(".", "").strip("0")


def _is_year(number: Number) -> bool:
    return not number.unit and number.value.isdigit() and 1000 <= int(number.value) <= 2100


def _list_phrases(text: str, answer: Answer, values: frozenset[str]) -> Iterator[_Mention]:
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
                # "Democratic" may be the beginning of "Democratic Union": a part of the answer denies nothing.
                part = any(holds_phrase(form, phrase) for form in forms)
                yield _Mention("same" if phrase in forms else "close" if part else "other", start, run[count - 1][1])
                done = place + count
                break


@lru_cache(maxsize=256)
def fold_forms(answer: Answer) -> frozenset[str]:
    """Return the folded forms of an answer."""
    return frozenset(fold_name(form) for form in (answer.surface, answer.value, *answer.aliases)) - {""}


@lru_cache(maxsize=256)
def _list_first_words(phrases: frozenset[str]) -> frozenset[str]:
    return frozenset(phrase.partition(" ")[0] for phrase in phrases)


def _find_strengths(text: str, cues: frozenset[str], candidates: Sequence[_Mention]) -> list[Strength]:
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


def _measure(text: str, cue: re.Match[str], candidate: _Mention) -> int:
    if candidate.start >= cue.end():
        between, weight = text[cue.end() : candidate.start], 1
    elif candidate.end <= cue.start():
        between, weight = text[candidate.end : cue.start()], _BEFORE
    else:
        return _MAX_GAP + 1
    return min(len(between) * weight + _BREAK_COST * len(_BREAK.findall(between[:_MAX_GAP])), _MAX_GAP + 1)


KEPT_PAGES = 1024
KEPT_FORMS = 1 << 14
LEAST_STEM = 4
"""Characters at the start of a word that must be equal."""
ENDING = 2
"""Characters at the end of a word that may differ: ``granite`` finds ``granitic``."""
MAX_TEMPLATES = 1000
"""Small templates rendered per page."""
_SMALL = re.compile(r"\{\{\s*(?!cit|sfn|harv|main|see|short|use |coord)[^{}\[\]]{1,200}\}\}", re.IGNORECASE)
"""Templates without links or templates inside, such as dates and measures; no references and notes."""
_SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")
_SPELLED = {".": "p", ",": "c"}
_ORDINALS = {
    11: "eleventh", 12: "twelfth", 13: "thirteenth", 14: "fourteenth", 15: "fifteenth", 16: "sixteenth",
    17: "seventeenth", 18: "eighteenth", 19: "nineteenth", 20: "twentieth", 21: "twenty first",
}  # fmt: skip
_NEVER = r"(?!)"


@dataclass(frozen=True, slots=True)
class Forms:
    """Patterns of a value over folded text."""

    exact: re.Pattern[str]
    """Forms that always mention the value."""
    coarse: re.Pattern[str]
    """Forms that mention it only beside a cue: the century of a date."""


def find_object(ground: Indexes, node: int, relation: str, object: int) -> Resolution:
    """Return whether an article states a relation to an entity, by link or name."""
    linked = ground.corpus.graph.find_link(node, object)
    if linked >= 0:
        text = ground.corpus.text(node)
        start, end = find_sentence(text, linked)
        if ground.cues.states(relation, show_sentence(text[start:end])):
            return "stated"
    found = _find_forms(ground, node, relation, _compile_names(fold_names(ground.corpus, object)))
    return "unclear" if linked >= 0 and found == "absent" else found


def find_literal(ground: Indexes, node: int, relation: str, value: str) -> Resolution:
    """Return whether an article states a literal value in any form; a date also by its year."""
    return _find_forms(ground, node, relation, _compile_value(relation, value))


@lru_cache(maxsize=KEPT_PAGES)
def show_page(corpus: Corpus, node: int) -> str:
    """Return everything that an article shows: prose, lists and tables, small templates, infobox."""
    sentences = " ; ".join(sentence.text for sentence in list_prose(corpus, node))
    text = corpus.text(node)
    shown = " ; ".join(f"{fact.text} ; {fact.iso}" for fact in corpus.facts(node) if not fact.statement)
    return f"{sentences} ; {plain_text(text)} ; {' ; '.join(_render_small(text))} ; {shown}"


def _render_small(text: str) -> Iterator[str]:
    for found in islice(_SMALL.finditer(text), MAX_TEMPLATES) if "{{" in text else ():
        rendered = render_value(found.group())
        if rendered is not None and rendered.text:
            yield rendered.text


@lru_cache(maxsize=KEPT_PAGES)
def fold_page(corpus: Corpus, node: int) -> str:
    """Return :func:`show_page`, folded."""
    return fold_text(show_page(corpus, node))


def fold_text(text: str) -> str:
    """Fold a text and keep numbers whole: folding alone would split 1204.50."""
    return fold_name(_SEPARATOR.sub(lambda found: _SPELLED[found[0]], text))


def _find_forms(ground: Indexes, node: int, relation: str, forms: Forms) -> Resolution:
    page = fold_page(ground.corpus, node)
    mentioned = forms.exact.search(page) is not None
    if not mentioned and forms.coarse.search(page) is None:
        return "absent"
    for sentence in list_prose(ground.corpus, node):
        folded = fold_text(sentence.text)
        if (forms.exact.search(folded) or forms.coarse.search(folded)) and ground.cues.states(relation, sentence.text):
            return "stated"
    return "unclear" if mentioned else "absent"


@lru_cache(maxsize=KEPT_FORMS)
def _compile_names(names: frozenset[str]) -> Forms:
    return Forms(_compile(map(re.escape, sorted(names))), re.compile(_NEVER))


@lru_cache(maxsize=KEPT_FORMS)
def _compile_value(relation: str, value: str) -> Forms:
    wanted = read_wanted(relation, value)
    if wanted.years is not None:
        exact, coarse = _list_date_forms(wanted, value)
        return Forms(_compile(exact), _compile(coarse))
    answer = wanted.answer
    forms = {value} if answer is None else {value, answer.surface, answer.value, *answer.aliases}
    if answer is not None and answer.type == "number":
        return Forms(_compile(re.escape(fold_text(form)) for form in sorted(forms)), re.compile(_NEVER))
    return Forms(_compile(_loosen(fold_text(form)) for form in sorted(forms)), re.compile(_NEVER))


def _list_date_forms(wanted: Wanted, value: str) -> tuple[list[str], list[str]]:
    first, last = wanted.years or (0, 0)
    exact = [re.escape(fold_text(value)), *(rf"{year}s?" for year in range(first, last + 1))]
    periods = list_periods(Date(last))
    if wanted.date is not None:
        exact += [re.escape(fold_text(form)) for form in render_date(wanted.date)]
        exact += [re.escape(fold_text(render_date(Date(wanted.date.year))[0]))]
    century = (last - 1) // 100 + 1
    coarse = [re.escape(fold_text(period)) for period in periods]
    coarse += [rf"{century - 1}00s", *([f"{_ORDINALS[century]} century"] if century in _ORDINALS else [])]
    return exact, coarse


def _loosen(folded: str) -> str:
    return " ".join(
        rf"{re.escape(word[: max(LEAST_STEM, len(word) - ENDING)])}\w*"
        if word.isalpha() and len(word) > LEAST_STEM
        else re.escape(word)
        for word in folded.split()
    )


def _compile(forms: Iterable[str]) -> re.Pattern[str]:
    kept = [form for form in dict.fromkeys(forms) if form]
    return re.compile(rf"(?<!\w)(?:{'|'.join(kept)})(?!\w)" if kept else _NEVER)


MAX_MENTIONS = 20_000
"""Passages that name the previous entity, and articles that link to it, at most."""
KEPT_NAMES = 1 << 14


@dataclass(frozen=True, slots=True)
class Rival:
    """An entity that no fact excludes, with open facts."""

    number: int
    relation: str
    """Relation of the hop if open, else empty."""
    previous: int
    """Source of the hop."""
    constraints: tuple[Constraint, ...]
    """Open constraints."""
    sides: tuple[Side, ...] = ()
    """Open branches."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Open relations, ``type`` among them."""
        parts = (*(part.relation for part in self.constraints), *(side.relation for side in self.sides))
        return tuple(dict.fromkeys(filter(None, (self.relation, *parts))))


def list_rivals(ground: Indexes, query: Query, node: int, limit: int) -> tuple[Rival, ...] | None:
    """Return the rivals at the end of a backward hop, ascending; a forward hop has none."""
    hop = query.hops[node - 1]
    if not hop.backward:
        return ()
    sets = follow_chain(ground, query, query.anchor)
    fitting = sets[node] if node < len(sets) else frozenset()
    sides = [side for side in query.sides if side.host == node]
    here, found = list_constraints_of(query, node), dict[int, Rival]()
    for previous in sorted(sets[node - 1]) if node <= len(sets) else ():
        candidates = _list_candidates(ground, hop.relation, previous)
        if candidates is None:
            return None
        for number in sorted(candidates - fitting - found.keys()):
            rival = _judge(ground, hop.relation, previous, number, here)
            rival = _judge_sides(ground, rival, sides) if rival is not None else None
            if rival is not None:
                found[number] = rival
            if len(found) > limit:
                return None
    return tuple(found[number] for number in sorted(found))


def resolve_rival(ground: Indexes, rival: Rival) -> Resolution:
    """Return what a rival's article says about the open facts; one absent fact refutes the rival.

    An open type is ``unclear``: an article need not use the noun of the question. Without open facts all is ``stated``.
    """
    results: set[Resolution] = set()
    for constraint in rival.constraints:
        if constraint.relation == TYPE:
            results.add("unclear")
        else:
            results.add(find_literal(ground, rival.number, constraint.relation, constraint.value))
        if "absent" in results:
            return "absent"
    open_relations = [(rival.relation, rival.previous)] if rival.relation else []
    for relation, value in (*open_relations, *((side.relation, side.entity) for side in rival.sides)):
        results.add(find_object(ground, rival.number, relation, value))
    return "absent" if "absent" in results else "unclear" if "unclear" in results else "stated"


def _list_candidates(ground: Indexes, relation: str, previous: int) -> set[int] | None:
    named = _find_named(ground.corpus, previous)
    linking = ground.corpus.graph.sources_of(previous)
    if named is None or len(linking) > MAX_MENTIONS:
        return None
    shown = (*ground.facts.subjects_of(relation, previous), *ground.facts.naming(relation, previous))
    return {*linking.tolist(), *named, *shown} - {previous}


@lru_cache(maxsize=KEPT_NAMES)
def _find_named(corpus: Corpus, node: int) -> tuple[int, ...] | None:
    folded = fold_names(corpus, node)
    # Unfolded names too: folding spells out letters that the search index keeps.
    written = [alias for alias in corpus.aliases(node) if fold_name(alias) in folded]
    return corpus.find_phrases([*written, *sorted(folded)], MAX_MENTIONS)


def _judge(
    ground: Indexes, relation: str, previous: int, number: int, constraints: Sequence[Constraint]
) -> Rival | None:
    page = ground.corpus.page(number)
    if page.is_list or page.is_disambiguation:
        return None
    match = match_relation(ground.corpus, number, relation, previous)
    if match is Match.NO and not _may_have_more(ground, relation, previous, number):
        return None
    unclear = []
    # The type comes last because it may read the article.
    for constraint in sorted(constraints, key=lambda constraint: constraint.relation == TYPE):
        fits = match_constraint(ground.corpus, number, constraint)
        if fits is Match.NO and not _may_be_too(ground.corpus, number, constraint):
            return None
        if fits is not Match.YES:
            unclear.append(constraint)
    ordered = tuple(constraint for constraint in constraints if constraint in unclear)
    return Rival(number, "" if match is Match.YES else relation, previous, ordered)


def _judge_sides(ground: Indexes, rival: Rival, sides: Iterable[Side]) -> Rival | None:
    unclear = []
    for side in sides:
        match = match_relation(ground.corpus, rival.number, side.relation, side.entity)
        if match is Match.NO and not _may_have_more(ground, side.relation, side.entity, rival.number):
            return None
        unclear += [] if match is Match.YES else [side]
    return replace(rival, sides=tuple(unclear))


def _may_be_too(corpus: Corpus, number: int, constraint: Constraint) -> bool:
    if constraint.relation != TYPE or is_of_other_domain(corpus.page(number), constraint.value):
        return False
    lead = " ".join(sentence.text for sentence in list_prose(corpus, number)[:1])
    return holds_phrase(fold_name(lead), fold_name(constraint.value))


def _may_have_more(ground: Indexes, relation: str, previous: int, number: int) -> bool:
    return ground.facts.is_multiple(relation) and find_object(ground, number, relation, previous) == "stated"
