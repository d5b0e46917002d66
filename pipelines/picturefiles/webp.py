"""WebP (RFC 9649): the first frame, and the canvas it lies on."""

import struct
from collections.abc import Iterator

from pipelines.picturefiles.limits import BarePicture, check_parts, check_size
from pipelines.picturefiles.orientation import choose_orientation, read_exif, read_xmp

_FIRST = 12
"""Where the first chunk begins."""
_PIXELS = (b"VP8 ", b"VP8L", b"ANMF")
_SHOWN_FLAGS = 0x12
"""Alpha and animation; the other flags of the header tell of metadata."""


def strip_webp(data: bytes) -> BarePicture:
    """Keep the header, the alpha plane and the first frame.

    Raises:
        RecordFailed: ``picture-too-large``.
        ValueError, IndexError, struct.error: for a broken structure.
    """
    chunks: dict[bytes, bytes] = {}
    pixels, exif, xmp = b"", None, None
    for name, start, end in _walk_chunks(data):
        if name in _PIXELS:
            pixels = pixels or name
        if name == b"EXIF":
            exif = read_exif(data[start + 8 : end].removeprefix(b"Exif\0\0"))
        elif name == b"XMP ":
            xmp = read_xmp(data[start + 8 : end])
        elif name in (b"VP8X", b"ANIM", b"ALPH") or name == pixels:
            chunks.setdefault(name, data[start:end])
    if not pixels:
        raise ValueError("no frame")
    width, height = _read_size(chunks, pixels)
    check_size(width, height)
    body = _join_chunks(chunks, pixels)
    riff = struct.pack("<4sI4s", b"RIFF", len(body) + 4, b"WEBP")
    return BarePicture("webp", width, height, choose_orientation(exif, xmp), 8, riff + body)


def _join_chunks(chunks: dict[bytes, bytes], pixels: bytes) -> bytes:
    if b"VP8X" not in chunks:
        return chunks[pixels]
    header = bytearray(chunks[b"VP8X"])
    header[8] &= _SHOWN_FLAGS
    before = b"ANIM" if pixels == b"ANMF" else b"ALPH"
    return bytes(header) + chunks.get(before, b"") + chunks[pixels]


def _read_size(chunks: dict[bytes, bytes], pixels: bytes) -> tuple[int, int]:
    """Return the canvas, or the frame's size where there is none."""
    if b"VP8X" in chunks:
        canvas = chunks[b"VP8X"]
        return int.from_bytes(canvas[12:15], "little") + 1, int.from_bytes(canvas[15:18], "little") + 1
    if pixels == b"VP8L":
        (bits,) = struct.unpack_from("<I", chunks[pixels], 9)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if pixels == b"VP8 ":
        width, height = struct.unpack_from("<HH", chunks[pixels], 14)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("an animation without a canvas")


def _walk_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield (name, start, end) of each chunk of the file; what follows the file's own end is left out."""
    (size,) = struct.unpack_from("<I", data, 4)
    if size + 8 > len(data):
        raise ValueError(f"{size + 8} bytes are promised")
    place, count = _FIRST, 0
    while place + 8 <= size + 8:
        count += 1
        check_parts(count)
        name, length = struct.unpack_from("<4sI", data, place)
        start, place = place, place + 8 + length + length % 2
        if start + 8 + length > size + 8:
            raise ValueError(f"the chunk at byte {start} is cut")
        yield name, start, place
