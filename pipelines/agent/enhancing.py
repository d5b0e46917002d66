"""Making more of a poor picture: sharper, larger, seen straight on (OpenSearch-VL, appendix F).

OpenCV is imported where it is used: the core does without it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from pipelines.agent.warping import Corners, list_frame, warp_picture
from pipelines.errors import RecordFailed
from pipelines.picturefiles.stripping import find_extension
from pipelines.pixels import encode_picture, open_pixels
from schemas.enhancements import Degradation, Repair

VERSION = 1
"""Raised when a tool makes other pixels of the same picture."""
AMOUNT = 1.5
"""Published default of sharpening."""
SCALE = 4
"""Published default of super-resolution."""
SIGMA = 3.0
"""Standard deviation, in pixels, of the blur that sharpening subtracts. The paper leaves it open; with its amount, this
one makes blurred signs readable that 2 leaves unreadable, and from 4 on the halo eats the letters."""
MOST_PIXELS = 512 * 512
"""Of a picture that is to be enlarged: 16 times as many come out, and a network takes seconds for each such tile."""
SEARCH_SIDE = 800
"""Longest side, in pixels, of the picture in which quadrilaterals are looked for."""
MIN_AREA = 0.15
"""Share of the picture that a quadrilateral must cover to be what the picture is about."""
MIN_DRAWN = 0.75
"""Share of a quadrilateral's outline that must lie on edges: four corners alone are found in any thicket."""
EDGE_SHARES = (1.0, 0.5, 0.25)
"""Of Otsu's threshold, what an edge must have: a strong edge elsewhere must not hide a weak side."""
FRAME = 0.015
"""A quadrilateral whose corners are all so near the picture's own, as a share of its sides, is the frame."""
MIN_SIDE = 32
MOST_OUTLINES = 64
REPAIRS: Mapping[Degradation, Repair] = MappingProxyType(
    {"blur": "sharpen", "downsample": "super_resolution", "perspective": "perspective_correct"}
)
"""The tool that each degradation is paired with."""


class Upscaler(Protocol):
    """A network that enlarges pictures."""

    @property
    def identity(self) -> str:
        """All that decides its pixels: architecture and weights."""

    @property
    def scale(self) -> int:
        """Factor its weights were trained for."""

    def enlarge(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return RGB pixels of shape (h * scale, w * scale, 3) for such of shape (h, w, 3); safe from any thread."""


@dataclass(frozen=True, slots=True)
class RepairTool:
    """A visual tool as it is called when only the picture is named."""

    name: Repair
    identity: str
    mend: Callable[[bytes], bytes | None]
    """A picture's bytes to those of the repaired one; None when the tool gives the original back.

    Raises ``RecordFailed`` if the picture cannot be processed.
    """


def has_opencv() -> bool:
    """Say whether OpenCV is installed, without loading it."""
    return find_spec("cv2") is not None


def make_repairs(upscaler: Upscaler | None, opencv: bool) -> dict[Degradation, RepairTool]:
    """Return the tool that repairs each degradation; a degradation whose tool cannot work here is missing."""
    mends: dict[Degradation, tuple[Callable[[bytes], bytes | None], str]] = {"blur": (sharpen_picture, "")}
    if upscaler is not None:
        mends["downsample"] = (partial(enlarge_picture, upscaler=upscaler), f":{upscaler.identity}")
    if opencv:
        mends["perspective"] = (correct_perspective, "")
    return {
        degradation: RepairTool(REPAIRS[degradation], f"{REPAIRS[degradation]}@{VERSION}{means}", mend)
        for degradation, (mend, means) in mends.items()
    }


def sharpen_picture(data: bytes, amount: float = AMOUNT) -> bytes:
    """Return a picture with its fine structure raised: ``(1 + amount) * picture - amount * blurred picture``.

    Args:
        data: a picture file's bytes.
        amount: 0.1 to 5.

    Returns:
        JPEG for a JPEG, else PNG.

    Raises:
        RecordFailed: if the picture cannot be decoded.
    """
    mask = ImageFilter.UnsharpMask(radius=SIGMA, percent=round(amount * 100), threshold=0)
    return encode_picture(open_pixels(data).filter(mask), find_extension(data))


def enlarge_picture(data: bytes, upscaler: Upscaler, scale: int = SCALE) -> bytes:
    """Return a picture ``scale`` times as wide and high.

    The network enlarges by the factor of its weights; where another is asked for, the rest is interpolated.

    Raises:
        RecordFailed: if the picture cannot be decoded, ``picture-too-large`` if it has over 262,144 pixels.
    """
    shown = open_pixels(data)
    if shown.width * shown.height > MOST_PIXELS:
        raise RecordFailed(
            "picture-too-large",
            f"{shown.width} x {shown.height} pixels, super-resolution takes at most {MOST_PIXELS} in all",
        )
    made = Image.fromarray(upscaler.enlarge(np.asarray(shown)))
    size = (shown.width * scale, shown.height * scale)
    if made.size != size:
        made = made.resize(size, Image.Resampling.LANCZOS)
    return encode_picture(made, find_extension(data))


def correct_perspective(data: bytes) -> bytes | None:
    """Return the largest quadrilateral of a picture as seen straight on, None when there is no reliable one.

    Raises:
        RecordFailed: if the picture cannot be decoded.
    """
    shown = open_pixels(data)
    corners = find_quadrilateral(shown)
    if corners is None:
        return None
    upper_left, upper_right, lower_right, lower_left = (np.array(corner) for corner in corners)
    width = max(_measure(upper_left, upper_right), _measure(lower_left, lower_right))
    height = max(_measure(upper_left, lower_left), _measure(upper_right, lower_right))
    if min(width, height) < MIN_SIDE:
        return None
    straight = warp_picture(shown, corners, list_frame(width, height), (width, height), (255, 255, 255))
    return encode_picture(straight, find_extension(data))


def find_quadrilateral(shown: Image.Image) -> Corners | None:
    """Return the corners of the largest convex quadrilateral that is drawn by edges, None when there is none.

    The picture's own frame is none, nor is what covers less than 15% of it or is not closed for the most part.
    """
    import cv2

    factor = min(1.0, SEARCH_SIDE / max(shown.size))
    size = (max(1, round(shown.width * factor)), max(1, round(shown.height * factor)))
    gray = np.asarray(shown.resize(size, Image.Resampling.BOX).convert("L"))
    smooth = cv2.GaussianBlur(gray, (5, 5), 0)
    otsu, _ = cv2.threshold(smooth, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    found: list[tuple[float, NDArray[np.float64]]] = []
    for share in EDGE_SHARES:
        edges = cv2.dilate(cv2.Canny(smooth, otsu * share / 2, otsu * share), np.ones((3, 3), np.uint8))
        outlines, _ = cv2.findContours(edges, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        quadrilaterals = _list_quadrilaterals(outlines, size)
        found += [(area, corners) for area, corners in quadrilaterals if _measure_drawn(corners, edges) >= MIN_DRAWN]
    if not found:
        return None
    _, largest = max(found, key=lambda pair: pair[0])
    points = [(x * shown.width / size[0], y * shown.height / size[1]) for x, y in largest.tolist()]
    return points[0], points[1], points[2], points[3]


def _list_quadrilaterals(outlines: Iterable[Any], size: tuple[int, int]) -> list[tuple[float, NDArray[np.float64]]]:
    """Return the outlines whose hull has four corners: area, and an array (4, 2) clockwise from the upper left."""
    import cv2

    least = MIN_AREA * size[0] * size[1]
    # The box around an outline bounds its hull and costs less: a thicket has many thousand outlines.
    boxes = [(cv2.boundingRect(outline), outline) for outline in outlines]
    large = [(box[2] * box[3], outline) for box, outline in boxes if box[2] * box[3] >= least]
    large.sort(key=lambda pair: -pair[0])
    found = []
    for _, outline in large[:MOST_OUTLINES]:
        hull = cv2.convexHull(outline)
        corners = cv2.approxPolyDP(hull, 0.02 * cv2.arcLength(hull, True), True)
        area = float(cv2.contourArea(corners))
        if len(corners) == 4 and area >= least:
            ordered = _order_corners(corners.reshape(4, 2).astype(np.float64))
            if not _is_frame(ordered, size):
                found.append((area, ordered))
    return found


def _order_corners(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    from_middle = corners - corners.mean(axis=0)
    around = corners[np.argsort(np.arctan2(from_middle[:, 1], from_middle[:, 0]))]
    return np.roll(around, -int(around.sum(axis=1).argmin()), axis=0)


def _is_frame(corners: NDArray[np.float64], size: tuple[int, int]) -> bool:
    frame = np.array(list_frame(*size))
    return bool((np.abs(corners - frame) <= FRAME * np.array(size) + 2).all())


def _measure_drawn(corners: NDArray[np.float64], edges: NDArray[Any]) -> float:
    """Return the share of an outline's points that have an edge within two pixels."""
    import cv2

    near = cv2.dilate(edges, np.ones((3, 3), np.uint8))
    steps = np.linspace(0.0, 1.0, 200)[:, None]
    sides = [start + steps * (end - start) for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True)]
    points = np.concatenate(sides).round().astype(int)
    rows = points[:, 1].clip(0, edges.shape[0] - 1)
    columns = points[:, 0].clip(0, edges.shape[1] - 1)
    return float((near[rows, columns] > 0).mean())


def _measure(one: NDArray[np.float64], other: NDArray[np.float64]) -> int:
    return round(float(np.linalg.norm(one - other)))
