"""Joins and sorts that do not fit memory: DuckDB with a memory limit and a folder to spill to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

MEMORY_MEGABYTES = 256
_THREADS = 2


@contextmanager
def open_spill(folder: Path, megabytes: int = MEMORY_MEGABYTES) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection that holds at most so many megabytes and keeps the rest in a folder."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{megabytes}MB",
        "threads": _THREADS,
        "temp_directory": str(folder / "spill"),
        "preserve_insertion_order": False,  # every query here says its own order
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        yield connection


def stream_tables(connection: duckdb.DuckDBPyConnection, query: str, rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a query in pieces."""
    for batch in connection.sql(query).to_arrow_reader(rows):
        yield pa.Table.from_batches([batch])


def quote_path(path: Path) -> str:
    """Return a path as an SQL string."""
    return "'" + str(path).replace("'", "''") + "'"
