"""What a search found, as rows keep it: pages, and small pictures of what they show."""

import io
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Protocol

from pipelines.agent.transcript import neutralise_markup
from pipelines.backends.protocols import ImageHit, TextHit
from pipelines.errors import RecordFailed, Unavailable
from pipelines.picturefiles.limits import MAX_BYTES
from pipelines.pictures import PictureSource
from pipelines.pixels import open_pixels
from schemas.groundings import Picture
from schemas.searches import SearchResult

VERSION = 1
"""Raised when other bytes are made of the same picture."""
SIDE = 256
"""Longest side of a thumbnail, pixels; a smaller picture is not enlarged."""
QUALITY = 80
KEPT = 4096
"""Thumbnails remembered, some 4 MB; one that was forgotten is made again, to the same bytes."""
LONGEST_URL = 2000
"""Characters; a page with a longer address cannot be visited."""


class PictureKeeper(Protocol):
    """What thumbnails need of the workspace's image store."""

    def add_bytes(self, data: bytes, source: PictureSource) -> Picture:
        """Store a picture."""


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """Makes small copies of pictures that a search found, each once, and keeps whose they are and under what licence.

    Safe from any thread; two that ask for one at the same time make the same file.
    """

    store: PictureKeeper
    _made: OrderedDict[str, Picture | None] = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @property
    def identity(self) -> str:
        """Name, version, side and quality."""
        return f"thumbnails@{VERSION}:{SIDE}:{QUALITY}"

    def make(self, path: Path, sha256: str, source: PictureSource) -> Picture | None:
        """Return the thumbnail of a picture file as a row value, stored; None for one that cannot be decoded.

        Args:
            path: where the picture lies.
            sha256: of its content.
            source: whose it is; the thumbnail's is the same.

        Raises:
            Unavailable: if the file is not there any more, or the disk does not take the thumbnail.
        """
        with self._lock:
            if sha256 in self._made:
                self._made.move_to_end(sha256)
                return self._made[sha256]
        thumbnail = self._make(path, source)
        with self._lock:
            self._made[sha256] = thumbnail
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        return thumbnail

    def _make(self, path: Path, source: PictureSource) -> Picture | None:
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise Unavailable(f"picture {path}: {error.strerror}; bring it back and run again") from error
        try:
            return self.store.add_bytes(shrink_picture(data), source)
        except RecordFailed:
            return None


def shrink_picture(data: bytes) -> bytes:
    """Return a picture of at most :data:`SIDE` pixels a side as a JPEG file: upright, transparent parts on white.

    Raises:
        RecordFailed: if it cannot be decoded, see :func:`pipelines.pixels.open_pixels`.
    """
    target = io.BytesIO()
    open_pixels(data, max_side=SIDE).save(target, "JPEG", quality=QUALITY)
    return target.getvalue()


def keep_result(hit: TextHit | ImageHit, image: str = "") -> SearchResult:
    """Return a hit as rows keep it, stripped of markup.

    Args:
        hit: of a search by words or by picture.
        image: id under which its thumbnail is shown, if it is.
    """
    thumbnail = hit.thumbnail if isinstance(hit, ImageHit) else None
    return SearchResult(url=clean_text(hit.url), title=clean_text(hit.title), thumbnail=thumbnail, image=image)


def keep_results(hits: Sequence[TextHit | ImageHit]) -> tuple[SearchResult, ...]:
    """Return hits as rows keep them, none of them shown."""
    return tuple(keep_result(hit) for hit in hits)


def clean_text(text: str) -> str:
    """Return text from outside without markup, and with a question mark for what is no character."""
    return neutralise_markup(text.encode("utf-8", "replace").decode())
