"""Pictures that show nothing of an entity: flags, emblems, maps and cards of text."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Literal, get_args

from PIL import Image, ImageDraw

from pipelines.textlayer import WrittenText
from pipelines.world.canvas import Colour, Point, mix_colour
from pipelines.world.signs import load_font

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
