"""The picture as an OCR engine is given it: decoded, enlarged within bounds, and the way back for its boxes."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL.Image import Image, Resampling

from pipelines.errors import ConfigError
from pipelines.pixels import open_pixels

MAX_READ_PIXELS = 4_000_000
"""Pixels that an engine is given at most; at eight million RapidOCR takes 1.7 GB and ten seconds."""
_MAX_READ_SIDE = 16_384
"""Tesseract's limit is 32,767; no text needs more."""


@dataclass(frozen=True, slots=True)
class ScaledPicture:
    """A picture to be read, with its own size beside that of the enlargement."""

    image: Image
    """RGB, as displayed."""
    width: int
    height: int

    def restore_box(self, corners: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
        """Return the upright box around points of the enlargement, in pixels of the picture itself and inside it."""
        across, down = self.width / self.image.width, self.height / self.image.height
        xs = [min(max(x * across, 0.0), float(self.width)) for x, _ in corners]
        ys = [min(max(y * down, 0.0), float(self.height)) for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)


def open_scaled(data: bytes, scale: float) -> ScaledPicture:
    """Return a picture enlarged by a factor (Lanczos), or by less where it would pass :data:`MAX_READ_PIXELS`.

    A picture that is larger than that by itself is made smaller: engines are slow and hungry, not sharp-eyed.

    Raises:
        ConfigError: if the scale is no positive number.
        RecordFailed: if the picture cannot be decoded, see :func:`pipelines.pixels.open_pixels`.
    """
    if not 0.0 < scale <= 16.0:
        raise ConfigError(f"OCR at scale {scale!r}; allowed is more than 0, and 16 at most")
    image = open_pixels(data)
    width, height = image.size
    longest = _MAX_READ_SIDE / max(width, height)
    factor = min(scale, (MAX_READ_PIXELS / (width * height)) ** 0.5, longest)
    size = (max(1, int(width * factor)), max(1, int(height * factor)))
    return ScaledPicture(image if size == image.size else image.resize(size, Resampling.LANCZOS), width, height)
