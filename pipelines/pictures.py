"""The image store, and the one place where a file's bytes become pixels and pixels a file.

A picture is at ``<folder>/<ab>/<sha256>.<ext>``; its extension comes from its magic bytes. Nothing is decoded before
its format and its size are known, and nothing is stored that does not decode to the end.
"""

import hashlib
import io
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import imagehash
import numpy as np
from PIL import GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.Image import DecompressionBombError
from PIL.ImageFile import ImageFile

from pipelines.errors import ConfigError, Damaged, RecordFailed
from pipelines.files import explain_os_error, write_bytes
from schemas.datasets import Picture

# Pillow warns of broken metadata that is not used; filters of single calls would not be safe in threads.
warnings.filterwarnings("ignore", category=UserWarning, module="PIL")

TRAINING_PIXELS = 262_144
"""Pixels of a picture as a student sees it: 512 by 512."""
MAX_BYTES = 128 * 1024 * 1024
MAX_PIXELS = 100_000_000
"""Of a JPEG: one of that size takes about 1 GB to decode, at reduced scale far less."""
MAX_WHOLE_PIXELS = 50_000_000
"""Of a format that is decoded whole or not at all. A WebP without loss takes up to 19 bytes a pixel meanwhile."""
MAX_SIDE = 20_000
"""Longest side in pixels."""
MAX_SCANS = 64
"""A progressive JPEG usually has 10. Each scan goes over all of it and may cost a file next to nothing."""
LARGE_PIXELS = 12_500_000
"""Pictures of more pixels are decoded one at a time in a process."""
JPEG_QUALITY = 92
_ORIENTATION = 0x0112
_MAGIC: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("jpg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP"),
)
# The plugins are called directly: Image.open would try others, and warns at a pixel count of its own.
_READERS: dict[str, Callable[[io.BytesIO], ImageFile]] = {
    "jpg": JpegImagePlugin.JpegImageFile,
    "png": PngImagePlugin.PngImageFile,
    "gif": GifImagePlugin.GifImageFile,
    "webp": WebPImagePlugin.WebPImageFile,
}
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""Shows a picture upright, by its Exif orientation; from 5 on, width and height change places."""
_large = threading.Lock()


@dataclass(frozen=True, slots=True)
class PictureHeader:
    """Format and size of a picture file; the size in pixels as displayed, with the orientation applied."""

    extension: str
    width: int
    height: int


def find_extension(data: bytes) -> str:
    """Return ``jpg``, ``png``, ``gif`` or ``webp`` by magic bytes, empty for anything else (SVG, TIFF, HTML)."""
    return next((extension for extension, matches in _MAGIC if matches(data[:16])), "")


def read_header(data: bytes) -> PictureHeader:
    """Read format and size of a picture file without decoding it.

    Raises:
        RecordFailed: ``picture-format`` for a format outside the allow-list; ``picture-too-large`` over 128 MiB, 50
            megapixels (JPEG 100), 20,000 pixels a side or 64 scans; ``picture-undecodable`` for a broken header.
    """
    opened, extension = _open(data)
    width, height = opened.size
    return PictureHeader(extension, *((height, width) if _read_orientation(opened) >= 5 else (width, height)))


def _open(data: bytes) -> tuple[ImageFile, str]:
    if len(data) > MAX_BYTES:
        raise RecordFailed("picture-too-large", f"{len(data)} bytes, allowed are {MAX_BYTES}")
    extension = find_extension(data)
    if not extension:
        raise RecordFailed("picture-format", f"starts with {data[:8]!r}; allowed are JPEG, PNG, GIF and WebP")
    stream = io.BytesIO(data)
    with _explaining(extension, data):
        opened = _READERS[extension](stream)
    most = MAX_PIXELS if extension == "jpg" else MAX_WHOLE_PIXELS
    if max(opened.size) > MAX_SIDE or opened.width * opened.height > most:
        size = f"{opened.width}x{opened.height} pixels"
        raise RecordFailed("picture-too-large", f"{size}, allowed are {MAX_SIDE} a side and {most} in all")
    if extension == "png" and b"IEND" not in data:
        raise RecordFailed("picture-undecodable", f"png of {len(data)} bytes: it has no end")
    if extension == "jpg":
        # Inside a scan 0xFF is followed by neither marker, and what lies behind the end is another picture.
        start = stream.tell()
        end = data.find(b"\xff\xd9", start)
        if data.count(b"\xff\xda", start, end if end >= 0 else len(data)) >= MAX_SCANS:
            raise RecordFailed("picture-too-large", f"more than {MAX_SCANS} scans")
    return opened, extension


@contextmanager
def _explaining(extension: str, data: bytes) -> Iterator[None]:
    """Turn what Pillow raises over broken files, which may be any error, into the record's failure."""
    try:
        yield
    except DecompressionBombError as error:
        raise RecordFailed("picture-too-large", str(error)) from error
    except MemoryError:
        raise
    except Exception as error:
        detail = f"{extension} of {len(data)} bytes: {type(error).__name__}: {error}"
        raise RecordFailed("picture-undecodable", detail) from error


def _read_orientation(opened: ImageFile) -> int:
    """Return the orientation in Exif, else in XMP, as Pillow finds it; 1 if there is none or it is damaged."""
    try:
        with _explaining("", b""):
            found = opened.getexif().get(_ORIENTATION, 1)
    except RecordFailed:
        return 1
    return found if found in _TURNS else 1


def open_pixels(data: bytes, max_side: int = 0) -> Image.Image:
    """Return a picture as it is displayed: RGB, upright, the first frame, transparent parts on white.

    Sixteen bits a sample become eight, CMYK and palettes are resolved; colour profiles are not applied.

    Args:
        data: a JPEG, PNG, GIF or WebP file.
        max_side: longest side of the result in pixels, 0 for that of the file. Smaller pictures stay as they are. JPEG
            is decoded at the nearest reduced scale that is not too small.

    Raises:
        RecordFailed: ``picture-format``, ``picture-too-large`` or ``picture-undecodable``, see :func:`read_header`.
    """
    opened, extension = _open(data)
    with _explaining(extension, data):
        whole = opened.size
        if max_side and extension == "jpg":
            longest = max(whole)
            scale = next(scale for scale in (8, 4, 2, 1) if scale == 1 or -(-longest // scale) >= max_side)
            opened.draft("RGB", (max(1, opened.width // scale), max(1, opened.height // scale)))
        # The coefficients of all scans are kept at full size, whatever the scale.
        width, height = whole if "progressive" in opened.info else opened.size
        with _large if width * height > LARGE_PIXELS else nullcontext():
            opened.load()
        turn = _TURNS.get(_read_orientation(opened))
        shown = _resolve_samples(opened)
        if max_side:
            shown.thumbnail((max_side, max_side), reducing_gap=2.0)
        if turn is not None:
            shown = shown.transpose(turn)
        if shown.mode == "RGBA":
            ground = Image.new("RGBA", shown.size, (255, 255, 255, 255))
            ground.alpha_composite(shown)
            shown = ground.convert("RGB")
        # Metadata of the file would be saved again.
        shown.info.clear()
        return shown


def encode_picture(image: Image.Image, like: str) -> bytes:
    """Return a picture as a file: JPEG of quality 92 without chroma subsampling where ``like`` is ``jpg``, else PNG."""
    target = io.BytesIO()
    if like == "jpg":
        image.save(target, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    else:
        image.save(target, "PNG")
    return target.getvalue()


def shrink_picture(data: bytes, max_pixels: int = 0, max_bytes: int = 0) -> bytes:
    """Return a picture of at most so many pixels and bytes (0: any), the very same bytes where it is so already.

    What is scaled down is JPEG where it was, else PNG; a PNG that stays too large becomes JPEG.

    Raises:
        RecordFailed: if it cannot be decoded, or not made so small.
    """
    if not max_pixels and not 0 < max_bytes < len(data):
        return data
    header = read_header(data)
    pixels = header.width * header.height
    wanted = min(pixels, max_pixels or pixels)
    if wanted == pixels and not 0 < max_bytes < len(data):
        return data
    whole, like = open_pixels(data), "jpg" if header.extension == "jpg" else "png"
    while wanted >= 1:
        scale = (wanted / pixels) ** 0.5
        size = max(1, int(header.width * scale)), max(1, int(header.height * scale))
        made = encode_picture(whole.resize(size, Image.Resampling.LANCZOS), like)
        if not 0 < max_bytes < len(made):
            return made
        if like == "png":
            like = "jpg"
        else:
            wanted //= 2
    raise RecordFailed("picture-too-large", f"a picture of one pixel has more than {max_bytes} bytes")


def _resolve_samples(opened: Image.Image) -> Image.Image:
    """Return RGB or RGBA of eight bits, so that scaling mixes colours and not numbers of a palette."""
    if opened.mode.startswith("I"):  # sixteen-bit grey, by the upper byte as Pillow does with colours
        return Image.fromarray((np.asarray(opened) >> 8).astype(np.uint8)).convert("RGB")
    mode = "RGBA" if opened.has_transparency_data else "RGB"
    return opened if opened.mode == mode else opened.convert(mode)


MAX_READ_PIXELS = 4_000_000
"""Pixels that an engine is given at most: engines take a second for each million."""
MAX_ENLARGED_PIXELS = 2_000_000
"""Pixels up to which a picture is enlarged: larger pictures show small letters well enough."""
MIN_GAIN = 1.4
"""Smallest factor between two enlargements worth reading, when a scale is limited by the bound."""
_MAX_READ_SIDE = 16_384
"""No text needs more."""


@dataclass(frozen=True, slots=True)
class ScaledPicture:
    """A picture to be read, with its own size beside that of the enlargement."""

    image: Image.Image
    """RGB, as displayed."""
    width: int
    height: int

    def restore_box(self, corners: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
        """Return the upright box around points of the enlargement, in pixels of the picture itself and inside it."""
        across, down = self.width / self.image.width, self.height / self.image.height
        xs = [min(max(x * across, 0.0), float(self.width)) for x, _ in corners]
        ys = [min(max(y * down, 0.0), float(self.height)) for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)


def list_scales(data: bytes, scales: Sequence[float]) -> tuple[float, ...]:
    """Return the scales that give different pictures: enlargement is bounded.

    Raises:
        ConfigError: if a scale is no positive number.
        RecordFailed: if it is no picture, see :func:`read_header`.
    """
    header = read_header(data)
    kept: dict[float, float] = {}
    for scale in scales:
        factor = _find_factor((header.width, header.height), scale)
        if factor == scale or not any(factor < MIN_GAIN * other for other in kept.values()):
            kept[scale] = factor
    return tuple(kept)


def open_scaled(data: bytes, scale: float) -> ScaledPicture:
    """Return a picture enlarged by a factor (Lanczos), or by less where it would pass :data:`MAX_ENLARGED_PIXELS`.

    A picture of more than :data:`MAX_READ_PIXELS` is made smaller: engines are slow and take much memory.

    Raises:
        ConfigError: if the scale is no positive number.
        RecordFailed: if the picture cannot be decoded, see :func:`open_pixels`.
    """
    image = open_pixels(data)
    width, height = image.size
    factor = _find_factor(image.size, scale)
    size = (max(1, int(width * factor)), max(1, int(height * factor)))
    return ScaledPicture(image if size == image.size else image.resize(size, Image.Resampling.LANCZOS), width, height)


def _find_factor(size: tuple[int, int], scale: float) -> float:
    if not 0.0 < scale <= 16.0:
        raise ConfigError(f"OCR at scale {scale!r}; allowed is more than 0, and 16 at most")
    pixels = size[0] * size[1]
    enlarged = max(1.0, math.sqrt(MAX_ENLARGED_PIXELS / pixels))
    return min(scale, enlarged, math.sqrt(MAX_READ_PIXELS / pixels), _MAX_READ_SIDE / max(size))


_HASH_SIDE, _LEAST_HASH_SIDE, _MOST_HASH_SIDE = 128, 64, 1024
"""Longest side to decode to before hashing, pixels; as much longer, up to the last, as the shorter side needs for the
second. The hash looks at 32 by 32 pixels, and JPEG decodes to an eighth at a fraction of the cost."""


@dataclass(frozen=True, slots=True)
class PictureSource:
    """Where a picture came from, with what its licence requires to be kept."""

    file: str
    """File name at the source."""
    author: str
    licence: str
    licence_url: str
    source_url: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What a picture is: format, size as displayed (EXIF orientation applied), perceptual hash."""

    extension: str
    width: int
    height: int
    phash: str


_MEDIA = {".jpg": "jpeg"}
"""Media types whose name is not the extension."""


@dataclass(frozen=True, slots=True)
class PictureStore:
    """Pictures of one workspace. Adding is idempotent and safe from several processes at once."""

    folder: Path

    def path(self, sha256: str, extension: str) -> Path:
        """Return where a picture is or would be."""
        return self.folder / sha256[:2] / f"{sha256}.{extension}"

    def add_bytes(self, data: bytes, source: PictureSource) -> Picture:
        """Store a picture and return its row value; a stored file that differs from its name is written again.

        Raises:
            RecordFailed: ``picture-undecodable``, ``picture-too-large``, ``picture-format``, see :func:`probe_picture`.
            Unavailable, ConfigError: if the disk refuses the write, see :func:`pipelines.files.explain_os_error`.
        """
        probe = probe_picture(data)
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(sha256, probe.extension)
        try:
            if not path.is_file() or path.read_bytes() != data:
                write_bytes(path, data)
        except OSError as error:
            raise explain_os_error(error, f"image store {self.folder}") from error
        return Picture(
            sha256=sha256,
            extension=probe.extension,
            file=source.file,
            width=probe.width,
            height=probe.height,
            phash=probe.phash,
            author=source.author,
            licence=source.licence,
            licence_url=source.licence_url,
            source_url=source.source_url,
        )

    def add_file(self, path: Path, source: PictureSource) -> Picture:
        """Store a picture from a file; the file itself is left alone.

        Raises:
            RecordFailed: as :meth:`add_bytes`, and ``picture-missing`` if the file cannot be read.
            Unavailable, ConfigError: if the disk refuses the write, see :func:`pipelines.files.explain_os_error`.
        """
        return self.add_bytes(_read_source(path), source)

    def read(self, picture: Picture) -> bytes:
        """Return a picture's bytes, hashed again.

        Raises:
            Damaged: if the file is missing or is not the picture that its name says.
        """
        path = self.path(picture.sha256, picture.extension)
        return _read_stored(path, picture.sha256, f"the row of {picture.file} needs it")

    def load(self, sha256: str) -> tuple[bytes, str]:
        """Return the bytes and the media type of a picture known by its content alone, hashed again.

        Raises:
            Damaged: if the store has no such picture, or its file was changed.
        """
        path = next(iter(sorted((self.folder / sha256[:2]).glob(f"{sha256}.*"))), self.path(sha256, "*"))
        data = _read_stored(path, sha256, "a row needs it")
        return data, f"image/{_MEDIA.get(path.suffix, path.suffix[1:])}"


def _read_stored(path: Path, sha256: str, needed: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror}), and {needed}") from error
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise Damaged(path, f"has another sha256, {found}: the file was changed")
    return data


def probe_picture(data: bytes) -> Probe:
    """Measure a picture, decoding it to the end once (JPEG at reduced scale, first frame of animations).

    Raises:
        RecordFailed: as :func:`pipelines.pictures.open_pixels`.
    """
    header = read_header(data)
    phash = str(imagehash.phash(open_pixels(data, _choose_hash_side(header.width, header.height))))
    return Probe(header.extension, header.width, header.height, phash)


def compute_phash(picture: bytes | Path) -> str:
    """Return the 64-bit perceptual hash (16 hex digits, ``imagehash.phash``) of a picture as displayed.

    Raises:
        RecordFailed: as :func:`probe_picture`, and ``picture-missing`` if the file cannot be read.
    """
    return probe_picture(_read_source(picture) if isinstance(picture, Path) else picture).phash


def _choose_hash_side(width: int, height: int) -> int:
    """Return the longest side to decode to: of two copies of a panorama, as thin strips, hashes are far apart."""
    short, long = sorted((width, height))
    return min(max(_HASH_SIDE, -(-_LEAST_HASH_SIDE * long // short)), _MOST_HASH_SIDE)


def measure_distance(first: str, second: str) -> int:
    """Return how many of the 64 bits of two perceptual hashes differ: 0 for equal, about 32 for unrelated pictures."""
    return (int(first, 16) ^ int(second, 16)).bit_count()


def _read_source(path: Path) -> bytes:
    try:
        with path.open("rb") as source:
            return source.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordFailed("picture-missing", f"{path}: {error.strerror}") from error
