"""Leaks: a name of a node, or the answer in any writing, inside the text of a question or the name of its picture.

What is looked for stands in :mod:`pipelines.checks.name_index`, :mod:`pipelines.checks.demonyms` and
:mod:`pipelines.checks.answer_values`; here it becomes PASS, FAIL or UNKNOWN.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pipelines.checks.answer_values import find_numbers, find_value
from pipelines.checks.demonyms import find_demonyms
from pipelines.checks.name_index import Leak, LeakIndex, build_leak_index, find_leaks, split_forms
from pipelines.checks.readings import UNSPACED, list_singulars, split_words, unescape
from pipelines.checks.spellings import MAX_SHORT, list_initials
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.titles import strip_qualifier
from pipelines.names import is_common_word
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import parse_number
from schemas.proofs import Answer, PathNode

__all__ = [
    "Leak", "LeakIndex", "build_leak_index", "check_answer", "check_demonyms", "check_file_names", "check_names",
    "find_common_tokens", "find_leaks", "find_numbers", "list_singulars", "list_type_words", "split_words",
]  # fmt: skip

_KEPT_INDEXES = 64
_DIGITS = r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
_CAMELS = (
    re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|" + _DIGITS),
    re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z][A-Z])(?=[a-z])|" + _DIGITS),
)
"""Where words begin in ``AustraliaZoo``, ``BBCTower`` and ``oldKELMORview``; the last two cannot be told apart."""
_ADDRESS = re.compile(r"[/?=&+_#:.,;\s-]+")
_STORE = re.compile(
    r"/[0-9a-f]/[0-9a-f]{2}/|(?<![^\W_])\d{1,5}px(?![^\W_])|\b[0-9a-f]{12,}\b|\.[A-Za-z]{3,4}(?=$|[/?#])"
)
"""What picture stores put into addresses: folders named by a hash, sizes in pixels, digests, endings."""


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


def check_names(
    text: str, aliases: Sequence[Sequence[str]], common_tokens: frozenset[str] = frozenset()
) -> CheckResult:
    """FAIL (``alias-leak``) when the text names a node; UNKNOWN when there is no text or a node without any name."""
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
    """FAIL (``demonym-leak``) when the text holds a demonym or adjective of a node's name (research/quality.md L3).

    Args:
        text: question or descriptor.
        aliases: names by node, the title first.
        type_words: folded words that a question may say of its nodes because they are their types.

    Returns:
        UNKNOWN when there is no text or a node without any name.
    """
    unknown = _find_nothing(text, aliases)
    if unknown is not None:
        return unknown
    found = find_demonyms(text, _freeze(aliases), type_words)
    shown = "; ".join(f"node {leak.node}: {leak.found!r} of {leak.name!r}" for leak in found[:3])
    return CheckResult("FAIL", "demonym-leak", shown) if found else PASSED


def check_answer(text: str, answer: Answer, common_tokens: frozenset[str] = frozenset()) -> CheckResult:
    """FAIL (``answer-leak``) when the text holds the answer in any form; UNKNOWN without a text or a readable answer.

    Looked for are every accepted form as whole words; a number in digits, words or Roman numerals, whatever its unit,
    and its measure in another unit; of a date the year in the same ways, and day with month; rare words, initials and
    demonyms of a name.
    """
    if not text.strip():
        return CheckResult("UNKNOWN", "no-text", "the text is empty")
    if not _can_read(answer):
        return CheckResult("UNKNOWN", "answer-leak", f"{answer.value!r} is no {answer.type} to look for")
    found = _find_answer(text, answer, common_tokens)
    return CheckResult("FAIL", "answer-leak", f"{answer.value!r} as {found!r}") if found else PASSED


def check_file_names(
    names: Sequence[str],
    aliases: Sequence[Sequence[str]],
    answer: Answer,
    known_words: frozenset[str] = frozenset(),
) -> CheckResult:
    """FAIL (``file-leak``) when a name that travels with the picture tells a node or the answer (L6).

    Args:
        names: file name, addresses and description of the picture at its source.
        aliases: names of every node but the anchor. The anchor's own name is known to stand in its file's name;
            releases store the picture under its sha256, so that no reader sees it.
        answer: must not be told either.
        known_words: folded words that give nothing away: type words, and those of the anchor's own names.

    Returns:
        UNKNOWN when there is nothing to look in, or a node without any name.
    """
    texts = [reading for name in names for reading in _read_file_name(name)]
    unknown = _find_nothing(" ".join(texts), aliases) if aliases or not texts else None
    if unknown is not None:
        return unknown
    index = _index_names(_freeze(aliases), known_words)
    for text in texts:
        leaks = index.find(text) or find_demonyms(text, _freeze(aliases), known_words)
        if leaks:
            return CheckResult("FAIL", "file-leak", f"node {leaks[0].node}: {leaks[0].name!r} as {leaks[0].found!r}")
        result = check_answer(text, answer, known_words)
        if not result.passed:
            return CheckResult(result.outcome, "file-leak", result.detail)
    return PASSED


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
    """Return the index of a path's names, kept because a dozen texts of one path are looked through."""
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
    """Return the index of an answer's accepted forms; unlike names, ordinary words count.

    Forms of dates and numbers that hold digits are left to :func:`find_value`.
    """
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
        title_words = split_words(strip_qualifier(forms[0]))
        if len(title_words) > 1:
            index.add_partials(0, forms[0], title_words, lambda word: word in common_tokens or is_common_word(word))
        for initials in list_initials(forms[0]):
            index.add_exact(0, initials)
    return index


def _read_file_name(name: str) -> tuple[str, ...]:
    """Return a file name, address or description as prose: unescaped, without the store's marks, camel case apart."""
    plain = _STORE.sub(" ", unescape(name.replace("+", " ")))
    if not plain.strip():
        return ()
    bare = _ADDRESS.sub(" ", plain)
    texts = (plain, *(camel.sub(" ", bare) for camel in _CAMELS))
    return tuple(dict.fromkeys(text for text in texts if text.strip()))
