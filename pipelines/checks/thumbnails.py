"""The small picture that several checks look at: decoded once for all of them."""

from functools import lru_cache

from PIL.Image import Image

from pipelines.pixels import open_pixels

SIDE = 256
"""Longest side in pixels: large enough for letters, small enough for the grain of films to go."""


@lru_cache(maxsize=2)
def open_thumbnail(data: bytes) -> Image:
    """Return a picture at most :data:`SIDE` pixels long, not to be written to: the last two files are kept.

    Raises:
        RecordFailed: if the picture cannot be decoded, see :func:`pipelines.pixels.open_pixels`.
    """
    return open_pixels(data, max_side=SIDE)
