"""Plants in drawn pictures: simple, copied, wrong, ambiguous and dead ones (D13), signs (D12), easy ones (I5).

Pictures show entities of the toy world's kinds in several views. The gallery stands for a corpus: every entity leads an
article with its first view. Designs of :mod:`pipelines.toy.drawing` are open to the authors of the checks; the held-out
half has its own.
"""

import asyncio
import io
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

from PIL import Image, ImageDraw

from pipelines.agent.pictures import Reader
from pipelines.checks.leakage import find_common_tokens
from pipelines.checks.legibility import check_readable
from pipelines.checks.pictures import Copy, check_copies, check_parts, check_simple, check_use, rate_ease
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import ConfigError, RecordFailed
from pipelines.graph.answers import make_answer
from pipelines.graph.values import MONTHS, Date, render_date
from pipelines.pictures import compute_phash, measure_distance, probe_picture
from pipelines.services.clients.ocr import RapidOcr
from pipelines.services.protocols import ImageHit, Ocr
from pipelines.toy.drawing import INDOORS, OUTDOORS, Colour, Point
from pipelines.toy.names import fold_accents
from pipelines.toy.ontology import SUBTYPES, Entity
from pipelines.toy.pictures import (
    draw_card,
    draw_emblem,
    draw_flag,
    draw_map,
    encode_scene,
    load_font,
    paint_scene,
    put_sign,
)
from pipelines.toy.textlayer import LayerOcr, WrittenText
from schemas.proofs import Answer
from tests.planted.shares import type_text
from tests.planted.words import Defect, Pair, Vocabulary, invent_person, invent_title, invent_word

SEED = 4711
ENTITIES = 120
"""Entities of a gallery: three or four of each kind."""
SIZES = ((640, 512), (680, 512), (512, 640), (512, 660))
_PAINTED = tuple(each for each in SUBTYPES if each.name in OUTDOORS or each.name in INDOORS or each.kind == "person")


@dataclass(frozen=True)
class Exhibit:
    """An entity with its lead picture."""

    entity: Entity
    title: str
    qid: str

    @property
    def file(self) -> str:
        """Uninformative name of its lead picture."""
        return f"IMG {self.entity.number:04d}.jpg"

    @cached_property
    def lead(self) -> bytes:
        """The lead picture."""
        return encode(self.paint("lead"), self.file)

    @cached_property
    def phash(self) -> str:
        """Perceptual hash of the lead picture."""
        return compute_phash(self.lead)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its pictures."""
        return SIZES[self.entity.number % len(SIZES)]

    def paint(self, view: str, factor: float = 1.0) -> Image.Image:
        """Return a view, ``factor`` times as large as the lead picture."""
        width, height = self.size
        return paint_scene(self.entity, (round(width * factor), round(height * factor)), SEED, view)


@lru_cache(maxsize=1)
def open_gallery() -> tuple[Exhibit, ...]:
    """Return all exhibits; pictures are drawn when they are first looked at."""
    made = []
    for number in range(ENTITIES):
        kind = _PAINTED[number % len(_PAINTED)]
        entity = Entity(number, kind, kind.nouns[0], 0.0, 1900, title=f"Exhibit {number}")
        made.append(Exhibit(entity, entity.title, entity.qid))
    return tuple(made)


def draw_exhibits(count: int, rng: Random) -> list[Exhibit]:
    """Return different exhibits."""
    return rng.sample(open_gallery(), count)


def list_kin(exhibit: Exhibit) -> list[Exhibit]:
    """Return the other exhibits of its type."""
    kind = exhibit.entity.subtype
    return [each for each in open_gallery() if each.entity.subtype == kind and each is not exhibit]


def encode(scene: Image.Image, file: str = "x.jpg", written: Sequence[WrittenText] = ()) -> bytes:
    """Return a picture file as the toy world encodes it, with its text layer."""
    return encode_scene(scene, file, written)


def copy_picture(data: bytes, rng: Random) -> tuple[str, bytes]:
    """Return the way and the copy of a picture: the same bytes, another quality, size, format, or a thin crop."""
    with Image.open(io.BytesIO(data)) as opened:
        scene = opened.convert("RGB")
    way, buffer = rng.choice(("as it is", "quality", "smaller", "larger", "png", "crop")), io.BytesIO()
    if way == "as it is":
        return way, data
    if way == "png":
        scene.save(buffer, "PNG")
        return way, buffer.getvalue()
    if way in ("smaller", "larger"):
        factor = rng.uniform(0.4, 0.9) if way == "smaller" else rng.uniform(1.1, 1.6)
        scene = scene.resize((round(scene.width * factor), round(scene.height * factor)), Image.Resampling.BICUBIC)
    if way == "crop":
        edge = rng.uniform(0.005, 0.015)
        wide, high = round(scene.width * edge), round(scene.height * edge)
        scene = scene.crop((wide, high, scene.width - wide, scene.height - high))
    scene.save(buffer, "JPEG", quality=rng.randint(35, 95))
    return way, buffer.getvalue()


Drawn = tuple[Image.Image, tuple[WrittenText, ...]]
Design = Callable[[tuple[int, int], Vocabulary, Random], Drawn]
_INKS: tuple[Colour, ...] = ((150, 20, 60), (10, 80, 150), (230, 170, 30), (0, 110, 90), (50, 40, 60), (190, 80, 20))
_WHITE = (255, 255, 255)


def draw_design(words: Vocabulary, size: tuple[int, int], rng: Random) -> tuple[str, Image.Image, list[WrittenText]]:
    """Return name, picture and text layer of a design of a half."""
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
"""Designs by half of the vocabulary; an added file gets the open ones."""


NEAR = 10
"""Bits in which a copy's hash may differ, as the corpus's search by picture has it."""
_LAYOUTS = ("beside", "below", "quarters")
_VIEWS = ("lead", "second", "third", "fourth")
_DEAD = ("cut short", "cut short", "empty", "a page", "a drawing in SVG", "a head alone", "too many pixels")
_PAGE = b"<!DOCTYPE html><html><head><title>404 Not Found</title></head><body>No such file.</body></html>"
_SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="640" height="512"><circle r="9"/></svg>'


@dataclass(frozen=True, slots=True)
class GalleryFinder:
    """Finds copies among the lead pictures of the gallery; :class:`CopyFinder` of the checks."""

    identity: str = "gallery"

    def find_copies(self, phash: str, count: int = 20) -> tuple[Copy, ...]:
        """Return the nearest lead pictures within ``NEAR`` bits, nearest first."""
        near = [(measure_distance(phash, each.phash), each) for each in open_gallery()]
        near = sorted((pair for pair in near if pair[0] <= NEAR), key=lambda pair: (pair[0], pair[1].file))
        return tuple(Copy(each.file, (each.title,), distance) for distance, each in near[:count])


def plant_simple(words: Vocabulary, rng: Random) -> Pair:
    """D13, I4: a flag, logo, arms, map or card of text; the clean twin is a picture. Names tell nothing."""
    (exhibit,) = draw_exhibits(1, rng)
    name, drawn, written = draw_design(words, rng.choice(SIZES), rng)
    scene, suffix = exhibit.paint(rng.choice(_VIEWS)), rng.choice((".jpg", ".png"))
    plain = encode(scene, ".png" if rng.random() < 0.1 else ".jpg")
    told = (f"IMG {rng.randint(1000, 9999)}{suffix}",)
    clean, bad = (_check_simple(data, told) for data in (plain, encode(drawn, suffix, written)))
    return Pair(f"{name} as {suffix}", clean, bad, ("picture-too-simple",))


def plant_copy(words: Vocabulary, rng: Random) -> Pair:
    """D13, I7: a copy of another article's picture; the clean twin is a copy, or another view, of the article's own."""
    exhibit, other = draw_exhibits(2, rng)
    way, copy = copy_picture(other.lead, rng)
    own = copy_picture(exhibit.lead, rng)[1] if rng.random() < 0.5 else encode(exhibit.paint("second"))
    return _pair_copies(f"{other.entity.noun}, copied: {way}", exhibit, own, copy)


def plant_other(words: Vocabulary, rng: Random) -> Pair:
    """D13, I6: the picture of another entity of the same type; the clean twin is a view of the entity itself."""
    (exhibit,) = draw_exhibits(1, rng)
    other = rng.choice(list_kin(exhibit))
    bad = other.lead if rng.random() < 0.5 else copy_picture(other.lead, rng)[1]
    own = encode(exhibit.paint(rng.choice(_VIEWS)))
    return _pair_copies(f"{other.title} for {exhibit.title}", exhibit, own, bad)


def plant_montage(words: Vocabulary, rng: Random) -> Pair:
    """D13, I6: two entities in one picture; the clean twin shows one, once or in two views."""
    exhibit, other = draw_exhibits(2, rng)
    layout, gap, turn = rng.choice(_LAYOUTS), rng.choice((0, 0, 2, 4)), rng.randrange(4)
    own = [exhibit.paint(view) for view in rng.sample(_VIEWS, 3)]
    single = own[0] if rng.random() < 0.4 else _lay_out([*own, own[0]], layout, gap)
    parts = [other.paint("lead"), *own]
    # The other entity's place varies.
    shown = [*parts[turn:], *parts[:turn]] if layout == "quarters" else parts[:2][:: 1 - 2 * (turn % 2)]
    double = _lay_out(shown, layout, gap)
    clean, bad = (check_parts(encode(scene), exhibit.title, GalleryFinder().find_copies) for scene in (single, double))
    return Pair(f"{exhibit.title} and {other.title}, {layout}", clean, bad, ("picture-ambiguous",))


def plant_shared(words: Vocabulary, rng: Random) -> Pair:
    """D13, I6: a file that leads several articles or depicts another entity (P180); the clean twin depicts its own."""
    title, other = invent_title(words, rng), invent_title(words, rng)
    own, their = (f"Q{number}" for number in rng.sample(range(10_000, 99_999_999), 2))
    good = rng.choice((((title,), ()), ((title,), (own,)), ((title, other), (own,)), ((title,), (own, their))))
    wrong = rng.choice((((title, other), ()), ((title, other), (their,)), ((title, other), (own, their)),
                        ((title,), (their,))))  # fmt: skip
    clean, bad = (check_use(titles, title, depicts, own) for titles, depicts in (good, wrong))
    plant = f"leads {len(wrong[0])}, depicts {', '.join(wrong[1]) or 'nothing'} for {own}"
    return Pair(plant, clean, bad, ("picture-ambiguous",))


def plant_dead(words: Vocabulary, rng: Random) -> Pair:
    """D13, I7: a file that is truncated, empty, no picture, or far too large; the clean twin is whole."""
    (exhibit,) = draw_exhibits(1, rng)
    whole = encode(exhibit.paint("lead"), ".png") if rng.random() < 0.3 else exhibit.lead
    way = rng.choice(_DEAD)
    dead = {
        "cut short": whole[: rng.randint(len(whole) // 10, len(whole) * 9 // 10)],
        "empty": b"",
        "a page": _PAGE,
        "a drawing in SVG": _SVG,
        "a head alone": whole[: rng.randint(3, 12)],
        "too many pixels": _claim_pixels(rng.randint(20_000, 60_000)),
    }[way]
    return Pair(f"{way}, {len(dead)} bytes", _probe(whole), _probe(dead), ("picture-unusable",))


def plant_easy(words: Vocabulary, rng: Random) -> Pair:
    """I5: a copy of the article's lead picture, which a search finds first; the clean twin is another view."""
    (exhibit,) = draw_exhibits(1, rng)
    way, copy = copy_picture(exhibit.lead, rng)
    clean, bad = (_rate(exhibit, data) for data in (encode(exhibit.paint(rng.choice(_VIEWS[1:]))), copy))
    return Pair(f"{exhibit.title}, copied: {way}", clean, bad, ("picture-easy",))


DEFECTS: tuple[Defect, ...] = (
    Defect("D13", "flag, logo, arms, map or card", plant_simple),
    Defect("D13", "copy of another article's picture", plant_copy),
    Defect("D13", "another entity of the type", plant_other),
    Defect("D13", "two entities in one picture", plant_montage),
    Defect("D13", "file of several articles", plant_shared),
    Defect("D13", "file that shows nothing", plant_dead),
)
MEASURED: tuple[Defect, ...] = (Defect("I5", "picture that a search finds at once", plant_easy),)
"""Without a demand."""


@lru_cache(maxsize=1)
def _open_layer() -> Reader:
    """Return the reader of text layers."""
    return Reader((LayerOcr(),))


def _check_simple(data: bytes, told: Sequence[str]) -> CheckResult:
    return check_simple(data, told, asyncio.run(_open_layer().read(data)).area)


def _pair_copies(plant: str, exhibit: Exhibit, own: bytes, other: bytes) -> Pair:
    clean, bad = (
        check_copies(compute_phash(data), f"New {exhibit.file}", exhibit.title, GalleryFinder().find_copies)
        for data in (own, other)
    )
    return Pair(plant, clean, bad, ("picture-duplicate",))


def _lay_out(parts: Sequence[Image.Image], layout: str, gap: int) -> Image.Image:
    """Return two pictures side by side or stacked, or four in quarters, with a white gap."""
    columns, rows = {"beside": (2, 1), "below": (1, 2), "quarters": (2, 2)}[layout]
    wide, high = parts[0].size
    sheet = Image.new("RGB", (columns * wide + (columns - 1) * gap, rows * high + (rows - 1) * gap), (255, 255, 255))
    for place, part in enumerate(parts[: columns * rows]):
        row, column = divmod(place, columns)
        sheet.paste(part.resize((wide, high)), (column * (wide + gap), row * (high + gap)))
    return sheet


def _probe(data: bytes) -> CheckResult:
    try:
        probe_picture(data)
    except RecordFailed as error:
        return CheckResult("FAIL", "picture-unusable", str(error))
    return PASSED


def _claim_pixels(side: int) -> bytes:
    """Return a small PNG file whose header declares a square of so many pixels a side."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0" * 64)),
              (b"IEND", b""))  # fmt: skip
    file = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    file.seek(0, io.SEEK_END)
    for kind, body in chunks:
        file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
    return file.getvalue()


def _rate(exhibit: Exhibit, data: bytes) -> CheckResult:
    """FAIL (``picture-easy``) if a search by picture finds the entity at once."""
    found = GalleryFinder().find_copies(compute_phash(data))
    hits = [ImageHit(each.title, each.title, "", float(copy.distance)) for copy in found for each in open_gallery()
            if each.title in copy.titles]  # fmt: skip
    ease, rank = rate_ease(hits, exhibit.title, float(NEAR))
    return CheckResult("FAIL", "picture-easy", f"rank {rank}") if ease == "easy" else PASSED


_SHAPES = ("{}", "{}", "Welcome to {}", "{} 2 km", "The {}")
_ANSWER_SHAPES = ("{}", "Since {}", "Open: {}")
_TRIES = 40
_NO_ANSWER = make_answer("5 April 1123", Date(1123, 4, 5))
"""On no sign."""
Aliases = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Path:
    """Names and answer that a picture must not show, and common type words."""

    aliases: Aliases
    answer: Answer
    common: frozenset[str]


@lru_cache(maxsize=1)
def open_engine() -> Ocr:
    """Return RapidOCR, or the reader of text layers without the extra ``vision``."""
    try:
        return RapidOcr(threads=1)
    except ConfigError:
        return LayerOcr()


def plant_sign(words: Vocabulary, rng: Random, engine: Ocr | None = None) -> Pair:
    """D12: a sign with a name of some node: title, distinctive word, other name; the clean twin names a stranger."""
    aliases, picks = _draw_aliases(words, rng), (rng.randrange(3), rng.randrange(4))
    text = _pick_name(aliases, picks, words)
    other = _find_like(text, aliases, lambda: _pick_name(_draw_aliases(words, rng), picks, words))
    path = _Path(aliases, _NO_ANSWER, find_common_tokens(words.types))
    return _pair_signs(path, rng.choice(_SHAPES), (other, text), rng, engine)


def plant_answer_sign(words: Vocabulary, rng: Random, engine: Ocr | None = None) -> Pair:
    """D12: a sign with the answer: a date, a year or a name; the clean twin shows another."""
    aliases, kind = _draw_aliases(words, rng), rng.randrange(3)
    answer, text = _draw_answer(words, rng, kind)
    other = _find_like(text, (*aliases, (text,)), lambda: _draw_answer(words, rng, kind)[1])
    path = _Path(aliases, answer, find_common_tokens(words.types))
    return _pair_signs(path, rng.choice(_ANSWER_SHAPES), (other, text), rng, engine)


SIGNS: tuple[Defect, ...] = (
    Defect("D12", "name on a sign", plant_sign),
    Defect("D12", "answer on a sign", plant_answer_sign),
)


def _draw_aliases(words: Vocabulary, rng: Random) -> Aliases:
    """Return names of three nodes, each a title and another name."""
    other = (f"{invent_word(words, rng)} {invent_word(words, rng)}" for _ in range(3))
    return tuple((invent_title(words, rng), name) for name in other)


def _pick_name(aliases: Aliases, picks: tuple[int, int], words: Vocabulary) -> str:
    """Return a name of a node: its title, in capitals too, the distinctive word, or the other name."""
    title, other = aliases[picks[0]]
    title = title.partition(" (")[0]
    first, last = title.split(" ", 1)
    return (title, title.upper(), first if last in words.types else last, other)[picks[1]]


def _draw_answer(words: Vocabulary, rng: Random, kind: int) -> tuple[Answer, str]:
    """Return an answer and a way to write it."""
    date = Date(rng.randint(1100, 2020), rng.randint(1, 12), rng.randint(1, 28))
    if kind == 0:
        name = invent_person(words, rng)
        return type_text(name), name
    answer = make_answer(render_date(date)[0], date)
    return answer, str(date.year) if kind == 1 else f"{date.day} {MONTHS[date.month - 1]} {date.year}"


def _find_like(text: str, aliases: Aliases, draw: Callable[[], str]) -> str:
    """Return a stranger of about the same length whose words begin unlike those of the names."""
    begins = {word[:3].lower() for names in aliases for name in names for word in name.split()}
    found = (fold for fold in (draw() for _ in range(_TRIES)) if not begins & {w[:3].lower() for w in fold.split()})
    return min(found, key=lambda each: abs(len(each) - len(text)), default="Visitors")


def _pair_signs(path: _Path, shape: str, texts: tuple[str, str], rng: Random, engine: Ocr | None) -> Pair:
    """Judge two pictures that differ only in the words of a sign."""
    (exhibit,) = draw_exhibits(1, rng)
    reader, place = Reader((engine or open_engine(),)), rng.random()
    clean, bad = (_read(reader, _draw_sign(exhibit, shape.format(text), place), path) for text in texts)
    return Pair(f"{exhibit.entity.noun}: {shape.format(texts[1])}", clean, bad, ("picture-readable",))


def _draw_sign(exhibit: Exhibit, text: str, place: float) -> bytes:
    scene = exhibit.paint("lead")
    return encode(scene, "x.jpg", put_sign(scene, fold_accents(text), Random(place)))


def _read(reader: Reader, data: bytes, path: _Path) -> CheckResult:
    reading = asyncio.run(reader.read(data))
    return check_readable(reading.lines, path.aliases, path.answer, path.common)
