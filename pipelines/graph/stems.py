"""Stems of English words, light enough to join ``designed`` with ``designer`` and no more."""

import re
from functools import lru_cache

from pipelines.names import fold_name

_EVERYWHERE_TEXT = """
a about after all also an and another any are as at be became become been before being between both but by can could did
do does during each for from had has have he her here him his how i if in into is it its later many may more most much
new no nor not now of often on once one only or other others our out over own said same several she since so some such
than that the their them then there these they this those three through to two under until up upon us usually very was
we well were what when where which while who whom whose why will with within would
"""
EVERYWHERE = frozenset(_EVERYWHERE_TEXT.split())
"""Words that mark no relation."""

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ed", "es", "s",
            "ly", "at", "e")  # fmt: skip
_MIN_STEM = 4


@lru_cache(maxsize=65536)
def fold_word(word: str) -> str:
    """Return a word folded (:func:`pipelines.names.fold_name`); words come back, names do not."""
    return fold_name(word)


@lru_cache(maxsize=65536)
def stem_word(word: str) -> str:
    """Return a folded word without its common endings: ``designed`` and ``designer`` give ``design``."""
    while True:
        ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _MIN_STEM), "")
        if not ending:
            return word
        word = word[: -len(ending)]


def list_stems(text: str) -> list[str]:
    """Return the stems of a text's words in order, digits and stop words left out."""
    return [stem_word(word) for word in map(fold_word, WORD.findall(text)) if word and word not in EVERYWHERE]
