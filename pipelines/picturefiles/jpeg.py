"""JPEG (ITU T.81): the segments that pixels need, and how many scans go over the picture."""

import re
import struct
from collections.abc import Iterator

from pipelines.errors import RecordFailed
from pipelines.picturefiles.limits import MAX_PIXELS, BarePicture, check_parts, check_size
from pipelines.picturefiles.orientation import choose_orientation, read_exif, read_xmp

MAX_SCANS = 64
"""A progressive picture usually has 10. Each scan goes over all of it and may cost a file next to nothing."""
_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_MARKER_AFTER_SCAN = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""Restart markers (D0 to D7) belong to the scan."""
_ALONE = frozenset([0x01, *range(0xD0, 0xD9)])
"""Markers that no length follows."""
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_END, _SCAN, _JFIF, _EXIF, _ADOBE, _COMMENT = 0xD9, 0xDA, 0xE0, 0xE1, 0xEE, 0xFE
_EXIF_HEAD, _XMP_HEAD = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"


def strip_jpeg(data: bytes) -> BarePicture:
    """Keep tables, frame and scans; of the metadata only what tells the colour space (JFIF, Adobe).

    Raises:
        RecordFailed: ``picture-too-large``.
        ValueError, IndexError, struct.error: for a broken structure.
    """
    kept, exif, xmp = [data[:2]], None, None
    frame: tuple[int, int, int] | None = None
    for marker, start, end in _walk_segments(data, 2, _MARKER):
        body = data[start + 4 : end]
        if marker in _FRAMES:
            if frame is not None:
                raise ValueError("two frames")
            frame = struct.unpack_from(">BHH", body)
        elif marker == _EXIF:
            exif = read_exif(body[len(_EXIF_HEAD) :]) if exif is None and body.startswith(_EXIF_HEAD) else exif
            xmp = read_xmp(body) if xmp is None and body.startswith(_XMP_HEAD) else xmp
        if marker in (_SCAN, _END):
            break
        if _is_needed(marker, body):
            kept.append(data[start:end])
    else:
        raise ValueError("no scan")
    if marker == _END or frame is None:
        raise ValueError("no frame before the first scan")
    depth, height, width = frame
    check_size(width, height, MAX_PIXELS)
    kept.append(data[start : _find_end(data, start)])
    return BarePicture("jpg", width, height, choose_orientation(exif, xmp), depth, b"".join(kept))


def _is_needed(marker: int, body: bytes) -> bool:
    if marker in (_JFIF, _ADOBE):
        return body.startswith((b"JFIF", b"Adobe"))
    return marker < _JFIF


def _find_end(data: bytes, start: int) -> int:
    """Return where the picture ends whose first scan begins here: what may follow is a film or another picture."""
    scans = 0
    for marker, _, end in _walk_segments(data, start, _MARKER_AFTER_SCAN):
        scans += marker == _SCAN
        if scans > MAX_SCANS:
            raise RecordFailed("picture-too-large", f"more than {MAX_SCANS} scans")
        if marker == _END:
            return end
    return len(data)


def _walk_segments(data: bytes, place: int, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, int, int]]:
    """Yield (marker, start, end) of each segment up to the end marker; what lies between is passed over."""
    count = 0
    while found := pattern.search(data, place):
        count += 1
        check_parts(count)
        start, marker = found.start(), data[found.end() - 1]
        place = start + 2
        if marker in _ALONE:
            continue
        if marker < 0xC0:
            raise ValueError(f"no marker at byte {start}")
        if marker != _END:
            (length,) = struct.unpack_from(">H", data, place)
            place += length
            if length < 2 or place > len(data):
                raise ValueError(f"the segment at byte {start} is cut")
        yield marker, start, place
        if marker == _END:
            return
