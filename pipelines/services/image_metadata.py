"""Remote pictures: protocols of their metadata, search and fetching, and their rows in the corpus."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from pipelines.services.protocols import Backend
from schemas.corpus import CorpusImage

MOST_FILES = 50
"""Most files of one request."""

FORMATS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
"""Formats that :mod:`pipelines.pictures` reads, by MIME type."""
WRONG_FORMAT = "format"
"""Error of a picture of another format."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a service says of one file.

    Texts are empty and sizes 0 if they are not known. ``url``, ``sha1`` (40 hex digits) and sizes (pixels as displayed)
    are the original's, ``source_url`` is the file's page, ``licence`` the short name on Wikimedia Commons.
    """

    url: str
    width: int
    height: int
    mime: str
    bytes: int
    sha1: str
    licence: str
    licence_url: str
    author: str
    source_url: str


class ImageMetadata(Backend, Protocol):
    """A service that knows size, licence and author of pictures."""

    async def describe_images(self, files: Sequence[str]) -> dict[str, ImageFacts | None]:
        """Return what is known of each file, None for one that the service does not have; no file is left out.

        Files are names without ``File:``, with underscores or spaces.

        Raises:
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached, refuses the client, or leaves files out of its reply.
            ConfigError: if the address is no such service.
        """


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A picture to be fetched: its name with spaces, and the address, width (pixels) and sha1 of the original."""

    file: str
    url: str
    width: int
    sha1: str = ""


class FileFetch(Backend, Protocol):
    """A service that hands out pictures."""

    async def fetch_file(self, file: RemoteFile) -> bytes:
        """Return the whole bytes of a picture in a format that :mod:`pipelines.pictures` reads.

        Raises:
            RecordFailed: ``picture-missing``, ``picture-too-large``, ``picture-format``, ``picture-changed`` (not the
            bytes that were described), ``picture-address`` (not the service's). RateLimited: if the service asks to
            slow down. Unavailable: if the service cannot be reached or refuses the client.
        """


def look_up_images(metadata: ImageMetadata, files: Sequence[str]) -> dict[str, CorpusImage]:
    """Return the corpus's rows of remote pictures by file name, without those that the service does not have.

    For callers outside an event loop; raises as :meth:`ImageMetadata.describe_images`.
    """
    facts = asyncio.run(metadata.describe_images(list(dict.fromkeys(files))))
    return {file: make_row(file, fact) for file, fact in facts.items() if fact is not None}


def make_row(file: str, facts: ImageFacts) -> CorpusImage:
    """Return the corpus's row of a remote picture: no path, sha256 or hash."""
    known = asdict(facts)
    del known["sha1"]
    mime = known.pop("mime")
    error = "" if mime in FORMATS else WRONG_FORMAT
    empty: dict[str, Any] = {"title": (), "path": "", "sha256": "", "phash": ""}
    return CorpusImage(file=file, format=FORMATS.get(mime, ""), error=error, **known, **empty)
