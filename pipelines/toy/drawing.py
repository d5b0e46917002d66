"""Draws the subjects of the toy world's pictures on a small surface of unit coordinates."""

import colorsys
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
Point = tuple[float, float]
_ANY = (0.0, 1.0)
_WATER = (0.48, 0.62)
_SIDES = (-1, 1)
_WALLS = ((0.02, 0.14), (0.1, 0.55), (0.5, 0.95))
_ROOFS = ((0.95, 1.08), (0.4, 0.75), (0.3, 0.7))


def mix_colour(rng: Random, hue: Point, saturation: Point, value: Point) -> Colour:
    """Return a random colour; each range is (low, high) in 0.0 to 1.0, and a hue above 1.0 wraps."""
    parts = colorsys.hsv_to_rgb(rng.uniform(*hue) % 1.0, rng.uniform(*saturation), rng.uniform(*value))
    red, green, blue = (round(part * 255) for part in parts)
    return red, green, blue


def shade(colour: Colour, factor: float) -> Colour:
    """Return the colour made darker (factor below 1.0) or lighter (above)."""
    red, green, blue = (max(0, min(255, round(part * factor))) for part in colour)
    return red, green, blue


def turn_point(centre: Point, reach: float, angle: float) -> Point:
    """Return the point at a distance and an angle (radians) from ``centre``."""
    return centre[0] + reach * math.cos(angle), centre[1] + reach * math.sin(angle)


def make_star(centre: Point, reach: float, points: int, inner: float, angle: float = 0.0) -> list[Point]:
    """Return the corners of a star; ``inner`` is the distance of its inner corners as a share of ``reach``."""
    reaches = [reach * (1.0 if step % 2 else inner) for step in range(2 * points)]
    return [turn_point(centre, each, angle + math.pi * step / points) for step, each in enumerate(reaches)]


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws in units of the subject: origin at the middle of its foot, y upwards, 1.0 is its height.

    Attributes:
        foot: pixel position of the origin.
        scale: pixels per unit.
        flip: 1, or -1 to mirror left and right.
    """

    draw: ImageDraw.ImageDraw
    foot: Point
    scale: float
    flip: int = 1

    def place(self, x: float, y: float) -> Point:
        """Return the pixel position of a unit position."""
        return self.foot[0] + x * self.scale * self.flip, self.foot[1] - y * self.scale

    def shape(self, colour: Colour, *points: Point) -> None:
        """Fill a polygon."""
        self.draw.polygon([self.place(*point) for point in points], fill=colour)

    def box(self, colour: Colour, left: float, bottom: float, right: float, top: float) -> None:
        """Fill an upright rectangle."""
        self.shape(colour, (left, bottom), (right, bottom), (right, top), (left, top))

    def oval(self, colour: Colour, centre: Point, across: float, up: float) -> None:
        """Fill an ellipse with half axes ``across`` and ``up``."""
        x, y = self.place(*centre)
        wide, high = abs(across * self.scale), abs(up * self.scale)
        self.draw.ellipse((x - wide, y - high, x + wide, y + high), fill=colour)

    def line(self, colour: Colour, width: float, *points: Point) -> None:
        """Draw an open line, ``width`` in units."""
        pixels = max(1, round(width * self.scale))
        self.draw.line([self.place(*point) for point in points], fill=colour, width=pixels, joint="curve")


def paint_backdrop(size: tuple[int, int], rng: Random, top: Colour, bottom: Colour, spread: float) -> Image.Image:
    """Paint a soft gradient with random patches; ``spread`` 0.0 leaves it clean, 0.5 makes strong patches."""
    cells = []
    for row in range(5):
        red, green, blue = (round(a + (b - a) * row / 4) for a, b in zip(top, bottom, strict=True))
        cells += [shade((red, green, blue), 1.0 + rng.uniform(-spread, spread)) for _ in range(5)]
    small = Image.new("RGB", (5, 5))
    small.putdata(cells)
    # Straight to full size takes three times as long, and no eye sees the steps of two pixels in a soft gradient.
    small = small.resize((20, 20), Image.Resampling.BICUBIC)
    return small.resize((size[0] // 2, size[1] // 2), Image.Resampling.BILINEAR).resize(size, Image.Resampling.NEAREST)


def paint_landscape(size: tuple[int, int], rng: Random) -> tuple[Image.Image, ImageDraw.ImageDraw, float, bool]:
    """Paint sky with sun or moon, two ridges and open ground."""
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
        x, y, across = rng.uniform(0, wide), rng.uniform(0.62, 0.95), rng.uniform(0.08, 0.24)
        pen.oval(shade(bottom, 1.06), (x, y), across, across * 0.22)
        pen.oval(shade(bottom, 1.12), (x + across * 0.3, y + 0.02), across * 0.55, across * 0.25)
    far = mix_colour(rng, (0.4, 0.72), (0.15, 0.45), (0.15, 0.3) if night else (0.35, 0.7))
    for layer in range(2):
        crest = [(wide * step / 6, horizon + rng.uniform(0.0, 0.26 - 0.1 * layer)) for step in range(7)]
        pen.shape(shade(far, 1.0 - 0.22 * layer), (0.0, 0.0), *crest, (wide, 0.0))
    hue = rng.choice(((0.2, 0.36), (0.08, 0.14), (0.5, 0.6)))
    ground = mix_colour(rng, hue, (0.25, 0.6), (0.2, 0.35) if night else (0.4, 0.8))
    pen.box(ground, 0.0, 0.0, wide, horizon)
    field, near = shade(ground, rng.uniform(0.75, 1.25)), (rng.uniform(-0.2, wide), rng.uniform(0.2, wide + 0.3))
    edge = [(rng.uniform(0, wide), horizon) for _ in range(2)]
    pen.shape(field, (near[0], 0.0), (near[1], 0.0), *edge)
    return picture, draw, height * (1 - horizon), night


def plant_trees(draw: ImageDraw.ImageDraw, size: tuple[int, int], rng: Random, ground: float) -> None:
    """Plant a few trees in front, each a trunk under an oval or a spruce."""
    leaf = mix_colour(rng, (0.22, 0.42), (0.3, 0.7), (0.2, 0.55))
    for _ in range(rng.randint(0, 5)):
        tall = size[1] * rng.uniform(0.1, 0.3)
        pen = Pen(draw, (rng.uniform(0, size[0]), ground + (size[1] - ground) * rng.uniform(0.3, 1.05)), tall)
        pen.box((84, 60, 44), -0.05, 0.0, 0.05, 0.45)
        if rng.random() < 0.5:
            pen.oval(leaf, (0.0, 0.68), 0.32, 0.36)
            pen.oval(shade(leaf, 1.25), (-0.08, 0.76), 0.18, 0.2)
        else:
            pen.shape(leaf, (-0.3, 0.25), (0.3, 0.25), (0.0, 1.0))
            pen.shape(shade(leaf, 0.8), (0.0, 0.25), (0.3, 0.25), (0.0, 1.0))


def _draw_person(pen: Pen, rng: Random) -> None:
    skin = mix_colour(rng, (0.04, 0.09), (0.25, 0.65), (0.4, 0.97))
    hair = mix_colour(rng, (0.03, 0.12), (0.1, 0.7), (0.08, 0.85))
    coat, broad = mix_colour(rng, _ANY, (0.15, 0.8), (0.15, 0.8)), rng.uniform(0.36, 0.5)
    slope = broad * 0.92
    if rng.random() < 0.4:
        pen.oval(hair, (0.0, 0.6), 0.25, rng.uniform(0.26, 0.42))
    pen.box(coat, -broad, -1.0, broad, -0.1)
    pen.shape(coat, (-broad, -0.1), (-slope, 0.2), (-0.16, 0.33), (0.16, 0.33), (slope, 0.2), (broad, -0.1))
    pen.shape((240, 238, 230), (-0.1, 0.33), (0.1, 0.33), (0.0, 0.1))
    pen.box(shade(skin, 0.88), -0.08, 0.27, 0.08, 0.45)
    high = rng.uniform(0.22, 0.27)
    pen.oval(hair, (0.0, 0.68), 0.215, high)
    pen.oval(skin, (0.0, 0.61), rng.uniform(0.17, 0.2), high * 0.92)
    if rng.random() < 0.35:  # a beard
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
    if rng.random() < 0.3:  # glasses
        for x in (-0.07, 0.07):
            rim = ((x - 0.05, 0.66), (x + 0.05, 0.66), (x + 0.04, 0.6), (x - 0.04, 0.6), (x - 0.05, 0.66))
            pen.line((30, 30, 34), 0.01, *rim)


def _draw_bird(pen: Pen, rng: Random) -> None:
    body = mix_colour(rng, _ANY, (0.3, 0.85), (0.3, 0.9))
    wing, belly = shade(body, rng.uniform(0.5, 0.75)), mix_colour(rng, (0.03, 0.18), (0.1, 0.6), (0.75, 1.0))
    pen.line((92, 68, 50), 0.06, (-1.4, rng.uniform(-0.1, 0.15)), (0.0, 0.08), (1.4, rng.uniform(0.0, 0.3)))
    pen.shape(wing, (-0.3, 0.4), (-0.85, rng.uniform(0.05, 0.3)), (-0.8, 0.42), (-0.2, 0.55))
    fat = rng.uniform(0.22, 0.32)
    pen.oval(body, (0.0, 0.42), 0.4, fat)
    pen.oval(belly, (0.12, 0.34), 0.26, fat * 0.7)
    pen.oval(body, (0.36, 0.68), 0.18, 0.17)
    pen.oval(wing, (-0.1, 0.46), 0.3, fat * 0.55)
    pen.shape((226, 160, 50), (0.52, 0.72), (0.54 + rng.uniform(0.08, 0.4), 0.66), (0.52, 0.62))
    pen.oval((24, 22, 24), (0.42, 0.72), 0.03, 0.03)
    for x in (-0.02, 0.1):
        pen.line((150, 100, 60), 0.025, (x, 0.2), (x + 0.03, 0.06))


def _draw_orchid(pen: Pen, rng: Random) -> None:
    petal = mix_colour(rng, (0.75, 1.2), (0.2, 0.85), (0.7, 1.0))
    leaf, sway = mix_colour(rng, (0.25, 0.38), (0.4, 0.8), (0.25, 0.6)), rng.uniform(-0.25, 0.25)
    pen.line(leaf, 0.035, (0.0, -0.2), (sway * 0.4, 0.3), (sway, 0.7))
    for side in _SIDES:
        pen.shape(shade(leaf, 1.0 + 0.1 * side), (0.0, -0.2), (side * 0.5, rng.uniform(0.0, 0.3)), (side * 0.12, -0.2))
    for flower in range(rng.randint(1, 4)):
        x, y = sway + (-1) ** flower * rng.uniform(0.0, 0.3) * bool(flower), 0.75 - 0.22 * flower
        size, petals = rng.uniform(0.14, 0.24), rng.choice((3, 5, 6))
        for each in range(petals):
            place = turn_point((x, y), size * 0.75, math.tau * each / petals + 0.3 * flower)
            pen.oval(petal, place, size * 0.5, size * 0.5)
        pen.oval(shade(petal, 0.55), (x, y - size * 0.2), size * 0.45, size * 0.4)
        pen.oval((250, 224, 120), (x, y), size * 0.2, size * 0.18)


def _draw_beetle(pen: Pen, rng: Random) -> None:
    case, long = mix_colour(rng, _ANY, (0.4, 0.95), (0.25, 0.85)), rng.uniform(0.34, 0.46)
    for y in (0.2, 0.42, 0.64):
        for side in _SIDES:
            pen.line((40, 32, 30), 0.03, (0.0, y), (side * 0.42, y + rng.uniform(-0.1, 0.14)), (side * 0.55, y - 0.12))
    pen.oval(shade(case, 0.6), (0.0, 0.82), 0.18, 0.14)
    for side in _SIDES:
        pen.line((40, 32, 30), 0.025, (side * 0.06, 0.92), (side * rng.uniform(0.12, 0.35), 1.15))
    pen.oval(shade(case, 0.75), (0.0, 0.68), 0.26, 0.14)
    pen.oval(case, (0.0, 0.38), 0.32, long)
    mark = mix_colour(rng, _ANY, (0.3, 0.9), (0.6, 1.0))
    for spot in range(rng.randint(0, 4)):
        for side in _SIDES:
            pen.oval(mark, (side * 0.15, 0.14 + 0.16 * spot), 0.06, 0.05)
    pen.line(shade(case, 0.45), 0.014, (0.0, 0.38 - long), (0.0, 0.38 + long * 0.75))
    pen.oval(shade(case, 1.5), (-0.14, 0.56), 0.05, 0.1)


def _draw_painting(pen: Pen, rng: Random) -> None:
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


def _draw_book(pen: Pen, rng: Random) -> None:
    cover, emblem = mix_colour(rng, _ANY, (0.3, 0.9), (0.2, 0.8)), mix_colour(rng, _ANY, (0.1, 0.7), (0.7, 1.0))
    wide, lean = rng.uniform(0.3, 0.42), rng.uniform(-0.12, 0.12)
    left = -wide + lean
    pen.shape((244, 240, 226), (wide, 0.0), (wide + 0.08, 0.05), (wide + 0.08 + lean, 0.97), (wide + lean, 0.95))
    pen.shape(cover, (-wide, 0.0), (wide, 0.0), (wide + lean, 0.95), (left, 0.95))
    pen.shape(shade(cover, 0.7), (-wide, 0.0), (-wide + 0.07, 0.0), (-wide + 0.07 + lean, 0.95), (left, 0.95))
    centre, reach = (lean / 2, rng.uniform(0.4, 0.62)), rng.uniform(0.12, 0.22)
    pen.shape(emblem, *make_star(centre, reach, rng.randint(3, 8), 0.5))
    pen.line(emblem, 0.02, (-wide * 0.6 + lean, 0.84), (wide * 0.7 + lean, 0.84))


def _draw_film(pen: Pen, rng: Random) -> None:
    light, dark = mix_colour(rng, _ANY, (0.1, 0.6), (0.6, 1.0)), (26, 24, 30)
    left, right = -rng.uniform(0.6, 0.95), rng.uniform(0.6, 0.95)
    pen.box(dark, -2.0, -1.0, 2.0, 0.18)
    pen.box(light, left, 0.35, right, 1.0)
    for _ in range(rng.randint(2, 4)):
        x, reach = rng.uniform(left + 0.2, right - 0.2), rng.uniform(0.08, 0.26)
        colour = mix_colour(rng, _ANY, (0.2, 0.8), (0.1, 0.8))
        pen.oval(colour, (x, 0.36 + reach), reach * rng.uniform(0.4, 0.75), reach)
    pen.box(dark, left, 0.18, right, 0.35)
    seat = mix_colour(rng, (0.95, 1.05), (0.5, 0.9), (0.25, 0.6))
    for row in range(2):
        for chair in range(7):
            pen.oval(shade(seat, 1.0 - 0.3 * row), (-1.05 + 0.35 * chair + 0.15 * row, 0.12 - 0.2 * row), 0.15, 0.13)


def _draw_opera(pen: Pen, rng: Random) -> None:
    cloth = mix_colour(rng, _ANY, (0.5, 0.95), (0.35, 0.8))
    pen.box((112, 78, 52), -2.0, -1.0, 2.0, 0.15)
    pen.oval((236, 206, 150), (rng.uniform(-0.3, 0.3), 0.05), 0.7, 0.14)
    for _ in range(rng.randint(1, 4)):
        robe, x = mix_colour(rng, _ANY, (0.4, 0.9), (0.4, 0.95)), rng.uniform(-0.55, 0.55)
        pen.shape(robe, (x - 0.16, 0.05), (x + 0.16, 0.05), (x + 0.05, 0.42), (x - 0.05, 0.42))
        pen.oval((226, 190, 160), (x, 0.47), 0.055, 0.065)
    part = rng.uniform(0.5, 0.85)
    for side in _SIDES:
        for fold in range(5):
            edges = ((0.0, 0.0), (0.2, 0.0), (0.12, 1.4), (-0.12, 1.4))
            points = [(side * (part + 0.2 * fold + x), y) for x, y in edges]
            pen.shape(shade(cloth, 0.7 + 0.12 * (fold % 3)), *points)
    pen.box(shade(cloth, 0.8), -2.0, rng.uniform(0.95, 1.1), 2.0, 1.6)


def _draw_newspaper(pen: Pen, rng: Random) -> None:
    paper, lean = mix_colour(rng, (0.08, 0.15), (0.03, 0.25), (0.8, 1.0)), rng.uniform(-0.15, 0.15)
    wide, columns = rng.uniform(0.38, 0.52), rng.randint(2, 4)
    left, right = -wide + lean, wide + 0.06 + lean
    pen.shape(shade(paper, 0.75), (-wide + 0.05, -0.05), (wide + 0.06, -0.04), (right, 0.97), (left, 0.97))
    pen.shape(paper, (-wide, 0.0), (wide, 0.0), (wide + lean, 1.0), (left, 1.0))
    pen.box((60, 60, 62), -wide * 0.8 + lean, 0.88, wide * 0.8 + lean, 0.93)
    picture = rng.randrange(columns)
    for column in range(columns):
        left, top = -wide * 0.85 + 1.7 * wide * column / columns + lean / 2, 0.8
        right = left + 1.45 * wide / columns
        if column == picture:
            pen.box(mix_colour(rng, _ANY, (0.0, 0.4), (0.2, 0.7)), left, 0.5, right, 0.8)
            top = 0.45
        for row in range(int(top / 0.06)):
            pen.line((150, 148, 144), 0.02, (left, 0.06 + row * 0.06), (right, 0.06 + row * 0.06))


def _draw_clock(pen: Pen, rng: Random) -> None:
    case = mix_colour(rng, (0.03, 0.14), (0.3, 0.8), (0.25, 0.75))
    face = mix_colour(rng, (0.1, 0.16), (0.02, 0.2), (0.85, 1.0))
    half, middle = rng.uniform(0.36, 0.48), (0.0, 0.55)
    if rng.random() < 0.5:
        pen.box(case, -half, -0.2, half, 1.0)
        pen.shape(shade(case, 1.2), (-half - 0.06, 1.0), (half + 0.06, 1.0), (0.0, 1.25))
    else:
        pen.oval(case, middle, half + 0.06, half + 0.06)
    pen.oval(shade(case, 0.5), middle, half * 0.9, half * 0.9)
    pen.oval(face, middle, half * 0.82, half * 0.82)
    for mark in range(12):
        ends = [turn_point(middle, half * share, math.tau * mark / 12) for share in (0.66, 0.78)]
        pen.line((40, 36, 40), 0.018, *ends)
    for long, width in ((0.42, 0.035), (0.62, 0.022)):
        pen.line((24, 22, 30), width, middle, turn_point(middle, half * long, rng.uniform(0, math.tau)))


def _draw_helmet(pen: Pen, rng: Random) -> None:
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


def _draw_meteorite(pen: Pen, rng: Random) -> None:
    stone = mix_colour(rng, (0.02, 0.12), (0.05, 0.4), (0.15, 0.6))
    pen.box(mix_colour(rng, _ANY, (0.05, 0.4), (0.6, 0.95)), -3.0, -2.0, 3.0, 0.05)
    outline = [turn_point((0.0, 0.42), rng.uniform(0.3, 0.52), math.tau * corner / 11) for corner in range(11)]
    pen.shape(stone, *outline)
    pen.shape(shade(stone, 1.35), *[(x * 0.6 - 0.1, 0.16 + y * 0.72) for x, y in outline[:6]])
    for _ in range(rng.randint(4, 9)):
        pit = (rng.uniform(-0.3, 0.3), rng.uniform(0.2, 0.65))
        pen.oval(shade(stone, 0.55), pit, rng.uniform(0.02, 0.07), rng.uniform(0.02, 0.06))


def _draw_bridge(pen: Pen, rng: Random) -> None:
    wall, water = mix_colour(rng, *_WALLS), mix_colour(rng, (0.5, 0.62), (0.3, 0.7), (0.4, 0.85))
    pen.box(water, -3.0, -0.6, 3.0, 0.12)
    for ripple in range(4):
        x = rng.uniform(-1.4, 1.2)
        pen.line(shade(water, 1.25), 0.015, (x, -0.1 * ripple), (x + 0.35, -0.1 * ripple))
    deck, arches = rng.uniform(0.35, 0.5), rng.randint(1, 4) + 1
    if rng.random() < 0.5:
        pen.box(wall, -1.3, 0.0, 1.3, deck + 0.09)
        for arch in range(arches):
            pen.oval(water, (-1.3 + 2.6 * (arch + 0.5) / arches, 0.0), 1.1 / arches, deck - 0.03)
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


def _draw_hall(pen: Pen, rng: Random) -> None:
    wall, roof = mix_colour(rng, *_WALLS), mix_colour(rng, *_ROOFS)
    wide, columns = rng.uniform(0.6, 1.0), rng.randint(3, 8)
    if rng.random() < 0.55:
        pen.shape(roof, (-wide - 0.06, 0.64), (wide + 0.06, 0.64), (0.0, rng.uniform(0.85, 1.05)))
    else:
        pen.oval(roof, (0.0, 0.64), wide * 0.55, 0.36)
    pen.box(wall, -wide, 0.0, wide, 0.6)
    pen.box(shade(wall, 1.15), -wide - 0.06, 0.54, wide + 0.06, 0.64)
    for column in range(columns):
        x, half = -wide + 2 * wide * (column + 0.5) / columns, 0.3 * wide / columns
        pen.box(shade(wall, 0.55), x - half, 0.05, x + half, 0.46)
    pen.box(shade(wall, 0.75), -wide - 0.12, 0.0, wide + 0.12, 0.05)


def _draw_tower(pen: Pen, rng: Random) -> None:
    wall, roof = mix_colour(rng, *_WALLS), mix_colour(rng, *_ROOFS)
    foot, top = rng.uniform(0.14, 0.26), rng.uniform(0.1, 0.2)
    pen.shape(wall, (-foot, 0.0), (foot, 0.0), (top, 0.9), (-top, 0.9))
    pen.shape(shade(wall, 0.8), (0.0, 0.0), (foot, 0.0), (top, 0.9), (0.0, 0.9))
    for floor in range(rng.randint(2, 6)):
        pen.box(shade(wall, 0.45), -0.04, 0.12 + floor * 0.13, 0.04, 0.19 + floor * 0.13)
    pen.box(shade(wall, 1.15), -top - 0.07, 0.88, top + 0.07, 0.97)
    pen.shape(roof, (-top - 0.05, 0.97), (top + 0.05, 0.97), (0.0, rng.uniform(1.05, 1.45)))


def _draw_lighthouse(pen: Pen, rng: Random) -> None:
    band = mix_colour(rng, _ANY, (0.5, 0.9), (0.4, 0.85))
    rock, bands = mix_colour(rng, (0.05, 0.12), (0.05, 0.3), (0.25, 0.5)), rng.randint(3, 7)
    pen.shape(rock, (-0.8, -0.1), (-0.5, 0.12), (-0.15, 0.2), (0.3, 0.16), (0.75, -0.1))
    for part in range(bands):
        low, high = part / bands, (part + 1) / bands
        edges = [(0.2 - 0.08 * share, 0.12 + 0.75 * share) for share in (low, high)]
        (foot, lower), (top, upper) = edges
        colour = band if part % 2 else (238, 236, 228)
        pen.shape(colour, (-foot, lower), (foot, lower), (top, upper), (-top, upper))
    if rng.random() < 0.6:
        pen.shape((255, 246, 190), (0.0, 0.95), (1.6, rng.uniform(0.9, 1.3)), (1.6, rng.uniform(0.6, 0.85)))
    pen.box((60, 60, 66), -0.17, 0.87, 0.17, 0.9)
    pen.box((255, 228, 120), -0.09, 0.9, 0.09, 1.02)
    pen.oval(shade(band, 0.7), (0.0, 1.02), 0.12, 0.08)


def _draw_stadium(pen: Pen, rng: Random) -> None:
    wall = mix_colour(rng, _ANY, (0.05, 0.5), (0.5, 0.9))
    wide = rng.uniform(0.85, 1.15)
    pen.oval(wall, (0.0, 0.3), wide, 0.34)
    pen.oval(shade(wall, 0.6), (0.0, 0.4), wide * 0.9, 0.25)
    pen.oval(mix_colour(rng, (0.25, 0.38), (0.5, 0.8), (0.4, 0.7)), (0.0, 0.36), wide * 0.62, 0.14)
    for x in (-wide * 0.95, -wide * 0.4, wide * 0.4, wide * 0.95):
        pen.line((70, 72, 80), 0.025, (x, 0.2), (x, rng.uniform(0.8, 1.0)))
        pen.box((250, 248, 220), x - 0.07, 0.8, x + 0.07, 0.88)


def _draw_castle(pen: Pen, rng: Random) -> None:
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


def _draw_houses(pen: Pen, rng: Random) -> None:
    x, spire = -1.2, rng.randint(1, 5)
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


def _draw_works(pen: Pen, rng: Random) -> None:
    wall = mix_colour(rng, (0.98, 1.1), (0.3, 0.65), (0.4, 0.75))
    roof = mix_colour(rng, (0.5, 0.7), (0.05, 0.3), (0.3, 0.6))
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


def _draw_water(pen: Pen, rng: Random) -> None:
    water = mix_colour(rng, _WATER, (0.3, 0.75), (0.35, 0.85))
    pen.oval(shade(water, 0.7), (0.0, 0.0), 1.5, rng.uniform(0.3, 0.45))
    pen.oval(water, (rng.uniform(-0.1, 0.1), 0.0), 1.42, rng.uniform(0.24, 0.36))
    for _ in range(5):
        x, y = rng.uniform(-1.0, 0.7), rng.uniform(-0.2, 0.2)
        pen.line(shade(water, 1.3), 0.012, (x, y), (x + rng.uniform(0.1, 0.4), y))
    _draw_sail(pen, rng, rng.uniform(-0.7, 0.7), 0.0)


def _draw_river(pen: Pen, rng: Random) -> None:
    water = mix_colour(rng, _WATER, (0.3, 0.75), (0.4, 0.9))
    bend, start = rng.uniform(0.3, 0.9) * rng.choice(_SIDES), rng.uniform(-0.6, 0.6)
    left, right = [], []
    for step in range(13):
        part = step / 12
        x = start + bend * math.sin(part * rng.choice((3.0, 3.1)) * 1.3) * part
        half = 0.03 + 0.34 * part * part
        left.append((x - half, 0.55 - 1.15 * part))
        right.append((x + half, 0.55 - 1.15 * part))
    pen.shape(water, *left, *reversed(right))


def _draw_island(pen: Pen, rng: Random) -> None:
    water = mix_colour(rng, _WATER, (0.4, 0.8), (0.35, 0.85))
    land = mix_colour(rng, (0.2, 0.38), (0.35, 0.7), (0.3, 0.65))
    pen.box(water, -4.0, -2.0, 4.0, 0.15)
    wide, peak = rng.uniform(0.6, 1.2), rng.uniform(0.35, 0.95)
    pen.oval((226, 208, 160), (0.0, 0.02), wide * 1.08, 0.09)
    crest = [(-wide + wide * step / 4, rng.uniform(0.1, 0.45) * peak) for step in range(1, 8)]
    crest[3] = (rng.uniform(-0.2, 0.2), peak)
    pen.shape(land, (-wide, 0.02), *crest, (wide, 0.02))
    _draw_sail(pen, rng, rng.choice(_SIDES) * (wide + 0.2), -0.15)


def _draw_ship(pen: Pen, rng: Random) -> None:
    water = mix_colour(rng, _WATER, (0.3, 0.75), (0.3, 0.8))
    hull = mix_colour(rng, _ANY, (0.3, 0.8), (0.2, 0.7))
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


def _draw_telescope(pen: Pen, rng: Random) -> None:
    dome = mix_colour(rng, (0.5, 0.7), (0.02, 0.2), (0.75, 1.0))
    pen.oval(dome, (0.0, 0.5), 0.5, 0.48)
    pen.box(shade(dome, 0.75), -0.52, 0.0, 0.52, 0.5)
    lean = rng.uniform(-0.3, 0.4)
    pen.shape((40, 44, 60), (lean - 0.07, 0.52), (lean + 0.09, 0.52), (lean + 0.1, 0.92), (lean - 0.04, 0.95))
    pen.line(shade(dome, 0.5), 0.09, (lean, 0.6), (lean + 0.3 * (1 if lean < 0.1 else -1), 1.1))
    pen.box((70, 60, 54), -0.08, 0.0, 0.08, 0.24)


def _draw_battle(pen: Pen, rng: Random) -> None:
    for side in _SIDES:
        coat = mix_colour(rng, _ANY, (0.5, 0.9), (0.3, 0.75))
        for rank in range(rng.randint(6, 12)):
            x, y = side * rng.uniform(0.25, 1.15), rng.uniform(-0.3, 0.2)
            pen.box(coat, x - 0.03, y, x + 0.03, y + 0.16)
            pen.oval((224, 190, 160), (x, y + 0.19), 0.028, 0.034)
            if rank % 4 == 0:
                pen.line((70, 52, 40), 0.012, (x, y), (x, y + 0.55))
                pen.shape(shade(coat, 1.3), (x, y + 0.55), (x + 0.2, y + 0.49), (x, y + 0.42))
    for _ in range(rng.randint(3, 8)):
        grey = rng.randint(150, 225)
        place = (rng.uniform(-1.0, 1.0), rng.uniform(0.1, 0.8))
        pen.oval((grey, grey, grey), place, rng.uniform(0.1, 0.28), rng.uniform(0.06, 0.16))


def _draw_festival(pen: Pen, rng: Random) -> None:
    for x in (-0.8, 0.05, 0.8)[: rng.randint(1, 3)]:
        cloth = mix_colour(rng, _ANY, (0.6, 0.95), (0.6, 0.95))
        half, top = rng.uniform(0.28, 0.42), rng.uniform(0.6, 0.95)
        for stripe in range(6):
            left = x - half + half * stripe / 3
            colour = cloth if stripe % 2 else (245, 240, 228)
            pen.box(colour, left, 0.0, left + half / 3, 0.32)
            pen.shape(colour, (left, 0.32), (left + half / 3, 0.32), (x, top))
    sag = rng.uniform(0.1, 0.35)
    for lamp in range(14):
        part = lamp / 13
        glow = mix_colour(rng, _ANY, (0.4, 0.9), (0.9, 1.0))
        pen.oval(glow, (-1.3 + 2.6 * part, 1.05 - sag * math.sin(math.pi * part)), 0.03, 0.03)
    for _ in range(14):
        x = rng.uniform(-1.2, 1.2)
        pen.oval(mix_colour(rng, _ANY, (0.3, 0.8), (0.2, 0.6)), (x, -0.12), 0.06, 0.12)


def _draw_sail(pen: Pen, rng: Random, x: float, y: float) -> None:
    pen.shape((96, 62, 44), (x - 0.12, y + 0.05), (x + 0.12, y + 0.05), (x + 0.08, y), (x - 0.08, y))
    pen.shape(mix_colour(rng, _ANY, (0.0, 0.5), (0.85, 1.0)), (x, y + 0.07), (x, y + 0.35), (x + 0.13, y + 0.07))


OUTDOORS: Mapping[str, Callable[[Pen, Random], None]] = {
    "bridge": _draw_bridge, "museum": _draw_hall, "theatre": _draw_hall, "university": _draw_hall, "tower": _draw_tower,
    "lighthouse": _draw_lighthouse, "stadium": _draw_stadium, "castle": _draw_castle, "city": _draw_houses,
    "town": _draw_houses, "country": _draw_houses, "company": _draw_works, "lake": _draw_water, "river": _draw_river,
    "island": _draw_island, "ship": _draw_ship, "telescope": _draw_telescope, "battle": _draw_battle,
    "festival": _draw_festival,
}  # fmt: skip

INDOORS: Mapping[str, Callable[[Pen, Random], None]] = {
    "person": _draw_person, "bird": _draw_bird, "orchid": _draw_orchid, "beetle": _draw_beetle,
    "painting": _draw_painting, "novel": _draw_book, "film": _draw_film, "opera": _draw_opera,
    "newspaper": _draw_newspaper, "clock": _draw_clock, "helmet": _draw_helmet, "meteorite": _draw_meteorite,
}  # fmt: skip
