"""The names of a question's nodes, ready to be looked for in many texts.

Matching is on whole words of folded text; substring matching is both leaky and noisy (research/quality.md 1B). Names
come in one list a node, and **the first name of a list is the node's title**.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pipelines.checks.readings import (
    UNSPACED,
    drop_apostrophes,
    list_readings,
    list_singulars,
    spell_umlauts,
    split_words,
    unescape,
    write_numerals,
)
from pipelines.checks.spellings import MAX_SHORT, list_initials, spell_short, stands_in
from pipelines.corpus.titles import strip_qualifier
from pipelines.names import fold_cased, fold_name, is_common_word

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
    """By all letters in a row: found however the words are set apart."""
    exact: dict[tuple[int, str, str], None] = field(default_factory=dict)
    """Node, name and spelling for names that only count letter by letter."""
    unspaced: dict[tuple[int, str, str], None] = field(default_factory=dict)
    """Node, name and folded form in scripts without spaces between words."""
    numbered: bool = False
    """Whether some name holds a number that may be written otherwise."""
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
        """Add a name that is looked for as whole words."""
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
        """Add a name that only counts letter by letter; a single punctuation mark is none."""
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
    """Return the index of the names of several nodes.

    Args:
        aliases: names by node, the title first.
        common_tokens: folded words that give nothing away here: type words, words frequent in titles.
        common: says whether a folded word is an ordinary one; a name of one ordinary word counts letter by letter only.
    """
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


def find_leaks(
    text: str,
    aliases: Sequence[Sequence[str]],
    common_tokens: frozenset[str] = frozenset(),
    common: Callable[[str], bool] = is_common_word,
) -> tuple[Leak, ...]:
    """Return every name that a text gives away; for many texts build the index once with :func:`build_leak_index`."""
    return build_leak_index(aliases, common_tokens, common).find(text)


@lru_cache(maxsize=16384)
def split_forms(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a name in the forms to look for, each with its folded words without a leading article.

    Besides the name: without its qualifier, with umlauts as two letters, with apostrophes left out. Kept because the
    names of one path are looked for in a dozen texts: candidates, rewrites, the final question.
    """
    forms = [name, strip_qualifier(name)] if "(" in name or ", " in name else [name]
    forms += [spelled for form in forms for spelled in (spell_umlauts(form), drop_apostrophes(form))]
    split: dict[tuple[str, ...], str] = {}
    for form in dict.fromkeys(forms):
        words = tuple(split_words(form))
        if len(words) > 1 and words[0] == "the":
            form, words = _ARTICLE.sub("", form), words[1:]
        split.setdefault(words, form)
    return tuple((form, words) for words, form in split.items())


def _add_parts(index: LeakIndex, node: int, names: Sequence[str], ordinary: Callable[[str], bool]) -> None:
    """Add the rare words of the title, the last names of persons who go by others, and the title's initials."""
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
        if _is_personal(name, ordinary) and not any(map(ordinary, split_words(name))):
            index.add_partials(node, name, split_words(name)[-1:], ordinary)


def _is_personal(name: str, ordinary: Callable[[str], bool]) -> bool:
    """Say whether a name is two to four capitalised words, the last of them no ordinary one."""
    parts = name.split()
    capitalised = all(part[0].isupper() and part.isalpha() for part in parts)
    return len(parts) in _PERSON_WORDS and capitalised and not ordinary(fold_name(parts[-1]))


def _classify(form: str, words: Sequence[str], common: Callable[[str], bool], cased: bool) -> LeakKind | None:
    """Say how a name is looked for; None for one that says nothing, such as ``bridge`` beside a capitalised title."""
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
