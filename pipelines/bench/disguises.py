"""Ways to hide a name from a matcher that a reader sees through."""

import unicodedata
from collections.abc import Callable
from urllib.parse import quote

Disguise = Callable[[str], str]

_CYRILLIC = str.maketrans("aeopcxyKMTBHE", "аеорсхуКМТВНЕ")
_GREEK = str.maketrans("oABEZHIKMNOPTYX", "οΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_SMALL = str.maketrans("abcdefghijklmnoprtuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ")
_UMLAUTS = str.maketrans({"ü": "ue", "ö": "oe", "ä": "ae", "ø": "oe", "å": "aa"})
_LEET = str.maketrans("oe", "03")


def _shift(name: str, upper: int, lower: int) -> str:
    """Return a name with its ASCII letters moved to another alphabet of Unicode."""
    return "".join(
        chr(ord(char) - ord("A") + upper)
        if "A" <= char <= "Z"
        else chr(ord(char) - ord("a") + lower)
        if "a" <= char <= "z"
        else char
        for char in name
    )


def _space_letters(name: str, mark: str) -> str:
    return mark.join(name.replace(" ", ""))


def _strip_marks(name: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", name) if not unicodedata.combining(char))


def _swap_ends(name: str) -> str:
    """Return ``Kelmor, Ana`` for ``Ana Kelmor``; a name of one word stays."""
    head, _, last = name.rpartition(" ")
    return f"{last}, {head}" if head else name


DISGUISES: tuple[Disguise, ...] = (
    str.upper,
    str.lower,
    lambda name: name.replace(" ", "-"),
    lambda name: name.replace(" ", "_"),
    lambda name: name.replace(" ", ""),
    lambda name: name.replace(" ", " \n"),
    lambda name: "\u200b".join(name),
    lambda name: "\ufe0f".join(name),
    lambda name: name[:2] + "\u00ad" + name[2:],
    lambda name: "\u202e" + name + "\u202c",
    lambda name: name.translate(_CYRILLIC),
    lambda name: name.translate(_GREEK),
    lambda name: name.lower().translate(_SMALL),
    lambda name: name.translate(_UMLAUTS),
    lambda name: name.translate(_LEET),
    lambda name: unicodedata.normalize("NFD", name),
    _strip_marks,
    lambda name: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in name),
    lambda name: _shift(name, 0x1D4D0, 0x1D4EA),
    lambda name: _shift(name, 0x24B6, 0x24D0),
    lambda name: _shift(name.upper(), 0x1F170, 0x1F170),
    lambda name: "\u20dd".join(name) + "\u20dd",
    lambda name: name[0] + "\u0301" + name[1:],
    lambda name: _space_letters(name, " "),
    lambda name: _space_letters(name, "-"),
    lambda name: _space_letters(name, "."),
    lambda name: name[:3] + " " + name[3:],
    lambda name: name[:4] + "-\n" + name[4:],
    lambda name: quote(name),
    lambda name: quote(quote(name)),
    lambda name: "".join(f"&#{ord(char)};" if not char.isascii() else char for char in name),
    lambda name: "".join(f"&#x{ord(char):x};" for char in name),
    lambda name: name + "\u2019s",
    lambda name: f"\u201c{name}\u201d",
    lambda name: f"東京{name}駅",
    _swap_ends,
)
"""Each maps a name to another writing of it; where there is nothing to disguise, to itself."""
