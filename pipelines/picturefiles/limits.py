"""How large a picture may be, and what is known of it before anything is decoded."""

from dataclasses import dataclass

from pipelines.errors import RecordFailed

MAX_BYTES = 128 * 1024 * 1024
MAX_PIXELS = 100_000_000
"""Of a JPEG: one of that size takes about 1 GB to decode, at reduced scale far less."""
MAX_WHOLE_PIXELS = 50_000_000
"""Of a format that is decoded whole or not at all. A WebP without loss takes up to 19 bytes a pixel meanwhile."""
MAX_SIDE = 20_000
"""Longest side in pixels."""
MAX_PARTS = 65_536
"""Segments, chunks or blocks of one file. A PNG of 128 MiB in chunks of the usual 8 KiB has a quarter of them."""


@dataclass(frozen=True, slots=True)
class BarePicture:
    """One frame of a picture as a file of its own, without metadata."""

    extension: str
    width: int
    """As stored, in pixels: the orientation is not applied."""
    height: int
    orientation: int
    """1 to 8 as Exif counts, 1 where nothing is said."""
    depth: int
    """Bits of a sample."""
    data: bytes


def check_size(width: int, height: int, most: int = MAX_WHOLE_PIXELS) -> None:
    """Refuse a size that is none or too large; ``most`` is how many pixels it may have in all.

    Raises:
        ValueError: if a side is under 1.
        RecordFailed: ``picture-too-large``.
    """
    if width < 1 or height < 1:
        raise ValueError(f"size {width}x{height}")
    if max(width, height) > MAX_SIDE:
        raise RecordFailed("picture-too-large", f"{width}x{height} pixels, allowed are {MAX_SIDE} a side")
    if width * height > most:
        raise RecordFailed("picture-too-large", f"{width}x{height} pixels, allowed are {most} in all")


def check_parts(count: int) -> None:
    """Refuse a file of too many parts.

    Raises:
        RecordFailed: ``picture-too-large``.
    """
    if count > MAX_PARTS:
        raise RecordFailed("picture-too-large", f"more than {MAX_PARTS} parts")
