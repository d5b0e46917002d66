"""What the files beside a dump say of its articles, looked up by page id."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpus.entities import collect_entities
from pipelines.corpus.manifest import BUILDER_VERSION
from pipelines.corpus.parts import Part
from pipelines.corpus.properties import PropertySources, collect_properties, read_matches
from pipelines.corpus.sidefiles import SideFiles
from pipelines.corpus.spill import MEMORY_MEGABYTES, open_spill, quote_path, stream_tables
from pipelines.corpus.tablelinks import write_table_in_degree
from pipelines.corpus.tables import BATCH_ROWS, TableWriter
from pipelines.errors import ConfigError
from pipelines.files import sync_files, write_text
from pipelines.ids import digest_value

SideCounts = dict[str, dict[str, int]]
"""How many rows of each file beside a dump ended where."""

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


def check_side_files(side: SideFiles) -> None:
    """Refuse what cannot be read before a dump is read for hours.

    Raises:
        ConfigError: the table of links lies there without the table of pages.
    """
    if side.pagelinks is not None and side.page is None:
        raise ConfigError(f"{side.pagelinks} needs the page table beside it: add that, or take this one away")


def collect_side_properties(
    side: SideFiles, dbname: str, parts: Sequence[Part], scratch: Path, kept: Path
) -> tuple[SideProperties, SideCounts]:
    """Read the files beside a dump once and leave what they say of its articles in tables sorted by page id.

    Args:
        side: the files, any of which may be absent.
        dbname: of the wiki, such as ``enwiki``: whose sitelinks name its articles.
        parts: of the dump; only the titles of articles are read.
        scratch: folder for what is thrown away.
        kept: folder for tables that a build begun anew need not make again.

    Returns:
        The tables, and how many rows of each file ended where.

    Raises:
        ConfigError: Wikidata's dump lies beside a dump that does not say of which wiki it is.
    """
    tables, counts = [], dict[str, dict[str, int]]()
    sources = PropertySources(
        page_props=side.page_props,
        wikidata_pages=side.wikidata_page,
        wikidata_props=side.wikidata_page_props,
        linktarget=side.linktarget,
        categorylinks=side.categorylinks,
        templatelinks=side.templatelinks,
    )
    if sources != PropertySources():
        files = [getattr(sources, field.name) for field in fields(sources)]
        table, counts["properties"] = make_once(kept, "properties", files, partial(_collect_properties, sources))
        tables.append(table)
    if side.wikidata_entities is not None:
        if not dbname:
            raise ConfigError(f"{side.wikidata_entities}: whose articles? the dump beside it has no <siteinfo>")
        read = partial(_collect_entities, side.wikidata_entities, dbname)
        entities, counts["entities"] = make_once(kept, "entities", [side.wikidata_entities], read)
        tables.append(_place_entities(scratch, parts, entities, tables[:1]))
    if side.pagelinks is not None:
        files = [side.page, side.pagelinks, side.redirect, side.linktarget]
        table, counts["links"] = make_once(kept, "table_in_degree", files, partial(_count_links, side))
        tables.append(table)
    return SideProperties(tuple(tables)), counts


def make_once(
    kept: Path, name: str, files: Iterable[Path | None], make: Callable[[Path], dict[str, int]]
) -> tuple[Path, dict[str, int]]:
    """Return a table that is made from files and the counts of its rows, made now or by a build that was killed later.

    Args:
        kept: folder of such tables.
        name: of the table.
        files: what it is made from; another size or time of change makes another table.
        make: leaves ``<name>.parquet`` in a folder and returns the counts.
    """
    seen = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files if path is not None]
    place = kept / f"{name}-{digest_value([BUILDER_VERSION, seen])[:16]}"
    done = place / "counts.json"
    if not done.is_file():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        counts = make(place)
        sync_files(place)
        write_text(done, json.dumps(counts))
    counts = json.loads(done.read_text())
    return place / f"{name}.parquet", counts


def _collect_properties(sources: PropertySources, place: Path) -> dict[str, int]:
    table = place / "properties.parquet"
    rows = collect_properties(sources, table, place, MEMORY_MEGABYTES)
    return {"pages": rows} | read_matches(table).summarise()


def _collect_entities(dump: Path, dbname: str, place: Path) -> dict[str, int]:
    return collect_entities(dump, place / "entities.parquet", dbname).summarise()


def _count_links(side: SideFiles, place: Path) -> dict[str, int]:
    table = write_table_in_degree(side, place)
    degrees = pq.read_table(table, columns=["table_in_degree"])["table_in_degree"]
    return {"articles": len(degrees), "links": int(pc.sum(degrees).as_py() or 0)}


def _place_entities(scratch: Path, parts: Sequence[Part], made: Path, properties: Sequence[Path]) -> Path:
    """Write the entities of Wikidata's dump by page id: found by Qid where page_props has it, else by title."""
    articles = ", ".join(quote_path(part.folder / "articles.parquet") for part in parts)
    known = "SELECT NULL::BIGINT AS page_id, '' AS qid WHERE false"
    if properties:
        known = f"SELECT page_id, qid FROM read_parquet({quote_path(properties[0])})"
    entities = quote_path(made)
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
