"""Wrong answers that different attempts gave alike: what two readers find is more than one reader's error."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.names import fold_name
from pipelines.scoring.answers import make_answer
from pipelines.scoring.compare import compare_answers
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import parse_number
from schemas.proofs import Answer, AnswerType


@dataclass(frozen=True, slots=True)
class Repeat:
    """An answer as it was first written, and how many attempts gave it."""

    text: str
    times: int


def find_repeats(given: Iterable[str], answer_type: AnswerType) -> tuple[Repeat, ...]:
    """Return the answers that were given more than once, the most frequent first, then in the order given.

    Two are the same when they fold alike, or the comparer takes each for the other: ``12 May 1900`` is ``May 12, 1900``
    where a date is asked for, and ``2 km`` is ``2000 m``.

    Args:
        given: one answer an attempt; each is compared with every different one before it.
        answer_type: of what is asked for.
    """
    counts: dict[str, int] = {}
    written: dict[str, str] = {}
    known: dict[str, Answer] = {}
    for text in given:
        folded = fold_name(text) or text.strip()
        # Folding drops signs and decimal points, so numerals count as they are written.
        folded = f"{folded} {text.strip()}" if any(map(str.isdigit, text)) else folded
        if folded not in written:
            reading = _read(text, answer_type)
            written[folded] = next((key for key, other in known.items() if _are_same(text, reading, other)), folded)
            if written[folded] == folded:
                known[folded] = reading
        counts[written[folded]] = counts.get(written[folded], 0) + 1
    repeats = [Repeat(known[key].surface, times) for key, times in counts.items() if times > 1]
    return tuple(sorted(repeats, key=lambda repeat: -repeat.times))


def _are_same(text: str, reading: Answer, other: Answer) -> bool:
    return "correct" in (compare_answers(text, other), compare_answers(other.surface, reading))


def _read(text: str, answer_type: AnswerType) -> Answer:
    """Return a given answer as a reference: typed where it can be read so, else the words as they are."""
    value = {"date": parse_date, "number": parse_number}.get(answer_type, lambda _: None)(text)
    if value is not None:
        return make_answer(text, value)
    words: AnswerType = answer_type if answer_type in ("name", "string") else "name"
    return Answer(type=words, value=text, precision="", unit="", surface=text, aliases=(), key="")
