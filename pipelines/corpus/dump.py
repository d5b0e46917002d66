"""Read a MediaWiki export (``pages-articles``): its site header and its pages.

The reader looks for ``<page>`` and ``</page>`` with ``bytes.find`` and never builds an XML tree. Inside an export every
``<`` of a page is escaped, so the scan is exact, and as no XML parser runs, no XML entity can expand. Export schemas
0.10 and 0.11 differ only in elements that are skipped here (``<origin>``, further slots).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpus.languages import DEFAULT_NAMESPACES, REDIRECT_WORDS
from pipelines.corpus.streams import EXPECTED, ByteRange, cover_file, list_parts, read_blocks
from pipelines.errors import CorruptInput

__all__ = [
    "DEFAULT_NAMESPACES",
    "RawPage",
    "Site",
    "find_text",
    "list_parts",
    "parse_page",
    "read_pages",
    "read_range",
    "read_site",
    "scan_pages",
    "unescape_xml",
]

_MAX_PAGE_BYTES = 64 << 20  # MediaWiki refuses pages over 2 MiB; escaping and history never reach this
_PAGE_OPEN, _PAGE_CLOSE = b"<page>", b"</page>"

_NUMERIC_ENTITY = re.compile(r"&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_NAMESPACE = re.compile(rb'<namespace key="([^"<>]*)"([^<>]*?)(?:/>|>([^<]*)</namespace>)')
_REDIRECT_TAG = re.compile(rb'<redirect title="([^"]*)"')
_REDIRECT_TEXT = re.compile(
    rf"[ \t\r\n]*#(?:{'|'.join(REDIRECT_WORDS)})\s*+(?::\s*+)?\[\[\s*:?([^\]|#\n]+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Site:
    """What the header of an export says about its wiki."""

    dbname: str
    """Database name such as ``enwiki``; empty when the export does not say."""
    base_url: str
    """Address that a title with underscores is appended to."""
    language: str
    case: str
    """``first-letter`` (titles start with a capital) or ``case-sensitive``."""
    namespaces: tuple[tuple[int, str], ...]
    """Number and local name, in the order of the export; the article namespace is ``(0, "")``."""
    case_sensitive: frozenset[int] = frozenset()
    """Namespaces whose titles keep their first letter as written, whatever ``case`` says."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """One page as the export holds it, entities decoded."""

    page_id: int
    namespace: int
    title: str
    """With its namespace prefix, spaces instead of underscores."""
    redirect: str | None
    """Target title without fragment, or None when the page is no redirect."""
    revision: int
    timestamp: str
    """ISO 8601 in UTC, as in the export; empty when absent."""
    text: str


def read_site(path: Path) -> Site:
    """Read the ``<siteinfo>`` of an export, filling in English Wikipedia's values where it is absent.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: the file is no MediaWiki export, its compression is damaged, or a namespace has no number.
    """
    header = b""
    for block in read_blocks(path, cover_file(path)):
        header += block
        if b"</siteinfo>" in header or _PAGE_OPEN in header or len(header) > _MAX_PAGE_BYTES:
            break
    _check_header(path, header)
    header = header.partition(_PAGE_OPEN)[0]
    language = re.search(rb'xml:lang="([^"]+)"', header)
    namespaces = [
        (_read_number(path, unescape_xml(key), "namespace key"), marks, unescape_xml(name))
        for key, marks, name in _NAMESPACE.findall(header)
    ]
    base = _find_element(header, b"base") or "https://en.wikipedia.org/wiki/Main_Page"
    return Site(
        dbname=_find_element(header, b"dbname") or "",
        base_url=base[: base.rfind("/") + 1],
        language=language.group(1).decode("ascii", "replace") if language else "en",
        case=_find_element(header, b"case") or "first-letter",
        namespaces=tuple((number, name) for number, _, name in namespaces) or DEFAULT_NAMESPACES,
        case_sensitive=frozenset(number for number, marks, _ in namespaces if b'case="case-sensitive"' in marks),
    )


def read_pages(path: Path) -> Iterator[RawPage]:
    """Yield the pages of an export in its own order, with a few MB of it in memory at a time.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: the file is no MediaWiki export, is damaged, or ends before ``</mediawiki>``.
    """
    yield from read_range(path, cover_file(path))


def read_range(path: Path, byte_range: ByteRange) -> Iterator[RawPage]:
    """Yield the pages of one range of an export in its own order, with a few MB of it in memory at a time.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: the range is damaged, is cut short, or begins or ends elsewhere than between two pages.
    """
    for block, spans in scan_pages(path, byte_range):
        for start, end in spans:
            yield parse_page(path, block[start:end])


def unescape_xml(source: bytes) -> str:
    """Decode UTF-8 and the five entities plus character references of XML; other ``&name;`` stay as they are."""
    text = source.decode("utf-8", "replace")
    if "&" not in text:
        return text
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&apos;", "'")
    if "&#" in text:
        text = _NUMERIC_ENTITY.sub(_decode_reference, text)
    return text.replace("&amp;", "&")


def _decode_reference(match: re.Match[str]) -> str:
    code = int(match.group(1), 16) if match.group(1) else int(match.group(2))
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def scan_pages(path: Path, byte_range: ByteRange) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """Yield the XML of a range a few MB at a time, each with the (start, end) of the whole pages in it.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: as for ``read_range``.
    """
    is_header = byte_range.start == 0
    is_last = byte_range.end == cover_file(path).end
    buffer = b""
    for block in read_blocks(path, byte_range):
        searched = len(buffer) - len(_PAGE_CLOSE)
        buffer += block
        if is_header:
            _check_header(path, buffer)
        spans, position = _find_pages(path, buffer, max(searched, 0), is_header)
        if spans:
            is_header = False
            yield buffer, spans
            buffer = buffer[position:]
        if len(buffer) > _MAX_PAGE_BYTES:
            raise CorruptInput(f"{path} holds a page over {_MAX_PAGE_BYTES >> 20} MiB; {EXPECTED}")
    _check_end(path, buffer, is_header, is_last)


def _find_pages(path: Path, buffer: bytes, searched: int, is_header: bool) -> tuple[list[tuple[int, int]], int]:
    """Return the whole pages of a buffer, and where the rest begins; before ``searched`` no page ends."""
    spans: list[tuple[int, int]] = []
    position = text = 0
    while (start := buffer.find(_PAGE_OPEN, position)) >= 0:
        if 0 <= text <= start:
            text = buffer.find(b"<text", start)
        # Now ``text`` is the first "<text" after ``start``, of this page or a later one, or -1 when none is left. It is
        # looked for again only once passed, so pages without text do not search the same bytes over and over.
        end = _find_close(buffer, start, text, searched)
        if end < 0:
            break
        if start > position and not is_header and not buffer[position:start].isspace():
            raise CorruptInput(f"{path} holds {buffer[position : position + 40]!r} between two pages; {EXPECTED}")
        is_header = False
        spans.append((start, end))
        position = end + len(_PAGE_CLOSE)
    return spans, position


def _find_close(buffer: bytes, start: int, text: int, searched: int) -> int:
    """Find where a page ends. No text holds a ``<``, and one byte is found far sooner than seven."""
    end = buffer.find(_PAGE_CLOSE, start, text) if text >= 0 else -1
    if end < 0:
        after = buffer.find(b"<", max(start + 1, text + 1, searched))
        end = buffer.find(_PAGE_CLOSE, after) if after >= 0 else -1
    return end


def _check_end(path: Path, rest: bytes, is_header: bool, is_last: bool) -> None:
    """Refuse a range that goes on after its last page; the last range ends with the closing tag of the export."""
    if is_header and not rest:
        raise CorruptInput(f"{path} is empty; {EXPECTED}")
    if is_last and not rest.rstrip().endswith(b"</mediawiki>"):
        raise CorruptInput(f"{path} is cut short: it does not end with </mediawiki>; {EXPECTED} that is whole")
    rest = rest.rstrip().removesuffix(b"</mediawiki>") if is_last else rest
    if _PAGE_OPEN in rest or (not is_header and rest.strip()):
        raise CorruptInput(f"{path} has a range that ends inside a page: {rest[:40]!r}; {EXPECTED} that is whole")


def _check_header(path: Path, header: bytes) -> None:
    start = header[:8192]
    if b"<mediawiki" not in start:
        raise CorruptInput(f"{path} has no <mediawiki> element at its start; {EXPECTED}")
    if b"<!DOCTYPE" in start:
        raise CorruptInput(f"{path} declares a DOCTYPE, which no MediaWiki export does; {EXPECTED}")


def _find_element(source: bytes, name: bytes, start: int = 0) -> str | None:
    opening = source.find(b"<" + name + b">", start)
    if opening < 0:
        return None
    opening += len(name) + 2
    return unescape_xml(source[opening : source.find(b"</", opening)])


def _find_number(path: Path, source: bytes, name: bytes, start: int = 0) -> int:
    return _read_number(path, _find_element(source, name, start), f"<{name.decode()}>")


def _read_number(path: Path, value: str | None, name: str) -> int:
    allowed = r"[0-9]{1,18}" if name == "<id>" else r"-?[0-9]{1,18}"
    if value is None or not re.fullmatch(allowed, value.strip()):
        shown = None if value is None else value[:40]
        raise CorruptInput(f"{path} has {shown!r} as a {name}; expected a number of at most 18 digits")
    return int(value)


def parse_page(path: Path, source: bytes) -> RawPage:
    """Read one ``<page>`` element, without its closing tag.

    Raises:
        CorruptInput: it has no title, or its id or namespace is no number.
    """
    revision = source.rfind(b"<revision>")
    head = source if revision < 0 else source[:revision]
    title = _find_element(head, b"title")
    if title is None:
        raise CorruptInput(f"{path}: a page has no <title>; {EXPECTED}")
    text = _read_text(source, revision) if revision >= 0 else ""
    tag = _REDIRECT_TAG.search(head)
    written = None if tag else _REDIRECT_TEXT.match(text)
    redirect = unescape_xml(tag.group(1)) if tag else written.group(1) if written else None
    return RawPage(
        page_id=_find_number(path, head, b"id"),
        namespace=_find_number(path, head, b"ns"),
        title=title.replace("_", " "),
        redirect=None if redirect is None else redirect.partition("#")[0].replace("_", " ").strip(),
        revision=_find_number(path, source, b"id", revision) if revision >= 0 else 0,
        timestamp=(_find_element(source, b"timestamp", revision) or "") if revision >= 0 else "",
        text=text,
    )


def _read_text(source: bytes, revision: int) -> str:
    start = find_text(source, revision)
    return unescape_xml(source[start : source.find(b"<", start)]) if start >= 0 else ""


def find_text(source: bytes, revision: int, end: int | None = None) -> int:
    """Return where the wikitext of a revision starts, in its main slot; -1 when it is hidden or empty."""
    start = source.find(b"<text", revision, end)
    slot = source.find(b"<content>", revision, start) if start >= 0 else -1
    if slot >= 0:  # the main slot comes first and bare, or named like the others
        main = source.find(b"<role>main</role>", slot, end)
        start = source.find(b"<text", main, end) if main >= 0 else -1
    if start < 0:
        return -1
    start = source.find(b">", start) + 1
    return -1 if source[start - 2 : start] == b"/>" else start
