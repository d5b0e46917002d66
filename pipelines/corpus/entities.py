"""Reads Wikidata's JSON dump: counts, identifiers and classes of every entity that has an article on one wiki.

The dump's first line is ``[``, its last ``]``, and each line between is one entity followed by a comma, written without
spaces. An entity without an article is told by its bytes and never parsed; quotes inside a JSON string are escaped, so
the patterns cannot occur in a label. Memory holds one line and one row group, whatever the dump's size.
"""

import bz2
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip, isal_zlib

from pipelines.errors import CorruptInput
from pipelines.files import replacing

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
class Entity:
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
        CorruptInput: the dump is truncated, damaged, or no dump of entities.
    """
    tally = _Tally()
    with replacing(out) as temp, pq.ParquetWriter(temp, ENTITIES, compression="zstd") as writer:
        rows: list[Entity] = []
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


def read_entity(line: bytes, site: str) -> Entity:
    """Return an entity from its line without the comma.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the line is no entity with an article on the wiki.
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
        raise TypeError("title or label is no text")
    sitelinks, statements = count_in_line(line)
    identifiers = sum(_is_identifier(statement) for group in claims.values() for statement in group)
    return Entity(entity["id"], title, label, sitelinks, statements, identifiers, _list_classes(claims.get("P31", ())))


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


def _read_entities(dump: Path, site: str, tally: _Tally) -> Iterator[Entity]:
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
        raise CorruptInput(f"{dump}: ends after line {number} without ]: cut off, or no dump of entities")


def _open_dump(dump: Path) -> IO[bytes]:
    if dump.suffix == ".bz2":
        return cast(IO[bytes], BufferedReader(cast(Any, bz2.BZ2File(dump)), _BUFFER))
    if dump.suffix == ".gz":
        return cast(IO[bytes], BufferedReader(cast(Any, igzip).IGzipFile(dump), _BUFFER))
    return dump.open("rb", buffering=_BUFFER)


def _make_table(rows: list[Entity]) -> pa.Table:
    columns = {name: [getattr(row, name) for row in rows] for name in ENTITIES.names}
    return pa.Table.from_pydict(columns, schema=ENTITIES)
