"""Pictures that are not at hand: what a service says of them, how they are found and fetched, and the corpus's row."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.errors import RateLimited, Unavailable
from schemas.corpus import CorpusImage

MOST_FILES = 50
"""Files that one request may ask for."""
_RATE_TRIES = 8
_FIRST_WAIT = 30.0
_LONGEST_WAIT = 60.0

FORMATS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
"""Formats that :mod:`pipelines.pictures` reads, by MIME type."""
WRONG_FORMAT = "format"
"""The error of a picture of any other format."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a service says of one file."""

    url: str
    """Address of the original."""
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
        """Return what is known of each file, None for one that the service does not have; no file is left out.

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
        """Return file names with spaces and what is known of each, best first, at most ``count`` or ``MOST_FILES``.

        Words of the query are no operators. Raises as :meth:`ImageMetadata.describe_images`.
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

    async def describe(batch: Sequence[str]) -> dict[str, ImageFacts | None]:
        for attempt in range(_RATE_TRIES):
            try:
                return await metadata.describe_images(batch)
            except RateLimited as error:
                if error.retry_after > _LONGEST_WAIT:
                    raise Unavailable(f"{error}; run again in {error.retry_after:.0f} s") from error
                if attempt + 1 < _RATE_TRIES:
                    await sleep(error.retry_after or min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT))
        raise Unavailable(f"{metadata.identity}: still rate limited after {_RATE_TRIES} tries")

    wanted = list(dict.fromkeys(files))
    facts: dict[str, ImageFacts | None] = {}
    for start in range(0, len(wanted), MOST_FILES):
        facts |= asyncio.run(describe(wanted[start : start + MOST_FILES]))
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
