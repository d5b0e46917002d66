"""Properties of articles from the files beside a dump, by page id: Qid, lead image, kind, and counts of Wikidata.

Each SQL table is streamed once into a small table of the wanted columns; these are joined and sorted on disk. All files
are optional and taken at different times, so a page or an entity may be missing on either side; its property is then
unknown.

Wikidata's JSON dump gives counts, identifiers and classes of every entity that has an article on one wiki. Its first
line is ``[``, its last ``]``, and each line between is one entity followed by a comma, written without spaces. An
entity without an article is recognised by its bytes and never parsed; quotes inside a JSON string are escaped, so the
patterns cannot occur in a label. Memory holds one line and one row group, whatever the dump's size.
"""

import bz2
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import duckdb
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from isal import igzip, isal_zlib
from numpy.typing import NDArray

from pipelines.corpus.manifest import BUILDER_VERSION, SideFiles
from pipelines.corpus.scan import Part
from pipelines.corpus.sqltables import Block, is_by_number, list_columns, read_columns, require_titles
from pipelines.corpus.tables import BATCH_ROWS, MEMORY_MEGABYTES, TableWriter, open_spill, quote_path, stream_tables
from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import replacing, sync_files, write_text
from pipelines.ids import digest_value

FLAGS = ("disambiguation", "set_index")
PROPERTYTABLES_PROPERTIES = pa.schema([("page_id", pa.int64()), ("name", pa.string()), ("value", pa.string())])
"""A property of a page: qid, image_free, image, or one of ``FLAGS`` with an empty value."""
ENTITY_PAGES = pa.schema([("page_id", pa.int64()), ("number", pa.int64())])
"""A page of Wikidata, and the number in its Qid."""
COUNTS = pa.schema([("page_id", pa.int64()), ("name", pa.string()), ("value", pa.int32())])
"""A count of a page of Wikidata: sitelinks, statements or identifiers."""

_PROPERTY_NAMES = {
    b"wikibase_item": "qid",
    b"page_image_free": "image_free",
    b"page_image": "image",
    b"disambiguation": "disambiguation",
}
_COUNT_NAMES = {b"wb-sitelinks": "sitelinks", b"wb-claims": "statements", b"wb-identifiers": "identifiers"}
_PROPERTYTABLES_QID = "^Q[1-9][0-9]{0,17}$"
_COUNT = "^[0-9]{1,9}$"
_TEMPLATE, _CATEGORY = 10, 14

# Tracking categories of English Wikipedia; every disambiguation template and every set index template adds its own.
_CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "disambiguation": ("All_disambiguation_pages", "All_article_disambiguation_pages"),
    "set_index": ("All_set_index_articles",),
}
# Templates of English Wikipedia, for a run without categories. A page that uses one under another name also counts as
# using the name it redirects to, so only the templates' own names are here. Lists of people with one name, of mountains
# or of ships are set indexes: each line links to another subject, as on a disambiguation page.
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "disambiguation": (
        "Disambiguation",
        "Airport_disambiguation",
        "Biology_disambiguation",
        "Call_sign_disambiguation",
        "Caselaw_disambiguation",
        "Chinese_title_disambiguation",
        "Church_disambiguation",
        "Genus_disambiguation",
        "Geodis",
        "Hospital_disambiguation",
        "Human_name_disambiguation",
        "Letter–number_combination_disambiguation",
        "Mathematical_disambiguation",
        "Military_unit_disambiguation",
        "Number_disambiguation",
        "Place_name_disambiguation",
        "Road_disambiguation",
        "School_disambiguation",
        "Species_Latin_name_abbreviation_disambiguation",
        "Species_Latin_name_disambiguation",
        "Station_disambiguation",
    ),
    "set_index": (
        "Set_index_article",
        "Surname",
        "Given_name",
        "Nickname",
        "Animal_common_name",
        "Chemistry_index",
        "Fungus_common_name",
        "Lake_index",
        "Locomotive_index",
        "Media_set_index",
        "Molecular_formula_index",
        "Mountain_index",
        "Plant_common_name",
        "River_index",
        "Road_index",
        "Ship_index",
        "Sport_index",
        "Storm_index",
    ),
}


@dataclass(frozen=True, slots=True)
class MemberTable:
    """A table that says which pages use a template or are in a category."""

    table: str
    prefix: str
    """Of the names of its columns."""
    title: str
    """Column of the title in the layouts that have one."""
    namespace: int
    titles: Mapping[str, tuple[str, ...]]
    """With underscores, by flag."""
    title_filters: Mapping[str, int]
    """What other columns must be, in the layouts with titles."""
    number_filters: Mapping[str, int]
    """What other columns must be, in the layout with numbers of link targets."""


CATEGORY_LINKS = MemberTable("categorylinks", "cl", "cl_to", _CATEGORY, _CATEGORIES, {}, {})
TEMPLATE_LINKS = MemberTable(
    "templatelinks",
    "tl",
    "tl_title",
    _TEMPLATE,
    _TEMPLATES,
    {"tl_namespace": _TEMPLATE, "tl_from_namespace": 0},
    {"tl_from_namespace": 0},
)


def read_properties(path: Path) -> Iterator[pa.Table]:
    """Yield the properties in a wiki's page_props; file names have spaces, and a Qid that is none is left out."""
    for pages, names, values in _read_named(path, _PROPERTY_NAMES):
        texts = _decode(pc.replace_substring(values, b"_", b" "))
        fits = pc.or_(pc.not_equal(names, "qid"), pc.match_substring_regex(texts, _PROPERTYTABLES_QID))
        yield pa.table([pages, names, texts], schema=PROPERTYTABLES_PROPERTIES).filter(fits)


def read_counts(path: Path) -> Iterator[pa.Table]:
    """Yield the counts in Wikidata's page_props; a value that is no count is left out."""
    for pages, names, values in _read_named(path, _COUNT_NAMES):
        fits = pc.match_substring_regex(values, _COUNT)
        numbers = values.filter(fits).cast(pa.string()).cast(pa.int32())
        yield pa.table([pages.filter(fits), names.filter(fits), numbers], schema=COUNTS)


def read_entity_pages(path: Path) -> Iterator[pa.Table]:
    """Yield the entities in Wikidata's page table."""
    for block in read_columns(path, "page", ["page_id", "page_namespace"], ["page_title"]):
        fits = pc.and_(pa.array(block.integers[1] == 0), pc.match_substring_regex(block.texts[0], _PROPERTYTABLES_QID))
        numbers = pc.binary_replace_slice(block.texts[0].filter(fits), 0, 1, b"").cast(pa.string()).cast(pa.int64())
        yield pa.table([pa.array(block.integers[0]).filter(fits), numbers], schema=ENTITY_PAGES)


def read_flags(path: Path, kind: MemberTable, linktarget: Path | None) -> Iterator[pa.Table]:
    """Yield flags of pages, as rows of ``PROPERTIES``.

    Args:
        path: a table in any of its layouts.
        kind: which table it is.
        linktarget: needed for the layout that has numbers in place of titles, in all rows or in some.

    Raises:
        ConfigError: it is needed and not given, or some rows have a title and others a number; or as ``read_columns``.
        CorruptInput: as ``read_columns``.
    """
    columns, number = list_columns(path, kind.table), f"{kind.prefix}_target_id"
    by_title = not is_by_number(columns, kind.title, number, linktarget is not None)
    if not by_title and linktarget is None:
        raise ConfigError(f"{path} names its targets by number; expected a linktarget table beside it")
    filters = kind.title_filters if by_title else kind.number_filters
    numbers = {} if by_title or linktarget is None else _read_numbers(linktarget, kind)
    integers = [f"{kind.prefix}_from", *filters, *([] if by_title else [number])]
    for block in read_columns(path, kind.table, integers, [kind.title] if by_title else []):
        if by_title and number in columns:
            require_titles(path, kind.title, block.texts[0])
        fits = np.ones(len(block.integers[0]), dtype=np.bool_)
        for values, expected in zip(block.integers[1:], filters.values(), strict=False):
            fits &= values == expected
        for flag in FLAGS:
            member = _match_titles(block, kind.titles[flag]) if by_title else np.isin(block.integers[-1], numbers[flag])
            pages = block.integers[0][fits & member]
            if len(pages):
                yield pa.table([pages, [flag] * len(pages), [""] * len(pages)], schema=PROPERTYTABLES_PROPERTIES)


def _read_named(path: Path, names: Mapping[bytes, str]) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    """Yield page ids, our names and values of the properties of these names."""
    wanted = pa.array(list(names), type=pa.binary())
    ours = pa.array(list(names.values()))
    for block in read_columns(path, "page_props", ["pp_page"], ["pp_propname", "pp_value"]):
        places = pc.index_in(block.texts[0], value_set=wanted)
        fits = pc.and_(places.is_valid(), block.texts[1].is_valid())
        yield pa.array(block.integers[0]).filter(fits), ours.take(places.filter(fits)), block.texts[1].filter(fits)


def _read_numbers(path: Path, kind: MemberTable) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the link targets of each flag."""
    found: dict[str, list[int]] = {flag: [] for flag in FLAGS}
    for block in read_columns(path, "linktarget", ["lt_id", "lt_namespace"], ["lt_title"]):
        here = block.integers[1] == kind.namespace
        for flag in FLAGS:
            found[flag] += block.integers[0][here & _match_titles(block, kind.titles[flag])].tolist()
    return {flag: np.array(numbers, dtype=np.int64) for flag, numbers in found.items()}


def _match_titles(block: Block, titles: tuple[str, ...]) -> NDArray[np.bool_]:
    wanted = pa.array([title.encode() for title in titles], type=pa.binary())
    found: NDArray[np.bool_] = pc.is_in(block.texts[0], value_set=wanted).to_numpy(zero_copy_only=False)
    return found


def _decode(values: pa.BinaryArray) -> pa.StringArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in values.to_pylist()])


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
        CorruptInput: a table is truncated or no table.
        Unavailable: the disk is too full to spill to.
    """
    wanted = scratch / "wanted-properties.parquet"
    counts = scratch / "wanted-counts.parquet"
    _write_tables(wanted, PROPERTYTABLES_PROPERTIES, _read_wiki(sources))
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


ENTITIES = pa.schema(
    [
        ("qid", pa.string()),
        ("title", pa.string()),
        ("label", pa.string()),
        ("sitelinks", pa.int32()),
        ("statements", pa.int32()),
        ("identifiers", pa.int32()),
        ("classes", pa.list_(pa.string())),
    ]
)
_GROUP_ROWS = 65_536
_BAD_DEFLATE = cast(type[Exception], isal_zlib.error)  # isal types it as an instance
_BUFFER = 1 << 20
_LONGEST_LINE = 1 << 26
_NAMED_FAILURES = 1000
_COMPACT = re.compile(rb'\{"\w+":\S')
_QID = re.compile(r"Q[1-9][0-9]{0,9}")
_CHUNK_BITS = 16


@dataclass(frozen=True, slots=True)
class FailedLine:
    """A line that holds no readable entity."""

    line: int
    """From 1."""
    detail: str


@dataclass(frozen=True, slots=True)
class EntityCounts:
    """Where the dump's lines went: ``lines = kept + without_article + failed``."""

    lines: int
    """Lines with an entity, the brackets left out."""
    kept: int
    without_article: int
    failed: int
    failures: tuple[FailedLine, ...]
    """The first thousand of the failed lines."""

    def summarise(self) -> dict[str, int]:
        """Return the numbers without the failures, by name."""
        return {name: getattr(self, name) for name in ("lines", "kept", "without_article", "failed")}


@dataclass(frozen=True, slots=True)
class Item:
    """A row of ``entities.parquet``."""

    qid: str
    title: str
    """Of the article, with spaces."""
    label: str
    """In the wiki's language, or empty."""
    sitelinks: int
    """On all projects of Wikimedia, not on Wikipedias alone."""
    statements: int
    """Deprecated ones and identifiers included."""
    identifiers: int
    """Statements whose property's values are identifiers in other databases."""
    classes: tuple[str, ...]
    """Qids of P31 with the best rank: what ``wdt:P31`` says."""


@dataclass(slots=True)
class _Seen:
    """Numbers met so far, a bit each: 20 MB for all of Wikidata."""

    chunks: dict[int, bytearray] = field(default_factory=dict)

    def add(self, number: int) -> bool:
        """Return whether a number is new."""
        chunk = self.chunks.setdefault(number >> _CHUNK_BITS, bytearray(1 << _CHUNK_BITS - 3))
        place, bit = number >> 3 & len(chunk) - 1, 1 << (number & 7)
        is_new = not chunk[place] & bit
        chunk[place] |= bit
        return is_new


@dataclass(slots=True)
class _Tally:
    lines: int = 0
    kept: int = 0
    without_article: int = 0
    failed: int = 0
    failures: list[FailedLine] = field(default_factory=list)

    def fail(self, number: int, detail: str) -> None:
        self.failed += 1
        if len(self.failures) < _NAMED_FAILURES:
            self.failures.append(FailedLine(number, detail))


def collect_entities(dump: Path, out: Path, site: str = "enwiki") -> EntityCounts:
    """Write one row for each entity that has an article on a wiki, in the order of the dump.

    A dump takes days to write, so that an entity can be in it twice, of which the first counts, and two entities can
    name one article, of which both are written.

    Args:
        dump: ``*-all.json``, ``.json.gz`` or ``.json.bz2``, of one stream or of many.
        out: Parquet file with the columns of ``ENTITIES``; it appears only when it is complete.
        site: database name of the wiki, such as ``enwiki``.

    Raises:
        CorruptInput: the dump is truncated, damaged, or not a dump of entities.
    """
    tally = _Tally()
    with replacing(out) as temp, pq.ParquetWriter(temp, ENTITIES, compression="zstd") as writer:
        rows: list[Item] = []
        for entity in _read_entities(dump, site, tally):
            rows.append(entity)
            if len(rows) == _GROUP_ROWS:
                writer.write_table(_make_table(rows))
                rows.clear()
        writer.write_table(_make_table(rows))
    return EntityCounts(tally.lines, tally.kept, tally.without_article, tally.failed, tuple(tally.failures))


def count_in_line(line: bytes) -> tuple[int, int]:
    """Return the sitelinks and statements of a dump's line by counting bytes: exact, and ten times a JSON parser."""
    return line.count(b'"site":"'), line.count(b'"rank":"')


def read_entity(line: bytes, site: str) -> Item:
    """Return an entity from its line without the comma.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the line is no entity with an article on the wiki.
    """
    entity: dict[str, Any] = orjson.loads(line)
    if not _QID.fullmatch(entity["id"]):
        raise ValueError(f"id {entity['id']!r} is not a Qid")
    claims = entity["claims"] or {}  # an empty map is written as an empty list
    labels = entity["labels"] or {}
    language = site.removesuffix("wiki").replace("_", "-")
    title = entity["sitelinks"][site]["title"]
    label = labels.get(language, {}).get("value", "")
    if not isinstance(title, str) or not isinstance(label, str):
        raise TypeError("title or label is not text")
    sitelinks, statements = count_in_line(line)
    identifiers = sum(_is_identifier(statement) for group in claims.values() for statement in group)
    return Item(entity["id"], title, label, sitelinks, statements, identifiers, _list_classes(claims.get("P31", ())))


def _is_identifier(statement: dict[str, Any]) -> bool:
    # A statement stays when its property is deleted, but says no longer of what kind it was.
    return bool(statement["mainsnak"].get("datatype") == "external-id")


def _list_classes(statements: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the values of best rank: of the preferred statements if there are any, else of the normal ones."""
    ranks = [statement["rank"] for statement in statements]
    best = "preferred" if "preferred" in ranks else "normal"
    chosen = [s["mainsnak"] for s, rank in zip(statements, ranks, strict=True) if rank == best]
    known = (snak["datavalue"]["value"] for snak in chosen if snak["snaktype"] == "value")
    # Dumps from before 2017 give the number alone.
    return tuple(sorted({value.get("id") or f"Q{value['numeric-id']}" for value in known}))


def _read_entities(dump: Path, site: str, tally: _Tally) -> Iterator[Item]:
    article, seen = b'"%s":{' % site.encode(), _Seen()
    for number, line in _read_lines(dump):
        tally.lines += 1
        if not _COMPACT.match(line) or not line.endswith(b"}"):
            tally.fail(number, f"no entity in one line of JSON without spaces: {line[:60]!r}")
        elif article not in line:
            tally.without_article += 1
        else:
            try:
                entity = read_entity(line, site)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                tally.fail(number, f"{type(error).__name__}: {error}")
                continue
            if not seen.add(int(entity.qid[1:])):
                tally.fail(number, f"{entity.qid} was on an earlier line")
                continue
            tally.kept += 1
            yield entity


def _read_lines(dump: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the entity lines, stripped, with their number in the file.

    Raises:
        CorruptInput: see :func:`collect_entities`.
    """
    number, opened, closed = 0, False, False
    try:
        with _open_dump(dump) as stream:
            while line := stream.readline(_LONGEST_LINE):
                number += 1
                if len(line) == _LONGEST_LINE:
                    raise CorruptInput(f"{dump}: line {number} is longer than {_LONGEST_LINE:,} bytes; no entity is")
                line = line.strip()
                if not line:
                    continue
                if (not opened and line != b"[") or closed:
                    raise CorruptInput(
                        f"{dump}: line {number} is {line[:60]!r}; a dump goes from [ to ] and no further"
                    )
                opened, closed = True, line == b"]"
                if line not in (b"[", b"]"):
                    yield number, line.removesuffix(b",")
    except (EOFError, OSError, _BAD_DEFLATE) as error:
        raise CorruptInput(f"{dump}: damaged or cut off after line {number}: {error}") from error
    if not closed:
        raise CorruptInput(f"{dump}: ends after line {number} without ]: cut off, or not a dump of entities")


def _open_dump(dump: Path) -> IO[bytes]:
    if dump.suffix == ".bz2":
        return cast(IO[bytes], BufferedReader(cast(Any, bz2.BZ2File(dump)), _BUFFER))
    if dump.suffix == ".gz":
        return cast(IO[bytes], BufferedReader(cast(Any, igzip).IGzipFile(dump), _BUFFER))
    return dump.open("rb", buffering=_BUFFER)


def _make_table(rows: list[Item]) -> pa.Table:
    columns = {name: [getattr(row, name) for row in rows] for name in ENTITIES.names}
    return pa.Table.from_pydict(columns, schema=ENTITIES)


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
}
"""Type of each property, and what stands for an article of which it is not known."""
_SIDEPROPERTIES_COUNTED = ("sitelinks", "statements", "identifiers", "classes")
_PLACED = pa.schema(
    [("page_id", pa.int64()), *((name, PROPERTIES[name][0]) for name in ("qid", *_SIDEPROPERTIES_COUNTED))]
)


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
            raise ConfigError(f"{side.wikidata_entities}: the dump beside it has no <siteinfo>, so its wiki is unknown")
        read = partial(_collect_entities, side.wikidata_entities, dbname)
        entities, counts["entities"] = make_once(kept, "entities", [side.wikidata_entities], read)
        tables.append(_place_entities(scratch, parts, entities, tables[:1]))
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


def _place_entities(scratch: Path, parts: Sequence[Part], made: Path, properties: Sequence[Path]) -> Path:
    """Write the entities of Wikidata's dump by page id: found by Qid where page_props has it, else by title."""
    articles = ", ".join(quote_path(part.folder / "articles.parquet") for part in parts)
    known = "SELECT NULL::BIGINT AS page_id, '' AS qid WHERE false"
    if properties:
        known = f"SELECT page_id, qid FROM read_parquet({quote_path(properties[0])})"
    entities = quote_path(made)
    columns = ", ".join(f"coalesce(q.{name}, t.{name}) AS {name}" for name in ("qid", *_SIDEPROPERTIES_COUNTED))
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
