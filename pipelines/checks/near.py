"""Texts that nearly repeat each other, found among many at once.

Two texts are near when the Jaccard similarity of their sets of runs of three words is at least a threshold. MinHashes
with datasketch's hash and permutations, made of many texts in one pass, fall into the buckets of LSH; those that meet
in a bucket are compared exactly, so nothing that is said to be near is not. What is missed is bounded by
:data:`MISSED`.
"""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import ConfigError
from pipelines.names import UNSPACED

SHINGLE: Final = 3
PERMUTATIONS: Final = 400
"""Most permutations: more make longer bands, in which fewer of those meet that are not near."""
MISSED: Final = 0.002
"""Largest share of pairs at the threshold that meet in no bucket; of more alike ones fewer are missed."""
COMPARED: Final = 256
"""Texts of a bucket, the first, that one text is compared with: hostile input costs no more."""
DIGEST: Final = 8
"""Bytes of a shingle's digest: sets are compared by them, and two of 64 bits alike are the same shingle."""
FEW: Final = 4096
"""Pairs up to which all are compared: buckets would cost more."""
AT_ONCE: Final = 2048
"""Texts whose shingles are permuted at once: what they take stays in the processor's cache."""
HELD: Final = 1 << 16
"""Texts whose MinHashes are held at once; of the others their buckets alone."""
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
        self._sketched: Sketches | None = None

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
        asked = Sketches([shingle_text(text) for text in texts], self._similarity)
        found: defaultdict[int, list[Near]] = defaultdict(list)
        for one, other, similarity in find_alike(asked, self._sketch()):
            found[one].append(Near(self._marks[other], similarity))
        return [
            tuple(sorted(found.get(place, ()), key=lambda near: (-near.similarity, near.mark)))
            for place in range(len(texts))
        ]

    def find_pairs(self) -> Iterator[NearPair]:
        """Yield each pair of texts in the index that are near each other, once, in the order they were added."""
        own = self._sketch()
        for one, other, similarity in find_alike(own, own):
            yield NearPair(self._marks[other], self._marks[one], similarity)

    def _sketch(self) -> "Sketches":
        if self._sketched is None:
            self._sketched = Sketches(self._shingled, self._similarity)
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
    return digest_set(map(" ".join, runs))


def digest_set(values: Iterable[str]) -> bytes:
    """Return the digests of values, each once, sorted, 8 bytes each."""
    return b"".join(sorted({hashlib.sha1(each.encode("utf-8", "surrogatepass")).digest()[:DIGEST] for each in values}))


def count_repeated(texts: Iterable[str], similarity: float) -> int:
    """Return how many texts are near one before them."""
    shingled = Counter(map(shingle_text, texts))
    sketches = Sketches(list(shingled), similarity)
    near = {one for one, _, _ in find_alike(sketches, sketches)}
    return shingled.total() - len(shingled) + len(near)


def measure_overlap(one: bytes, other: bytes) -> float:
    """Return the Jaccard similarity of two texts' shingles, as :func:`shingle_text` gives them."""
    return _overlap(_read_digests(one), _read_digests(other))


def make_minhashes(shingled: Sequence[bytes], permutations: int) -> NDArray[np.uint32]:
    """Return datasketch's MinHash (``affine32``, seed 1) of each set, none of them empty: permutations x sets."""
    shingles, bounds = _join_shingles(shingled)
    mixed = _finalise(shingles.astype(np.uint32))
    factors, terms = _load_permutations(permutations)
    made = np.empty((permutations, len(shingled)), dtype=np.uint32)
    for first in range(0, len(shingled), AT_ONCE):
        starts = bounds[:-1][first : first + AT_ONCE]
        own = mixed[starts[0] : bounds[first + len(starts)]]
        for place in range(permutations):
            permuted = own * factors[place] + terms[place]
            made[place, first : first + AT_ONCE] = np.minimum.reduceat(permuted, starts - starts[0])
    return made


@cache
def choose_bands(similarity: float) -> tuple[int, int]:
    """Return bands of LSH and their rows: the longest rows of which enough bands are had to miss few at the threshold.

    Raises:
        ConfigError: if no bands miss so few, of a similarity that says little.
    """
    for rows in range(PERMUTATIONS, 0, -1):
        missed = 1 - similarity**rows
        for bands in range(1, PERMUTATIONS // rows + 1):
            if missed**bands <= MISSED:
                return bands, rows
    raise ConfigError(f"a similarity of {similarity:g} is too low to search by: from 0.02 on it can be")


@cache
def _load_permutations(count: int) -> NDArray[np.uint32]:
    # It brings scipy, whose import takes longer than many a command.
    from datasketch import MinHash

    permutations: NDArray[np.uint32] = MinHash(num_perm=count).permutations
    return permutations


def _finalise(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return MurmurHash3's finaliser of 32 bits, which datasketch mixes hashes by before it permutes them."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


@dataclass(frozen=True)
class Sketches:
    """Sets as they are compared: shingles of texts, or the facts of paths."""

    shingled: Sequence[bytes]
    """Of each set, as :func:`digest_set` gives it."""
    similarity: float
    """From which sets are alike, more than 0 and at most 1."""
    marks: Sequence[Collection[str]] | None = None
    """Of each set: two without one in common are never compared; None compares all."""

    def __len__(self) -> int:
        return len(self.shingled)

    @cached_property
    def buckets(self) -> Words:
        """Return the bucket of each set in each band: bands x sets."""
        bands, rows = choose_bands(self.similarity)
        buckets = np.empty((bands, len(self)), dtype=np.uint64)
        buckets[:] = np.arange(bands, dtype=np.uint64)[:, np.newaxis]
        for first in range(0, len(self), HELD):
            part = slice(first, first + HELD)
            minhashes = make_minhashes(self.shingled[part], bands * rows)
            for place, column in enumerate(minhashes):
                buckets[place // rows, part] = _mix(buckets[place // rows, part], column.astype(np.uint64))
        return buckets

    @cached_property
    def entries(self) -> tuple[Places, Words]:
        """Return the place of each set once for each of its marks, and the marks."""
        places = np.arange(len(self))
        if self.marks is None:
            return places, np.zeros(len(self), dtype=np.uint64)
        digests = [digest_set(each) for each in self.marks]
        counts = [len(each) // DIGEST for each in digests]
        return np.repeat(places, counts), np.frombuffer(b"".join(digests), dtype="<u8")

    def read(self, place: int) -> set[int]:
        """Return one set."""
        return _read_digests(self.shingled[place])


def find_alike(asked: Sketches, known: Sketches) -> Iterator[tuple[int, int, float]]:
    """Yield the places of two sets that are alike, and their similarity, in order.

    Of one collection with itself each pair comes once, the later set first. Few are compared each with each.
    """
    same = asked is known
    pairs = [np.empty(0, dtype=np.int64)]
    (ours, our_marks), (theirs, their_marks) = asked.entries, known.entries
    for our_keys, their_keys in _list_bands(asked, known):
        one, other = _meet(_mix(our_keys[ours], our_marks), None if same else _mix(their_keys[theirs], their_marks))
        one, other = ours[one], theirs[other]
        kept = one > other if same else np.ones(len(one), dtype=bool)
        pairs.append(np.unique(one[kept] * len(known) + other[kept]))
    yield from _compare(np.unique(np.concatenate(pairs)), asked, known)


def _list_bands(asked: Sketches, known: Sketches) -> Iterable[tuple[Words, Words]]:
    """Return the buckets of both in each band; of few sets one bucket of all."""
    if len(asked) * len(known) <= FEW:
        return [(np.zeros(len(asked), dtype=np.uint64), np.zeros(len(known), dtype=np.uint64))]
    return zip(asked.buckets, known.buckets, strict=True)


def _join_shingles(shingled: Sequence[bytes]) -> tuple[Words, Places]:
    bounds = np.zeros(len(shingled) + 1, dtype=np.int64)
    np.cumsum([len(each) // DIGEST for each in shingled], out=bounds[1:])
    return np.frombuffer(b"".join(shingled), dtype="<u8"), bounds


def _mix(one: Words, other: Words) -> Words:
    """Return one number for two; two that meet by chance cost a comparison and change nothing."""
    factor, shift = _MIXED
    mixed = (one ^ (one >> shift)) * factor + other
    return (mixed ^ (mixed >> shift)) * factor


def _meet(ours: Words, theirs: Words | None) -> tuple[Places, Places]:
    """Return the places of those that are in one bucket, of ``theirs``, or our own, the first 256 of each."""
    our_order = np.argsort(ours, kind="stable")
    order = our_order if theirs is None else np.argsort(theirs, kind="stable")
    # Sorted keys are looked up one beside the other: many times as fast as in any order.
    ours = ours[our_order]
    ordered = ours if theirs is None else theirs[order]
    first = np.searchsorted(ordered, ours, "left")
    met = np.minimum(np.searchsorted(ordered, ours, "right") - first, COMPARED)
    some = np.flatnonzero(met > (theirs is None))
    first, met = first[some], met[some]
    one = np.repeat(our_order[some], met)
    within = np.arange(len(one)) - np.repeat(np.cumsum(met) - met, met)
    return one, order[np.repeat(first, met) + within]


def _compare(pairs: Places, asked: Sketches, known: Sketches) -> Iterator[tuple[int, int, float]]:
    held, own = -1, set[int]()
    for pair in pairs.tolist():
        one, other = divmod(pair, len(known))
        if one != held:
            held, own = one, asked.read(one)
        found = _overlap(own, known.read(other))
        if found >= asked.similarity - ROUNDING:
            yield one, other, found


def _read_digests(shingled: bytes) -> set[int]:
    return set(memoryview(shingled).cast("Q"))


def _overlap(one: set[int], other: set[int]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
