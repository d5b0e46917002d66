"""Cutting a part out of a picture."""

from collections.abc import Sequence

from pipelines.agent.toolspecs import FULL_BOX, BoxUnit
from pipelines.errors import RecordFailed
from pipelines.picturefiles.stripping import find_extension
from pipelines.pixels import encode_picture, open_pixels

MIN_SIDE = 16


def cut_picture(data: bytes, box: Sequence[float], unit: BoxUnit = "normalised") -> bytes:
    """Return the part of a picture inside a box as a file's bytes: JPEG for a JPEG, else PNG.

    Args:
        data: a picture file's bytes.
        box: left, top, right, bottom of the picture as it is displayed (EXIF rotation applied).
        unit: what the box counts in: thousandths of the picture's sides, or pixels.

    Raises:
        RecordFailed: ``crop-outside`` if the box goes beyond the picture, ``crop-too-small`` if a side of the part is
            under 16 pixels, and as :func:`pipelines.pixels.open_pixels`.
    """
    shown = open_pixels(data)
    width, height = shown.size
    across, down = (width / FULL_BOX, height / FULL_BOX) if unit == "normalised" else (1.0, 1.0)
    left, right = (round(edge * across) for edge in (box[0], box[2]))
    top, bottom = (round(edge * down) for edge in (box[1], box[3]))
    if right > width or bottom > height:
        raise RecordFailed("crop-outside", f"the picture is {width} x {height} pixels")
    if min(right - left, bottom - top) < MIN_SIDE:
        part = f"{right - left} x {bottom - top}"
        raise RecordFailed("crop-too-small", f"the part is {part} pixels, each side needs {MIN_SIDE}")
    return encode_picture(shown.crop((left, top, right, bottom)), find_extension(data))
