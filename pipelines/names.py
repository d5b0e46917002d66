"""Names folded to one form, so that a name is found however it is written.

Two spellings fold alike when they differ only in case, diacritics, Unicode form, invisible characters, look-alike
letters of other scripts, punctuation, dots of initials, ``&`` for ``and`` or ``St.`` for ``Saint``. Folded text is for
comparing, never for showing.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources

_SPELLED: dict[str, str] = {
    "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t",
    "ŋ": "ng", "ɑ": "a", "ɡ": "g", "ƙ": "k", "ɓ": "b", "ɗ": "d", "ꞌ": " ", "ʻ": " ", "ʼ": " ", "ʹ": " ", "ˈ": " ",
} | dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))  # fmt: skip
"""Letters that NFKD does not decompose, letters that serve as apostrophes, and small capitals."""

_LOOKALIKES = str.maketrans(
    "авеікмнорстухјѕԁһӏґыпгѵԛԝ" + "αβεζηικμνορτυχγ" + "օոսհցք" + "ᎠᎡᎢᎥᎪᎫᎬᎳᎷᎻᏀᏃᏒᏚᏙᏞᏟᏢᏦᏴ",
    "abeikmhopctyxjsdhlrbnrvqw" + "abezhikmnoptyxy" + "onuhgp" + "drtiajewmhgzrsvlcpkb",
) | {first + place: chr(ord("a") + place) for first in (0x1F150, 0x1F170) for place in range(26)}
"""Cyrillic, Greek, Armenian, Cherokee and white-on-black letters to the Latin ones they (or their capitals) look like;
applied after casefold."""

_CASED_LOOKALIKES = str.maketrans(
    "АВЕІКМНОРСТУХЈЅЀӀ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "аеіорсухјѕ" + "ο",
    "ABEIKMHOPCTYXJSEI" + "ABEZHIKMNOPTYX" + "aeiopcyxjs" + "o",
)
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0100-\U000e01ef]"
)
"""Fillers and variation selectors: no format characters, and as invisible."""

UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)
"""Letters of scripts without spaces between words."""

_KEPT_MARKS = frozenset("#%@*")
_MARKS = str.maketrans({
    chr(code): " "
    for code in range(128)
    if (unicodedata.category(chr(code))[0] in "PC" and chr(code) not in _KEPT_MARKS) or chr(code).isspace()
} | {"&": " and "})  # fmt: skip
_INITIALS = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.\s*){2,}(?:[^\W\d_](?![^\W_]))?")
_BRACKET = re.compile(r"\s*\([^()]*\)$")
_SAINT = {"st": "saint", "ste": "saint", "sainte": "saint"}


@lru_cache(maxsize=1 << 14)
def compile_phrase(phrase: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of a phrase as whole words. It is cached here: :mod:`re` keeps 512 patterns only."""
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)", flags)


def fold_name(text: str) -> str:
    """Return a text's folded form; folding twice changes nothing, and only blank text folds to nothing.

    A text made of punctuation alone (``!!!``) keeps it, because an empty form would equal every other empty form.
    """
    given = text
    text = text.lower() if text.isascii() else "".join(map(_fold_char, text))
    if "." in text:
        text = _INITIALS.sub(_join_initials, text)
    words = text.translate(_MARKS).split() if text.isascii() else "".join(map(_blank_mark, text)).split()
    if not words:
        return " ".join(text.split()) or " ".join(strip_invisible(given).split())
    return " ".join(words if _SAINT.keys().isdisjoint(words) else [_SAINT.get(word, word) for word in words])


def split_words(text: str) -> tuple[str, ...]:
    """Return folded words; a letter of a script without spaces is one."""
    return tuple(UNSPACED.sub(lambda found: f" {' '.join(found.group())} ", fold_name(text)).split())


def list_writings(title: str) -> tuple[str, ...]:
    """Return how a text may write a title: as it is, or without the bracket that only tells articles apart."""
    return tuple(dict.fromkeys((title, _BRACKET.sub("", title) or title)))


def strip_invisible(text: str) -> str:
    """Drop format characters: zero-width marks, joiners, soft hyphens and bidirectional controls."""
    if text.isascii():
        return text
    return _UNSEEN.sub("", "".join(char for char in text if unicodedata.category(char) != "Cf"))


def fold_cased(text: str) -> str:
    """Fold a text as :func:`fold_name` does, but keep case and marks: for names that only count letter by letter."""
    text = strip_invisible(text)
    return text if text.isascii() else strip_diacritics(text).translate(_CASED_LOOKALIKES)


def strip_diacritics(text: str) -> str:
    """Drop diacritics, keeping case, and spell out undecomposable letters: ``Łódź`` to ``Lodz``."""
    if text.isascii():
        return text
    bare = "".join(char for char in unicodedata.normalize("NFKD", text) if not _is_overlay(char))
    return unicodedata.normalize("NFC", "".join(_spell_letter(char) for char in bare))


def is_common_word(word: str) -> bool:
    """Return whether a folded word is too common to reveal a name: the list in ``common-words.txt``."""
    return word in _read_common_words()


@cache
def _read_common_words() -> frozenset[str]:
    return frozenset(resources.files("pipelines").joinpath("common-words.txt").read_text("utf-8").split())


def digest_aliases(names: Iterable[str]) -> str:
    """Return the sha256 (64 hex digits) over the sorted distinct folded names, each ended by a newline."""
    folded = sorted({fold_name(name) for name in names})
    return hashlib.sha256("".join(f"{name}\n" for name in folded).encode()).hexdigest()


@lru_cache(maxsize=8192)
def _fold_char(char: str) -> str:
    """Fold one character; nothing in the folding of letters looks at their neighbours."""
    folded = unicodedata.normalize("NFKD", strip_invisible(char)).casefold()
    # Casefolding composes again in places (the Turkish capital I), hence a second decomposition.
    bare = "".join(part for part in unicodedata.normalize("NFKD", folded) if not _is_overlay(part))
    return strip_invisible("".join(_SPELLED.get(part, part) for part in bare).translate(_LOOKALIKES))


def _is_overlay(char: str) -> bool:
    """Return whether a character is drawn over the one before it: diacritics, enclosing circles."""
    return unicodedata.combining(char) != 0 or unicodedata.category(char) == "Me"


def _spell_letter(char: str) -> str:
    if char in _SPELLED:
        return _SPELLED[char]
    lower = char.lower()
    return _SPELLED[lower].capitalize() if lower in _SPELLED else char


def _join_initials(match: re.Match[str]) -> str:
    return "".join(char for char in match.group() if char.isalpha()) + " "


@lru_cache(maxsize=8192)
def _blank_mark(char: str) -> str:
    if char == "&":
        return " and "
    return " " if unicodedata.category(char)[0] in "PZC" and char not in _KEPT_MARKS else char


def normalise_file(name: str) -> str:
    """Return a file name as titles have it: no ``File:``, spaces, first letter upper case."""
    plain = " ".join(name.replace("_", " ").split())
    for prefix in ("file:", "image:"):
        if plain.lower().startswith(prefix):
            plain = plain[len(prefix) :].strip()
    return plain[:1].upper() + plain[1:]
