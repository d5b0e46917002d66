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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import ConfigError
from pipelines.names import UNSPACED

SHINGLE: Final = 3
PERMUTATIONS: Final = 400
"""Most permutations: more make longer bands, in which fewer of those meet that are not near."""
MISSED: Final = 0.002
"""Largest share of pairs at the threshold that meet in no bucket; of more alike ones fewer are missed.

Of a bucket with more than :data:`COMPARED` different texts more may be missed, but never those with the same runs.
"""
COMPARED: Final = 256
"""Different texts of a bucket, the first, that one text is compared with, and the most found of one text that comes
many times: hostile input costs no more."""
DIGEST: Final = 8
"""Bytes of a shingle's digest: sets are compared by them, and two of 64 bits alike are the same shingle."""
FEW: Final = 4096
"""Pairs of different texts up to which all are compared: buckets would cost more."""
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
    marks: Sequence[bytes] | None = None
    """Digests of each set's marks: two without one in common are never compared; None compares all."""

    def __len__(self) -> int:
        return len(self.shingled)

    @cached_property
    def different(self) -> tuple[list[bytes], Places]:
        """Return the different sets, each once in order, and of each set its place among them."""
        numbers: dict[bytes, int] = {}
        places = [numbers.setdefault(each, len(numbers)) for each in self.shingled]
        return list(numbers), np.array(places, dtype=np.int64)

    @cached_property
    def buckets(self) -> Words:
        """Return the bucket of each different set in each band: bands x sets."""
        shingled, _ = self.different
        bands, rows = choose_bands(self.similarity)
        buckets = np.empty((bands, len(shingled)), dtype=np.uint64)
        buckets[:] = np.arange(bands, dtype=np.uint64)[:, np.newaxis]
        for first in range(0, len(shingled), HELD):
            part = slice(first, first + HELD)
            minhashes = make_minhashes(shingled[part], bands * rows)
            for place, column in enumerate(minhashes):
                buckets[place // rows, part] = _mix(buckets[place // rows, part], column.astype(np.uint64))
        return buckets

    @cached_property
    def entries(self) -> tuple[Places, Words]:
        """Return the place of each set once for each of its marks, and the marks."""
        places = np.arange(len(self))
        if self.marks is None:
            return places, np.zeros(len(self), dtype=np.uint64)
        counts = [len(each) // DIGEST for each in self.marks]
        return np.repeat(places, counts), np.frombuffer(b"".join(self.marks), dtype="<u8")

    @cached_property
    def keys(self) -> Words:
        """Return, for each entry, one number of its different set and its mark."""
        places, marks = self.entries
        return _mix(self.different[1][places].astype(np.uint64), marks)


def find_alike(asked: Sketches, known: Sketches) -> Iterator[tuple[int, int, float]]:
    """Yield the places of two sets that are alike, and their similarity, in order.

    Of one collection with itself each pair comes once, the later set first. Different sets are compared once however
    often they come, few of them each with each. Of more than 256 equal sets with one mark the first 256 are found.
    """
    same = asked is known
    ours, theirs, similarities = _compare(_list_candidates(asked, known), asked, known)
    if same:
        apart = ours != theirs
        ours, theirs = np.concatenate([ours, theirs[apart]]), np.concatenate([theirs, ours[apart]])
        similarities = np.concatenate([similarities, similarities[apart]])
    places, marks = asked.entries
    entry, row = _meet(asked.different[1][places], ours, len(ours))
    within, other = _meet(_mix(theirs[row].astype(np.uint64), marks[entry]), known.keys, COMPARED)
    one, other = places[entry[within]], known.entries[0][other]
    kept = one > other if same else np.ones(len(one), dtype=bool)
    pairs, first = np.unique(one[kept] * len(known) + other[kept], return_index=True)
    of = len(known)
    for pair, similarity in zip(pairs.tolist(), similarities[row[within][kept][first]].tolist(), strict=True):
        yield *divmod(pair, of), similarity


def _list_candidates(asked: Sketches, known: Sketches) -> Places:
    """Return pairs of different sets to compare, each as one number: all of few, else the equal and those that meet."""
    (shingled, _), (others, _) = asked.different, known.different
    if len(shingled) * len(others) <= FEW:
        return _drop_repeated(np.arange(len(shingled) * len(others)), asked, known)
    known_as = {each: place for place, each in enumerate(others)}
    equal = [place * len(others) + known_as[each] for place, each in enumerate(shingled) if each in known_as]
    pairs = _drop_repeated(np.array(equal, dtype=np.int64), asked, known)
    (ours, our_marks), (theirs, their_marks) = _list_entries(asked), _list_entries(known)
    for our_buckets, their_buckets in zip(asked.buckets, known.buckets, strict=True):
        one, other = _meet(_mix(our_buckets[ours], our_marks), _mix(their_buckets[theirs], their_marks), COMPARED)
        met = ours[one] * len(others) + theirs[other]
        pairs = np.union1d(pairs, met if asked is not known else met[ours[one] > theirs[other]])
    return pairs


def _drop_repeated(pairs: Places, asked: Sketches, known: Sketches) -> Places:
    """Return, of one collection with itself, each pair once, and a set with itself if it comes more than once."""
    if asked is not known:
        return pairs
    shingled, numbers = asked.different
    one, other = np.divmod(pairs, max(len(shingled), 1))
    repeated = np.bincount(numbers, minlength=len(shingled))[one] > 1
    kept: Places = pairs[(one > other) | ((one == other) & repeated)]
    return kept


def _list_entries(sketches: Sketches) -> tuple[Places, Words]:
    """Return each different set once for each mark that it comes with, and the marks."""
    (places, marks), (_, numbers) = sketches.entries, sketches.different
    _, first = np.unique(sketches.keys, return_index=True)
    first.sort()
    return numbers[places[first]], marks[first]


def _join_shingles(shingled: Sequence[bytes]) -> tuple[Words, Places]:
    bounds = np.zeros(len(shingled) + 1, dtype=np.int64)
    np.cumsum([len(each) // DIGEST for each in shingled], out=bounds[1:])
    return np.frombuffer(b"".join(shingled), dtype="<u8"), bounds


def _mix(one: Words, other: Words) -> Words:
    """Return one number for two; two that meet by chance cost a comparison and change nothing."""
    factor, shift = _MIXED
    mixed = (one ^ (one >> shift)) * factor + other
    return (mixed ^ (mixed >> shift)) * factor


def _meet(ours: NDArray[Any], theirs: NDArray[Any], most: int) -> tuple[Places, Places]:
    """Return the places of those that have one key, of ``theirs`` the first ``most`` of each."""
    our_order, order = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
    # Sorted keys are looked up one beside the other: many times as fast as in any order.
    ours, theirs = ours[our_order], theirs[order]
    first = np.searchsorted(theirs, ours, "left")
    met = np.minimum(np.searchsorted(theirs, ours, "right") - first, most)
    one = np.repeat(our_order, met)
    within = np.arange(len(one)) - np.repeat(np.cumsum(met) - met, met)
    return one, order[np.repeat(first, met) + within]


def _compare(pairs: Places, asked: Sketches, known: Sketches) -> tuple[Places, Places, NDArray[np.float64]]:
    """Return those pairs of different sets that are alike, and their similarities."""
    (shingled, _), (others, _) = asked.different, known.different
    alike, similarities = list[int](), list[float]()
    held, own = -1, set[int]()
    for pair in pairs.tolist():
        one, other = divmod(pair, len(others))
        if one != held:
            held, own = one, _read_digests(shingled[one])
        found = _overlap(own, _read_digests(others[other]))
        if found >= asked.similarity - ROUNDING:
            alike.append(pair)
            similarities.append(found)
    ours, theirs = np.divmod(np.array(alike, dtype=np.int64), max(len(others), 1))
    return ours, theirs, np.array(similarities, dtype=np.float64)


def _read_digests(shingled: bytes) -> set[int]:
    return set(memoryview(shingled).cast("Q"))


def _overlap(one: set[int], other: set[int]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
