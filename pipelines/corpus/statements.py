"""Wikidata's statements as facts of the corpus: those that an article's infobox does not show.

Of every property in :mod:`pipelines.corpus.relations` the statements of best rank count ("truthy"), deprecated ones
never do. A value is an entity with an article, a date at the precision of a day, a month or a year, or a quantity in a
known unit. Whatever else is stated counts in ``value_count`` and makes no row, as with unreadable values of infoboxes:
what ended (P582), figures of one moment (P585), parts (P518), doubtful values, entities without an article. A relation
with one value then has one value in all of Wikidata's best statements. "No value" is no value.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpus.data import read_data
from pipelines.corpus.relations import fold_field, read_relations_table
from pipelines.corpus.tables import BATCH_ROWS, OffsetCounter, TableWriter, open_spill, scan_files, stream_tables
from pipelines.corpus.templates import MONTHS

STATED = pa.schema(
    [
        ("subject", pa.int64()),  # number of its Qid
        ("key", pa.string()),
        ("property", pa.string()),
        ("statement", pa.string()),
        ("value_index", pa.int32()),
        ("value_count", pa.int32()),
        ("object", pa.int64()),  # number of its Qid, or -1
        ("text", pa.string()),  # of a literal
        ("iso", pa.string()),  # of a date
    ]
)
"""Statements as an entity has them, before it is known which entities have articles."""
STATEMENTS = pa.schema(
    [
        ("node", pa.uint32()),
        ("key", pa.string()),
        ("property", pa.string()),
        ("statement", pa.string()),
        ("value_index", pa.int32()),
        ("value_count", pa.int32()),
        ("text", pa.string()),
        ("iso", pa.string()),
        ("target", pa.int64()),
    ]
)
_DOUBTFUL = frozenset(["P582", "P518", "P1480", "P5102", "P1319", "P1326", "P1310"])
"""Qualifiers of what is over, holds for a part, is circa, hypothetical, between two dates, or disputed."""
_MOMENT = "P585"
_TIME = re.compile(r"([+-])(\d{4,})-(\d\d)-(\d\d)T00:00:00Z")
_YEAR, _MONTH, _DAY = 9, 10, 11
_JULIAN = "Q1985786"
_LAST_JULIAN_YEAR = 1582
_CURRENCIES = frozenset("$€£¥")
_GROUPED_FROM = 10_000
"""Numbers from here on are written with commas; 1998 may be a year or a number, as infoboxes write it."""


class _Value(NamedTuple):
    object: int = -1
    text: str = ""
    iso: str = ""


def choose_best(statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the statements of best rank: the preferred ones if there are any, else the normal ones."""
    ranks = [statement["rank"] for statement in statements]
    best = "preferred" if "preferred" in ranks else "normal"
    return [statement for statement, rank in zip(statements, ranks, strict=True) if rank == best]


def read_statements(subject: int, claims: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, object]]:
    """Return the rows of ``STATED`` of an entity, by key and then in the order of the dump."""
    stated: dict[str, dict[_Value, tuple[str, str]]] = {}
    unread: dict[str, int] = {}
    for property, relation in read_relations_table().items():
        if relation.volatile or property not in claims:
            continue
        for statement in choose_best(claims[property]):
            if statement["mainsnak"]["snaktype"] == "novalue":
                continue
            value = _read_value(statement)
            if value is None or value.object == subject:
                unread[relation.key] = unread.get(relation.key, 0) + 1
            else:
                stated.setdefault(relation.key, {}).setdefault(value, (property, str(statement["id"])))
    return [
        {"subject": subject, "key": key, "property": property, "statement": identity, "value_index": index,
         "value_count": len(values) + unread.get(key, 0), "object": value.object, "text": value.text, "iso": value.iso}
        for key, values in sorted(stated.items())
        for index, (value, (property, identity)) in enumerate(values.items())
    ]  # fmt: skip


def _read_value(statement: dict[str, Any]) -> _Value | None:
    snak, qualifiers = statement["mainsnak"], statement.get("qualifiers") or {}
    if snak["snaktype"] != "value" or not _DOUBTFUL.isdisjoint(qualifiers):
        return None
    value = snak["datavalue"]["value"]
    kind = snak.get("datatype")
    if kind == "wikibase-item":
        return _Value(object=int(value.get("numeric-id") or value["id"][1:]))
    if kind == "time":
        return _read_time(value)
    return _read_quantity(value) if kind == "quantity" and _MOMENT not in qualifiers else None


def _read_time(value: dict[str, Any]) -> _Value | None:
    # Wikidata counts 44 BC as -44 where ISO 8601 has -43.
    match, precision = _TIME.fullmatch(value["time"]), value["precision"]
    if match is None or precision not in (_YEAR, _MONTH, _DAY) or len(match[2].lstrip("0")) > 4:
        return None
    number, month, day = int(match[2]), int(match[3]), int(match[4])
    early = match[1] == "-"
    is_julian = value["calendarmodel"].endswith(_JULIAN)
    if not number or (precision == _DAY and is_julian != (early or number <= _LAST_JULIAN_YEAR)):
        return None
    if (precision >= _MONTH and not 1 <= month <= len(MONTHS)) or (precision == _DAY and not day):
        return None
    count = 1 - number if early else number
    iso = f"{count:04d}" if count >= 0 else f"-{-count:04d}"
    text = f"{number} BC" if early else f"AD {number}" if number < 100 else str(number)
    if precision >= _MONTH:
        iso, text = f"{iso}-{month:02d}", f"{MONTHS[month - 1]} {text}"
    if precision == _DAY:
        iso, text = f"{iso}-{day:02d}", f"{day} {text}"
    return _Value(text=text, iso=iso)


def _read_quantity(value: dict[str, Any]) -> _Value | None:
    unit = "" if value["unit"] == "1" else read_data("relations")["units"].get(value["unit"].rpartition("/")[2])
    try:
        amount = Decimal(value["amount"])
    except InvalidOperation as error:
        raise ValueError(f"amount {value['amount']!r} is no number") from error
    if unit is None or not amount.is_finite() or abs(amount.adjusted()) > len(str(1 << 64)):
        return None
    plain = amount.to_integral_value() if amount == amount.to_integral_value() else amount.normalize()
    number = f"{plain:,f}" if abs(plain) >= _GROUPED_FROM else f"{plain:f}"
    return _Value(text=f"{unit}{number}" if unit in _CURRENCIES else f"{number} {unit}".rstrip())


def write_statements(folder: Path, scratch: Path, stated: Path | None, nodes: int) -> dict[str, int]:
    """Write the table of statements, sorted by node and key; return how many were read, kept or left out, and why."""
    offsets = OffsetCounter(nodes)
    reasons = {"read": 0, "kept": 0, "in_infobox": 0, "without_article": 0}
    with TableWriter(folder, "statements", STATEMENTS, mapped=True) as writer:
        for rows in _place_statements(folder, scratch, stated) if stated is not None else ():
            for reason in ("in_infobox", "without_article"):
                reasons[reason] += pc.sum(pc.equal(rows["reason"], reason)).as_py() or 0
            kept = rows.filter(pc.equal(rows["reason"], ""))
            writer.write_table(kept)
            offsets.add(kept["node"].to_numpy())
    offsets.write(folder, "statements")
    if stated is None:
        return {}
    return reasons | {"read": pq.read_metadata(stated).num_rows, "kept": writer.rows}


def _place_statements(folder: Path, scratch: Path, stated: Path) -> Iterator[pa.Table]:
    pages, facts = (scan_files(folder / f"{name}.parquet") for name in ("pages", "facts"))
    query = f"""
        WITH known AS MATERIALIZED (
            SELECT CAST(substr(qid, 2) AS BIGINT) AS number, min(node) AS node,
                   regexp_replace(arg_min(title, node), ' \\([^()]*\\)$', '') AS name
            FROM {pages} WHERE qid <> '' GROUP BY number
        ), shown AS (
            SELECT DISTINCT f.node, n.relation FROM {facts} f JOIN names n ON n.field = f.key
        )
        SELECT s.node, t.key, t.property, t.statement, t.value_index, t.value_count,
               coalesce(o.name, t.text) AS text, t.iso, coalesce(o.node, -1) AS target,
               CASE WHEN b.node IS NOT NULL THEN 'in_infobox'
                    WHEN t.object >= 0 AND o.node IS NULL THEN 'without_article' ELSE '' END AS reason
        FROM {scan_files(stated)} t
        JOIN known s ON s.number = t.subject
        LEFT JOIN known o ON o.number = t.object
        LEFT JOIN shown b ON b.node = s.node AND b.relation = t.key
        ORDER BY s.node, t.key, t.value_index
    """
    with open_spill(scratch) as connection:
        connection.register("names", _name_fields(pq.ParquetFile(folder / "facts.parquet")))
        yield from stream_tables(connection, query, BATCH_ROWS)


def _name_fields(facts: pq.ParquetFile) -> pa.Table:
    relations_of: dict[str, set[str]] = {}
    for relation in read_relations_table().values():
        for field in (relation.key, *relation.fields):
            relations_of.setdefault(fold_field(field), set()).add(relation.key)
    keys: set[str] = set()
    for batch in facts.iter_batches(BATCH_ROWS, columns=["key"]):
        keys.update(batch["key"].unique().to_pylist())
    rows = [{"field": key, "relation": of} for key in keys for of in relations_of.get(fold_field(key), ())]
    return pa.Table.from_pylist(rows, schema=pa.schema([("field", pa.string()), ("relation", pa.string())]))
