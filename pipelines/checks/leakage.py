"""Leaks: a name of a node, or the answer in any writing, in a question or in the name of its picture.

A text is read as words in every way that a reader may take it: folded (:mod:`pipelines.names`), with escapes resolved,
umlauts spelled, apostrophes dropped, letters joined, digits as letters. Names match whole words of folded text, as
substring matching is leaky and noisy (research/quality.md 1B). Names come in one list a node, **its title first**.
Short and ordinary names (ES, NO, Nice, U.N., flags) match letter by letter. Regular demonyms are recognised by their
suffix on the stem of a rare word of a name; irregular ones stand in ``data/demonyms.toml``.
"""

import html
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import lru_cache
from importlib import resources
from itertools import groupby, pairwise
from typing import Literal
from urllib.parse import unquote

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.dump import strip_qualifier
from pipelines.graph.values import (
    MONTHS,
    Date,
    Number,
    compare_measures,
    find_digits,
    find_measures,
    find_roman_numbers,
    find_spelled_numbers,
    format_decimal,
    parse_date,
    parse_number,
    render_ordinal,
)
from pipelines.names import UNSPACED, fold_cased, fold_name, is_common_word, strip_invisible
from schemas.proofs import Answer, PathNode

POSSESSIVE = re.compile(r"['’ʼ`´]s(?![^\W_])", re.IGNORECASE)
_WORDS = re.compile(r"[^\W_]+")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|&#?[^\W_]{1,12};")
_ROUNDS = 2
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])['’ʼ`´ʻʹ‘]+(?=[^\W\d_])")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue",
                          "Ø": "Oe", "Å": "Aa"})  # fmt: skip
_DIGITS_AS_LETTERS = (str.maketrans("013457", "oleast"), str.maketrans("013457", "oieast"))
_MIN_LETTERS = 3
_MIN_PLURAL = 4
_SHORTENED = {"mt": "mount", "mts": "mountains", "ft": "fort"}
_ROMAN = "ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi xxii xxiii".split()
_COUNTED = "one two three four five six seven eight nine ten eleven twelve".split()
_ORDERED = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_NUMERALS = (
    {word: str(number) for number, word in enumerate(_ROMAN, 2)}
    | {word: str(number) for number, word in enumerate(_COUNTED, 1)}
    | {word: str(number) for number, word in enumerate(_ORDERED, 1)}
    | {f"{number}{end}": str(number) for number in range(1, 24) for end in ("st", "nd", "rd", "th")}
)


def split_bare_words(text: str) -> list[str]:
    """Return the folded words of a text without possessive endings; scripts without spaces stand apart from others."""
    text = strip_invisible(text)
    if not text.isascii():
        text = UNSPACED.sub(r" \g<0> ", text)
    return [_SHORTENED.get(word, word) for word in _WORDS.findall(fold_name(POSSESSIVE.sub("", text)))]


def list_singulars(word: str) -> tuple[str, ...]:
    """Return a folded word and its possible singulars."""
    if len(word) <= _MIN_PLURAL or not word.endswith("s") or word.endswith("ss"):
        return (word,)
    if word.endswith("ies"):
        return (word, word[:-1], word[:-3] + "y")
    return (word, word[:-1], word[:-2]) if word.endswith("es") and len(word) > 5 else (word, word[:-1])


def unescape(text: str) -> str:
    """Return a text without percent and HTML escapes, also where they were escaped twice."""
    for _ in range(_ROUNDS):
        if not _ESCAPE.search(text):
            break
        text = html.unescape(unquote(text, errors="replace"))
    return text


def spell_umlauts(text: str) -> str:
    """Return a text with umlauts as two letters (``Mueller``, ``Oeresund``, ``Aarhus``)."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_UMLAUTS)


def drop_apostrophes(text: str) -> str:
    """Return a text with the letters around an apostrophe joined: ``O'Neal`` to ``ONeal``, ``Xi'an`` to ``Xian``."""
    return _APOSTROPHE.sub("", POSSESSIVE.sub("", text))


@lru_cache(maxsize=64)
def list_readings(text: str, numbered: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return every reading of a text as folded words, the plain one first.

    Cached: a dozen checks read the same text.
    """
    texts = [text, unescape(text)]
    texts += [spell_umlauts(given) for given in texts]
    # The small Greek nu looks like v, and its capital like N, by which it is folded.
    texts += [given.replace("ν", "v") for given in texts if "ν" in given]
    texts += [drop_apostrophes(given) for given in texts if _APOSTROPHE.search(given)]
    readings = [tuple(split_bare_words(given)) for given in dict.fromkeys(texts)]
    for words in tuple(readings):
        readings.extend(_reread(words))
    if numbered:
        readings += [write_numerals(words) for words in readings]
    return tuple(dict.fromkeys(readings))


def write_numerals(words: Sequence[str]) -> tuple[str, ...]:
    """Return folded words with small numbers in digits, whether Roman, spelled or ordinal."""
    pairs = zip(words, [*words[1:], ""], strict=False)
    # "the" goes before a number: Henry the Eighth.
    return tuple(_NUMERALS.get(word, word) for word, after in pairs if word != "the" or after not in _NUMERALS)


def _reread(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if any(len(first) == len(second) == 1 for first, second in pairwise(words)):
        yield tuple(_join_letters(words))
    if any(_is_mixed(word) for word in words):
        for letters in _DIGITS_AS_LETTERS:
            yield tuple(word.translate(letters) if _is_mixed(word) else word for word in words)


def _join_letters(words: Sequence[str]) -> Iterator[str]:
    run = ""
    for word in (*words, ""):
        if len(word) == 1:
            run += word
            continue
        if run:
            yield run
        run = ""
        if word:
            yield word


def _is_mixed(word: str) -> bool:
    return not word.isalpha() and sum(map(str.isalpha, word)) >= _MIN_LETTERS and any(map(str.isdigit, word))


MAX_SHORT = 2
_MOST_FLAGS = 60
_REGIONAL = range(0x1F1E6, 0x1F200)
_OPENERS = frozenset(
    "a according after all an and are as at be before by did do does during each every for from had has have he her "
    "his how i if in into is it its many most name near no not of off on one or our over she since so some such than "
    "that the their there these they this those to under until up us was we were what when where which while who whom "
    "whose why will with you your".split()
)
"""Words that begin sentences, where a capital is no sign of a name."""
_NO_INITIALS = frozenset("AC AD AM BC BCE CE CEO DC DNA GDP PM TV UK US USA UTC".split())
"""Initials that questions use as words; a node with such a name lists it among its names."""


def list_initials(title: str) -> tuple[str, ...]:
    """Return the initials of a title of capitalised words: ``U.N.``, ``U. N.``, and ``BBC`` from three words on."""
    letters = "".join(word[0] for word in re.findall(r"[^\W\d_]+", title) if word[0].isupper())
    if len(letters) < MAX_SHORT or letters in _NO_INITIALS or is_common_word(letters.lower()):
        return ()
    dotted = (".".join(letters) + ".", ". ".join(letters) + ".")
    return dotted if len(letters) == MAX_SHORT or not set(letters) - set("IVXLCDM") else (*dotted, letters)


def spell_short(name: str) -> tuple[str, ...]:
    """Return a short name with and without dots and spaces between its capitals: ``UN``, ``U.N.`` and ``U. N.``."""
    letters = name.replace(".", "").replace(" ", "")
    if len(letters) == MAX_SHORT and letters.isalpha() and letters.isupper():
        return name, letters, f"{letters[0]}.{letters[1]}.", f"{letters[0]}. {letters[1]}."
    return (name,)


def stands_in(name: str, text: str) -> bool:
    """Say whether a name stands in a text letter by letter, not inside a longer word or as a sentence's first word."""
    place = text.find(name)
    while place >= 0:
        before, after = text[max(0, place - 1) : place], text[place + len(name) : place + len(name) + 1]
        inside = (before.isalnum() and name[0].isalnum()) or (after.isalnum() and name[-1].isalnum())
        if not (inside or _opens(name, text, place) or _splits_flag(text, place)):
            return True
        place = text.find(name, place + 1)
    return False


def _opens(name: str, text: str, place: int) -> bool:
    if name.lower() not in _OPENERS or (len(name) > 1 and name.isupper()):
        return False
    before = text[max(0, place - 8) : place].rstrip()
    return not before or before[-1] in '.?!:;"“”(«'


def _splits_flag(text: str, place: int) -> bool:
    start = place
    while start and ord(text[start - 1]) in _REGIONAL and place - start <= _MOST_FLAGS:
        start -= 1
    return (place - start) % 2 == 1 and ord(text[place]) in _REGIONAL


LeakKind = Literal["name", "partial", "exact"]

_MIN_PARTIAL = 4
_MIN_JOINED = 6
_MAX_JOINED = 60
_PERSON_WORDS = range(2, 5)
_ARTICLE = re.compile(r"^\W*the\W+", re.IGNORECASE)
_SELECTORS = re.compile("[\ufe0e\ufe0f]")


@dataclass(frozen=True, slots=True)
class Leak:
    """One name found in the text."""

    node: int
    """Index of the name's list."""
    name: str
    found: str
    """The words that matched, folded; for ``exact`` the name as it stands."""
    kind: LeakKind
    """``name``: a whole name. ``partial``: a rare word of the title. ``exact``: a short or common name."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    words: tuple[str, ...]
    node: int
    name: str
    kind: LeakKind


@dataclass(slots=True)
class LeakIndex:
    """The names of a question's nodes. Made by :func:`build_leak_index`."""

    phrases: dict[str, list[_Phrase]] = field(default_factory=dict)
    """By first word; found in the plural too."""
    joined: dict[str, list[_Phrase]] = field(default_factory=dict)
    """By all letters joined: found whatever separates the words."""
    exact: dict[tuple[int, str, str], None] = field(default_factory=dict)
    """Node, name and spelling of names that match letter by letter only."""
    unspaced: dict[tuple[int, str, str], None] = field(default_factory=dict)
    """Node, name and folded form in scripts without spaces between words."""
    numbered: bool = False
    """Whether a name contains a number that may be spelled differently."""
    longest: int = 0
    """Letters of the longest joined name."""
    starts: set[str] = field(default_factory=set)
    """First letters of joined names."""

    def find(self, text: str) -> tuple[Leak, ...]:
        """Return every leak once, exact ones last."""
        leaks: dict[Leak, None] = {}
        for words in list_readings(text, self.numbered):
            for place, word in enumerate(words):
                leaks.update(dict.fromkeys(self._match_at(words, place)))
                if word[0] in self.starts:
                    leaks.update(dict.fromkeys(self._match_joined(words, place)))
        return (*leaks, *self._find_letters(text)) if self.exact or self.unspaced else tuple(leaks)

    def _find_letters(self, text: str) -> Iterator[Leak]:
        plain = unescape(text)
        cased, marks = fold_cased(plain), _SELECTORS.sub("", plain)
        for node, name, form in self.exact:
            if stands_in(form, cased if any(map(str.isalnum, form)) else marks):
                yield Leak(node, name, name, "exact")
        folded = fold_name(plain).replace(" ", "") if self.unspaced else ""
        for node, name, form in self.unspaced:
            if form in folded:
                yield Leak(node, name, name, "name")

    def _match_at(self, words: Sequence[str], place: int) -> Iterator[Leak]:
        for first in list_singulars(words[place]):
            for phrase in self.phrases.get(first, ()):
                span = words[place : place + len(phrase.words)]
                if len(span) == len(phrase.words) and all(map(_is_form_of, span[1:], phrase.words[1:])):
                    yield Leak(phrase.node, phrase.name, " ".join(span), phrase.kind)

    def _match_joined(self, words: Sequence[str], place: int) -> Iterator[Leak]:
        joined = ""
        for end in range(place, len(words)):
            joined += words[end]
            if len(joined) > self.longest + 2:
                return
            if len(joined) < _MIN_JOINED:
                continue
            for form in list_singulars(joined):
                for phrase in self.joined.get(form, ()):
                    yield Leak(phrase.node, phrase.name, " ".join(words[place : end + 1]), phrase.kind)

    def add_name(self, node: int, name: str, words: Sequence[str]) -> None:
        """Add a name that matches as whole words."""
        self._add(_Phrase(tuple(words), node, name, "name"))
        if words[-1].endswith("s"):
            single = words[-1][:-1]
            if len(single) >= _MIN_PARTIAL and not single.endswith("s") and not is_common_word(single):
                self._add(_Phrase((*words[:-1], single), node, name, "name"))
        digits = write_numerals(words) if len(words) > 1 else tuple(words)
        if digits != tuple(words) or (len(words) > 1 and any(map(str.isdigit, words))):
            self.numbered = True
            self._add(_Phrase(digits, node, name, "name"))

    def add_partials(self, node: int, title: str, words: Sequence[str], ordinary: Callable[[str], bool]) -> None:
        """Add the rare ones among the words of a title."""
        for word in words:
            if len(word) >= _MIN_PARTIAL and word.isalpha() and not ordinary(word):
                self._add(_Phrase((word,), node, title, "partial"))

    def add_exact(self, node: int, name: str) -> None:
        """Add a name that matches letter by letter only; a single punctuation mark is skipped."""
        for spelling in spell_short(name):
            form = fold_cased(spelling) if any(map(str.isalnum, spelling)) else _SELECTORS.sub("", spelling)
            if form.strip() and not (len(form) == 1 and unicodedata.category(form)[0] == "P"):
                self.exact[node, name, form] = None

    def add_unspaced(self, node: int, name: str) -> None:
        """Add a name of a script without spaces: whole, and each run of two letters or more."""
        runs = [run for run in UNSPACED.findall(name) if len(run) > 1]
        for form in (name, *runs):
            self.unspaced[node, name, fold_name(form).replace(" ", "")] = None

    def _add(self, phrase: _Phrase) -> None:
        self.phrases.setdefault(phrase.words[0], []).append(phrase)
        joined = "".join(phrase.words)
        if _MIN_JOINED <= len(joined) <= _MAX_JOINED:
            self.joined.setdefault(joined, []).append(phrase)
            self.longest = max(self.longest, len(joined))
            self.starts.add(joined[0])


def build_leak_index(
    aliases: Sequence[Sequence[str]],
    common_tokens: frozenset[str] = frozenset(),
    common: Callable[[str], bool] = is_common_word,
) -> LeakIndex:
    """Return the index of the names of several nodes."""
    index = LeakIndex()

    def is_ordinary(word: str) -> bool:
        return word in common_tokens or common(word)

    for node, names in enumerate(aliases):
        cased = bool(names) and names[0] != names[0].lower()
        for name in dict.fromkeys(names):
            if UNSPACED.search(name):
                index.add_unspaced(node, name)
                continue
            for form, words in split_forms(name):
                kind = _classify(form, words, common, cased)
                if kind == "exact":
                    index.add_exact(node, form)
                elif kind == "name":
                    index.add_name(node, form, words)
        if names:
            _add_parts(index, node, names, is_ordinary)
    return index


@lru_cache(maxsize=16384)
def split_forms(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a name's forms, each with its folded words without a leading article.

    Forms: as given, without the qualifier, with umlauts as two letters, without apostrophes. Cached: the names of one
    path are searched for in a dozen texts.
    """
    forms = [name, strip_qualifier(name)] if "(" in name or ", " in name else [name]
    forms += [spelled for form in forms for spelled in (spell_umlauts(form), drop_apostrophes(form))]
    split: dict[tuple[str, ...], str] = {}
    for form in dict.fromkeys(forms):
        words = tuple(split_bare_words(form))
        if len(words) > 1 and words[0] == "the":
            form, words = _ARTICLE.sub("", form), words[1:]
        split.setdefault(words, form)
    return tuple((form, words) for words, form in split.items())


def _add_parts(index: LeakIndex, node: int, names: Sequence[str], ordinary: Callable[[str], bool]) -> None:
    title = strip_qualifier(names[0])
    for form, words in split_forms(title):
        if len(words) > 1:
            index.add_partials(node, form, words, ordinary)
    for initials in list_initials(re.sub(r"\s*\([^()]*\)$", "", names[0])):
        index.exact[node, names[0], fold_cased(initials)] = None
    if not _is_personal(title, ordinary):
        return
    for name in names[1:]:
        # Of another name every word must be rare: Orn Crossing is no person.
        if _is_personal(name, ordinary) and not any(map(ordinary, split_bare_words(name))):
            index.add_partials(node, name, split_bare_words(name)[-1:], ordinary)


def _is_personal(name: str, ordinary: Callable[[str], bool]) -> bool:
    parts = name.split()
    capitalised = all(part[0].isupper() and part.isalpha() for part in parts)
    return len(parts) in _PERSON_WORDS and capitalised and not ordinary(fold_name(parts[-1]))


def _classify(form: str, words: Sequence[str], common: Callable[[str], bool], cased: bool) -> LeakKind | None:
    if not words:
        return "exact" if form.strip() else None
    lower = cased and form == form.lower() and any(char.isalpha() for char in form)
    if lower and (len(words) == 1 or all(len(word) <= MAX_SHORT or common(word) for word in words)):
        return None
    if sum(map(len, words)) <= MAX_SHORT or (len(words) == 1 and common(words[0])):
        return "exact"
    return "name"


def _is_form_of(found: str, word: str) -> bool:
    return found == word or word in list_singulars(found)


_SUFFIXES = frozenset(
    "an ian ean nian vian ese nese lese ish ist ite ism i ic ical ine er esque ard ene ois oise ote ino iot istic "
    "nik ensis ien ienne".split()
)
_MAX_SUFFIX = 5
_MIN_STEM = 4
_ENDINGS = ("a", "e", "i", "o", "u", "y", "s", "ia", "as", "es", "os", "us", "is", "um", "on", "land", "ism", "ist")
"""Endings that a name loses before a suffix: Vienna, Goethe, Naples, Confucius, Belgium, Buddhism."""
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
    words: dict[str, frozenset[str]]
    """Names by demonym."""
    names: frozenset[str]
    cased: frozenset[str]
    """Demonyms that are ordinary words in lower case: ``polish``."""
    ordinary: frozenset[str]
    """Words that look derived and are not: ``organic``, ``tourist``."""


@dataclass(frozen=True, slots=True)
class _Roots:
    stems: dict[str, str]
    """Name by stem."""
    tokens: frozenset[str]
    """The words of the names themselves, which are not demonyms."""
    names: dict[str, str]
    """Name as given by name in the table."""


def find_demonyms(
    text: str, aliases: Sequence[tuple[str, ...]], type_words: frozenset[str] = frozenset()
) -> tuple[DemonymLeak, ...]:
    """Return each word of a text that is a demonym or adjective of a node's name, once a node."""
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
    table = _load_table()
    for place, word in enumerate(words):
        for form in list_singulars(word):
            yield form
            yield _PERSON.sub("", form)
            pair = f"{words[place - 1]} {form}" if place else ""
            if pair in table.words:
                yield pair


def _trace(word: str, roots: _Roots, table: _Table) -> str:
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


_NUMERAL = re.compile(r"[ivx]{1,6}")


def _drop_articles(name: str) -> list[str]:
    return [word for word in split_bare_words(name) if word != "the"]


def _rules(words: Sequence[str], place: int) -> bool:
    return words[place] == "of" and _NUMERAL.fullmatch(words[place - 1]) is not None


def _list_runs(words: Sequence[str]) -> Iterator[str]:
    realm = next((place for place in range(1, len(words)) if _rules(words, place)), len(words))
    for start in range(realm):
        for end in range(start + 1, min(len(words), start + _MAX_PHRASE) + 1):
            yield " ".join(words[start:end])


def _list_stems(word: str) -> Iterator[str]:
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


_COMMA = re.compile(r"(?<![\d,.])(\d{1,3}(?:[. ]\d{3}){0,6}|\d{1,20}),(\d{1,20})(?![\d,])")
_SCALED = re.compile(
    r"(?<![\w.,])(\d{1,20}(?:[.,]\d{1,20})?) ?(k|(?-i:M)|mn|mln|bn|lakh|crore|dozen|score|trillion)(?!\w)", re.I
)
_SCALES = {"k": 1000, "m": 10**6, "mn": 10**6, "mln": 10**6, "bn": 10**9, "lakh": 10**5, "crore": 10**7, "dozen": 12,
           "score": 20, "trillion": 10**12}  # fmt: skip
_POWER = re.compile(r"(?<![\w.,])(\d{1,20}(?:\.\d{1,20})?) ?(?:e\+?|[x×*·] ?10(?:\^| ?\*\* ?)?)(\d{1,2})(?!\d)", re.I)
_INDIAN = re.compile(r"(?<![\d,])\d{1,2}(?:,\d{2}){1,6},\d{3}(?![\d,])")
_MARKED = re.compile(r"(?<![\d_])\d{1,3}(?:[_·˙٬]\d{3}){1,10}(?![\d_])")
_SPACED = re.compile(r"(?<![\w.,])\d(?:[ -]\d){2,20}(?![\w])")
_FRACTION = re.compile(r"(?<![\d/.,])(?:(\d{1,9})[ -])?(\d{1,4}) ?[/⁄] ?([1-9]\d{0,3})(?![\d/])")
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_LETTERED = re.compile(r"(?<!\w)(?=[OoIl]*\d[\dOoIl]*[OoIl]|[OoIl]+\d)[\dOoIl]{2,20}(?!\w)")
_LETTERS = str.maketrans("OoIl", "0011")
_LOW_ROMAN = re.compile(r"(?<!\w)[ivxlcdm]{5,20}(?!\w)")
_TENTHS = {"twent": "twenty", "thirt": "thirty", "fort": "forty", "fift": "fifty", "sixt": "sixty", "sevent": "seventy",
           "eight": "eighty", "ninet": "ninety"}  # fmt: skip
_ORDINALS = {f"{stem}ieth": ten for stem, ten in _TENTHS.items()} | {
    f"{word}th": word for word in ("hundred", "thousand", "million", "billion")
}
_PARTS = {"half": Decimal("0.5"), "quarter": Decimal("0.25"), "quarters": Decimal("0.75")}
_TIMES = {"twice": 2, "thrice": 3, "dozen": 12}
_NOUGHTS = frozenset(("oh", "nought", "aught"))
_STONE = re.compile(r"(?<![\w.,])(\d{1,4}) ?(?:stones?|st)(?: (\d{1,2}) ?(?:lbs?|pounds?))?(?!\w)", re.I)
_INCHES = re.compile(
    r"(?<![\w.,])(\d{1,5}) ?(?:ft|feet|foot|['′’])"
    r"(?:,? ?(?:and )?(\d{1,2}(?:\.\d{1,3})?) ?(?:inch|inches|in|[\"″”]|''))?(?!\w)",
    re.IGNORECASE,
)
_ONES = "one two three four five six seven eight nine".split()
_FIRST = "first second third fourth fifth sixth seventh eighth ninth".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_DAY_WORDS = (
    *zip(_ONES, _FIRST, strict=True),
    *((teen, "twelfth" if teen == "twelve" else f"{teen}th") for teen in _TEENS),
    ("twenty", "twentieth"),
    *((f"twenty {one}", f"twenty {first}") for one, first in zip(_ONES, _FIRST, strict=True)),
    ("thirty", "thirtieth"),
    ("thirty one", "thirty first"),
)
"""Days of a month in words, the first at 0."""
_STOPS = re.compile('[?!:;"“”]')
_LONGEST_RUN = 16
"""Words of a spelled number."""
_ROUNDINGS = tuple(Decimal(step).scaleb(-1) for step in range(-5, 6))
_SHORT_YEAR = re.compile(r"(?<![\w/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{2})(?![\w/.-]\d)(?!\d)")


def find_numbers(text: str) -> set[Decimal]:
    """Return the magnitude of every number in a text, in every reading.

    Digits with any separators, decimal commas, fractions, powers of ten and scales; words, ordinals and dozens; Roman
    numerals.
    """
    text = _plain(text)
    words = _prepare_words(split_bare_words(text))
    spelled = find_spelled_numbers(words) | find_roman_numbers(text)
    found = find_digits(text) | {Decimal(number) for number in spelled}
    if any(map(str.isdigit, text)):
        found.update(_read_rare_digits(text))
    found.update(_read_word_parts(words))
    for match in _LOW_ROMAN.findall(text):
        found.update(map(Decimal, find_roman_numbers(match.upper())))
    return found


def find_value(text: str, answer: Answer) -> str:
    """Return the words of a text that write the number or date of an answer, or "".

    A number matches with any unit; a measure also in another unit, if equal after rounding as written
    (:func:`pipelines.graph.values.compare_measures`); a share also as a percentage. Of a date the year matches alone,
    and the day with its month.
    """
    if answer.type == "number":
        number = parse_number(answer.value)
        return "" if number is None else _find_number(text, Number(number.value, answer.unit))
    date = parse_date(answer.value) if answer.type == "date" else None
    return "" if date is None else _find_date(text, date)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", _VULGAR.sub(r" \g<0>", strip_invisible(text)))


def _find_number(text: str, number: Number) -> str:
    value = Decimal(number.value).copy_abs()
    wanted = {value, value / 100} if number.unit == "%" else {value}
    numbers = find_numbers(text)
    if wanted & numbers:
        return format_decimal(value)
    plain = _plain(text)
    if not number.unit and 0 < value < 1 and value * 100 in numbers and re.search(r"%|per ?cent", plain, re.IGNORECASE):
        return f"{format_decimal(value * 100)}%"
    if number.unit:
        for measure in _list_measures(plain):
            if measure.unit not in ("", number.unit) and _is_conversion(measure, number):
                return f"{measure.value} {measure.unit}"
    return ""


def _list_measures(text: str) -> Iterator[Number]:
    for feet, inches in _INCHES.findall(text):
        yield Number(format_decimal(Decimal(feet) * 12 + Decimal(inches or 0)), "in") if inches else Number(feet, "ft")
    for stones, pounds in _STONE.findall(text):
        yield Number(str(int(stones) * 14 + int(pounds or 0)), "lb")
    yield from (spot.value for spot in find_measures(_STOPS.sub(" , ", text)))
    yield from (spot.value for spot in find_measures(_write_digits(text)))


def _write_digits(text: str) -> str:
    words = (*_prepare_words(split_bare_words(text)), "")
    shown: list[str] = []
    run: list[str] = []
    for place, word in enumerate(words):
        if _counts(word) or (word == "and" and run):
            run.append(word)
        elif run:
            shown += [str(max(find_spelled_numbers(run))), *words[place : place + 3], ";"]
            run = []
    return " ".join(shown)


def _is_conversion(measure: Number, number: Number) -> bool:
    likeness = compare_measures(measure, number)
    if likeness != "close":
        return likeness == "same"
    value = Decimal(measure.value)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or value.copy_abs() < 10:
        return False
    if _round_digits(Decimal(number.value), len(value.as_tuple().digits)) == _round_digits(value, 0):
        return True
    steps = (Number(format_decimal(value + step.scaleb(exponent)), measure.unit) for step in _ROUNDINGS)
    return any(compare_measures(step, number) == "same" for step in steps)


def _round_digits(value: Decimal, count: int) -> str:
    rounded = Context(prec=count).plus(value) if count else value
    return "".join(map(str, rounded.as_tuple().digits)).rstrip("0")


def _find_date(text: str, date: Date) -> str:
    year = date.year if date.year > 0 else 1 - date.year
    plain = _plain(text)
    if Decimal(year) in find_numbers(text) or re.search(rf"(?<!\d){year}(?!\d)", plain):
        return str(year)
    if re.search(rf"(?<![\w’'])['’‘]{year % 100:02d}(?!\d)", plain) and year >= 1000:
        return f"'{year % 100:02d}"
    return _find_day(plain, date, year) if date.day else ""


def _find_day(text: str, date: Date, year: int) -> str:
    words = " ".join(split_bare_words(text))
    month = MONTHS[date.month - 1].lower()
    name = f"{month[:3]}(?:{month[3:]}|t)?" if date.month == 9 else f"{month[:3]}(?:{month[3:]})?"
    for day in (f"0?{date.day}", render_ordinal(date.day), *_DAY_WORDS[date.day - 1]):
        pattern = rf"(?<!\w)(?:{day} (?:day )?(?:of )?(?:the month of )?{name}|{name} (?:the )?{day})(?!\w)"
        if match := re.search(pattern, words):
            return match.group()
    if match := re.search(rf"(?<!\d){year}{date.month:02d}{date.day:02d}(?!\d)", text):
        return match.group()
    shapes = {
        (date.day, date.month, year % 100),
        (date.month, date.day, year % 100),
        (year % 100, date.month, date.day),
    }
    for match in _SHORT_YEAR.finditer(text):
        if (int(match[1]), int(match[3]), int(match[4])) in shapes:
            return match.group()
    return ""


def _prepare_words(words: Sequence[str]) -> list[str]:
    numbers = [_ORDINALS.get(word, word) for word in words]
    read = [
        "hundred" if word in _NOUGHTS and place and _counts("".join(numbers[place + 1 : place + 2])) else word
        for place, word in enumerate(numbers)
    ]
    return list(_cut_runs(read)) if len(read) > _LONGEST_RUN else read


def _cut_runs(words: Sequence[str]) -> Iterator[str]:
    for counts, group in groupby(words, key=lambda word: word == "and" or _counts(word)):
        run = list(group)
        if not counts or len(run) <= _LONGEST_RUN:
            yield from run
            continue
        for start in range(0, len(run), _LONGEST_RUN // 2):
            yield from run[start : start + _LONGEST_RUN]
            yield ""


@lru_cache(maxsize=4096)
def _counts(word: str) -> bool:
    return bool(find_spelled_numbers([word]))


def _read_rare_digits(text: str) -> Iterator[Decimal]:
    for whole, fraction in _COMMA.findall(text):
        yield Decimal(re.sub(r"\D", "", whole) + "." + fraction)
    for value, scale in _SCALED.findall(text):
        yield Decimal(value.replace(",", ".")) * _SCALES[scale.lower()]
    for value, power in _POWER.findall(text):
        yield Decimal(value).scaleb(int(power))
    for pattern in (_INDIAN, _MARKED, _SPACED):
        for number in pattern.findall(text):
            yield Decimal(re.sub(r"\D", "", number))
    for whole, over, under in _FRACTION.findall(text):
        yield Decimal(whole or 0) + Decimal(over) / Decimal(under)
    for number in _LETTERED.findall(text):
        yield Decimal(number.translate(_LETTERS))


def _read_word_parts(words: Sequence[str]) -> Iterator[Decimal]:
    for place, word in enumerate(words):
        if word not in _PARTS and word not in _TIMES:
            continue
        before = [part for part in words[max(0, place - 3) : place] if part not in ("and", "a")]
        counts = find_spelled_numbers(before[-1:]) if before else set()
        if word in _PARTS:
            yield _PARTS[word]
            yield from (count + _PARTS[word] for count in counts)
        elif word in _TIMES:
            yield Decimal(_TIMES[word])
            yield from (
                Decimal(count * _TIMES[word]) for count in find_spelled_numbers(words[max(0, place - 1) : place])
            )


_KEPT_INDEXES = 64


def find_common_tokens(texts: Iterable[str], min_count: int = 1) -> frozenset[str]:
    """Return the folded words that occur in at least ``min_count`` of the texts.

    Over the type words of a path these are words that a question may use for its nodes; over the titles of a corpus,
    with a higher count, words that a title may share with others (research/quality.md L2).
    """
    counts = Counter(word for text in texts for word in set(split_bare_words(text)))
    return frozenset(word for word, count in counts.items() if count >= min_count)


def list_type_words(nodes: Sequence[PathNode]) -> frozenset[str]:
    """Return the words of the nodes' types, which a question may use without leaking a title."""
    return find_common_tokens(node.type for node in nodes)


def check_names(
    text: str, aliases: Sequence[Sequence[str]], common_tokens: frozenset[str] = frozenset()
) -> CheckResult:
    """FAIL (``alias-leak``) if the text names a node; UNKNOWN without a text or for a node without a name."""
    unknown = _find_nothing(text, aliases)
    if unknown is not None:
        return unknown
    leaks = _index_names(_freeze(aliases), common_tokens).find(text)
    if not leaks:
        return PASSED
    shown = "; ".join(f"node {leak.node}: {leak.name!r} as {leak.found!r} ({leak.kind})" for leak in leaks[:3])
    return CheckResult("FAIL", "alias-leak", shown)


def check_demonyms(
    text: str, aliases: Sequence[Sequence[str]], type_words: frozenset[str] = frozenset()
) -> CheckResult:
    """FAIL (``demonym-leak``) when the text holds a demonym or adjective of a node's name (research/quality.md L3)."""
    unknown = _find_nothing(text, aliases)
    if unknown is not None:
        return unknown
    found = find_demonyms(text, _freeze(aliases), type_words)
    shown = "; ".join(f"node {leak.node}: {leak.found!r} of {leak.name!r}" for leak in found[:3])
    return CheckResult("FAIL", "demonym-leak", shown) if found else PASSED


def check_answer(text: str, answer: Answer, common_tokens: frozenset[str] = frozenset()) -> CheckResult:
    """FAIL (``answer-leak``) if the text holds the answer in any form; UNKNOWN without a text or a readable answer.

    Searched are every accepted form as whole words; a number in digits, words or Roman numerals, with any unit, and its
    measure in another unit; of a date the year in the same ways, and day with month; rare words, initials and demonyms
    of a name.
    """
    if not text.strip():
        return CheckResult("UNKNOWN", "no-text", "the text is empty")
    if not _can_read(answer):
        return CheckResult("UNKNOWN", "answer-leak", f"{answer.value!r} is no {answer.type} to look for")
    found = _find_answer(text, answer, common_tokens)
    return CheckResult("FAIL", "answer-leak", f"{answer.value!r} as {found!r}") if found else PASSED


def _find_nothing(text: str, aliases: Sequence[Sequence[str]]) -> CheckResult | None:
    if not text.strip():
        return CheckResult("UNKNOWN", "no-text", "the text is empty")
    if not aliases or not all(any(name.strip() for name in names) for names in aliases):
        return CheckResult("UNKNOWN", "no-names", "a node has no name to look for")
    return None


def _freeze(aliases: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, aliases))


@lru_cache(maxsize=_KEPT_INDEXES)
def _index_names(aliases: tuple[tuple[str, ...], ...], common_tokens: frozenset[str]) -> LeakIndex:
    return build_leak_index(aliases, common_tokens)


def _can_read(answer: Answer) -> bool:
    if answer.type == "number":
        return parse_number(answer.value) is not None
    return answer.type != "date" or parse_date(answer.value) is not None


def _find_answer(text: str, answer: Answer, common_tokens: frozenset[str]) -> str:
    forms = tuple(dict.fromkeys((answer.surface, answer.value, *answer.aliases)))
    leaks = _index_answer(forms, answer.type, common_tokens).find(text)
    if leaks:
        return leaks[0].found
    if answer.type == "name":
        names = tuple(form for form in forms if form.strip())
        return next((leak.found for leak in find_demonyms(text, (names,), common_tokens)), "")
    return find_value(unescape(text), answer)


@lru_cache(maxsize=_KEPT_INDEXES)
def _index_answer(forms: tuple[str, ...], type_: str, common_tokens: frozenset[str]) -> LeakIndex:
    index = LeakIndex()
    literal = type_ in ("date", "number")
    for form, words in (split for given in forms for split in split_forms(given)):
        if literal and any(map(str.isdigit, form)):
            continue
        if UNSPACED.search(form):
            index.add_unspaced(0, form)
        elif sum(map(len, words)) <= MAX_SHORT:
            index.add_exact(0, form)
        else:
            index.add_name(0, form, words)
    if type_ == "name":
        title_words = split_bare_words(strip_qualifier(forms[0]))
        if len(title_words) > 1:
            index.add_partials(0, forms[0], title_words, lambda word: word in common_tokens or is_common_word(word))
        for initials in list_initials(forms[0]):
            index.add_exact(0, initials)
    return index
