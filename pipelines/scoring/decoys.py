"""Decoys: plausible wrong answers of the right answer's type, for scripted players that guess or err."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import count as count_from
from itertools import islice
from random import Random

from pipelines.scoring.compare import compare_answers
from pipelines.scoring.dates import Date, parse_date, render_date
from pipelines.scoring.numbers import Number, format_decimal, parse_number, render_number
from schemas.proofs import Answer

_NAMES = (
    "Alder", "Brandt", "Corvin", "Dalby", "Ekman", "Fenwick", "Garrow", "Holt", "Ivers", "Jessop", "Kessler", "Lorne",
    "Merrow", "Norwood", "Osgood", "Pryce", "Quill", "Redfern", "Salter", "Thorne", "Ullman", "Vickers", "Wexley",
    "Yarrow",
)  # fmt: skip
_NOUNS = (
    "limestone", "oak", "brick", "slate", "bronze", "clay", "copper", "marble", "steel", "glass", "timber", "plaster",
    "sandstone", "tin", "leather", "cotton", "silk", "amber", "ivory", "wool", "cedar", "basalt", "chalk", "linen",
)  # fmt: skip
_ADJECTIVES = ("grey", "polished", "carved", "rough", "painted", "old", "dark", "woven", "plain", "white")
_MAX_WORDS = 3
_TRIES = 64
"""Candidates looked at before an undecided one is taken, and as many again for each decoy wanted."""


@lru_cache(maxsize=1024)
def make_decoys(answer: Answer, count: int) -> tuple[str, ...]:
    """Return ``count`` different wrong answers, the same ones every time.

    Dates keep their precision and move by years, numbers keep their unit, names and strings are drawn from a fixed
    list by the answer's key. By :func:`~pipelines.scoring.compare.compare_answers` none is correct. All are incorrect
    where the comparer can tell at all; it leaves most pairs of strings, and names that are not Latin, unscored.
    """
    proposed = islice(_PROPOSERS[answer.type](answer), _TRIES * (count + 1))
    incorrect: list[str] = []
    undecided: list[str] = []
    for text in dict.fromkeys(proposed):
        verdict = compare_answers(text, answer)
        if verdict == "incorrect":
            incorrect.append(text)
        elif verdict == "unscored":
            undecided.append(text)
        if len(incorrect) >= count:
            break
    return (*incorrect, *undecided)[: max(count, 0)]


def _propose_dates(answer: Answer) -> Iterator[str]:
    known = parse_date(answer.value) or Date(1900)
    for step in count_from(1):
        for years in (step, -step):
            moved = Date(known.year + years, known.month, known.day)
            text = render_date(moved)[0]
            # 29 February has no namesake in most years.
            if parse_date(text) == moved:
                yield text


def _propose_numbers(answer: Answer) -> Iterator[str]:
    known = parse_number(answer.value)
    size = Decimal(known.value) if known else Decimal(1)
    for step in count_from(1):
        for value in (size * (step + 1), size + step, size - step):
            # Few things that are counted or measured from zero up turn negative.
            if value >= 0 or size < 0:
                yield render_number(Number(format_decimal(value), answer.unit))[0]


def _propose_names(answer: Answer) -> Iterator[str]:
    rng, size = Random(answer.key), _count_words(answer)
    for turn in count_from():
        # Longer names when the short ones may be used up.
        yield " ".join(rng.sample(_NAMES, min(size + turn // (4 * len(_NAMES)), len(_NAMES))))


def _propose_strings(answer: Answer) -> Iterator[str]:
    rng, size = Random(answer.key), _count_words(answer)
    for turn in count_from():
        words = size + turn // (4 * len(_NOUNS))
        yield " ".join([*rng.sample(_ADJECTIVES, min(words - 1, len(_ADJECTIVES))), rng.choice(_NOUNS)])


def _count_words(answer: Answer) -> int:
    return min(max(len(answer.surface.split()), 1), _MAX_WORDS)


_PROPOSERS: dict[str, Callable[[Answer], Iterator[str]]] = {
    "date": _propose_dates,
    "number": _propose_numbers,
    "name": _propose_names,
    "string": _propose_strings,
}
