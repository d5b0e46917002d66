"""A text as words, in every way that a reader may take it: the ground of all leak checks.

The first reading is the text folded (:mod:`pipelines.names`). Others are made only where the text gives cause: escapes
of addresses and HTML, umlauts written as two letters, apostrophes left out, letters set apart, digits for letters.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote

from pipelines.names import fold_name, strip_invisible

POSSESSIVE = re.compile(r"['’ʼ`´]s(?![^\W_])", re.IGNORECASE)
UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)
"""Letters of scripts that put no space between words."""
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


def split_words(text: str) -> list[str]:
    """Return the folded words of a text without possessive endings; scripts without spaces stand apart from others."""
    text = strip_invisible(text)
    if not text.isascii():
        text = UNSPACED.sub(r" \g<0> ", text)
    return [_SHORTENED.get(word, word) for word in _WORDS.findall(fold_name(POSSESSIVE.sub("", text)))]


def list_singulars(word: str) -> tuple[str, ...]:
    """Return a folded word and what it could be the plural of."""
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
    """Return a text with two letters for an umlaut (``Mueller``, ``Oeresund``, ``Aarhus``); many have none to spell."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_UMLAUTS)


def drop_apostrophes(text: str) -> str:
    """Return a text with the letters around an apostrophe joined: ``O'Neal`` to ``ONeal``, ``Xi'an`` to ``Xian``."""
    return _APOSTROPHE.sub("", POSSESSIVE.sub("", text))


@lru_cache(maxsize=64)
def list_readings(text: str, numbered: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return a text's folded words in every way to read them, the plain one first.

    Kept because a dozen checks look into the same text.

    Args:
        text: to be read.
        numbered: add a reading with all small numbers in digits: ``Henry the Eighth`` as ``henry 8``.
    """
    texts = [text, unescape(text)]
    texts += [spell_umlauts(given) for given in texts]
    # The small Greek nu looks like v, and its capital like N, by which it is folded.
    texts += [given.replace("ν", "v") for given in texts if "ν" in given]
    texts += [drop_apostrophes(given) for given in texts if _APOSTROPHE.search(given)]
    readings = [tuple(split_words(given)) for given in dict.fromkeys(texts)]
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
    """Yield words with every run of single letters joined: ``k e l m`` as ``kelm``."""
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
