"""Joins and sorts that do not fit memory: DuckDB with a memory limit and a folder to spill to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.errors import ConfigError, SynthError, Unavailable

MEMORY_MEGABYTES = 256
_THREADS = 2
_SHORTAGE = "Out of Memory Error"
_FULL_DISK = "max_temp_directory_size"


@contextmanager
def open_spill(folder: Path, megabytes: int = MEMORY_MEGABYTES) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection that holds at most so many megabytes and keeps the rest in a folder.

    Raises:
        ConfigError: what is done with the connection takes more memory.
        Unavailable: the folder's disk is too full for the rest.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{megabytes}MB",
        "threads": _THREADS,
        "temp_directory": str(folder / "spill"),
        "preserve_insertion_order": False,  # every query here says its own order
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        try:
            yield connection
        except (duckdb.OutOfMemoryException, OSError) as error:  # the latter from the reader of a result
            if _SHORTAGE not in str(error):
                raise
            raise _name_shortage(str(error), folder, megabytes) from error


def stream_tables(connection: duckdb.DuckDBPyConnection, query: str, rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a query in pieces."""
    for batch in connection.sql(query).to_arrow_reader(rows):
        yield pa.Table.from_batches([batch])


def _name_shortage(message: str, folder: Path, megabytes: int) -> SynthError:
    reason = message[message.index(_SHORTAGE) :].partition("\n")[0]
    if _FULL_DISK in message:
        return Unavailable(f"{folder}: the disk is too full to sort on ({reason}); free some space and run again")
    return ConfigError(
        f"{folder}: rows cannot be sorted or joined in {megabytes} MB of memory ({reason}); expected more"
    )


def quote_path(path: Path) -> str:
    """Return a path as an SQL string."""
    return "'" + str(path).replace("'", "''") + "'"
