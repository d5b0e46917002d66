"""Unpacking a reply's body, up to a bound: a few kilobytes can be packed gigabytes."""

import zlib
from typing import Final

ACCEPTED: Final = "gzip, deflate"
"""What is asked for, as ``Accept-Encoding`` has it."""
_MOST_MEMBERS = 256
"""Of a gzip file; what follows one is copied each time, so that a million empty ones would take minutes."""
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Unpackable(ValueError):
    """A body that is packed in another way, broken, cut off, or too large."""


class Bomb(Unpackable):
    """A body that unpacks to more than allowed."""


def unpack_body(raw: bytes, packing: str, most: int) -> bytes:
    """Return what a body holds.

    Args:
        raw: as it came.
        packing: value of ``Content-Encoding``, empty for none.
        most: bytes of the result, at most.

    Raises:
        Unpackable: if it cannot be unpacked to its end; Bomb if that is beyond the bound.
    """
    name = packing.strip().lower()
    if name in ("", "identity"):
        return raw
    if name not in _WINDOWS:
        raise Unpackable(f"a reply packed as {name[:40]!r}; asked for was {ACCEPTED}")
    if not raw:
        return raw
    body = bytearray()
    rest = raw
    # A gzip file may have several members, each of which ends.
    for _ in range(_MOST_MEMBERS):
        unpacker = _open_unpacker(name, rest)
        try:
            body += unpacker.decompress(rest, most + 1 - len(body))
        except zlib.error as error:
            raise Unpackable(f"a reply that cannot be unpacked ({error})") from None
        if len(body) > most:
            raise Bomb(f"a packed reply of over {most:,} bytes")
        if not unpacker.eof:
            raise Unpackable("a packed reply that breaks off")
        rest = unpacker.unused_data if name != "deflate" else b""
        if not rest:
            return bytes(body)
    raise Bomb(f"a packed reply of over {_MOST_MEMBERS} parts")


def _open_unpacker(name: str, raw: bytes) -> "zlib._Decompress":
    """Return an unpacker; some servers send ``deflate`` without the header that it should have."""
    has_header = len(raw) > 1 and raw[0] & 0x0F == 8 and (raw[0] << 8 | raw[1]) % 31 == 0
    return zlib.decompressobj(_WINDOWS[name] if name != "deflate" or has_header else -zlib.MAX_WBITS)
