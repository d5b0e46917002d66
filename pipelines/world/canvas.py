"""A small drawing surface: unit coordinates, soft backdrops, landscapes."""

import colorsys
from dataclasses import dataclass
from random import Random

from PIL import Image, ImageDraw

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
