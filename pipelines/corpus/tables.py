"""The tables of a corpus: their columns, writers and readers; memory-mapped arrays; joins and sorts out of core.

Each table exists twice. ``<name>.parquet`` is for queries over whole columns. ``<name>.arrow`` holds the same rows
uncompressed, in batches of one size; it is memory-mapped, so it opens at once, costs a process only the pages it
touches, and is shared by all processes of a host. Larger joins and sorts run in DuckDB with a memory limit and a folder
to spill to.
"""

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.errors import ConfigError, CorruptInput, Unavailable

if TYPE_CHECKING:
    import duckdb

_HEADER_BYTES = 128
"""Size of the header that numpy writes before an array of one or two dimensions."""


def map_array(path: Path) -> NDArray[Any]:
    """Map an array into memory, shared by all processes."""
    try:
        # An empty array cannot be mapped.
        array: NDArray[Any] = np.load(path, mmap_mode="r" if path.stat().st_size > _HEADER_BYTES else None)
    except FileNotFoundError as error:
        raise ConfigError(f"no {path.name} in {path.parent}; the corpus is incomplete: rebuild it") from error
    except (ValueError, EOFError) as error:
        raise ConfigError(f"{path} is not a complete array ({error}); the corpus is damaged: rebuild it") from error
    # Without numpy's subclass for maps, whose every look-up makes a new object.
    return np.asarray(array)


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
        ("identifiers", pa.int32()),
        ("classes", pa.list_(pa.string())),
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
        ("url", pa.string()),
        ("bytes", pa.int64()),
        ("depicts", pa.list_(pa.string())),
        ("shown", pa.list_(pa.string())),
    ]
)
REJECTED = pa.schema([("record_id", pa.string()), ("reason", pa.string()), ("detail", pa.string())])
FAILED = pa.schema([("record_id", pa.string()), ("error", pa.string()), ("detail", pa.string())])

BATCH_ROWS = 65_536
"""Rows of a row group and of an Arrow batch; only the last one is shorter."""


class TableWriter:
    """Writes rows to ``<name>.parquet``, and to ``<name>.arrow`` if ``mapped``; memory holds one batch.

    The same rows give the same bytes, however they are cut into calls.
    """

    def __init__(self, folder: Path, name: str, schema: pa.Schema, mapped: bool = False) -> None:
        self.rows = 0
        self._schema = schema
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self._parquet = pq.ParquetWriter(
            folder / f"{name}.parquet", schema, compression="zstd", write_page_index=True, store_schema=True
        )
        self._mapped = _MappedFile(folder, name, schema) if mapped else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self._flush(self._held_rows)
        self._parquet.close()
        if self._mapped is not None:
            self._mapped.close()

    def write_columns(self, columns: Mapping[str, object]) -> None:
        """Append whole columns, given by name as sequences or arrays."""
        arrays = [pa.array(columns[field.name], type=field.type) for field in self._schema]
        self.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def write_rows(self, rows: Sequence[tuple[object, ...]]) -> None:
        """Append tuples in the order of the schema's columns."""
        if rows:
            self.write_columns(dict(zip(self._schema.names, zip(*rows, strict=True), strict=True)))

    def write_table(self, table: pa.Table) -> None:
        """Append a table with the schema's columns, in any order and of types that cast to the schema's."""
        if not table.num_rows:
            return
        self._held.append(table.select(self._schema.names).cast(self._schema))
        self._held_rows += table.num_rows
        self.rows += table.num_rows
        if self._held_rows >= BATCH_ROWS:
            self._flush(self._held_rows // BATCH_ROWS * BATCH_ROWS)

    def _flush(self, count: int) -> None:
        if not count:
            return
        held = pa.concat_tables(self._held).combine_chunks()
        for start in range(0, count, BATCH_ROWS):
            batch = held.slice(start, min(BATCH_ROWS, count - start)).combine_chunks()
            self._parquet.write_table(batch, row_group_size=BATCH_ROWS)
            if self._mapped is not None:
                self._mapped.write(batch)
        rest = held.slice(count)
        self._held, self._held_rows = ([rest] if rest.num_rows else []), rest.num_rows


class _MappedFile:
    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._sink = pa.OSFile(str(folder / f"{name}.arrow"), "wb")
        self._writer = pa.ipc.new_file(self._sink, schema)

    def write(self, batch: pa.Table) -> None:
        self._writer.write_table(batch, max_chunksize=BATCH_ROWS)

    def close(self) -> None:
        self._writer.close()
        self._sink.close()


class MappedTable:
    """A table's rows by number, read from ``<name>.arrow`` in place; safe to share between threads.

    Each batch of rows is checked when it is first read.
    """

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / f"{name}.arrow"
        if not path.is_file():
            raise ConfigError(f"no {path.name} in {folder}; the corpus is incomplete: rebuild it")
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches: dict[int, list[pa.Array]] = {}
        count = self._reader.num_record_batches
        self._length = (count - 1) * BATCH_ROWS + len(self._batch(count - 1)[0]) if count else 0

    def __len__(self) -> int:
        return self._length

    def row(self, number: int) -> list[Any]:
        """Return a row's values in the order of the columns."""
        if not 0 <= number < self._length:
            raise IndexError(f"no row {number} in a table of {self._length}")
        place = number % BATCH_ROWS
        return [column[place].as_py() for column in self._batch(number // BATCH_ROWS)]

    def rows(self, numbers: range) -> list[tuple[Any, ...]]:
        """Return the values of rows that lie side by side, in the order of the columns."""
        found: list[tuple[Any, ...]] = []
        start = numbers.start
        while start < numbers.stop:
            place = start % BATCH_ROWS
            count = min(numbers.stop - start, BATCH_ROWS - place)
            columns = (column.slice(place, count).to_pylist() for column in self._batch(start // BATCH_ROWS))
            found.extend(zip(*columns, strict=True))
            start += count
        return found

    def value(self, number: int, name: str) -> Any:  # noqa: ANN401 - as the column has it
        """Return one value of a row."""
        index = self._reader.schema.get_field_index(name)
        return self._batch(number // BATCH_ROWS)[index][number % BATCH_ROWS].as_py()

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a whole column without copying it."""
        index = self._reader.schema.get_field_index(name)
        chunks = [self._batch(number)[index] for number in range(self._reader.num_record_batches)]
        return pa.chunked_array(chunks, type=self._reader.schema.field(index).type)

    def _batch(self, number: int) -> list[pa.Array]:
        columns = self._batches.get(number)
        if columns is None:
            columns = self._batches[number] = self._reader.get_batch(number).columns
        return columns


class GroupedTable:
    """A mapped table that is sorted by ``node``: the rows of a node lie side by side."""

    def __init__(self, folder: Path, name: str) -> None:
        self.table = MappedTable(folder, name)
        self._offsets = map_array(folder / f"{name}-offsets.npy")

    def rows(self, node: int) -> range:
        """Return the numbers of a node's rows."""
        if not 0 <= node < len(self._offsets) - 1:
            raise IndexError(f"no node {node} in a table of {len(self._offsets) - 1} nodes")
        return range(int(self._offsets[node]), int(self._offsets[node + 1]))


class OffsetCounter:
    """Counts rows by node while a table is written, for :class:`GroupedTable`; 8 bytes a node."""

    def __init__(self, node_count: int) -> None:
        self._counts = np.zeros(node_count + 1, dtype=np.int64)

    def add(self, nodes: NDArray[np.integer[Any]]) -> None:
        """Count rows, given by their nodes."""
        if len(nodes):
            found, counts = np.unique(nodes, return_counts=True)
            self._counts[found.astype(np.int64) + 1] += counts

    def write(self, folder: Path, name: str) -> None:
        """Write ``<name>-offsets.npy``: node n's rows are ``offsets[n]:offsets[n + 1]``."""
        np.save(folder / f"{name}-offsets.npy", np.cumsum(self._counts))


MEMORY_MEGABYTES = 256
_THREADS = 2
_SHORTAGE = "Out of Memory Error"
_FULL_DISK = "max_temp_directory_size"


@contextmanager
def open_spill(folder: Path, megabytes: int = MEMORY_MEGABYTES) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a DuckDB connection that holds at most ``megabytes`` and spills the rest to a folder."""
    # Imported here because only builds need it, and every run opens tables.
    import duckdb

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
            message = str(error)
            if _SHORTAGE not in message:
                raise
            reason = message[message.index(_SHORTAGE) :].partition("\n")[0]
            if _FULL_DISK in message:
                raise Unavailable(
                    f"{folder}: the disk is too full to sort on ({reason}); free some space and run again"
                ) from error
            raise ConfigError(
                f"{folder}: rows cannot be sorted or joined in {megabytes} MB of memory ({reason}); expected more"
            ) from error


def stream_tables(connection: "duckdb.DuckDBPyConnection", query: str, rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a query in pieces."""
    for batch in connection.sql(query).to_arrow_reader(rows):
        yield pa.Table.from_batches([batch])


def cut_groups(tables: Iterable[pa.Table], name: str, most: int = 1 << 24) -> Iterator[pa.Table]:
    """Regroup tables that are sorted by a column of numbers, so that rows of one number are in one table."""
    held: pa.Table | None = None
    for table in tables:
        rows = table if held is None else pa.concat_tables([held, table])
        keys = rows[name].to_numpy()
        if np.any(keys[1:] < keys[:-1]):
            raise CorruptInput(f"rows are not sorted by {name}, near {keys[0]}; rebuild the corpus")
        cut = int(np.searchsorted(keys, keys[-1])) if len(keys) else 0
        held = rows.slice(cut)
        if held.num_rows > most:
            raise CorruptInput(f"{name} {keys[-1]} has over {most} rows; expected fewer")
        if cut:
            yield rows.slice(0, cut)
    if held is not None and held.num_rows:
        yield held


def merge_groups(first: Iterable[pa.Table], second: Iterable[pa.Table], name: str) -> Iterator[pa.Table]:
    """Merge two series of tables by a column of numbers, each as :func:`cut_groups` yields it.

    The tables that come have no group in two of them either. Within a group the rows of ``first`` come first.
    """
    series = (iter(first), iter(second))
    held = [next(tables, None) for tables in series]
    while waiting := [table for table in held if table is not None]:
        bound = min(table[name][-1].as_py() for table in waiting)
        parts = []
        for place, table in enumerate(held):
            if table is not None:
                cut = int(np.searchsorted(table[name].to_numpy(), bound, side="right"))
                parts.append(table.slice(0, cut))
                held[place] = table.slice(cut) if cut < table.num_rows else next(series[place], None)
        merged = pa.concat_tables(parts)
        order = np.argsort(merged[name].to_numpy(), kind="stable")
        yield merged if len(waiting) == 1 else merged.take(pa.array(order))


def scan_files(*paths: Path) -> str:
    """Return a reader of Parquet files that DuckDB takes for the files alone, neither patterns nor Hive partitions."""
    quoted = ", ".join("'" + glob.escape(str(path)).replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{quoted}], hive_partitioning = false)"
