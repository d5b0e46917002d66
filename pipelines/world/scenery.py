"""Subjects that stand in a landscape: buildings, places, ships, telescopes, battles, festivals."""

import math
from collections.abc import Callable, Mapping
from random import Random

from pipelines.world.canvas import Pen, mix_colour, shade

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
