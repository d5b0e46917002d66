"""Which way up a picture is shown: Exif's orientation, else the one in XMP (as Pillow and MediaWiki have it)."""

import re
import struct

_ORIENTATION = 0x0112
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_INTEGERS = {1: "B", 3: "H", 4: "I"}
"""Letters of :mod:`struct` for the Exif types that an orientation comes in."""
_ENTRY = 12
"""Bytes of a directory's entry."""
_XMP = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')


def read_exif(exif: bytes) -> int | None:
    """Return the orientation in Exif data (a TIFF header first), None without one; damaged data have none."""
    order = _ORDERS.get(exif[:4])
    if order is None or len(exif) < 10:
        return None
    (start,) = struct.unpack_from(f"{order}I", exif, 4)
    if start + 2 > len(exif):
        return None
    (count,) = struct.unpack_from(f"{order}H", exif, start)
    for place in range(start + 2, min(start + 2 + _ENTRY * count, len(exif) - _ENTRY + 1), _ENTRY):
        tag, kind = struct.unpack_from(f"{order}HH", exif, place)
        if tag == _ORIENTATION and kind in _INTEGERS:
            return int(struct.unpack_from(order + _INTEGERS[kind], exif, place + 8)[0])
    return None


def read_xmp(xmp: bytes) -> int | None:
    """Return the orientation in XMP data, None without one."""
    found = _XMP.search(xmp)
    return int(found[1]) if found else None


def choose_orientation(exif: int | None, xmp: int | None) -> int:
    """Return the orientation to apply, 1 to 8; a number that means nothing turns nothing."""
    told = xmp if exif is None else exif
    return told if told is not None and 1 <= told <= 8 else 1
