"""The text layer of a drawn picture: what is written on it, kept in the file beside the pixels.

Pictures of the toy world carry one, so that the text on them can be read without an OCR engine. It is a JPEG comment
or a PNG ``tEXt`` chunk: ``synth-text``, a zero byte, and a JSON list of ``{"text": ..., "box": [left, top, right,
bottom]}``. It belongs to these bytes: encoding the picture anew loses it, as it should.

OCR of drawn pictures, without an engine: what is written on them stands in the file (pipelines.toy.textlayer).
"""

import json
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import orjson

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.protocols import TextBlock

_KEYWORD = b"synth-text\0"
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
_COMMENT = 0xFE
_SCAN = 0xDA
_MAX_COMMENT = 0xFFFF - 2
_APPLICATION = range(0xE0, 0xF0)
_MAX_PARTS = 10_000
"""Looked at before the pixels begin; a picture has a handful."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """One piece of text on a picture; ``box`` is left, top, right, bottom in its pixels."""

    text: str
    box: tuple[float, float, float, float]


class Written(Protocol):
    """What a layer is written from: anything with a text and a box."""

    @property
    def text(self) -> str:
        """What is written."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom in pixels."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A JPEG segment or PNG chunk: where it begins and ends in the file, its type and its content."""

    start: int
    end: int
    kind: bytes
    body: bytes


def write_layer(data: bytes, blocks: Sequence[Written]) -> bytes:
    """Return the picture file with this text layer, in place of one it may have had.

    Args:
        data: a JPEG or PNG file.
        blocks: what is written on it, in reading order; none says that there is nothing to read.

    Raises:
        ConfigError: if it is no JPEG or PNG file, or the text is longer than a JPEG comment can be.
    """
    listed = [{"text": block.text, "box": [float(side) for side in block.box]} for block in blocks]
    # In ASCII, which is what json writes and orjson does not: a tEXt chunk is Latin-1.
    body = _KEYWORD + json.dumps(listed, separators=(",", ":")).encode("ascii")
    parts = list(_list_parts(data))
    if not parts:
        raise ConfigError("text layer: the picture is neither JPEG nor PNG")
    if data.startswith(_JPEG) and len(body) > _MAX_COMMENT:
        raise ConfigError(f"text layer: {len(body)} bytes of text; a JPEG comment holds {_MAX_COMMENT}")
    place = _find_place(data, parts)
    pieces = [data[: parts[0].start]]
    for part in parts:
        pieces += [] if _is_layer(part) else [data[part.start : part.end]]
        pieces += [_pack(data, body)] if part.end == place else []
    if place == parts[0].start:
        pieces.insert(1, _pack(data, body))
    return b"".join([*pieces, data[parts[-1].end :]])


def read_layer(data: bytes) -> tuple[WrittenText, ...] | None:
    """Return what the picture's text layer says is written on it; None where it has no layer.

    Raises:
        RecordFailed: ``text-layer`` if it has one that cannot be read.
    """
    layer = next((part.body for part in _list_parts(data) if _is_layer(part)), None)
    if layer is None:
        return None
    try:
        listed = orjson.loads(layer[len(_KEYWORD) :])
    except orjson.JSONDecodeError as error:
        raise RecordFailed("text-layer", f"the layer is no JSON: {error}") from error
    if not isinstance(listed, list):
        raise RecordFailed("text-layer", f"the layer holds {type(listed).__name__}; expected a list")
    return tuple(_read_block(given) for given in listed)


def _read_block(given: object) -> WrittenText:
    text = given.get("text") if isinstance(given, dict) else None
    box = given.get("box") if isinstance(given, dict) else None
    if not isinstance(text, str) or not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
        raise RecordFailed("text-layer", f"{str(given)[:80]}: expected a text and a box of four numbers")
    left, top, right, bottom = map(float, box)
    return WrittenText(text, (left, top, right, bottom))


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


def _is_layer(part: _Part) -> bool:
    return part.kind in (b"tEXt", bytes([_COMMENT])) and part.body.startswith(_KEYWORD)


def _find_place(data: bytes, parts: Sequence[_Part]) -> int:
    """Return where a layer goes: after a PNG's header chunk, after a JPEG's application segments."""
    if data.startswith(_PNG):
        return parts[0].end
    place = parts[0].start
    for part in parts:
        if part.kind[0] not in _APPLICATION:
            break
        place = part.end
    return place


def _pack(data: bytes, body: bytes) -> bytes:
    if data.startswith(_PNG):
        return struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", zlib.crc32(b"tEXt" + body))
    return bytes([0xFF, _COMMENT]) + struct.pack(">H", len(body) + 2) + body


def _list_parts(data: bytes) -> Iterator[_Part]:
    """Yield a PNG's chunks or a JPEG's segments before its pixels, so many at most; nothing for other files."""
    if data.startswith(_PNG):
        yield from islice(_list_chunks(data), _MAX_PARTS)
    elif data.startswith(_JPEG):
        yield from islice(_list_segments(data), _MAX_PARTS)


def _list_chunks(data: bytes) -> Iterator[_Part]:
    start = len(_PNG)
    while start + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, start)
        end = start + 12 + length
        if end > len(data):
            return
        kind = data[start + 4 : start + 8]
        if kind == b"IDAT":
            return
        yield _Part(start, end, kind, data[start + 8 : end - 4] if kind == b"tEXt" else b"")
        start = end


def _list_segments(data: bytes) -> Iterator[_Part]:
    start = len(_JPEG)
    while start + 4 <= len(data) and data[start] == 0xFF and data[start + 1] != _SCAN:
        (length,) = struct.unpack_from(">H", data, start + 2)
        end = start + 2 + length
        if length < 2 or end > len(data):
            return
        yield _Part(start, end, data[start + 1 : start + 2], data[start + 4 : end])
        start = end


VERSION = 1


@dataclass(frozen=True, slots=True)
class LayerOcr:
    """Reads the text layer of pictures of the toy world, and refuses all others."""

    @property
    def name(self) -> str:
        """``layer``."""
        return "layer"

    @property
    def identity(self) -> str:
        """The layer's version."""
        return f"layer@{VERSION}"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return what is written on a picture; the scale changes nothing.

        Raises:
            RecordFailed: ``no-text-layer`` if the file has none, as after any change of its pixels; ``text-layer`` if
                it cannot be read.
        """
        written = read_layer(data)
        if written is None:
            raise RecordFailed("no-text-layer", "only drawn pictures have one; name an OCR engine for photographs")
        return tuple(TextBlock(piece.text, "text", piece.box, 1.0) for piece in written if piece.text.strip())
