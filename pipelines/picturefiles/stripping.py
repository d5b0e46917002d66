"""One frame of a picture without metadata.

Decoders read comments, profiles and further frames before anybody asks for them, some in time that grows with the
square of their length, and tell of broken ones by warnings, whose filters all threads share.
"""

import struct
from collections.abc import Callable

from pipelines.errors import RecordFailed
from pipelines.picturefiles.gif import strip_gif
from pipelines.picturefiles.jpeg import strip_jpeg
from pipelines.picturefiles.limits import MAX_BYTES, BarePicture
from pipelines.picturefiles.png import strip_png
from pipelines.picturefiles.webp import strip_webp

_MAGIC: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("jpg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP"),
)
_STRIPPERS: dict[str, Callable[[bytes], BarePicture]] = {
    "jpg": strip_jpeg,
    "png": strip_png,
    "gif": strip_gif,
    "webp": strip_webp,
}


def find_extension(data: bytes) -> str:
    """Return ``jpg``, ``png``, ``gif`` or ``webp`` by magic bytes, empty for anything else (SVG, TIFF, HTML)."""
    return next((extension for extension, matches in _MAGIC if matches(data[:16])), "")


def strip_picture(data: bytes) -> BarePicture:
    """Take a picture file apart, in time linear in its length and without decoding anything.

    Raises:
        RecordFailed: ``picture-format`` for a format outside the allow-list; ``picture-too-large`` over 128 MiB, 50
            megapixels (JPEG 100), 20,000 pixels a side, 65,536 parts or 64 scans; ``picture-undecodable`` for a broken
            structure.
    """
    if len(data) > MAX_BYTES:
        raise RecordFailed("picture-too-large", f"{len(data)} bytes, allowed are {MAX_BYTES}")
    extension = find_extension(data)
    if not extension:
        raise RecordFailed("picture-format", f"starts with {data[:8]!r}; allowed are JPEG, PNG, GIF and WebP")
    try:
        return _STRIPPERS[extension](data)
    except (ValueError, IndexError, struct.error) as error:
        raise RecordFailed("picture-undecodable", f"{extension} of {len(data)} bytes: {error}") from error
