"""Signs: boards with a few words on them, put up in a picture."""

from functools import lru_cache
from random import Random

from PIL import Image, ImageDraw, ImageFont

from pipelines.textlayer import WrittenText
from pipelines.world.canvas import Colour

LETTERS = (26, 44)
"""Height of the font in pixels, least and most, in a picture of 512 px; larger ones have larger letters."""
LEAST_LETTERS = 14
_USUAL_SIDE = 512
_ROOM = 0.86
"""Share of the picture's width that a sign may take."""
_BOARDS: tuple[tuple[Colour, Colour], ...] = (
    ((246, 244, 236), (24, 26, 34)),
    ((252, 232, 120), (30, 26, 20)),
    ((28, 70, 120), (248, 248, 250)),
    ((40, 92, 60), (250, 248, 240)),
    ((110, 30, 34), (250, 244, 232)),
)
"""Colours of a board and of its letters."""


@lru_cache(maxsize=64)
def load_font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """Return the font that Pillow brings along, ``size`` pixels high; it has no letters beyond ASCII."""
    return ImageFont.load_default(size)


def put_sign(scene: Image.Image, text: str, rng: Random, letters: tuple[int, int] = LETTERS) -> tuple[WrittenText, ...]:
    """Put up a sign in a picture, in its lower half, and return its lines with their boxes.

    Args:
        scene: is drawn on.
        text: in ASCII, some words at most; it is broken into two lines, and made smaller, where it is too long.
        rng: decides place, colours and size.
        letters: least and most height of the letters, for a picture whose shorter side has 512 px.
    """
    draw, grown = ImageDraw.Draw(scene), min(scene.size) / _USUAL_SIDE
    size = max(LEAST_LETTERS, round(rng.randint(*letters) * grown))
    lines, room = _break_lines(draw, text, size, scene.width * _ROOM), scene.width * _ROOM
    while size > LEAST_LETTERS and max(_measure(draw, line, size) for line in lines) > room:
        size -= 1
    wide = max(_measure(draw, line, size) for line in lines)
    high, edge = round(size * 1.25), round(size * 0.5)
    board, ink = rng.choice(_BOARDS)
    left = rng.uniform(edge, max(edge, scene.width - wide - 2 * edge))
    top = scene.height * rng.uniform(0.52, 0.9) - high * len(lines) - 2 * edge
    right, bottom = left + wide + 2 * edge, top + high * len(lines) + edge
    if rng.random() < 0.6:
        for post in (left + (right - left) * 0.2, left + (right - left) * 0.8):
            draw.rectangle((post - 4, bottom, post + 4, scene.height), fill=(74, 60, 48))
    draw.rectangle((left, top, right, bottom), fill=board, outline=ink, width=max(2, size // 12))
    found = []
    for number, line in enumerate(lines):
        place = (left + edge + (wide - _measure(draw, line, size)) / 2, top + edge * 0.4 + high * number)
        draw.text(place, line, fill=ink, font=load_font(size))
        found.append(WrittenText(line, draw.textbbox(place, line, font=load_font(size))))
    return tuple(found)


def _measure(draw: ImageDraw.ImageDraw, line: str, size: int) -> float:
    """Width of a line in pixels."""
    return float(draw.textlength(line, font=load_font(size)))


def _break_lines(draw: ImageDraw.ImageDraw, text: str, size: int, room: float) -> tuple[str, ...]:
    """Return one line, or two of like length where one is too wide."""
    parts = text.split()
    if len(parts) < 2 or _measure(draw, text, size) <= room:
        return (text,)
    cuts = ((" ".join(parts[:cut]), " ".join(parts[cut:])) for cut in range(1, len(parts)))
    return min(cuts, key=lambda lines: max(map(len, lines)))
