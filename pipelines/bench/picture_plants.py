"""Plants in drawn pictures: simple, copied, wrong, ambiguous and dead ones (D13), and how easily one is found (I5)."""

import asyncio
import io
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from PIL import Image

from pipelines.agent.reading import Reader
from pipelines.backends.ocr_layer import LayerOcr
from pipelines.backends.protocols import ImageHit
from pipelines.bench.gallery import SIZES, Exhibit, copy_picture, draw_exhibits, encode, list_kin, open_gallery
from pipelines.bench.picture_designs import draw_design
from pipelines.bench.plants import Defect, Pair
from pipelines.bench.vocabulary import Vocabulary, invent_title
from pipelines.checks.likeness import Copy, check_copies, check_parts, check_use, rate_ease
from pipelines.checks.simplicity import check_simple
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import RecordFailed
from pipelines.pictures import compute_phash, measure_distance, probe_picture

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

    def find_copies(self, phash: str, count: int = 5) -> tuple[Copy, ...]:
        """Return the nearest lead pictures within ``NEAR`` bits, nearest first."""
        near = [(measure_distance(phash, each.phash), each) for each in open_gallery()]
        near = sorted((pair for pair in near if pair[0] <= NEAR), key=lambda pair: (pair[0], pair[1].file))
        return tuple(Copy(each.file, (each.title,), distance) for distance, each in near[:count])


def plant_simple(words: Vocabulary, rng: Random) -> Pair:
    """D13, I4: a flag, logo, arms, map or card of text; the clean twin is a picture. Neither's name says so."""
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
    # The other entity's place changes: first or second of two, any of four.
    shown = [*parts[turn:], *parts[:turn]] if layout == "quarters" else parts[:2][:: 1 - 2 * (turn % 2)]
    double = _lay_out(shown, layout, gap)
    clean, bad = (check_parts(encode(scene), exhibit.title, GalleryFinder()) for scene in (single, double))
    return Pair(f"{exhibit.title} and {other.title}, {layout}", clean, bad, ("picture-ambiguous",))


def plant_shared(words: Vocabulary, rng: Random) -> Pair:
    """D13, I6: a file that leads several articles, or that is said to depict another; clean where P180 says which."""
    title, other = invent_title(words, rng), invent_title(words, rng)
    own, their = (f"Q{number}" for number in rng.sample(range(10_000, 99_999_999), 2))
    good = rng.choice((((title,), ()), ((title,), (own,)), ((title, other), (own,)), ((title,), (own, their))))
    wrong = rng.choice((((title, other), ()), ((title, other), (their,)), ((title, other), (own, their)),
                        ((title,), (their,))))  # fmt: skip
    clean, bad = (check_use(titles, title, depicts, own) for titles, depicts in (good, wrong))
    plant = f"leads {len(wrong[0])}, depicts {', '.join(wrong[1]) or 'nothing'} for {own}"
    return Pair(plant, clean, bad, ("picture-ambiguous",))


def plant_dead(words: Vocabulary, rng: Random) -> Pair:
    """D13, I7: a file cut short, empty, no picture at all, or far too large; the clean twin is whole."""
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
"""Of which the design demands nothing."""


@lru_cache(maxsize=1)
def _open_layer() -> Reader:
    """Return what knows how much of a drawn picture is text, without reading it."""
    return Reader((LayerOcr(),))


def _check_simple(data: bytes, told: Sequence[str]) -> CheckResult:
    return check_simple(data, told, asyncio.run(_open_layer().read(data)).area)


def _pair_copies(plant: str, exhibit: Exhibit, own: bytes, other: bytes) -> Pair:
    clean, bad = (
        check_copies(compute_phash(data), f"New {exhibit.file}", exhibit.title, GalleryFinder())
        for data in (own, other)
    )
    return Pair(plant, clean, bad, ("picture-duplicate",))


def _lay_out(parts: Sequence[Image.Image], layout: str, gap: int) -> Image.Image:
    """Return two pictures side by side or one below the other, or four in quarters, a white gap between them."""
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
    """Return a small PNG file whose head claims a square of so many pixels a side."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0" * 64)),
              (b"IEND", b""))  # fmt: skip
    file = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    file.seek(0, io.SEEK_END)
    for kind, body in chunks:
        file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
    return file.getvalue()


def _rate(exhibit: Exhibit, data: bytes) -> CheckResult:
    """FAIL (``picture-easy``) where a search by picture gives the entity away at once."""
    found = GalleryFinder().find_copies(compute_phash(data))
    hits = [ImageHit(each.title, each.title, "", float(copy.distance)) for copy in found for each in open_gallery()
            if each.title in copy.titles]  # fmt: skip
    ease, rank = rate_ease(hits, exhibit.title, float(NEAR))
    return CheckResult("FAIL", "picture-easy", f"rank {rank}") if ease == "easy" else PASSED
