"""GIF89a: everything before the first frame is left out but the frame's own control block."""

import struct

from pipelines.picturefiles.limits import BarePicture, check_parts, check_size

_HEADER = 13
_EXTENSION, _CONTROL, _FRAME = 0x21, 0xF9, 0x2C
_HAS_TABLE = 0x80


def strip_gif(data: bytes) -> BarePicture:
    """Keep the screen, its colour table, and what follows from the first frame on, which is decoded no further.

    Raises:
        RecordFailed: ``picture-too-large``.
        ValueError, IndexError, struct.error: for a broken structure.
    """
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    body = _HEADER + (3 << (flags & 7) + 1 if flags & _HAS_TABLE else 0)
    control, frame = _find_frame(data, body)
    left, top, frame_width, frame_height = struct.unpack_from("<HHHH", data, frame + 1)
    check_size(frame_width, frame_height)
    # A frame that reaches beyond the screen makes it larger, as in Pillow.
    width, height = max(width, left + frame_width), max(height, top + frame_height)
    check_size(width, height)
    return BarePicture("gif", width, height, 1, 8, b"".join([data[:body], control, memoryview(data)[frame:]]))


def _find_frame(data: bytes, place: int) -> tuple[bytes, int]:
    """Return the last control block before the first frame, and where the frame begins."""
    control, count = b"", 0
    while data[place] != _FRAME:
        if data[place] != _EXTENSION:
            raise ValueError(f"no block at byte {place}")
        start, label = place, data[place + 1]
        place += 2
        while size := data[place]:
            count += 1
            check_parts(count)
            place += size + 1
        place += 1
        count += 1
        check_parts(count)
        control = data[start:place] if label == _CONTROL else control
    return control, place
