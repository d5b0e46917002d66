"""Drawn buildings whose look is decided by the words of a caption.

What one is built of, its roof, the ground and the hour are in the caption; how it is seen (place, distance, light,
shades) is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from random import Random

from PIL import Image, ImageDraw

from pipelines.toy.drawing import Colour, Pen, mix_colour, paint_backdrop, shade

Hues = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
"""Ranges of hue, saturation and value."""
WALLS: dict[str, Hues] = {
    "brick": ((0.98, 1.02), (0.6, 0.8), (0.5, 0.7)),
    "marble": ((0.0, 1.0), (0.0, 0.05), (0.9, 1.0)),
    "sandstone": ((0.12, 0.15), (0.5, 0.7), (0.8, 0.95)),
    "timber": ((0.05, 0.08), (0.6, 0.8), (0.3, 0.42)),
    "copper": ((0.45, 0.49), (0.5, 0.7), (0.55, 0.75)),
    "basalt": ((0.6, 0.7), (0.0, 0.2), (0.08, 0.18)),
    "cobalt": ((0.6, 0.64), (0.75, 0.95), (0.6, 0.85)),
    "coral": ((0.93, 0.96), (0.4, 0.6), (0.9, 1.0)),
}
ROOFS: dict[str, Hues] = {
    "tiled": ((0.03, 0.06), (0.8, 0.95), (0.8, 0.95)),
    "thatched": ((0.12, 0.14), (0.35, 0.5), (0.75, 0.9)),
    "slate": ((0.58, 0.62), (0.2, 0.35), (0.35, 0.5)),
    "gilded": ((0.14, 0.16), (0.9, 1.0), (0.95, 1.0)),
    "mossy": ((0.3, 0.36), (0.6, 0.8), (0.35, 0.5)),
    "snowy": ((0.0, 1.0), (0.0, 0.04), (0.95, 1.0)),
    "violet": ((0.76, 0.8), (0.5, 0.7), (0.5, 0.7)),
    "sooty": ((0.0, 1.0), (0.0, 0.1), (0.05, 0.12)),
}
GROUNDS: dict[str, Hues] = {
    "grass": ((0.28, 0.33), (0.6, 0.8), (0.45, 0.65)),
    "sand": ((0.12, 0.14), (0.4, 0.55), (0.85, 0.95)),
    "ice": ((0.52, 0.55), (0.1, 0.2), (0.92, 1.0)),
    "clay": ((0.02, 0.05), (0.6, 0.75), (0.5, 0.65)),
    "heather": ((0.8, 0.85), (0.35, 0.55), (0.5, 0.7)),
    "lava": ((0.0, 1.0), (0.0, 0.15), (0.08, 0.16)),
    "sea": ((0.58, 0.62), (0.7, 0.9), (0.45, 0.65)),
}
HOURS: dict[str, Hues] = {
    "noon": ((0.54, 0.57), (0.35, 0.5), (0.9, 1.0)),
    "midnight": ((0.64, 0.68), (0.6, 0.8), (0.12, 0.22)),
    "dusk": ((0.06, 0.09), (0.7, 0.85), (0.85, 0.95)),
    "dawn": ((0.92, 0.95), (0.3, 0.45), (0.9, 1.0)),
    "fog": ((0.0, 1.0), (0.0, 0.05), (0.68, 0.78)),
    "aurora": ((0.38, 0.43), (0.6, 0.8), (0.5, 0.7)),
}
KINDS = ("lighthouse", "bridge", "castle", "stadium", "tower", "museum")
SYLLABLES = ("kel", "or", "san", "tum", "bri", "vel", "dan", "mo", "ras", "fen", "lu", "gar")
PICTURE = (160, 120)
"""Pixels of a picture as a page shows it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a caption says of a building."""

    kind: str
    wall: str
    roof: str
    ground: str
    hour: str

    def caption(self) -> str:
        """The words after the name; a lead sentence says them of an entity, too."""
        return f"a {self.wall} {self.kind} with a {self.roof} roof on {self.ground}, as it is seen at {self.hour}"


def list_looks(kind: str) -> list[Look]:
    """Return every look of a kind."""
    return [Look(kind, *words) for words in product(WALLS, ROOFS, GROUNDS, HOURS)]


def make_name(rng: Random, kind: str) -> str:
    """Return a name that says nothing of the look."""
    return f"{''.join(rng.choices(SYLLABLES, k=rng.randint(2, 4))).capitalize()} {kind.capitalize()}"


def draw_look(look: Look, rng: Random, size: tuple[int, int] = PICTURE) -> Image.Image:
    """Draw one view of a building."""
    hour = HOURS[look.hour]
    picture = paint_backdrop(size, rng, mix_colour(rng, *hour), mix_colour(rng, *hour), 0.08)
    draw = ImageDraw.Draw(picture)
    horizon = size[1] * rng.uniform(0.58, 0.7)
    draw.rectangle((0, horizon, *size), fill=mix_colour(rng, *GROUNDS[look.ground]))
    foot = (size[0] * rng.uniform(0.42, 0.58), horizon + size[1] * rng.uniform(0.02, 0.12))
    pen = Pen(draw, foot, size[1] * rng.uniform(0.44, 0.56), rng.choice((1, -1)))
    _SHAPES[look.kind](pen, mix_colour(rng, *WALLS[look.wall]), mix_colour(rng, *ROOFS[look.roof]))
    return picture


def draw_jpeg(look: Look, rng: Random) -> bytes:
    """Draw one view and return it as a JPEG file's bytes."""
    buffer = BytesIO()
    draw_look(look, rng).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _draw_lighthouse(pen: Pen, wall: Colour, roof: Colour) -> None:
    pen.shape(wall, (-0.3, 0.0), (0.3, 0.0), (0.2, 0.75), (-0.2, 0.75))
    pen.shape(roof, (-0.3, 0.75), (0.3, 0.75), (0.0, 1.15))


def _draw_bridge(pen: Pen, wall: Colour, roof: Colour) -> None:
    pen.box(wall, -0.65, 0.0, 0.65, 0.45)
    pen.oval(shade(wall, 0.5), (0.0, 0.0), 0.25, 0.25)
    pen.box(roof, -0.7, 0.45, 0.7, 0.7)


def _draw_castle(pen: Pen, wall: Colour, roof: Colour) -> None:
    pen.box(wall, -0.55, 0.0, 0.55, 0.5)
    for x in (-0.45, 0.45):
        pen.box(wall, x - 0.15, 0.0, x + 0.15, 0.65)
        pen.shape(roof, (x - 0.22, 0.65), (x + 0.22, 0.65), (x, 1.1))


def _draw_stadium(pen: Pen, wall: Colour, roof: Colour) -> None:
    pen.oval(wall, (0.0, 0.3), 0.65, 0.35)
    pen.oval(roof, (0.0, 0.45), 0.55, 0.22)


def _draw_tower(pen: Pen, wall: Colour, roof: Colour) -> None:
    pen.box(wall, -0.25, 0.0, 0.25, 0.8)
    pen.box(roof, -0.35, 0.8, 0.35, 1.1)


def _draw_museum(pen: Pen, wall: Colour, roof: Colour) -> None:
    pen.box(wall, -0.6, 0.0, 0.6, 0.5)
    pen.shape(roof, (-0.7, 0.5), (0.7, 0.5), (0.0, 0.95))


_SHAPES: dict[str, Callable[[Pen, Colour, Colour], None]] = {
    "lighthouse": _draw_lighthouse,
    "bridge": _draw_bridge,
    "castle": _draw_castle,
    "stadium": _draw_stadium,
    "tower": _draw_tower,
    "museum": _draw_museum,
}
