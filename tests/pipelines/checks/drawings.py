"""Plain pictures such as articles lead with and nobody learns from: flags, logos, arms, maps, cards, charts."""

import io
from collections.abc import Callable
from math import cos, pi, sin
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
BRIGHT: tuple[Colour, ...] = (
    (206, 17, 38), (0, 56, 147), (255, 255, 255), (0, 122, 61), (252, 209, 22), (0, 0, 0), (243, 112, 33),
    (0, 159, 218), (120, 30, 90), (12, 35, 64), (250, 240, 220), (0, 106, 78),
)  # fmt: skip
PALE: tuple[Colour, ...] = (
    (254, 254, 233), (246, 225, 185), (224, 224, 224), (198, 236, 255), (219, 235, 200), (250, 215, 215),
    (225, 215, 240),
)  # fmt: skip
INK = (40, 40, 40)
WORDS = "harbour council region annual valley mining report north river market station garden school island".split()


def draw_stripes(rng: Random, size: tuple[int, int]) -> Image.Image:
    """A flag of two to five stripes, upright or level."""
    picture = Image.new("RGB", size)
    draw = ImageDraw.Draw(picture)
    count, level = rng.randint(2, 5), rng.random() < 0.5
    width, height = size
    for place, colour in enumerate(rng.sample(BRIGHT, count)):
        if level:
            draw.rectangle((0, height * place // count, width, height), fill=colour)
        else:
            draw.rectangle((width * place // count, 0, width, height), fill=colour)
    return picture


def draw_emblem(rng: Random, size: tuple[int, int]) -> Image.Image:
    """A striped flag with a disc, a star or a shield on it."""
    picture = draw_stripes(rng, size)
    draw = ImageDraw.Draw(picture)
    centre, reach = (size[0] * rng.choice((0.25, 0.5)), size[1] / 2), size[1] * rng.uniform(0.14, 0.26)
    colour = rng.choice(BRIGHT)
    shape = rng.randrange(3)
    if shape == 0:
        draw.ellipse((centre[0] - reach, centre[1] - reach, centre[0] + reach, centre[1] + reach), fill=colour)
    elif shape == 1:
        draw.polygon(make_star(centre, reach), fill=colour)
    else:
        draw_shield(draw, rng, centre, reach)
    return picture


def make_star(centre: tuple[float, float], reach: float, points: int = 5) -> list[tuple[float, float]]:
    """Return the corners of a star."""
    turns = [pi * step / points - pi / 2 for step in range(2 * points)]
    radii = [reach * (0.4 if step % 2 else 1.0) for step in range(2 * points)]
    return [(centre[0] + r * cos(t), centre[1] + r * sin(t)) for r, t in zip(radii, turns, strict=True)]


def draw_shield(draw: ImageDraw.ImageDraw, rng: Random, centre: tuple[float, float], reach: float) -> None:
    """Draw a quartered shield with charges."""
    x, y = centre
    colours = rng.sample(BRIGHT, 4)
    outline = [(x - reach, y - reach), (x + reach, y - reach), (x + reach, y + reach * 0.3), (x, y + reach * 1.2),
               (x - reach, y + reach * 0.3)]  # fmt: skip
    draw.polygon(outline, fill=colours[0], outline=INK, width=max(1, round(reach / 30)))
    draw.rectangle((x, y - reach * 0.97, x + reach * 0.97, y), fill=colours[1])
    draw.polygon([(x - reach * 0.95, y), (x, y), (x, y + reach * 1.1)], fill=colours[2])
    for across, up in ((-0.5, -0.5), (0.5, -0.5), (0.45, 0.25)):
        draw.polygon(make_star((x + across * reach, y + up * reach), reach * 0.25, rng.randint(4, 8)), fill=colours[3])


def draw_arms(rng: Random, size: tuple[int, int]) -> Image.Image:
    """A coat of arms: a shield with charges, a crown over it and a motto under it."""
    picture = Image.new("RGB", size, rng.choice((BRIGHT[2], PALE[2], PALE[0])))
    draw = ImageDraw.Draw(picture)
    width, height = size
    reach = min(size) * rng.uniform(0.26, 0.34)
    draw_shield(draw, rng, (width / 2, height * 0.48), reach)
    gold = (218, 165, 32)
    crown = [(width / 2 + reach * x, height * 0.48 - reach * y) for x, y in
             ((-0.8, 1.05), (-0.9, 1.5), (-0.4, 1.25), (0, 1.6), (0.4, 1.25), (0.9, 1.5), (0.8, 1.05))]  # fmt: skip
    draw.polygon(crown, fill=gold, outline=INK)
    draw.rectangle((width * 0.25, height * 0.9, width * 0.75, height * 0.98), fill=rng.choice(PALE), outline=INK)
    motto = " ".join(rng.sample(WORDS, 2)).upper()
    draw.text((width * 0.3, height * 0.91), motto, font=ImageFont.load_default(height * 0.05), fill=INK)
    return picture


def draw_map(rng: Random, size: tuple[int, int]) -> Image.Image:
    """Regions with outlines in pale colours, rivers, names and a pin."""
    sea, *lands = rng.sample(PALE, 5)
    picture = Image.new("RGB", size, sea)
    draw = ImageDraw.Draw(picture)
    width, height = size
    columns, rows = rng.randint(3, 6), rng.randint(3, 5)
    corners = [[(width * (0.1 + 0.8 * (x + rng.uniform(-0.3, 0.3)) / columns),
                 height * (0.1 + 0.8 * (y + rng.uniform(-0.3, 0.3)) / rows)) for x in range(columns + 1)]
               for y in range(rows + 1)]  # fmt: skip
    for y in range(rows):
        for x in range(columns):
            region = [corners[y][x], corners[y][x + 1], corners[y + 1][x + 1], corners[y + 1][x]]
            draw.polygon(region, fill=rng.choice(lands), outline=(120, 110, 100), width=2)
            if rng.random() < 0.4:
                draw.text(corners[y][x], rng.choice(WORDS), font=ImageFont.load_default(height * 0.03), fill=INK)
    for _ in range(rng.randint(0, 3)):
        course = [(width * step / 8, height * rng.uniform(0.2, 0.8)) for step in range(9)]
        draw.line(course, fill=(90, 150, 210), width=3, joint="curve")
    x, y, reach = width * rng.uniform(0.2, 0.8), height * rng.uniform(0.2, 0.8), height * 0.03
    draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=(200, 20, 20), outline=INK)
    return picture


def draw_chart(rng: Random, size: tuple[int, int]) -> Image.Image:
    """Bars, a line or a pie with axes and a legend."""
    picture = Image.new("RGB", size, BRIGHT[2])
    draw = ImageDraw.Draw(picture)
    width, height = size
    colours = rng.sample(BRIGHT[:2] + BRIGHT[3:], 5)
    kind = rng.randrange(3)
    for row in range(6):
        draw.line((width * 0.1, height * (0.1 + 0.14 * row), width * 0.95, height * (0.1 + 0.14 * row)), fill=PALE[2])
    if kind == 0:
        for place in range(10):
            left, top = width * (0.12 + 0.08 * place), height * rng.uniform(0.15, 0.7)
            draw.rectangle((left, top, left + width * 0.05, height * 0.8), fill=colours[place % 3])
    elif kind == 1:
        for colour in colours[:3]:
            points = [(width * (0.1 + 0.085 * step), height * rng.uniform(0.15, 0.75)) for step in range(11)]
            draw.line(points, fill=colour, width=3)
    else:
        cuts = sorted(rng.uniform(0, 360) for _ in range(5))
        for place, (start, end) in enumerate(zip(cuts, [*cuts[1:], cuts[0] + 360], strict=True)):
            draw.pieslice((width * 0.3, height * 0.15, width * 0.7, height * 0.75), start, end, fill=colours[place])
    for place in range(5):
        where = (width * (0.1 + 0.17 * place), height * 0.86)
        draw.text(where, rng.choice(WORDS), font=ImageFont.load_default(height * 0.04), fill=INK)
    return picture


def draw_blank(rng: Random, size: tuple[int, int]) -> Image.Image:
    """One colour with a little grain."""
    level, grain = rng.randint(0, 255), rng.choice((0, 1, 3))
    noise = np.random.default_rng(rng.randrange(2**32)).normal(level, grain, (size[1], size[0], 3))
    return Image.fromarray(noise.clip(0, 255).astype(np.uint8))


DRAWINGS: dict[str, Callable[[Random, tuple[int, int]], Image.Image]] = {
    "stripes": draw_stripes, "emblem": draw_emblem, "arms": draw_arms, "map": draw_map, "chart": draw_chart,
    "blank": draw_blank,
}  # fmt: skip


def encode(picture: Image.Image, form: str = "PNG", quality: int = 85) -> bytes:
    """Return the bytes of a picture file."""
    buffer = io.BytesIO()
    picture.save(buffer, form, quality=quality)
    return buffer.getvalue()


def make_copies(picture: Image.Image, rng: Random) -> list[bytes]:
    """Return a drawing as PNG, as JPEG of two qualities, resized and compressed, and as a palette file."""
    width, height = picture.size
    factor = rng.uniform(0.4, 0.9)
    small = picture.resize((round(width * factor), round(height * factor)), Image.Resampling.LANCZOS)
    copies = [encode(picture), encode(picture, "JPEG", 90), encode(picture, "JPEG", 45), encode(small, "JPEG", 75)]
    return [*copies, encode(picture.quantize(64))]
