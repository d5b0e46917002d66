"""What a page's bytes say: its media type, its encoding, and its text, up to a length."""

import codecs
import re
from collections.abc import Mapping
from itertools import dropwhile, islice
from typing import Final

CHARACTERS: Final = 100_000
"""Of a page's text; what is longer is cut at white space and ends in an ellipsis."""
TITLE_CHARACTERS: Final = 1000
HTML: Final = frozenset(["text/html", "application/xhtml+xml"])
PLAIN: Final = frozenset(["text/plain", "text/markdown", "text/csv", "text/x-markdown", "application/json"])
ACCEPT: Final = "text/html,application/xhtml+xml,text/plain;q=0.9,text/markdown;q=0.9,application/json;q=0.5"
"""What is asked for."""
_ENCODINGS = frozenset(
    [
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "gb18030", "gbk", "gb2312", "big5", "big5hkscs"),
        *("shift_jis", "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "koi8-r", "koi8-u", "cp866", "tis-620"),
        *(f"iso8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (874, *range(1250, 1259))),
    ]
)
"""Python's names of the encodings that pages come in. It has others, which are no encodings of text or are slow."""
_WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
"""What browsers read in place of one that is named (Encoding standard)."""
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([a-z0-9_:.-]{1,40})", re.IGNORECASE)
_HEAD_BYTES = 1024
_MARKUP = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


def decode_page(body: bytes, headers: Mapping[str, str]) -> str:
    """Return a page's text by its byte order mark, its header, what it says itself, or as what it most likely is.

    Args:
        body: of the reply.
        headers: of the reply, found in any case of letters.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    named = find_encoding(headers.get("Content-Type", "")) or find_encoding(body[:_HEAD_BYTES].decode("latin-1"))
    if named:
        return body.decode(named, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def find_encoding(said: str) -> str:
    """Return the encoding that is named after ``charset=``, empty if none is, or none that pages come in."""
    match = _CHARSET.search(said)
    try:
        name = codecs.lookup(match[1]).name if match else ""
    except LookupError:
        return ""
    return _WIDER.get(name, name) if name in _ENCODINGS else ""


def is_html(kind: str, body: bytes) -> bool:
    """Say whether a page is HTML: by its type, or by its beginning where it has none."""
    return kind in HTML or (not kind and bool(_MARKUP.match(body[:_HEAD_BYTES])))


def cut_text(text: str, limit: int) -> str:
    """Return a text that is not longer than a limit, but for the ellipsis: cut at white space."""
    if len(text) <= limit:
        return text
    # A word as long as the text has no white space to be cut at.
    cut = text[:limit].rsplit(maxsplit=1)[0] if len(text[:limit].split(maxsplit=1)) > 1 else text[:limit]
    return f"{cut} …"


def read_plain(text: str, limit: int = CHARACTERS) -> str:
    """Return plain text without control characters, which no reader of it should see, cut by :func:`cut_text`."""
    shown = dropwhile(str.isspace, (char for char in text.rstrip() if char.isprintable() or char in "\n\t"))
    return cut_text("".join(islice(shown, limit + 1)), limit).rstrip()


def read_title(title: str) -> str:
    """Return a page's title on one line, cleaned and cut as its text is."""
    return read_plain(" ".join(title.split()), TITLE_CHARACTERS)
