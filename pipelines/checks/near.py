"""Texts and sets that nearly repeat each other, found among many at once.

Two sets are near when their Jaccard similarity is at least a threshold; a text is the set of its runs of three words.
datasketch's LSH proposes pairs and each is compared exactly, so nothing that is said to be near is not.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from pipelines.errors import ConfigError
from pipelines.names import UNSPACED

SHINGLE: Final = 3
PERMUTATIONS: Final = 400
MISSED: Final = 0.002
"""Largest share of pairs at the threshold that LSH may miss; more alike ones are missed less often."""
COMPARED: Final = 256
"""Most candidates compared with one set, and most equal sets found for one: hostile input costs no more."""
DIGEST: Final = 8
FEW: Final = 4096
"""Pairs up to which all are compared."""
ROUNDING: Final = 1e-9
_LETTER = UNSPACED.pattern.removesuffix("+")
_WORD_OR_LETTER = re.compile(rf"{_LETTER}|(?:(?!{_LETTER})\w)+")


def shingle_text(text: str) -> bytes:
    """Return the digests of a text's runs of three words, without case; fewer words are one run."""
    words = _WORD_OR_LETTER.findall(unicodedata.normalize("NFKC", text).casefold())
    return digest_set(
        map(" ".join, zip(*(words[at:] for at in range(SHINGLE)), strict=False) if words[2:] else [words])
    )


def digest_set(values: Iterable[str]) -> bytes:
    """Return the digests of values, each once, sorted, 8 bytes each; the first four are datasketch's hash."""
    return b"".join(sorted({hashlib.sha1(each.encode("utf-8", "surrogatepass")).digest()[:DIGEST] for each in values}))


@cache
def choose_bands(similarity: float) -> tuple[int, int]:
    """Return bands of LSH and their rows: the longest rows of which enough bands miss few at the threshold."""
    for rows in range(PERMUTATIONS, 0, -1):
        for bands in range(2, PERMUTATIONS // rows + 1):
            if (1 - similarity**rows) ** bands <= MISSED:
                return bands, rows
    raise ConfigError(f"a similarity of {similarity:g} is too low to search by: from 0.02 on it can be")


@dataclass(frozen=True)
class Sketches:
    """Sets to compare, each as :func:`digest_set` gives it; those without a mark in common are never compared."""

    shingled: Sequence[bytes]
    similarity: float
    marks: Sequence[bytes] | None = None

    @cached_property
    def places(self) -> dict[bytes, dict[bytes, list[int]]]:
        """Return the places of each different set by its marks."""
        found: defaultdict[bytes, defaultdict[bytes, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, each in enumerate(self.shingled):
            for mark in split_digests(self.marks[place]) if self.marks else {b""}:
                found[each][mark].append(place)
        return dict(found)

    @cached_property
    def minhashes(self) -> dict[bytes, Any]:
        """Return datasketch's MinHash of each different set."""
        from datasketch import MinHash  # it brings scipy, whose import takes longer than many a command

        bands, rows = choose_bands(self.similarity)
        sets = [[each[at : at + 4] for at in range(0, len(each), DIGEST)] for each in self.places]
        return dict(zip(self.places, MinHash.bulk(sets, num_perm=bands * rows, hashfunc=_read_hash), strict=True))

    @cached_property
    def index(self) -> Any:  # noqa: ANN401 - datasketch has no types
        """Return datasketch's LSH over the different sets."""
        from datasketch import MinHashLSH

        bands, rows = choose_bands(self.similarity)
        index = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
        with index.insertion_session() as session:
            for each, minhash in self.minhashes.items():
                session.insert(each, minhash)
        return index


def split_digests(joined: bytes) -> frozenset[bytes]:
    """Return digests one by one."""
    return frozenset(joined[at : at + DIGEST] for at in range(0, len(joined), DIGEST))


def _read_hash(digest: bytes) -> int:
    return int.from_bytes(digest, "little")


def find_alike(asked: Sketches, known: Sketches) -> Iterator[tuple[int, int, float]]:
    """Yield the places of two sets that are alike, and their similarity, in order.

    Of one collection with itself each pair comes once, the later set first.
    """
    few = len(asked.places) * len(known.places) <= FEW
    alike: dict[tuple[int, int], float] = {}
    for one, marked in asked.places.items():
        others = known.places if few else {one, *sorted(known.index.query(asked.minhashes[one]))[:COMPARED]}
        own = split_digests(one)
        for other in others:
            theirs = split_digests(other)
            shared = len(own & theirs)
            similarity = shared / (len(own) + len(theirs) - shared)
            if similarity < asked.similarity - ROUNDING:
                continue
            for mark, places in marked.items():
                found = known.places.get(other, {}).get(mark, [])[:COMPARED]
                alike |= {(a, b): similarity for a in places for b in found if asked is not known or a > b}
    yield from ((one, other, alike[one, other]) for one, other in sorted(alike))
