"""The link graph of a wiki from its SQL tables alone: pagelinks, page, redirect and, in today's layout, linktarget.

``pagelinks`` also holds the links that templates make (navigation boxes, banners), so an article has more of them here
than in its wikitext. The tables name the target in one of two ways: by title, or by number of a row of ``linktarget``.
A title is kept as the hash of its bytes, as ``titles.hash_title`` makes it; memory holds at most some 90 bytes a page
of the article namespace, redirects included, and the links lie on disk, in files of neighbouring articles.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from pipelines.corpus.linkfiles import LinkFiles, split_links
from pipelines.corpus.manifest import SideFiles
from pipelines.corpus.sqltables import is_by_number, list_columns, read_columns, read_integers, require_titles
from pipelines.corpus.tables import TableWriter
from pipelines.errors import ConfigError, CorruptInput

Ids = NDArray[np.int64]
Hashes = NDArray[np.uint64]

TABLE_IN_DEGREE = pa.schema([("page_id", pa.int64()), ("table_in_degree", pa.int64())])

_UNDERSCORE, _SPACE = b"_ "


@dataclass(frozen=True, slots=True)
class LinkTables:
    """The tables of one wiki, as ``.sql`` or ``.sql.gz``."""

    page: Path
    pagelinks: Path
    redirect: Path | None = None
    """Without it no redirect leads anywhere."""
    linktarget: Path | None = None
    """Needed where ``pagelinks`` has no titles, or not in all rows."""


@dataclass(frozen=True, slots=True)
class TableLinks:
    """Distinct links from article to article, redirects followed, without links to oneself."""

    page_ids: Ids
    """Every article, ascending."""
    in_degree: Ids
    """Number of articles that link to each of ``page_ids``."""
    link_count: int
    redirects: int
    """Pages of the article namespace that are redirects."""
    lost_redirects: int
    """Those that lead to no article: out of the namespace or the wiki, to no page, in a circle, or to nothing known."""
    files: tuple[Path, ...]
    """Of links, by source."""

    def read_links(self) -> Iterator[tuple[Ids, Ids]]:
        """Yield the links as page ids (from, to) in blocks, sorted by both; the files must still be there."""
        for path in self.files:
            sources, targets = split_links(np.load(path))
            yield self.page_ids[sources], self.page_ids[targets]


@dataclass(frozen=True, slots=True)
class _Titles:
    """Titles of the article namespace that are an article or lead to one."""

    page_ids: Ids
    """Every article, ascending; an article's node is its place here."""
    hashes: Hashes
    """Sorted."""
    nodes: NDArray[np.uint32]
    """The article of each hash."""
    redirects: int
    lost_redirects: int


def count_table_links(tables: LinkTables, scratch: Path) -> TableLinks:
    """Count the links between articles that the tables hold.

    The tables are taken at different times: a link from or to a page that ``page`` does not have is left out.

    Args:
        tables: where the tables are.
        scratch: an existing folder for files of links, eight bytes a link.

    Raises:
        ConfigError: a table, a column, or the linktarget that the layout needs is missing, or links name their target
            some by title and some by number.
        CorruptInput: a table is cut short or no table, or two pages have one title.
    """
    titles = _resolve_titles(tables)
    files = LinkFiles(scratch, len(titles.page_ids))
    columns = list_columns(tables.pagelinks, "pagelinks")
    if is_by_number(columns, "pl_title", "pl_target_id", tables.linktarget is not None):
        rows = _read_by_number(tables, titles)
    else:
        rows = _read_by_title(tables, titles, "pl_target_id" in columns)
    for pages, targets in rows:
        sources, known = _find(titles.page_ids, pages)
        known &= sources != targets
        files.add(sources[known], targets[known])
    in_degree = np.zeros(len(titles.page_ids), dtype=np.int64)
    count, paths = 0, files.sort()
    for path in paths:
        links = np.load(path)
        in_degree += np.bincount(split_links(links)[1], minlength=len(in_degree))
        count += len(links)
    return TableLinks(titles.page_ids, in_degree, count, titles.redirects, titles.lost_redirects, tuple(paths))


def write_table_in_degree(side: SideFiles, scratch: Path) -> Path:
    """Write ``table_in_degree.parquet`` (page_id, table_in_degree), one row an article, sorted by page id.

    Args:
        side: with ``pagelinks``, ``page`` and what ``count_table_links`` needs beside them.
        scratch: existing folder of the table, and of the links while they are counted.

    Raises:
        ConfigError, CorruptInput: as ``count_table_links``.
    """
    if side.pagelinks is None or side.page is None:
        missing = "pagelinks" if side.pagelinks is None else "page"
        raise ConfigError(f"no {missing} table; links between articles need both pagelinks and page beside the dump")
    with TemporaryDirectory(dir=scratch, prefix="tablelinks-") as folder:
        tables = LinkTables(side.page, side.pagelinks, side.redirect, side.linktarget)
        links = count_table_links(tables, Path(folder))
    with TableWriter(scratch, "table_in_degree", TABLE_IN_DEGREE) as writer:
        writer.write_columns({"page_id": links.page_ids, "table_in_degree": links.in_degree})
    return scratch / "table_in_degree.parquet"


def hash_titles(titles: pa.BinaryArray) -> Hashes:
    """Return the hash of each title, underscores read as spaces; the same as ``titles.hash_title`` of the text."""
    if not len(titles):
        return np.empty(0, dtype=np.uint64)
    offsets = _offsets(titles)
    letters = np.frombuffer(titles.buffers()[2] or b"", dtype=np.uint8).copy()
    letters[letters == _UNDERSCORE] = _SPACE
    spaced = pa.Array.from_buffers(
        pa.binary(), len(titles), [None, pa.py_buffer(offsets.copy()), pa.py_buffer(letters)]
    )
    digests = map(xxhash.xxh3_64_intdigest, spaced.to_pylist())
    return np.maximum(np.fromiter(digests, dtype=np.uint64, count=len(titles)), np.uint64(1))


def _resolve_titles(tables: LinkTables) -> _Titles:
    ids, hashes, is_redirect = _read_pages(tables.page)
    order = np.argsort(hashes)
    ids, hashes, is_redirect = ids[order], hashes[order], is_redirect[order]
    twins = np.flatnonzero(hashes[1:] == hashes[:-1])
    if len(twins):
        first, second = ids[twins[0]], ids[twins[0] + 1]
        raise CorruptInput(f"{tables.page}: pages {first} and {second} have one title; expected each title once")
    ends = _follow(_read_ends(tables.redirect, ids, hashes, is_redirect))
    # A circle stays where it began: at a redirect.
    found = (ends >= 0) & ~is_redirect[ends]
    page_ids = np.sort(ids[~is_redirect])
    nodes = np.searchsorted(page_ids, ids[ends[found]]).astype(np.uint32)
    return _Titles(page_ids, hashes[found], nodes, int(is_redirect.sum()), int((~found).sum()))


def _read_ends(path: Path | None, ids: Ids, hashes: Hashes, is_redirect: NDArray[np.bool_]) -> Ids:
    """Return for each page the place of the page it leads to: itself for an article, -1 where there is none."""
    ends = np.where(is_redirect, -1, np.arange(len(ids)))
    if path is None:
        return ends
    by_id = np.argsort(ids)
    ordered = ids[by_id]
    for pages, targets in _read_redirects(path):
        rows, known = _find(ordered, pages)
        places, exist = _find(hashes, targets)
        rows, places = by_id[rows[known & exist]], places[known & exist]
        ends[rows[is_redirect[rows]]] = places[is_redirect[rows]]
    return ends


def _follow(ends: Ids) -> Ids:
    """Follow pointers to their ends, twice as far in each round, for as many rounds as the longest chain may need."""
    for _ in range(len(ends).bit_length()):
        further = np.where(ends >= 0, ends[ends], -1)
        if np.array_equal(further, ends):
            break
        ends = further
    return ends


def _read_pages(path: Path) -> tuple[Ids, Hashes, NDArray[np.bool_]]:
    """Return id, title and whether it is a redirect of every page of the article namespace."""
    ids: list[Ids] = [np.empty(0, dtype=np.int64)]
    hashes: list[Hashes] = [np.empty(0, dtype=np.uint64)]
    flags: list[NDArray[np.bool_]] = [np.empty(0, dtype=np.bool_)]
    for block in read_columns(path, "page", ["page_id", "page_namespace", "page_is_redirect"], ["page_title"]):
        page_ids, namespaces, is_redirect = block.integers
        wanted = namespaces == 0
        ids.append(page_ids[wanted])
        hashes.append(hash_titles(_filter(block.texts[0], wanted)))
        flags.append(is_redirect[wanted] != 0)
    return np.concatenate(ids), np.concatenate(hashes), np.concatenate(flags)


def _read_redirects(path: Path) -> Iterator[tuple[Ids, Hashes]]:
    """Yield page id and target of the redirects to the article namespace of this wiki; a section is left aside."""
    for block in read_columns(path, "redirect", ["rd_from", "rd_namespace"], ["rd_title", "rd_interwiki"]):
        pages, namespaces = block.integers
        titles, interwiki = block.texts
        here = np.diff(_offsets(interwiki)) == 0
        wanted = (namespaces == 0) & here
        yield pages[wanted], hash_titles(_filter(titles, wanted))


def _read_by_title(tables: LinkTables, titles: _Titles, has_numbers: bool) -> Iterator[tuple[Ids, Ids]]:
    """Yield page id of the source and node of the target of links between articles, from a layout with titles."""
    columns = ["pl_from", "pl_from_namespace", "pl_namespace"]
    for block in read_columns(tables.pagelinks, "pagelinks", columns, ["pl_title"]):
        if has_numbers:
            require_titles(tables.pagelinks, "pl_title", block.texts[0])
        pages, from_namespaces, namespaces = block.integers
        wanted = (from_namespaces == 0) & (namespaces == 0)
        places, known = _find(titles.hashes, hash_titles(_filter(block.texts[0], wanted)))
        yield pages[wanted][known], titles.nodes[places[known]].astype(np.int64)


def _read_by_number(tables: LinkTables, titles: _Titles) -> Iterator[tuple[Ids, Ids]]:
    """Yield the same from the layout of today."""
    if tables.linktarget is None:
        raise ConfigError(f"{tables.pagelinks} names its targets by number; expected a linktarget table beside it")
    numbers, nodes = _read_targets(tables.linktarget, titles)
    columns = ["pl_from", "pl_from_namespace", "pl_target_id"]
    for pages, from_namespaces, targets in read_integers(tables.pagelinks, "pagelinks", columns):
        wanted = from_namespaces == 0
        places, known = _find(numbers, targets[wanted])
        yield pages[wanted][known], nodes[places[known]].astype(np.int64)


def _read_targets(path: Path, titles: _Titles) -> tuple[Ids, NDArray[np.uint32]]:
    """Return the numbers of link targets that are or lead to an article, ascending, and the articles' nodes."""
    numbers: list[Ids] = [np.empty(0, dtype=np.int64)]
    nodes: list[NDArray[np.uint32]] = [np.empty(0, dtype=np.uint32)]
    for block in read_columns(path, "linktarget", ["lt_id", "lt_namespace"], ["lt_title"]):
        ids, namespaces = block.integers
        wanted = namespaces == 0
        places, known = _find(titles.hashes, hash_titles(_filter(block.texts[0], wanted)))
        numbers.append(ids[wanted][known])
        nodes.append(titles.nodes[places[known]])
    found = np.concatenate(numbers)
    order = np.argsort(found, kind="stable")
    return found[order], np.concatenate(nodes)[order]


def _find(ordered: NDArray[np.generic], wanted: NDArray[np.generic]) -> tuple[Ids, NDArray[np.bool_]]:
    """Return the place of each wanted value in an ordered array, and whether it is there; the place is valid anyway."""
    if not len(ordered):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    # In order, neighbours in memory are looked up one after the other: twice as fast, though they must be sorted first.
    order = np.argsort(wanted)
    places = np.empty(len(wanted), dtype=np.int64)
    places[order] = np.searchsorted(ordered, wanted[order])
    np.minimum(places, len(ordered) - 1, out=places)
    return places, ordered[places] == wanted


def _filter(titles: pa.BinaryArray, wanted: NDArray[np.bool_]) -> pa.BinaryArray:
    return titles.filter(pa.array(wanted))


def _offsets(texts: pa.BinaryArray) -> NDArray[np.int32]:
    return np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
