"""Nodes for titles: articles numbered in the order of the dump, redirects followed to the article they end at.

Everything is held as 64-bit hashes of titles in sorted arrays, about 100 bytes a title at the worst moment of a build.
Of two pages with one hash (for two titles of enwiki's 18 million a chance of 1 in 100,000) the later one fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.tables import map_array

if TYPE_CHECKING:
    from pipelines.corpus.scan import Part

Hashes = NDArray[np.uint64]
Nodes = NDArray[np.int64]
Mask = NDArray[np.bool_]

DUPLICATE = "duplicate-page"
DANGLING = "dangling-redirect"
CYCLE = "redirect-cycle"
_NOWHERE = -1


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
class NumberedPart:
    """A part of the dump and what became of its pages; rows are those of its tables."""

    part: "Part"
    nodes: Nodes
    """Node of each of its articles, -1 for a refused one."""
    redirect_nodes: Nodes
    """Node that each of its redirects ends at, -1 for a refused one and one that leads to no article."""
    refused_articles: list[int]
    """Rows of pages that have the id or the title of an earlier one."""
    refused_redirects: list[int]
    cycles: list[int]
    """Rows of redirects that lead round in a circle."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """Which pages of a dump are nodes, and where its redirects end."""

    article_count: int
    parts: tuple[NumberedPart, ...]
    titles: TitleIndex


@dataclass(frozen=True, slots=True)
class _Pages:
    hashes: Hashes
    page_ids: NDArray[np.int64]
    is_article: Mask
    targets: Hashes
    """Hash of a redirect's target; 0 for articles."""
    parts: NDArray[np.int32]
    rows: NDArray[np.int32]
    """Row in the part's table of articles or of redirects."""


def number_pages(parts: "Sequence[Part]") -> Numbering:
    """Number the articles of all parts, and follow the redirects."""
    columns = zip(*(_read_pages(number, part) for number, part in enumerate(parts)), strict=True)
    pages = _Pages(*(np.concatenate(values) for values in columns))
    refused = np.union1d(_list_repeats(pages.page_ids), _list_repeats(pages.hashes))
    kept = np.ones(len(pages.hashes), dtype=bool)
    kept[refused] = False
    nodes = np.full(len(kept), _NOWHERE, dtype=np.int64)
    articles = kept & pages.is_article
    nodes[articles] = np.arange(np.count_nonzero(articles))
    ends, cyclic = _follow_redirects(pages, kept, nodes)
    found = kept & (ends >= 0)
    order = np.argsort(pages.hashes[found], kind="stable")
    numbered = tuple(
        NumberedPart(part, article_nodes, redirect_nodes, [], [], [])
        for part, article_nodes, redirect_nodes in zip(
            parts,
            _cut_by_part(pages, ends, len(parts), pages.is_article),
            _cut_by_part(pages, ends, len(parts), ~pages.is_article),
            strict=True,
        )
    )
    for place in refused.tolist():
        part = numbered[pages.parts[place]]
        (part.refused_articles if pages.is_article[place] else part.refused_redirects).append(int(pages.rows[place]))
    for place in cyclic.tolist():
        numbered[pages.parts[place]].cycles.append(int(pages.rows[place]))
    titles = TitleIndex(pages.hashes[found][order], ends[found][order])
    return Numbering(int(np.count_nonzero(articles)), numbered, titles)


def _read_pages(number: int, part: "Part") -> tuple[NDArray[Any], ...]:
    columns = ("ordinal", "page_id", "title_hash", "target_hash")
    articles = part.read_columns("articles", columns[:3])
    redirects = part.read_columns("redirects", columns)
    ordinals, ids, hashes = (articles[name].to_numpy() for name in columns[:3])
    others, other_ids, other_hashes, targets = (redirects[name].to_numpy() for name in columns)
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


def _list_repeats(values: NDArray[np.generic]) -> NDArray[np.intp]:
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.sort(order[1:][ordered[1:] == ordered[:-1]])


def _follow_redirects(pages: _Pages, kept: Mask, nodes: Nodes) -> tuple[Nodes, NDArray[np.intp]]:
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


def _cut_by_part(pages: _Pages, ends: Nodes, count: int, chosen: Mask) -> list[Nodes]:
    # Rows of a part stand in the order of the dump, and so do the pages.
    edges = np.searchsorted(pages.parts[chosen], np.arange(1, count))
    return np.split(ends[chosen], edges)


def write_titles(folder: Path, titles: TitleIndex) -> None:
    """Write the index of titles as two arrays that are mapped into memory: 16 bytes a title."""
    np.save(folder / "title-hashes.npy", titles.hashes)
    np.save(folder / "title-nodes.npy", titles.nodes)


def open_titles(folder: Path) -> TitleIndex:
    """Map the index of titles."""
    return TitleIndex(map_array(folder / "title-hashes.npy"), map_array(folder / "title-nodes.npy"))
