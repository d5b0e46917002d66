"""Large pictures in pieces, for engines that overlook small text in them, and their readings put together again.

RapidOCR's detector overlooks what is small beside the picture: of 40 signs with letters of 18 to 39 pixels in pictures
1280 to 1920 pixels wide it read 17 when given the whole, 7 when given it enlarged, and 40 in pieces.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import ImageStat
from PIL import Image

from pipelines.backends.protocols import TextBlock
from pipelines.names import fold_name

WHOLE_SIDE = 960
"""Longest side of a picture that is read in one piece, and of the overview in which large letters are found."""
TILE_SIDE = 736
"""Side of a piece; smaller ones are enlarged by the detector itself."""
OVERLAP = 224
"""Pixels that neighbours share: a word of letters that the overview is too small for."""
_MAX_ASPECT = 2
"""Detectors enlarge the short side of a strip, and without bounds the long one with it."""
_SAME_PLACE = 0.5
_ROW = 10.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a picture to be read."""

    image: Image.Image
    left: int
    top: int
    factor: float = 1.0
    """By which it is smaller than the part."""

    largest: int = 0
    """Height in pixels of the largest letters that are looked for in it; 0 is any."""

    def holds(self, corners: Sequence[tuple[float, float]]) -> bool:
        """Say whether a reading is small enough for the piece: tiles make letters of walls, lawns and clouds."""
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return not self.largest or min(max(xs) - min(xs), max(ys) - min(ys)) <= self.largest

    def place_point(self, x: float, y: float) -> tuple[float, float]:
        """Return a point of the piece in pixels of the picture that it was cut from."""
        return self.left + x / self.factor, self.top + y / self.factor


def cut_pieces(image: Image.Image) -> Iterator[Piece]:
    """Yield a picture whole if it is small, else an overview and overlapping tiles of it; strips are filled up.

    Args:
        image: RGB. Of four million pixels and 16,384 a side there are 65 pieces at most.
    """
    factor = WHOLE_SIDE / max(image.size)
    if factor >= 1.0:
        yield Piece(_fill_up(image), 0, 0)
        return
    small = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    yield Piece(_fill_up(image.resize(small, Image.Resampling.LANCZOS, reducing_gap=2.0)), 0, 0, factor)
    for top in _list_starts(image.height):
        for left in _list_starts(image.width):
            tile = image.crop((left, top, min(left + TILE_SIDE, image.width), min(top + TILE_SIDE, image.height)))
            yield Piece(_fill_up(tile), left, top, largest=OVERLAP)


def merge_blocks(blocks: Sequence[TextBlock]) -> tuple[TextBlock, ...]:
    """Return the blocks of overlapping pieces from top to bottom, without those that are part of another.

    A block goes when it lies in the place of another whose text holds its own: what was read differently stays.
    """
    order = sorted(range(len(blocks)), key=lambda place: (-len(blocks[place].text), -blocks[place].confidence))
    boxes = np.array([blocks[place].box for place in order], dtype=np.float64).reshape(-1, 4)
    texts = [fold_name(blocks[place].text).replace(" ", "") for place in order]
    kept: list[int] = []
    for number, text in enumerate(texts):
        near = _find_covering(boxes[kept], boxes[number])
        if not any(text in texts[kept[place]] for place in near):
            kept.append(number)
    found = [blocks[order[number]] for number in kept]
    return tuple(sorted(found, key=lambda block: (round(block.box[1] / _ROW), block.box[0])))


def _find_covering(boxes: NDArray[np.float64], box: NDArray[np.float64]) -> list[int]:
    """Return the places of boxes that cover half of one."""
    across = np.minimum(boxes[:, 2], box[2]) - np.maximum(boxes[:, 0], box[0])
    down = np.minimum(boxes[:, 3], box[3]) - np.maximum(boxes[:, 1], box[1])
    shared = np.clip(across, 0.0, None) * np.clip(down, 0.0, None)
    return [int(place) for place in np.flatnonzero(shared >= _SAME_PLACE * (box[2] - box[0]) * (box[3] - box[1]))]


def _list_starts(length: int) -> list[int]:
    """Return where the tiles of a side begin, evenly, the last one at its end."""
    if length <= TILE_SIDE:
        return [0]
    last = -(-(length - TILE_SIDE) // (TILE_SIDE - OVERLAP))
    return [round(step * (length - TILE_SIDE) / last) for step in range(last + 1)]


def _fill_up(image: Image.Image) -> Image.Image:
    """Return a piece that is no strip, its mean colour beside or under it."""
    least = -(-max(image.size) // _MAX_ASPECT)
    if min(image.size) >= least:
        return image
    ground = tuple(round(level) for level in ImageStat.Stat(image).mean)
    filled = Image.new("RGB", (max(image.width, least), max(image.height, least)), ground)
    filled.paste(image)
    return filled
