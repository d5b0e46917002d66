"""Properties of articles from the files beside a dump, by page id: Qid, lead image, kind, and counts of Wikidata.

Each SQL table is streamed once into a small one of the wanted columns; these are joined and sorted on disk. Wikidata's
JSON dump gives counts, identifiers, classes and statements of every entity that has an article on one wiki. All files
are optional and taken at different times, so a page or an entity may be missing on either side; its property is then
unknown.

The JSON dump's first line is ``[``, its last ``]``, and each line between is one entity followed by a comma, written
without spaces. An entity without an article is recognised by its bytes and never parsed; quotes inside a JSON string
are escaped, so the patterns cannot occur in a label. Memory holds one line and one row group.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpus.manifest import BUILDER_VERSION, SideFiles
from pipelines.corpus.scan import Part
from pipelines.corpus.sqltables import BAD_PACKING, LONGEST_LINE, Block, list_columns, open_packed, read_columns
from pipelines.corpus.statements import STATED, choose_best, read_statements
from pipelines.corpus.tables import (
    BATCH_ROWS,
    MEMORY_MEGABYTES,
    TableWriter,
    cut_groups,
    open_spill,
    scan_files,
    stream_tables,
)
from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import sync_files, write_text
from pipelines.ids import digest_value

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
}
"""Type of each property, and its value for an article of which it is not known."""
_COUNTED = ("sitelinks", "statements", "identifiers")
PAGE_PROPERTIES = pa.schema(
    [("page_id", pa.int64()), *((name, kind) for name, (kind, _) in PROPERTIES.items() if name != "classes")]
)
ENTITIES = pa.schema(
    [
        ("qid", pa.string()),
        ("title", pa.string()),  # of the article, with spaces
        ("label", pa.string()),  # in the wiki's language, or empty
        ("sitelinks", pa.int32()),  # on all projects of Wikimedia
        ("statements", pa.int32()),  # deprecated ones and identifiers included
        ("identifiers", pa.int32()),  # statements whose values are identifiers in other databases
        ("classes", pa.list_(pa.string())),  # Qids of P31 with the best rank, as wdt:P31
    ]
)

_NAMED = pa.schema([("page_id", pa.int64()), ("name", pa.string()), ("value", pa.string())])
_ENTITY_PAGES = pa.schema([("page_id", pa.int64()), ("number", pa.int64())])
_COUNTS = pa.schema([("page_id", pa.int64()), ("name", pa.string()), ("value", pa.int32())])
_PLACED = pa.schema([("page_id", pa.int64()), *((name, PROPERTIES[name][0]) for name in ("qid", *_COUNTED, "classes"))])
_PROPERTY_NAMES = {
    b"wikibase_item": "qid",
    b"page_image_free": "image_free",
    b"page_image": "image",
    b"disambiguation": "disambiguation",
}
_COUNT_NAMES = {b"wb-sitelinks": "sitelinks", b"wb-claims": "statements", b"wb-identifiers": "identifiers"}
_TABLE_QID = "^Q[1-9][0-9]{0,17}$"
_COUNT = "^[0-9]{1,9}$"
_CATEGORY = 14
_CATEGORIES: Mapping[str, tuple[bytes, ...]] = {
    "disambiguation": (b"All_disambiguation_pages", b"All_article_disambiguation_pages"),
    "set_index": (b"All_set_index_articles",),
}
"""Tracking categories of English Wikipedia by flag; every disambiguation and set index template adds its own."""
_MAX_PROPERTIES = 1 << 16
_NUMBER = "CAST(substr(value, 2) AS BIGINT)"

SideCounts = dict[str, dict[str, int]]
"""How many rows of each file beside a dump ended where."""


@dataclass(frozen=True, slots=True)
class SideProperties:
    """Tables sorted by ``page_id``, each with some of the properties; a table need not have every article."""

    tables: tuple[Path, ...] = ()
    stated: Path | None = None
    """Table of ``statements.STATED``; None without Wikidata's JSON dump."""

    def take(self, articles: pa.Table) -> pa.Table:
        """Return the properties of some articles, row by row; a later table goes before an earlier one."""
        ids = articles["page_id"].to_numpy()
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            name: pa.array([default] * len(ids), type=kind) for name, (kind, default) in PROPERTIES.items()
        }
        for path in self.tables if len(ids) else ():
            rows = pq.read_table(path, filters=[("page_id", ">=", int(ids.min())), ("page_id", "<=", int(ids.max()))])
            if not rows.num_rows:
                continue
            known = rows["page_id"].to_numpy()
            places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
            found = pa.array(places, mask=known[places] != ids)
            for name in (name for name in rows.column_names if name in PROPERTIES):
                values = rows[name].take(found).cast(PROPERTIES[name][0])
                columns[name] = pc.if_else(values.is_valid(), values, columns[name])
        return pa.table(columns)


def collect_side_properties(
    side: SideFiles, dbname: str, parts: Sequence[Part], scratch: Path, kept: Path
) -> tuple[SideProperties, SideCounts]:
    """Read the files beside a dump once and write the properties of its articles to tables sorted by page id."""
    tables, counts, stated = [], SideCounts(), None
    files = [side.page_props, side.wikidata_page, side.wikidata_page_props, side.linktarget, side.categorylinks]
    if any(files):
        table, counts["properties"] = make_once(kept, "properties", files, partial(collect_properties, side))
        tables.append(table)
    if side.wikidata_entities is not None:
        if not dbname:
            raise ConfigError(
                f"{side.wikidata_entities} cannot be matched: the dump beside it has no <siteinfo> that names its wiki"
            )
        read = partial(collect_entities, side.wikidata_entities, site=dbname)
        entities, counts["entities"] = make_once(kept, "entities", [side.wikidata_entities], read)
        tables.append(_place_entities(scratch, parts, entities, tables[:1]))
        stated = entities.with_name("stated.parquet")
    return SideProperties(tuple(tables), stated), counts


def read_labels(side: SideProperties, scratch: Path) -> dict[str, str]:
    """Return names of articles' classes in the wiki's language, by Qid: those of classes that have an article there."""
    if side.stated is None:
        return {}
    table = scan_files(side.stated.with_name("entities.parquet"))
    with open_spill(scratch) as connection:
        rows = connection.execute(f"""
            SELECT qid, min(label) FROM {table}
            WHERE label <> '' AND qid IN (SELECT unnest(classes) FROM {table}) GROUP BY qid
        """).fetchall()
    return dict(rows)


def make_once(
    kept: Path, name: str, files: Iterable[Path | None], make: Callable[[Path], dict[str, int]]
) -> tuple[Path, dict[str, int]]:
    """Return a table that is made from files, and the counts of its rows; reuse what a killed build has made."""
    seen = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files if path is not None]
    place = kept / f"{name}-{digest_value([BUILDER_VERSION, seen])[:16]}"
    done = place / "counts.json"
    if not done.is_file():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        counts = make(place)
        sync_files(place)
        write_text(done, json.dumps(counts))
    return place / f"{name}.parquet", json.loads(done.read_text())


def _place_entities(scratch: Path, parts: Sequence[Part], made: Path, properties: Sequence[Path]) -> Path:
    articles = scan_files(*(part.folder / "articles.parquet" for part in parts))
    known = "SELECT NULL::BIGINT AS page_id, '' AS qid WHERE false"
    if properties:
        known = f"SELECT page_id, qid FROM {scan_files(properties[0])}"
    entities = scan_files(made)
    columns = ", ".join(f"coalesce(q.{name}, t.{name}) AS {name}" for name in _PLACED.names[1:])
    query = f"""
        SELECT a.page_id, {columns}
        FROM {articles} a
        LEFT JOIN ({known}) p ON p.page_id = a.page_id
        LEFT JOIN {entities} q ON q.qid = p.qid
        LEFT JOIN {entities} t ON t.title = CASE WHEN coalesce(p.qid, '') = '' THEN a.title END
        WHERE q.qid IS NOT NULL OR t.qid IS NOT NULL
        ORDER BY a.page_id, length(coalesce(q.qid, t.qid)), coalesce(q.qid, t.qid)
    """
    with open_spill(scratch) as connection, TableWriter(scratch, "placed", _PLACED) as writer:
        for rows in stream_tables(connection, query, BATCH_ROWS):
            writer.write_table(rows)
    return scratch / "placed.parquet"


# Properties of pages, from SQL tables


def collect_properties(side: SideFiles, place: Path, memory_mb: int = MEMORY_MEGABYTES) -> dict[str, int]:
    """Write ``properties.parquet``: one row for each page that has any property, sorted by page id.

    Unknown text is empty, an unknown count -1. The same tables give the same bytes.
    """
    wanted, entities, counts = (place / f"{name}.parquet" for name in ("named", "entity-pages", "counts"))
    _write_tables(wanted, _NAMED, _read_wiki(side))
    pages, props = side.wikidata_page, side.wikidata_page_props
    _write_tables(entities, _ENTITY_PAGES, _read_entity_pages(pages) if pages and props else ())
    _write_tables(counts, _COUNTS, _read_counts(props) if pages and props else ())
    highest = ", ".join(f"max(value) FILTER (WHERE c.name = '{name}') AS {name}" for name in _COUNTED)
    with (
        open_spill(place, memory_mb) as connection,
        TableWriter(place, "properties", PAGE_PROPERTIES) as writer,
    ):
        for name, path in (("named", wanted), ("entity_pages", entities), ("counts", counts)):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {scan_files(path)}")
        connection.execute(f"""
            CREATE TABLE counted AS SELECT i.number, {highest}
            FROM counts c JOIN entity_pages i ON i.page_id = c.page_id
            WHERE i.number IN (SELECT {_NUMBER} FROM named WHERE name = 'qid')
            GROUP BY i.number
        """)
        ((qids, without),) = connection.execute(f"""
            SELECT count(*), count(*) FILTER (WHERE c.number IS NULL)
            FROM (SELECT {_NUMBER} AS number FROM named WHERE name = 'qid') w
            LEFT JOIN counted c ON c.number = w.number
        """).fetchall()
        query = f"""
            SELECT w.page_id, w.name, w.value, {", ".join(f"c.{name}" for name in _COUNTED)}
            FROM named w
            LEFT JOIN counted c ON c.number = CASE WHEN w.name = 'qid' THEN {_NUMBER} END
            ORDER BY w.page_id, w.name, w.value
        """
        for rows in cut_groups(stream_tables(connection, query, BATCH_ROWS), "page_id", _MAX_PROPERTIES):
            writer.write_table(_gather_pages(rows))
    for path in (wanted, entities, counts):
        path.unlink()
    return {"pages": writer.rows, "qids": qids, "qids_without_counts": without}


def _write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    with TableWriter(path.parent, path.stem, schema) as writer:
        for table in tables:
            writer.write_table(table)


def _read_wiki(side: SideFiles) -> Iterator[pa.Table]:
    if side.page_props is not None:
        for pages, names, values in _read_page_props(side.page_props, _PROPERTY_NAMES):
            texts = _decode(pc.replace_substring(values, b"_", b" "))
            fits = pc.or_(pc.not_equal(names, "qid"), pc.match_substring_regex(texts, _TABLE_QID))
            yield pa.table([pages, names, texts], schema=_NAMED).filter(fits)
    if side.categorylinks is not None:
        yield from _read_flags(side.categorylinks, side.linktarget)


def _read_counts(path: Path) -> Iterator[pa.Table]:
    for pages, names, values in _read_page_props(path, _COUNT_NAMES):
        fits = pc.match_substring_regex(values, _COUNT)
        numbers = values.filter(fits).cast(pa.string()).cast(pa.int32())
        yield pa.table([pages.filter(fits), names.filter(fits), numbers], schema=_COUNTS)


def _read_entity_pages(path: Path) -> Iterator[pa.Table]:
    for block in read_columns(path, "page", ["page_id", "page_namespace"], ["page_title"]):
        fits = pc.and_(pa.array(block.integers[1] == 0), pc.match_substring_regex(block.texts[0], _TABLE_QID))
        numbers = pc.binary_replace_slice(block.texts[0].filter(fits), 0, 1, b"").cast(pa.string()).cast(pa.int64())
        yield pa.table([pa.array(block.integers[0]).filter(fits), numbers], schema=_ENTITY_PAGES)


def _read_page_props(path: Path, names: Mapping[bytes, str]) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    wanted = pa.array(list(names), type=pa.binary())
    ours = pa.array(list(names.values()))
    for block in read_columns(path, "page_props", ["pp_page"], ["pp_propname", "pp_value"]):
        places = pc.index_in(block.texts[0], value_set=wanted)
        fits = pc.and_(places.is_valid(), block.texts[1].is_valid())
        yield pa.array(block.integers[0]).filter(fits), ours.take(places.filter(fits)), block.texts[1].filter(fits)


def _read_flags(path: Path, linktarget: Path | None) -> Iterator[pa.Table]:
    columns = list_columns(path, "categorylinks")
    # Between the layouts a number may be NULL beside a title; once it is required, the title may be empty.
    by_title = "cl_to" in columns and (linktarget is None or columns.get("cl_target_id", True))
    if not by_title and linktarget is None:
        raise ConfigError(f"{path} names its targets by number; expected a linktarget table beside it")
    numbers: dict[str, list[int]] = {flag: [] for flag in _CATEGORIES}
    for block in read_columns(linktarget, "linktarget", ["lt_id", "lt_namespace"], ["lt_title"]) if linktarget else ():
        for flag, titles in _CATEGORIES.items():
            numbers[flag] += block.integers[0][(block.integers[1] == _CATEGORY) & _match(block, titles)].tolist()
    targets = ([], ["cl_to"]) if by_title else (["cl_target_id"], [])
    for block in read_columns(path, "categorylinks", ["cl_from", *targets[0]], targets[1]):
        if by_title and not pc.all(pc.greater(pc.fill_null(pc.binary_length(block.texts[0]), 0), 0)).as_py():
            raise ConfigError(
                f"{path} has rows without cl_to, which need numbers: expected a linktarget table beside it"
            )
        for flag, titles in _CATEGORIES.items():
            member = _match(block, titles) if by_title else np.isin(block.integers[1], numbers[flag])
            pages = block.integers[0][member]
            if len(pages):
                yield pa.table([pages, [flag] * len(pages), [""] * len(pages)], schema=_NAMED)


def _match(block: Block, titles: Sequence[bytes]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_in(block.texts[0], pa.array(titles, pa.binary())).to_numpy(zero_copy_only=False)
    return found


def _decode(values: pa.BinaryArray) -> pa.StringArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in values.to_pylist()])


def _gather_pages(rows: pa.Table) -> pa.Table:
    pages, starts = np.unique(rows["page_id"].to_numpy(), return_index=True)

    def take_last(name: str, column: str) -> pa.ChunkedArray:
        places = np.flatnonzero(pc.equal(rows["name"], name).to_numpy())
        found = np.full(len(starts), -1)
        found[np.searchsorted(starts, places, side="right") - 1] = places
        return rows[column].take(pa.array(found, mask=found < 0))

    columns: dict[str, object] = {"page_id": pages}
    columns |= {name: pc.fill_null(take_last(name, "value"), "") for name in ("qid", "image_free", "image")}
    columns |= {f"is_{flag}": take_last(flag, "value").is_valid() for flag in _CATEGORIES}
    columns |= {name: pc.fill_null(take_last("qid", name), -1) for name in _COUNTED}
    return pa.table(columns)


# Entities, from Wikidata's JSON dump

_BATCH = 10_000
_COMPACT = re.compile(rb'\{"\w+":\S')
_QID = re.compile(r"Q[1-9][0-9]{0,8}")
ENTITY_COUNTS = ("lines", "kept", "without_article", "failed")
"""Where the dump's lines went: ``lines = kept + without_article + failed``."""


def collect_entities(dump: Path, place: Path, site: str = "enwiki") -> dict[str, int]:
    """Write ``entities.parquet``: one row for each entity that has an article on a wiki, in the order of the dump.

    Beside it ``stated.parquet`` holds the entities' statements, with the columns of ``statements.STATED``.

    A dump takes days to write, so that an entity can be in it twice, of which the first counts, and two entities can
    name one article, of which both are written.
    """
    counts = Counter(dict.fromkeys(ENTITY_COUNTS, 0))
    entities = _read_entities(dump, site, counts)
    with TableWriter(place, "entities", ENTITIES) as writer, TableWriter(place, "stated", STATED) as stated:
        while batch := list(islice(entities, _BATCH)):
            statements = [row for entity in batch for row in entity.pop("stated")]
            stated.write_table(pa.Table.from_pylist(statements, schema=STATED))
            writer.write_table(pa.Table.from_pylist(batch, schema=ENTITIES))
    return dict(counts)


def read_entity(line: bytes, site: str) -> dict[str, Any]:
    """Return a row of ``ENTITIES`` from an entity's line without the comma, and as ``stated`` those of its statements.

    Sitelinks and statements are counted as bytes: exact, and ten times as fast as a JSON parser.
    """
    entity: dict[str, Any] = orjson.loads(line)
    if not _QID.fullmatch(entity["id"]):
        raise ValueError(f"id {entity['id']!r} is no Qid")
    claims = entity["claims"] or {}  # an empty map is written as an empty list
    labels = entity["labels"] or {}
    language = site.removesuffix("wiki").replace("_", "-")
    title = entity["sitelinks"][site]["title"]
    label = labels.get(language, {}).get("value", "")
    if not isinstance(title, str) or not isinstance(label, str):
        raise TypeError("title or label is not text")
    return {
        "qid": entity["id"],
        "title": title,
        "label": label,
        "sitelinks": line.count(b'"site":"'),
        "statements": line.count(b'"rank":"'),
        # A statement stays when its property is deleted, but then it has no datatype.
        "identifiers": sum(s["mainsnak"].get("datatype") == "external-id" for group in claims.values() for s in group),
        "classes": _list_classes(claims.get("P31", [])),
        "stated": read_statements(int(entity["id"][1:]), claims),
    }


def _list_classes(statements: list[dict[str, Any]]) -> list[str]:
    chosen = [statement["mainsnak"] for statement in choose_best(statements)]
    known = (snak["datavalue"]["value"] for snak in chosen if snak["snaktype"] == "value")
    # Dumps from before 2017 have the number only.
    return sorted({value.get("id") or f"Q{value['numeric-id']}" for value in known})


def _read_entities(dump: Path, site: str, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    article = b'"%s":{' % site.encode()
    seen = bytearray(10**9 // 8)  # a bit a Qid; memory is taken only where a bit is set: 20 MB for all of Wikidata
    for line in _read_lines(dump):
        counts["lines"] += 1
        if not _COMPACT.match(line) or not line.endswith(b"}"):
            counts["failed"] += 1
        elif article not in line:
            counts["without_article"] += 1
        else:
            try:
                entity = read_entity(line, site)
            except (ValueError, KeyError, TypeError, AttributeError):
                counts["failed"] += 1
                continue
            number = int(entity["qid"][1:])
            if seen[number >> 3] & 1 << (number & 7):
                counts["failed"] += 1
                continue
            seen[number >> 3] |= 1 << (number & 7)
            counts["kept"] += 1
            yield entity


def _read_lines(dump: Path) -> Iterator[bytes]:
    number, opened, closed = 0, False, False
    try:
        with open_packed(dump) as stream:
            while line := stream.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise CorruptInput(f"{dump}: line {number} is longer than {LONGEST_LINE:,} bytes")
                line = line.strip()
                if not line:
                    continue
                if (not opened and line != b"[") or closed:
                    raise CorruptInput(
                        f"{dump}: line {number} is {line[:60]!r}; expected a first line [, then entities, a last line ]"
                    )
                opened, closed = True, line == b"]"
                if line not in (b"[", b"]"):
                    yield line.removesuffix(b",")
    except BAD_PACKING as error:
        raise CorruptInput(f"{dump}: damaged or truncated after line {number}: {error}") from error
    if not closed:
        raise CorruptInput(f"{dump}: ends after line {number} without ]: truncated, or not a dump of entities")
