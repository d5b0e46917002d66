"""Perspective: pictures drawn through the map of one quadrilateral onto another."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

Point = tuple[float, float]
Corners = tuple[Point, Point, Point, Point]
"""Upper left, upper right, lower right, lower left; pixels from the upper left."""


def list_frame(width: float, height: float) -> Corners:
    """Return the corners of a whole picture."""
    return (0.0, 0.0), (width, 0.0), (width, height), (0.0, height)


def warp_picture(
    shown: Image.Image, source: Corners, target: Corners, size: tuple[int, int], backdrop: tuple[int, int, int]
) -> Image.Image:
    """Return an RGB picture of ``size`` in which the corners ``source`` of ``shown`` lie at ``target``.

    What lies outside the picture is ``backdrop``. No three corners of either quadrilateral may be on a line.
    """
    # Pillow asks for the way back: from a pixel of the result to the place in the picture it is taken from.
    way_back = _solve_map(target, source)
    return shown.transform(size, Image.Transform.PERSPECTIVE, way_back, Image.Resampling.BICUBIC, fillcolor=backdrop)


def _solve_map(start: Sequence[Point], end: Sequence[Point]) -> tuple[float, ...]:
    """Return a..h for four pairs of points: u = (ax + by + c) / (gx + hy + 1), v = (dx + ey + f) / (gx + hy + 1)."""
    rows, values = [], []
    for (x, y), (u, v) in zip(start, end, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return tuple(map(float, np.linalg.solve(np.array(rows, dtype=np.float64), np.array(values, dtype=np.float64))))
