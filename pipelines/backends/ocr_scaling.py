"""The picture as an OCR engine is given it: decoded, enlarged within bounds, and the way back for its boxes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from pipelines.errors import ConfigError
from pipelines.picturefiles.stripping import strip_picture
from pipelines.pixels import open_pixels

MAX_READ_PIXELS = 4_000_000
"""Pixels that an engine is given at most: engines take a second for each million."""
MAX_ENLARGED_PIXELS = 2_000_000
"""Pixels up to which a picture is enlarged: what is larger by itself shows small letters well enough."""
MIN_GAIN = 1.4
"""How much larger a picture has to become to be read once more, where it cannot become as large as was asked."""
_MAX_READ_SIDE = 16_384
"""Tesseract's limit is 32,767; no text needs more."""


@dataclass(frozen=True, slots=True)
class ScaledPicture:
    """A picture to be read, with its own size beside that of the enlargement."""

    image: Image.Image
    """RGB, as displayed."""
    width: int
    height: int

    def restore_box(self, corners: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
        """Return the upright box around points of the enlargement, in pixels of the picture itself and inside it."""
        across, down = self.width / self.image.width, self.height / self.image.height
        xs = [min(max(x * across, 0.0), float(self.width)) for x, _ in corners]
        ys = [min(max(y * down, 0.0), float(self.height)) for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)


def list_scales(data: bytes, scales: Sequence[float]) -> tuple[float, ...]:
    """Return the scales at which there is something new to be seen: a picture is enlarged within bounds alone.

    Raises:
        ConfigError: if a scale is no positive number.
        RecordFailed: if it is no picture, see :func:`pipelines.picturefiles.stripping.strip_picture`.
    """
    bare = strip_picture(data)
    kept: dict[float, float] = {}
    for scale in scales:
        factor = _find_factor((bare.width, bare.height), scale)
        if factor == scale or not any(factor < MIN_GAIN * other for other in kept.values()):
            kept[scale] = factor
    return tuple(kept)


def open_scaled(data: bytes, scale: float) -> ScaledPicture:
    """Return a picture enlarged by a factor (Lanczos), or by less where it would pass :data:`MAX_ENLARGED_PIXELS`.

    A picture of more than :data:`MAX_READ_PIXELS` is made smaller: engines are slow and hungry, not sharp-eyed.

    Raises:
        ConfigError: if the scale is no positive number.
        RecordFailed: if the picture cannot be decoded, see :func:`pipelines.pixels.open_pixels`.
    """
    _check_scale(scale)
    image = open_pixels(data)
    width, height = image.size
    factor = _find_factor(image.size, scale)
    size = (max(1, int(width * factor)), max(1, int(height * factor)))
    return ScaledPicture(image if size == image.size else image.resize(size, Image.Resampling.LANCZOS), width, height)


def _find_factor(size: tuple[int, int], scale: float) -> float:
    _check_scale(scale)
    pixels = size[0] * size[1]
    enlarged = max(1.0, math.sqrt(MAX_ENLARGED_PIXELS / pixels))
    return min(scale, enlarged, math.sqrt(MAX_READ_PIXELS / pixels), _MAX_READ_SIDE / max(size))


def _check_scale(scale: float) -> None:
    if not 0.0 < scale <= 16.0:
        raise ConfigError(f"OCR at scale {scale!r}; allowed is more than 0, and 16 at most")
