"""Pictures that were made to hurt, and healthy ones of kinds that are often got wrong; built when they are asked for.

Each hostile picture names the class it is refused with, each odd one the size it is kept with.
"""

import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from PIL import Image

from pipelines.pictures import MAX_BYTES

SIDE = (640, 520)
"""Large enough for the gates of seeds and groundings."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Hostile:
    """A picture to be refused, or to be kept although a decoder would lose itself in it."""

    build: Callable[[], bytes]
    error: str
    """Class of the refusal; empty for one that is kept."""
    size: tuple[int, int] = (640, 520)


@dataclass(frozen=True, slots=True)
class Odd:
    """A healthy picture with what is to be seen of it."""

    build: Callable[[], bytes]
    extension: str
    size: tuple[int, int] = SIDE
    seen: tuple[int, int, int] = (200, 40, 40)
    """The colour of its upper left quarter, as shown."""


def draw(size: tuple[int, int] = SIDE) -> Image.Image:
    width, height = size
    image = Image.new("RGB", size, (40, 40, 60))
    image.paste((200, 40, 40), (0, 0, width // 2, height // 2))
    image.paste((40, 180, 40), (width // 2, 0, width, height // 2))
    image.paste((40, 40, 220), (0, height // 2, width // 2, height))
    return image


def encode(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def make_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def make_png(size: tuple[int, int], depth: int, colour: int, rows: bytes, *before: bytes) -> bytes:
    header = make_chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, 0))
    return b"".join([_SIGNATURE, header, *before, make_chunk(b"IDAT", rows), make_chunk(b"IEND", b"")])


def deflate_zeros(count: int) -> bytes:
    packer, block = zlib.compressobj(1), bytes(_BLOCK)
    parts = [packer.compress(block[: min(_BLOCK, count - done)]) for done in range(0, count, _BLOCK)]
    return b"".join([*parts, packer.flush()])


def add_chunks(*chunks: bytes) -> bytes:
    data = encode(draw(), "PNG")
    return data[:33] + b"".join(chunks) + data[33:]


def add_segments(*segments: bytes) -> bytes:
    data = encode(draw())
    return data[:2] + b"".join(segments) + data[2:]


def make_segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def add_scans(count: int, size: tuple[int, int] = SIDE) -> bytes:
    data = encode(Image.new("RGB", size), progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + last * count + data[-2:]


def claim_gif(width: int, height: int) -> bytes:
    data = bytearray(encode(Image.new("1", (8, 8)), "GIF"))
    data[6:10] = struct.pack("<HH", width, height)
    return bytes(data)


def claim_jpeg(width: int, height: int) -> bytes:
    data = bytearray(encode(draw((16, 16))))
    place = data.index(b"\xff\xc0")
    data[place + 5 : place + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def claim_webp(width: int, height: int) -> bytes:
    data = bytearray(encode(draw((16, 16)).convert("RGBA"), "WEBP", exif=b"Exif\0\0II*\0"))
    assert data[12:16] == b"VP8X"
    data[24:30] = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return bytes(data)


def add_gif_comment(length: int) -> bytes:
    data = encode(draw(), "GIF")
    start = 13 + (3 << (data[10] & 7) + 1)
    return data[:start] + b"\x21\xfe" + (b"\xff" + b"c" * 255) * (length // 256) + b"\0" + data[start:]


def add_gif_frames(count: int) -> bytes:
    data = encode(draw(), "GIF")
    small = encode(Image.new("1", (1, 1)), "GIF")
    frame = small[small.index(b"\x2c") : -1]
    return data[:-1] + frame * count + b"\x3b"


def add_webp_frames(count: int) -> bytes:
    data = encode(draw((16, 16)), "WEBP", save_all=True, append_images=[Image.new("RGB", (16, 16), "red")], duration=40)
    last = data[data.rindex(b"ANMF") :]
    body = data[12:] + last * count
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def split_data(count: int) -> bytes:
    data = encode(draw(), "PNG")
    place = data.index(b"IDAT") - 4
    return data[:place] + make_chunk(b"IDAT", b"") * count + data[place:]


def cut(kind: str, share: float = 0.6) -> bytes:
    data = encode(Image.effect_noise(SIDE, 90).convert("RGB"), kind)
    return data[: int(len(data) * share)]


def make_endless_exif() -> bytes:
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 0xFFFF) + struct.pack("<HHII", 0x8769, 4, 1, 8) * 40


SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="640" height="520"/>'
ENTITIES = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><svg>&b;</svg>'
HOSTILE: dict[str, Hostile] = {
    "zero bytes": Hostile(bytes, "picture-format"),
    "svg": Hostile(lambda: SVG, "picture-format"),
    "svg with entities": Hostile(lambda: ENTITIES, "picture-format"),
    "html": Hostile(lambda: b"<!DOCTYPE html><title>429 Too Many Requests</title>", "picture-format"),
    "tiff": Hostile(lambda: encode(draw(), "TIFF"), "picture-format"),
    "only magic bytes": Hostile(lambda: b"\xff\xd8\xff", "picture-undecodable"),
    "noise after magic bytes": Hostile(lambda: _SIGNATURE + bytes(range(256)) * 40, "picture-undecodable"),
    "more than 128 MiB": Hostile(lambda: encode(draw()) + bytes(MAX_BYTES), "picture-too-large"),
    "truncated jpeg": Hostile(lambda: cut("JPEG"), "picture-undecodable"),
    "truncated png": Hostile(lambda: cut("PNG"), "picture-undecodable"),
    "truncated gif": Hostile(lambda: cut("GIF"), "picture-undecodable"),
    "truncated webp": Hostile(lambda: cut("WEBP"), "picture-undecodable"),
    "png bomb of 400 megapixels": Hostile(
        lambda: make_png((20_000, 20_000), 1, 0, deflate_zeros(20_000 * 2501)), "picture-too-large"
    ),
    "gif bomb": Hostile(partial(claim_gif, 65_535, 65_535), "picture-too-large"),
    "jpeg bomb": Hostile(partial(claim_jpeg, 65_500, 65_500), "picture-too-large"),
    "webp bomb": Hostile(partial(claim_webp, 1 << 24, 250), "picture-too-large"),
    "png 30,000 pixels wide": Hostile(lambda: encode(Image.new("RGB", (30_000, 600)), "PNG"), "picture-too-large"),
    "jpeg 30,000 pixels high": Hostile(lambda: encode(Image.new("L", (600, 30_000))), "picture-too-large"),
    "jpeg of no height": Hostile(partial(claim_jpeg, 640, 0), "picture-undecodable"),
    "png of 65,536 chunks": Hostile(partial(split_data, 65_536), ""),
    "webp of 65,536 frames": Hostile(partial(add_webp_frames, 65_536), "", (16, 16)),
    "gif comment of 32 MiB": Hostile(partial(add_gif_comment, 32 << 20), ""),
    "jpeg of 5,000 scans": Hostile(partial(add_scans, 5_000), "picture-too-large"),
    "gif comment of 12 MiB": Hostile(partial(add_gif_comment, 12 << 20), ""),
    "gif of 100,000 frames": Hostile(partial(add_gif_frames, 100_000), ""),
    "jpeg comments of 32 MiB": Hostile(lambda: add_segments(*[make_segment(0xFE, b"c" * 65_533)] * 512), ""),
    "png text that inflates to 1 GiB": Hostile(
        lambda: add_chunks(make_chunk(b"zTXt", b"Comment\0\0" + deflate_zeros(1 << 30))), "picture-undecodable"
    ),
    "png profile that inflates to 1 GiB": Hostile(
        lambda: add_chunks(make_chunk(b"iCCP", b"icc\0\0" + deflate_zeros(1 << 30))), "picture-undecodable"
    ),
    "png text of 64 MiB": Hostile(lambda: add_chunks(make_chunk(b"tEXt", b"Comment\0" + b"c" * (64 << 20))), ""),
    "png data that inflate to 1 GiB": Hostile(lambda: make_png(SIDE, 8, 2, deflate_zeros(1 << 30)), ""),
    "exif that leads in a circle": Hostile(lambda: add_segments(make_segment(0xE1, make_endless_exif())), ""),
    "png of 2,147,483,647 frames": Hostile(
        lambda: add_chunks(make_chunk(b"acTL", struct.pack(">II", 0x7FFFFFFF, 0))), ""
    ),
}
"""By name; all are of 640 x 520 pixels where they are pictures at all."""


def turn(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def draw_lying() -> Image.Image:
    return draw().transpose(Image.Transpose.ROTATE_90)


def pack_rows(image: Image.Image, channels: int) -> bytes:
    width, height = image.size
    samples = image.tobytes()
    stride = width * channels
    rows = (samples[row * stride : (row + 1) * stride] for row in range(height))
    return zlib.compress(b"".join(b"\0" + b"".join(bytes((byte, 0x80)) for byte in row) for row in rows), 1)


def make_clear(image: Image.Image) -> Image.Image:
    mask = Image.new("L", image.size, 255)
    mask.paste(0, (0, 0, image.width // 2, image.height // 2))
    clear = image.convert("RGBA")
    clear.putalpha(mask)
    return clear


def animate(kind: str, **options: Any) -> bytes:
    frames = [Image.new("RGB", SIDE, colour) for colour in ("yellow", "white")]
    return encode(draw(), kind, save_all=True, append_images=frames, duration=80, **options)


def write_inks(adobe: bool = True) -> bytes:
    data = encode(draw().convert("CMYK"), quality=95)
    start = data.index(b"\xff\xee")
    return data if adobe else data[:start] + data[start + 16 :]


def write_grey(left: int, right: int, *before: bytes) -> bytes:
    dark, light = struct.pack(">H", left), struct.pack(">H", right)
    row = b"\0" + dark * (SIDE[0] // 2) + light * (SIDE[0] - SIDE[0] // 2)
    return make_png(SIDE, 16, 0, zlib.compress(row * SIDE[1]), *before)


WHITE, GREY = (255, 255, 255), (93, 93, 93)
ODD: dict[str, Odd] = {
    "jpeg of four inks": Odd(write_inks, "jpg"),
    "jpeg of four inks without Adobe's marker": Odd(partial(write_inks, False), "jpg"),
    "turned jpeg": Odd(lambda: encode(draw_lying(), exif=turn(6), quality=95), "jpg"),
    "turned png": Odd(lambda: encode(draw_lying(), "PNG", exif=turn(6)), "png"),
    "turned webp": Odd(lambda: encode(draw_lying(), "WEBP", exif=turn(6), quality=95), "webp"),
    "progressive jpeg": Odd(lambda: encode(draw(), progressive=True, quality=95), "jpg"),
    "grey jpeg": Odd(lambda: encode(draw().convert("L"), quality=95), "jpg", seen=(88, 88, 88)),
    "jpeg with a film behind it": Odd(lambda: encode(draw(), quality=95) + b"\xff\xda\0\2" * 500, "jpg"),
    "palette": Odd(lambda: encode(draw().quantize(16), "PNG"), "png"),
    "palette with clear parts": Odd(lambda: encode(make_clear(draw()).quantize(16), "PNG"), "png", seen=WHITE),
    "clear parts": Odd(lambda: encode(make_clear(draw()), "PNG"), "png", seen=WHITE),
    "grey with clear parts": Odd(lambda: encode(make_clear(draw()).convert("LA"), "PNG"), "png", seen=WHITE),
    "webp with clear parts": Odd(lambda: encode(make_clear(draw()), "WEBP", lossless=True), "webp", seen=WHITE),
    "one bit": Odd(lambda: encode(draw().convert("1", dither=Image.Dither.NONE), "PNG"), "png", seen=(0, 0, 0)),
    "sixteen-bit grey": Odd(partial(write_grey, 0x5D80, 0xF000), "png", seen=GREY),
    "sixteen-bit colour": Odd(lambda: make_png(SIDE, 16, 2, pack_rows(draw(), 3)), "png"),
    "animated gif": Odd(lambda: animate("GIF"), "gif"),
    "animated webp": Odd(lambda: animate("WEBP", lossless=True), "webp"),
    "animated png": Odd(lambda: animate("PNG"), "png"),
}
"""By name."""
