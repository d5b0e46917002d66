"""The bytes of a picture: its scene, a sign in it, its encoding and its text layer.

A small drawing surface: unit coordinates, soft backdrops, landscapes.

Pictures that show nothing of an entity: flags, emblems, maps and cards of text.

Subjects seen close by: people, species, works and small objects.

Subjects that stand in a landscape: buildings, places, ships, telescopes, battles, festivals.

Signs: boards with a few words on them, put up in a picture.

Pictures: which entity has which, under which name and licence, and what is odd about them.
"""

import colorsys
import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Literal, get_args

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pipelines.toy import names as words
from pipelines.toy.knowledge import Entity, WorldConfig
from pipelines.toy.names import fold_accents
from pipelines.toy.textlayer import WrittenText, write_layer

Colour = tuple[int, int, int]
Point = tuple[float, float]


def mix_colour(rng: Random, hue: Point, saturation: Point, value: Point) -> Colour:
    """A random colour; each range is (low, high) in 0.0 to 1.0, hue may pass 1.0 and wraps."""
    parts = colorsys.hsv_to_rgb(rng.uniform(*hue) % 1.0, rng.uniform(*saturation), rng.uniform(*value))
    red, green, blue = (round(part * 255) for part in parts)
    return red, green, blue


def shade(colour: Colour, factor: float) -> Colour:
    """The colour made darker (factor below 1.0) or lighter (above)."""
    red, green, blue = (max(0, min(255, round(part * factor))) for part in colour)
    return red, green, blue


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws in units of the subject: origin at the middle of its foot, y upwards, 1.0 is its height.

    Attributes:
        foot: pixel position of the origin.
        scale: pixels per unit; ``flip`` is 1 or -1 and mirrors left and right.
    """

    draw: ImageDraw.ImageDraw
    foot: Point
    scale: float
    flip: int = 1

    def place(self, x: float, y: float) -> Point:
        """Pixel position of a unit position."""
        return self.foot[0] + x * self.scale * self.flip, self.foot[1] - y * self.scale

    def shape(self, colour: Colour, *points: Point) -> None:
        """A filled polygon."""
        self.draw.polygon([self.place(*point) for point in points], fill=colour)

    def box(self, colour: Colour, left: float, bottom: float, right: float, top: float) -> None:
        """A filled upright rectangle."""
        self.shape(colour, (left, bottom), (right, bottom), (right, top), (left, top))

    def oval(self, colour: Colour, centre: Point, across: float, up: float) -> None:
        """A filled ellipse with half axes ``across`` and ``up``."""
        x, y = self.place(*centre)
        wide, high = abs(across * self.scale), abs(up * self.scale)
        self.draw.ellipse((x - wide, y - high, x + wide, y + high), fill=colour)

    def line(self, colour: Colour, width: float, *points: Point) -> None:
        """An open line, ``width`` in units."""
        pixels = max(1, round(width * self.scale))
        self.draw.line([self.place(*point) for point in points], fill=colour, width=pixels, joint="curve")


def paint_backdrop(size: tuple[int, int], rng: Random, top: Colour, bottom: Colour, spread: float) -> Image.Image:
    """A soft gradient from ``top`` to ``bottom`` with random lighter and darker patches.

    Args:
        size: width and height in pixels.
        rng: places the patches.
        top: colour of the upper edge.
        bottom: colour of the lower edge.
        spread: 0.0 for a clean gradient, 0.5 for strong patches.
    """
    columns, rows = 5, 5
    cells = []
    for row in range(rows):
        part = row / (rows - 1)
        for _ in range(columns):
            factor = 1.0 + rng.uniform(-spread, spread)
            blend = tuple(round(a + (b - a) * part) for a, b in zip(top, bottom, strict=True))
            cells.append(shade((blend[0], blend[1], blend[2]), factor))
    small = Image.new("RGB", (columns, rows))
    small.putdata(cells)
    # Straight to full size takes three times as long, and no eye sees the steps of two pixels in a soft gradient.
    soft = small.resize((20, 20), Image.Resampling.BICUBIC).resize(
        (size[0] // 2, size[1] // 2), Image.Resampling.BILINEAR
    )
    return soft.resize(size, Image.Resampling.NEAREST)


def paint_landscape(size: tuple[int, int], rng: Random) -> tuple[Image.Image, ImageDraw.ImageDraw, float, bool]:
    """Sky with sun or moon, two ridges and open ground.

    Returns:
        The picture, its drawing surface, the pixel row where the ground begins, whether it is night.
    """
    width, height = size
    night = rng.random() < 0.22
    hue = rng.choice(((0.54, 0.62), (0.54, 0.62), (0.02, 0.1), (0.85, 0.95), (0.45, 0.52)))
    top = mix_colour(rng, hue, (0.35, 0.8), (0.12, 0.3) if night else (0.5, 0.95))
    bottom = mix_colour(rng, (hue[0] - 0.05, hue[1]), (0.08, 0.35), (0.3, 0.5) if night else (0.82, 1.0))
    picture = paint_backdrop(size, rng, top, bottom, 0.22)
    draw = ImageDraw.Draw(picture)
    pen = Pen(draw, (0.0, float(height)), float(height))
    wide, horizon = width / height, rng.uniform(0.2, 0.42)
    light = (240, 240, 225) if night else mix_colour(rng, (0.1, 0.16), (0.15, 0.6), (0.97, 1.0))
    radius = rng.uniform(0.04, 0.11)
    pen.oval(light, (rng.uniform(0.05, wide - 0.05), rng.uniform(0.6, 0.93)), radius, radius)
    for _ in range(rng.randint(0, 3)):
        centre = (rng.uniform(0, wide), rng.uniform(0.62, 0.95))
        across = rng.uniform(0.08, 0.24)
        pen.oval(shade(bottom, 1.06), centre, across, across * 0.22)
        pen.oval(shade(bottom, 1.12), (centre[0] + across * 0.3, centre[1] + 0.02), across * 0.55, across * 0.25)
    far = mix_colour(rng, (0.4, 0.72), (0.15, 0.45), (0.15, 0.3) if night else (0.35, 0.7))
    for layer in range(2):
        crest = [(wide * step / 6, horizon + rng.uniform(0.0, 0.26 - 0.1 * layer)) for step in range(7)]
        pen.shape(shade(far, 1.0 - 0.22 * layer), (0.0, 0.0), *crest, (wide, 0.0))
    ground = mix_colour(
        rng, rng.choice(((0.2, 0.36), (0.08, 0.14), (0.5, 0.6))), (0.25, 0.6), (0.2, 0.35) if night else (0.4, 0.8)
    )
    pen.box(ground, 0.0, 0.0, wide, horizon)
    pen.shape(
        shade(ground, rng.uniform(0.75, 1.25)),
        (rng.uniform(-0.2, wide), 0.0),
        (rng.uniform(0.2, wide + 0.3), 0.0),
        (rng.uniform(0, wide), horizon),
        (rng.uniform(0, wide), horizon),
    )
    return picture, draw, height * (1 - horizon), night


def plant_trees(draw: ImageDraw.ImageDraw, size: tuple[int, int], rng: Random, ground: float) -> None:
    """A few trees in front, each a trunk under an oval or a spruce."""
    leaf = mix_colour(rng, (0.22, 0.42), (0.3, 0.7), (0.2, 0.55))
    for _ in range(rng.randint(0, 5)):
        tall = size[1] * rng.uniform(0.1, 0.3)
        foot = (rng.uniform(0, size[0]), ground + (size[1] - ground) * rng.uniform(0.3, 1.05))
        pen = Pen(draw, foot, tall)
        pen.box((84, 60, 44), -0.05, 0.0, 0.05, 0.45)
        if rng.random() < 0.5:
            pen.oval(leaf, (0.0, 0.68), 0.32, 0.36)
            pen.oval(shade(leaf, 1.25), (-0.08, 0.76), 0.18, 0.2)
        else:
            pen.shape(leaf, (-0.3, 0.25), (0.3, 0.25), (0.0, 1.0))
            pen.shape(shade(leaf, 0.8), (0.0, 0.25), (0.3, 0.25), (0.0, 1.0))


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


SimpleKind = Literal["flag", "emblem", "map", "card"]
SIMPLE: tuple[SimpleKind, ...] = get_args(SimpleKind)
Drawn = tuple[Image.Image, tuple[WrittenText, ...]]
_LOUD: tuple[Colour, ...] = ((200, 30, 40), (20, 60, 140), (250, 205, 50), (20, 120, 70), (20, 20, 24), (240, 130, 30))
_PALE: tuple[Colour, ...] = ((248, 224, 190), (214, 232, 190), (250, 240, 170), (236, 208, 220), (220, 214, 240))
_PAPER: tuple[Colour, ...] = ((255, 255, 255), (250, 246, 232), (240, 240, 244))
_WORDS = (
    "the hours of opening are kept by custom and every visitor is asked to leave the lawn as it was found for those "
    "who come after while notices of earlier years remain on show in the hall beside the stair until the season ends"
).split()
"""Words that name nobody."""


def draw_simple(kind: SimpleKind, size: tuple[int, int], rng: Random) -> Drawn:
    """Draw one of them, with what is written on it."""
    return _DRAW[kind](size, rng)


def draw_flag(size: tuple[int, int], rng: Random) -> Drawn:
    """Stripes, or a cross; now and then with a disc."""
    width, height = size
    colours = rng.sample((*_LOUD, (255, 255, 255)), 4)
    picture = Image.new("RGB", size, colours[0])
    draw = ImageDraw.Draw(picture)
    shape = rng.choice(("bars", "pales", "cross"))
    if shape == "cross":
        thick, at = height * 0.16, width * rng.choice((0.36, 0.5))
        draw.rectangle((0, (height - thick) / 2, width, (height + thick) / 2), fill=colours[1])
        draw.rectangle((at - thick / 2, 0, at + thick / 2, height), fill=colours[1])
        return picture, ()
    count = rng.randint(2, 4)
    for stripe in range(count):
        low, high = stripe / count, (stripe + 1) / count
        box = (0, height * low, width, height * high) if shape == "bars" else (width * low, 0, width * high, height)
        draw.rectangle(box, fill=colours[stripe % 3])
    if rng.random() < 0.4:
        reach = height * rng.uniform(0.12, 0.22)
        _draw_disc(draw, (width / 2, height / 2), reach, colours[3])
    return picture, ()


def draw_emblem(size: tuple[int, int], rng: Random) -> Drawn:
    """Rings and a star on white, as a logo or a seal has them."""
    colour, other = rng.sample(_LOUD, 2)
    picture = Image.new("RGB", size, rng.choice(_PAPER))
    draw, centre, reach = ImageDraw.Draw(picture), (size[0] / 2, size[1] / 2), min(size) * rng.uniform(0.28, 0.42)
    for factor, fill in ((1.0, colour), (0.86, (255, 255, 255)), (0.78, rng.choice((colour, other)))):
        _draw_disc(draw, centre, reach * factor, fill)
    points = rng.randint(3, 8)
    turn, inner = rng.uniform(0, math.tau), rng.uniform(0.35, 0.6)
    reaches = [reach * 0.66 * (1.0 if step % 2 else inner) for step in range(2 * points)]
    draw.polygon([_turn(centre, each, turn + math.pi * n / points) for n, each in enumerate(reaches)], (255, 255, 255))
    return picture, ()


def draw_map(size: tuple[int, int], rng: Random) -> Drawn:
    """A coast, three to six lands in pale colours, borders, and a mark where the place is."""
    picture = Image.new("RGB", size, mix_colour(rng, (0.52, 0.6), (0.15, 0.35), (0.9, 1.0)))
    draw, middle = ImageDraw.Draw(picture), (size[0] * rng.uniform(0.42, 0.58), size[1] * rng.uniform(0.42, 0.58))
    count = rng.randint(15, 24)
    coast = [_turn(middle, min(size) * rng.uniform(0.34, 0.5), math.tau * corner / count) for corner in range(count)]
    lands = rng.randint(3, min(6, count // 3))
    cuts = [*sorted(rng.sample(range(0, count, 2), lands)), 0]
    cuts[-1] = cuts[0] + count
    for number, (first, last) in enumerate(pairwise(cuts)):
        edge = [coast[corner % count] for corner in range(first, last + 1)]
        draw.polygon([middle, *edge], fill=_PALE[number % len(_PALE)], outline=(120, 110, 110), width=2)
    _draw_disc(draw, _turn(middle, min(size) * rng.uniform(0.05, 0.25), rng.uniform(0, math.tau)), 9, (210, 20, 30))
    return picture, ()


def draw_card(size: tuple[int, int], rng: Random) -> Drawn:
    """A page of text that names nobody."""
    picture = Image.new("RGB", size, rng.choice(_PAPER))
    return picture, write_lines(picture, _list_lines(size, rng), rng.randint(24, 30))


def write_lines(picture: Image.Image, lines: Sequence[str], letters: int) -> tuple[WrittenText, ...]:
    """Write lines from the top until the picture is full, and return them with their boxes."""
    draw, font, edge = ImageDraw.Draw(picture), load_font(letters), picture.width * 0.06
    found = []
    for number, line in enumerate(lines):
        place = (edge, edge + number * letters * 1.3)
        if place[1] + letters > picture.height - edge:
            break
        draw.text(place, line, fill=(26, 26, 30), font=font)
        found.append(WrittenText(line, draw.textbbox(place, line, font=font)))
    return tuple(found)


def _list_lines(size: tuple[int, int], rng: Random) -> list[str]:
    start, most = rng.randrange(len(_WORDS)), size[0] // 15
    lines, line = list[str](), ""
    for place in range(start, start + 140):
        word = _WORDS[place % len(_WORDS)]
        if len(line) + len(word) >= most:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return lines


def _draw_disc(draw: ImageDraw.ImageDraw, centre: Point, reach: float, colour: Colour) -> None:
    x, y = centre
    draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)


def _turn(centre: Point, reach: float, angle: float) -> Point:
    """The point at a distance and an angle (radians) from ``centre``."""
    return centre[0] + reach * math.cos(angle), centre[1] + reach * math.sin(angle)


_DRAW: Mapping[SimpleKind, Callable[[tuple[int, int], Random], Drawn]] = {
    "flag": draw_flag,
    "emblem": draw_emblem,
    "map": draw_map,
    "card": draw_card,
}


_ANY = (0.0, 1.0)


def draw_person(pen: Pen, rng: Random) -> None:
    """A bust: shoulders, neck, head, hair, perhaps beard, hat or glasses."""
    skin = mix_colour(rng, (0.04, 0.09), (0.25, 0.65), (0.4, 0.97))
    hair, coat = (
        mix_colour(rng, (0.03, 0.12), (0.1, 0.7), (0.08, 0.85)),
        mix_colour(rng, _ANY, (0.15, 0.8), (0.15, 0.8)),
    )
    broad = rng.uniform(0.36, 0.5)
    if rng.random() < 0.4:
        pen.oval(hair, (0.0, 0.6), 0.25, rng.uniform(0.26, 0.42))
    pen.box(coat, -broad, -1.0, broad, -0.1)
    pen.shape(
        coat, (-broad, -0.1), (-broad * 0.92, 0.2), (-0.16, 0.33), (0.16, 0.33), (broad * 0.92, 0.2), (broad, -0.1)
    )
    pen.shape((240, 238, 230), (-0.1, 0.33), (0.1, 0.33), (0.0, 0.1))
    pen.box(shade(skin, 0.88), -0.08, 0.27, 0.08, 0.45)
    high = rng.uniform(0.22, 0.27)
    pen.oval(hair, (0.0, 0.68), 0.215, high)
    pen.oval(skin, (0.0, 0.61), rng.uniform(0.17, 0.2), high * 0.92)
    if rng.random() < 0.35:
        pen.oval(hair, (0.0, 0.46), 0.13, 0.1)
    _draw_face(pen, rng, skin)
    if rng.random() < 0.25:
        hat = mix_colour(rng, _ANY, (0.2, 0.7), (0.1, 0.6))
        pen.box(hat, -0.34, 0.78, 0.34, 0.82)
        pen.box(shade(hat, 1.2), -0.2, 0.8, 0.2, rng.uniform(0.92, 1.1))


def _draw_face(pen: Pen, rng: Random, skin: Colour) -> None:
    for x in (-0.07, 0.07):
        pen.oval((250, 250, 248), (x, 0.64), 0.032, 0.02)
        pen.oval((50, 40, 40), (x, 0.64), 0.015, 0.017)
        pen.line((60, 44, 36), 0.012, (x - 0.035, 0.69), (x + 0.035, 0.695))
    pen.line(shade(skin, 0.7), 0.014, (0.0, 0.63), (0.02, 0.56), (-0.01, 0.555))
    pen.line((150, 62, 60), 0.016, (-0.05, 0.5), (0.0, 0.49), (0.05, 0.5))
    if rng.random() < 0.3:
        for x in (-0.07, 0.07):
            pen.line(
                (30, 30, 34),
                0.01,
                (x - 0.05, 0.66),
                (x + 0.05, 0.66),
                (x + 0.04, 0.6),
                (x - 0.04, 0.6),
                (x - 0.05, 0.66),
            )


def draw_bird(pen: Pen, rng: Random) -> None:
    """A bird on a branch."""
    body = mix_colour(rng, _ANY, (0.3, 0.85), (0.3, 0.9))
    wing, belly = shade(body, rng.uniform(0.5, 0.75)), mix_colour(rng, (0.03, 0.18), (0.1, 0.6), (0.75, 1.0))
    pen.line((92, 68, 50), 0.06, (-1.4, rng.uniform(-0.1, 0.15)), (0.0, 0.08), (1.4, rng.uniform(0.0, 0.3)))
    pen.shape(wing, (-0.3, 0.4), (-0.85, rng.uniform(0.05, 0.3)), (-0.8, 0.42), (-0.2, 0.55))
    fat = rng.uniform(0.22, 0.32)
    pen.oval(body, (0.0, 0.42), 0.4, fat)
    pen.oval(belly, (0.12, 0.34), 0.26, fat * 0.7)
    pen.oval(body, (0.36, 0.68), 0.18, 0.17)
    pen.oval(wing, (-0.1, 0.46), 0.3, fat * 0.55)
    long = rng.uniform(0.08, 0.4)
    pen.shape((226, 160, 50), (0.52, 0.72), (0.54 + long, 0.66), (0.52, 0.62))
    pen.oval((24, 22, 24), (0.42, 0.72), 0.03, 0.03)
    for x in (-0.02, 0.1):
        pen.line((150, 100, 60), 0.025, (x, 0.2), (x + 0.03, 0.06))


def draw_orchid(pen: Pen, rng: Random) -> None:
    """An orchid: a stem with leaves and one to four flowers."""
    petal, leaf = (
        mix_colour(rng, (0.75, 1.2), (0.2, 0.85), (0.7, 1.0)),
        mix_colour(rng, (0.25, 0.38), (0.4, 0.8), (0.25, 0.6)),
    )
    sway = rng.uniform(-0.25, 0.25)
    pen.line(leaf, 0.035, (0.0, -0.2), (sway * 0.4, 0.3), (sway, 0.7))
    for side in (-1, 1):
        pen.shape(shade(leaf, 1.0 + 0.1 * side), (0.0, -0.2), (side * 0.5, rng.uniform(0.0, 0.3)), (side * 0.12, -0.2))
    for flower in range(rng.randint(1, 4)):
        x, y = sway + (-1) ** flower * rng.uniform(0.0, 0.3) * bool(flower), 0.75 - 0.22 * flower
        size, petals = rng.uniform(0.14, 0.24), rng.choice((3, 5, 6))
        for each in range(petals):
            turn = math.tau * each / petals + 0.3 * flower
            pen.oval(
                petal, (x + size * 0.75 * math.cos(turn), y + size * 0.75 * math.sin(turn)), size * 0.5, size * 0.5
            )
        pen.oval(shade(petal, 0.55), (x, y - size * 0.2), size * 0.45, size * 0.4)
        pen.oval((250, 224, 120), (x, y), size * 0.2, size * 0.18)


def draw_beetle(pen: Pen, rng: Random) -> None:
    """A beetle from above, its wing cases plain, banded or spotted."""
    case = mix_colour(rng, _ANY, (0.4, 0.95), (0.25, 0.85))
    long = rng.uniform(0.34, 0.46)
    for y in (0.2, 0.42, 0.64):
        for side in (-1, 1):
            pen.line((40, 32, 30), 0.03, (0.0, y), (side * 0.42, y + rng.uniform(-0.1, 0.14)), (side * 0.55, y - 0.12))
    pen.oval(shade(case, 0.6), (0.0, 0.82), 0.18, 0.14)
    for side in (-1, 1):
        pen.line((40, 32, 30), 0.025, (side * 0.06, 0.92), (side * rng.uniform(0.12, 0.35), 1.15))
    pen.oval(shade(case, 0.75), (0.0, 0.68), 0.26, 0.14)
    pen.oval(case, (0.0, 0.38), 0.32, long)
    mark = mix_colour(rng, _ANY, (0.3, 0.9), (0.6, 1.0))
    for spot in range(rng.randint(0, 4)):
        for side in (-1, 1):
            pen.oval(mark, (side * 0.15, 0.14 + 0.16 * spot), 0.06, 0.05)
    pen.line(shade(case, 0.45), 0.014, (0.0, 0.38 - long), (0.0, 0.38 + long * 0.75))
    pen.oval(shade(case, 1.5), (-0.14, 0.56), 0.05, 0.1)


def draw_painting(pen: Pen, rng: Random) -> None:
    """A framed canvas: a view with hills, or an abstract of blocks and discs."""
    gilt = mix_colour(rng, (0.08, 0.14), (0.4, 0.8), (0.45, 0.9))
    wide, high = rng.uniform(0.45, 0.7), rng.uniform(0.75, 1.0)
    pen.box(gilt, -wide - 0.07, -0.05, wide + 0.07, high + 0.07)
    pen.box(mix_colour(rng, _ANY, (0.1, 0.6), (0.4, 1.0)), -wide, 0.02, wide, high)
    for _ in range(rng.randint(4, 8)):
        colour = mix_colour(rng, _ANY, (0.2, 0.9), (0.15, 0.95))
        left, low = rng.uniform(-wide, wide * 0.6), rng.uniform(0.02, high * 0.7)
        right, top = min(wide, left + rng.uniform(0.15, 0.6)), min(high, low + rng.uniform(0.1, 0.4))
        if rng.random() < 0.6:
            pen.shape(colour, (left, low), (right, low), (right, top), ((left + right) / 2, top))
        else:
            reach = min(right - left, top - low) / 2
            pen.oval(colour, ((left + right) / 2, (low + top) / 2), reach, reach)


def draw_book(pen: Pen, rng: Random) -> None:
    """A novel: a bound book with an emblem on its cover."""
    cover, emblem = mix_colour(rng, _ANY, (0.3, 0.9), (0.2, 0.8)), mix_colour(rng, _ANY, (0.1, 0.7), (0.7, 1.0))
    wide, lean = rng.uniform(0.3, 0.42), rng.uniform(-0.12, 0.12)
    pen.shape((244, 240, 226), (wide, 0.0), (wide + 0.08, 0.05), (wide + 0.08 + lean, 0.97), (wide + lean, 0.95))
    pen.shape(cover, (-wide, 0.0), (wide, 0.0), (wide + lean, 0.95), (-wide + lean, 0.95))
    pen.shape(shade(cover, 0.7), (-wide, 0.0), (-wide + 0.07, 0.0), (-wide + 0.07 + lean, 0.95), (-wide + lean, 0.95))
    centre, reach = (lean / 2, rng.uniform(0.4, 0.62)), rng.uniform(0.12, 0.22)
    points = rng.randint(3, 8)
    reaches = [reach * (1.0 if step % 2 else 0.5) for step in range(2 * points)]
    star = [_turn_portraits(centre, each, math.pi * step / points) for step, each in enumerate(reaches)]
    pen.shape(emblem, *star)
    pen.line(emblem, 0.02, (-wide * 0.6 + lean, 0.84), (wide * 0.7 + lean, 0.84))


def draw_film(pen: Pen, rng: Random) -> None:
    """A film: a lit screen above rows of seats."""
    light = mix_colour(rng, _ANY, (0.1, 0.6), (0.6, 1.0))
    left, right = -rng.uniform(0.6, 0.95), rng.uniform(0.6, 0.95)
    pen.box((26, 24, 30), -2.0, -1.0, 2.0, 0.18)
    pen.box(light, left, 0.35, right, 1.0)
    for _ in range(rng.randint(2, 4)):
        x, reach = rng.uniform(left + 0.2, right - 0.2), rng.uniform(0.08, 0.26)
        pen.oval(
            mix_colour(rng, _ANY, (0.2, 0.8), (0.1, 0.8)), (x, 0.36 + reach), reach * rng.uniform(0.4, 0.75), reach
        )
    pen.box((26, 24, 30), left, 0.18, right, 0.35)
    seat = mix_colour(rng, (0.95, 1.05), (0.5, 0.9), (0.25, 0.6))
    for row in range(2):
        for chair in range(7):
            pen.oval(shade(seat, 1.0 - 0.3 * row), (-1.05 + 0.35 * chair + 0.15 * row, 0.12 - 0.2 * row), 0.15, 0.13)


def draw_stage(pen: Pen, rng: Random) -> None:
    """An opera: curtains, boards, singers in a pool of light."""
    cloth = mix_colour(rng, _ANY, (0.5, 0.95), (0.35, 0.8))
    pen.box((112, 78, 52), -2.0, -1.0, 2.0, 0.15)
    pen.oval((236, 206, 150), (rng.uniform(-0.3, 0.3), 0.05), 0.7, 0.14)
    for _ in range(rng.randint(1, 4)):
        robe, x = mix_colour(rng, _ANY, (0.4, 0.9), (0.4, 0.95)), rng.uniform(-0.55, 0.55)
        pen.shape(robe, (x - 0.16, 0.05), (x + 0.16, 0.05), (x + 0.05, 0.42), (x - 0.05, 0.42))
        pen.oval((226, 190, 160), (x, 0.47), 0.055, 0.065)
    part = rng.uniform(0.5, 0.85)
    for side in (-1, 1):
        for fold in range(5):
            inner = part + 0.2 * fold
            pen.shape(
                shade(cloth, 0.7 + 0.12 * (fold % 3)),
                (side * inner, 0.0),
                (side * (inner + 0.2), 0.0),
                (side * (inner + 0.12), 1.4),
                (side * (inner - 0.12), 1.4),
            )
    pen.box(shade(cloth, 0.8), -2.0, rng.uniform(0.95, 1.1), 2.0, 1.6)


def draw_newspaper(pen: Pen, rng: Random) -> None:
    """A folded newspaper: grey columns and one picture, no letters."""
    paper, lean = mix_colour(rng, (0.08, 0.15), (0.03, 0.25), (0.8, 1.0)), rng.uniform(-0.15, 0.15)
    wide, columns = rng.uniform(0.38, 0.52), rng.randint(2, 4)
    pen.shape(
        shade(paper, 0.75),
        (-wide + 0.05, -0.05),
        (wide + 0.06, -0.04),
        (wide + 0.06 + lean, 0.97),
        (-wide + lean, 0.97),
    )
    pen.shape(paper, (-wide, 0.0), (wide, 0.0), (wide + lean, 1.0), (-wide + lean, 1.0))
    pen.box((60, 60, 62), -wide * 0.8 + lean, 0.88, wide * 0.8 + lean, 0.93)
    picture = rng.randrange(columns)
    for column in range(columns):
        left = -wide * 0.85 + 1.7 * wide * column / columns + lean / 2
        right = left + 1.45 * wide / columns
        top = 0.8
        if column == picture:
            pen.box(mix_colour(rng, _ANY, (0.0, 0.4), (0.2, 0.7)), left, 0.5, right, 0.8)
            top = 0.45
        for row in range(int(top / 0.06)):
            pen.line((150, 148, 144), 0.02, (left, 0.06 + row * 0.06), (right, 0.06 + row * 0.06))


def draw_clock(pen: Pen, rng: Random) -> None:
    """A clock face in a case, with hands."""
    case, face = (
        mix_colour(rng, (0.03, 0.14), (0.3, 0.8), (0.25, 0.75)),
        mix_colour(rng, (0.1, 0.16), (0.02, 0.2), (0.85, 1.0)),
    )
    half = rng.uniform(0.36, 0.48)
    if rng.random() < 0.5:
        pen.box(case, -half, -0.2, half, 1.0)
        pen.shape(shade(case, 1.2), (-half - 0.06, 1.0), (half + 0.06, 1.0), (0.0, 1.25))
    else:
        pen.oval(case, (0.0, 0.55), half + 0.06, half + 0.06)
    pen.oval(shade(case, 0.5), (0.0, 0.55), half * 0.9, half * 0.9)
    pen.oval(face, (0.0, 0.55), half * 0.82, half * 0.82)
    for mark in range(12):
        turn = math.tau * mark / 12
        pen.line(
            (40, 36, 40),
            0.018,
            (half * 0.66 * math.cos(turn), 0.55 + half * 0.66 * math.sin(turn)),
            (half * 0.78 * math.cos(turn), 0.55 + half * 0.78 * math.sin(turn)),
        )
    for long, width in ((0.42, 0.035), (0.62, 0.022)):
        turn = rng.uniform(0, math.tau)
        pen.line((24, 22, 30), width, (0.0, 0.55), (half * long * math.cos(turn), 0.55 + half * long * math.sin(turn)))


def draw_helmet(pen: Pen, rng: Random) -> None:
    """A helmet on a stand, with crest and cheek guards."""
    metal = mix_colour(rng, (0.06, 0.16), (0.1, 0.7), (0.45, 0.9))
    pen.box((52, 44, 40), -0.3, -0.2, 0.3, 0.02)
    pen.box((70, 60, 54), -0.06, 0.0, 0.06, 0.3)
    if rng.random() < 0.6:
        pen.oval(mix_colour(rng, _ANY, (0.5, 0.9), (0.4, 0.8)), (0.0, 0.8), 0.14, rng.uniform(0.3, 0.42))
    wide = rng.uniform(0.34, 0.44)
    pen.oval(metal, (0.0, 0.58), wide, 0.4)
    pen.box(shade(metal, 0.8), -wide, 0.22, wide, 0.5)
    pen.shape((36, 32, 32), (-wide * 0.75, 0.46), (wide * 0.75, 0.46), (0.1, 0.2), (-0.1, 0.2))
    pen.shape(shade(metal, 1.15), (-0.05, 0.56), (0.05, 0.56), (0.035, 0.24), (-0.035, 0.24))
    pen.line(shade(metal, 1.3), 0.03, (-wide, 0.5), (wide, 0.5))


def draw_meteorite(pen: Pen, rng: Random) -> None:
    """A dark lump with pits on a table."""
    stone = mix_colour(rng, (0.02, 0.12), (0.05, 0.4), (0.15, 0.6))
    pen.box(mix_colour(rng, _ANY, (0.05, 0.4), (0.6, 0.95)), -3.0, -2.0, 3.0, 0.05)
    corners = 11
    outline = [
        _turn_portraits((0.0, 0.42), rng.uniform(0.3, 0.52), math.tau * corner / corners) for corner in range(corners)
    ]
    pen.shape(stone, *outline)
    pen.shape(shade(stone, 1.35), *[(x * 0.6 - 0.1, 0.16 + y * 0.72) for x, y in outline[:6]])
    for _ in range(rng.randint(4, 9)):
        pen.oval(
            shade(stone, 0.55),
            (rng.uniform(-0.3, 0.3), rng.uniform(0.2, 0.65)),
            rng.uniform(0.02, 0.07),
            rng.uniform(0.02, 0.06),
        )


def _turn_portraits(centre: Point, reach: float, angle: float) -> Point:
    """The point at a distance and an angle (radians) from ``centre``."""
    return centre[0] + reach * math.cos(angle), centre[1] + reach * math.sin(angle)


INDOORS: Mapping[str, Callable[[Pen, Random], None]] = {
    "person": draw_person, "bird": draw_bird, "orchid": draw_orchid, "beetle": draw_beetle, "painting": draw_painting,
    "novel": draw_book, "film": draw_film, "opera": draw_stage, "newspaper": draw_newspaper, "clock": draw_clock,
    "helmet": draw_helmet, "meteorite": draw_meteorite,
}  # fmt: skip


_WALLS = ((0.02, 0.14), (0.1, 0.55), (0.5, 0.95))
_ROOFS = ((0.95, 1.08), (0.4, 0.75), (0.3, 0.7))


def draw_bridge(pen: Pen, rng: Random) -> None:
    """An arch, stone or suspension bridge over water."""
    wall, water = mix_colour(rng, *_WALLS), mix_colour(rng, (0.5, 0.62), (0.3, 0.7), (0.4, 0.85))
    pen.box(water, -3.0, -0.6, 3.0, 0.12)
    for ripple in range(4):
        x = rng.uniform(-1.4, 1.2)
        pen.line(shade(water, 1.25), 0.015, (x, -0.1 * ripple), (x + 0.35, -0.1 * ripple))
    deck, spans = rng.uniform(0.35, 0.5), rng.randint(1, 4)
    if rng.random() < 0.5:
        pen.box(wall, -1.3, 0.0, 1.3, deck + 0.09)
        for span in range(spans + 1):
            x = -1.3 + 2.6 * (span + 0.5) / (spans + 1)
            pen.oval(water, (x, 0.0), 1.1 / (spans + 1), deck - 0.03)
        pen.box(water, -1.3, -0.6, 1.3, 0.02)
        pen.line(shade(wall, 0.7), 0.03, (-1.35, deck + 0.1), (1.35, deck + 0.1))
        return
    pen.box(shade(wall, 0.8), -1.7, deck, 1.7, deck + 0.06)
    for x in (-0.65, 0.65):
        pen.box(wall, x - 0.05, -0.05, x + 0.05, 1.0)
    cable = [(-0.65 + 1.3 * step / 12, deck + 0.1 + 0.9 * (2 * step / 12 - 1) ** 2) for step in range(13)]
    pen.line(shade(wall, 0.6), 0.025, (-1.7, deck), *cable, (1.7, deck))
    for x, y in cable[1:-1]:
        pen.line(shade(wall, 0.6), 0.01, (x, deck), (x, y))


def draw_hall(pen: Pen, rng: Random) -> None:
    """A museum, theatre or university: columns under a gable or a dome."""
    wall, roof = mix_colour(rng, *_WALLS), mix_colour(rng, *_ROOFS)
    wide, columns = rng.uniform(0.6, 1.0), rng.randint(3, 8)
    if rng.random() < 0.55:
        pen.shape(roof, (-wide - 0.06, 0.64), (wide + 0.06, 0.64), (0.0, rng.uniform(0.85, 1.05)))
    else:
        pen.oval(roof, (0.0, 0.64), wide * 0.55, 0.36)
    pen.box(wall, -wide, 0.0, wide, 0.6)
    pen.box(shade(wall, 1.15), -wide - 0.06, 0.54, wide + 0.06, 0.64)
    for column in range(columns):
        x = -wide + 2 * wide * (column + 0.5) / columns
        pen.box(shade(wall, 0.55), x - 0.3 * wide / columns, 0.05, x + 0.3 * wide / columns, 0.46)
    pen.box(shade(wall, 0.75), -wide - 0.12, 0.0, wide + 0.12, 0.05)


def draw_tower(pen: Pen, rng: Random) -> None:
    """A tower with windows and a cap."""
    wall, roof = mix_colour(rng, *_WALLS), mix_colour(rng, *_ROOFS)
    foot, top = rng.uniform(0.14, 0.26), rng.uniform(0.1, 0.2)
    pen.shape(wall, (-foot, 0.0), (foot, 0.0), (top, 0.9), (-top, 0.9))
    pen.shape(shade(wall, 0.8), (0.0, 0.0), (foot, 0.0), (top, 0.9), (0.0, 0.9))
    for floor in range(rng.randint(2, 6)):
        pen.box(shade(wall, 0.45), -0.04, 0.12 + floor * 0.13, 0.04, 0.19 + floor * 0.13)
    pen.box(shade(wall, 1.15), -top - 0.07, 0.88, top + 0.07, 0.97)
    pen.shape(roof, (-top - 0.05, 0.97), (top + 0.05, 0.97), (0.0, rng.uniform(1.05, 1.45)))


def draw_lighthouse(pen: Pen, rng: Random) -> None:
    """A banded lighthouse on a rock, its lamp lit."""
    band, rock = (
        mix_colour(rng, (0.0, 1.0), (0.5, 0.9), (0.4, 0.85)),
        mix_colour(rng, (0.05, 0.12), (0.05, 0.3), (0.25, 0.5)),
    )
    pen.shape(rock, (-0.8, -0.1), (-0.5, 0.12), (-0.15, 0.2), (0.3, 0.16), (0.75, -0.1))
    bands = rng.randint(3, 7)
    for part in range(bands):
        low, high = part / bands, (part + 1) / bands
        colour = band if part % 2 else (238, 236, 228)
        pen.shape(
            colour,
            (-0.2 + 0.08 * low, 0.12 + 0.75 * low),
            (0.2 - 0.08 * low, 0.12 + 0.75 * low),
            (0.2 - 0.08 * high, 0.12 + 0.75 * high),
            (-0.2 + 0.08 * high, 0.12 + 0.75 * high),
        )
    if rng.random() < 0.6:
        pen.shape((255, 246, 190), (0.0, 0.95), (1.6, rng.uniform(0.9, 1.3)), (1.6, rng.uniform(0.6, 0.85)))
    pen.box((60, 60, 66), -0.17, 0.87, 0.17, 0.9)
    pen.box((255, 228, 120), -0.09, 0.9, 0.09, 1.02)
    pen.oval(shade(band, 0.7), (0.0, 1.02), 0.12, 0.08)


def draw_stadium(pen: Pen, rng: Random) -> None:
    """An oval bowl with masts and a pitch."""
    wall = mix_colour(rng, (0.0, 1.0), (0.05, 0.5), (0.5, 0.9))
    wide = rng.uniform(0.85, 1.15)
    pen.oval(wall, (0.0, 0.3), wide, 0.34)
    pen.oval(shade(wall, 0.6), (0.0, 0.4), wide * 0.9, 0.25)
    pen.oval(mix_colour(rng, (0.25, 0.38), (0.5, 0.8), (0.4, 0.7)), (0.0, 0.36), wide * 0.62, 0.14)
    for x in (-wide * 0.95, -wide * 0.4, wide * 0.4, wide * 0.95):
        pen.line((70, 72, 80), 0.025, (x, 0.2), (x, rng.uniform(0.8, 1.0)))
        pen.box((250, 248, 220), x - 0.07, 0.8, x + 0.07, 0.88)


def draw_castle(pen: Pen, rng: Random) -> None:
    """Walls with battlements and two to four round towers on a hill."""
    wall, roof = mix_colour(rng, *_WALLS), mix_colour(rng, *_ROOFS)
    pen.oval(mix_colour(rng, (0.2, 0.35), (0.3, 0.6), (0.3, 0.6)), (0.0, -0.1), 1.3, 0.3)
    pen.box(wall, -0.8, 0.0, 0.8, 0.42)
    for tooth in range(8):
        pen.box(wall, -0.8 + tooth * 0.2, 0.42, -0.7 + tooth * 0.2, 0.49)
    for x in sorted(rng.sample((-0.8, -0.45, 0.0, 0.4, 0.8), rng.randint(2, 4))):
        top, half = rng.uniform(0.55, 0.85), rng.uniform(0.09, 0.16)
        pen.box(shade(wall, 0.88), x - half, 0.0, x + half, top)
        pen.shape(roof, (x - half - 0.03, top), (x + half + 0.03, top), (x, top + rng.uniform(0.18, 0.4)))
    pen.box((52, 40, 36), -0.1, 0.0, 0.1, 0.22)


def draw_houses(pen: Pen, rng: Random) -> None:
    """A city or town: a row of houses, one with a spire."""
    x = -1.2
    spire = rng.randint(1, 5)
    for house in range(9):
        wide, high = rng.uniform(0.18, 0.36), rng.uniform(0.25, 0.75)
        wall, roof = mix_colour(rng, (0.0, 0.2), (0.1, 0.6), (0.55, 1.0)), mix_colour(rng, *_ROOFS)
        pen.box(wall, x, 0.0, x + wide, high)
        top = 1.15 if house == spire else high + rng.uniform(0.08, 0.22)
        pen.shape(roof, (x - 0.02, high), (x + wide + 0.02, high), (x + wide / 2, top))
        for floor in range(int(high / 0.17)):
            pen.box((60, 66, 84), x + wide * 0.2, 0.06 + floor * 0.17, x + wide * 0.4, 0.14 + floor * 0.17)
            pen.box((60, 66, 84), x + wide * 0.6, 0.06 + floor * 0.17, x + wide * 0.8, 0.14 + floor * 0.17)
        x += wide
        if x > 1.2:
            break


def draw_works(pen: Pen, rng: Random) -> None:
    """A company: a shed with a saw-tooth roof and chimneys."""
    wall, roof = (
        mix_colour(rng, (0.98, 1.1), (0.3, 0.65), (0.4, 0.75)),
        mix_colour(rng, (0.5, 0.7), (0.05, 0.3), (0.3, 0.6)),
    )
    teeth = rng.randint(3, 5)
    pen.box(wall, -0.9, 0.0, 0.9, 0.4)
    for tooth in range(teeth):
        left = -0.9 + 1.8 * tooth / teeth
        pen.shape(roof, (left, 0.4), (left + 1.8 / teeth, 0.4), (left, 0.62))
        pen.box((240, 226, 160), left + 0.08, 0.14, left + 0.24, 0.28)
    for _ in range(rng.randint(1, 3)):
        x, top = rng.uniform(-0.8, 0.8), rng.uniform(0.85, 1.1)
        pen.box(shade(wall, 0.75), x - 0.05, 0.3, x + 0.05, top)
        for puff in range(4):
            pen.oval((214, 212, 210), (x + 0.12 * puff, top + 0.08 * puff), 0.06 + 0.03 * puff, 0.05 + 0.025 * puff)


def draw_water(pen: Pen, rng: Random) -> None:
    """A lake: a sheet of water with a shore and a boat."""
    water = mix_colour(rng, (0.48, 0.62), (0.3, 0.75), (0.35, 0.85))
    pen.oval(shade(water, 0.7), (0.0, 0.0), 1.5, rng.uniform(0.3, 0.45))
    pen.oval(water, (rng.uniform(-0.1, 0.1), 0.0), 1.42, rng.uniform(0.24, 0.36))
    for _ in range(5):
        x, y = rng.uniform(-1.0, 0.7), rng.uniform(-0.2, 0.2)
        pen.line(shade(water, 1.3), 0.012, (x, y), (x + rng.uniform(0.1, 0.4), y))
    _draw_sail(pen, rng, rng.uniform(-0.7, 0.7), 0.0)


def draw_river(pen: Pen, rng: Random) -> None:
    """A river winding from the horizon to the front."""
    water = mix_colour(rng, (0.48, 0.62), (0.3, 0.75), (0.4, 0.9))
    bend, start = rng.uniform(0.3, 0.9) * rng.choice((-1, 1)), rng.uniform(-0.6, 0.6)
    left, right = [], []
    for step in range(13):
        part = step / 12
        x = start + bend * math.sin(part * rng.choice((3.0, 3.1)) * 1.3) * part
        half = 0.03 + 0.34 * part * part
        left.append((x - half, 0.55 - 1.15 * part))
        right.append((x + half, 0.55 - 1.15 * part))
    pen.shape(water, *left, *reversed(right))


def draw_island(pen: Pen, rng: Random) -> None:
    """An island in open water, flat or volcanic."""
    water, land = (
        mix_colour(rng, (0.48, 0.62), (0.4, 0.8), (0.35, 0.85)),
        mix_colour(rng, (0.2, 0.38), (0.35, 0.7), (0.3, 0.65)),
    )
    pen.box(water, -4.0, -2.0, 4.0, 0.15)
    wide, peak = rng.uniform(0.6, 1.2), rng.uniform(0.35, 0.95)
    pen.oval((226, 208, 160), (0.0, 0.02), wide * 1.08, 0.09)
    crest = [(-wide + wide * step / 4, rng.uniform(0.1, 0.45) * peak) for step in range(1, 8)]
    crest[3] = (rng.uniform(-0.2, 0.2), peak)
    pen.shape(land, (-wide, 0.02), *crest, (wide, 0.02))
    _draw_sail(pen, rng, rng.choice((-1, 1)) * (wide + 0.2), -0.15)


def draw_ship(pen: Pen, rng: Random) -> None:
    """A steamer or a sailing ship at sea."""
    water, hull = (
        mix_colour(rng, (0.48, 0.62), (0.3, 0.75), (0.3, 0.8)),
        mix_colour(rng, (0.0, 1.0), (0.3, 0.8), (0.2, 0.7)),
    )
    pen.box(water, -4.0, -2.0, 4.0, 0.2)
    pen.shape(hull, (-0.85, 0.38), (0.95, 0.42), (0.7, 0.08), (-0.7, 0.08))
    pen.line((236, 232, 220), 0.025, (-0.83, 0.33), (0.9, 0.36))
    if rng.random() < 0.5:
        pen.box((240, 238, 230), -0.5, 0.38, 0.45, 0.56)
        for x in [-0.3 + 0.25 * funnel for funnel in range(rng.randint(1, 3))]:
            pen.box(shade(hull, 1.3), x, 0.56, x + 0.12, 0.9)
            pen.oval((120, 118, 118), (x - 0.08, 1.0), 0.16, 0.08)
        return
    sail = mix_colour(rng, (0.05, 0.15), (0.05, 0.35), (0.85, 1.0))
    for x in (-0.45, 0.05, 0.5)[: rng.randint(2, 3)]:
        pen.line((80, 58, 40), 0.025, (x, 0.38), (x, 1.15))
        pen.shape(sail, (x - 0.2, 0.5), (x + 0.24, 0.5), (x + 0.16, 0.78), (x - 0.14, 0.78))
        pen.shape(shade(sail, 0.92), (x - 0.14, 0.8), (x + 0.18, 0.8), (x + 0.08, 1.08), (x - 0.08, 1.08))


def draw_telescope(pen: Pen, rng: Random) -> None:
    """An observatory dome with an open slit, or a tube on a pier."""
    dome = mix_colour(rng, (0.5, 0.7), (0.02, 0.2), (0.75, 1.0))
    pen.oval(dome, (0.0, 0.5), 0.5, 0.48)
    pen.box(shade(dome, 0.75), -0.52, 0.0, 0.52, 0.5)
    lean = rng.uniform(-0.3, 0.4)
    pen.shape((40, 44, 60), (lean - 0.07, 0.52), (lean + 0.09, 0.52), (lean + 0.1, 0.92), (lean - 0.04, 0.95))
    pen.line(shade(dome, 0.5), 0.09, (lean, 0.6), (lean + 0.3 * (1 if lean < 0.1 else -1), 1.1))
    pen.box((70, 60, 54), -0.08, 0.0, 0.08, 0.24)


def draw_battle(pen: Pen, rng: Random) -> None:
    """Two lines of troops with banners, and smoke."""
    for side in (-1, 1):
        coat = mix_colour(rng, (0.0, 1.0), (0.5, 0.9), (0.3, 0.75))
        for rank in range(rng.randint(6, 12)):
            x, y = side * rng.uniform(0.25, 1.15), rng.uniform(-0.3, 0.2)
            pen.box(coat, x - 0.03, y, x + 0.03, y + 0.16)
            pen.oval((224, 190, 160), (x, y + 0.19), 0.028, 0.034)
            if rank % 4 == 0:
                pen.line((70, 52, 40), 0.012, (x, y), (x, y + 0.55))
                pen.shape(shade(coat, 1.3), (x, y + 0.55), (x + 0.2, y + 0.49), (x, y + 0.42))
    for _ in range(rng.randint(3, 8)):
        grey = rng.randint(150, 225)
        pen.oval(
            (grey, grey, grey),
            (rng.uniform(-1.0, 1.0), rng.uniform(0.1, 0.8)),
            rng.uniform(0.1, 0.28),
            rng.uniform(0.06, 0.16),
        )


def draw_festival(pen: Pen, rng: Random) -> None:
    """Striped tents, strings of lights, a crowd."""
    for x in (-0.8, 0.05, 0.8)[: rng.randint(1, 3)]:
        cloth = mix_colour(rng, (0.0, 1.0), (0.6, 0.95), (0.6, 0.95))
        half, top = rng.uniform(0.28, 0.42), rng.uniform(0.6, 0.95)
        for stripe in range(6):
            left = x - half + half * stripe / 3
            colour = cloth if stripe % 2 else (245, 240, 228)
            pen.box(colour, left, 0.0, left + half / 3, 0.32)
            pen.shape(colour, (left, 0.32), (left + half / 3, 0.32), (x, top))
    sag = rng.uniform(0.1, 0.35)
    for lamp in range(14):
        part = lamp / 13
        glow = mix_colour(rng, (0.0, 1.0), (0.4, 0.9), (0.9, 1.0))
        pen.oval(glow, (-1.3 + 2.6 * part, 1.05 - sag * math.sin(math.pi * part)), 0.03, 0.03)
    for _ in range(14):
        x = rng.uniform(-1.2, 1.2)
        pen.oval(mix_colour(rng, (0.0, 1.0), (0.3, 0.8), (0.2, 0.6)), (x, -0.12), 0.06, 0.12)


def _draw_sail(pen: Pen, rng: Random, x: float, y: float) -> None:
    pen.shape((96, 62, 44), (x - 0.12, y + 0.05), (x + 0.12, y + 0.05), (x + 0.08, y), (x - 0.08, y))
    pen.shape(mix_colour(rng, (0.0, 1.0), (0.0, 0.5), (0.85, 1.0)), (x, y + 0.07), (x, y + 0.35), (x + 0.13, y + 0.07))


OUTDOORS: Mapping[str, Callable[[Pen, Random], None]] = {
    "bridge": draw_bridge, "museum": draw_hall, "theatre": draw_hall, "university": draw_hall, "tower": draw_tower,
    "lighthouse": draw_lighthouse, "stadium": draw_stadium, "castle": draw_castle, "city": draw_houses,
    "town": draw_houses, "country": draw_houses, "company": draw_works, "lake": draw_water, "river": draw_river,
    "island": draw_island, "ship": draw_ship, "telescope": draw_telescope, "battle": draw_battle,
    "festival": draw_festival,
}  # fmt: skip


MIN_SIDE = 512
NO_PICTURE_SHARE = 0.1
SMALL_SHARE = 0.04
UNFREE_SHARE = 0.05
PALETTE_SHARE = 0.02
SECOND_SHARE = 0.3
"""Entities with a lead picture whose article has another one."""
UNSTATED_SHARE = 0.12
"""Pictures of which nobody says what they depict."""
MISSTATED_SHARE = 0.015
"""Pictures that are said to depict another entity."""
TELLING_SHARE = 0.5
"""Simple pictures whose file name says what they are."""
_UPRIGHT = ("person", "orchid", "beetle", "painting", "novel", "newspaper", "clock", "helmet")
_VIEWS = ("", " 2019", " (cropped)", " 02", " detail")
_OUTDOOR_VIEWS = (*_VIEWS, " from the north", " in spring", ", seen from the west")
_SECOND_VIEWS = (" 03", " another view", " (2)", " close up")
_CAPTIONS = ("{name}, another view", "Another picture of {name}", "{name} as visitors see it", "{name} up close")
_SIMPLE_NAMES: Mapping[SimpleKind, str] = {
    "flag": "Flag of {stem}",
    "emblem": "{stem} logo",
    "map": "{stem} location map",
    "card": "{stem} text",
}
_CC = "https://creativecommons.org/"
LICENCES: Mapping[str, str] = {
    "CC BY-SA 4.0": f"{_CC}licenses/by-sa/4.0/deed.en",
    "CC BY-SA 3.0": f"{_CC}licenses/by-sa/3.0/deed.en",
    "CC BY 4.0": f"{_CC}licenses/by/4.0/deed.en",
    "CC0 1.0": f"{_CC}publicdomain/zero/1.0/deed.en",
}
UNFREE_LICENCES: Mapping[str, str] = {
    "Fair use": "https://en.wikipedia.org/wiki/Wikipedia:Non-free_content",
    "CC BY-NC-ND 4.0": f"{_CC}licenses/by-nc-nd/4.0/deed.en",
}
View = Literal["lead", "second"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A planned picture.

    Attributes:
        file: name with spaces, as an infobox has it; on disk and in tables spaces are underscores.
        size: width and height in pixels.
        free: whether the licence allows reuse and change.
        view: ``lead`` in the infobox, ``second`` in the article's body.
        sign: what a sign in it says; empty without one.
        simple: what it is where it is no picture of the entity at all; empty else.
        depicts: Qids it is said to depict (P180); mostly the entity's, now and then nothing or another's.
        caption: of a second picture.
    """

    entity: int
    file: str
    size: tuple[int, int]
    author: str
    licence: str
    licence_url: str
    free: bool
    view: View = "lead"
    sign: str = ""
    simple: SimpleKind | None = None
    depicts: tuple[str, ...] = ()
    caption: str = ""

    @property
    def stored_name(self) -> str:
        """File name with underscores."""
        return self.file.replace(" ", "_")

    @property
    def source_url(self) -> str:
        """Where the file page would be: Commons if free, else the local wiki."""
        host = "commons.wikimedia.org" if self.licence in LICENCES else "en.wikipedia.org"
        return f"https://{host}/wiki/File:{self.stored_name}"


def plan_pictures(entities: Sequence[Entity], config: WorldConfig) -> dict[int, Picture]:
    """Decide names, sizes, licences and oddities of lead pictures, by entity number; abstract things have none."""
    pictures: dict[int, Picture] = {}
    used: set[str] = set()
    for entity in entities:
        rng = Random(f"{config.seed}:picture-plan:{entity.number}")
        if entity.subtype.kind == "concept" or rng.random() < NO_PICTURE_SHARE:
            continue
        stem = entity.title if rng.random() < 0.3 else fold_accents(entity.title)
        suffix = ".png" if rng.random() < PALETTE_SHARE else ".jpg"
        view = rng.choice(_OUTDOOR_VIEWS if entity.subtype.name in OUTDOORS else _VIEWS)
        # Oddities have a stream of their own: without them the world stays the same.
        odd = Random(f"{config.seed}:picture-oddity:{entity.number}")
        simple, sign = _draw_oddity(entity, config, odd)
        file = _name_file(stem, view, suffix)
        if simple is not None and odd.random() < TELLING_SHARE:
            file = _name_file(_SIMPLE_NAMES[simple].format(stem=stem), "", ".png")
        file = _tell_apart(file, entity, used)
        free = rng.random() >= UNFREE_SHARE
        licence, address = rng.choice(tuple((LICENCES if free else UNFREE_LICENCES).items()))
        author = rng.choice(words.PHOTOGRAPHERS)
        pictures[entity.number] = Picture(
            entity.number, file, _draw_size(entity, rng), author, licence, address, free, sign=sign, simple=simple,
            depicts=_state_subject(entity, entities, odd),
        )  # fmt: skip
    return pictures


def plan_second_pictures(
    entities: Sequence[Entity], leads: Mapping[int, Picture], config: WorldConfig
) -> dict[int, Picture]:
    """Decide which entities have a further picture in the body of their article: the same thing seen otherwise."""
    pictures: dict[int, Picture] = {}
    used = {picture.file.casefold() for picture in leads.values()}
    for number in leads:
        rng, entity = Random(f"{config.seed}:second-picture-plan:{number}"), entities[number]
        if rng.random() >= SECOND_SHARE:
            continue
        file = _tell_apart(_name_file(fold_accents(entity.title), rng.choice(_SECOND_VIEWS), ".jpg"), entity, used)
        licence, address = rng.choice(tuple(LICENCES.items()))
        pictures[number] = Picture(
            number, file, _draw_size(entity, rng), rng.choice(words.PHOTOGRAPHERS), licence, address, True, "second",
            depicts=_state_subject(entity, entities, rng), caption=rng.choice(_CAPTIONS).format(name=entity.name),
        )  # fmt: skip
    return pictures


def _draw_oddity(entity: Entity, config: WorldConfig, rng: Random) -> tuple[SimpleKind | None, str]:
    """Return what a lead picture is in place of a picture, or what a sign in it says."""
    drawn, kind = rng.random(), rng.choice(SIMPLE)
    if drawn < config.simple:
        return kind, ""
    return None, fold_accents(entity.name) if drawn < config.simple + config.signs else ""


def _state_subject(entity: Entity, entities: Sequence[Entity], rng: Random) -> tuple[str, ...]:
    drawn, other = rng.random(), rng.choice(entities)
    if drawn < UNSTATED_SHARE:
        return ()
    return (other.qid if drawn < UNSTATED_SHARE + MISSTATED_SHARE else entity.qid,)


def _name_file(stem: str, view: str, suffix: str) -> str:
    file = "".join(letter for letter in stem if letter not in '/:|#<>[]{}"?*\\') + view + suffix
    return file[0].upper() + file[1:]


def _tell_apart(file: str, entity: Entity, used: set[str]) -> str:
    """Return a file name that no picture has yet, and note it."""
    if file.casefold() in used:
        file = f"{file[:-4]} {entity.number}{file[-4:]}"
    used.add(file.casefold())
    return file


def _draw_size(entity: Entity, rng: Random) -> tuple[int, int]:
    upright = entity.subtype.name in _UPRIGHT or entity.subtype.kind in _UPRIGHT
    if rng.random() < SMALL_SHARE:
        return (320, 400) if upright else (400, 320)
    long = rng.choice((640, 660, 680))
    return (MIN_SIDE, long) if upright else (long, MIN_SIDE)


_AFLOAT = ("ship", "island", "bridge", "lake")
_STAGED = ("film", "opera")
_REHEARSAL = 16
"""How much smaller a picture is painted only to know what was drawn by chance in it."""


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """The bytes of a picture and their SHA-256 in hexadecimal."""

    data: bytes
    sha256: str


def draw_picture(entity: Entity, picture: Picture, seed: int) -> DrawnPicture:
    """Draw and encode: JPEG, or a palette PNG where the name ends in ``.png``.

    What can be read in it, mostly nothing, stands in its text layer (:mod:`pipelines.toy.textlayer`).
    """
    scene, written = _draw_scene(entity, picture, seed)
    data = encode_scene(scene, picture.file, written)
    return DrawnPicture(data, hashlib.sha256(data).hexdigest())


def encode_scene(scene: Image.Image, file: str, written: Sequence[WrittenText]) -> bytes:
    """Return a picture file with its text layer; the end of its name says which kind."""
    buffer = io.BytesIO()
    if file.endswith(".png"):
        scene.quantize(64, method=Image.Quantize.FASTOCTREE).save(buffer, "PNG", compress_level=6)
    else:
        scene.save(buffer, "JPEG", quality=82)
    return write_layer(buffer.getvalue(), written)


def paint_scene(entity: Entity, size: tuple[int, int], seed: int, view: str = "lead") -> Image.Image:
    """Paint an entity; each further view shows the same thing before another backdrop, elsewhere, and turned round.

    Args:
        entity: its number and the seed decide how it looks.
        size: width and height in pixels.
        seed: of the world.
        view: ``lead`` or the name of another view.
    """
    subject = Random(f"{seed}:picture:{entity.number}")
    if view == "lead":
        return _soften(_paint(entity, size, subject, subject))
    # The subject is drawn from where the lead picture's stream is after its backdrop.
    _set_stage(entity, (size[0] // _REHEARSAL, size[1] // _REHEARSAL), subject)
    return _soften(_paint(entity, size, Random(f"{seed}:{view}-picture:{entity.number}"), subject))


def _draw_scene(entity: Entity, picture: Picture, seed: int) -> tuple[Image.Image, tuple[WrittenText, ...]]:
    if picture.simple is not None:
        return draw_simple(picture.simple, picture.size, Random(f"{seed}:simple-picture:{entity.number}"))
    scene = paint_scene(entity, picture.size, seed, picture.view)
    if not picture.sign:
        return scene, ()
    return scene, put_sign(scene, picture.sign, Random(f"{seed}:sign:{entity.number}"))


def _soften(scene: Image.Image) -> Image.Image:
    """Average each pixel with its lower right neighbour: smooths jagged edges in a tenth of a filter's time."""
    pixels = np.array(scene)
    pixels >>= 1
    pixels[:-1, :-1] += pixels[1:, 1:]
    pixels[-1, :] <<= 1
    pixels[:-1, -1] <<= 1
    return Image.fromarray(pixels)


def _paint(entity: Entity, size: tuple[int, int], rng: Random, subject: Random) -> Image.Image:
    picture, pen, ground = _set_stage(entity, size, rng)
    kind = entity.subtype
    if kind.name not in OUTDOORS:
        INDOORS[kind.kind if kind.kind == "person" else kind.name](pen, subject)
        return picture
    OUTDOORS[kind.name](pen, subject)
    if kind.name not in _AFLOAT:
        plant_trees(pen.draw, size, rng, max(ground, pen.foot[1]))
    return picture


def _set_stage(entity: Entity, size: tuple[int, int], rng: Random) -> tuple[Image.Image, Pen, float]:
    """Return the backdrop, the pen that draws the subject before it, and the pixel row where the ground begins."""
    if entity.subtype.name in OUTDOORS:
        picture, draw, ground, _ = paint_landscape(size, rng)
        scale = size[1] * rng.uniform(0.3, 0.52)
        foot = (size[0] * rng.uniform(0.28, 0.72), ground + (size[1] - ground) * rng.uniform(0.05, 0.55))
        return picture, Pen(draw, foot, scale, rng.choice((1, -1))), ground
    top = mix_colour(rng, (0.0, 1.0), (0.1, 0.6), (0.2, 0.95))
    bottom = mix_colour(rng, (0.0, 1.0), (0.1, 0.6), (0.2, 0.95))
    picture = paint_backdrop(size, rng, top, bottom, 0.5)
    scale = min(size) * rng.uniform(0.55, 0.82)
    foot = (size[0] * rng.uniform(0.36, 0.64), size[1] * rng.uniform(0.72, 0.9))
    if entity.subtype.name in _STAGED:
        scale, foot = size[1] * rng.uniform(0.68, 0.8), (size[0] * rng.uniform(0.46, 0.54), foot[1])
    return picture, Pen(ImageDraw.Draw(picture), foot, scale, rng.choice((1, -1))), 0.0
