"""Small pictures to put inline into a page."""

import base64
import io
import warnings
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from pipelines.errors import CorruptInput
from pipelines.release.pictures import read_picture
from schemas.groundings import Picture

SIDE = 320
QUALITY = 60
MAX_PIXELS = 64_000_000


def make_thumbnail(root: Path, picture: Picture) -> str:
    """Return a ``data:`` address of a WebP picture of at most 320 pixels a side.

    Raises:
        CorruptInput: if the picture is missing, changed, too large to open safely, or no picture.
    """
    content = read_picture(root, picture)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise CorruptInput(f"picture {picture.file!r}: {image.width}x{image.height} is too large to show")
                image.draft("RGB", (SIDE, SIDE))
                image.thumbnail((SIDE, SIDE))
                buffer = io.BytesIO()
                image.convert("RGB").save(buffer, "WEBP", quality=QUALITY)
    except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise CorruptInput(f"picture {picture.file!r}: cannot be shown: {error}") from error
    except Image.DecompressionBombWarning as warning:
        raise CorruptInput(f"picture {picture.file!r}: too large to show: {warning}") from warning
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
