"""A picture as a model takes it: open_clip's ``preprocess_val`` with Pillow alone, up to the normalisation.

Shrinking and cutting are one step, so that only the part which stays is ever computed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.errors import ConfigError
from pipelines.picturefiles.stripping import strip_picture
from pipelines.pixels import decode_bare

VERSION = 1
"""Part of an encoder's identity: raised when pixels come out otherwise."""
Mode = Literal["shortest", "longest", "squash"]
_SCALES = (8, 4, 2)
"""Fractions of its size at which a JPEG can be decoded, for much less than the whole costs."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What a model wants of a picture.

    Attributes:
        height: pixels of the result.
        width: likewise.
        mode: ``shortest``: the shorter side fits and the rest of the longer one is cut off; ``longest``: the longer
            side fits and the rest is filled up; ``squash``: both fit.
        bicubic: else bilinear.
        fill: 0..255, of each colour.
        mean: of red, green and blue in 0..1, subtracted at last.
        deviation: likewise, and divided by.
    """

    height: int
    width: int
    mode: Mode
    bicubic: bool
    fill: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Preprocessing":
        """Return what open_clip's ``preprocess_cfg`` says.

        Raises:
            ConfigError: if it says something that open_clip does not know.
        """
        size, mode, interpolation = settings["size"], settings["resize_mode"], settings["interpolation"]
        if mode not in ("shortest", "longest", "squash") or interpolation not in ("bicubic", "bilinear", "random"):
            raise ConfigError(f"encoder.model: preprocessing {mode}, {interpolation} is none of open_clip's")
        height, width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[-1]))
        # open_clip drops the interpolation on this one way.
        bicubic = interpolation != "bilinear" or (mode == "shortest" and height != width)
        mean, deviation = (tuple(settings[key]) for key in ("mean", "std"))
        return cls(height, width, mode, bicubic, int(settings["fill_color"]), mean, deviation)

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height of a whole picture before it is cut or filled up, rounded as open_clip rounds."""
        if self.mode == "squash":
            return self.width, self.height
        ratios = (height / self.height, width / self.width)
        if self.mode == "shortest" and self.height == self.width:
            short = min(width, height)
            return (
                self.width if width == short else int(self.width * width / short),
                self.height if height == short else int(self.height * height / short),
            )
        ratio = min(ratios) if self.mode == "shortest" else max(ratios)
        return max(1, round(width / ratio)), max(1, round(height / ratio))


def square_picture(data: bytes, preprocessing: Preprocessing) -> NDArray[np.uint8]:
    """Return the pixels of a picture file, of shape (height, width, 3), 0..255.

    Raises:
        RecordFailed: as :func:`pipelines.pixels.open_pixels` says.
    """
    bare = strip_picture(data)
    side = choose_side(bare.width, bare.height, preprocessing) if bare.extension == "jpg" else 0
    return np.asarray(square_pixels(decode_bare(bare, side), preprocessing))


def choose_side(width: int, height: int, preprocessing: Preprocessing) -> int:
    """Return the longest side to decode a JPEG at, pixels: a half of its own, or less; 0 for its own.

    Reduced, it is never smaller than the model's picture, so that nothing is enlarged which need not be.
    """
    wanted = max(preprocessing.height, preprocessing.width)
    scale = next((scale for scale in _SCALES if min(width, height) >= wanted * scale), 1)
    return -(-max(width, height) // scale) if scale > 1 else 0


def square_pixels(shown: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Return a picture shrunk, and cut or filled up, to what a model takes."""
    size = preprocessing.fit(shown.width, shown.height)
    target = (preprocessing.width, preprocessing.height)
    kept = (min(size[0], target[0]), min(size[1], target[1]))
    starts = (round((size[0] - kept[0]) / 2.0), round((size[1] - kept[1]) / 2.0))
    scales = (shown.width / size[0], shown.height / size[1])
    box = (
        starts[0] * scales[0],
        starts[1] * scales[1],
        min((starts[0] + kept[0]) * scales[0], shown.width),
        min((starts[1] + kept[1]) * scales[1], shown.height),
    )
    filtered = Image.Resampling.BICUBIC if preprocessing.bicubic else Image.Resampling.BILINEAR
    resized = shown.resize(kept, filtered, box=box)
    if kept == target:
        return resized
    canvas = Image.new("RGB", target, (preprocessing.fill,) * 3)
    canvas.paste(resized, ((target[0] - kept[0]) // 2, (target[1] - kept[1]) // 2))
    return canvas
