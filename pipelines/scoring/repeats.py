"""Wrong answers that different attempts gave alike: what two readers find is more than one reader's error."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelines.names import fold_name
from pipelines.scoring.answers import make_answer
from pipelines.scoring.compare import compare_answers
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import parse_number
from schemas.proofs import Answer, AnswerType

COMPARED = 32
"""Different dates or numbers that one more is compared with by value; further ones are the same only by their words."""
_READERS = {"date": parse_date, "number": parse_number}
_NUMERALS = re.compile(r"-?\d+(?:[.,:/]\d+)*")
_DASHES = str.maketrans("\u2212\u2013", "--")


@dataclass(frozen=True, slots=True)
class Repeat:
    """An answer as it was first written, and how many attempts gave it."""

    text: str
    times: int


def find_repeats(given: Iterable[str], answer_type: AnswerType) -> tuple[Repeat, ...]:
    """Return the answers that were given more than once, the most frequent first, then in the order given.

    Two are the same when they fold alike with the same numerals. Where a date or a number is asked for, they are also
    when the comparer takes one for the other: ``12 May 1900`` is ``May 12, 1900``, and ``2 km`` is ``2000 m``.

    Args:
        given: one answer an attempt.
        answer_type: of what is asked for.
    """
    counts: dict[str, int] = {}
    same: dict[str, str] = {}
    shown: dict[str, str] = {}
    known: dict[str, Answer] = {}
    for text in given:
        words = _fold_words(text)
        if words not in same:
            reading = _read(text, answer_type) if answer_type in _READERS else None
            same[words] = _find_same(text, reading, known) or words
            shown.setdefault(same[words], text)
            if reading is not None and same[words] == words and len(known) < COMPARED:
                known[words] = reading
        counts[same[words]] = counts.get(same[words], 0) + 1
    repeats = [Repeat(shown[words], times) for words, times in counts.items() if times > 1]
    return tuple(sorted(repeats, key=lambda repeat: -repeat.times))


def _fold_words(text: str) -> str:
    """Fold a text; numerals stay as they are written, as folding drops signs and decimal points."""
    numerals = " ".join(_NUMERALS.findall(text.translate(_DASHES)))
    return f"{fold_name(text).removeprefix('the ') or text.strip()}\n{numerals}"


def _find_same(text: str, reading: Answer | None, known: Mapping[str, Answer]) -> str | None:
    return next((words for words, other in known.items() if _are_same(text, reading, other)), None)


def _are_same(text: str, reading: Answer | None, other: Answer) -> bool:
    if compare_answers(text, other) == "correct":
        return True
    return reading is not None and compare_answers(other.surface, reading) == "correct"


def _read(text: str, answer_type: AnswerType) -> Answer | None:
    """Return a given answer as a reference, None where it cannot be read so."""
    value = _READERS[answer_type](text)
    return None if value is None else make_answer(text, value)
