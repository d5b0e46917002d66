"""Other names of an article, from its title, redirects, lead and the texts of links to it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.corpus.content import NumberedParts
from pipelines.corpus.parts import Part
from pipelines.corpus.spill import open_spill, quote_path, stream_tables
from pipelines.corpus.tables import ALIASES, BATCH_ROWS, OffsetCounter, TableWriter
from pipelines.corpus.titles import strip_qualifier

SOURCES = ("title", "title-base", "redirect", "bold", "anchor")
"""Where an alias may come from; one found twice keeps the earlier source."""

_NAMES = pa.schema([("node", pa.uint32()), ("alias", pa.string()), ("source", pa.uint8())])
_ANCHORS = pa.schema(
    [("node", pa.uint32()), ("alias", pa.string()), ("pages", pa.uint32()), ("in_infobox", pa.bool_())]
)
_SINGLE_LETTERS = "(0, 2)"
"""Places in ``SOURCES`` whose names may be a single character: a title is a name whatever its length."""


def write_aliases(folder: Path, scratch: Path, numbered: NumberedParts, anchor_pages: int) -> int:
    """Write the table of aliases, sorted by node and alias, each alias of a node once; returns their number.

    Args:
        folder: of the corpus.
        scratch: for what does not fit memory.
        numbered: the parts of the dump.
        anchor_pages: an anchor text counts when this many articles, or one infobox, use it for the article.
    """
    _write_names(scratch, numbered)
    offsets = OffsetCounter(numbered.numbering.article_count)
    with open_spill(scratch) as connection, TableWriter(folder, "aliases", ALIASES, mapped=True) as writer:
        for rows in stream_tables(connection, _make_query(scratch, anchor_pages), BATCH_ROWS):
            names = pa.array(SOURCES).take(rows["rank"].combine_chunks())
            writer.write_table(rows.append_column("source", names))
            offsets.add(rows["node"].to_numpy())
    offsets.write(folder, "aliases")
    return writer.rows


def _make_query(scratch: Path, anchor_pages: int) -> str:
    names, anchors = (quote_path(scratch / f"{name}.parquet") for name in ("names", "anchors"))
    return f"""
        SELECT node, alias, min(source) AS rank FROM (
            SELECT node, alias, source FROM read_parquet({names})
            UNION ALL
            SELECT node, alias, {SOURCES.index("anchor")} AS source FROM read_parquet({anchors})
            GROUP BY node, alias
            HAVING sum(pages) >= 1 AND (sum(pages) >= {int(anchor_pages)} OR bool_or(in_infobox))
        )
        WHERE length(alias) > 1 OR source IN {_SINGLE_LETTERS}
        GROUP BY node, alias ORDER BY node, alias
    """


def _write_names(scratch: Path, numbered: NumberedParts) -> None:
    """Write what may be a name of which article, unsorted."""
    numbering = numbered.numbering
    with TableWriter(scratch, "names", _NAMES) as names, TableWriter(scratch, "anchors", _ANCHORS) as anchors:
        for number, part, nodes in numbered.iterate():
            for table in _list_own_names(part, nodes):
                names.write_table(table)
            titles = part.read_columns("redirects", ["title"])["title"]
            names.write_table(_make_names(numbering.redirect_nodes[number], titles, "redirect"))
            for rows in part.read_batches("anchors"):
                found = numbering.titles.find(rows["target_hash"].to_numpy())
                columns = [pa.array(np.maximum(found, 0)), rows["anchor"], rows["pages"], rows["in_infobox"]]
                anchors.write_table(pa.table(columns, names=_ANCHORS.names).filter(pa.array(found >= 0)))


def _list_own_names(part: Part, nodes: NDArray[np.int64]) -> Iterator[pa.Table]:
    rows = part.read_columns("articles", ["title", "bold"])
    titles = rows["title"].combine_chunks()
    yield _make_names(nodes, titles, "title")
    yield _make_names(
        nodes, pa.array([strip_qualifier(title) for title in titles.to_pylist()], pa.string()), "title-base"
    )
    bold = rows["bold"].combine_chunks()
    yield _make_names(nodes[pc.list_parent_indices(bold).to_numpy()], pc.list_flatten(bold), "bold")


def _make_names(nodes: NDArray[np.int64], names: pa.Array | pa.ChunkedArray, source: str) -> pa.Table:
    kept = pa.array(nodes >= 0)
    sources = np.full(len(nodes), SOURCES.index(source), dtype=np.uint8)
    return pa.table([pa.array(np.maximum(nodes, 0)), names, pa.array(sources)], names=_NAMES.names).filter(kept)
