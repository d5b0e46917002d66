"""PNG: the chunks that the first picture of a file needs."""

import struct
from collections.abc import Iterator

from pipelines.picturefiles.limits import BarePicture, check_parts, check_size
from pipelines.picturefiles.orientation import choose_orientation, read_exif, read_xmp

_SIGNATURE = 8
_OUTSIDE = 12
"""Bytes of a chunk beside its content: length, name, checksum."""
_ONCE = (b"IHDR", b"PLTE", b"tRNS")
_XMP_HEAD = b"XML:com.adobe.xmp\0\0"
"""Keyword and compression flag of XMP that is not compressed; that which is stays closed."""


def strip_png(data: bytes) -> BarePicture:
    """Keep header, palette, transparency and the data of the picture that a page shows first.

    Raises:
        RecordFailed: ``picture-too-large``.
        ValueError, struct.error: for a broken structure.
    """
    kept, exif, xmp = [data[:_SIGNATURE]], None, None
    once: dict[bytes, bytes] = {}
    for name, start, end in _walk_chunks(data):
        if not once and name != b"IHDR":
            raise ValueError("the header is not the first chunk")
        if name in _ONCE:
            if name in once:
                raise ValueError(f"{name.decode()} twice")
            once[name] = data[start + 8 : end - 4]
        elif name == b"eXIf":
            exif = read_exif(data[start + 8 : end - 4].removeprefix(b"Exif\0\0"))
        elif name == b"iTXt" and data.startswith(_XMP_HEAD, start + 8):
            xmp = read_xmp(data[start + 8 : end - 4])
        if name in (*_ONCE, b"IDAT", b"IEND"):
            kept.append(data[start:end])
    width, height, depth = struct.unpack_from(">IIB", once[b"IHDR"])
    check_size(width, height)
    return BarePicture("png", width, height, choose_orientation(exif, xmp), depth, b"".join(kept))


def _walk_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield (name, start, end) of each chunk to the end chunk."""
    place, count, name = _SIGNATURE, 0, b""
    while name != b"IEND":
        count += 1
        check_parts(count)
        length, name = struct.unpack_from(">I4s", data, place)
        start, place = place, place + length + _OUTSIDE
        if place > len(data):
            raise ValueError(f"the chunk at byte {start} is cut")
        yield name, start, place
