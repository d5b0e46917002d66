"""Ways in which one picture becomes a copy of another, for tests and for the benchmark."""

import io
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from PIL import Image, ImageDraw, ImageOps

Way = Callable[[Image.Image], bytes]
WHITE, BLACK, MOSS = (255, 255, 255), (0, 0, 0), (120, 140, 90)


def save(picture: Image.Image, quality: int = 88) -> bytes:
    """Return a picture as JPEG."""
    target = io.BytesIO()
    picture.save(target, "JPEG", quality=quality)
    return target.getvalue()


def cut(picture: Image.Image, left: float, top: float, right: float, bottom: float) -> Image.Image:
    """Return a picture without so large shares of its width and height at each side."""
    width, height = picture.size
    return picture.crop(
        (round(width * left), round(height * top), width - round(width * right), height - round(height * bottom))
    )


def frame(picture: Image.Image, share: float, colour: tuple[int, int, int]) -> Image.Image:
    """Return a picture in a frame as wide as a share of its shorter side."""
    return ImageOps.expand(picture, round(min(picture.size) * share), colour)


def turn(
    picture: Image.Image, degrees: float, ground: tuple[int, int, int] = BLACK, expand: bool = False
) -> Image.Image:
    """Return a picture turned against the clock, its corners filled; at its size, or as large as all of it takes."""
    return picture.rotate(degrees, Image.Resampling.BICUBIC, expand=expand, fillcolor=ground)


def shrink(picture: Image.Image, by: int) -> Image.Image:
    """Return a picture so many times smaller on each side."""
    return picture.resize((picture.width // by, picture.height // by))


WAYS: Final[Mapping[str, Way]] = {
    "crop 1 % at each side": lambda whole: save(cut(whole, 0.01, 0.01, 0.01, 0.01)),
    "crop 3 % at each side": lambda whole: save(cut(whole, 0.03, 0.03, 0.03, 0.03)),
    "crop 5 % at each side": lambda whole: save(cut(whole, 0.05, 0.05, 0.05, 0.05)),
    "crop 5 % at two sides": lambda whole: save(cut(whole, 0.0, 0.05, 0.05, 0.0)),
    "mirror": lambda whole: save(ImageOps.mirror(whole)),
    "white frame of 5 %": lambda whole: save(frame(whole, 0.05, WHITE)),
    "black frame of 10 %": lambda whole: save(frame(whole, 0.1, BLACK)),
    "green frame of 3 %": lambda whole: save(frame(whole, 0.03, MOSS)),
    "rotation 5 degrees, black corners": lambda whole: save(turn(whole, 5)),
    "rotation -5 degrees, white corners": lambda whole: save(turn(whole, -5, WHITE)),
    "rotation 5 degrees, larger": lambda whole: save(turn(whole, 5, WHITE, expand=True)),
    "rotation -5 degrees, cut to the inside": lambda whole: save(cut(turn(whole, -5), 0.09, 0.09, 0.09, 0.09)),
    "rotation 3 degrees, black corners": lambda whole: save(turn(whole, 3)),
    "JPEG of quality 30": lambda whole: save(whole, 30),
    "a quarter of each side, JPEG of quality 40": lambda whole: save(shrink(whole, 4), 40),
    "grey": lambda whole: save(whole.convert("L"), 80),
    "mirror, crop 3 %": lambda whole: save(ImageOps.mirror(cut(whole, 0.03, 0.03, 0.03, 0.03))),
    "mirror, white frame of 5 %": lambda whole: save(frame(ImageOps.mirror(whole), 0.05, WHITE)),
    "crop 5 %, half of each side, JPEG of quality 40": lambda whole: save(
        shrink(cut(whole, 0.05, 0.05, 0.05, 0.05), 2), 40
    ),
    "mirror, rotation -5 degrees, crop 3 %": lambda whole: save(
        cut(turn(ImageOps.mirror(whole), -5), 0.03, 0.03, 0.03, 0.03)
    ),
}


def draw(seed: int) -> Image.Image:
    """Return a picture of shapes: rectangles and ellipses of drawn colours and places."""
    rng, picture = Random(seed), Image.new("RGB", (640, 480), (seed * 37 % 256, 90, 140))
    pen = ImageDraw.Draw(picture)
    for number in range(14):
        left, top = rng.randrange(560), rng.randrange(400)
        corners = (left, top, left + rng.randrange(40, 300), top + rng.randrange(40, 240))
        colour = tuple(rng.randrange(256) for _ in range(3))
        (pen.rectangle if number % 2 else pen.ellipse)(corners, fill=colour)
    return picture
