"""What a worker leaves of one byte range of a dump: a folder of small tables in the order of the dump.

Titles are known by their 64-bit hashes here; which article a hash means is decided once all ranges are read. A part is
complete when its ``part.json`` exists, which is written last.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpus.arrays import map_array
from pipelines.corpus.links import LinkBlock
from pipelines.corpus.tables import FACTS, PAGES, REDIRECTS
from pipelines.files import sync_files, write_text


def _take(table: pa.Schema, *names: str) -> list[pa.Field]:
    return [table.field(name) for name in names]


ARTICLE_PARTS = pa.schema(
    [
        ("ordinal", pa.int64()),
        *_take(PAGES, "page_id", "title"),
        ("title_hash", pa.uint64()),
        *_take(PAGES, "revision", "timestamp", "bytes", "text_sha256", "is_list", "is_disambiguation", "infobox"),
        *_take(PAGES, "type", "lead_type", "domain", "image"),
        ("bold", pa.list_(pa.string())),
    ]
)
REDIRECT_PARTS = pa.schema(
    [
        ("ordinal", pa.int64()),
        *_take(REDIRECTS, "page_id", "title"),
        ("title_hash", pa.uint64()),
        ("target", pa.string()),
        ("target_hash", pa.uint64()),
        *_take(REDIRECTS, "revision"),
    ]
)
FACT_PARTS = pa.schema(
    [
        ("article", pa.uint32()),
        *(field for field in FACTS if field.name not in ("node", "target")),
        ("target_hash", pa.uint64()),
    ]
)
ANCHOR_PARTS = pa.schema(
    [("target_hash", pa.uint64()), ("anchor", pa.string()), ("pages", pa.uint32()), ("in_infobox", pa.bool_())]
)
PASSAGE_PARTS = pa.schema([("article", pa.uint32()), ("text", pa.string())])

LINKS = {"sources": np.uint32, "target_hashes": np.uint64, "positions": np.uint32}
"""The arrays of a part's links, as in ``LinkBlock``, and their types."""
_DONE = "part.json"


@dataclass(frozen=True, slots=True)
class PartCounts:
    """What is in a part."""

    rows_in: int
    articles: int
    redirects: int
    rejected: int
    failed: int
    newest: str
    """Latest revision timestamp."""


@dataclass(frozen=True, slots=True)
class Part:
    """A complete part, opened for reading."""

    folder: Path
    counts: PartCounts

    def read_columns(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Return columns of one of its tables."""
        return pq.read_table(self.folder / f"{table}.parquet", columns=list(columns))

    def read_numbers(self, table: str, columns: Sequence[str]) -> list[NDArray[np.generic]]:
        """Return columns of numbers of one of its tables."""
        found = self.read_columns(table, columns)
        return [found[name].to_numpy() for name in columns]

    def read_batches(self, table: str) -> Iterator[pa.Table]:
        """Yield one of its tables in pieces."""
        with pq.ParquetFile(self.folder / f"{table}.parquet") as source:
            for batch in source.iter_batches():
                yield pa.Table.from_batches([batch])

    def read_links(self, most: int = 1 << 22) -> Iterator[LinkBlock]:
        """Yield its links in blocks of about ``most`` that end where an article's links end.

        Anchor texts are in the table ``anchors``.
        """
        sources, hashes, positions = (map_array(self.folder / f"{name}.npy") for name in LINKS)
        start = 0
        while start < len(sources):
            end = min(start + most, len(sources))
            end = int(np.searchsorted(sources, sources[end - 1], side="right"))
            yield LinkBlock(sources[start:end], hashes[start:end], positions[start:end], {})
            start = end


def finish_part(folder: Path, counts: PartCounts) -> None:
    """Flush a part to disk and mark it complete."""
    sync_files(folder)
    write_text(folder / _DONE, json.dumps(asdict(counts)))


def open_part(folder: Path) -> Part | None:
    """Open a part, or return None when it is not complete."""
    done = folder / _DONE
    return Part(folder, PartCounts(**json.loads(done.read_text()))) if done.is_file() else None
