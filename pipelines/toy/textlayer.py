"""The text layer of a drawn picture, and the OCR engine ``layer`` that reads it.

Pictures of the toy world carry one, so that the text on them can be read without an OCR engine. It is a JPEG comment
or a PNG ``tEXt`` chunk: ``synth-text``, a zero byte, and a JSON list of ``{"text": ..., "box": [left, top, right,
bottom]}``. It belongs to these bytes: encoding the picture anew loses it, as it should.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import orjson
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.protocols import TextBlock

VERSION = 1
_KEYWORD = "synth-text"
_MAX_COMMENT = 0xFFFF - 2
"""Bytes of a JPEG comment."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """One piece of text on a picture; ``box`` is left, top, right, bottom in its pixels."""

    text: str
    box: tuple[float, float, float, float]


def encode_layered(
    picture: Image.Image, kind: Literal["JPEG", "PNG"], blocks: Sequence[WrittenText], **settings: int
) -> bytes:
    """Return the picture as a file with its text layer."""
    listed = [{"text": block.text, "box": [float(side) for side in block.box]} for block in blocks]
    # In ASCII, which is what json writes and orjson does not: a tEXt chunk is Latin-1.
    body = json.dumps(listed, separators=(",", ":"))
    buffer = io.BytesIO()
    if kind == "PNG":
        chunks = PngInfo()
        chunks.add_text(_KEYWORD, body)
        picture.save(buffer, "PNG", pnginfo=chunks, **settings)
        return buffer.getvalue()
    comment = f"{_KEYWORD}\0{body}".encode("ascii")
    if len(comment) > _MAX_COMMENT:
        raise ConfigError(f"text layer: {len(comment)} bytes of text; a JPEG comment holds {_MAX_COMMENT}")
    picture.save(buffer, "JPEG", comment=comment, **settings)
    return buffer.getvalue()


def read_layer(data: bytes) -> tuple[WrittenText, ...] | None:
    """Return what the picture's text layer says is written on it; None for a file without one."""
    layer = _find_layer(data)
    if layer is None:
        return None
    try:
        pieces = [(str(each["text"]), [float(side) for side in each["box"]]) for each in orjson.loads(layer)]
        return tuple(WrittenText(text, (left, top, right, bottom)) for text, (left, top, right, bottom) in pieces)
    except (ValueError, TypeError, KeyError) as error:
        raise RecordFailed("text-layer", f"the layer is no list of texts with boxes: {error}") from error


def _find_layer(data: bytes) -> bytes | str | None:
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as opened:
            if opened.format == "PNG":
                found = opened.info.get(_KEYWORD)
                return found if isinstance(found, str) else None
            start = f"{_KEYWORD}\0".encode()
            parts = (body for kind, body in getattr(opened, "applist", ()) if kind == "COM")
            return next((body[len(start) :] for body in parts if body.startswith(start)), None)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


@dataclass(frozen=True, slots=True)
class LayerOcr:
    """Reads the text layer of pictures of the toy world, and refuses all others."""

    name: ClassVar[str] = "layer"
    identity: ClassVar[str] = f"layer@{VERSION}"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return what is written on a picture; the scale changes nothing."""
        written = read_layer(data)
        if written is None:
            raise RecordFailed("no-text-layer", "only drawn pictures have one; name an OCR engine for photographs")
        return tuple(TextBlock(piece.text, "text", piece.box, 1.0) for piece in written if piece.text.strip())
