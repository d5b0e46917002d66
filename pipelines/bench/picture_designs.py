"""Simple pictures for plants: designs beside those of the toy world, and half of them held out.

Those of the world (:mod:`pipelines.world.emblems`) are open to whoever writes the checks; the held-out half has flags
with a canton or a triangle, seals without rings, maps of one country, tables and dark posters.
"""

import math
from collections.abc import Callable, Mapping
from random import Random

from PIL import Image, ImageDraw

from pipelines.bench.vocabulary import Vocabulary, invent_word
from pipelines.textlayer import WrittenText
from pipelines.world.canvas import Colour, Point
from pipelines.world.emblems import draw_card, draw_emblem, draw_flag, draw_map
from pipelines.world.signs import load_font

Drawn = tuple[Image.Image, tuple[WrittenText, ...]]
Design = Callable[[tuple[int, int], Vocabulary, Random], Drawn]
_INKS: tuple[Colour, ...] = ((150, 20, 60), (10, 80, 150), (230, 170, 30), (0, 110, 90), (50, 40, 60), (190, 80, 20))
_WHITE = (255, 255, 255)


def draw_design(words: Vocabulary, size: tuple[int, int], rng: Random) -> tuple[str, Image.Image, list[WrittenText]]:
    """Return the name of a design of this half, its picture and what is written on it."""
    name, design = rng.choice(tuple(DESIGNS["held-out" if words.half == "held-out" else "open"].items()))
    picture, written = design(size, words, rng)
    return name, picture, list(written)


def _draw_arms(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A shield, quartered or parted."""
    picture, shield = _lay_shield(size, rng)
    left, top, right, bottom = shield.getbbox() or (0, 0, 1, 1)
    field, other = rng.sample(_INKS, 2)
    fill = Image.new("RGB", size, field)
    middle, waist = (left + right) / 2, (top + bottom) / 2
    pen = ImageDraw.Draw(fill)
    if rng.random() < 0.5:
        pen.rectangle((left, top, middle, waist), fill=other)
        pen.rectangle((middle, waist, right, bottom), fill=other)
    else:
        pen.rectangle((left, top, middle, bottom), fill=other)
    picture.paste(fill, mask=shield)
    return picture, ()


def _draw_charged_arms(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A shield with a chevron and discs."""
    picture, shield = _lay_shield(size, rng)
    left, top, right, bottom = shield.getbbox() or (0, 0, 1, 1)
    field, other = rng.sample(_INKS, 2)
    fill = Image.new("RGB", size, field)
    pen, wide, high = ImageDraw.Draw(fill), right - left, bottom - top
    pen.line(
        [(left, top + high * 0.75), (left + wide / 2, top + high * 0.4), (right, top + high * 0.75)],
        fill=other, width=round(wide * 0.13), joint="curve",
    )  # fmt: skip
    for x, y in ((0.25, 0.25), (0.75, 0.25), (0.5, 0.78)):
        _fill_disc(pen, (left + wide * x, top + high * y), wide * 0.08, _WHITE)
    picture.paste(fill, mask=shield)
    return picture, ()


def _lay_shield(size: tuple[int, int], rng: Random) -> tuple[Image.Image, Image.Image]:
    """Return white ground with the outline of a shield, and the shield as a mask."""
    picture, mask = Image.new("RGB", size, _WHITE), Image.new("1", size)
    high = min(size) * rng.uniform(0.6, 0.85)
    wide, (x, y) = high * 0.8, (size[0] / 2, size[1] / 2)
    left, top, right = x - wide / 2, y - high / 2, x + wide / 2
    curve = [(x + wide / 2 * math.cos(turn), y + high * 0.1 + high * 0.4 * math.sin(turn))
             for turn in (math.pi * step / 20 for step in range(21))]  # fmt: skip
    outline = [(left, top), (right, top), *curve]
    ImageDraw.Draw(mask).polygon(outline, fill=1)
    draw = ImageDraw.Draw(picture)
    draw.line([*outline, outline[0]], fill=(20, 20, 20), width=6, joint="curve")
    return picture, mask


def _draw_canton_flag(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A flag with a canton of dots, or a triangle at the hoist."""
    width, height = size
    colours = rng.sample((*_INKS, _WHITE), 4)
    picture = Image.new("RGB", size, colours[0])
    draw, count = ImageDraw.Draw(picture), rng.randint(2, 9)
    for stripe in range(1, count, 2):
        draw.rectangle((0, height * stripe / count, width, height * (stripe + 1) / count), fill=colours[1])
    if rng.random() < 0.5:
        draw.polygon([(0, 0), (width * rng.uniform(0.3, 0.5), height / 2), (0, height)], fill=colours[2])
        return picture, ()
    draw.rectangle((0, 0, width * 0.42, height * 0.52), fill=colours[2])
    for row in range(3):
        for column in range(4):
            _fill_disc(draw, (width * (0.07 + 0.09 * column), height * (0.1 + 0.16 * row)), height * 0.03, colours[3])
    return picture, ()


def _draw_word_mark(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A logo: one invented word beside some bars."""
    ground, ink = rng.choice(((_WHITE, rng.choice(_INKS)), (rng.choice(_INKS), _WHITE)))
    picture = Image.new("RGB", size, ground)
    draw, unit = ImageDraw.Draw(picture), min(size) * 0.05
    top, left = size[1] * 0.42, size[0] * 0.12
    for bar in range(rng.randint(2, 4)):
        draw.rectangle((left + bar * unit, top + bar * unit / 2, left + (bar + 0.7) * unit, top + unit * 3), fill=ink)
    word, place = invent_word(words, rng).encode("ascii", "ignore").decode(), (left + unit * 5, top + unit * 0.6)
    font = load_font(round(unit * 2))
    draw.text(place, word, fill=ink, font=font)
    return picture, (WrittenText(word, draw.textbbox(place, word, font=font)),)


def _draw_seal(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A logo: petals round a middle, on paper."""
    picture = Image.new("RGB", size, rng.choice((_WHITE, (245, 242, 230))))
    draw, centre, ink = ImageDraw.Draw(picture), (size[0] / 2, size[1] / 2), rng.choice(_INKS)
    reach, count = min(size) * rng.uniform(0.2, 0.3), rng.randint(5, 9)
    for petal in range(count):
        turn = math.tau * petal / count
        place = (centre[0] + reach * math.cos(turn), centre[1] + reach * math.sin(turn))
        _fill_disc(draw, place, reach * 0.36, ink)
    _fill_disc(draw, centre, reach * 0.5, rng.choice(_INKS))
    return picture, ()


def _draw_country(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A map: one country dark among pale neighbours, on a white sea."""
    picture = Image.new("RGB", size, rng.choice((_WHITE, (224, 236, 246))))
    draw, columns, rows = ImageDraw.Draw(picture), rng.randint(4, 6), rng.randint(3, 5)
    wide, high, chosen = size[0] / columns, size[1] / rows, rng.randrange(columns * rows)
    corners = [
        [
            ((column + rng.uniform(-0.3, 0.3)) * wide, (row + rng.uniform(-0.3, 0.3)) * high)
            for column in range(columns + 1)
        ]
        for row in range(rows + 1)
    ]
    for place in range(columns * rows):
        row, column = divmod(place, columns)
        edge = [corners[row][column], corners[row][column + 1], corners[row + 1][column + 1], corners[row + 1][column]]
        fill = (40, 110, 60) if place == chosen else (222, 222, 216)
        if place == chosen or rng.random() < 0.75:
            draw.polygon(edge, fill=fill, outline=_WHITE, width=3)
    return picture, ()


def _draw_table(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A card: a table of words and numbers."""
    picture = Image.new("RGB", size, _WHITE)
    draw, letters, found = ImageDraw.Draw(picture), rng.randint(22, 28), list[WrittenText]()
    font, step = load_font(letters), letters * 1.5
    for row in range(int((size[1] - 20) / step)):
        draw.line([(16, 14 + row * step), (size[0] - 16, 14 + row * step)], fill=(120, 120, 120), width=2)
        for column in range(3):
            word = rng.choice(words.adjectives).lower() if column == 0 else str(rng.randint(10_000, 9_999_999))
            place = (24 + column * size[0] * 0.32, 18 + row * step)
            draw.text(place, word, fill=(20, 20, 20), font=font)
            found.append(WrittenText(word, draw.textbbox(place, word, font=font)))
    return picture, tuple(found)


def _draw_poster(size: tuple[int, int], words: Vocabulary, rng: Random) -> Drawn:
    """A card: a few large lines, pale on dark."""
    picture = Image.new("RGB", size, rng.choice(_INKS))
    draw, found, letters = ImageDraw.Draw(picture), list[WrittenText](), round(min(size) * 0.12)
    font = load_font(letters)
    for row in range(int(size[1] / (letters * 1.25)) - 1):
        line = f"{rng.choice(words.adjectives)} {rng.choice(words.adjectives)}".lower()[
            : round(size[0] / letters * 1.7)
        ]
        place = (size[0] * 0.06, letters * (0.4 + 1.25 * row))
        draw.text(place, line, fill=(250, 246, 230), font=font)
        found.append(WrittenText(line, draw.textbbox(place, line, font=font)))
    return picture, tuple(found)


def _fill_disc(draw: ImageDraw.ImageDraw, centre: Point, reach: float, colour: Colour) -> None:
    x, y = centre
    draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=colour)


DESIGNS: Mapping[str, Mapping[str, Design]] = {
    "open": {
        "flag": lambda size, words, rng: draw_flag(size, rng),
        "logo": lambda size, words, rng: draw_emblem(size, rng),
        "map": lambda size, words, rng: draw_map(size, rng),
        "card": lambda size, words, rng: draw_card(size, rng),
        "arms": _draw_arms,
    },
    "held-out": {
        "flag": _draw_canton_flag,
        "logo": _draw_word_mark,
        "seal": _draw_seal,
        "map": _draw_country,
        "table": _draw_table,
        "poster": _draw_poster,
        "arms": _draw_charged_arms,
    },
}
"""Designs by half of the vocabulary; a file of somebody else's gets the open ones."""
