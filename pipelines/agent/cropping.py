"""Cutting a part out of a picture."""

import struct
from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageOps

from pipelines.agent.toolspecs import FULL_BOX
from pipelines.errors import RecordFailed

MIN_SIDE = 16
JPEG_QUALITY = 92


def cut_picture(data: bytes, box: Sequence[float]) -> bytes:
    """Return the part of a picture inside a box as a file's bytes: JPEG for a JPEG, else PNG.

    Args:
        data: bytes of a picture of the image store, so it was decoded once already.
        box: left, top, right, bottom, normalised to 0..1000 of the picture as it is displayed (EXIF rotation applied).

    Raises:
        RecordFailed: ``crop-too-small`` if a side of the part is under 16 pixels, ``picture-undecodable`` if Pillow
            stumbles over the picture after all.
    """
    try:
        with Image.open(BytesIO(data)) as source:
            is_jpeg = source.format == "JPEG"
            shown = ImageOps.exif_transpose(source)
    except (OSError, ValueError, struct.error) as error:
        raise RecordFailed("picture-undecodable", str(error)) from error
    width, height = shown.size
    left, right = (round(edge * width / FULL_BOX) for edge in (box[0], box[2]))
    top, bottom = (round(edge * height / FULL_BOX) for edge in (box[1], box[3]))
    if min(right - left, bottom - top) < MIN_SIDE:
        part = f"{right - left} x {bottom - top}"
        raise RecordFailed("crop-too-small", f"the part is {part} pixels, each side needs {MIN_SIDE}")
    cut = shown.crop((left, top, right, bottom))
    target = BytesIO()
    if is_jpeg:
        cut.convert("RGB").save(target, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    else:
        mode = "RGBA" if cut.has_transparency_data else "RGB"
        cut.convert(mode).save(target, "PNG")
    return target.getvalue()
