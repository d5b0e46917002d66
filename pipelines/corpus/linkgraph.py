"""The link graph on disk: out-links and in-links as compressed sparse rows in memory-mapped numpy arrays.

It is written out of core. Links arrive in node order, so out-links are sorted block by block and appended; in-links
are the same links, sorted by target in DuckDB.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from pipelines.corpus.tables import (
    BATCH_ROWS,
    MEMORY_MEGABYTES,
    TableWriter,
    map_array,
    open_spill,
    scan_files,
    stream_tables,
)

Nodes = NDArray[np.uint32]

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
_EDGES = pa.schema([("source", pa.uint32()), ("target", pa.uint32())])
_OUT = ("offsets", "targets", "positions")
_IN = ("in_offsets", "in_sources", "in_degree")


EdgeBlock = tuple[Nodes, Nodes, Nodes]
"""All links of some nodes in any order, redirects followed: sources, targets and the offsets of their ``[[``.

Blocks come in node order: every source of a block is greater than every source of the blocks before it.
"""


class ArrayFile:
    """A one-dimensional ``.npy`` file that grows; its length is written when it is closed without an error.

    The bytes are those of ``np.save`` of the whole array.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.length = 0
        self._dtype = np.dtype(dtype)
        self._stream = path.open("wb")
        self._write_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            # Headers leave room for the digits of any length, so this one has the size of the first.
            self._stream.seek(0)
            self._write_header()
        self._stream.close()

    def append(self, values: NDArray[Any]) -> None:
        """Write values at the end, cast to the type of the file."""
        self._stream.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self.length += len(values)

    def _write_header(self) -> None:
        described = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self.length,)}
        npy.write_array_header_1_0(self._stream, described)


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """Links between articles, each pair once, self links left out; nodes are numbered 0 to ``node_count - 1``."""

    offsets: NDArray[np.int64]
    """Length ``node_count + 1``; the links of node n are at ``offsets[n]:offsets[n + 1]``."""
    targets: NDArray[np.uint32]
    """Ascending within a node."""
    positions: NDArray[np.uint32]
    """Character offset of the first ``[[`` that leads there, in the source's text."""
    in_offsets: NDArray[np.int64]
    in_sources: NDArray[np.uint32]
    """Ascending within a node."""
    in_degree: NDArray[np.uint32]
    """Number of distinct articles that link to a node, redirects followed."""

    @classmethod
    def open(cls, folder: Path) -> "LinkGraph":
        """Map the arrays of a folder into memory."""
        # A plain view of the mapped file: a memmap object costs ten times as much at every look-up.
        arrays = {name: np.asarray(map_array(folder / f"{name}.npy")) for name in (*_OUT, *_IN)}
        return cls(**arrays)

    @property
    def node_count(self) -> int:
        """Number of articles."""
        return len(self.offsets) - 1

    @property
    def link_count(self) -> int:
        """Number of distinct links."""
        return len(self.targets)

    def targets_of(self, node: int) -> NDArray[np.uint32]:
        """Return the nodes that a node links to, ascending."""
        return self.targets[self.offsets[node] : self.offsets[node + 1]]

    def positions_of(self, node: int) -> NDArray[np.uint32]:
        """Return the character offsets of the links of ``targets_of(node)``, in the same order."""
        return self.positions[self.offsets[node] : self.offsets[node + 1]]

    def sources_of(self, node: int) -> NDArray[np.uint32]:
        """Return the nodes that link to a node, ascending."""
        return self.in_sources[self.in_offsets[node] : self.in_offsets[node + 1]]

    def find_link(self, source: int, target: int) -> int:
        """Return the character offset of the first link from one node to another, or -1."""
        targets = self.targets_of(source)
        index = int(np.searchsorted(targets, target))
        if index == len(targets) or targets[index] != target:
            return -1
        return int(self.positions_of(source)[index])


def build_graph(
    folder: Path,
    node_count: int,
    blocks: Iterable[EdgeBlock],
    scratch: Path | None = None,
    memory: int = MEMORY_MEGABYTES,
) -> LinkGraph:
    """Write a graph from blocks of links in node order; the same links give the same bytes, however they are cut.

    Self links are dropped; of several links between the same two nodes the first in the text is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    edges = (scratch or folder) / "edges.parquet"
    in_degree = _write_out_links(folder, node_count, blocks, edges)
    np.save(folder / "in_degree.npy", in_degree)
    np.save(folder / "in_offsets.npy", np.concatenate([[0], np.cumsum(in_degree, dtype=np.int64)]))
    query = f"SELECT source FROM {scan_files(edges)} ORDER BY target, source"
    with (
        open_spill(edges.parent, memory) as database,
        ArrayFile(folder / "in_sources.npy", np.uint32) as in_sources,
    ):
        for rows in stream_tables(database, query, BATCH_ROWS):
            in_sources.append(rows["source"].to_numpy())
    edges.unlink()
    return LinkGraph.open(folder)


def _write_out_links(folder: Path, node_count: int, blocks: Iterable[EdgeBlock], edges: Path) -> Nodes:
    offsets = np.zeros(node_count + 1, dtype=np.int64)
    in_degree = np.zeros(node_count, dtype=np.uint32)
    with (
        ArrayFile(folder / "targets.npy", np.uint32) as targets,
        ArrayFile(folder / "positions.npy", np.uint32) as positions,
        TableWriter(edges.parent, edges.stem, _EDGES) as table,
    ):
        for block in blocks:
            keys, first = _sort_links(block)
            sources, found = (keys >> _HIGH).astype(np.uint32), (keys & _LOW).astype(np.uint32)
            targets.append(found)
            positions.append(first)
            table.write_columns({"source": sources, "target": found})
            np.add.at(in_degree, found, np.uint32(1))
            nodes, counts = np.unique(sources, return_counts=True)
            offsets[nodes.astype(np.int64) + 1] = counts
    np.save(folder / "offsets.npy", np.cumsum(offsets))
    return in_degree


def _sort_links(block: EdgeBlock) -> tuple[NDArray[np.uint64], Nodes]:
    sources, targets, positions = block
    kept = sources != targets
    keys = sources[kept].astype(np.uint64)
    keys <<= _HIGH
    keys |= targets[kept]
    # Links that come in text order are almost sorted, which a stable sort is six times as fast at.
    order = np.argsort(keys, kind="stable")
    keys, positions = keys[order], positions[kept][order]
    distinct = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=distinct[1:])
    (starts,) = np.nonzero(distinct)
    # Whatever the order of equal keys, the least of their positions is the first in the text.
    first = np.minimum.reduceat(positions, starts) if len(starts) else positions
    return keys[starts], first
