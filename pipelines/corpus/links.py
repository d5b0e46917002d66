"""Article links of many pages as arrays: the hot path of reading a dump.

Links are looked for in UTF-8 bytes, in many pages at once, and their targets become 64-bit title hashes by way of a
table of targets seen before. What is found is exactly what ``find_links`` and ``TitleRules.resolve`` find page by page.

Every ``[[`` that no third bracket follows is a candidate, and no link holds another candidate, neither in its target
nor in its anchor. So the regular expression yields one result a candidate, in order, and where the candidates stand is
read off the bytes by numpy, without a match object a link.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from pipelines.corpus.dump import unescape_xml
from pipelines.corpus.markup import blank_ignored
from pipelines.corpus.titles import MAX_TITLE_BYTES, NO_ARTICLE, TitleRules, hash_article
from pipelines.corpus.wikitext import show_anchor, trail_letters

SEPARATOR = b"[[\n"
"""Stands between joined pages: it ends any link left open, and is a link itself to nothing."""
_MISSING = 1

_BATCH_BYTES = 1 << 20
_MAX_TARGETS = 1 << 19  # about 100 MB
_MAX_KEPT_BYTES = 1 << 10
_TARGET = rb"([^\[\]{}|\n]++)"
_ANCHOR = rb"[^\[\]]*+(?:(?:\[(?!\[)[^\[\]]*+\](?=[^\]]|\]\])|\[(?!\[)|\](?!\]))[^\[\]]*+)*+"
# A target on a line of its own that normalising would leave alone but for its first letter, if its spaces are single:
# no colon, underscore, entity or fragment; beyond ASCII only letters that compose with nothing, the dash and the quote.
_PLAIN = re.compile(
    rb"^[A-Za-z0-9(][A-Za-z0-9 (),'!?.-]*+(?:(?:[\xc3-\xc5][\x80-\xbf]|\xe2\x80[\x93\x99])[A-Za-z0-9 (),'!?.-]*+)*+$",
    re.MULTILINE,
)
FIND_TARGETS = re.compile(rb"\[\[(?!\[)(?:" + _TARGET + rb"(?:\]\]|\|" + _ANCHOR + rb"\]\]))?").findall
"""Finds the raw target of each candidate of ``find_candidates`` in joined pages; empty where there is no link."""

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LinkBlock:
    """The links between articles of some pages, in order of reading."""

    sources: NDArray[np.uint32]
    """As given to ``add_page``."""
    target_hashes: NDArray[np.uint64]
    """``hash_title`` of the normalised title in the article namespace."""
    positions: NDArray[np.uint32]
    """Character offset of the ``[[`` in the page's text."""
    anchors: dict[tuple[int, str], int]
    """Number of pages that use an anchor text for a target, by (target hash, anchor text); empty when not kept."""


class _Hashes(dict[bytes, int]):
    """Hashes by raw target; what is asked for and absent is listed, to be worked out together."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: list[bytes] = []

    def __missing__(self, raw: bytes) -> int:
        self.missing.append(raw)
        return _MISSING

    def look_up(self, targets: Sequence[bytes]) -> NDArray[np.uint64]:
        return np.fromiter(map(self.__getitem__, targets), np.uint64, len(targets))


class TargetHashes:
    """Title hashes of raw link targets in UTF-8, worked out when first asked for; it forgets all when it is full."""

    def __init__(self, rules: TitleRules, is_escaped: bool) -> None:
        self._rules = rules
        self._is_escaped = is_escaped
        self._hashes = _Hashes()
        self._capitalises = rules.capitalise("i") == "I"

    def hash_all(self, targets: Sequence[bytes]) -> NDArray[np.uint64]:
        """Return the hash of each target, ``NO_ARTICLE`` for what is no article of this wiki."""
        hashes = self._hashes.look_up(targets)
        if self._hashes.missing:
            missing, self._hashes.missing = self._hashes.missing, []
            self._add(set(missing))
            places = np.flatnonzero(hashes == _MISSING)
            if len(places) == len(missing):
                hashes[places] = self._hashes.look_up(missing)
            else:  # a title has that very hash
                hashes = self._hashes.look_up(targets)
            for raw in {raw for raw in missing if len(raw) > _MAX_KEPT_BYTES}:
                del self._hashes[raw]
        if len(self._hashes) > _MAX_TARGETS:
            self._hashes.clear()
        return hashes

    def _add(self, targets: set[bytes]) -> None:
        """Work out the hashes of new targets, the plain ones together."""
        lines = b"\n".join(targets)
        plain = _PLAIN.findall(lines)
        if (
            b"  " in lines
            or b" \n" in lines
            or lines.endswith(b" ")
            or max(map(len, plain), default=0) > MAX_TITLE_BYTES
        ):
            plain = [line for line in plain if len(line) <= MAX_TITLE_BYTES and b" ".join(line.split()) == line]
        plain = plain if self._capitalises else []
        titles = [line if line[0] < 0x61 else line[:1].upper() + line[1:] for line in plain]
        digests = [digest or 1 for digest in map(xxh3_64_intdigest, titles)]  # as hash_title
        self._hashes.update(zip(plain, digests, strict=True))
        for raw in targets.difference(plain):
            self._hashes[raw] = self._hash(raw)

    def _hash(self, raw: bytes) -> int:
        text = unescape_xml(raw) if self._is_escaped else raw.decode("utf-8", "surrogatepass")
        if "<" in text or ">" in text:
            return NO_ARTICLE
        return hash_article(self._rules.resolve(text))


class LinkReader:
    """Collects the article links of pages; pages are gathered and read many at a time."""

    def __init__(self, rules: TitleRules, keep_anchors: bool) -> None:
        self._hashes = TargetHashes(rules, is_escaped=False)
        self._anchors = _AnchorCounter(rules, self._hashes) if keep_anchors else None
        self._sources: list[int] = []
        self._texts: list[bytes] = []
        self._size = 0
        self._blocks: list[tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32]]] = []

    def add_page(self, source: int, text: str) -> None:
        """Take the text of one page; ``source`` is what its links will be filed under."""
        page = blank_ignored(text).encode("utf-8", "surrogatepass")
        self._sources.append(source)
        self._texts.append(page)
        self._size += len(page)
        if self._size >= _BATCH_BYTES:
            self._read()

    def take(self) -> LinkBlock:
        """Return the links of all pages since the last call, and forget them."""
        self._read()
        blocks, self._blocks = self._blocks, []
        sources, hashes, positions = zip(*blocks, strict=True) if blocks else ((), (), ())
        return LinkBlock(
            np.concatenate([np.empty(0, np.uint32), *sources]),
            np.concatenate([np.empty(0, np.uint64), *hashes]),
            np.concatenate([np.empty(0, np.uint32), *positions]),
            self._anchors.take() if self._anchors is not None else {},
        )

    def _read(self) -> None:
        if not self._texts:
            return
        xml = SEPARATOR.join(self._texts)
        starts = find_starts(self._texts)
        hashes = self._anchors.count(xml, starts) if self._anchors else self._hashes.hash_all(FIND_TARGETS(xml))
        codes = np.frombuffer(xml, np.uint8)
        kept = np.flatnonzero(hashes)
        places = find_candidates(codes)[kept]
        pages = np.searchsorted(starts, places, "right") - 1
        inside = find_continuations(codes)
        positions = places - starts[pages] - count_between(inside, starts, pages, places)
        sources = np.array(self._sources, np.uint32)[pages]
        self._blocks.append((sources, hashes[kept], positions.astype(np.uint32)))
        self._sources, self._texts, self._size = [], [], 0


class _AnchorCounter:
    """Counts the pages that use an anchor text for a target."""

    def __init__(self, rules: TitleRules, hashes: TargetHashes) -> None:
        trail = "|".join(trail_letters(rules.language)).encode()
        pattern = rb"\[\[(?!\[)(?:" + _TARGET + rb"(?:\|(" + _ANCHOR + rb"))?\]\]((?:" + trail + rb")*+))?"
        self._find = re.compile(pattern).findall
        self._hashes = hashes
        self._shown: dict[tuple[bytes, bytes, bytes], tuple[int, str]] = {}
        self._counts: Counter[tuple[int, str]] = Counter()

    def count(self, xml: bytes, starts: Offsets) -> NDArray[np.uint64]:
        """Count the anchors of joined pages and return the target hash of each candidate."""
        found = self._find(xml)
        missing = set(found).difference(self._shown)
        if len(self._shown) + len(missing) > _MAX_TARGETS:
            self._shown.clear()
            missing = set(found)
        self._add(list(missing))
        shown = [self._shown[link] for link in found]
        for link in missing:
            if sum(map(len, link)) > _MAX_KEPT_BYTES:
                del self._shown[link]
        places = find_candidates(np.frombuffer(xml, np.uint8))
        pages = np.searchsorted(starts, places, "right").tolist()
        self._counts.update(link for _, link in dict.fromkeys(zip(pages, shown, strict=True)))
        return np.fromiter((digest for digest, _ in shown), np.uint64, len(shown))

    def take(self) -> dict[tuple[int, str], int]:
        """Return the counts since the last call."""
        counts, self._counts = self._counts, Counter()
        return {link: pages for link, pages in counts.items() if link[0] != NO_ARTICLE}

    def _add(self, links: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        hashes = self._hashes.hash_all([link[0] for link in links]).tolist()
        for link, digest in zip(links, hashes, strict=True):
            parts = [part.decode("utf-8", "surrogatepass") for part in link]
            self._shown[link] = (digest, show_anchor(*parts) if digest != NO_ARTICLE else "")


def find_candidates(codes: NDArray[np.uint8]) -> Offsets:
    """Return the offset of every ``[[`` that no third ``[`` follows, ascending."""
    opens = np.flatnonzero(codes == 0x5B)
    is_pair = np.diff(opens, append=-1) == 1
    is_pair[:-1] &= ~is_pair[1:]
    candidates: Offsets = opens[is_pair]
    return candidates


def find_continuations(codes: NDArray[np.uint8]) -> Offsets:
    """Return the offset of every byte that only continues a character of UTF-8, ascending."""
    return np.flatnonzero(codes.view(np.int8) < -64)


def find_starts(texts: Iterable[bytes]) -> Offsets:
    """Return where each text starts once they are joined by ``SEPARATOR``."""
    lengths = np.fromiter(map(len, texts), np.int64)
    return np.concatenate([[0], np.cumsum(lengths[:-1] + len(SEPARATOR))])


def count_between(marks: Offsets, starts: Offsets, pages: Offsets, places: Offsets) -> Offsets:
    """Return how many of the ascending ``marks`` lie between the start of a place's page and the place."""
    counts: Offsets = np.searchsorted(marks, places) - np.searchsorted(marks, starts)[pages]
    return counts
