"""What picture files readers fail on, with the standard library alone: kind by magic bytes, size from the header."""

import struct
from collections.abc import Iterator

MAX_RATIO = 200
"""Of the longer to the shorter side; Qwen's picture loader raises beyond."""
START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def find_picture_faults(data: object, where: str) -> Iterator[str]:
    """Yield what is wrong with a picture's bytes: no PNG, JPEG, GIF or WebP with a size, or one far too narrow."""
    if not isinstance(data, bytes) or not data:
        yield f"{where} has no bytes: a path alone is not opened"
        return
    size = measure_picture(data)
    if size is None or min(size) < 1:
        yield f"{where} is no PNG, JPEG, GIF or WebP file"
    elif max(size) > MAX_RATIO * min(size):
        yield f"{where} is {size[0]} x {size[1]}: sides may differ by a factor of {MAX_RATIO} at most"


def measure_picture(data: bytes) -> tuple[int, int] | None:
    """Return a picture's width and height in pixels from its header; None where it is no known picture."""
    try:
        if data[:8] == b"\x89PNG\r\n\x1a\n":
            return struct.unpack_from(">II", data, 16)
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return struct.unpack_from("<HH", data, 6)
        if data[:2] == b"\xff\xd8":
            return _measure_jpeg(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _measure_webp(data)
    except (struct.error, IndexError):
        return None
    return None


def _measure_jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    while place < len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        else:
            place += 2 + struct.unpack_from(">H", data, place + 2)[0]
    return None


def _measure_webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
