"""What SQL tables say of each page of a wiki: its Qid, lead image and kind, and how much Wikidata knows of it.

Each table is streamed once into a small one of what is wanted; these are joined and sorted on disk. All are optional,
and they are taken at different times, so that a page or an entity may be missing on either side: then it is not known.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpus.propertytables import (
    CATEGORY_LINKS,
    COUNTS,
    ENTITY_PAGES,
    FLAGS,
    PROPERTIES,
    TEMPLATE_LINKS,
    read_counts,
    read_entity_pages,
    read_flags,
    read_properties,
)
from pipelines.corpus.spill import open_spill, quote_path, stream_tables
from pipelines.corpus.tables import BATCH_ROWS, TableWriter
from pipelines.errors import CorruptInput

PAGE_PROPERTIES = pa.schema(
    [
        ("page_id", pa.int64()),
        ("qid", pa.string()),
        ("image_free", pa.string()),
        ("image", pa.string()),
        ("is_disambiguation", pa.bool_()),
        ("is_set_index", pa.bool_()),
        ("sitelinks", pa.int32()),
        ("statements", pa.int32()),
        ("identifiers", pa.int32()),
    ]
)
_MATCHES = b"synth.matches"
_MAX_PROPERTIES = 1 << 16
_NUMBER = "CAST(substr(value, 2) AS BIGINT)"
_TEXTS = ("qid", "image_free", "image")
_COUNTED = ("sitelinks", "statements", "identifiers")


@dataclass(frozen=True, slots=True)
class PropertySources:
    """Where the tables are, as ``.sql`` or ``.sql.gz``; None for what is absent."""

    page_props: Path | None = None
    wikidata_pages: Path | None = None
    """Wikidata's ``page``; it and the next are of use together only."""
    wikidata_props: Path | None = None
    linktarget: Path | None = None
    """Needed where categorylinks or templatelinks have no titles."""
    categorylinks: Path | None = None
    templatelinks: Path | None = None


@dataclass(frozen=True, slots=True)
class Matches:
    """How well tables of different days fit one another."""

    qids: int
    """Pages with a Qid."""
    qids_without_counts: int
    """Those of which Wikidata's tables have no count, which may be because they are absent."""

    def summarise(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


def collect_properties(sources: PropertySources, out: Path, scratch: Path, memory_mb: int) -> int:
    """Write a Parquet file with one row for each page that has any property, sorted by page id.

    The columns are ``PAGE_PROPERTIES``: text that is not known is empty, a count -1. The same tables
    give the same bytes.

    Args:
        sources: the tables.
        out: the file.
        scratch: an existing folder for intermediate tables and what does not fit memory.
        memory_mb: what joins and sorts may hold; reading the tables takes some 200 MB besides.

    Returns:
        Number of rows.

    Raises:
        ConfigError: a table has other columns than a table of that name, the linktarget it needs is missing, or
            ``memory_mb`` is too little to sort with (256 is enough for 40 M entities).
        CorruptInput: a table is cut short or no table.
        Unavailable: the disk is too full to spill to.
    """
    wanted = scratch / "wanted-properties.parquet"
    counts = scratch / "wanted-counts.parquet"
    _write_tables(wanted, PROPERTIES, _read_wiki(sources))
    rows = _write_pages(sources, out, (wanted, counts), memory_mb)
    wanted.unlink()
    counts.unlink()
    return rows


def read_matches(path: Path) -> Matches:
    """Return how well the tables fitted that a file of ``collect_properties`` was made of."""
    return Matches(**json.loads(pq.read_schema(path).metadata[_MATCHES]))


def _write_pages(sources: PropertySources, out: Path, tables: tuple[Path, Path], memory_mb: int) -> int:
    """Join the properties wanted with the counts, both beside which there is room to spill, and write the result."""
    wanted, counts = tables
    with open_spill(wanted.parent, memory_mb) as connection:
        _join_counts(connection, sources, wanted, counts)
        schema = PAGE_PROPERTIES.with_metadata({_MATCHES: json.dumps(_count_matches(connection, wanted, counts))})
        with TableWriter(out.parent, out.stem, schema) as writer:
            for rows in _cut_between_pages(stream_tables(connection, _make_query(wanted, counts), BATCH_ROWS)):
                writer.write_table(_gather_pages(rows).replace_schema_metadata(schema.metadata))
    return writer.rows


def _read_wiki(sources: PropertySources) -> Iterator[pa.Table]:
    if sources.page_props is not None:
        yield from read_properties(sources.page_props)
    if sources.categorylinks is not None:
        yield from read_flags(sources.categorylinks, CATEGORY_LINKS, sources.linktarget)
    if sources.templatelinks is not None:
        yield from read_flags(sources.templatelinks, TEMPLATE_LINKS, sources.linktarget)


def _write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    with TableWriter(path.parent, path.stem, schema) as writer:
        for table in tables:
            writer.write_table(table)


def _join_counts(connection: duckdb.DuckDBPyConnection, sources: PropertySources, wanted: Path, out: Path) -> None:
    """Write the counts of the wiki's own Qids, by the number in the Qid."""
    entities, counts = out.with_name("wikidata-entities.parquet"), out.with_name("wikidata-counts.parquet")
    pages, props = sources.wikidata_pages, sources.wikidata_props
    is_whole = pages is not None and props is not None
    _write_tables(entities, ENTITY_PAGES, read_entity_pages(pages) if is_whole and pages is not None else ())
    _write_tables(counts, COUNTS, read_counts(props) if is_whole and props is not None else ())
    columns = ", ".join(f"max(value) FILTER (WHERE c.name = '{name}') AS {name}" for name in _COUNTED)
    connection.execute(f"""
        COPY (
            SELECT i.number, {columns}
            FROM read_parquet({quote_path(counts)}) c
            JOIN read_parquet({quote_path(entities)}) i ON i.page_id = c.page_id
            WHERE i.number IN (SELECT {_NUMBER} FROM read_parquet({quote_path(wanted)}) WHERE name = 'qid')
            GROUP BY i.number
        ) TO {quote_path(out)} (FORMAT parquet)
    """).fetchall()
    entities.unlink()
    counts.unlink()


def _count_matches(connection: duckdb.DuckDBPyConnection, wanted: Path, counts: Path) -> dict[str, int]:
    ((qids, without),) = connection.execute(f"""
        SELECT count(*), count(*) FILTER (WHERE c.number IS NULL)
        FROM (SELECT {_NUMBER} AS number FROM read_parquet({quote_path(wanted)}) WHERE name = 'qid') w
        LEFT JOIN read_parquet({quote_path(counts)}) c ON c.number = w.number
    """).fetchall()
    return {"qids": qids, "qids_without_counts": without}


def _make_query(wanted: Path, counts: Path) -> str:
    """Return the query of all properties in order, counts beside each Qid."""
    counted = ", ".join(f"c.{name}" for name in _COUNTED)
    return f"""
        SELECT w.page_id, w.name, w.value, {counted}
        FROM read_parquet({quote_path(wanted)}) w
        LEFT JOIN read_parquet({quote_path(counts)}) c ON c.number = CASE WHEN w.name = 'qid' THEN {_NUMBER} END
        ORDER BY w.page_id, w.name, w.value
    """


def _cut_between_pages(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Cut sorted rows anew, so that the rows of a page are in one table."""
    held: pa.Table | None = None
    for table in tables:
        rows = table if held is None else pa.concat_tables([held, table])
        ids = rows["page_id"].to_numpy()
        cut = int(np.searchsorted(ids, ids[-1]))
        held = rows.slice(cut)
        if held.num_rows > _MAX_PROPERTIES:
            raise CorruptInput(f"page {ids[-1]} has over {_MAX_PROPERTIES} properties; expected each property once")
        if cut:
            yield rows.slice(0, cut)
    if held is not None:
        yield held


def _gather_pages(rows: pa.Table) -> pa.Table:
    """Make one row a page of its sorted properties; of several of one name the last counts."""
    ids = rows["page_id"].to_numpy()
    pages, starts = np.unique(ids, return_index=True)
    columns: dict[str, object] = {"page_id": pages}
    for name in _TEXTS:
        columns[name] = pc.fill_null(_take_last(rows, name, "value", starts), "")
    for flag in FLAGS:
        columns[f"is_{flag}"] = _take_last(rows, flag, "value", starts).is_valid()
    for name in _COUNTED:
        columns[name] = pc.fill_null(_take_last(rows, "qid", name, starts), -1)
    return pa.table(columns)


def _take_last(rows: pa.Table, name: str, column: str, starts: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return a column of each page's last property of a name, null where it has none."""
    places = np.flatnonzero(pc.equal(rows["name"], name).to_numpy())
    found = np.full(len(starts), -1)
    found[np.searchsorted(starts, places, side="right") - 1] = places
    return rows[column].take(pa.array(found, mask=found < 0))
