"""Which pictures are copies of one another: cut, mirrored, framed, turned or saved again.

A picture is described by a small grey thumbnail of what lies inside its frame. Candidates agree in their low
frequencies, seen through windows of two sizes that are turned two ways: one picture's window with one of the other's
makes up for a crop or a turn. A candidate is a copy when an affine map lays one thumbnail on the other so that their
details agree too; drawings of one kind agree in the low frequencies alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.pictures import open_pixels

SIDE: Final = 40
"""Pixels of a thumbnail's side."""
DECODED = 128
"""Longest side that a picture is opened at, pixels."""
CALM, STRAY = 16, 0.02
"""Levels that pixels of a frame differ from its colour, but for so large a share of a row or column."""
LEAST_INNER = 8
"""Pixels of a side inside a frame below which it is no frame but the picture."""
ZOOMS, TURNS = (1.0, 0.88), (-2.5, 2.5)
"""Sizes of the windows as shares of a side, and their turns in degrees."""
FREQUENCIES = 8
"""Of each direction; a frequency is weighted by its root, for the lowest are strong in all pictures."""
FLOOR = 2.0
"""Grey levels that noise and compression make: less than that is nothing to compare."""
NEAR = 0.75
"""Cosine of low frequencies from which pictures are candidates."""
STEPS = 8
"""Of a registration, at each of which the thumbnails may agree."""
LEAST_OVERLAP = 0.5
"""Share of a thumbnail that the other must cover."""
ALIKE, DETAIL = 0.85, 0.75
"""Correlation of two registered thumbnails from which they show one picture: of their grey, and of their details."""
MARGIN = 1
"""Pixels at a thumbnail's edge that are not compared: what lies outside is mixed into them."""
AROUND = 3
"""Pixels around one whose mean is taken off for its detail."""
BLOCK = 4_096
"""Pictures that candidates are sought among at once."""
SOUGHT = 64
"""Pictures whose candidates are sought at once."""
_SCALE: Final = 127
_CENTRES = (np.arange(SIDE) + 0.5) * 2 / SIDE - 1
_Y, _X = np.meshgrid(_CENTRES, _CENTRES, indexing="ij")
"""Places of a thumbnail's pixels: -1 and 1 are its edges."""
_WAVES = np.cos(np.pi * np.outer(np.arange(FREQUENCIES), np.arange(SIDE) + 0.5) / SIDE) * math.sqrt(2 / SIDE)
_WEIGHTS = np.sqrt(np.hypot(*np.indices((FREQUENCIES, FREQUENCIES))))
_MIRRORED = np.tile(np.where(np.arange(FREQUENCIES) % 2, -1, 1), FREQUENCIES).astype(np.int8)
"""What mirroring does to the frequencies of a window."""
_MIRROR = np.diag([-1.0, 1.0, 1.0])
_VECTORS = (len(ZOOMS) * len(TURNS), FREQUENCIES**2)
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PictureDescription:
    """What pictures are compared by."""

    thumbnail: bytes
    """Grey levels of what lies inside a frame, scaled to a square of :data:`SIDE` pixels, row by row."""
    ratio: float
    """Width of that over its height."""

    @property
    def grey(self) -> _Floats:
        """Levels of the thumbnail, of shape (side, side)."""
        return np.frombuffer(self.thumbnail, dtype=np.uint8).reshape(SIDE, SIDE).astype(np.float64)


def describe_picture(data: bytes) -> PictureDescription:
    """Return what a picture is compared by."""
    picture = open_pixels(data, max_side=DECODED)
    inner = picture.crop(_find_inner(np.asarray(picture))).convert("L")
    thumbnail = inner.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return PictureDescription(thumbnail.tobytes(), inner.width / inner.height)


@dataclass(slots=True)
class PictureIndex:
    """Pictures by marks, found by copies of them: some 2 kB a picture; a search reads all, 256 bytes of each.

    Time grows with the square: among 20,000 a picture takes some 20 ms with others and 250 ms alone on two busy cores,
    so a hundred thousand take more than an hour with one another.
    """

    _marks: list[str] = field(default_factory=list)
    _descriptions: list[PictureDescription] = field(default_factory=list)
    _vectors: NDArray[np.int8] = field(default_factory=lambda: np.zeros((16, *_VECTORS), dtype=np.int8))

    def add(self, mark: str, description: PictureDescription) -> None:
        """Add a picture under a mark, such as its sha256 or the id of its question; a mark may have several."""
        place = len(self._marks)
        if place == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._vectors[place] = _measure_windows(description)
        self._marks.append(mark)
        self._descriptions.append(description)

    def extend(self, other: "PictureIndex") -> None:
        """Add all pictures of another index."""
        vectors = [self._vectors[: len(self._marks)], other._vectors[: len(other._marks)]]
        self._vectors = np.concatenate([*vectors, np.zeros_like(self._vectors)])
        self._marks += other._marks
        self._descriptions += other._descriptions

    def find(self, description: PictureDescription) -> tuple[str, ...]:
        """Return the marks of the pictures that are likely copies, each once, sorted."""
        return self.find_all([description])[0]

    def find_all(self, descriptions: Sequence[PictureDescription]) -> list[tuple[str, ...]]:
        """Return, for each of several pictures, what :meth:`find` does. Many at once cost less."""
        found: list[set[str]] = [set() for _ in descriptions]
        for first in range(0, len(descriptions), SOUGHT):
            own = np.array([_measure_windows(each) for each in descriptions[first : first + SOUGHT]])
            sought = np.concatenate([own, own * _MIRRORED], axis=1).astype(np.float32)
            for start in range(0, len(self._marks), BLOCK):
                block = self._vectors[start : min(start + BLOCK, len(self._marks))]
                for which, place in _list_near(block.astype(np.float32), sought):
                    mark, description = self._marks[start + place], descriptions[first + which]
                    marks = found[first + which]
                    if mark not in marks and _match(description, self._descriptions[start + place]):
                        marks.add(mark)
        return [tuple(sorted(marks)) for marks in found]


def _list_near(block: NDArray[np.float32], sought: NDArray[np.float32]) -> list[tuple[int, int]]:
    turned = np.swapaxes(sought, 0, 1).reshape(-1, sought.shape[-1])
    # Sums of products of small whole numbers are exact in 32 bits, in whatever order they are taken.
    cosines = block.reshape(-1, block.shape[-1]) @ turned.T
    nearest = cosines.reshape(len(block), -1, len(sought)).max(axis=1)
    return list(zip(*(each.tolist() for each in np.nonzero(nearest.T >= NEAR * _SCALE**2)), strict=True))


def _find_inner(colours: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    height, width, _ = colours.shape
    ground = np.median(np.concatenate([colours[0], colours[-1], colours[:, 0], colours[:, -1]]), axis=0)
    drawn = (np.abs(colours.astype(np.int16) - ground.astype(np.int16)) > CALM).any(axis=2)
    rows, columns = (np.flatnonzero(drawn.mean(axis=axis) > STRAY) for axis in (1, 0))
    if min(len(rows), len(columns)) == 0:
        return 0, 0, width, height
    left, top, right, bottom = int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
    framed = min(left, top, width - right, height - bottom) > 0 and min(right - left, bottom - top) >= LEAST_INNER
    return (left, top, right, bottom) if framed else (0, 0, width, height)


def _list_windows(ratio: float) -> list[_Floats]:
    windows = []
    for zoom in ZOOMS:
        for turn in TURNS:
            along, across = zoom * math.cos(math.radians(turn)), zoom * math.sin(math.radians(turn))
            windows.append(np.array([[along, -across / ratio, 0.0], [across * ratio, along, 0.0], [0.0, 0.0, 1.0]]))
    return windows


def _measure_windows(description: PictureDescription) -> NDArray[np.int8]:
    grey, vectors = description.grey, []
    for window in _list_windows(description.ratio):
        waves = _WAVES @ _warp(grey, window)[0] @ _WAVES.T * _WEIGHTS
        # An even picture has this alone.
        waves[0, 0] = FLOOR * FREQUENCIES
        vectors.append(np.rint(waves.ravel() * (_SCALE / np.linalg.norm(waves))))
    return np.array(vectors).astype(np.int8)


def _warp(grey: _Floats, window: _Floats) -> tuple[_Floats, NDArray[np.bool_]]:
    x, y = (row[0] * _X + row[1] * _Y + row[2] for row in window[:2])
    across, down = (np.clip((each + 1) * (SIDE / 2) - 0.5, 0, SIDE - 1) for each in (x, y))
    left, top = (np.minimum(each.astype(np.intp), SIDE - 2) for each in (across, down))
    across, down = across - left, down - top
    flat, place = grey.ravel(), top * SIDE + left
    upper = flat[place] * (1 - across) + flat[place + 1] * across
    lower = flat[place + SIDE] * (1 - across) + flat[place + SIDE + 1] * across
    return upper * (1 - down) + lower * down, np.maximum(np.abs(x), np.abs(y)) <= 1 - MARGIN * 2 / SIDE


def _match(first: PictureDescription, second: PictureDescription) -> bool:
    # They agree when they are registered.
    if first == second:
        return True
    if (first.thumbnail, first.ratio) > (second.thumbnail, second.ratio):
        first, second = second, first
    moved, fixed = first.grey, second.grey
    window = _find_start(first, second)
    for _ in range(STEPS):
        seen, inside = _warp(moved, window)
        if inside.mean() < LEAST_OVERLAP:
            return False
        if _correlate(seen, fixed, inside) >= ALIKE:
            details = _take_mean(seen, inside), _take_mean(fixed, inside)
            if _correlate(*details, inside) >= DETAIL:
                return True
        window = window @ _find_step(_normalise(seen, inside), _normalise(fixed, inside), inside)
    return False


def _find_start(first: PictureDescription, second: PictureDescription) -> _Floats:
    one, other = (_measure_windows(each).astype(np.int64) for each in (first, second))
    straight, turned = one @ other.T, (one * _MIRRORED) @ other.T
    mirrored = bool(turned.max() > straight.max())
    place = np.unravel_index(int((turned if mirrored else straight).argmax()), straight.shape)
    inner, outer = _list_windows(first.ratio)[place[0]], _list_windows(second.ratio)[place[1]]
    return inner @ (_MIRROR if mirrored else np.eye(3)) @ np.linalg.inv(outer)


def _find_step(seen: _Floats, fixed: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    missing = fixed - seen
    weights = inside / (1 + (missing * 2) ** 2) ** 2
    down, across = np.gradient(seen, 2 / SIDE)
    slopes = np.stack([across * _X, across * _Y, across, down * _X, down * _Y, down]).reshape(6, -1)
    weighted = slopes * weights.ravel()
    damped = np.einsum("ik,jk->ij", weighted, slopes) + np.eye(6) * (SIDE**2 / 1000)
    step = np.linalg.solve(damped, np.einsum("ik,k->i", weighted, missing.ravel()))
    nudge: _Floats = np.eye(3) + np.vstack([step.reshape(2, 3), np.zeros(3)])
    return nudge


def _normalise(grey: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    centred = grey - grey[inside].mean()
    normal: _Floats = centred / (centred[inside].std() + FLOOR)
    return normal


def _correlate(first: _Floats, second: _Floats, inside: NDArray[np.bool_]) -> float:
    # In an even one nothing says what it shows: 0.
    one, other = (each[inside] - each[inside].mean() for each in (first, second))
    spread = (float((one * one).mean()) + FLOOR**2) * (float((other * other).mean()) + FLOOR**2)
    return float((one * other).mean()) / math.sqrt(spread)


def _take_mean(grey: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    total, count = (_sum_around(each) for each in (grey * inside, inside.astype(np.float64)))
    details: _Floats = grey - total / np.maximum(count, 1)
    return details


def _sum_around(values: _Floats) -> _Floats:
    for _ in range(2):
        padded = np.pad(values.cumsum(axis=0), ((AROUND + 1, AROUND), (0, 0)), mode="edge")
        padded[: AROUND + 1] = 0
        values = (padded[2 * AROUND + 1 :] - padded[: -2 * AROUND - 1]).T
    return values
