"""The Parquet tables of a corpus: their columns, and how they are written."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PAGES = pa.schema(
    [
        ("node", pa.uint32()),
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("revision", pa.int64()),
        ("timestamp", pa.string()),
        ("bytes", pa.int64()),
        ("text_sha256", pa.string()),
        ("is_list", pa.bool_()),
        ("is_disambiguation", pa.bool_()),
        ("infobox", pa.string()),
        ("type", pa.string()),
        ("lead_type", pa.string()),
        ("domain", pa.string()),
        ("in_degree", pa.uint32()),
        ("qid", pa.string()),
        ("sitelinks", pa.int32()),
        ("statements", pa.int32()),
        ("image", pa.string()),
        ("image_free", pa.bool_()),
    ]
)
REDIRECTS = pa.schema(
    [("title", pa.string()), ("node", pa.uint32()), ("page_id", pa.int64()), ("revision", pa.int64())]
)
ALIASES = pa.schema([("node", pa.uint32()), ("alias", pa.string()), ("source", pa.string())])
FACTS = pa.schema(
    [
        ("node", pa.uint32()),
        ("key", pa.string()),
        ("field_start", pa.int64()),
        ("field_end", pa.int64()),
        ("value_index", pa.int32()),
        ("value_count", pa.int32()),
        ("text", pa.string()),
        ("iso", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("link_start", pa.int64()),
        ("target", pa.int64()),
    ]
)
IMAGES = pa.schema(
    [
        ("file", pa.string()),
        ("title", pa.list_(pa.string())),
        ("path", pa.string()),
        ("sha256", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("format", pa.string()),
        ("author", pa.string()),
        ("licence", pa.string()),
        ("licence_url", pa.string()),
        ("source_url", pa.string()),
        ("phash", pa.string()),
        ("error", pa.string()),
    ]
)
REJECTED = pa.schema([("record_id", pa.string()), ("reason", pa.string()), ("detail", pa.string())])
FAILED = pa.schema([("record_id", pa.string()), ("error", pa.string()), ("detail", pa.string())])

_GROUP_ROWS = 65_536


def write_rows(path: Path, schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> None:
    """Write tuples in the order of the schema's columns; the same rows give the same bytes."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    write_columns(path, schema, dict(zip(schema.names, columns, strict=True)))


def write_columns(path: Path, schema: pa.Schema, columns: Mapping[str, object]) -> None:
    """Write whole columns, given by name as sequences or numpy arrays."""
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(table, path, compression="zstd", row_group_size=_GROUP_ROWS, write_page_index=True)
