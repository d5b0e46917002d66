"""Read a MediaWiki export (``pages-articles``): its site header, its pages, its byte ranges, and the meaning of titles.

Pages are cut out at ``</page>``, which no text of an export can hold, and each is parsed alone: no entity can be
declared in it. Export schemas 0.10 and 0.11 differ only in elements that are not looked at. A page that no wiki exports
(no XML, not UTF-8, without an id, with an element twice or inside another) is a :class:`FailedPage`, and reading goes
on after it; a file that is truncated is an error.

A multistream dump is a sequence of bz2 streams: the header, streams of a hundred pages each, and the footer. A byte
range starts at a stream of pages, so a worker can unpack it alone; a gzip file is one range. Every cut is verified by
unpacking its first bytes: ten bytes that look like the start of a stream may occur anywhere in compressed data.

Link targets are resolved by MediaWiki's rules (``MediaWikiTitleCodec``, ``Language::ucfirst``, and Wikimedia's
``UcfirstOverrides.php``: titles keep the capitals of an older Unicode). Differences between language editions that the
header lacks come from ``languages/messages/Messages*.php`` (link trails, namespace aliases and gendered names, the
words for redirects); an edition not listed gets English link trails and the names of its own dump.
"""

import bz2
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote
from xml.etree import ElementTree

import xxhash
from isal import igzip_lib

from pipelines.corpus.data import read_data, read_names, split_names
from pipelines.errors import ConfigError, CorruptInput, RecordFailed

_READ_BYTES = 1 << 17  # half a MB of XML at a time stays in a core's own cache
_BLOCK_BYTES = 4 << 20
_WINDOW_BYTES = 8 << 20  # a stream of a hundred pages is below 2 MB; beyond the window the cut is given up
_STEP_BYTES = 1 << 18  # a stream of a hundred pages takes about 100 KB, so a cut mostly shows in the first step
_MAX_PROOFS = 8
_PROOF_BYTES = 2 << 20  # holds the first block of any stream
_PROOF_OUTPUT_BYTES = 1 << 10
_MAX_GAP = 1000  # ids of deleted pages may lie between two parts; a part holds far more
_STREAM_START, _STREAM_START_BYTES = re.compile(rb"BZh[1-9]1AY&SY"), 10
_PAGE_START = b"<page>"
_GAP_BYTES = 64
"""Bytes before a page that hold the end of the page before it."""
_PART = re.compile(r"(?P<stem>.+?)(?P<number>\d+)\.xml-p(?P<first>\d+)p(?P<last>\d+)(?P<ending>\.bz2|\.gz|)")
_PACKINGS = {"bz2": b"BZh", "gz": b"\x1f\x8b"}
_UNPACKERS: dict[str, Callable[[], Any]] = {
    "bz2": bz2.BZ2Decompressor,
    "gz": partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP),
}
_BAD_DEFLATE = cast(type[Exception], igzip_lib.error)  # isal types it as an instance
EXPECTED = "expected a MediaWiki export (.xml, .xml.gz, or .xml.bz2 in one or many streams)"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A run of bytes of a dump that holds whole pages."""

    number: int
    """Its place in the dump, from 0."""
    start: int
    """Offset of its first byte in the file: compressed bytes of a .bz2 or .gz, plain ones of an .xml."""
    end: int
    """Offset after its last byte."""

    @property
    def size(self) -> int:
        """Number of its bytes."""
        return self.end - self.start


def plan_ranges(dump: Path, range_bytes: int) -> tuple[ByteRange, ...]:
    """Cut a dump into ranges of about ``range_bytes``, in file order, that cover the file without gap or overlap.

    The header belongs to the first range and the footer to the last. A gz file, a bz2 file of one stream, and one whose
    streams do not start with pages, is a single range. About half a MB is read a cut, a few MB at most.
    """
    if range_bytes < 1:
        raise ConfigError(f"{range_bytes} bytes a range; expected at least 1")
    with open_dump(dump) as file:
        size = file.seek(0, 2)
        cuts = _find_cuts(file, size, range_bytes)
    edges = [0, *cuts, size]
    return tuple(ByteRange(number, *pair) for number, pair in enumerate(pairwise(edges)))


def cover_file(dump: Path) -> ByteRange:
    """Return the range that is the whole file."""
    with open_dump(dump) as file:
        return ByteRange(0, 0, file.seek(0, 2))


def list_parts(path: Path) -> tuple[Path, ...]:
    """Return all parts of the dump that ``path`` is a part of, by first page; a whole file is returned alone.

    Parts are named ``...-multistream<N>.xml-p<first>p<last>.bz2``; one N may have several files. Names do not say how
    many parts there are: that the last ones are missing cannot be seen here.
    """
    if not path.is_file():
        raise ConfigError(f"no dump at {path}; {EXPECTED}")
    own = _PART.fullmatch(path.name)
    if own is None:
        return (path,)
    found = ((_PART.fullmatch(other.name), other) for other in path.parent.iterdir())
    parts = sorted(
        (int(match["first"]), int(match["last"]), int(match["number"]), other)
        for match, other in found
        if match is not None and match["stem"] == own["stem"] and match["ending"] == own["ending"]
    )
    end, before = -1, ""
    for first, last, _, part in parts:
        if first <= end:
            raise ConfigError(f"{part.name} begins at page {first}, which {before} holds; expected one")
        if first - end - 1 > _MAX_GAP:
            lacking = f"pages {max(end + 1, 1)} to {first - 1}"
            raise ConfigError(f"{part.parent} lacks the part with {lacking}, before {part.name}; expected every part")
        end, before = last, part.name
    return tuple(other for _, _, _, other in parts)


def open_dump(path: Path) -> BinaryIO:
    """Open a dump for reading its bytes as they are."""
    if not path.is_file():
        raise ConfigError(f"no dump at {path}; {EXPECTED}")
    file = path.open("rb")
    named = path.suffix.removeprefix(".")
    if named in _PACKINGS and find_packing(file) != named:
        file.close()
        raise CorruptInput(f"{path} is not a {named} file: it does not start with {_PACKINGS[named]!r}; {EXPECTED}")
    return file


def find_packing(file: BinaryIO) -> str:
    """Return ``bz2`` or ``gz`` by the first bytes of an open file, or an empty string for plain text."""
    file.seek(0)
    start = file.read(3)
    return next((name for name, magic in _PACKINGS.items() if start.startswith(magic)), "")


def read_blocks(path: Path, byte_range: ByteRange) -> Iterator[bytes]:
    """Yield the unpacked bytes of a range in order, a few MB at a time."""
    with open_dump(path) as file:
        packing = find_packing(file)
        file.seek(byte_range.start)
        pieces = _read_pieces(path, file, byte_range.end - byte_range.start)
        yield from _unpack(path, packing, pieces) if packing else pieces


def _read_pieces(path: Path, file: BinaryIO, left: int) -> Iterator[bytes]:
    while left:
        piece = file.read(min(_READ_BYTES, left))
        if not piece:
            raise CorruptInput(f"{path} is truncated: {left} bytes of a range are missing; {EXPECTED} that is whole")
        left -= len(piece)
        yield piece


def _unpack(path: Path, packing: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    stream, is_open = _UNPACKERS[packing](), False
    for piece in pieces:
        data = piece
        while data or (is_open and not stream.needs_input):
            try:
                block = stream.decompress(data, _BLOCK_BYTES)
            except (OSError, ValueError, _BAD_DEFLATE) as error:
                raise CorruptInput(f"{path} cannot be decompressed ({error}); {EXPECTED}") from error
            data, is_open = b"", True
            if stream.eof:
                data, stream, is_open = stream.unused_data, _UNPACKERS[packing](), False
            if block:
                yield block
    if is_open:
        raise CorruptInput(f"{path} is truncated inside a {packing} stream; {EXPECTED} that is whole")


def _find_cuts(file: BinaryIO, size: int, range_bytes: int) -> list[int]:
    cuts: list[int] = []
    packing = find_packing(file)
    if packing == "gz":
        return cuts
    search = _search_stream if packing else _search_page
    first = search(file, 1)
    aim = max(range_bytes, first + 1) if first is not None else size  # the header is no range of its own
    while aim < size:
        found = search(file, aim)
        if found is not None:
            cuts.append(found)
        aim = max(aim, found or 0) + range_bytes
    return cuts


def _search_stream(file: BinaryIO, aim: int) -> int | None:
    places = islice(_find_places(file, aim, _STREAM_START, _STREAM_START_BYTES), _MAX_PROOFS)
    return next((place for place in places if _starts_pages(file, place)), None)


def _search_page(file: BinaryIO, aim: int) -> int | None:
    places = _find_places(file, aim, re.compile(_PAGE_START), len(_PAGE_START))
    return next((place for place in places if aim == 1 or _follows_page(file, place)), None)


def _follows_page(file: BinaryIO, place: int) -> bool:
    start = max(place - _GAP_BYTES, 0)
    file.seek(start)
    return file.read(place - start).rstrip().endswith(_PAGE_CLOSE)


def _find_places(file: BinaryIO, aim: int, start: re.Pattern[bytes], length: int) -> Iterator[int]:
    tail = b""
    for place in range(aim, aim + _WINDOW_BYTES, _STEP_BYTES):
        file.seek(place)  # the caller seeks in between
        step = file.read(_STEP_BYTES)
        piece = tail + step
        for match in start.finditer(piece):
            yield place - len(tail) + match.start()
        if len(step) < _STEP_BYTES:
            return
        tail = piece[1 - length :]


def _starts_pages(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
    piece = file.read(_STEP_BYTES)
    if not _STREAM_START.match(piece):
        return False
    stream, start, left = bz2.BZ2Decompressor(), b"", _PROOF_BYTES
    try:
        while piece and not start and not stream.eof and left > 0:  # a block is unpacked when all of it is there
            start = stream.decompress(piece, _PROOF_OUTPUT_BYTES)
            left -= len(piece)
            piece = file.read(_STEP_BYTES) if not start else b""
    except (OSError, ValueError):
        return False
    return start.lstrip().startswith(_PAGE_START)


MAX_PAGE_BYTES = 64 << 20
"""Of a page's XML. MediaWiki refuses pages over 2 MiB; escaping and history never reach this."""
_MAX_TAGS = 1 << 20
"""Tags of a page: each takes memory."""
_PAGE_CLOSE = b"</page>"
_PAGE_ID, _NUMBER = re.compile("[0-9]{1,18}"), re.compile("-?[0-9]{1,18}")
_HEAD = re.compile("<title>([^<]*)</title>|<id>([0-9]{1,18})</id>")
_SHOWN_TITLE = 80
"""Characters of a title in the id and the detail of a failed row."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


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


@dataclass(frozen=True, slots=True)
class FailedPage:
    """A page that cannot be read though the XML around it can: a row of the corpus's failed pages."""

    record_id: str
    """``page:`` and its id; ``title:`` and the start of its title where it has no readable id."""
    error: str
    detail: str


def read_site(path: Path) -> Site:
    """Read the ``<siteinfo>`` of an export, filling in English Wikipedia's values where it is absent."""
    header = b""
    for block in read_blocks(path, cover_file(path)):
        header += block
        if b"</siteinfo>" in header or _PAGE_START in header or len(header) > MAX_PAGE_BYTES:
            break
    _check_header(path, header)
    header, closed, _ = header.partition(_PAGE_START)[0].partition(b"</siteinfo>")
    try:
        root = ElementTree.fromstring(header + closed + b"</mediawiki>")
        namespaces = [
            (int(each.attrib["key"]), each.get("case"), each.text or "") for each in root.iterfind(".//{*}namespace")
        ]
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise CorruptInput(f"{path} has a header that cannot be read ({error}); {EXPECTED}") from error
    base = root.findtext(".//{*}base") or "https://en.wikipedia.org/wiki/Main_Page"
    return Site(
        dbname=root.findtext(".//{*}dbname") or "",
        base_url=base[: base.rfind("/") + 1],
        language=root.get(_LANGUAGE, "en"),
        case=root.findtext(".//{*}case") or "first-letter",
        namespaces=tuple((number, name) for number, _, name in namespaces) or default_namespaces(),
        case_sensitive=frozenset(number for number, case, _ in namespaces if case == "case-sensitive"),
    )


def read_range(path: Path, byte_range: ByteRange) -> Iterator[RawPage | FailedPage]:
    """Yield the pages of one range of an export in its own order, with at most one page in memory beside a few MB."""
    is_header = byte_range.start == 0
    buffer = bytearray()
    for block in read_blocks(path, byte_range):
        position, searched = 0, max(len(buffer) - len(_PAGE_CLOSE), 0)
        buffer += block
        while (end := buffer.find(_PAGE_CLOSE, searched)) >= 0:
            start = buffer.find(_PAGE_START, position, end)
            _check_size(path, end - start)
            if is_header:
                _check_header(path, buffer)
            elif start < 0 or buffer[position:start].strip():
                shown = bytes(buffer[position : position + 40])
                raise CorruptInput(f"{path} holds {shown!r} between two pages; {EXPECTED}")
            if buffer.find(_PAGE_START, start + 1, end) >= 0:
                shown = bytes(buffer[start : start + 80])
                raise CorruptInput(f"{path} holds a page that is not closed: {shown!r}; {EXPECTED}")
            position = searched = end + len(_PAGE_CLOSE)
            yield parse_page(bytes(buffer[start:position]))
            is_header = False
        del buffer[:position]
        _check_size(path, len(buffer))
    _check_end(path, buffer, is_header, byte_range.end == cover_file(path).end)


def _check_size(path: Path, size: int) -> None:
    if size > MAX_PAGE_BYTES:
        raise CorruptInput(f"{path} holds a page of over {MAX_PAGE_BYTES >> 20} MiB; {EXPECTED}")


def _check_end(path: Path, rest: bytes | bytearray, is_header: bool, is_last: bool) -> None:
    if is_header:
        _check_header(path, rest)
    if is_last and not rest.rstrip().endswith(b"</mediawiki>"):
        raise CorruptInput(f"{path} is truncated: it does not end with </mediawiki>; {EXPECTED} that is whole")
    rest = rest.rstrip().removesuffix(b"</mediawiki>") if is_last else rest
    if _PAGE_START in rest or (not is_header and rest.strip()):
        raise CorruptInput(
            f"{path} has a range that ends inside a page: {bytes(rest[:40])!r}; {EXPECTED} that is whole"
        )


def _check_header(path: Path, header: bytes | bytearray) -> None:
    start = header[:8192]
    if b"<mediawiki" not in start:
        raise CorruptInput(f"{path} has no <mediawiki> element at its start; {EXPECTED}")
    if b"<!DOCTYPE" in start:
        raise CorruptInput(f"{path} declares a DOCTYPE, which no MediaWiki export does; {EXPECTED}")


@cache
def _compile_redirect() -> re.Pattern[str]:
    words = "|".join(split_names(read_data("wikis")["redirects"]))
    return re.compile(rf"[ \t\r\n]*#(?:{words})\s*+(?::\s*+)?\[\[\s*:?([^\]|#\n]+)", re.IGNORECASE)


def default_namespaces() -> tuple[tuple[int, str], ...]:
    """Return the namespaces of English Wikipedia, for an export that carries no ``<siteinfo>``."""
    return tuple((int(number), name) for number, name in read_data("wikis")["namespaces"].items())


def parse_page(source: bytes) -> RawPage | FailedPage:
    """Read one ``<page>`` element."""
    try:
        if source.count(b"<") > _MAX_TAGS:
            raise RecordFailed("nested-element", f"over {_MAX_TAGS:,} tags")
        return _read_page(ElementTree.fromstring(source.decode()))
    except UnicodeDecodeError as error:
        failed = RecordFailed("not-utf8", f"{error.reason} at byte {error.start:,} of {len(source):,}")
    except ElementTree.ParseError as error:
        failed = RecordFailed("no-xml", str(error))
    except RecordFailed as error:
        failed = error
    found = _HEAD.findall(source.partition(b"<revision>")[0].decode("utf-8", "replace"))
    title = html.unescape(next((title for title, _ in found if title), "")).strip()[:_SHOWN_TITLE]
    number = next((number for _, number in found if number), "")
    record_id = f"page:{int(number)}" if number else f"title:{title}"
    return FailedPage(record_id, failed.error, f"{title or 'a page without title'}: {failed.detail}")


def _read_page(page: ElementTree.Element) -> RawPage:
    title = _read_element(page, "title") or ""
    namespace = _read_number(page, "ns", _NUMBER)
    if not title.strip():
        raise RecordFailed("no-title", "a page has no <title>")
    if (size := len((title.partition(":")[2] if namespace else title).encode())) > MAX_TITLE_BYTES:
        raise RecordFailed("title-too-long", f"{size:,} bytes of title; allowed are {MAX_TITLE_BYTES}")
    revision = next(reversed(page.findall("revision")), None)
    text = "" if revision is None else _read_text(revision)
    tag = page.find("redirect")
    written = _compile_redirect().match(text) if tag is None else None
    redirect = tag.get("title") if tag is not None else written.group(1) if written else None
    return RawPage(
        page_id=_read_number(page, "id", _PAGE_ID),
        namespace=namespace,
        title=title.replace("_", " "),
        redirect=None if redirect is None else redirect.partition("#")[0].replace("_", " ").strip(),
        revision=0 if revision is None else _read_number(revision, "id", _PAGE_ID),
        timestamp="" if revision is None else _read_timestamp(revision),
        text=text,
    )


def _read_element(parent: ElementTree.Element, name: str) -> str | None:
    found = parent.findall(name)
    if len(found) > 1:
        raise RecordFailed("duplicate-element", f"<{name}> twice")
    if found and len(found[0]):
        raise RecordFailed("nested-element", f"an element inside <{name}>")
    return found[0].text or "" if found else None


def _read_number(parent: ElementTree.Element, name: str, allowed: re.Pattern[str]) -> int:
    value = _read_element(parent, name)
    if value is None or not allowed.fullmatch(value.strip()):
        shown = None if value is None else value[:40]
        raise RecordFailed("invalid-number", f"{shown!r} as a <{name}>; expected a number of at most 18 digits")
    return int(value)


def _read_timestamp(revision: ElementTree.Element) -> str:
    timestamp = _read_element(revision, "timestamp") or ""
    try:
        is_time = not timestamp or f"{datetime.fromisoformat(timestamp):%Y-%m-%dT%H:%M:%SZ}" == timestamp
    except ValueError:
        is_time = False
    if not is_time:
        raise RecordFailed("invalid-timestamp", f"{timestamp[:40]!r}; expected such as 2025-01-31T09:30:00Z")
    return timestamp


def _read_text(revision: ElementTree.Element) -> str:
    # The main slot comes first and bare, or is named like the others.
    slots = revision.findall("content")
    main = next((slot for slot in slots if slot.findtext("role") == "main"), revision)
    return _read_element(main, "text") or ""


_BIDI = re.compile("[\u200e\u200f\u202a-\u202e]")
_SPACES = re.compile("[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\t\r\n]+")
_PERCENT = re.compile("%[0-9A-Fa-f]{2}")
_ENTITY = re.compile("&(?:[A-Za-z0-9]+|#[0-9]+|#[xX][0-9A-Fa-f]+);")
_ILLEGAL = re.compile(
    "[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]|~~~|%[0-9A-Fa-f]{2}|&(?:[A-Za-z0-9\x80-\U0010ffff]+|#[0-9]+|#[xX][0-9A-Fa-f]+);"
)
_RELATIVE = re.compile(r"(?:^|/)\.\.?(?:/|$)")
_KEPT_LETTERS = re.compile(
    "[\u0345\u01c5\u01c8\u01cb\u01f2\u10d0-\u10ff\u2170-\u217f\u24d0-\u24e9\ua7b9\U00016e60-\U00016e7f]"
)
"""Letters with a capital in Unicode that a title does not take."""
MAX_TITLE_BYTES = 255
_MAX_OWN_PREFIXES = 2  # MediaWiki drops any number, one at a time; each takes another pass over the rest


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """A page of this wiki that a link names."""

    namespace: int
    title: str
    """Normalised, without namespace prefix."""
    fragment: str
    """Section name after ``#``, or empty."""


class TitleRules:
    """Resolves link targets by the rules of one wiki."""

    def __init__(self, site: Site) -> None:
        self.language = site.language
        self._is_capital = site.case == "first-letter"
        self._kept_cases = site.case_sensitive
        wikis = read_data("wikis")
        self._namespaces = wikis["aliases"] | wikis["namespace_aliases"].get(site.language, {})
        self._namespaces.update({name.lower().replace("_", " "): number for number, name in site.namespaces if name})
        self._other_wikis = read_names("wikis", "projects") | read_names("wikis", "languages")
        self._own_prefixes = _list_own_prefixes(site).difference(self._namespaces)

    def resolve(self, raw_target: str) -> LinkTarget | None:
        """Resolve the text between ``[[`` and ``|`` or ``]]``.

        None for another wiki or language, a bare ``#fragment``, an invalid title, over two prefixes of the own wiki.
        """
        title, _, fragment = normalise_spaces(_decode(raw_target)).partition("#")
        namespace, title = 0, title.strip().removeprefix(":").strip()
        for _ in range(_MAX_OWN_PREFIXES):
            prefix, colon, rest = title.partition(":")
            if not colon or prefix.strip().lower() not in self._own_prefixes:
                break
            title = rest.strip().removeprefix(":").strip()
        if ":" in title:
            prefix, _, rest = title.partition(":")
            prefix = prefix.strip().lower()
            if prefix in self._namespaces:
                namespace, title = self._namespaces[prefix], rest.strip()
            elif prefix in self._other_wikis or prefix in self._own_prefixes:
                return None
        if not _is_legal(title):
            return None
        return LinkTarget(namespace, self.capitalise(title, namespace), fragment.strip())

    def capitalise(self, title: str, namespace: int = 0) -> str:
        """Upper-case the first letter where the wiki does so; letters whose capital is longer stay (``ß``)."""
        keeps = namespace in self._kept_cases if self._kept_cases else not self._is_capital
        if keeps or not title:
            return title
        if title[0] == "i" and self.language in read_names("wikis", "dotted"):
            return "\u0130" + title[1:]
        return _raise_letter(title[0]) + title[1:]


def _list_own_prefixes(site: Site) -> frozenset[str]:
    code = site.dbname.removesuffix("wiki").replace("_", "-") or site.language
    is_wikipedia = not site.dbname or (site.dbname.endswith("wiki") and code not in read_names("wikis", "projects"))
    return frozenset({code, "w", "wikipedia"} if is_wikipedia else {code})


def _raise_letter(letter: str) -> str:
    if letter.isascii():
        return letter.upper()
    if _KEPT_LETTERS.match(letter):
        return letter
    return next((capital for capital in (letter.upper(), letter.title()) if len(capital) == 1), letter)


def _is_legal(title: str) -> bool:
    if not title or title[0] == ":" or len(title.encode("utf-8", "replace")) > MAX_TITLE_BYTES:
        return False
    return not _ILLEGAL.search(title) and not _RELATIVE.search(title)


NO_ARTICLE = 0
"""In place of the hash of a title: the link names no article of this wiki."""


def hash_article(target: LinkTarget | None) -> int:
    """Return the hash of the title of the article that a link names, ``NO_ARTICLE`` when it names none."""
    return hash_title(target.title) if target is not None and target.namespace == 0 else NO_ARTICLE


def hash_title(title: str) -> int:
    """Return the 64-bit XXH3 digest of a normalised title, its key until it has a node; never 0."""
    return xxhash.xxh3_64_intdigest(title.encode("utf-8", "surrogatepass")) or 1


def normalise_spaces(title: str) -> str:
    """Drop bidirectional marks, make every run of spaces and underscores one space, strip, and compose (NFC)."""
    if title.isascii():
        return _SPACES.sub(" ", title).strip()
    return unicodedata.normalize("NFC", _SPACES.sub(" ", _BIDI.sub("", title)).strip())


def is_list_title(title: str) -> bool:
    """Return whether a title announces a list, an outline, an index or a timeline."""
    return title.startswith(("List of ", "Lists of ", "Outline of ", "Index of ", "Timeline of "))


def is_disambiguation_title(title: str) -> bool:
    """Return whether a title carries the disambiguation qualifier."""
    return title.endswith("(disambiguation)")


def strip_qualifier(title: str) -> str:
    """Drop a closing parenthesis or the part after the first comma: ``Paris (mythology)``, ``Springfield, Ohio``."""
    base = re.sub(r"\s*\([^()]*\)$", "", title)
    return base.partition(", ")[0].strip() or title


def _decode(raw: str) -> str:
    if "%" in raw and _PERCENT.search(raw):
        raw = unquote(raw, errors="replace")
    return _ENTITY.sub(lambda match: html.unescape(match[0]), raw) if "&" in raw else raw
