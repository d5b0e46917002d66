"""Demonyms and adjectives of names: the Kelmorian painter gives Kelmor away as well as its name does.

Regular ones are recognised by their suffix on a stem of a rare word of the name; irregular ones stand in
``data/demonyms.toml`` (public knowledge: Dutch, Mancunian, Aristotelian).
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from pipelines.checks.readings import list_readings, list_singulars, split_words, unescape
from pipelines.corpus.titles import strip_qualifier
from pipelines.names import fold_cased, fold_name, is_common_word

_SUFFIXES = frozenset(
    "an ian ean nian vian ese nese lese ish ist ite ism i ic ical ine er esque ard ene ois oise ote ino iot istic "
    "nik ensis ien ienne".split()
)
_MAX_SUFFIX = 5
_MIN_STEM = 4
_ENDINGS = ("a", "e", "i", "o", "u", "y", "s", "ia", "as", "es", "os", "us", "is", "um", "on", "land", "ism", "ist")
"""What a name loses before a suffix: Vienna, Goethe, Naples, Confucius, Belgium, Buddhism."""
_PERSON = re.compile(r"(?:wo)?m[ae]n$")
_MAX_PHRASE = 6


@dataclass(frozen=True, slots=True)
class DemonymLeak:
    """A word of the text that is derived from a name."""

    node: int
    name: str
    found: str
    """Folded."""


@dataclass(frozen=True, slots=True)
class _Table:
    """The data file, folded."""

    words: dict[str, frozenset[str]]
    """Names by demonym."""
    names: frozenset[str]
    cased: frozenset[str]
    """Demonyms that are ordinary words in lower case: ``polish``."""
    ordinary: frozenset[str]
    """Words that only look derived: ``organic``, ``tourist``."""


@dataclass(frozen=True, slots=True)
class _Roots:
    """What the words of a text are compared with, for one node."""

    stems: dict[str, str]
    """Name by stem."""
    tokens: frozenset[str]
    """The words of the names themselves; they are no demonyms."""
    names: dict[str, str]
    """Name as given by name in the table."""


def find_demonyms(
    text: str, aliases: Sequence[tuple[str, ...]], type_words: frozenset[str] = frozenset()
) -> tuple[DemonymLeak, ...]:
    """Return each word of a text that is a demonym or adjective of a node's name, once a node.

    Args:
        text: to be looked through.
        aliases: names by node, the title first. Of the title each rare word counts, of other names those of one word.
        type_words: folded words that give nothing away.
    """
    table = _load_table()
    phrases = dict.fromkeys(phrase for words in list_readings(text) for phrase in _list_phrases(words))
    cased = (
        frozenset(re.findall(r"[^\W_]+", fold_cased(unescape(text)))) if table.cased & phrases.keys() else frozenset()
    )
    found: dict[DemonymLeak, None] = {}
    for node, names in enumerate(aliases):
        roots = _find_roots(tuple(names))
        for phrase in phrases:
            name = "" if phrase in type_words else _trace(phrase, roots, table)
            if name and not (phrase in table.cased and phrase in cased):
                found[DemonymLeak(node, name, phrase)] = None
    return tuple(found)


def _list_phrases(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a text, singular too, and pairs of them: ``new zealander``."""
    table = _load_table()
    for place, word in enumerate(words):
        for form in list_singulars(word):
            yield form
            yield _PERSON.sub("", form)
            pair = f"{words[place - 1]} {form}" if place else ""
            if pair in table.words:
                yield pair


def _trace(word: str, roots: _Roots, table: _Table) -> str:
    """Return the name that a word is derived from, or nothing."""
    for name in table.words.get(word, ()):
        if name in roots.names:
            return roots.names[name]
    if word in roots.tokens or word in table.ordinary or is_common_word(word) or len(word) <= _MIN_STEM:
        return ""
    if word[-1] == "n" and word[-2] in "aeiou" and word[:-1] in roots.stems and word[:-1] in roots.tokens:
        return roots.stems[word[:-1]]
    for length in range(1, _MAX_SUFFIX + 1):
        stem = word[:-length]
        if stem in roots.stems and word[-length:] in _SUFFIXES:
            return roots.stems[stem]
    return ""


@lru_cache(maxsize=1024)
def _find_roots(names: tuple[str, ...]) -> _Roots:
    """Return the stems of a node's names, kept because many texts of one path are looked through."""
    table = _load_table()
    stems: dict[str, str] = {}
    tokens: set[str] = set()
    known: dict[str, str] = {}
    for place, name in enumerate(names):
        title = strip_qualifier(name)
        words = _drop_articles(title)
        for phrase in _list_runs(words) if place == 0 else (" ".join(words),):
            if phrase in table.names:
                known.setdefault(phrase, name)
        if place and (len(words) != 1 or not title[:1].isupper()):
            continue
        tokens.update(words)
        for word in words:
            if word.isalpha() and len(word) >= _MIN_STEM and not is_common_word(word):
                stems.update((stem, name) for stem in _list_stems(word) if stem not in stems)
    return _Roots(stems, frozenset(tokens), known)


def _drop_articles(name: str) -> list[str]:
    return [word for word in split_words(name) if word != "the"]


def _list_runs(words: Sequence[str]) -> Iterator[str]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _MAX_PHRASE) + 1):
            yield " ".join(words[start:end])


def _list_stems(word: str) -> Iterator[str]:
    """Yield what may stand before a suffix: the word, without its ending, with its last consonant doubled."""
    yield word
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM:
            yield stem
    if word[-1] not in "aeiouyws":
        yield word + word[-1]
    if word[-1] in "aeiou":
        yield f"{word}n"


@lru_cache(maxsize=1)
def _load_table() -> _Table:
    raw = tomllib.loads(resources.files("pipelines.checks").joinpath("data/demonyms.toml").read_text("utf-8"))
    words: dict[str, set[str]] = {}
    for group in ("places", "people"):
        for name, demonyms in raw[group].items():
            for demonym in demonyms.split(", "):
                words.setdefault(fold_name(demonym), set()).add(" ".join(_drop_articles(name)))
    return _Table(
        {word: frozenset(names) for word, names in words.items()},
        frozenset(name for names in words.values() for name in names),
        frozenset(raw["cased"].split()),
        frozenset(raw["ordinary"].split()),
    )
