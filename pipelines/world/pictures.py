"""Lead pictures: which entity has one, under which name and licence, and its bytes."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from PIL import Image, ImageDraw

from pipelines.world import vocabulary as words
from pipelines.world.canvas import Pen, mix_colour, paint_backdrop, paint_landscape, plant_trees
from pipelines.world.knowledge import Entity
from pipelines.world.names import fold_accents
from pipelines.world.portraits import INDOORS
from pipelines.world.scenery import OUTDOORS

MIN_SIDE = 512
NO_PICTURE_SHARE = 0.1
SMALL_SHARE = 0.04
UNFREE_SHARE = 0.05
PALETTE_SHARE = 0.02
_UPRIGHT = ("person", "orchid", "beetle", "painting", "novel", "newspaper", "clock", "helmet")
_AFLOAT = ("ship", "island", "bridge", "lake")
_VIEWS = ("", " 2019", " (cropped)", " 02", " detail")
_OUTDOOR_VIEWS = (*_VIEWS, " from the north", " in spring", ", seen from the west")
_STAGED = ("film", "opera")
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


@dataclass(frozen=True, slots=True)
class Picture:
    """A planned lead picture.

    Attributes:
        file: name with spaces, as an infobox has it; on disk and in tables spaces are underscores.
        size: width and height in pixels.
        free: whether the licence allows reuse and change.
    """

    entity: int
    file: str
    size: tuple[int, int]
    author: str
    licence: str
    licence_url: str
    free: bool

    @property
    def stored_name(self) -> str:
        """File name with underscores."""
        return self.file.replace(" ", "_")

    @property
    def source_url(self) -> str:
        """Where the file page would be: Commons if free, else the local wiki."""
        host = "commons.wikimedia.org" if self.licence in LICENCES else "en.wikipedia.org"
        return f"https://{host}/wiki/File:{self.stored_name}"


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """The bytes of a picture and their SHA-256 in hexadecimal."""

    data: bytes
    sha256: str


def plan_pictures(entities: Sequence[Entity], seed: int) -> dict[int, Picture]:
    """Decide names, sizes and licences, by entity number; abstract things have no picture."""
    pictures: dict[int, Picture] = {}
    used: set[str] = set()
    for entity in entities:
        rng = Random(f"{seed}:picture-plan:{entity.number}")
        if entity.subtype.kind == "concept" or rng.random() < NO_PICTURE_SHARE:
            continue
        stem = entity.title if rng.random() < 0.3 else fold_accents(entity.title)
        suffix = ".png" if rng.random() < PALETTE_SHARE else ".jpg"
        view = rng.choice(_OUTDOOR_VIEWS if entity.subtype.name in OUTDOORS else _VIEWS)
        file = "".join(letter for letter in stem if letter not in '/:|#<>[]{}"?*\\') + view + suffix
        file = file[0].upper() + file[1:]
        if file.casefold() in used:
            file = f"{file[:-4]} {entity.number}{suffix}"
        used.add(file.casefold())
        free = rng.random() >= UNFREE_SHARE
        licence, address = rng.choice(tuple((LICENCES if free else UNFREE_LICENCES).items()))
        author = rng.choice(words.PHOTOGRAPHERS)
        pictures[entity.number] = Picture(entity.number, file, _draw_size(entity, rng), author, licence, address, free)
    return pictures


def draw_picture(entity: Entity, picture: Picture, seed: int) -> DrawnPicture:
    """Draw and encode: JPEG, or a palette PNG where the name ends in ``.png``. Nothing in it can be read."""
    rng = Random(f"{seed}:picture:{entity.number}")
    paint = _paint_outdoors if entity.subtype.name in OUTDOORS else _paint_indoors
    scene = _soften(paint(entity, picture.size, rng))
    buffer = io.BytesIO()
    if picture.file.endswith(".png"):
        scene.quantize(64, method=Image.Quantize.FASTOCTREE).save(buffer, "PNG", compress_level=6)
    else:
        scene.save(buffer, "JPEG", quality=82)
    data = buffer.getvalue()
    return DrawnPicture(data, hashlib.sha256(data).hexdigest())


def _draw_size(entity: Entity, rng: Random) -> tuple[int, int]:
    upright = entity.subtype.name in _UPRIGHT or entity.subtype.kind in _UPRIGHT
    if rng.random() < SMALL_SHARE:
        return (320, 400) if upright else (400, 320)
    long = rng.choice((640, 660, 680))
    return (MIN_SIDE, long) if upright else (long, MIN_SIDE)


def _soften(scene: Image.Image) -> Image.Image:
    """Average each pixel with its lower right neighbour: smooths jagged edges in a tenth of a filter's time."""
    pixels = np.array(scene)
    pixels >>= 1
    pixels[:-1, :-1] += pixels[1:, 1:]
    pixels[-1, :] <<= 1
    pixels[:-1, -1] <<= 1
    return Image.fromarray(pixels)


def _paint_outdoors(entity: Entity, size: tuple[int, int], rng: Random) -> Image.Image:
    picture, draw, ground, _ = paint_landscape(size, rng)
    scale = size[1] * rng.uniform(0.3, 0.52)
    foot = (size[0] * rng.uniform(0.28, 0.72), ground + (size[1] - ground) * rng.uniform(0.05, 0.55))
    OUTDOORS[entity.subtype.name](Pen(draw, foot, scale, rng.choice((1, -1))), rng)
    if entity.subtype.name not in _AFLOAT:
        plant_trees(draw, size, rng, max(ground, foot[1]))
    return picture


def _paint_indoors(entity: Entity, size: tuple[int, int], rng: Random) -> Image.Image:
    top = mix_colour(rng, (0.0, 1.0), (0.1, 0.6), (0.2, 0.95))
    bottom = mix_colour(rng, (0.0, 1.0), (0.1, 0.6), (0.2, 0.95))
    picture = paint_backdrop(size, rng, top, bottom, 0.5)
    scale = min(size) * rng.uniform(0.55, 0.82)
    foot = (size[0] * rng.uniform(0.36, 0.64), size[1] * rng.uniform(0.72, 0.9))
    if entity.subtype.name in _STAGED:
        scale, foot = size[1] * rng.uniform(0.68, 0.8), (size[0] * rng.uniform(0.46, 0.54), foot[1])
    name = entity.subtype.kind if entity.subtype.kind == "person" else entity.subtype.name
    INDOORS[name](Pen(ImageDraw.Draw(picture), foot, scale, rng.choice((1, -1))), rng)
    return picture
