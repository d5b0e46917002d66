"""Leaks: a name of a node, or the answer in any writing, inside the text of a question.

Matching is on whole words of folded text (:mod:`pipelines.names`); substring matching is both leaky and noisy
(research/quality.md 1B). Names come in one list a node, and **the first name of a list is the node's title**.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.titles import strip_qualifier
from pipelines.names import fold_name, is_common_word, strip_invisible
from pipelines.scoring.dates import MONTHS, parse_date, render_ordinal
from pipelines.scoring.numbers import parse_number
from pipelines.scoring.spelled import find_digits, find_roman_numbers, find_spelled_numbers
from schemas.proofs import Answer, PathNode

LeakKind = Literal["name", "partial", "exact"]

_POSSESSIVE = re.compile(r"['’ʼ`´]s(?![^\W_])", re.IGNORECASE)
_WORDS = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MIN_PARTIAL = 4
_MIN_JOINED = 6
_MAX_SHORT = 2


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


@dataclass(frozen=True, slots=True)
class LeakIndex:
    """The names of a question's nodes, ready to be looked for in many texts."""

    phrases: dict[str, list[_Phrase]]
    """By first word; a phrase of one word is found in the plural too."""
    exact: tuple[tuple[int, str], ...]
    """Node and name for names that only count letter by letter."""
    unspaced: tuple[tuple[int, str], ...]
    """Node and name in scripts without spaces between words."""

    def find(self, text: str) -> tuple[Leak, ...]:
        """Return every leak once, in the order of the text, exact ones last."""
        words = split_words(text)
        leaks = dict.fromkeys(leak for place in range(len(words)) for leak in self._match_at(words, place))
        bare = strip_invisible(text)
        found = [*leaks, *(Leak(node, name, name, "exact") for node, name in self.exact if _stands_in(name, bare))]
        if self.unspaced:
            folded = fold_name(text).replace(" ", "")
            for node, name in self.unspaced:
                if fold_name(name).replace(" ", "") in folded:
                    found.append(Leak(node, name, name, "name"))
        return tuple(found)

    def _match_at(self, words: Sequence[str], place: int) -> Iterator[Leak]:
        for first in list_singulars(words[place]):
            for phrase in self.phrases.get(first, ()):
                span = words[place : place + len(phrase.words)]
                if len(span) == len(phrase.words) and all(map(_is_form_of, span[1:], phrase.words[1:])):
                    yield Leak(phrase.node, phrase.name, " ".join(span), phrase.kind)


def split_words(text: str) -> list[str]:
    """Return the folded words of a text without possessive endings."""
    return _WORDS.findall(fold_name(_POSSESSIVE.sub("", strip_invisible(text))))


def list_singulars(word: str) -> tuple[str, ...]:
    """Return a folded word and what it could be the plural of."""
    if len(word) <= _MIN_PARTIAL or not word.endswith("s") or word.endswith("ss"):
        return (word,)
    if word.endswith("ies"):
        return (word, word[:-1], word[:-3] + "y")
    return (word, word[:-1], word[:-2]) if word.endswith("es") and len(word) > 5 else (word, word[:-1])


def find_common_tokens(texts: Iterable[str], min_count: int = 1) -> frozenset[str]:
    """Return the folded words that stand in at least ``min_count`` of the texts.

    Over the type words of a path this is what a question may say of its nodes; over the titles of a corpus, with a
    higher count, it is what a title may share with others (research/quality.md L2).
    """
    counts = Counter(word for text in texts for word in set(split_words(text)))
    return frozenset(word for word, count in counts.items() if count >= min_count)


def list_type_words(nodes: Sequence[PathNode]) -> frozenset[str]:
    """Return the words that a question may say of its nodes because they are their types: no leak of a title."""
    return find_common_tokens(node.type for node in nodes)


def _is_form_of(found: str, word: str) -> bool:
    return found == word or word in list_singulars(found)


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
    index = LeakIndex({}, (), ())
    exact: dict[tuple[int, str], None] = {}
    unspaced: dict[tuple[int, str], None] = {}
    for node, names in enumerate(aliases):
        cased = bool(names) and names[0] != names[0].lower()
        for name in dict.fromkeys(names):
            if _UNSPACED.search(name):
                unspaced[node, name] = None
                continue
            for form, words in _split_forms(name):
                kind = _classify(form, words, common, cased)
                if kind == "exact":
                    exact.update(dict.fromkeys((node, spelling) for spelling in _spell_short(form)))
                elif kind == "name":
                    _add_name(index, node, form, words)
        if names:
            _add_partials(index, node, names[0], lambda word: word in common_tokens or common(word))
    return LeakIndex(index.phrases, tuple(exact), tuple(unspaced))


def find_leaks(
    text: str,
    aliases: Sequence[Sequence[str]],
    common_tokens: frozenset[str] = frozenset(),
    common: Callable[[str], bool] = is_common_word,
) -> tuple[Leak, ...]:
    """Return every name that a text gives away; for many texts build the index once with :func:`build_leak_index`."""
    return build_leak_index(aliases, common_tokens, common).find(text)


def check_names(
    text: str, aliases: Sequence[Sequence[str]], common_tokens: frozenset[str] = frozenset()
) -> CheckResult:
    """FAIL (``alias-leak``) when the text names a node; UNKNOWN when there is no text or a node without any name."""
    if not text.strip():
        return CheckResult("UNKNOWN", "no-text", "the text is empty")
    if not aliases or not all(any(name.strip() for name in names) for names in aliases):
        return CheckResult("UNKNOWN", "no-names", "a node has no name to look for")
    leaks = find_leaks(text, aliases, common_tokens)
    if not leaks:
        return PASSED
    shown = "; ".join(f"node {leak.node}: {leak.name!r} as {leak.found!r} ({leak.kind})" for leak in leaks[:3])
    return CheckResult("FAIL", "alias-leak", shown)


def check_answer(text: str, answer: Answer, common_tokens: frozenset[str] = frozenset()) -> CheckResult:
    """FAIL (``answer-leak``) when the text holds the answer in any form; UNKNOWN without a text or a readable answer.

    Looked for are every accepted form as whole words; a number in digits with or without separators, in words or Roman
    numerals, whatever its unit; of a date the year in the same ways, and day with month; rare words of a name.
    """
    if not text.strip():
        return CheckResult("UNKNOWN", "no-text", "the text is empty")
    if not _can_read(answer):
        return CheckResult("UNKNOWN", "answer-leak", f"{answer.value!r} is no {answer.type} to look for")
    found = _find_phrases(text, answer, common_tokens) or _find_value(text, answer)
    return CheckResult("FAIL", "answer-leak", f"{answer.value!r} as {found!r}") if found else PASSED


def find_numbers(text: str) -> set[Decimal]:
    """Return the size (sign dropped) of every number in a text: digits, words and Roman numerals."""
    text = unicodedata.normalize("NFKC", strip_invisible(text))
    spelled = find_spelled_numbers(split_words(text)) | find_roman_numbers(text)
    return find_digits(text) | {Decimal(number) for number in spelled}


def _can_read(answer: Answer) -> bool:
    if answer.type == "number":
        return parse_number(answer.value) is not None
    return answer.type != "date" or parse_date(answer.value) is not None


def _find_phrases(text: str, answer: Answer, common_tokens: frozenset[str]) -> str:
    """Return the first accepted form that stands in the text; unlike names, ordinary words count.

    Forms of dates and numbers that hold digits are left to :func:`_find_value`.
    """
    index, exact = LeakIndex({}, (), ()), []
    forms = dict.fromkeys((answer.surface, answer.value, *answer.aliases))
    literal = answer.type in ("date", "number")
    for form in (form for form in forms if not (literal and any(char.isdigit() for char in form))):
        words = split_words(form)
        if sum(map(len, words)) <= _MAX_SHORT or _UNSPACED.search(form):
            exact.append((0, form))
        else:
            _add_name(index, 0, form, words)
    if answer.type == "name":
        _add_partials(index, 0, answer.value, lambda word: word in common_tokens or is_common_word(word))
    leaks = LeakIndex(index.phrases, tuple(pair for pair in exact if pair[1].strip()), ()).find(text)
    return leaks[0].found if leaks else ""


def _find_value(text: str, answer: Answer) -> str:
    number = parse_number(answer.value) if answer.type == "number" else None
    if number is not None:
        return answer.value if Decimal(number.value).copy_abs() in find_numbers(text) else ""
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is None:
        return ""
    year = date.year if date.year > 0 else 1 - date.year
    if Decimal(year) in find_numbers(text):
        return str(year)
    if not date.day:
        return ""
    words = " ".join(split_words(text))
    month = MONTHS[date.month - 1].lower()
    name = f"{month[:3]}(?:{month[3:]})?"
    for day in (f"0?{date.day}", render_ordinal(date.day)):
        pattern = rf"(?<!\w)(?:{day} (?:of )?{name}|{name} (?:the )?{day})(?!\w)"
        if match := re.search(pattern, words):
            return match.group()
    return ""


def _classify(form: str, words: Sequence[str], common: Callable[[str], bool], cased: bool) -> LeakKind | None:
    """Say how a name is looked for; None for one that says nothing, such as ``bridge`` beside a capitalised title."""
    if not words:
        return "exact" if form.strip() else None
    lower = cased and form == form.lower() and any(char.isalpha() for char in form)
    if lower and (len(words) == 1 or all(len(word) <= _MAX_SHORT or common(word) for word in words)):
        return None
    if sum(map(len, words)) <= _MAX_SHORT or (len(words) == 1 and common(words[0])):
        return "exact"
    return "name"


@lru_cache(maxsize=16384)
def _split_forms(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a name, and the name without its qualifier, each with its folded words.

    Kept because the names of one path are looked for in a dozen texts: candidates, rewrites, the final question.
    """
    forms = (name, strip_qualifier(name)) if "(" in name or ", " in name else (name,)
    return tuple((form, tuple(split_words(form))) for form in dict.fromkeys(forms))


def _spell_short(name: str) -> tuple[str, ...]:
    """Return a short name with and without dots between its capitals: ``UN`` and ``U.N.``."""
    letters = name.replace(".", "")
    if len(letters) == _MAX_SHORT and letters.isalpha() and letters.isupper():
        return name, letters, f"{letters[0]}.{letters[1]}."
    return (name,)


def _add_name(index: LeakIndex, node: int, name: str, words: Sequence[str]) -> None:
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    _add_phrase(index, _Phrase(tuple(words), node, name, "name"))
    joined = "".join(words)
    if len(words) > 1 and len(joined) >= _MIN_JOINED:
        _add_phrase(index, _Phrase((joined,), node, name, "name"))


def _add_partials(index: LeakIndex, node: int, title: str, ordinary: Callable[[str], bool]) -> None:
    words = split_words(strip_qualifier(title))
    for word in words if len(words) > 1 else ():
        if len(word) >= _MIN_PARTIAL and word.isalpha() and not ordinary(word):
            _add_phrase(index, _Phrase((word,), node, title, "partial"))


def _add_phrase(index: LeakIndex, phrase: _Phrase) -> None:
    index.phrases.setdefault(phrase.words[0], []).append(phrase)


def _stands_in(name: str, text: str) -> bool:
    """Say whether a name stands in a text letter by letter, not inside a longer word."""
    place = text.find(name)
    while place >= 0:
        before, after = text[:place][-1:], text[place + len(name) :][:1]
        if not ((before.isalnum() and name[0].isalnum()) or (after.isalnum() and name[-1].isalnum())):
            return True
        place = text.find(name, place + 1)
    return False
