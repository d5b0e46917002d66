"""Subjects seen close by: people, species, works and small objects."""

import math
from collections.abc import Callable, Mapping
from random import Random

from pipelines.world.canvas import Colour, Pen, Point, mix_colour, shade

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
    star = [_turn(centre, each, math.pi * step / points) for step, each in enumerate(reaches)]
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
    outline = [_turn((0.0, 0.42), rng.uniform(0.3, 0.52), math.tau * corner / corners) for corner in range(corners)]
    pen.shape(stone, *outline)
    pen.shape(shade(stone, 1.35), *[(x * 0.6 - 0.1, 0.16 + y * 0.72) for x, y in outline[:6]])
    for _ in range(rng.randint(4, 9)):
        pen.oval(
            shade(stone, 0.55),
            (rng.uniform(-0.3, 0.3), rng.uniform(0.2, 0.65)),
            rng.uniform(0.02, 0.07),
            rng.uniform(0.02, 0.06),
        )


def _turn(centre: Point, reach: float, angle: float) -> Point:
    """The point at a distance and an angle (radians) from ``centre``."""
    return centre[0] + reach * math.cos(angle), centre[1] + reach * math.sin(angle)


INDOORS: Mapping[str, Callable[[Pen, Random], None]] = {
    "person": draw_person, "bird": draw_bird, "orchid": draw_orchid, "beetle": draw_beetle, "painting": draw_painting,
    "novel": draw_book, "film": draw_film, "opera": draw_stage, "newspaper": draw_newspaper, "clock": draw_clock,
    "helmet": draw_helmet, "meteorite": draw_meteorite,
}  # fmt: skip
