"""Controlled degradations of a picture: blur, downsampling, perspective (OpenSearch-VL, section 3.2).

The paper gives no strengths. Here one number from 0 to 1 says how strong, and what it came to in pixels is recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageFilter

from pipelines.agent.warping import Corners, list_frame, warp_picture
from pipelines.ids import draw_unit
from pipelines.picturefiles.stripping import find_extension
from pipelines.pixels import encode_picture, open_pixels
from schemas.enhancements import Degradation, Parameter

VERSION = 1
"""Raised when a degradation makes other pixels of the same picture."""
MOST_SIGMA = 0.02
"""Standard deviation of the strongest blur, as a share of the picture's shorter side."""
MOST_FACTOR = 10.0
"""By which the strongest downsampling divides width and height."""
MOST_SHIFT = 0.3
"""Farthest that perspective moves a corner, as a share of the picture's width and height."""
LEAST_DRAW = 0.4
"""Each corner moves by at least this share of what the strength allows, so that no picture stays as it is."""
MARGIN = 0.04
"""Backdrop left on each side, as a share of the side, so that every edge of the picture is in view."""
MIN_SIDE = 32
BACKDROPS = ((24, 24, 28), (236, 236, 232), (128, 128, 132))
_ROUNDED = 0.006
"""Pixels by which a corner's place may be off, as it is rounded to a hundredth."""
_CORNERS = ("upper_left", "upper_right", "lower_right", "lower_left")

Degrade = Callable[[Image.Image, float, Sequence[object]], tuple[Image.Image, tuple[Parameter, ...]]]


@dataclass(frozen=True, slots=True)
class Degraded:
    """A degraded picture's bytes and what decided them."""

    data: bytes
    parameters: tuple[Parameter, ...]


def degrade_picture(data: bytes, degradation: Degradation, strength: float, *seed: object) -> Degraded:
    """Return a picture, degraded.

    Args:
        data: a picture file's bytes.
        degradation: which.
        strength: over 0, up to 1; a stronger one of the same seed never does less.
        seed: decides the corners of perspective; the others do not draw.

    Returns:
        JPEG for a JPEG, else PNG; no side under 32 pixels, unless the picture's own is.

    Raises:
        RecordFailed: if the picture cannot be decoded.
    """
    shown, parameters = _DEGRADATIONS[degradation](open_pixels(data), strength, seed)
    return Degraded(encode_picture(shown, find_extension(data)), parameters)


def _blur(shown: Image.Image, strength: float, seed: Sequence[object]) -> tuple[Image.Image, tuple[Parameter, ...]]:
    (sigma,) = _plan_blur(shown.size, strength)
    return shown.filter(ImageFilter.GaussianBlur(sigma.value)), (sigma,)


def _plan_blur(size: tuple[int, int], strength: float) -> tuple[Parameter, ...]:
    return (Parameter(name="sigma", value=round(strength * MOST_SIGMA * min(size), 3)),)


def _downsample(
    shown: Image.Image, strength: float, seed: Sequence[object]
) -> tuple[Image.Image, tuple[Parameter, ...]]:
    parameters = _plan_downsample(shown.size, strength)
    return shown.resize(measure_degraded("downsample", parameters, shown.size), Image.Resampling.BOX), parameters


def _plan_downsample(size: tuple[int, int], strength: float) -> tuple[Parameter, ...]:
    wanted = 1.0 + strength * (MOST_FACTOR - 1.0)
    factor = max(1.0, min(wanted, min(size) / MIN_SIDE))
    width, height = (max(1, round(side / factor)) for side in size)
    return (
        Parameter(name="factor", value=round(factor, 3)),
        Parameter(name="width", value=float(width)),
        Parameter(name="height", value=float(height)),
    )


def _turn_away(
    shown: Image.Image, strength: float, seed: Sequence[object]
) -> tuple[Image.Image, tuple[Parameter, ...]]:
    """Show the picture as if seen from the side, on a backdrop that its edges stand out from."""
    target = place_corners(shown.size, strength, seed)
    turned = warp_picture(shown, list_frame(*shown.size), target, shown.size, _choose_backdrop(shown))
    parameters = tuple(
        Parameter(name=f"{corner}_{axis}", value=value)
        for corner, point in zip(_CORNERS, target, strict=True)
        for axis, value in zip("xy", point, strict=True)
    )
    return turned, parameters


def place_corners(size: tuple[int, int], strength: float, seed: Sequence[object]) -> Corners:
    """Return where the corners of a picture of ``size`` (width, height) come to lie: inwards, each by its own draw.

    Convex at every strength: no corner moves as far as the middle.
    """
    points = []
    for corner, frame in zip(_CORNERS, list_frame(*size), strict=True):
        place = []
        for axis, edge, side in zip("xy", frame, size, strict=True):
            drawn = LEAST_DRAW + (1 - LEAST_DRAW) * draw_unit(*seed, corner, axis)
            inwards = (MARGIN + strength * MOST_SHIFT * drawn) * side
            place.append(round(edge + (inwards if edge == 0 else -inwards), 2))
        points.append((place[0], place[1]))
    return points[0], points[1], points[2], points[3]


def measure_degraded(
    degradation: Degradation, parameters: Sequence[Parameter], size: tuple[int, int]
) -> tuple[int, int]:
    """Return width and height of what a degradation makes of a picture of ``size``."""
    if degradation != "downsample":
        return size
    told = {parameter.name: round(parameter.value) for parameter in parameters}
    return told["width"], told["height"]


def fits_strength(
    degradation: Degradation, strength: float, parameters: Sequence[Parameter], size: tuple[int, int]
) -> bool:
    """Say whether a degradation of a picture of ``size`` (width, height) can have these parameters at a strength.

    The corners of perspective are drawn: they are held to what the strength lets them move.
    """
    if not 0 < strength <= 1:
        return False
    if degradation != "perspective":
        plan = _plan_blur if degradation == "blur" else _plan_downsample
        return tuple(parameters) == plan(size, strength)
    names = [f"{corner}_{axis}" for corner in _CORNERS for axis in "xy"]
    if [parameter.name for parameter in parameters] != names:
        return False
    edges = [edge for corner in list_frame(*size) for edge in corner]
    least, most = (MARGIN + strength * MOST_SHIFT * drawn for drawn in (LEAST_DRAW, 1.0))
    return all(
        least * side - _ROUNDED <= (parameter.value if edge == 0 else edge - parameter.value) <= most * side + _ROUNDED
        for parameter, edge, side in zip(parameters, edges, size * 4, strict=True)
    )


def _choose_backdrop(shown: Image.Image) -> tuple[int, int, int]:
    """Return the backdrop that nearly all of the picture's border stands out from, as brightness goes."""
    gray = np.asarray(shown.convert("L"), dtype=np.float64)
    border = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    return max(BACKDROPS, key=lambda colour: float(np.quantile(np.abs(border - colour[0]), 0.05)))


_DEGRADATIONS: Mapping[Degradation, Degrade] = MappingProxyType(
    {"blur": _blur, "downsample": _downsample, "perspective": _turn_away}
)
