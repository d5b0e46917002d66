"""Which pictures are copies of one another, cut, mirrored or saved again: the one way to tell, for every check."""

from dataclasses import dataclass, field

import imagehash
import numpy as np
from PIL import ImageOps

from pipelines.pictures import open_pixels

SIDE = 256
"""Longest side that a picture is described at, pixels."""
CUTS = (0.0, 0.03, 0.06, 0.1)
"""Shares cut off each side of a picture: a copy that was cropped by up to as much is found."""
NEAR = 6
"""Bits of 64 up to which two hashes are of one picture."""


@dataclass(frozen=True, slots=True)
class PictureDescription:
    """What pictures are compared by."""

    hashes: tuple[int, ...]
    """Perceptual hashes of 64 bits: of the picture, then of its variants."""


def describe_picture(data: bytes) -> PictureDescription:
    """Return what a picture is compared by.

    Raises:
        RecordFailed: if it cannot be decoded, see :func:`pipelines.pictures.open_pixels`.
    """
    whole = open_pixels(data, max_side=SIDE)
    found = []
    for cut in CUTS:
        width, height = round(whole.width * cut), round(whole.height * cut)
        part = whole.crop((width, height, whole.width - width, whole.height - height))
        found += [int(str(imagehash.phash(each)), 16) for each in (part, ImageOps.mirror(part))]
    return PictureDescription(tuple(found))


@dataclass(slots=True)
class PictureIndex:
    """Pictures, found by copies of them."""

    marks: list[str] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    def add(self, mark: str, description: PictureDescription) -> None:
        """Add a picture under a mark, which may be a sha256 or a record's id; one mark may have several."""
        self.hashes += description.hashes
        self.owners += [len(self.marks)] * len(description.hashes)
        self.marks.append(mark)

    def find(self, description: PictureDescription) -> tuple[str, ...]:
        """Return the marks of the pictures that are likely copies, in the order of adding, each once."""
        known = np.array(self.hashes, dtype=np.uint64)
        near = np.zeros(len(known), dtype=bool)
        for place, value in enumerate(description.hashes):
            apart = np.bitwise_count(known ^ np.uint64(value)) <= NEAR
            near |= apart if not place else apart & (np.arange(len(known)) % len(description.hashes) == 0)
        return tuple(dict.fromkeys(self.marks[self.owners[each]] for each in np.flatnonzero(near)))
