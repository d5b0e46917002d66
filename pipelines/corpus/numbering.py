"""Nodes for titles: articles numbered in the order of the dump, redirects followed to the article they end at.

Everything is held as 64-bit hashes of titles in sorted arrays, about 100 bytes a title at the worst moment of a build.
Two titles of a dump with one hash (a chance of 1 in 100,000 for enwiki's 18 million) are told apart by the titles
themselves, and the later page fails.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.scan import Part
from pipelines.corpus.tables import map_array

Hashes = NDArray[np.uint64]
Nodes = NDArray[np.int64]
Mask = NDArray[np.bool_]

DUPLICATE = "duplicate-page"
COLLISION = "title-hash-collision"
DANGLING = "dangling-redirect"
CYCLE = "redirect-cycle"
_NOWHERE = -1
_SHOWN = 8
"""Members of a circle of redirects that its detail names."""


@dataclass(frozen=True, slots=True)
class TitleIndex:
    """What each title of the dump leads to, redirects followed."""

    hashes: Hashes
    """Sorted, each once."""
    nodes: Nodes
    """Node by place in ``hashes``."""

    def find(self, wanted: Hashes) -> Nodes:
        """Return the node of each hash, -1 where no title of the dump has it."""
        if not len(self.hashes):
            return np.full(len(wanted), _NOWHERE, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return np.where(self.hashes[places] == wanted, self.nodes[places], _NOWHERE)


@dataclass(frozen=True, slots=True)
class Numbering:
    """Which pages of which part are nodes, and where redirects end."""

    article_count: int
    article_nodes: tuple[Nodes, ...]
    """For each part, the node of each of its articles, -1 for one that is left out."""
    redirect_nodes: tuple[Nodes, ...]
    """For each part, the node each of its redirects ends at, -1 for one that ends nowhere or is left out."""
    redirect_reasons: tuple[dict[int, tuple[str, str]], ...]
    """For each part, (reason, detail) of the redirects that run in a circle, by row."""
    refused: tuple[tuple[dict[int, str], dict[int, str]], ...]
    """For each part, the error of the articles and of the redirects that are left out as duplicates, by row."""
    titles: TitleIndex


@dataclass(frozen=True, slots=True)
class _Pages:
    """All articles and redirects in the order of the dump: 33 bytes a page."""

    hashes: Hashes
    page_ids: NDArray[np.int64]
    is_article: Mask
    targets: Hashes
    """Hash of a redirect's target; 0 for articles."""
    parts: NDArray[np.int32]
    rows: NDArray[np.int32]
    """Row in the part's table of articles or of redirects."""


def number_pages(parts: Sequence[Part]) -> Numbering:
    """Number the articles of all parts, and follow the redirects."""
    pages = _gather_pages(parts)
    refused = _find_duplicates(parts, pages)
    kept = np.ones(len(pages.hashes), dtype=bool)
    kept[list(refused)] = False
    nodes = np.full(len(kept), _NOWHERE, dtype=np.int64)
    articles = kept & pages.is_article
    nodes[articles] = np.arange(np.count_nonzero(articles))
    ends, cyclic = _follow_redirects(pages, kept, nodes)
    found = kept & (ends >= 0)
    order = np.argsort(pages.hashes[found], kind="stable")
    return Numbering(
        article_count=int(np.count_nonzero(articles)),
        article_nodes=_cut_by_part(pages, ends, len(parts), articles=True),
        redirect_nodes=_cut_by_part(pages, ends, len(parts), articles=False),
        redirect_reasons=_explain_cycles(parts, pages, cyclic),
        refused=_sort_refused(pages, refused, len(parts)),
        titles=TitleIndex(pages.hashes[found][order], ends[found][order]),
    )


def _make_room(count: int) -> _Pages:
    return _Pages(
        hashes=np.empty(count, dtype=np.uint64),
        page_ids=np.empty(count, dtype=np.int64),
        is_article=np.empty(count, dtype=np.bool_),
        targets=np.empty(count, dtype=np.uint64),
        parts=np.empty(count, dtype=np.int32),
        rows=np.empty(count, dtype=np.int32),
    )


def _gather_pages(parts: Sequence[Part]) -> _Pages:
    sizes = [part.counts.articles + part.counts.redirects for part in parts]
    pages = _make_room(sum(sizes))
    start = 0
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        for field, values in zip(fields(pages), _read_pages(number, part), strict=True):
            getattr(pages, field.name)[start : start + size] = values
        start += size
    return pages


def _read_pages(number: int, part: Part) -> tuple[NDArray[np.generic], ...]:
    """Return a part's columns for :class:`_Pages`, articles and redirects merged in the order of the dump."""
    ordinals, ids, hashes = part.read_numbers("articles", ["ordinal", "page_id", "title_hash"])
    others, other_ids, other_hashes, targets = part.read_numbers(
        "redirects", ["ordinal", "page_id", "title_hash", "target_hash"]
    )
    order = np.argsort(np.concatenate([ordinals, others]), kind="stable")
    count, other_count = len(ordinals), len(others)
    return tuple(
        np.concatenate([first, second])[order]
        for first, second in (
            (hashes, other_hashes),
            (ids, other_ids),
            (np.ones(count, dtype=bool), np.zeros(other_count, dtype=bool)),
            (np.zeros(count, dtype=np.uint64), targets),
            (np.full(count, number, dtype=np.int32), np.full(other_count, number, dtype=np.int32)),
            (np.arange(count, dtype=np.int32), np.arange(other_count, dtype=np.int32)),
        )
    )


def _find_duplicates(parts: Sequence[Part], pages: _Pages) -> dict[int, str]:
    """Return the error of each page whose title or page id an earlier page of the dump has, by place."""
    refused = dict.fromkeys(_list_repeats(pages.page_ids).tolist(), DUPLICATE)
    repeats = _list_repeats(pages.hashes)
    if len(repeats):
        same = np.flatnonzero(np.isin(pages.hashes, pages.hashes[repeats]))
        first: dict[int, str] = {}
        for place, title in zip(same.tolist(), _read_titles(parts, pages, same), strict=True):
            if first.setdefault(int(pages.hashes[place]), title) != title:
                refused[place] = COLLISION
        for place in repeats.tolist():
            refused.setdefault(place, DUPLICATE)
    return refused


def _list_repeats(values: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the places whose value stands at an earlier place too."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.sort(order[1:][ordered[1:] == ordered[:-1]])


def _read_titles(parts: Sequence[Part], pages: _Pages, places: NDArray[np.intp]) -> list[str]:
    """Return the titles of some pages; each part's table is read once."""
    found: dict[int, str] = {}
    for number in np.unique(pages.parts[places]).tolist():
        for table, is_article in (("articles", True), ("redirects", False)):
            chosen = places[(pages.parts[places] == number) & (pages.is_article[places] == is_article)]
            titles = parts[number].read_columns(table, ["title"])["title"].take(pages.rows[chosen])
            found.update(zip(chosen.tolist(), titles.to_pylist(), strict=True))
    return [found[place] for place in places.tolist()]


def _follow_redirects(pages: _Pages, kept: Mask, nodes: Nodes) -> tuple[Nodes, NDArray[np.intp]]:
    """Return the node each page leads to, -1 for none, and the places of redirects that run in a circle.

    Each round doubles the number of steps taken, so chains of any length end in a few rounds.
    """
    index = np.flatnonzero(kept)
    order = index[np.argsort(pages.hashes[index], kind="stable")]
    ordered = pages.hashes[order]
    places = np.arange(len(kept))
    moving = np.flatnonzero(kept & ~pages.is_article)
    if len(order):
        found = np.minimum(np.searchsorted(ordered, pages.targets[moving]), len(order) - 1)
        places[moving] = np.where(ordered[found] == pages.targets[moving], order[found], moving)
    dangling = np.zeros(len(kept), dtype=bool)
    dangling[moving] = places[moving] == moving
    itself = moving[pages.targets[moving] == pages.hashes[moving]]
    dangling[itself] = False
    for _ in range(int(np.ceil(np.log2(max(len(moving), 1)))) + 1):
        places[moving] = places[places[moving]]
    ends = np.where(kept, nodes[places], _NOWHERE)
    lost = moving[(ends[moving] < 0) & ~dangling[places[moving]]]
    return ends, lost


def _cut_by_part(pages: _Pages, ends: Nodes, count: int, articles: bool) -> tuple[Nodes, ...]:
    chosen = pages.is_article if articles else ~pages.is_article
    # Rows of a part stand in the order of the dump, and so do the pages.
    edges = np.searchsorted(pages.parts[chosen], np.arange(count + 1))
    values = ends[chosen]
    return tuple(values[start:end] for start, end in pairwise(edges.tolist()))


def _explain_cycles(
    parts: Sequence[Part], pages: _Pages, cyclic: NDArray[np.intp]
) -> tuple[dict[int, tuple[str, str]], ...]:
    """Return (reason, detail) of the redirects that run in a circle; there are few, so their titles are read."""
    numbers = pages.hashes[cyclic].tolist()
    titles = dict(zip(numbers, _read_titles(parts, pages, cyclic), strict=True))
    targets = dict(zip(numbers, pages.targets[cyclic].tolist(), strict=True))
    explained: tuple[dict[int, tuple[str, str]], ...] = tuple({} for _ in parts)
    for place, number in zip(cyclic.tolist(), numbers, strict=True):
        detail = " > ".join(titles[member] for member in _walk_circle(number, targets))
        explained[int(pages.parts[place])][int(pages.rows[place])] = (CYCLE, detail)
    return explained


def _walk_circle(start: int, targets: dict[int, int]) -> Iterator[int]:
    """Yield the redirects from one on until a title comes again, that one included, at most eight."""
    seen: set[int] = set()
    current = start
    while current not in seen and len(seen) < _SHOWN:
        yield current
        seen.add(current)
        current = targets[current]
    if current in seen:
        yield current


def _sort_refused(
    pages: _Pages, refused: dict[int, str], count: int
) -> tuple[tuple[dict[int, str], dict[int, str]], ...]:
    sorted_out: tuple[tuple[dict[int, str], dict[int, str]], ...] = tuple(({}, {}) for _ in range(count))
    for place, error in refused.items():
        side = 0 if pages.is_article[place] else 1
        sorted_out[int(pages.parts[place])][side][int(pages.rows[place])] = error
    return sorted_out


def write_titles(folder: Path, titles: TitleIndex) -> None:
    """Write the index of titles as two arrays that are mapped into memory: 16 bytes a title."""
    np.save(folder / "title-hashes.npy", titles.hashes)
    np.save(folder / "title-nodes.npy", titles.nodes)


def open_titles(folder: Path) -> TitleIndex:
    """Map the index of titles."""
    return TitleIndex(map_array(folder / "title-hashes.npy"), map_array(folder / "title-nodes.npy"))
