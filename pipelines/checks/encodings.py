"""Faults of a text's encoding: letters that were read in the wrong one, and escapes that nobody resolved."""

import html
import re
import unicodedata
from collections.abc import Callable, Iterator

from ftfy.badness import is_bad

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|[nrt](?=[A-Z\s]|$))")
_PERCENT = re.compile(r"%20|%[C-Fc-f][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_MARKUP = re.compile(
    r"</?(?:br|b|i|p|sup|sub|div|span|a|ref|em|strong|font|li|ul|td|tr|html)(?:\s[^<>]*)?/?>|\[\[[^\[\]]+\]\]|'''"
)
_LOST = re.compile(r"(?<=[^\W\d_])\?(?=[^\W\d_])|(?<!\S)\?{2,}(?!\S)|\ufffd|ï¿½")
_BYTES = re.compile(r"(?<!\w)b'[^']*'(?!\w)")
_UNSEEN = frozenset("\u200b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u00ad")
"""Format characters that no script needs between its letters, and marks that turn the direction of a text."""
_PLAIN = frozenset("\n\r\t")


def find_encoding_fault(text: str) -> str:
    """Return what is wrong with a text's encoding, for a reader; empty if nothing is found.

    Found are text of UTF-8 that was read as another encoding, letters that were lost, characters that are none, and
    escapes of JSON, HTML and addresses, with markup of pages. Addresses hold question marks and escapes rightly.
    """
    prose = " ".join(word for word in text.split(" ") if "://" not in word)
    return next((f"{name} {found!r}" for name, find in _FAULTS for found in find(prose)), "")


def _find_controls(text: str) -> Iterator[str]:
    for char in text:
        kind = unicodedata.category(char)
        if (kind == "Cc" and char not in _PLAIN) or kind in ("Co", "Cs") or char in _UNSEEN:
            yield char


def _find_bad(text: str) -> Iterator[str]:
    if not text.isascii() and is_bad(text):
        yield next((word for word in text.split() if is_bad(word)), text)[:60]


def _find_entities(text: str) -> Iterator[str]:
    yield from (found for found in _ENTITY.findall(text) if html.unescape(found) != found)


_FAULTS: tuple[tuple[str, Callable[[str], Iterator[str]]], ...] = (
    ("a lost letter", lambda text: (found[0] for found in _LOST.finditer(text))),
    ("a character that is none,", _find_controls),
    ("UTF-8 read as another encoding:", _find_bad),
    ("an escape", lambda text: (found[0] for found in _ESCAPE.finditer(text))),
    ("an escape of addresses", lambda text: (found[0] for found in _PERCENT.finditer(text))),
    ("an HTML entity", _find_entities),
    ("markup", lambda text: (found[0] for found in _MARKUP.finditer(text))),
    ("bytes as text", lambda text: (found[0] for found in _BYTES.finditer(text))),
)
