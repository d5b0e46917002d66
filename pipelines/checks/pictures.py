"""Checks of a picture: size and licence, simplicity, copies.

Simplicity (research/quality.md I4): a photograph has many colours and mostly soft changes. Changes are measured against
what lies around them, so that pale drawings count too. 8% of objects cut out on an even ground are refused.

Copies (I5, I7) are found by 64-bit perceptual hash: copies at half the size, as JPEG of quality 40 or in grey differ
in at most 2 bits, cut by 1% at each side in at most 6 (99 of 100); of 1.6 million unrelated pairs 2 differ in 8 bits.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote

import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import RecordFailed
from pipelines.names import fold_name, normalise_file
from pipelines.pictures import open_pixels
from pipelines.services.protocols import ImageHit
from schemas.corpus import CorpusImage
from schemas.datasets import Ease
from schemas.reasons import SeedReason

LicenceClass = Literal["free", "unfree", "unknown"]

# What names a country (PD-US-expired, PD-ineligible-USonly), leaves the reason open (PD-because) or says nothing of the
# work that is shown (PD-Art, PD-scan) is not free everywhere.
_PUBLIC_DOMAIN = (
    r"pd(?:-(?:self|user|author|release|textlogo|shape|ineligible|mark"
    r"|old(?:-(?:70|75|80|90|95|100|auto))?(?:-(?:expired|1923|1996))?"
    r"|usgov(?:-(?:nasa|noaa|usgs|nps|fws|usda|loc|military))?))?"
)
_FREE = re.compile(
    r"public domain(?: mark(?: 1\.0)?)?|" + _PUBLIC_DOMAIN + r"|cc0(?:[ -]1\.0)?(?: universal)?|cc[ -]zero"
    r"|cc[ -]by(?:[ -]sa)?(?:[ -](?:[1-4]\.\d)(?:(?:,\d\.\d)*|\+)?)?"
    r"(?:[ -](?:migrated|[a-z]{2}|igo|scotland|international|unported))?"
    r"|creative commons attribution(?:[ -]share ?alike)?(?: [1-4]\.\d)?(?: (?:international|unported|generic))?"
    r"|creative commons (?:zero|cc0)(?: 1\.0)?"
    r"|(?:gfdl|gnu free documentation licen[cs]e)(?:[ -]1\.[1-3](?:\+| or later)?)?"
    r"|(?:fal|free art licen[cs]e|licence art libre)(?:[ -]1\.3)?"
    r"|(?:ogl|open government licen[cs]e)(?:[ -]v?[1-3](?:\.0)?)?"
)
_UNFREE = re.compile(
    r"\bnc\b|\bnd\b|non-?[ -]?commercial|no-?[ -]?deriv|non-?[ -]?free|fair[ -]use|all rights reserved|copyrighted"
    r"|permission|with permission|unlicensed"
)


def classify_licence(licence: str) -> LicenceClass:
    """Return whether a licence's short name is on the allow-list.

    On it are the public domain, by tags whose reason holds everywhere or for works of the United States' government;
    CC0, and any version of CC BY, CC BY-SA, the GFDL, the Free Art License and the Open Government Licence.
    ``unfree`` is what forbids commerce or changes or is no licence at all; anything not recognised is ``unknown``. The
    names are those of Wikimedia Commons (``LicenseShortName``): ``CC BY-SA 4.0``, ``cc-by-2.0``, ``PD-old-100``.
    """
    name = " ".join(licence.replace("_", " ").lower().split())
    if _UNFREE.search(name):
        return "unfree"
    return "free" if _FREE.fullmatch(name) else "unknown"


def is_free_licence(licence: str) -> bool:
    """Return whether a picture under this licence may be given away and changed; an unknown licence may not."""
    return classify_licence(licence) == "free"


def find_lead_fault(image: CorpusImage | None, name: str, free: bool) -> tuple[SeedReason | None, str]:
    """Return why an article's lead picture cannot be an anchor's, with a detail; None if it can."""
    if image is None:
        return "no-image", name
    if image.error:
        return "image-unusable", f"{image.file}: {image.error}"
    if not free or not is_free_licence(image.licence):
        return "image-not-free", f"{image.file}: {image.licence or 'no licence'}"
    if min(image.width, image.height) < MIN_IMAGE_SIDE:
        return "image-too-small", f"{image.file}: {image.width}x{image.height}"
    return None, ""


def check_licence(licence: str) -> CheckResult:
    """FAIL (``picture-not-free``) for a licence that forbids use, UNKNOWN for one not on the list or none at all."""
    found = classify_licence(licence)
    if found == "free":
        return PASSED
    detail = f"licence {licence!r}; allowed are public domain, CC0, CC BY, CC BY-SA, GFDL, FAL and OGL"
    return CheckResult("FAIL" if found == "unfree" else "UNKNOWN", "picture-not-free", detail)


def check_size(width: int, height: int, min_side: int) -> CheckResult:
    """FAIL (``picture-too-small``) when the shorter side has fewer than ``min_side`` pixels; UNKNOWN without a size."""
    if width <= 0 or height <= 0:
        return CheckResult("UNKNOWN", "picture-too-small", f"size {width}x{height} is not known")
    if min(width, height) >= min_side:
        return PASSED
    return CheckResult("FAIL", "picture-too-small", f"{width}x{height}, allowed from {min_side} on the shorter side")


def check_picture(width: int, height: int, licence: str, min_side: int) -> CheckResult:
    """Check size, then licence; the first that does not pass is returned (research/quality.md I7)."""
    size = check_size(width, height, min_side)
    return check_licence(licence) if size.passed else size


MIN_IMAGE_SIDE = 512
"""Shorter side of the lead picture of a seed, pixels."""
SIDE = 256
"""Longest side in pixels: large enough for letters, small enough for the grain of films to go."""


@lru_cache(maxsize=2)
def open_thumbnail(data: bytes) -> Image:
    """Return a picture at most :data:`SIDE` pixels long, not to be written to: the last two files are kept."""
    return open_pixels(data, max_side=SIDE)


CALM_STEP = 8
"""Levels (of 255) up to which two neighbours count as one area."""
MAIN_COLOURS = 8
MIN_DRAWN = 0.99
"""Share of the calm area in the main colours from which a picture may be drawn."""
MIN_FLAT = 0.80
"""Share of the whole picture in areas of exactly the main colours from which it may be drawn."""
MIN_ABRUPT = 0.14
"""Share of abrupt changes among all, and a quarter of that of hard edges, from which it is: in photographs and
paintings gradual ones prevail. Strong compression puts a gradual fringe around what is small, not around hard edges."""
ABRUPT, AROUND = 0.5, 3
"""A change is abrupt that makes half of the whole difference within so many pixels of it."""
HARD_STEP, ANY_STEP, EDGE_STEP, SAME_STEP = 64, 3, 24, 2
"""Levels of a hard edge, of any change, of an edge, and of what compression does to an even area."""
MIN_EDGES = 0.006
"""Share of edges below which there is nothing to see: an even ground, a gradient."""
PALETTE_COLOURS = 32
"""A palette of no more is drawn; a photograph turned into a palette file takes what it can get."""
TEXT_AREA = 0.3

_TELLING = re.compile(
    r"svg"
    # What may be part of a name, such as Flag Fen or a grey seal, counts only where it says what the file is.
    r"|(?:flag|flags|banner|seal|emblem|drapeau|bandera|bandiera|bandeira|flagge|vlag) (?:of|de|du|di|der|des|von|van)"
    r"|(?:state|city|county|official|great|municipal) seal"
    r"|(?:coat|coats) of arms|armoiries|blason|escudo de|stemma|brasao|wappen|\w*stadtwappen|gemeindewappen"
    r"|logo|logos|logotype|wordmark|pictogram|favicon|signature|unterschrift|autograph"
    r"|(?:locator|location|route|relief|political) maps?|maps? of|karte (?:von|der|des)|\w*lagekarte|landkarte|carte de"
    r"|mapa de|mappa di|plan de|diagram|diagramme|diagramm|schematic|flowchart|infographic"
    r"|флаг|герб|карта|логотип"
)
_LAST = re.compile(r"(?:flag|flagge|vlag|drapeau|icon|map|maps|karte|chart|graph|crest|seal of)")
"""Counts as the last word of a file's name."""
_NAME = re.compile(r"[^/]*$")
_ENDING = re.compile(r"\.(jpe?g|png|gif|webp|tiff?)$")
_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Plainness:
    """What tells a drawing from a photograph; all are shares, 0 to 1."""

    drawn: float
    """Of the calm area, what lies within 12 levels of one of the eight main colours."""
    flat: float
    """Of the picture, areas of the eight main colours without any shading."""
    sharp: float
    """Of all changes between neighbours, the hard ones."""
    abrupt: float
    """Of all changes between neighbours, those that make most of the difference around them, however faint it is."""
    edges: float
    """Of the picture, edges."""


def check_simple(data: bytes, texts: Sequence[str], text_area: float = 0.0) -> CheckResult:
    """FAIL (``picture-too-simple``) for a flag, logo, map, card of text or drawing; UNKNOWN if it cannot be decoded."""
    telling = find_telling_word(texts)
    if telling:
        return _refuse(f"{telling!r} in what is told of the file")
    if text_area > TEXT_AREA:
        return _refuse(f"text covers {text_area:.0%}, allowed is {TEXT_AREA:.0%}")
    colours = count_palette(data)
    if 0 < colours <= PALETTE_COLOURS:
        return _refuse(f"a palette of {colours} colours, needed are more than {PALETTE_COLOURS}")
    try:
        pixels = np.asarray(open_thumbnail(data))
    except RecordFailed as error:
        return CheckResult("UNKNOWN", "picture-too-simple", str(error))
    return judge_plainness(measure_plainness(pixels))


def judge_plainness(measured: Plainness) -> CheckResult:
    """FAIL (``picture-too-simple``) when what was measured is that of a drawing or of next to nothing."""
    if measured.edges < MIN_EDGES:
        return _refuse(f"edges are {measured.edges:.2%} of it, needed are {MIN_EDGES:.2%}")
    plain = measured.drawn >= MIN_DRAWN or measured.flat >= MIN_FLAT
    if plain and measured.abrupt + measured.sharp / 4 >= MIN_ABRUPT:
        shares = f"{measured.drawn:.0%} of the calm area in {MAIN_COLOURS} colours, {measured.flat:.0%} without shading"
        changes = f"{measured.abrupt:.0%} of the changes abrupt, {measured.sharp:.0%} hard"
        return _refuse(f"drawn in few colours: {shares}, {changes}")
    return PASSED


def measure_plainness(pixels: NDArray[np.uint8]) -> Plainness:
    """Measure a picture."""
    levels = pixels.astype(np.int16)
    if min(levels.shape[:2]) < 2:
        return Plainness(1.0, 1.0, 0.0, 0.0, 0.0)
    here = levels[:-1, :-1]
    steps = np.maximum(_max_channel(levels[:-1, 1:] - here), _max_channel(levels[1:, :-1] - here))
    changed = steps > ANY_STEP
    changes = int(np.count_nonzero(changed))
    abrupt = steps >= ABRUPT * _measure_differences(pixels)
    return Plainness(
        drawn=_share_main_colours(_pack(here, 3)[steps <= CALM_STEP]),
        flat=_count_main_colours(_pack(here, 2)[steps <= SAME_STEP]) / steps.size,
        sharp=int(np.count_nonzero(steps > HARD_STEP)) / max(changes, 1),
        abrupt=int(np.count_nonzero(changed & abrupt)) / max(changes, 1),
        edges=int(np.count_nonzero(steps > EDGE_STEP)) / steps.size,
    )


def find_telling_word(texts: Iterable[str]) -> str:
    """Return the words by which a file says that it is a flag, a logo, a map or the like, empty if there are none."""
    for text in texts:
        words = _split_words(text)
        found = re.search(rf"(?<!\w)(?:{_TELLING.pattern})(?!\w)", words)
        if found:
            return found[0]
        last = re.search(rf"(?<!\w)(?:{_LAST.pattern})(?= ?[\d ]*$)", words)
        if last:
            return last[0]
    return ""


def count_palette(data: bytes) -> int:
    """Return how many colours the palette of a PNG or GIF file has, 0 for a file without one."""
    if data[:4] == b"GIF8" and len(data) > 10:
        return 2 << (data[10] & 7) if data[10] & 0x80 else 0
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[25:26] != b"\x03":
        return 0
    place = data.find(b"PLTE", 0, data.find(b"IDAT"))
    return int.from_bytes(data[place - 4 : place], "big") // 3 if place > 0 else 0


def _split_words(text: str) -> str:
    name = _NAME.search(unquote(text).replace("\\", "/").strip())
    bare = _ENDING.sub("", name[0].casefold() if name else "")
    # Accents are dropped, so that one spelling will do.
    folded = "".join(each for each in unicodedata.normalize("NFKD", bare) if not unicodedata.combining(each))
    return _NOT_WORD.sub(" ", unicodedata.normalize("NFC", folded)).strip()


def _max_channel(differences: NDArray[np.int16]) -> NDArray[np.int16]:
    red, green, blue = (np.abs(differences[:, :, channel]) for channel in range(3))
    return np.maximum(np.maximum(red, green), blue)


def _measure_differences(pixels: NDArray[np.uint8]) -> NDArray[np.int16]:
    padded = np.pad(pixels, ((AROUND, AROUND), (AROUND, AROUND), (0, 0)), mode="edge")
    highest, lowest = (_reduce_windows(reduce, padded) for reduce in (np.maximum, np.minimum))
    return _max_channel((highest.astype(np.int16) - lowest)[:-1, :-1])


def _reduce_windows(reduce: np.ufunc, padded: NDArray[np.uint8]) -> NDArray[np.uint8]:
    for _ in range(2):
        pairs = reduce(padded[:-1], padded[1:])
        fours = reduce(pairs[:-2], pairs[2:])
        padded = reduce(fours[:-3], fours[3:]).swapaxes(0, 1)
    return padded


def _pack(levels: NDArray[np.int16], dropped: int) -> NDArray[np.int32]:
    red, green, blue = (levels[:, :, channel].astype(np.int32) >> dropped for channel in range(3))
    bits = 8 - dropped
    return (red << 2 * bits) | (green << bits) | blue


def _share_main_colours(calm: NDArray[np.int32]) -> float:
    if not len(calm):
        return 0.0
    counts = np.pad(np.bincount(calm, minlength=32**3).reshape(32, 32, 32), 1)
    covered = 0
    for _ in range(MAIN_COLOURS):
        red, green, blue = np.unravel_index(int(counts.argmax()), counts.shape)
        around = counts[red - 1 : red + 2, green - 1 : green + 2, blue - 1 : blue + 2]
        covered += int(around.sum())
        around[...] = 0
        if covered == len(calm):
            break
    return covered / len(calm)


def _count_main_colours(even: NDArray[np.int32]) -> int:
    counts = np.unique(even, return_counts=True)[1]
    return int(np.sort(counts)[-MAIN_COLOURS:].sum())


def _refuse(detail: str) -> CheckResult:
    return CheckResult("FAIL", "picture-too-simple", detail)


COPY_DISTANCE = 6
"""Bits of 64 up to which two files show the same picture; two hashes differ in an even number."""
GUTTERS = (0.0, 0.006)
"""Shares of a side that are cut off at each inner edge of a part: montages may have a gap between their pictures."""
_GRIDS = ((2, 1), (1, 2), (2, 2))
"""Columns and rows of a montage."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that looks like a picture."""

    file: str
    titles: tuple[str, ...]
    """Articles that lead with it; where none does, those that show it."""
    distance: int
    """Bits of 64 in which the perceptual hashes differ."""


FindCopies = Callable[[str], Sequence[Copy]]
"""Returns the files with a perceptual hash (16 hex digits) like the given one, nearest first."""


def check_copies(phash: str, file: str, title: str, find: FindCopies) -> CheckResult:
    """FAIL (``picture-duplicate``) when another article leads with a copy of a picture."""
    for copy in find(phash):
        if (
            copy.distance <= COPY_DISTANCE
            and normalise_file(copy.file) != normalise_file(file)
            and title not in copy.titles
        ):
            shown = f"{copy.file} of {', '.join(copy.titles[:3])}"
            return CheckResult("FAIL", "picture-duplicate", f"{file} looks like {shown} ({copy.distance} bits differ)")
    return PASSED


def check_use(titles: Sequence[str], title: str, depicts: Sequence[str], qid: str) -> CheckResult:
    """FAIL (``picture-ambiguous``) when a file stands for others than the anchor."""
    others = [other for other in titles if other != title]
    if depicts and not qid:
        return CheckResult("UNKNOWN", "picture-ambiguous", f"depicts {', '.join(depicts)}; {title} has no Qid")
    if depicts and qid not in depicts:
        return CheckResult("FAIL", "picture-ambiguous", f"depicts {', '.join(depicts)}, not {qid}")
    if others and set(depicts) != {qid}:
        return CheckResult("FAIL", "picture-ambiguous", f"also leads {', '.join(others[:3])}")
    return PASSED


def check_parts(data: bytes, title: str, find: FindCopies) -> CheckResult:
    """FAIL (``picture-ambiguous``) when a half or a quarter of a picture is the picture of another article.

    UNKNOWN when the picture cannot be decoded.
    """
    try:
        parts = hash_parts(open_thumbnail(data))
    except RecordFailed as error:
        return CheckResult("UNKNOWN", "picture-ambiguous", str(error))
    for name, phash in parts:
        for copy in find(phash):
            if copy.distance <= COPY_DISTANCE and title not in copy.titles:
                shown = f"{copy.file} of {', '.join(copy.titles[:3])}"
                return CheckResult("FAIL", "picture-ambiguous", f"its {name} is {shown}")
    return PASSED


def hash_parts(picture: Image) -> tuple[tuple[str, str], ...]:
    """Return the halves and quarters of a picture, each by name and perceptual hash, with and without a gutter."""
    found = []
    for columns, rows in _GRIDS:
        for place in range(columns * rows):
            for gutter in GUTTERS:
                left, right = _cut_side(picture.width, place % columns, columns, gutter)
                top, bottom = _cut_side(picture.height, place // columns, rows, gutter)
                if right > left and bottom > top:
                    part = picture.crop((left, top, right, bottom))
                    found.append((f"part {place + 1} of {columns}x{rows}", str(imagehash.phash(part))))
    return tuple(found)


def _cut_side(length: int, place: int, count: int, gutter: float) -> tuple[int, int]:
    start = place / count + (gutter if place else 0.0)
    end = (place + 1) / count - (gutter if place + 1 < count else 0.0)
    return round(length * start), round(length * end)


def rate_ease(hits: Sequence[ImageHit], title: str, near: float) -> tuple[Ease, int]:
    """Return how easily a search by picture finds the anchor, and at which rank, from 1; 0 when it does not."""
    wanted = fold_name(title)
    rank = next((place for place, hit in enumerate(hits, start=1) if fold_name(hit.title) == wanted), 0)
    if not rank:
        return "hard", 0
    return ("easy" if rank == 1 and hits[0].distance <= near else "medium"), rank
