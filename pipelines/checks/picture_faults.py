"""Faults of a picture file that somebody else gave a question: what it is, against what it should be."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import numpy as np

from pipelines.checks.foreign import Fault
from pipelines.checks.pictures import MIN_EDGES, SIDE, check_simple, find_telling_word, measure_plainness
from pipelines.errors import RecordFailed
from pipelines.pictures import find_extension, open_pixels, read_header

LEAST_SIDE = 48
"""Pixels of the shorter side; less is an icon or a thumbnail of one."""
LEAST_SPREAD = 20
"""Levels (of 255) of the standard deviation of a channel, below which a picture without edges shows nothing."""
_ENDINGS = {"jpg": "jpg", "jpeg": "jpg", "jpe": "jpg", "jfif": "jpg", "png": "png", "gif": "gif", "webp": "webp"}
_OTHERS = frozenset("svg bmp tif tiff avif heic ico pdf html htm txt json".split())


def find_picture_faults(data: bytes, names: Sequence[str]) -> Iterator[Fault]:
    """Yield what is wrong with a picture.

    Args:
        data: the file.
        names: its name, path or address; none where it has none.
    """
    try:
        header = read_header(data)
        pixels = np.asarray(open_pixels(data, max_side=SIDE))
    except RecordFailed as error:
        yield Fault("unreadable-image", str(error))
        return
    told = find_lying_ending(data, names)
    if told:
        yield Fault("lying-extension", told)
    if min(header.width, header.height) < LEAST_SIDE:
        yield Fault("tiny-image", f"{header.width}x{header.height}")
    elif (telling := find_telling_word(names)) or measure_plainness(pixels).edges >= MIN_EDGES:
        simple = check_simple(data, names)
        if telling or not simple.passed:
            yield Fault("simple-image", simple.detail)
    elif pixels.std(axis=(0, 1)).max() < LEAST_SPREAD:
        # Without an edge a picture may still be one, out of focus.
        yield Fault("blank-image", "there is next to nothing to see")


def find_name_faults(name: str) -> Iterator[Fault]:
    """Yield what the name or address of a picture that cannot be opened tells."""
    if telling := find_telling_word((name,)):
        yield Fault("simple-image", f"{telling!r} in its name")


def find_lying_ending(data: bytes, names: Sequence[str]) -> str:
    """Return how the ending of a picture's name differs from what the file is, empty if it does not."""
    real = find_extension(data)
    for name in names:
        ending = PurePosixPath(name.partition("?")[0]).suffix.removeprefix(".").casefold()
        if (ending in _ENDINGS and _ENDINGS[ending] != real) or ending in _OTHERS:
            return f"{PurePosixPath(name).name[-60:]} is {real}"
    return ""
