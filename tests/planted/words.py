"""Words of the planted bench, in two halves, and the pairs that it plants.

A check that was tuned on its own test words measures its author. The held-out half has other sounds, sentences and type
words, and the bench reports it apart. Words are chosen without regard to what the checks know: some stand in their
table of common words. Further files can be read, so that others add plants whose words the authors never saw.
"""

import re
import string
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from pipelines.checks.verdicts import CheckResult
from pipelines.errors import ConfigError

Half = Literal["open", "held-out", "added"]
HALVES: tuple[Half, Half] = ("open", "held-out")
"""The halves of the bench; ``added`` is the file of another author."""


def _check_question(question: str) -> str:
    names = [name for _, name, _, _ in string.Formatter().parse(question) if name is not None]
    if names.count("ref") != 1 or set(names) - {"ref", "type"} or re.search(r"\d|\{\w+[!:]", question):
        raise ValueError("expected a sentence with one {ref}, {type} where wanted, and no digits")
    return question


def _list_words(pattern: str) -> Any:
    return Annotated[tuple[Annotated[str, Field(pattern=pattern)], ...], Field(min_length=2, max_length=10_000)]


LETTERS, TEXTS = _list_words(r"^\p{L}+$"), _list_words(r"\S")


class Vocabulary(BaseModel):
    """Words of one half."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    half: Half
    starts: _list_words(r"^\p{Lu}\p{L}*$")
    middles: LETTERS
    ends: LETTERS
    given: _list_words(r"^\p{Lu}\S*$")
    types: _list_words(r"^\p{Lu}\S*$")
    """Nouns that a title may end with and a question may use."""
    questions: Annotated[tuple[Annotated[str, AfterValidator(_check_question)], ...], Field(min_length=2)]
    """Sentences with ``{ref}`` for the anchor and ``{type}`` for another noun; they hold no digits."""
    words: TEXTS
    """Common-noun answers."""
    suffixes: LETTERS
    """Endings that make a demonym of an invented name."""
    demonyms: Annotated[tuple[tuple[str, str], ...], Field(min_length=2)]
    """Real names with an adjective that no suffix makes."""
    adjectives: TEXTS
    """Words that look like demonyms and are none."""
    ordinary: _list_words(r"^\p{Lu}\p{Ll}+ \p{Lu}\p{Ll}+$")
    """Names whose two words are ordinary ones, such as Olive Brown."""


def load_vocabulary(path: Path, half: Half = "added") -> Vocabulary:
    """Return the vocabulary of a TOML file with the keys of ``data/open.toml``.

    Raises:
        ConfigError: the file cannot be read, or a key or word is not as described there.
    """
    try:
        return Vocabulary(half=half, **tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(f"vocabulary {path}: cannot be read: {error}") from error


@lru_cache(maxsize=2)
def load_half(half: Half) -> Vocabulary:
    """Return one of the two halves of the bench."""
    return load_vocabulary(Path(__file__).with_name("data") / f"{half}.toml", half)


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
