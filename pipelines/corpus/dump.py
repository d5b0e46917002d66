"""Read a MediaWiki export (``pages-articles``): its site header and its pages.

The reader looks for ``<page>`` and ``</page>`` with ``bytes.find`` and never builds an XML tree. Inside an export every
``<`` of a page is escaped, so the scan is exact, and as no XML parser runs, no XML entity can expand. Export schemas
0.10 and 0.11 differ only in elements that are skipped here (``<origin>``, further slots).
"""

import bz2
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import ConfigError, CorruptInput

_CHUNK_BYTES = 1 << 20
_MAX_PAGE_BYTES = 64 << 20  # MediaWiki refuses pages over 2 MiB; escaping and history never reach this
_TAIL_BYTES = 64
_EXPECTED = "expected a MediaWiki export (.xml, or .xml.bz2 in one or many streams)"

_NUMERIC_ENTITY = re.compile(r"&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_NAMESPACE = re.compile(rb'<namespace key="(-?\d+)"[^>]*?(?:/>|>([^<]*)</namespace>)')
_REDIRECT_TAG = re.compile(rb'<redirect title="([^"]*)"')
_REDIRECT_TEXT = re.compile(r"\s*#redirect\s*:?\s*\[\[\s*:?([^\]|#\n]+)", re.IGNORECASE)

DEFAULT_NAMESPACES: tuple[tuple[int, str], ...] = (
    (-2, "Media"),
    (-1, "Special"),
    (0, ""),
    (1, "Talk"),
    (2, "User"),
    (3, "User talk"),
    (4, "Wikipedia"),
    (5, "Wikipedia talk"),
    (6, "File"),
    (7, "File talk"),
    (8, "MediaWiki"),
    (9, "MediaWiki talk"),
    (10, "Template"),
    (11, "Template talk"),
    (12, "Help"),
    (13, "Help talk"),
    (14, "Category"),
    (15, "Category talk"),
    (100, "Portal"),
    (101, "Portal talk"),
    (118, "Draft"),
    (119, "Draft talk"),
    (710, "TimedText"),
    (711, "TimedText talk"),
    (828, "Module"),
    (829, "Module talk"),
)
"""The namespaces of English Wikipedia, for an export that carries no ``<siteinfo>``."""


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
        CorruptInput: the file is no MediaWiki export, or its compression is damaged.
    """
    header = b""
    for chunk in _read_chunks(path):
        header += chunk
        if b"</siteinfo>" in header or b"<page>" in header or len(header) > _MAX_PAGE_BYTES:
            break
    _check_header(path, header)
    header = header.partition(b"<page>")[0]
    language = re.search(rb'xml:lang="([^"]+)"', header)
    namespaces = tuple((int(key), unescape_xml(name)) for key, name in _NAMESPACE.findall(header))
    base = _find_element(header, b"base") or "https://en.wikipedia.org/wiki/Main_Page"
    return Site(
        dbname=_find_element(header, b"dbname") or "",
        base_url=base[: base.rfind("/") + 1],
        language=language.group(1).decode("ascii", "replace") if language else "en",
        case=_find_element(header, b"case") or "first-letter",
        namespaces=namespaces or DEFAULT_NAMESPACES,
    )


def read_pages(path: Path) -> Iterator[RawPage]:
    """Yield the pages of an export in its own order, with one page in memory at a time.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: the file is no MediaWiki export, is damaged, or ends before ``</mediawiki>``.
    """
    for source in _scan_pages(path):
        yield _parse_page(path, source)


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


@contextmanager
def _open_stream(path: Path) -> Iterator[BinaryIO | bz2.BZ2File]:
    if not path.is_file():
        raise ConfigError(f"no dump at {path}; {_EXPECTED}")
    with path.open("rb") as raw:
        is_bz2 = raw.read(3) == b"BZh"
        raw.seek(0)
        if path.suffix == ".bz2" and not is_bz2:
            raise CorruptInput(f"{path} is not a bz2 file: it does not start with BZh; {_EXPECTED}")
        if not is_bz2:
            yield raw
            return
        with bz2.BZ2File(raw) as stream:
            yield stream


def _read_chunks(path: Path) -> Iterator[bytes]:
    with _open_stream(path) as stream:
        while True:
            try:
                chunk = stream.read(_CHUNK_BYTES)
            except EOFError as error:
                raise CorruptInput(f"{path} is cut short inside a bz2 stream; {_EXPECTED} that is whole") from error
            except (OSError, ValueError) as error:
                raise CorruptInput(f"{path} cannot be decompressed ({error}); {_EXPECTED}") from error
            if not chunk:
                return
            yield chunk


def _scan_pages(path: Path) -> Iterator[bytes]:
    buffer = b""
    header_seen = False
    for chunk in _read_chunks(path):
        buffer += chunk
        if not header_seen:
            _check_header(path, buffer)
            header_seen = True
        position = 0
        while (start := buffer.find(b"<page>", position)) >= 0:
            end = buffer.find(b"</page>", start)
            if end < 0:
                break
            yield buffer[start:end]
            position = end + len(b"</page>")
        keep = start if start >= 0 else max(position, len(buffer) - _TAIL_BYTES)
        buffer = buffer[keep:]
        if len(buffer) > _MAX_PAGE_BYTES:
            raise CorruptInput(f"{path} holds a page over {_MAX_PAGE_BYTES >> 20} MiB; {_EXPECTED}")
    if not header_seen:
        raise CorruptInput(f"{path} is empty; {_EXPECTED}")
    if not buffer.rstrip().endswith(b"</mediawiki>"):
        raise CorruptInput(f"{path} is cut short: it does not end with </mediawiki>; {_EXPECTED} that is whole")


def _check_header(path: Path, header: bytes) -> None:
    start = header[:8192]
    if b"<mediawiki" not in start:
        raise CorruptInput(f"{path} has no <mediawiki> element at its start; {_EXPECTED}")
    if b"<!DOCTYPE" in start:
        raise CorruptInput(f"{path} declares a DOCTYPE, which no MediaWiki export does; {_EXPECTED}")


def _find_element(source: bytes, name: bytes, start: int = 0) -> str | None:
    opening = source.find(b"<" + name + b">", start)
    if opening < 0:
        return None
    opening += len(name) + 2
    return unescape_xml(source[opening : source.find(b"</", opening)])


def _find_number(path: Path, source: bytes, name: bytes, start: int = 0) -> int:
    value = _find_element(source, name, start)
    if value is None or not value.strip().isdigit():
        if name == b"ns" and value is not None and value.lstrip("-").isdigit():
            return int(value)
        raise CorruptInput(f"{path}: a page has {value!r} as its <{name.decode()}>; expected a number")
    return int(value)


def _parse_page(path: Path, source: bytes) -> RawPage:
    revision = source.rfind(b"<revision>")
    head = source if revision < 0 else source[:revision]
    title = _find_element(head, b"title")
    if title is None:
        raise CorruptInput(f"{path}: a page has no <title>; {_EXPECTED}")
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
    start = source.find(b"<text", revision)
    if start < 0:
        return ""
    start = source.find(b">", start) + 1
    if source[start - 2 : start] == b"/>":
        return ""
    return unescape_xml(source[start : source.find(b"</text>", start)])
