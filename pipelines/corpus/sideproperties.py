"""What the files beside a dump say of its articles, looked up by page id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpus.entities import collect_entities
from pipelines.corpus.parts import Part
from pipelines.corpus.properties import PropertySources, collect_properties
from pipelines.corpus.sidefiles import SideFiles
from pipelines.corpus.spill import MEMORY_MEGABYTES, open_spill, quote_path, stream_tables
from pipelines.corpus.tablelinks import write_table_in_degree
from pipelines.corpus.tables import BATCH_ROWS, TableWriter

PROPERTIES: Mapping[str, tuple[pa.DataType, object]] = {
    "qid": (pa.string(), ""),
    "image_free": (pa.string(), ""),
    "image": (pa.string(), ""),
    "is_disambiguation": (pa.bool_(), False),
    "is_set_index": (pa.bool_(), False),
    "sitelinks": (pa.int32(), -1),
    "statements": (pa.int32(), -1),
    "identifiers": (pa.int32(), -1),
    "classes": (pa.list_(pa.string()), []),
    "table_in_degree": (pa.int64(), -1),
}
"""Type of each property, and what stands for an article of which it is not known."""
_COUNTED = ("sitelinks", "statements", "identifiers", "classes")
_PLACED = pa.schema([("page_id", pa.int64()), *((name, PROPERTIES[name][0]) for name in ("qid", *_COUNTED))])


@dataclass(frozen=True, slots=True)
class SideProperties:
    """Tables sorted by ``page_id``, each with some of the properties; none needs to have every article."""

    tables: tuple[Path, ...] = ()

    def take(self, articles: pa.Table) -> pa.Table:
        """Return the properties of some articles, row by row; a later table goes before an earlier one.

        Args:
            articles: with a column ``page_id``; only the stretch of each table that spans these ids is read.
        """
        ids = articles["page_id"].to_numpy()
        columns = {name: _fill(pa.nulls(len(ids), kind), default) for name, (kind, default) in PROPERTIES.items()}
        for path in self.tables if len(ids) else ():
            rows = pq.read_table(path, filters=[("page_id", ">=", int(ids.min())), ("page_id", "<=", int(ids.max()))])
            if not rows.num_rows:
                continue
            known = rows["page_id"].to_numpy()
            places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
            found = pa.array(places, mask=known[places] != ids)
            for name in (name for name in rows.column_names if name in PROPERTIES):
                known_values = rows[name].take(found).cast(PROPERTIES[name][0])
                columns[name] = pc.if_else(known_values.is_valid(), known_values, columns[name])
        return pa.table(columns)


def _fill(column: pa.Array | pa.ChunkedArray, default: object) -> pa.Array | pa.ChunkedArray:
    if isinstance(default, list):  # fill_null does not know lists
        return pc.if_else(column.is_null(), pa.scalar(default, type=column.type), column)
    return pc.fill_null(column, pa.scalar(default, type=column.type))


def collect_side_properties(side: SideFiles, dbname: str, parts: Sequence[Part], scratch: Path) -> SideProperties:
    """Read the files beside a dump once and leave what they say of its articles in tables sorted by page id.

    Args:
        side: the files, any of which may be absent.
        dbname: of the wiki, such as ``enwiki``: whose sitelinks name its articles.
        parts: of the dump; only the titles of articles are read.
        scratch: folder for the tables.
    """
    sources = PropertySources(
        page_props=side.page_props,
        wikidata_pages=side.wikidata_page,
        wikidata_props=side.wikidata_page_props,
        linktarget=side.linktarget,
        categorylinks=side.categorylinks,
        templatelinks=side.templatelinks,
    )
    tables = []
    if sources != PropertySources():
        tables.append(scratch / "properties.parquet")
        collect_properties(sources, tables[0], scratch, MEMORY_MEGABYTES)
    if side.wikidata_entities is not None:
        collect_entities(side.wikidata_entities, scratch / "entities.parquet", dbname or "enwiki")
        tables.append(_place_entities(scratch, parts, tables[:1]))
    if side.pagelinks is not None:
        tables.append(write_table_in_degree(side, scratch))
    return SideProperties(tuple(tables))


def _place_entities(scratch: Path, parts: Sequence[Part], properties: Sequence[Path]) -> Path:
    """Write the entities of Wikidata's dump by page id: found by Qid where page_props has it, else by title."""
    articles = ", ".join(quote_path(part.folder / "articles.parquet") for part in parts)
    known = "SELECT NULL::BIGINT AS page_id, '' AS qid WHERE false"
    if properties:
        known = f"SELECT page_id, qid FROM read_parquet({quote_path(properties[0])})"
    entities = quote_path(scratch / "entities.parquet")
    columns = ", ".join(f"coalesce(q.{name}, t.{name}) AS {name}" for name in ("qid", *_COUNTED))
    query = f"""
        SELECT a.page_id, {columns}
        FROM read_parquet([{articles}]) a
        LEFT JOIN ({known}) p ON p.page_id = a.page_id
        LEFT JOIN read_parquet({entities}) q ON q.qid = p.qid
        LEFT JOIN read_parquet({entities}) t ON t.title = CASE WHEN coalesce(p.qid, '') = '' THEN a.title END
        WHERE q.qid IS NOT NULL OR t.qid IS NOT NULL
        ORDER BY a.page_id, length(coalesce(q.qid, t.qid)), coalesce(q.qid, t.qid)
    """
    with open_spill(scratch) as connection, TableWriter(scratch, "placed", _PLACED) as writer:
        for rows in stream_tables(connection, query, BATCH_ROWS):
            writer.write_table(rows)
    return scratch / "placed.parquet"
