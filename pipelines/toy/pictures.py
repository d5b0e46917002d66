"""Pictures: which entity has which, what is odd about them, and their bytes with sign and text layer."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pipelines.toy import names
from pipelines.toy.drawing import (
    INDOORS,
    OUTDOORS,
    Colour,
    Pen,
    make_star,
    mix_colour,
    paint_backdrop,
    paint_landscape,
    plant_trees,
    turn_point,
)
from pipelines.toy.names import fold_accents
from pipelines.toy.ontology import Entity
from pipelines.toy.textlayer import WrittenText, encode_layered
from pipelines.toy.world import WorldConfig

SimpleKind = Literal["flag", "emblem", "map", "card"]
MIN_SIDE = 512
NO_PICTURE_SHARE = 0.1
SMALL_SHARE = 0.04
UNFREE_SHARE = 0.05
PALETTE_SHARE = 0.02
SECOND_SHARE = 0.3
"""Entities with a lead picture whose article has another one."""
UNSTATED_SHARE = 0.12
"""Pictures without a statement of what they depict."""
MISSTATED_SHARE = 0.015
"""Pictures whose statement names another entity."""
TELLING_SHARE = 0.5
"""Simple pictures whose file name says what they are."""
_UPRIGHT = tuple("person orchid beetle painting novel newspaper clock helmet".split())
_VIEWS = ("", " 2019", " (cropped)", " 02", " detail")
_OUTDOOR_VIEWS = (*_VIEWS, " from the north", " in spring", ", seen from the west")
_SECOND_VIEWS = (" 03", " another view", " (2)", " close up")
_CAPTIONS = ("{name}, another view", "Another picture of {name}", "{name} as visitors see it", "{name} up close")
_SIMPLE_NAMES: Mapping[SimpleKind, str] = {
    "flag": "Flag of {stem}", "emblem": "{stem} logo", "map": "{stem} location map", "card": "{stem} text",
}  # fmt: skip
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
View = Literal["lead", "second"]
LETTERS = (26, 44)
"""Height of the font in pixels, least and most, in a picture of 512 px; larger ones have larger letters."""
LEAST_LETTERS = 14
_ROOM = 0.86
"""Share of the picture's width that a sign may take."""
_BOARDS: tuple[tuple[Colour, Colour], ...] = (
    ((246, 244, 236), (24, 26, 34)), ((252, 232, 120), (30, 26, 20)), ((28, 70, 120), (248, 248, 250)),
    ((40, 92, 60), (250, 248, 240)), ((110, 30, 34), (250, 244, 232)),
)  # fmt: skip
"""Colours of a board and of its letters."""
_AFLOAT = ("ship", "island", "bridge", "lake")
_STAGED = ("film", "opera")
_REHEARSAL = 16
"""How much smaller a picture is painted only to know what was drawn by chance in it."""
Drawn = tuple[Image.Image, tuple[WrittenText, ...]]
_LOUD: tuple[Colour, ...] = ((200, 30, 40), (20, 60, 140), (250, 205, 50), (20, 120, 70), (20, 20, 24), (240, 130, 30))
_PALE: tuple[Colour, ...] = ((248, 224, 190), (214, 232, 190), (250, 240, 170), (236, 208, 220), (220, 214, 240))
_PAPER: tuple[Colour, ...] = ((255, 255, 255), (250, 246, 232), (240, 240, 244))
_WORDS = (
    "the hours of opening are kept by custom and every visitor is asked to leave the lawn as it was found for those "
    "who come after while notices of earlier years remain on show in the hall beside the stair until the season ends"
).split()
"""Words without names."""


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
        draw.circle((width / 2, height / 2), height * rng.uniform(0.12, 0.22), colours[3])
    return picture, ()


def draw_emblem(size: tuple[int, int], rng: Random) -> Drawn:
    """Rings and a star on white, as a logo or a seal has them."""
    colour, other = rng.sample(_LOUD, 2)
    picture = Image.new("RGB", size, rng.choice(_PAPER))
    draw, centre, reach = ImageDraw.Draw(picture), (size[0] / 2, size[1] / 2), min(size) * rng.uniform(0.28, 0.42)
    for factor, fill in ((1.0, colour), (0.86, (255, 255, 255)), (0.78, rng.choice((colour, other)))):
        draw.circle(centre, reach * factor, fill)
    points, turn, inner = rng.randint(3, 8), rng.uniform(0, math.tau), rng.uniform(0.35, 0.6)
    draw.polygon(make_star(centre, reach * 0.66, points, inner, turn), (255, 255, 255))
    return picture, ()


def draw_map(size: tuple[int, int], rng: Random) -> Drawn:
    """A coast, three to six lands in pale colours, borders, and a mark where the place is."""
    picture = Image.new("RGB", size, mix_colour(rng, (0.52, 0.6), (0.15, 0.35), (0.9, 1.0)))
    draw, middle = ImageDraw.Draw(picture), (size[0] * rng.uniform(0.42, 0.58), size[1] * rng.uniform(0.42, 0.58))
    side, count = min(size), rng.randint(15, 24)
    coast = [turn_point(middle, side * rng.uniform(0.34, 0.5), math.tau * each / count) for each in range(count)]
    lands = rng.randint(3, min(6, count // 3))
    cuts = [*sorted(rng.sample(range(0, count, 2), lands)), 0]
    cuts[-1] = cuts[0] + count
    for number, (first, last) in enumerate(pairwise(cuts)):
        edge = [coast[corner % count] for corner in range(first, last + 1)]
        draw.polygon([middle, *edge], fill=_PALE[number % len(_PALE)], outline=(120, 110, 110), width=2)
    mark = turn_point(middle, side * rng.uniform(0.05, 0.25), rng.uniform(0, math.tau))
    draw.circle(mark, 9, (210, 20, 30))
    return picture, ()


def draw_card(size: tuple[int, int], rng: Random) -> Drawn:
    """A page of text without names."""
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


SIMPLE: Mapping[SimpleKind, Callable[[tuple[int, int], Random], Drawn]] = {
    "flag": draw_flag, "emblem": draw_emblem, "map": draw_map, "card": draw_card,
}  # fmt: skip
"""Draws a picture that shows nothing of an entity, with what is written on it."""


@dataclass(frozen=True, slots=True)
class PlannedPicture:
    """A planned picture.

    Attributes:
        file: name with spaces, as an infobox has it; on disk and in tables spaces are underscores.
        size: width and height in pixels.
        free: whether the licence allows reuse and change.
        view: ``lead`` in the infobox, ``second`` in the article's body.
        sign: what a sign in it says; empty without one.
        simple: what it is where it is no picture of the entity at all; empty else.
        depicts: Qids it is said to depict (P180); mostly the entity's, now and then nothing or another's.
        caption: of a second picture.
    """

    entity: int
    file: str
    size: tuple[int, int]
    author: str
    licence: str
    licence_url: str
    free: bool
    view: View = "lead"
    sign: str = ""
    simple: SimpleKind | None = None
    depicts: tuple[str, ...] = ()
    caption: str = ""

    @property
    def stored_name(self) -> str:
        """File name with underscores."""
        return self.file.replace(" ", "_")

    @property
    def source_url(self) -> str:
        """Where the file page would be, on hosts that no real wiki has: a shared one if free, else that of the wiki."""
        host = "commons.example" if self.licence in LICENCES else "toywiki.example"
        return f"https://{host}/wiki/File:{self.stored_name}"


def plan_pictures(entities: Sequence[Entity], config: WorldConfig) -> dict[int, PlannedPicture]:
    """Decide names, sizes, licences and oddities of lead pictures, by entity number; abstract things have none."""
    pictures: dict[int, PlannedPicture] = {}
    used: set[str] = set()
    for entity in entities:
        rng = Random(f"{config.seed}:picture-plan:{entity.number}")
        if entity.subtype.kind == "concept" or rng.random() < NO_PICTURE_SHARE:
            continue
        stem = entity.title if rng.random() < 0.3 else fold_accents(entity.title)
        suffix = ".png" if rng.random() < PALETTE_SHARE else ".jpg"
        view = rng.choice(_OUTDOOR_VIEWS if entity.subtype.name in OUTDOORS else _VIEWS)
        # Oddities have a stream of their own: without them the world stays the same.
        odd = Random(f"{config.seed}:picture-oddity:{entity.number}")
        drawn, kind = odd.random(), odd.choice(tuple(SIMPLE))
        simple = kind if drawn < config.simple else None
        sign = fold_accents(entity.name) if config.simple <= drawn < config.simple + config.signs else ""
        name = f"{stem}{view}{suffix}"
        if simple is not None and odd.random() < TELLING_SHARE:
            name = f"{_SIMPLE_NAMES[simple].format(stem=stem)}.png"
        file = _name_file(name, entity, used)
        free = rng.random() >= UNFREE_SHARE
        licence, address = rng.choice(tuple((LICENCES if free else UNFREE_LICENCES).items()))
        author = rng.choice(names.PHOTOGRAPHERS)
        pictures[entity.number] = PlannedPicture(
            entity.number, file, _draw_size(entity, rng), author, licence, address, free, sign=sign, simple=simple,
            depicts=_state_subject(entity, entities, odd),
        )  # fmt: skip
    return pictures


def plan_second_pictures(
    entities: Sequence[Entity], leads: Mapping[int, PlannedPicture], config: WorldConfig
) -> dict[int, PlannedPicture]:
    """Decide which entities have a further picture in the body of their article: the same thing seen otherwise."""
    pictures: dict[int, PlannedPicture] = {}
    used = {picture.file.casefold() for picture in leads.values()}
    for number in leads:
        rng, entity = Random(f"{config.seed}:second-picture-plan:{number}"), entities[number]
        if rng.random() >= SECOND_SHARE:
            continue
        file = _name_file(f"{fold_accents(entity.title)}{rng.choice(_SECOND_VIEWS)}.jpg", entity, used)
        licence, address = rng.choice(tuple(LICENCES.items()))
        pictures[number] = PlannedPicture(
            number, file, _draw_size(entity, rng), rng.choice(names.PHOTOGRAPHERS), licence, address, True, "second",
            depicts=_state_subject(entity, entities, rng), caption=rng.choice(_CAPTIONS).format(name=entity.name),
        )  # fmt: skip
    return pictures


def _state_subject(entity: Entity, entities: Sequence[Entity], rng: Random) -> tuple[str, ...]:
    drawn, other = rng.random(), rng.choice(entities)
    if drawn < UNSTATED_SHARE:
        return ()
    return (other.qid if drawn < UNSTATED_SHARE + MISSTATED_SHARE else entity.qid,)


def _name_file(name: str, entity: Entity, used: set[str]) -> str:
    file = "".join(letter for letter in name if letter not in '/:|#<>[]{}"?*\\')
    file = file[0].upper() + file[1:]
    if file.casefold() in used:
        file = f"{file[:-4]} {entity.number}{file[-4:]}"
    used.add(file.casefold())
    return file


def _draw_size(entity: Entity, rng: Random) -> tuple[int, int]:
    upright = entity.subtype.name in _UPRIGHT or entity.subtype.kind in _UPRIGHT
    if rng.random() < SMALL_SHARE:
        return (320, 400) if upright else (400, 320)
    long = rng.choice((640, 660, 680))
    return (MIN_SIDE, long) if upright else (long, MIN_SIDE)


@lru_cache(maxsize=64)
def load_font(size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """Return the font that Pillow brings along, ``size`` pixels high; it has no letters beyond ASCII."""
    return ImageFont.load_default(size)


def put_sign(scene: Image.Image, text: str, rng: Random, letters: tuple[int, int] = LETTERS) -> tuple[WrittenText, ...]:
    """Put up a sign in a picture, in its lower half, and return its lines with their boxes."""
    draw, room = ImageDraw.Draw(scene), scene.width * _ROOM
    size = max(LEAST_LETTERS, round(rng.randint(*letters) * min(scene.size) / MIN_SIDE))
    lines = _break_lines(text, size, room)
    while size > LEAST_LETTERS and max(load_font(size).getlength(line) for line in lines) > room:
        size -= 1
    wide = max(load_font(size).getlength(line) for line in lines)
    high, edge = round(size * 1.25), round(size * 0.5)
    board, ink = rng.choice(_BOARDS)
    left = rng.uniform(edge, max(edge, scene.width - wide - 2 * edge))
    top = scene.height * rng.uniform(0.52, 0.9) - high * len(lines) - 2 * edge
    right, bottom = left + wide + 2 * edge, top + high * len(lines) + edge
    if rng.random() < 0.6:
        for post in (left + (right - left) * 0.2, left + (right - left) * 0.8):
            draw.rectangle((post - 4, bottom, post + 4, scene.height), fill=(74, 60, 48))
    draw.rectangle((left, top, right, bottom), fill=board, outline=ink, width=max(2, size // 12))
    found = []
    for number, line in enumerate(lines):
        place = (left + edge + (wide - load_font(size).getlength(line)) / 2, top + edge * 0.4 + high * number)
        draw.text(place, line, fill=ink, font=load_font(size))
        found.append(WrittenText(line, draw.textbbox(place, line, font=load_font(size))))
    return tuple(found)


def _break_lines(text: str, size: int, room: float) -> tuple[str, ...]:
    parts = text.split()
    if len(parts) < 2 or load_font(size).getlength(text) <= room:
        return (text,)
    cuts = ((" ".join(parts[:cut]), " ".join(parts[cut:])) for cut in range(1, len(parts)))
    return min(cuts, key=lambda lines: max(map(len, lines)))


def draw_picture(entity: Entity, picture: PlannedPicture, seed: int) -> bytes:
    """Draw and encode a picture; its text layer says what can be read in it, mostly nothing."""
    written: tuple[WrittenText, ...] = ()
    if picture.simple is not None:
        scene, written = SIMPLE[picture.simple](picture.size, Random(f"{seed}:simple-picture:{entity.number}"))
    else:
        scene = paint_scene(entity, picture.size, seed, picture.view)
    if picture.sign:
        written = put_sign(scene, picture.sign, Random(f"{seed}:sign:{entity.number}"))
    return encode_scene(scene, picture.file, written)


def encode_scene(scene: Image.Image, file: str, written: Sequence[WrittenText]) -> bytes:
    """Return a picture file with its text layer: JPEG, or a palette PNG where its name ends in ``.png``."""
    if file.endswith(".png"):
        palette = scene.quantize(64, method=Image.Quantize.FASTOCTREE)
        return encode_layered(palette, "PNG", written, compress_level=6)
    return encode_layered(scene, "JPEG", written, quality=82)


def paint_scene(entity: Entity, size: tuple[int, int], seed: int, view: str = "lead") -> Image.Image:
    """Paint an entity; each further view shows the same thing before another backdrop, elsewhere, and turned round.

    The entity's number and the world's seed decide how it looks; ``view`` is ``lead`` or the name of another view.
    """
    subject = Random(f"{seed}:picture:{entity.number}")
    if view == "lead":
        return _soften(_paint(entity, size, subject, subject))
    # The subject is drawn from where the lead picture's stream is after its backdrop.
    _set_stage(entity, (size[0] // _REHEARSAL, size[1] // _REHEARSAL), subject)
    return _soften(_paint(entity, size, Random(f"{seed}:{view}-picture:{entity.number}"), subject))


def _soften(scene: Image.Image) -> Image.Image:
    pixels = np.array(scene)
    pixels >>= 1
    pixels[:-1, :-1] += pixels[1:, 1:]
    pixels[-1, :] <<= 1
    pixels[:-1, -1] <<= 1
    return Image.fromarray(pixels)


def _paint(entity: Entity, size: tuple[int, int], rng: Random, subject: Random) -> Image.Image:
    picture, pen, ground = _set_stage(entity, size, rng)
    name = "person" if entity.subtype.kind == "person" else entity.subtype.name
    (OUTDOORS.get(name) or INDOORS[name])(pen, subject)
    if name in OUTDOORS and name not in _AFLOAT:
        plant_trees(pen.draw, size, rng, max(ground, pen.foot[1]))
    return picture


def _set_stage(entity: Entity, size: tuple[int, int], rng: Random) -> tuple[Image.Image, Pen, float]:
    if entity.subtype.name in OUTDOORS:
        picture, draw, ground, _ = paint_landscape(size, rng)
        scale = size[1] * rng.uniform(0.3, 0.52)
        foot = (size[0] * rng.uniform(0.28, 0.72), ground + (size[1] - ground) * rng.uniform(0.05, 0.55))
        return picture, Pen(draw, foot, scale, rng.choice((1, -1))), ground
    top = mix_colour(rng, (0.0, 1.0), (0.1, 0.6), (0.2, 0.95))
    bottom = mix_colour(rng, (0.0, 1.0), (0.1, 0.6), (0.2, 0.95))
    picture = paint_backdrop(size, rng, top, bottom, 0.5)
    scale = min(size) * rng.uniform(0.55, 0.82)
    foot = (size[0] * rng.uniform(0.36, 0.64), size[1] * rng.uniform(0.72, 0.9))
    if entity.subtype.name in _STAGED:
        scale, foot = size[1] * rng.uniform(0.68, 0.8), (size[0] * rng.uniform(0.46, 0.54), foot[1])
    return picture, Pen(ImageDraw.Draw(picture), foot, scale, rng.choice((1, -1))), 0.0
