"""Whose picture it is: copies under another name, files of several articles, montages, and how easily it is looked up.

Research/quality.md, I5 to I7. Pictures are told apart by their perceptual hash, 64 bits. Copies of the toy world's
pictures at half the size, as JPEG of quality 40 or in grey differ from their originals in 2 bits at most; with 1% cut
off at each side 99 of 100 differ in 6 bits or fewer, with 2% 90 of 100. Of 1.6 million pairs of unrelated pictures
none differ in so few, 2 in 8 and 16 in 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import imagehash
from PIL.Image import Image

from pipelines.backends.protocols import ImageHit
from pipelines.checks.thumbnails import open_thumbnail
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import RecordFailed
from pipelines.names import fold_name
from schemas.groundings import Ease

COPY_DISTANCE = 6
"""Bits of 64 up to which two files show the same picture; two hashes differ in an even number."""
COPIES = 20
"""Near files that are looked at; what they say is said of the nearest."""
GUTTERS = (0.0, 0.006)
"""Shares of a side that are cut off at each inner edge of a part: montages may have a gap between their pictures."""
_GRIDS = ((2, 1), (1, 2), (2, 2))
"""Columns and rows of a montage."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that looks like a picture."""

    file: str
    titles: tuple[str, ...]
    """Articles that lead with it."""
    distance: int
    """Bits of 64 in which the perceptual hashes differ."""


class CopyFinder(Protocol):
    """Finds files by perceptual hash."""

    @property
    def identity(self) -> str:
        """Name, version and what is searched."""

    def find_copies(self, phash: str, count: int = 5) -> tuple[Copy, ...]:
        """Return at most ``count`` files with a hash like this one, nearest first.

        Raises:
            LookupError: if nothing is indexed, so that nothing found means nothing.
        """


def check_copies(phash: str, file: str, title: str, finder: CopyFinder) -> CheckResult:
    """FAIL (``picture-duplicate``) when another article leads with a copy; UNKNOWN without a hash or an index.

    Args:
        phash: of the picture, 16 hex digits.
        file: its name, which is no copy of itself.
        title: the anchor's article; its other files are no copies either.
        finder: what is searched.
    """
    if not phash:
        return CheckResult("UNKNOWN", "picture-duplicate", f"{file} has no perceptual hash")
    try:
        copies = finder.find_copies(phash, COPIES)
    except LookupError as error:
        return CheckResult("UNKNOWN", "picture-duplicate", str(error))
    for copy in copies:
        if copy.distance <= COPY_DISTANCE and _fold_file(copy.file) != _fold_file(file) and title not in copy.titles:
            shown = f"{copy.file} of {', '.join(copy.titles[:3])}"
            return CheckResult("FAIL", "picture-duplicate", f"{file} looks like {shown} ({copy.distance} bits differ)")
    return PASSED


def check_use(titles: Sequence[str], title: str, depicts: Sequence[str], qid: str) -> CheckResult:
    """FAIL (``picture-ambiguous``) when a file stands for others than the anchor.

    Args:
        titles: articles that lead with the file.
        title: the anchor's.
        depicts: Qids of what Commons says the file depicts (P180), empty where it says nothing.
        qid: the anchor's Qid, empty where it is not known.

    Returns:
        FAIL when P180 names others only, or several articles lead with the file and P180 does not name the anchor
        alone; UNKNOWN when P180 names something and the anchor's Qid is not known.
    """
    others = [other for other in titles if other != title]
    if depicts and not qid:
        return CheckResult("UNKNOWN", "picture-ambiguous", f"depicts {', '.join(depicts)}; {title} has no Qid")
    if depicts and qid not in depicts:
        return CheckResult("FAIL", "picture-ambiguous", f"depicts {', '.join(depicts)}, not {qid}")
    if others and set(depicts) != {qid}:
        return CheckResult("FAIL", "picture-ambiguous", f"also leads {', '.join(others[:3])}")
    return PASSED


def check_parts(data: bytes, title: str, finder: CopyFinder) -> CheckResult:
    """FAIL (``picture-ambiguous``) when a half or a quarter of a picture is the picture of another article.

    Args:
        data: the picture file.
        title: the anchor's article.
        finder: what is searched.

    Returns:
        UNKNOWN when the picture cannot be decoded or nothing is indexed.
    """
    try:
        parts = hash_parts(open_thumbnail(data))
        for name, phash in parts:
            for copy in finder.find_copies(phash, COPIES):
                if copy.distance <= COPY_DISTANCE and title not in copy.titles:
                    shown = f"{copy.file} of {', '.join(copy.titles[:3])}"
                    return CheckResult("FAIL", "picture-ambiguous", f"its {name} is {shown}")
    except (RecordFailed, LookupError) as error:
        return CheckResult("UNKNOWN", "picture-ambiguous", str(error))
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
    """Return start and end of one of some equal parts of a side; gutters are cut off inside the picture alone."""
    start = place / count + (gutter if place else 0.0)
    end = (place + 1) / count - (gutter if place + 1 < count else 0.0)
    return round(length * start), round(length * end)


def rate_ease(hits: Sequence[ImageHit], title: str, near: float) -> tuple[Ease, int]:
    """Return how easily a search by picture finds the anchor, and at which rank, from 1; 0 when it does not.

    Args:
        hits: what the search found, best first.
        title: the anchor's article.
        near: distance up to which a hit shows the very picture.

    Returns:
        ``easy`` when the anchor comes first and so near, ``medium`` when it is among the hits, ``hard`` when not.
    """
    wanted = fold_name(title)
    rank = next((place for place, hit in enumerate(hits, start=1) if fold_name(hit.title) == wanted), 0)
    if not rank:
        return "hard", 0
    return ("easy" if rank == 1 and hits[0].distance <= near else "medium"), rank


def _fold_file(file: str) -> str:
    """Return a file name as MediaWiki compares it: spaces for underscores, the first letter's case aside."""
    name = " ".join(file.replace("_", " ").split())
    return name[:1].upper() + name[1:]
