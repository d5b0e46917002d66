"""Small pictures to put inline into a page."""

import base64
import io
from pathlib import Path

from PIL import Image, ImageOps

from pipelines.errors import CorruptInput, RecordFailed
from pipelines.pictures import probe_picture
from pipelines.release.pictures import read_picture
from schemas.groundings import Picture

SIDE = 320
QUALITY = 60


def make_thumbnail(root: Path, picture: Picture) -> str:
    """Return a ``data:`` address of a WebP picture of at most 320 pixels a side, upright.

    Raises:
        CorruptInput: if the picture is missing, changed, broken, or too large to open safely.
    """
    content = read_picture(root, picture)
    try:
        probe_picture(content)
    except RecordFailed as error:
        raise CorruptInput(f"picture {picture.file!r}: cannot be shown: {error}") from error
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(content)) as image:
        image.draft("RGB", (2 * SIDE, 2 * SIDE))
        shown = ImageOps.exif_transpose(image.convert("RGB"))
        shown.thumbnail((SIDE, SIDE))
        shown.save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
