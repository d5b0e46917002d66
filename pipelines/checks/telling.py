"""What a text tells of an entity beside what is counted: linked facts, values in another writing, and of which field.

A count is right when it covers all that a descriptor says. A value that belongs to several fields is said of the one
that the descriptor names; what is told in a way that no count can follow refuses the descriptor.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from pipelines.checks.answer_values import find_numbers, find_value
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.cues import name_cues
from pipelines.graph.holders import split_key, stem_key
from pipelines.graph.kin import GENERIC
from pipelines.graph.matching import match_literal, read_fields
from pipelines.graph.relations import is_layout, type_value
from pipelines.graph.stems import list_stems, stem_word
from pipelines.graph.values import Match, fold_names, holds_phrase, is_number
from pipelines.names import fold_name, is_common_word
from pipelines.scoring.dates import parse_date
from schemas.proofs import Answer

BLANK = "\x00"
"""Put where a value was found, so that no shorter value is found inside it."""
_POINTING = re.compile(r"(?<![\w-])(?<!ty )(?:ones?|first|second|third|fourth)(?![\w-]| hundred| thousand| million)")
"""``The first one`` and ``that second town`` count nothing, other than ``seventy one``."""
_TENS = ("", "ten", "twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet")
_HYPHENED = re.compile(r"(?<=\d(?:st|nd|rd|th))-(?=centur)")


def fold_spaces(text: str) -> str:
    """Return a text with white space made single and case dropped; descriptors and questions are compared so."""
    return _HYPHENED.sub(" ", " ".join(text.casefold().split()))


def find_phrases(phrase: str, text: str) -> list[str]:
    """Return each place of a folded phrase in a folded text as whole words; an empty one has none."""
    return re.findall(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) if phrase else []


def blank_phrase(phrase: str, text: str) -> str:
    """Return a folded text with a folded phrase taken out, wherever it stands as whole words."""
    return re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", BLANK, text) if phrase else text


def list_told_relations(corpus: Corpus, number: int, value: str, text: str) -> tuple[str, ...]:
    """Return the fields of a page that a text may mean by a value, by the stem of their keys.

    Args:
        corpus: where the page is read.
        number: the entity's number.
        value: a literal that stands in the text.
        text: the descriptor.

    Returns:
        Every field that shows the value; of several those alone whose keys' own words stand in the text, or else those
        whose cues do, or else all.
    """
    shown = [stem for stem in read_fields(corpus, number) if match_literal(corpus, number, stem, value) is Match.YES]
    if len(shown) < 2:
        return tuple(shown)
    spoken = set(list_stems(blank_phrase(fold_spaces(value), fold_spaces(text))))
    named = [stem for stem in shown if not spoken.isdisjoint(_list_own_stems(stem))]
    hinted = [stem for stem in shown if not spoken.isdisjoint(name_cues(stem))]
    return tuple(named or hinted or shown)


def _list_own_stems(relation: str) -> frozenset[str]:
    words = split_key(relation)
    return frozenset(map(stem_word, [word for word in words if word not in GENERIC] or words))


def find_relation_problem(corpus: Corpus, number: int, told: tuple[str, str], given: Iterable[str], text: str) -> str:
    """Return why a value is not told of the fields that it is counted for, or nothing.

    Args:
        corpus: where the page is read.
        number: the entity's number.
        told: the value, and the relation of its constraint.
        given: relations of all constraints with that value.
        text: the descriptor.
    """
    value, relation = told
    meant, counted = set(list_told_relations(corpus, number, value, text)), set(map(stem_key, given))
    if not meant or meant == {stem_key(relation)}:
        return ""
    if meant == counted and len(find_phrases(fold_spaces(value), fold_spaces(text))) >= len(meant):
        return ""
    return f"{value!r} is counted as {relation} and may be told of {sorted(meant)}"


def find_uncounted(corpus: Corpus, number: int, text: str, counted: Iterable[str]) -> Iterator[str]:
    """Yield what a text tells of an entity in a way that no constraint covers.

    That is a name of an article that any field links to, and a literal in another writing than the page's: a number in
    words or another unit, a date in other forms, a decade or century in words, a string in other letters.

    Args:
        corpus: where the facts are read.
        number: the entity's number.
        text: a descriptor or a question.
        counted: values that are constraints, and words that tell nothing, such as types.
    """
    left = fold_spaces(text)
    for value in sorted(map(fold_spaces, counted), key=lambda value: (-len(value), value)):
        left = blank_phrase(value, left)
    pieces = [folded for piece in left.split(BLANK) if (folded := fold_name(piece))]
    figures = _POINTING.sub(BLANK, left)
    numbers = find_numbers(figures)
    for fact in corpus.facts(number):
        if is_layout(fact.key):
            continue
        names = _list_names(corpus, fact)
        yield from (name for name in names if any(holds_phrase(piece, name) for piece in pieces))
        answer = type_value(fact.text, fact.iso, fact.key) if fact.target < 0 else None
        told = _find_figure(figures, numbers, answer) if answer is not None else ""
        if told:
            yield told


def _list_names(corpus: Corpus, fact: Fact) -> list[str]:
    """Return the names of what a field shows that are more than words of the language."""
    if fact.target >= 0:
        names = fold_names(corpus, fact.target) | {fold_name(fact.text)}
        return sorted(name for name in names if name and not all(map(is_common_word, name.split())))
    answer = type_value(fact.text, fact.iso, fact.key)
    return [fold_name(fact.text)] if answer is not None and answer.type in ("name", "string") else []


def _find_figure(text: str, numbers: set[Decimal], answer: Answer) -> str:
    """Return how a text tells a number or date, or its decade or century; ``numbers`` are all that it holds."""
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is not None:
        decade, century = date.year // 10, (date.year - 1) // 100 + 1
        if "centur" in text and Decimal(century) in numbers:
            return f"century {century}"
        tens = _TENS[decade % 10]
        if re.search(rf"(?<!\d){decade}0['’ ]?s(?!\w)|['’‘]{decade % 10}0s" + (rf"|{tens}ies" if tens else ""), text):
            return f"{decade}0s"
    return find_value(text, answer) if numbers and (date is not None or is_number(answer)) else ""
