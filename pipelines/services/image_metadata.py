"""Pictures that are not at hand: what a service says of them, how they are found and fetched, and the corpus's row."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import Protocol

from pipelines.errors import RateLimited, Unavailable
from schemas.corpus import CorpusImage

MOST_FILES = 50
"""Files that one request may ask for."""
_RATE_TRIES = 8
_FIRST_WAIT = 30.0
_LONGEST_WAIT = 60.0
_MOST_DIGITS = 9
_MAX_HTML = 8_192
_MAX_TAGS = 500
_MAX_TEXT = 1_000
_SILENT_TAGS = frozenset(["style", "script", "template", "head", "title"])
_VOID_TAGS = frozenset(["area", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
_BREAKING_TAGS = frozenset(["br", "p", "div", "li", "tr", "td", "th", "dd", "dt", "table", "ul", "ol"])


FORMATS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
"""Formats that :mod:`pipelines.pictures` reads, by MIME type."""
WRONG_FORMAT = "format"
"""The error of a picture of any other format."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a service says of one file."""

    url: str
    """Address of the original."""
    thumbnail_url: str
    """Address of a smaller copy of the width asked for, empty when none was."""
    width: int
    """In pixels as displayed; 0 when not known."""
    height: int
    mime: str
    bytes: int
    sha1: str
    """Of the original, 40 hex digits; empty when not known."""
    licence: str
    """Short name as Wikimedia Commons shows it; empty when nothing is stated."""
    licence_url: str
    author: str
    """As plain text; empty when not known."""
    source_url: str
    """The file's page."""


class ImageMetadata(Protocol):
    """A service that knows size, licence and author of pictures."""

    @property
    def identity(self) -> str:
        """Endpoint and settings that decide the answers."""

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return what is known of each file, None for one that the service does not have; never fewer than asked.

        Args:
            files: file names without ``File:``, underscores or spaces.

        Raises:
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached, refuses us, or leaves files out of its answer.
            ConfigError: if the address is no such service.
        """


class FileSearch(Protocol):
    """A service that finds pictures by words."""

    @property
    def identity(self) -> str:
        """Endpoint and settings that decide the answers."""

    async def search_files(self, query: str, count: int) -> tuple[tuple[str, ImageFacts], ...]:
        """Return file names with spaces and what is known of each, best first, at most ``count``; empty for none.

        Args:
            query: plain words; nothing in them is an operator.
            count: files wanted, at most ``MOST_FILES`` are given.

        Raises:
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached, refuses us, or leaves files out of its answer.
            ConfigError: if the address is no such service.
        """


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A picture to be fetched."""

    file: str
    """File name with spaces."""
    url: str
    """Address of the original."""
    width: int
    """Of the original, in pixels as displayed."""
    sha1: str = ""
    """Of the original, 40 hex digits; empty when not known."""


class FileFetch(Protocol):
    """A service that hands out pictures."""

    @property
    def identity(self) -> str:
        """Service, and the width that is fetched."""

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return a picture's bytes, whole, in a format by its magic that :mod:`pipelines.pictures` reads.

        Raises:
            RecordFailed: ``picture-missing``, ``picture-too-large``, ``picture-format``, ``picture-undecodable``,
                ``picture-changed`` (not the bytes that were described), ``picture-address`` (not the service's).
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached or refuses us.
        """


def look_up_images(
    metadata: ImageMetadata,
    files: Sequence[str],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> dict[str, CorpusImage]:
    """Return the corpus's rows for pictures that are not at hand, as the service describes them.

    A service that asks to slow down is waited for as long as it says, at most a minute at a time; half a minute and
    then a minute where it does not say. For callers outside an event loop.

    Args:
        metadata: the service, recorded.
        files: file names with spaces, as pages use them.
        sleep: waits a number of seconds.

    Returns:
        Rows with no path by file name; a file that the service does not have is absent.

    Raises:
        Unavailable: the service is away, or asks for more patience than that.
        ConfigError: the address is no such service.
    """
    facts = asyncio.run(_describe(metadata, list(dict.fromkeys(files)), sleep))
    return {file: make_row(file, fact) for file, fact in facts.items() if fact is not None}


def make_row(file: str, facts: ImageFacts) -> CorpusImage:
    """Return the corpus's row for a picture that is not at hand: no path, sha256 or hash."""
    return CorpusImage(
        file=file,
        title=(),
        path="",
        sha256="",
        width=facts.width,
        height=facts.height,
        format=FORMATS.get(facts.mime, ""),
        author=facts.author,
        licence=facts.licence,
        licence_url=facts.licence_url,
        source_url=facts.source_url,
        phash="",
        error="" if facts.mime in FORMATS else WRONG_FORMAT,
        url=facts.url,
        bytes=facts.bytes,
    )


async def _describe(
    metadata: ImageMetadata, files: list[str], sleep: Callable[[float], Awaitable[object]]
) -> dict[str, ImageFacts | None]:
    facts: dict[str, ImageFacts | None] = {}
    for start in range(0, len(files), MOST_FILES):
        facts |= await _describe_patiently(metadata, files[start : start + MOST_FILES], sleep)
    return facts


async def _describe_patiently(
    metadata: ImageMetadata, files: list[str], sleep: Callable[[float], Awaitable[object]]
) -> dict[str, ImageFacts | None]:
    for attempt in range(_RATE_TRIES):
        try:
            return await metadata.describe_images(files)
        except RateLimited as error:
            if error.retry_after > _LONGEST_WAIT:
                raise Unavailable(f"{error}; run again in {error.retry_after:.0f} s") from error
            if attempt + 1 < _RATE_TRIES:
                await sleep(error.retry_after or min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT))
    raise Unavailable(f"{metadata.identity}: still rate limited after {_RATE_TRIES} tries")


def read_wait(headers: Mapping[str, str]) -> float:
    """Return the seconds of Retry-After, given as a number or as a date; 0.0 when it is absent or unreadable.

    A date is compared with the reply's own ``Date``, so that a wrong clock here does not matter.

    Args:
        headers: of a reply, found in any case of letters.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdecimal():
        return float(value) if len(value) <= _MOST_DIGITS else float(10**_MOST_DIGITS)
    until, now = _read_date(value), _read_date(headers.get("date", ""))
    return 0.0 if until is None else max(0.0, (until - (now or datetime.now(UTC))).total_seconds())


def _read_date(value: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


class _TextReader(HTMLParser):
    """Collects the text that a browser would show."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element; inside a hidden one only the depth is counted."""
        if tag in _BREAKING_TAGS:
            self.parts.append(" ")
        if tag in _VOID_TAGS:
            return
        style = "".join((dict(attrs).get("style") or "").lower().split())
        if self._hidden or tag in _SILENT_TAGS or "display:none" in style:
            self._hidden += 1

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag in _BREAKING_TAGS:
            self.parts.append(" ")
        if self._hidden and tag not in _VOID_TAGS:
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        """Keep text that is shown."""
        if not self._hidden:
            self.parts.append(data)


def strip_html(source: str) -> str:
    """Return the text that HTML shows, on one line: no tags, styles, hidden elements or control characters.

    At most 8,192 characters and 500 tags are read and 1,000 characters returned: an author's line, not a page.
    """
    reader = _TextReader()
    try:
        # The parser takes quadratic time for tags that are never closed.
        reader.feed("<".join(source[:_MAX_HTML].split("<")[:_MAX_TAGS]))
        reader.close()
    except AssertionError:  # a marked section of no known kind: what came before it stands
        reader.parts.append(" ")
    text = "".join(char if char.isprintable() or char.isspace() else "" for char in "".join(reader.parts))
    return " ".join(text.split())[:_MAX_TEXT].rstrip()
