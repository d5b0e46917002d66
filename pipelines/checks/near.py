"""Texts that nearly repeat each other, found among many at once.

Two texts are near when the Jaccard similarity of their sets of runs of three words is at least a threshold. MinHashes
with datasketch's hash and permutations, made of many texts in one pass, fall into the buckets of LSH; those that meet
in a bucket are compared exactly, so nothing that is said to be near is not. What is missed is bounded by
:data:`MISSED`.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.names import UNSPACED

SHINGLE: Final = 3
PERMUTATIONS: Final = 128
MISSED: Final = 0.002
"""Largest share of pairs at the threshold that meet in no bucket; of more alike ones fewer are missed."""
COMPARED: Final = 256
"""Texts of a bucket, the first, that one text is compared with: hostile input costs no more."""
DIGEST: Final = 8
"""Bytes of a shingle's digest: sets are compared by them, and two of 64 bits alike are the same shingle."""
AT_ONCE: Final = 2048
"""Texts whose shingles are permuted at once: what they take stays in the processor's cache."""
ROUNDING: Final = 1e-9
_WORD = re.compile(r"\w+")
_LETTER = UNSPACED.pattern.removesuffix("+")
_WORD_OR_LETTER = re.compile(rf"{_LETTER}|(?:(?!{_LETTER})\w)+")
_MIXED = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(33))
Words = NDArray[np.uint64]
Places = NDArray[np.int64]


class Near(NamedTuple):
    """A text that another is near to."""

    mark: str
    """What it was added under."""
    similarity: float
    """Jaccard similarity of their shingles, 0 to 1."""


class NearPair(NamedTuple):
    """Two texts of an index that are near each other."""

    first: str
    """Mark of the one added earlier."""
    second: str
    similarity: float


class TextIndex:
    """Texts under marks, and those among them that are near a given one.

    It holds eight bytes a word and 8 bytes a bucket of each text, not the texts.
    """

    def __init__(self, similarity: float) -> None:
        """Hold texts that are near from ``similarity`` on, more than 0 and at most 1."""
        self._similarity = similarity
        self._marks: list[str] = []
        self._shingled: list[bytes] = []
        self._sketched: _Sketches | None = None

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Add texts, each after its mark; a mark may come more than once."""
        for mark, text in texts:
            self._marks.append(mark)
            self._shingled.append(shingle_text(text))
        self._sketched = None

    def find(self, texts: Sequence[str]) -> list[tuple[Near, ...]]:
        """Return, for each text, those that it is near to, the nearest first, then by mark. Many at once cost less."""
        asked = _sketch([shingle_text(text) for text in texts], self._similarity)
        found: defaultdict[int, list[Near]] = defaultdict(list)
        for one, other, similarity in _find_pairs(asked, self._sketch(), self._similarity):
            found[one].append(Near(self._marks[other], similarity))
        return [
            tuple(sorted(found.get(place, ()), key=lambda near: (-near.similarity, near.mark)))
            for place in range(len(texts))
        ]

    def find_pairs(self) -> Iterator[NearPair]:
        """Yield each pair of texts in the index that are near each other, once, in the order they were added."""
        own = self._sketch()
        for one, other, similarity in _find_pairs(own, own, self._similarity):
            yield NearPair(self._marks[other], self._marks[one], similarity)

    def _sketch(self) -> "_Sketches":
        if self._sketched is None:
            self._sketched = _sketch(self._shingled, self._similarity)
        return self._sketched


def shingle_text(text: str) -> bytes:
    """Return the digests of a text's runs of three words, each once, sorted, 8 bytes each.

    Words are read without case and compatibility forms; a letter of a script without spaces is a word. A text of fewer
    than three words is one run. A digest's first four bytes are datasketch's ``sha1_hash32`` of the words with a space
    between, UTF-8.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    words = (_WORD_OR_LETTER if UNSPACED.search(text) else _WORD).findall(text)
    runs = set(zip(*(words[start:] for start in range(SHINGLE)), strict=False)) or {tuple(words)}
    digests = {hashlib.sha1(" ".join(run).encode("utf-8", "surrogatepass")).digest()[:DIGEST] for run in runs}
    return b"".join(sorted(digests))


def measure_overlap(one: bytes, other: bytes) -> float:
    """Return the Jaccard similarity of two texts' shingles, as :func:`shingle_text` gives them."""
    return _overlap(set(np.frombuffer(one, "<u8").tolist()), set(np.frombuffer(other, "<u8").tolist()))


def make_minhashes(shingled: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return datasketch's MinHash (``affine32``, seed 1) of each text's shingles: texts x 128 permutations."""
    shingles, bounds = _join_shingles(shingled)
    mixed = _finalise(shingles.astype(np.uint32))
    factors, terms = _load_permutations()
    made = np.empty((PERMUTATIONS, len(shingled)), dtype=np.uint32)
    for first in range(0, len(shingled), AT_ONCE):
        starts = bounds[:-1][first : first + AT_ONCE]
        own = mixed[starts[0] : bounds[first + len(starts)]]
        for place in range(PERMUTATIONS):
            permuted = own * factors[place] + terms[place]
            made[place, first : first + AT_ONCE] = np.minimum.reduceat(permuted, starts - starts[0])
    return made.T


@cache
def choose_bands(similarity: float) -> tuple[int, int]:
    """Return bands and rows of LSH: the longest bands under which a pair at the threshold is missed rarely enough."""
    rows = max(
        (rows for rows in range(2, PERMUTATIONS) if (1 - similarity**rows) ** (PERMUTATIONS // rows) <= MISSED),
        default=1,
    )
    return PERMUTATIONS // rows, rows


@cache
def _load_permutations() -> NDArray[np.uint32]:
    # It brings scipy, whose import takes longer than many a command.
    from datasketch import MinHash

    permutations: NDArray[np.uint32] = MinHash(num_perm=PERMUTATIONS).permutations
    return permutations


def _finalise(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return MurmurHash3's finaliser of 32 bits, which datasketch mixes hashes by before it permutes them."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


class _Sketches(NamedTuple):
    """Texts as they are compared."""

    shingles: Words
    """Of all texts, one after another."""
    bounds: Places
    """Where each text's begin, and where the last one's end."""
    buckets: Words
    """Bands x texts."""


def _sketch(shingled: Sequence[bytes], similarity: float) -> _Sketches:
    bands, rows = choose_bands(similarity)
    minhashes = make_minhashes(shingled)
    buckets = np.empty((bands, len(shingled)), dtype=np.uint64)
    for band in range(bands):
        buckets[band] = band
        for column in range(band * rows, (band + 1) * rows):
            buckets[band] = _mix(buckets[band], minhashes[:, column].astype(np.uint64))
    return _Sketches(*_join_shingles(shingled), buckets)


def _join_shingles(shingled: Sequence[bytes]) -> tuple[Words, Places]:
    bounds = np.zeros(len(shingled) + 1, dtype=np.int64)
    np.cumsum([len(each) // DIGEST for each in shingled], out=bounds[1:])
    return np.frombuffer(b"".join(shingled), dtype="<u8"), bounds


def _mix(one: Words, other: Words) -> Words:
    """Return one number for two; two that meet by chance cost a comparison and change nothing."""
    factor, shift = _MIXED
    mixed = (one ^ (one >> shift)) * factor + other
    return (mixed ^ (mixed >> shift)) * factor


def _find_pairs(asked: _Sketches, known: _Sketches, similarity: float) -> Iterator[tuple[int, int, float]]:
    """Yield places of two texts that are near, and their similarity; of one set each pair once, the later first."""
    same = asked is known
    pairs = [np.empty(0, dtype=np.int64)]
    for ours, theirs in zip(asked.buckets, known.buckets, strict=True):
        one, other = _meet(ours, theirs)
        kept = one > other if same else np.ones(len(one), dtype=bool)
        pairs.append(one[kept] * len(theirs) + other[kept])
    yield from _compare(np.unique(np.concatenate(pairs)), asked, known, similarity)


def _meet(ours: Words, theirs: Words) -> tuple[Places, Places]:
    """Return the places of those that are in one bucket, of ``theirs`` the first 256 of each."""
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    first = np.searchsorted(ordered, ours, "left")
    met = np.minimum(np.searchsorted(ordered, ours, "right") - first, COMPARED)
    one = np.repeat(np.arange(len(ours)), met)
    within = np.arange(len(one)) - np.repeat(np.cumsum(met) - met, met)
    return one, order[np.repeat(first, met) + within]


def _compare(pairs: Places, asked: _Sketches, known: _Sketches, similarity: float) -> Iterator[tuple[int, int, float]]:
    held, own = -1, set[int]()
    for pair in pairs.tolist():
        one, other = divmod(pair, len(known.bounds) - 1)
        if one != held:
            held, own = one, _read_shingles(asked, one)
        found = _overlap(own, _read_shingles(known, other))
        if found >= similarity - ROUNDING:
            yield one, other, found


def _read_shingles(sketches: _Sketches, place: int) -> set[int]:
    return set(sketches.shingles[sketches.bounds[place] : sketches.bounds[place + 1]].tolist())


def _overlap(one: set[int], other: set[int]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
