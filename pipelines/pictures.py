"""The image store: pictures under their content's name, checked before they are believed.

A picture is at ``<folder>/<ab>/<sha256>.<ext>``; its extension comes from its magic bytes. Nothing is decoded before
its format and its size are known, and nothing is stored that does not decode to the end.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import imagehash

from pipelines.errors import CorruptInput, RecordFailed
from pipelines.files import explain_os_error, write_bytes
from pipelines.pixels import MAX_BYTES, open_pixels, read_header
from schemas.datasets import Picture

_HASH_SIDE, _LEAST_HASH_SIDE, _MOST_HASH_SIDE = 128, 64, 1024
"""Longest side to decode to before hashing, pixels; as much longer, up to the last, as the shorter side needs for the
second. The hash looks at 32 by 32 pixels, and JPEG decodes to an eighth at a fraction of the cost."""


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
            CorruptInput: if the file is missing or is not the picture that its name says.
        """
        path = self.path(picture.sha256, picture.extension)
        return _read_stored(path, picture.sha256, f"the row of {picture.file} needs this picture")

    def load(self, sha256: str) -> tuple[bytes, str]:
        """Return the bytes and the media type of a picture known by its content alone, hashed again.

        Raises:
            CorruptInput: if the store has no such picture, or its file was changed.
        """
        path = next(iter(sorted((self.folder / sha256[:2]).glob(f"{sha256}.*"))), self.path(sha256, "*"))
        data = _read_stored(path, sha256, "bring it back or ground again")
        return data, f"image/{_MEDIA.get(path.suffix, path.suffix[1:])}"


def _read_stored(path: Path, sha256: str, needed: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorruptInput(f"image store: {path}: {error.strerror}; {needed}") from error
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise CorruptInput(f"{path}: sha256 is {found}, the file was changed; delete it and ground again")
    return data


def probe_picture(data: bytes) -> Probe:
    """Say what a picture is, decoding it to the end once (JPEG at reduced scale, first frame of animations).

    Raises:
        RecordFailed: as :func:`pipelines.pixels.open_pixels`.
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
