"""Pictures as they are seen: the one place where a file's bytes become pixels, and pixels a file.

How large a picture may be, and what is known of it before anything is decoded.

Room for decoding: how many pixels all threads of a process may have in the making at once.

Which way up a picture is shown: Exif's orientation, else the one in XMP (as Pillow and MediaWiki have it).

GIF89a: everything before the first frame is left out but the frame's own control block.

JPEG (ITU T.81): the segments that pixels need, and how many scans go over the picture.

PNG: the chunks that the first picture of a file needs.

WebP (RFC 9649): the first frame, and the canvas it lies on.

One frame of a picture without metadata.

Decoders read comments, profiles and further frames before anybody asks for them, some in time that grows with the
square of their length, and tell of broken ones by warnings, whose filters all threads share.

The picture as an OCR engine is given it: decoded, enlarged within bounds, and the way back for its boxes.
"""

import io
import math
import re
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

import numpy as np
from PIL import GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
from PIL.Image import DecompressionBombError, Transpose
from PIL.ImageFile import ImageFile

from pipelines.errors import ConfigError, RecordFailed

MAX_BYTES = 128 * 1024 * 1024
MAX_PIXELS = 100_000_000
"""Of a JPEG: one of that size takes about 1 GB to decode, at reduced scale far less."""
MAX_WHOLE_PIXELS = 50_000_000
"""Of a format that is decoded whole or not at all. A WebP without loss takes up to 19 bytes a pixel meanwhile."""
MAX_SIDE = 20_000
"""Longest side in pixels."""
MAX_PARTS = 65_536
"""Segments, chunks or blocks of one file. A PNG of 128 MiB in chunks of the usual 8 KiB has a quarter of them."""


@dataclass(frozen=True, slots=True)
class BarePicture:
    """One frame of a picture as a file of its own, without metadata."""

    extension: str
    width: int
    """As stored, in pixels: the orientation is not applied."""
    height: int
    orientation: int
    """1 to 8 as Exif counts, 1 where nothing is said."""
    depth: int
    """Bits of a sample."""
    data: bytes


def check_size(width: int, height: int, most: int = MAX_WHOLE_PIXELS) -> None:
    """Refuse a size that is none or too large; ``most`` is how many pixels it may have in all.

    Raises:
        ValueError: if a side is under 1.
        RecordFailed: ``picture-too-large``.
    """
    if width < 1 or height < 1:
        raise ValueError(f"size {width}x{height}")
    if max(width, height) > MAX_SIDE:
        raise RecordFailed("picture-too-large", f"{width}x{height} pixels, allowed are {MAX_SIDE} a side")
    if width * height > most:
        raise RecordFailed("picture-too-large", f"{width}x{height} pixels, allowed are {most} in all")


def check_parts(count: int) -> None:
    """Refuse a file of too many parts.

    Raises:
        RecordFailed: ``picture-too-large``.
    """
    if count > MAX_PARTS:
        raise RecordFailed("picture-too-large", f"more than {MAX_PARTS} parts")


@dataclass(slots=True)
class DecodingRoom:
    """Lets decoders in as long as there is room, whoever came first before all others: a large one is not starved.

    Nobody may enter while inside.
    """

    pixels: int
    _used: int = 0
    _waiting: deque[object] = field(default_factory=deque)
    _changed: Condition = field(default_factory=Condition)

    @contextmanager
    def enter(self, pixels: int) -> Iterator[None]:
        """Wait until a picture of so many pixels has room, and hold it until the block ends; all of it for a larger."""
        wanted = min(pixels, self.pixels)
        with self._changed:
            self._queue(wanted)
            self._used += wanted
        try:
            yield
        finally:
            with self._changed:
                self._used -= wanted
                self._changed.notify_all()

    def _queue(self, wanted: int) -> None:
        place = object()
        self._waiting.append(place)
        try:
            self._changed.wait_for(lambda: self._waiting[0] is place and self._used + wanted <= self.pixels)
        finally:
            # Also where the wait was interrupted: nobody may stand behind one that is gone.
            self._waiting.remove(place)
            self._changed.notify_all()


ROOM = DecodingRoom(MAX_PIXELS)
"""Of this process: one of the largest pictures at once, or eight of a telephone's twelve megapixels."""


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


_SIGNATURE = 8
_OUTSIDE = 12
"""Bytes of a chunk beside its content: length, name, checksum."""
_ONCE = (b"IHDR", b"PLTE", b"tRNS")
_PNG_XMP_HEAD = b"XML:com.adobe.xmp\0\0"
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
        elif name == b"iTXt" and data.startswith(_PNG_XMP_HEAD, start + 8):
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
    for name, start, end in _walk_chunks_webp(data):
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


def _walk_chunks_webp(data: bytes) -> Iterator[tuple[bytes, int, int]]:
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


_MAGIC: tuple[tuple[str, Callable[[bytes], bool]], ...] = (
    ("jpg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP"),
)
_STRIPPERS: dict[str, Callable[[bytes], BarePicture]] = {
    "jpg": strip_jpeg,
    "png": strip_png,
    "gif": strip_gif,
    "webp": strip_webp,
}


def find_extension(data: bytes) -> str:
    """Return ``jpg``, ``png``, ``gif`` or ``webp`` by magic bytes, empty for anything else (SVG, TIFF, HTML)."""
    return next((extension for extension, matches in _MAGIC if matches(data[:16])), "")


def strip_picture(data: bytes) -> BarePicture:
    """Take a picture file apart, in time linear in its length and without decoding anything.

    Raises:
        RecordFailed: ``picture-format`` for a format outside the allow-list; ``picture-too-large`` over 128 MiB, 50
            megapixels (JPEG 100), 20,000 pixels a side, 65,536 parts or 64 scans; ``picture-undecodable`` for a broken
            structure.
    """
    if len(data) > MAX_BYTES:
        raise RecordFailed("picture-too-large", f"{len(data)} bytes, allowed are {MAX_BYTES}")
    extension = find_extension(data)
    if not extension:
        raise RecordFailed("picture-format", f"starts with {data[:8]!r}; allowed are JPEG, PNG, GIF and WebP")
    try:
        return _STRIPPERS[extension](data)
    except (ValueError, IndexError, struct.error) as error:
        raise RecordFailed("picture-undecodable", f"{extension} of {len(data)} bytes: {error}") from error


JPEG_QUALITY = 92
_WHITE = (255, 255, 255)
_TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""EXIF orientation to the turn that shows the picture upright."""
# The plugins are called directly: Image.open would try others, and warns at a pixel count of its own.
_READERS: dict[str, Callable[[io.BytesIO], ImageFile]] = {
    "jpg": JpegImagePlugin.JpegImageFile,
    "png": PngImagePlugin.PngImageFile,
    "gif": GifImagePlugin.GifImageFile,
    "webp": WebPImagePlugin.WebPImageFile,
}
_UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    SyntaxError,
    SystemError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What Pillow raises on broken files."""


def open_pixels(data: bytes, max_side: int = 0) -> Image.Image:
    """Return a picture as it is displayed: RGB, upright, the first frame, transparent parts on white.

    Sixteen bits a sample become eight, CMYK and palettes are resolved; colour profiles are not applied. Safe in
    threads: nothing that is set for the whole process is touched, and who finds no room waits, see
    :mod:`pipelines.pixels`.

    Args:
        data: bytes of a JPEG, PNG, GIF or WebP file.
        max_side: longest side of the result in pixels, 0 for that of the file. What is smaller stays as it is. JPEG is
            then decoded at the nearest reduced scale that is not too small.

    Raises:
        RecordFailed: ``picture-format``, ``picture-too-large`` or ``picture-undecodable``, see
            :func:`pipelines.pixels.strip_picture`.
    """
    return decode_bare(strip_picture(data), max_side)


def decode_bare(bare: BarePicture, max_side: int = 0) -> Image.Image:
    """As :func:`open_pixels`, for a file that was taken apart already."""
    try:
        opened = _READERS[bare.extension](io.BytesIO(bare.data))
        if opened.size != (bare.width, bare.height):
            raise ValueError(f"size {opened.width}x{opened.height}, {bare.width}x{bare.height} expected")
        if max_side:
            _reduce_scale(opened, max_side)
        # The coefficients of all scans are kept at full size, whatever the scale.
        whole = "progressive" in opened.info
        with ROOM.enter(bare.width * bare.height if whole else opened.width * opened.height):
            return _load_shown(opened, bare, max_side)
    except DecompressionBombError as error:
        raise RecordFailed("picture-too-large", str(error)) from error
    except _UNREADABLE as error:
        detail = f"{bare.extension} of {bare.width}x{bare.height} pixels: {type(error).__name__}: {error}"
        raise RecordFailed("picture-undecodable", detail) from error


def _reduce_scale(opened: ImageFile, max_side: int) -> None:
    """Set a JPEG to the smallest scale whose longest side is not under ``max_side``; others have one scale."""
    longest = max(opened.size)
    scale = next(scale for scale in (8, 4, 2, 1) if scale == 1 or -(-longest // scale) >= max_side)
    opened.draft("RGB", (max(1, opened.width // scale), max(1, opened.height // scale)))


def _load_shown(opened: ImageFile, bare: BarePicture, max_side: int) -> Image.Image:
    opened.load()
    shown = _resolve_samples(opened, bare.depth)
    if max_side:
        shown.thumbnail((max_side, max_side), reducing_gap=2.0)
    if bare.orientation in _TURNS:
        shown = shown.transpose(_TURNS[bare.orientation])
    return _lay_on_white(shown)


def encode_picture(image: Image.Image, like: str) -> bytes:
    """Return a picture as a file: JPEG of quality 92 without chroma subsampling where ``like`` is ``jpg``, else PNG."""
    target = io.BytesIO()
    if like == "jpg":
        image.save(target, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    else:
        image.save(target, "PNG")
    return target.getvalue()


def _resolve_samples(opened: Image.Image, depth: int) -> Image.Image:
    """Return RGB or RGBA of eight bits, so that scaling mixes colours and not numbers of a palette."""
    if opened.mode.startswith("I"):
        return _narrow_grey(opened)
    key = opened.info.get("transparency")
    if isinstance(key, tuple) and depth > 8:
        opened.info["transparency"] = tuple(sample >> depth - 8 for sample in key)
    elif isinstance(key, int) and opened.mode == "L" and depth < 8:
        opened.info["transparency"] = key * 255 // ((1 << depth) - 1)
    mode = "RGBA" if opened.has_transparency_data else "RGB"
    return opened if opened.mode == mode else opened.convert(mode)


def _narrow_grey(opened: Image.Image) -> Image.Image:
    """Return sixteen-bit grey as eight bits, by the upper byte as Pillow does with colours."""
    samples = np.asarray(opened)
    shown = Image.fromarray((samples >> 8).astype(np.uint8)).convert("RGB")
    if isinstance(key := opened.info.get("transparency"), int):
        shown.putalpha(Image.fromarray(np.where(samples == key, 0, 255).astype(np.uint8)))
    return shown


def _lay_on_white(shown: Image.Image) -> Image.Image:
    """Return RGB without anything that a file said beside its pixels, which would be saved again."""
    if shown.mode == "RGBA":
        ground = Image.new("RGBA", shown.size, (*_WHITE, 255))
        ground.alpha_composite(shown)
        shown = ground.convert("RGB")
    shown.info.clear()
    return shown


MAX_READ_PIXELS = 4_000_000
"""Pixels that an engine is given at most: engines take a second for each million."""
MAX_ENLARGED_PIXELS = 2_000_000
"""Pixels up to which a picture is enlarged: what is larger by itself shows small letters well enough."""
MIN_GAIN = 1.4
"""How much larger a picture has to become to be read once more, where it cannot become as large as was asked."""
_MAX_READ_SIDE = 16_384
"""Tesseract's limit is 32,767; no text needs more."""


@dataclass(frozen=True, slots=True)
class ScaledPicture:
    """A picture to be read, with its own size beside that of the enlargement."""

    image: Image.Image
    """RGB, as displayed."""
    width: int
    height: int

    def restore_box(self, corners: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
        """Return the upright box around points of the enlargement, in pixels of the picture itself and inside it."""
        across, down = self.width / self.image.width, self.height / self.image.height
        xs = [min(max(x * across, 0.0), float(self.width)) for x, _ in corners]
        ys = [min(max(y * down, 0.0), float(self.height)) for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)


def list_scales(data: bytes, scales: Sequence[float]) -> tuple[float, ...]:
    """Return the scales at which there is something new to be seen: a picture is enlarged within bounds alone.

    Raises:
        ConfigError: if a scale is no positive number.
        RecordFailed: if it is no picture, see :func:`pipelines.pixels.strip_picture`.
    """
    bare = strip_picture(data)
    kept: dict[float, float] = {}
    for scale in scales:
        factor = _find_factor((bare.width, bare.height), scale)
        if factor == scale or not any(factor < MIN_GAIN * other for other in kept.values()):
            kept[scale] = factor
    return tuple(kept)


def open_scaled(data: bytes, scale: float) -> ScaledPicture:
    """Return a picture enlarged by a factor (Lanczos), or by less where it would pass :data:`MAX_ENLARGED_PIXELS`.

    A picture of more than :data:`MAX_READ_PIXELS` is made smaller: engines are slow and hungry, not sharp-eyed.

    Raises:
        ConfigError: if the scale is no positive number.
        RecordFailed: if the picture cannot be decoded, see :func:`pipelines.pixels.open_pixels`.
    """
    _check_scale(scale)
    image = open_pixels(data)
    width, height = image.size
    factor = _find_factor(image.size, scale)
    size = (max(1, int(width * factor)), max(1, int(height * factor)))
    return ScaledPicture(image if size == image.size else image.resize(size, Image.Resampling.LANCZOS), width, height)


def _find_factor(size: tuple[int, int], scale: float) -> float:
    _check_scale(scale)
    pixels = size[0] * size[1]
    enlarged = max(1.0, math.sqrt(MAX_ENLARGED_PIXELS / pixels))
    return min(scale, enlarged, math.sqrt(MAX_READ_PIXELS / pixels), _MAX_READ_SIDE / max(size))


def _check_scale(scale: float) -> None:
    if not 0.0 < scale <= 16.0:
        raise ConfigError(f"OCR at scale {scale!r}; allowed is more than 0, and 16 at most")
