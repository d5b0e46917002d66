"""Words of the planted bench, in two halves, and the pairs that it plants.

A check that was tuned on its own test words measures its author. The held-out half has other sounds, sentences and type
words, and the bench reports it apart. Words are chosen without regard to what the checks know: some stand in their
table of common words. Further files can be read, so that others add plants whose words the authors never saw.
"""

import re
import string
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from pipelines.checks.verdicts import CheckResult
from pipelines.errors import ConfigError

Half = Literal["open", "held-out", "added"]
HALVES: tuple[Half, Half] = ("open", "held-out")
"""Those of the bench; ``added`` is a file of somebody else's."""
_MOST = 10_000
_DOUBLED = ("demonyms",)
_LETTERS = ("starts", "middles", "ends", "suffixes")
_CAPITALISED = ("starts", "given", "types", "ordinary")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What one half draws from."""

    half: Half
    starts: tuple[str, ...]
    middles: tuple[str, ...]
    ends: tuple[str, ...]
    given: tuple[str, ...]
    types: tuple[str, ...]
    """Nouns that a title may end with and a question may use."""
    questions: tuple[str, ...]
    """Sentences with ``{ref}`` for the anchor and ``{type}`` for another noun; they hold no digits."""
    words: tuple[str, ...]
    """Common-noun answers."""
    suffixes: tuple[str, ...]
    """Endings that make a demonym of an invented name."""
    demonyms: tuple[tuple[str, str], ...]
    """Real names with an adjective that no suffix makes."""
    adjectives: tuple[str, ...]
    """Words that look like demonyms and are none."""
    ordinary: tuple[str, ...]
    """Names of persons and places whose two words are ordinary ones, such as Olive Brown."""


def load_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary of a TOML file with the keys of ``data/open.toml``.

    Raises:
        ConfigError: if the file cannot be read, a key is missing, unknown or empty, or a word is not what it must be.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"vocabulary {path}: cannot be read: {error}") from error
    return _parse(text, str(path), "added")


@lru_cache(maxsize=2)
def load_half(half: Half) -> Vocabulary:
    """Return one of the two halves of the bench."""
    text = Path(__file__).with_name("data").joinpath(f"{half}.toml").read_text("utf-8")
    return _parse(text, f"{half}.toml", half)


def invent_word(words: Vocabulary, rng: Random) -> str:
    """Return an invented proper word of two or three syllables, at least six letters long."""
    middle = rng.choice(words.middles) if rng.random() < 0.6 else ""
    word = rng.choice(words.starts) + middle + rng.choice(words.ends)
    return word if len(word) >= 6 else word + rng.choice(words.middles) + "m"


def invent_person(words: Vocabulary, rng: Random) -> str:
    """Return an invented full name."""
    return f"{rng.choice(words.given)} {invent_word(words, rng)}"


def invent_title(words: Vocabulary, rng: Random) -> str:
    """Return an invented page title: a person, a thing with its type word, or either with a qualifier."""
    shape = rng.randrange(4)
    if shape == 0:
        return invent_person(words, rng)
    title = f"{invent_word(words, rng)} {rng.choice(words.types)}"
    return f"{title} ({invent_word(words, rng)})" if shape == 1 else title


def write_question(words: Vocabulary, rng: Random, reference: str) -> str:
    """Return a question that refers to the anchor by ``reference``."""
    return rng.choice(words.questions).format(ref=reference, type=rng.choice(words.types).lower())


def _parse(text: str, source: str, half: Half) -> Vocabulary:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"vocabulary {source}: is no TOML: {error}") from error
    keys = [field.name for field in fields(Vocabulary) if field.name != "half"]
    wrong = sorted(set(keys) ^ raw.keys())
    if wrong:
        raise ConfigError(
            f"vocabulary {source}: missing or unknown: {', '.join(wrong)}; the keys are {', '.join(keys)}"
        )
    return Vocabulary(half, **{key: _read_list(source, key, raw[key]) for key in keys})


def _read_list(source: str, key: str, given: object) -> tuple[Any, ...]:
    if not isinstance(given, list) or not 2 <= len(given) <= _MOST:
        raise ConfigError(f"vocabulary {source}: {key} must be a list of 2 to {_MOST:,} entries")
    if key in _DOUBLED:
        for pair in given:
            if not isinstance(pair, list) or len(pair) != 2:
                raise _refuse(source, key, pair, "a list of a name and an adjective")
            for word in pair:
                _check_word(source, key, word)
        return tuple((name, adjective) for name, adjective in given)
    for word in given:
        _check_word(source, key, word)
    return tuple(given)


def _check_word(source: str, key: str, word: object) -> None:
    if not isinstance(word, str) or not word.strip():
        raise _refuse(source, key, word, "text")
    if key in _LETTERS and not word.isalpha():
        raise _refuse(source, key, word, "letters alone")
    if key in _CAPITALISED and not word[0].isupper():
        raise _refuse(source, key, word, "capitalised")
    if key in ("given", "types") and len(word.split()) != 1:
        raise _refuse(source, key, word, "one word")
    if key == "ordinary" and (len(word.split()) != 2 or not word.istitle()):
        raise _refuse(source, key, word, "two capitalised words")
    if key == "questions":
        _check_question(source, word)


def _check_question(source: str, question: str) -> None:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(question) if name is not None]
    except ValueError:
        names = []
    if names.count("ref") != 1 or set(names) - {"ref", "type"} or re.search(r"\d|\{\w+[!:]", question):
        raise _refuse(source, "questions", question, "a sentence with one {ref}, {type} where wanted, and no digits")


def _refuse(source: str, key: str, given: object, allowed: str) -> ConfigError:
    return ConfigError(f"vocabulary {source}: {key}: {str(given)[:80]!r} is given, allowed is {allowed}")


@dataclass(frozen=True, slots=True)
class Pair:
    """What the check said of both twins, and what was planted."""

    plant: str
    """The defective value, for a reader."""
    clean: CheckResult
    defective: CheckResult
    codes: tuple[str, ...]
    """Codes that count as having recognised the defect."""
    returned: tuple[str, ...] = ()
    """All codes of the defective twin, where several checks looked at it."""
    question: str = ""
    """Record id of the accepted question it was planted in; empty for a text alone."""

    @property
    def undecided(self) -> bool:
        """Whether the defective twin was refused as UNKNOWN by a code that does not name the defect."""
        return self.defective.outcome == "UNKNOWN" and self.defective.code not in self.codes

    @property
    def caught(self) -> bool:
        """Whether the defective twin was refused with a right code."""
        return not self.defective.passed and self.defective.code in self.codes

    @property
    def flips(self) -> bool:
        """Whether the check told the twins apart."""
        return self.caught and self.clean.passed

    def list_returned(self) -> tuple[str, ...]:
        """Return every code that the defective twin drew, once; ``PASS`` when there is none."""
        return tuple(dict.fromkeys(self.returned)) or (self.defective.code or "PASS",)


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect of a text alone; what its check must reach stands in ``catalogue.DEMANDS``."""

    code: str
    title: str
    plant: Callable[[Vocabulary, Random], Pair]
