"""Parquet files of a release: small row groups, page index, content-defined chunks, and the same bytes every time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from pipelines.ids import digest_file
from schemas.manifest import FileEntry

GROUP_ROWS = 100
LEVEL = 3


@dataclass(frozen=True, slots=True)
class Shard:
    """A slice of a split: rows ``start`` to ``stop`` go into one file."""

    split: str
    number: int
    of: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """File name the Hub finds the split by."""
        return f"{self.split}-{self.number:05d}-of-{self.of:05d}.parquet"


def plan_shards(split: str, weights: Sequence[int], limit: int) -> list[Shard]:
    """Cut a split's rows, in order, into shards of at most ``limit`` bytes; a heavier row has a shard of its own."""
    starts, total = [0], 0
    for index, weight in enumerate(weights):
        if total and total + weight > limit:
            starts.append(index)
            total = 0
        total += weight
    stops = [*starts[1:], len(weights)]
    return [
        Shard(split, number, len(starts), start, stop)
        for number, (start, stop) in enumerate(zip(starts, stops, strict=True))
    ]


def write_shard_file(
    path: Path, schema: pa.Schema, shard: Shard, make_row: Callable[[int], BaseModel]
) -> tuple[FileEntry, int]:
    """Write one shard, a row group at a time, so that no more pictures than a group's are in memory.

    Returns:
        The file's entry, its name relative to the release folder, and its rows' size in Arrow memory in bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    memory = 0
    with open_writer(path, schema) as writer:
        for start in range(shard.start, shard.stop, GROUP_ROWS):
            stop = min(start + GROUP_ROWS, shard.stop)
            rows: list[dict[str, Any]] = [make_row(index).model_dump() for index in range(start, stop)]
            table = pa.Table.from_pylist(rows, schema=schema)
            memory += table.nbytes
            writer.write_table(table)
    return describe_file(path, path.parent.parent, shard.stop - shard.start), memory


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet writer with the settings of every release file."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=LEVEL,
        write_page_index=True,
        use_content_defined_chunking=True,
    )


def describe_file(path: Path, root: Path, rows: int) -> FileEntry:
    """Return a file's entry for the manifest; the name is relative to ``root``."""
    return FileEntry(
        name=path.relative_to(root).as_posix(), rows=rows, bytes=path.stat().st_size, sha256=digest_file(path)
    )


def list_files(folder: Path) -> Iterator[Path]:
    """Yield every file of a folder tree in a fixed order."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())
