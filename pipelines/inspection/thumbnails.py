"""Small pictures to put inline into a page."""

import base64
import io
from pathlib import Path

from pipelines.errors import CorruptInput, RecordFailed
from pipelines.pixels import open_pixels
from pipelines.release.pictures import read_picture
from schemas.groundings import Picture

SIDE = 320
QUALITY = 60


def make_thumbnail(root: Path, picture: Picture) -> str:
    """Return a ``data:`` address of a WebP picture of at most 320 pixels a side, upright.

    Raises:
        CorruptInput: if the picture is missing, changed, broken, or too large to open safely.
    """
    try:
        return shrink_to_address(read_picture(root, picture))
    except RecordFailed as error:
        raise CorruptInput(f"picture {picture.file!r}: cannot be shown: {error}") from error


def shrink_to_address(content: bytes) -> str:
    """Return the same of a picture file's bytes.

    Raises:
        RecordFailed: if it is broken or too large to open safely.
    """
    shown = open_pixels(content, max_side=2 * SIDE)
    shown.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    shown.save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
