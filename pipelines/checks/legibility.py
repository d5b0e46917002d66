"""Names that can be read in a picture (research/quality.md I3).

What OCR read goes through the leak checks of the question as it is, and then once more as noisy text: letters that look
alike count as one, words may have run together or fallen apart, and of each six letters of a name one may be wrong.
Only the rare words of a name earn it such errors: ``bridge`` alone, or misread, gives nothing away. A number below 100
tells the answer only where it stands alone on its line or before its unit.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

from pipelines.checks.leakage import build_leak_index, check_answer, check_demonyms, check_names, split_bare_words
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.names import is_common_word
from schemas.proofs import Answer

MAX_LETTERS = 20_000
"""Letters of a text that is looked through; more is no photograph but a page."""
LETTERS_AN_ERROR = 6
_MAX_ERRORS = 4
_SMALL = re.compile(r"\d{1,2}")
"""Numbers that stand on signs of all kinds."""
_MIN_PATTERN = 4
_MIN_LOOSE = 8
"""Letters of a name that is found inside a longer word, where OCR saw no space."""
_STROKES = re.compile(r"(?<=[^\W\d_])[|!](?=[^\W\d_])")
_ALIKE = str.maketrans("01i58", "ollsb")
_DIGITS = str.maketrans("OoQDIlLi|!SsBZz", "000011111155822")
_TOKEN = re.compile(r"[^\s.,;:()/-]+")


@dataclass(frozen=True, slots=True)
class _Pattern:
    letters: str
    """Without spaces, letters that look alike as one."""
    errors: int
    """How many may be wrong."""
    source: str
    """Whose name it is, for a reader."""


@dataclass(frozen=True, slots=True)
class _Stream:
    letters: str
    starts: tuple[int, ...]
    """The last one is the end of the text."""
    words: tuple[str, ...]

    def show(self, start: int, end: int) -> tuple[str, ...]:
        return self.words[bisect_right(self.starts, start) - 1 : bisect_left(self.starts, end)]


def check_readable(
    lines: Sequence[str], names: Sequence[Sequence[str]], answer: Answer, words: frozenset[str] = frozenset()
) -> CheckResult:
    """FAIL (``picture-readable``) when what was read in a picture tells a node or the answer."""
    if not names or not all(any(name.strip() for name in each) for each in names):
        return CheckResult("UNKNOWN", "picture-readable", "a node has no name to look for")
    text = "\n".join(line for line in lines if line.strip())
    if not text:
        return PASSED
    if len(text) > MAX_LETTERS:
        return CheckResult("UNKNOWN", "picture-readable", f"{len(text):,} letters of text; {MAX_LETTERS:,} are read")
    for result in (
        check_names(text, names, words),
        check_demonyms(text, names, words),
        *_check_answers(text, answer, words),
        _check_noisy(text, names, answer, words),
    ):
        if not result.passed:
            return CheckResult(result.outcome, "picture-readable", result.detail)
    return PASSED


def _check_answers(text: str, answer: Answer, words: frozenset[str]) -> Iterator[CheckResult]:
    if answer.type == "number" and _SMALL.fullmatch(answer.value):
        text = "\n".join(line for line in text.splitlines() if _says_number(line, answer))
    if text or answer.type != "number":
        yield check_answer(text, answer, words)
        yield _check_digits(text, answer)


def _says_number(line: str, answer: Answer) -> bool:
    written = split_bare_words(line)
    units = {word for word in split_bare_words(f"{answer.unit} {answer.surface}") if word.isalpha()}
    return len([word for word in written if word not in units]) <= 1 or any(
        check_answer(f"{first} {unit}", answer).outcome == "FAIL" for first, unit in pairwise(written) if unit in units
    )


def _check_digits(text: str, answer: Answer) -> CheckResult:
    if answer.type not in ("date", "number"):
        return PASSED
    return check_answer(_TOKEN.sub(lambda match: _read_digits(match.group()), text), answer)


def _read_digits(token: str) -> str:
    return token.translate(_DIGITS) if any(map(str.isdigit, token)) else token


def _check_noisy(text: str, names: Sequence[Sequence[str]], answer: Answer, common: frozenset[str]) -> CheckResult:
    stream = _make_stream(text)
    forms = (answer.surface, answer.value, *answer.aliases) if answer.type == "name" else ()
    for pattern in _list_patterns(tuple(map(tuple, names)), forms, common):
        for start, end, errors in _find_pattern(pattern, stream):
            found = stream.show(start, end)
            if errors and all(_is_ordinary(word, common) for word in found):
                continue
            shown = f"{pattern.source} as {' '.join(found)!r} ({errors} letters wrong)"
            return CheckResult("FAIL", "picture-readable", shown)
    return PASSED


def _is_ordinary(word: str, common: frozenset[str]) -> bool:
    return word in common or is_common_word(word)


@lru_cache(maxsize=64)
def _list_patterns(
    names: tuple[tuple[str, ...], ...], forms: tuple[str, ...], common: frozenset[str]
) -> tuple[_Pattern, ...]:
    patterns: dict[str, _Pattern] = {}
    for whose, aliases in (("node", names), ("answer", (forms,) if any(forms) else ())):
        # Letters left out are errors enough.
        for spelled, strict in ((aliases, False), (tuple(map(_list_unmarked, aliases)), True)):
            for phrase in chain.from_iterable(build_leak_index(spelled, common).phrases.values()):
                errors = 0 if strict else _count_errors(phrase.words, common)
                pattern = _Pattern(_fold_alike(phrase.words), errors, f"{whose} {phrase.node}: {phrase.name!r}")
                patterns.setdefault(pattern.letters, pattern)
    return tuple(pattern for pattern in patterns.values() if len(pattern.letters) >= _MIN_PATTERN)


def _list_unmarked(names: tuple[str, ...]) -> tuple[str, ...]:
    marked = [name for name in names if not name.isascii()]
    unmarked = ("".join(filter(str.isascii, unicodedata.normalize("NFC", name))) for name in marked)
    return tuple(
        bare
        for name, bare in zip(marked, unmarked, strict=True)
        if all(
            len(word) >= _MIN_PATTERN for word, whole in zip(bare.split(), name.split(), strict=False) if word != whole
        )
        and len(bare.split()) == len(name.split())
    )


def _count_errors(words: Iterable[str], common: frozenset[str]) -> int:
    rare = sum(len(word) for word in words if not _is_ordinary(word, common))
    return min(rare // LETTERS_AN_ERROR, _MAX_ERRORS)


def _fold_alike(words: Iterable[str]) -> str:
    return "".join(word.translate(_ALIKE).replace("rn", "m").replace("vv", "w") for word in words)


def _make_stream(text: str) -> _Stream:
    words = tuple(split_bare_words(_STROKES.sub("l", text)))
    folded = [_fold_alike((word,)) for word in words]
    starts = [0]
    for word in folded:
        starts.append(starts[-1] + len(word))
    return _Stream("".join(folded), tuple(starts), words)


def _find_pattern(pattern: _Pattern, stream: _Stream) -> Iterator[tuple[int, int, int]]:
    seen: set[int] = set()
    for offset, end in pairwise(_cut(len(pattern.letters), pattern.errors + 1)):
        part = pattern.letters[offset:end]
        place = stream.letters.find(part)
        while place >= 0:
            origin = place - offset
            if origin not in seen:
                seen.add(origin)
                yield from _look_closer(pattern, stream, origin)
            place = stream.letters.find(part, place + 1)


def _cut(length: int, parts: int) -> list[int]:
    return [length * part // parts for part in range(parts + 1)]


def _look_closer(pattern: _Pattern, stream: _Stream, origin: int) -> Iterator[tuple[int, int, int]]:
    first, last = origin - pattern.errors, origin + pattern.errors
    end = origin + len(pattern.letters)
    starts = _between(stream.starts, first, last)
    ends = _between(stream.starts, end - pattern.errors, end + pattern.errors)
    for start in starts:
        for stop in ends:
            errors = count_edits(pattern.letters, stream.letters[start:stop], pattern.errors)
            if errors <= pattern.errors:
                yield start, stop, errors
                return
    exact = stream.letters[max(0, origin) : end]
    if len(pattern.letters) >= _MIN_LOOSE and exact == pattern.letters:
        yield origin, end, 0


def _between(places: Sequence[int], first: int, last: int) -> Sequence[int]:
    return places[bisect_left(places, first) : bisect_right(places, last)]


def count_edits(first: str, second: str, most: int) -> int:
    """Return how many letters must be put in, left out or changed to make one text of another; ``most`` + 1 if more."""
    if abs(len(first) - len(second)) > most:
        return most + 1
    row = list(range(len(second) + 1))
    for place, letter in enumerate(first, 1):
        above, row = row, [place]
        for column, other in enumerate(second, 1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != other)))
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
