"""The image store: pictures under their content's name, checked before they are believed.

A picture is at ``<folder>/<ab>/<sha256>.<ext>``; its extension comes from its magic bytes. Nothing is decoded before
its format and its pixel count are known, and nothing is stored that does not decode to the end.
"""

import hashlib
import io
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import imagehash
from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.Image import DecompressionBombError, Image, Transpose
from PIL.ImageFile import ImageFile

from pipelines.errors import CorruptInput, RecordFailed
from pipelines.files import explain_os_error, write_bytes
from schemas.groundings import Picture

MAX_PIXELS = 100_000_000
MAX_BYTES = 128 * 1024 * 1024
_HASH_SIDE = 128
"""Side to decode to before hashing: the hash looks at 32 by 32 pixels, and JPEG decodes to an eighth at a fraction of
the cost."""
_ORIENTATION = 0x0112
_TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""EXIF orientation to the turn that shows the picture upright; from 5 on, width and height change places."""
_PNG_END = b"IEND\xaeB`\x82"

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
_UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, struct.error, OverflowError)
"""What Pillow raises on broken files."""


@dataclass(frozen=True, slots=True)
class PictureSource:
    """Where a picture came from, with what its licence asks to be kept."""

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
        """Store a picture and return its row value; a stored file that differs from its name is written anew.

        Raises:
            RecordFailed: ``picture-undecodable``, ``picture-too-large``, ``picture-format``, see :func:`probe_picture`.
            Unavailable, ConfigError: if the disk refuses the write, see :func:`pipelines.files.explain_os_error`.
        """
        probe = probe_picture(data)
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(sha256, probe.extension)
        self._keep(path, data)
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

    def _keep(self, path: Path, data: bytes) -> None:
        try:
            if not _holds(path, data):
                write_bytes(path, data)
        except OSError as error:
            raise explain_os_error(error, f"image store {self.folder}") from error

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
            CorruptInput: if the file is missing or is not the picture that its name says.
        """
        path = self.path(picture.sha256, picture.extension)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CorruptInput(f"{path}: {error.strerror}; the row of {picture.file} needs this picture") from error
        found = hashlib.sha256(data).hexdigest()
        if found != picture.sha256:
            raise CorruptInput(f"{path}: sha256 is {found}, the file was changed; delete it and ground again")
        return data

    def load(self, sha256: str) -> tuple[bytes, str]:
        """Return the bytes and the media type of a picture known by its content alone, hashed again.

        Raises:
            CorruptInput: if the store has no such picture, or its file was changed.
        """
        path = next(iter(sorted((self.folder / sha256[:2]).glob(f"{sha256}.*"))), None)
        if path is None:
            raise CorruptInput(f"image store {self.folder}: no picture {sha256}; bring it back or ground again")
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CorruptInput(f"{path}: the file was changed; delete it and ground again")
        return data, f"image/{_MEDIA.get(path.suffix, path.suffix[1:])}"


def find_extension(data: bytes) -> str:
    """Return ``jpg``, ``png``, ``gif`` or ``webp`` by magic bytes, empty for anything else (SVG, TIFF, HTML)."""
    return next((extension for extension, matches in _MAGIC if matches(data[:16])), "")


def probe_picture(data: bytes) -> Probe:
    """Say what a picture is, decoding it to the end once (JPEG at reduced scale, first frame of animations).

    Raises:
        RecordFailed: ``picture-format`` for a format outside the allow-list, ``picture-too-large`` over 100 megapixels
            or 128 MiB, ``picture-undecodable`` for a broken or truncated file.
    """
    # Pillow warns of broken metadata on standard error; only the orientation is read here.
    with warnings.catch_warnings(action="ignore"):
        return inspect_picture(data)


def inspect_picture(data: bytes) -> Probe:
    """As :func:`probe_picture`, for threads: warnings are the caller's to silence, since their filters are shared."""
    extension = _check_head(data)
    try:
        with _READERS[extension](io.BytesIO(data)) as opened:
            width, height = opened.size
            _check_pixels(width, height)
            opened.draft("RGB", (_HASH_SIDE, _HASH_SIDE))
            opened.load()
            orientation = opened.getexif().get(_ORIENTATION, 1)
            phash = _hash_image(opened, orientation)
    except DecompressionBombError as error:
        raise RecordFailed("picture-too-large", str(error)) from error
    except _UNREADABLE as error:
        raise RecordFailed("picture-undecodable", f"{extension} of {len(data)} bytes: {error}") from error
    if orientation in _TURNS and orientation >= 5:
        width, height = height, width
    return Probe(extension, width, height, phash)


def compute_phash(picture: bytes | Path) -> str:
    """Return the 64-bit perceptual hash (16 hex digits, ``imagehash.phash``) of a picture as displayed.

    Raises:
        RecordFailed: as :func:`probe_picture`, and ``picture-missing`` if the file cannot be read.
    """
    return probe_picture(_read_source(picture) if isinstance(picture, Path) else picture).phash


def measure_distance(first: str, second: str) -> int:
    """Return how many of the 64 bits of two perceptual hashes differ: 0 for equal, about 32 for unrelated pictures."""
    return (int(first, 16) ^ int(second, 16)).bit_count()


def _hash_image(opened: Image, orientation: int) -> str:
    """Hash what is seen: orientation applied, transparent parts on white, as a page shows them."""
    shown = opened.copy()
    shown.thumbnail((_HASH_SIDE, _HASH_SIDE), reducing_gap=2.0)
    if orientation in _TURNS:
        shown = shown.transpose(_TURNS[orientation])
    if shown.has_transparency_data:
        shown = shown.convert("RGBA")
        ground = shown.copy()
        ground.paste((255, 255, 255, 255), (0, 0, *shown.size))
        ground.alpha_composite(shown)
        shown = ground
    return str(imagehash.phash(shown.convert("RGB")))


def _check_head(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise RecordFailed("picture-too-large", f"{len(data)} bytes, allowed are {MAX_BYTES}")
    extension = find_extension(data)
    if not extension:
        raise RecordFailed("picture-format", f"starts with {data[:8]!r}; allowed are JPEG, PNG, GIF and WebP")
    if extension == "png" and _PNG_END not in data:
        raise RecordFailed("picture-undecodable", f"png of {len(data)} bytes has no end chunk")
    return extension


def _check_pixels(width: int, height: int) -> None:
    if width < 1 or height < 1:
        raise ValueError(f"size {width}x{height}")
    if width * height > MAX_PIXELS:
        raise RecordFailed("picture-too-large", f"{width}x{height} pixels, allowed are {MAX_PIXELS} in all")


def _read_source(path: Path) -> bytes:
    try:
        with path.open("rb") as source:
            return source.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordFailed("picture-missing", f"{path}: {error.strerror}") from error


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except FileNotFoundError:
        return False
