"""Names that only count letter by letter, because they are short or ordinary words: ES, NO, Nice, U.N., flags."""

import re

from pipelines.names import is_common_word

MAX_SHORT = 2
_MOST_FLAGS = 60
_REGIONAL = range(0x1F1E6, 0x1F200)
_OPENERS = frozenset(
    "a according after all an and are as at be before by did do does during each every for from had has have he her "
    "his how i if in into is it its many most name near no not of off on one or our over she since so some such than "
    "that the their there these they this those to under until up us was we were what when where which while who whom "
    "whose why will with you your".split()
)
"""Words with which a sentence begins; there a capital says nothing."""
_NO_INITIALS = frozenset("AC AD AM BC BCE CE CEO DC DNA GDP PM TV UK US USA UTC".split())
"""Initials that questions use as words; a node that goes by them has them among its names."""


def list_initials(title: str) -> tuple[str, ...]:
    """Return what a title of capitalised words may be shortened to: ``U.N.``, ``U. N.``, and ``BBC`` from three on."""
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
    """Say whether a name is a function word at the start of a sentence."""
    if name.lower() not in _OPENERS or (len(name) > 1 and name.isupper()):
        return False
    before = text[max(0, place - 8) : place].rstrip()
    return not before or before[-1] in '.?!:;"“”(«'


def _splits_flag(text: str, place: int) -> bool:
    """Say whether a place lies between the two letters of one flag emoji."""
    start = place
    while start and ord(text[start - 1]) in _REGIONAL and place - start <= _MOST_FLAGS:
        start -= 1
    return (place - start) % 2 == 1 and ord(text[place]) in _REGIONAL
