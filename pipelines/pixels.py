"""Pictures as they are seen: the one place where a file's bytes become pixels, and pixels a file."""

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.Image import DecompressionBombError, Transpose
from PIL.ImageFile import ImageFile

from pipelines.errors import RecordFailed
from pipelines.picturefiles.limits import BarePicture
from pipelines.picturefiles.room import ROOM
from pipelines.picturefiles.stripping import strip_picture

JPEG_QUALITY = 92
_WHITE = (255, 255, 255)
_TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""EXIF orientation to the turn that shows the picture upright."""
# The plugins are called directly: Image.open would try others, and warns at a pixel count of its own.
_READERS: dict[str, Callable[[io.BytesIO], ImageFile]] = {
    "jpg": JpegImagePlugin.JpegImageFile,
    "png": PngImagePlugin.PngImageFile,
    "gif": GifImagePlugin.GifImageFile,
    "webp": WebPImagePlugin.WebPImageFile,
}
_UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    SyntaxError,
    SystemError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What Pillow raises on broken files."""


def open_pixels(data: bytes, max_side: int = 0) -> Image.Image:
    """Return a picture as it is displayed: RGB, upright, the first frame, transparent parts on white.

    Sixteen bits a sample become eight, CMYK and palettes are resolved; colour profiles are not applied. Safe in
    threads: nothing that is set for the whole process is touched, and who finds no room waits, see
    :mod:`pipelines.picturefiles.room`.

    Args:
        data: bytes of a JPEG, PNG, GIF or WebP file.
        max_side: longest side of the result in pixels, 0 for that of the file. What is smaller stays as it is. JPEG is
            then decoded at the nearest reduced scale that is not too small.

    Raises:
        RecordFailed: ``picture-format``, ``picture-too-large`` or ``picture-undecodable``, see
            :func:`pipelines.picturefiles.stripping.strip_picture`.
    """
    return decode_bare(strip_picture(data), max_side)


def decode_bare(bare: BarePicture, max_side: int = 0) -> Image.Image:
    """As :func:`open_pixels`, for a file that was taken apart already."""
    try:
        opened = _READERS[bare.extension](io.BytesIO(bare.data))
        if opened.size != (bare.width, bare.height):
            raise ValueError(f"size {opened.width}x{opened.height}, {bare.width}x{bare.height} expected")
        if max_side:
            _reduce_scale(opened, max_side)
        # The coefficients of all scans are kept at full size, whatever the scale.
        whole = "progressive" in opened.info
        with ROOM.enter(bare.width * bare.height if whole else opened.width * opened.height):
            return _load_shown(opened, bare, max_side)
    except DecompressionBombError as error:
        raise RecordFailed("picture-too-large", str(error)) from error
    except _UNREADABLE as error:
        detail = f"{bare.extension} of {bare.width}x{bare.height} pixels: {type(error).__name__}: {error}"
        raise RecordFailed("picture-undecodable", detail) from error


def _reduce_scale(opened: ImageFile, max_side: int) -> None:
    """Set a JPEG to the smallest scale whose longest side is not under ``max_side``; others have one scale."""
    longest = max(opened.size)
    scale = next(scale for scale in (8, 4, 2, 1) if scale == 1 or -(-longest // scale) >= max_side)
    opened.draft("RGB", (max(1, opened.width // scale), max(1, opened.height // scale)))


def _load_shown(opened: ImageFile, bare: BarePicture, max_side: int) -> Image.Image:
    opened.load()
    shown = _resolve_samples(opened, bare.depth)
    if max_side:
        shown.thumbnail((max_side, max_side), reducing_gap=2.0)
    if bare.orientation in _TURNS:
        shown = shown.transpose(_TURNS[bare.orientation])
    return _lay_on_white(shown)


def encode_picture(image: Image.Image, like: str) -> bytes:
    """Return a picture as a file: JPEG of quality 92 without chroma subsampling where ``like`` is ``jpg``, else PNG."""
    target = io.BytesIO()
    if like == "jpg":
        image.save(target, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    else:
        image.save(target, "PNG")
    return target.getvalue()


def _resolve_samples(opened: Image.Image, depth: int) -> Image.Image:
    """Return RGB or RGBA of eight bits, so that scaling mixes colours and not numbers of a palette."""
    if opened.mode.startswith("I"):
        return _narrow_grey(opened)
    key = opened.info.get("transparency")
    if isinstance(key, tuple) and depth > 8:
        opened.info["transparency"] = tuple(sample >> depth - 8 for sample in key)
    elif isinstance(key, int) and opened.mode == "L" and depth < 8:
        opened.info["transparency"] = key * 255 // ((1 << depth) - 1)
    mode = "RGBA" if opened.has_transparency_data else "RGB"
    return opened if opened.mode == mode else opened.convert(mode)


def _narrow_grey(opened: Image.Image) -> Image.Image:
    """Return sixteen-bit grey as eight bits, by the upper byte as Pillow does with colours."""
    samples = np.asarray(opened)
    shown = Image.fromarray((samples >> 8).astype(np.uint8)).convert("RGB")
    if isinstance(key := opened.info.get("transparency"), int):
        shown.putalpha(Image.fromarray(np.where(samples == key, 0, 255).astype(np.uint8)))
    return shown


def _lay_on_white(shown: Image.Image) -> Image.Image:
    """Return RGB without anything that a file said beside its pixels, which would be saved again."""
    if shown.mode == "RGBA":
        ground = Image.new("RGBA", shown.size, (*_WHITE, 255))
        ground.alpha_composite(shown)
        shown = ground.convert("RGB")
    shown.info.clear()
    return shown
