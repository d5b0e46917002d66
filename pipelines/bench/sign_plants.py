"""Plants of names that can be read in a picture: a sign with a name of the path, or with the answer (D12)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from pipelines.agent.reading import Reader
from pipelines.backends.ocr_layer import LayerOcr
from pipelines.backends.ocr_rapid import RapidOcr
from pipelines.backends.protocols import Ocr
from pipelines.bench.gallery import Exhibit, draw_exhibits, encode
from pipelines.bench.plants import Defect, Pair, type_text
from pipelines.bench.vocabulary import Vocabulary, invent_person, invent_title, invent_word
from pipelines.checks.leakage import find_common_tokens
from pipelines.checks.legibility import check_readable
from pipelines.checks.verdicts import CheckResult
from pipelines.errors import ConfigError
from pipelines.scoring.answers import make_answer
from pipelines.scoring.dates import MONTHS, Date, render_date
from pipelines.world.names import fold_accents
from pipelines.world.signs import put_sign
from schemas.proofs import Answer

_SHAPES = ("{}", "{}", "Welcome to {}", "{} 2 km", "The {}")
_ANSWER_SHAPES = ("{}", "Since {}", "Open: {}")
_TRIES = 40
_NO_ANSWER = make_answer("5 April 1123", Date(1123, 4, 5))
"""Stands on no sign."""
Aliases = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Path:
    """What a picture may not tell."""

    aliases: Aliases
    answer: Answer
    common: frozenset[str]
    """Type words, which give nothing away."""


@lru_cache(maxsize=1)
def open_engine() -> Ocr:
    """Return the engine that judges: RapidOCR, or the text layer where the extra ``vision`` is not installed."""
    try:
        return RapidOcr(threads=1)
    except ConfigError:
        return LayerOcr()


def plant_sign(words: Vocabulary, rng: Random, engine: Ocr | None = None) -> Pair:
    """D12: a sign with a name of some node: title, telling word, other name; the clean twin's names a stranger.

    Args:
        words: what names are made of.
        rng: draws them, the picture and the sign's place.
        engine: reads the pictures; None is :func:`open_engine`.
    """
    aliases, picks = _draw_aliases(words, rng), (rng.randrange(3), rng.randrange(4))
    text = _pick_name(aliases, picks, words)
    other = _find_like(text, aliases, lambda: _pick_name(_draw_aliases(words, rng), picks, words))
    path = _Path(aliases, _NO_ANSWER, find_common_tokens(words.types))
    return _pair_signs(path, rng.choice(_SHAPES), (other, text), rng, engine)


def plant_answer_sign(words: Vocabulary, rng: Random, engine: Ocr | None = None) -> Pair:
    """D12: a sign with the answer: a date, a year or a name; the clean twin's shows another, see :func:`plant_sign`."""
    aliases, kind = _draw_aliases(words, rng), rng.randrange(3)
    answer, text = _draw_answer(words, rng, kind)
    other = _find_like(text, (*aliases, (text,)), lambda: _draw_answer(words, rng, kind)[1])
    path = _Path(aliases, answer, find_common_tokens(words.types))
    return _pair_signs(path, rng.choice(_ANSWER_SHAPES), (other, text), rng, engine)


DEFECTS: tuple[Defect, ...] = (
    Defect("D12", "name on a sign", plant_sign),
    Defect("D12", "answer on a sign", plant_answer_sign),
)


def _draw_aliases(words: Vocabulary, rng: Random) -> Aliases:
    """Return names of three nodes, each a title and another name."""
    other = (f"{invent_word(words, rng)} {invent_word(words, rng)}" for _ in range(3))
    return tuple((invent_title(words, rng), name) for name in other)


def _pick_name(aliases: Aliases, picks: tuple[int, int], words: Vocabulary) -> str:
    """Return what a sign says of one of the nodes: the title, in capitals too, its telling word, the other name."""
    title, other = aliases[picks[0]]
    title = title.partition(" (")[0]
    first, last = title.split(" ", 1)
    return (title, title.upper(), first if last in words.types else last, other)[picks[1]]


def _draw_answer(words: Vocabulary, rng: Random, kind: int) -> tuple[Answer, str]:
    """Return an answer and a way to write it."""
    date = Date(rng.randint(1100, 2020), rng.randint(1, 12), rng.randint(1, 28))
    if kind == 0:
        name = invent_person(words, rng)
        return type_text(name), name
    answer = make_answer(render_date(date)[0], date)
    return answer, str(date.year) if kind == 1 else f"{date.day} {MONTHS[date.month - 1]} {date.year}"


def _find_like(text: str, aliases: Aliases, draw: Callable[[], str]) -> str:
    """Return a stranger's writing, about as long, that begins no word as a word of the names begins."""
    begins = {word[:3].lower() for names in aliases for name in names for word in name.split()}
    found = (fold for fold in (draw() for _ in range(_TRIES)) if not begins & {w[:3].lower() for w in fold.split()})
    return min(found, key=lambda each: abs(len(each) - len(text)), default="Visitors")


def _pair_signs(path: _Path, shape: str, texts: tuple[str, str], rng: Random, engine: Ocr | None) -> Pair:
    """Judge two pictures that differ in the words of a sign alone: same scene, place, board and letters."""
    (exhibit,) = draw_exhibits(1, rng)
    reader, place = Reader((engine or open_engine(),)), rng.random()
    clean, bad = (_read(reader, _draw_sign(exhibit, shape.format(text), place), path) for text in texts)
    return Pair(f"{exhibit.entity.noun}: {shape.format(texts[1])}", clean, bad, ("picture-readable",))


def _draw_sign(exhibit: Exhibit, text: str, place: float) -> bytes:
    scene = exhibit.paint("lead")
    return encode(scene, "x.jpg", put_sign(scene, fold_accents(text), Random(place)))


def _read(reader: Reader, data: bytes, path: _Path) -> CheckResult:
    reading = asyncio.run(reader.read(data))
    return check_readable(reading.lines, path.aliases, path.answer, path.common)
