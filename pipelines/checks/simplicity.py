"""Whether a picture is too simple to search with: a flag, a logo, arms, a map, a card of text, a chart, an empty one.

Research/quality.md, I4. What a photograph has and a drawing has not is looked for in the pixels: its colours are many,
and most of its changes are soft. How hard a change is, is measured against what lies around it, so that pale drawings
count as well. What is told of a file counts, too. A picture that passes may still be simple: whether it is worth a
search is for a model that sees it (arXiv source 004, A.2). Of objects cut out on an even ground 8% are refused.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from pipelines.checks.thumbnails import open_thumbnail
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import RecordFailed

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


def check_simple(data: bytes, told: Sequence[str], text_area: float = 0.0) -> CheckResult:
    """FAIL (``picture-too-simple``) for what nobody needs a search by picture for; UNKNOWN if it cannot be decoded.

    Args:
        data: the picture file.
        told: its file name, the address of its page, names of its categories.
        text_area: share of the picture that is covered by text, as read by an OCR engine; 0 where nobody read it.
    """
    telling = find_telling_word(told)
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
    """Measure a picture.

    Args:
        pixels: of shape (height, width, 3), RGB.
    """
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


def find_telling_word(told: Iterable[str]) -> str:
    """Return the words by which a file says that it is a flag, a logo, a map or the like, empty if there are none.

    Args:
        told: file names, addresses and category names, with spaces, underscores or percent signs.
    """
    for text in told:
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
    """Return the largest difference of each pixel. Channel by channel: numpy takes ten times as long over an axis."""
    red, green, blue = (np.abs(differences[:, :, channel]) for channel in range(3))
    return np.maximum(np.maximum(red, green), blue)


def _measure_differences(pixels: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return the largest difference of a channel around each pixel, but for the last row and column."""
    padded = np.pad(pixels, ((AROUND, AROUND), (AROUND, AROUND), (0, 0)), mode="edge")
    highest, lowest = (_reduce_windows(reduce, padded) for reduce in (np.maximum, np.minimum))
    return _max_channel((highest.astype(np.int16) - lowest)[:-1, :-1])


def _reduce_windows(reduce: np.ufunc, padded: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the maximum or minimum of each window of seven by seven pixels: of two, of four, of seven in a row."""
    for _ in range(2):
        pairs = reduce(padded[:-1], padded[1:])
        fours = reduce(pairs[:-2], pairs[2:])
        padded = reduce(fours[:-3], fours[3:]).swapaxes(0, 1)
    return padded


def _pack(levels: NDArray[np.int16], dropped: int) -> NDArray[np.int32]:
    """Return one number a pixel, its colour without so many bits of each channel."""
    red, green, blue = (levels[:, :, channel].astype(np.int32) >> dropped for channel in range(3))
    bits = 8 - dropped
    return (red << 2 * bits) | (green << bits) | blue


def _share_main_colours(calm: NDArray[np.int32]) -> float:
    """Return the share of some colours of 5 bits a channel in the most frequent cells, their neighbours included."""
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
    """Return how many of some colours are among the most frequent."""
    counts = np.unique(even, return_counts=True)[1]
    return int(np.sort(counts)[-MAIN_COLOURS:].sum())


def _refuse(detail: str) -> CheckResult:
    return CheckResult("FAIL", "picture-too-simple", detail)
