"""The link graph on disk: out-links and in-links as compressed sparse rows in memory-mapped numpy arrays.

It is written out of core. Links arrive in node order; out-links are sorted block by block and appended. In-links are
cut into ranges of targets that fit into memory, one scratch file per range, and each range is sorted alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from pipelines.corpus.tables import map_array
from pipelines.errors import ConfigError

Nodes = NDArray[np.uint32]
Offsets = NDArray[np.int64]

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
_CUT_BYTES = 48
"""What a link costs while links are cut into ranges: both ends, the key, its range, the order and the sorted key."""
_SORT_BYTES = 16
"""What a link costs while a range is sorted: the key and the source."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeBlock:
    """All links of some nodes, redirects followed, in any order: three arrays of one length.

    Blocks come in node order: every source of a block is greater than every source of the blocks before it.
    """

    sources: Nodes
    targets: Nodes
    positions: Nodes
    """Character offset of the ``[[`` in the source's text."""


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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


def write_out_links(folder: Path, node_count: int, blocks: Iterable[EdgeBlock]) -> tuple[Offsets, Nodes]:
    """Write ``offsets.npy``, ``targets.npy`` and ``positions.npy``.

    Returns:
        The offsets, length ``node_count + 1``, and the in-degree of each node.

    Raises:
        ValueError: a block comes too early, its arrays differ in length, or it names a node that does not exist.
    """
    offsets = np.zeros(node_count + 1, dtype=np.int64)
    in_degree = np.zeros(node_count, dtype=np.uint32)
    last = -1
    with (
        ArrayFile(folder / "targets.npy", np.uint32) as targets,
        ArrayFile(folder / "positions.npy", np.uint32) as positions,
    ):
        for block in blocks:
            last = _check_block(block, node_count, last)
            keys, first = _sort_links(block)
            found = (keys & _LOW).astype(np.uint32)
            targets.append(found)
            positions.append(first)
            np.add.at(in_degree, found, np.uint32(1))
            _count_rows(offsets, keys)
    np.cumsum(offsets, out=offsets)
    np.save(folder / "offsets.npy", offsets)
    return offsets, in_degree


def write_in_links(folder: Path, offsets: Offsets, in_degree: Nodes, scratch: Path, memory: int) -> None:
    """Write ``in_offsets.npy``, ``in_sources.npy`` and ``in_degree.npy`` of a folder that has its out-links.

    Args:
        folder: of the graph.
        offsets: of the out-links.
        in_degree: number of links that lead to each node.
        scratch: folder for 8 bytes a link, removed again.
        memory: bytes for the links under work; a node whose in-links need more is still sorted whole.
    """
    starts = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(in_degree, out=starts[1:])
    np.save(folder / "in_offsets.npy", starts)
    np.save(folder / "in_degree.npy", in_degree)
    bounds = _cut_ranges(starts, max(1, memory // _SORT_BYTES))
    del starts
    with (
        TemporaryDirectory(prefix="links-", dir=scratch) as cut,
        ArrayFile(folder / "in_sources.npy", np.uint32) as in_sources,
    ):
        ranges = [Path(cut) / f"{number:05}" for number in range(len(bounds) + 1)]
        for keys in _read_keys(folder / "targets.npy", offsets, max(1, memory // _CUT_BYTES)):
            _share_out(keys, bounds, ranges)
        for path in ranges:
            keys = np.fromfile(path, dtype=np.uint64) if path.exists() else np.empty(0, dtype=np.uint64)
            path.unlink(missing_ok=True)
            keys.sort()
            keys &= _LOW
            in_sources.append(keys)


def _check_block(block: EdgeBlock, node_count: int, last: int) -> int:
    """Return the greatest source so far, the block's included."""
    lengths = len(block.sources), len(block.targets), len(block.positions)
    if len(set(lengths)) != 1:
        raise ValueError(f"a block of links has {lengths} sources, targets and positions: expected one of each a link")
    if not lengths[0]:
        return last
    first, final = int(block.sources.min()), int(block.sources.max())
    if first <= last:
        raise ValueError(f"links of node {first} come after those of node {last}: expected blocks in node order")
    highest = max(final, int(block.targets.max()))
    if highest >= node_count:
        raise ValueError(f"a link names node {highest}: expected nodes below {node_count}")
    return final


def _sort_links(block: EdgeBlock) -> tuple[NDArray[np.uint64], Nodes]:
    """Return the distinct links as ``source << 32 | target``, ascending, and the first position of each."""
    kept = block.sources != block.targets
    keys = block.sources[kept].astype(np.uint64)
    keys <<= _HIGH
    keys |= block.targets[kept]
    # Links that come in text order are almost sorted, which a stable sort is six times as fast at.
    order = np.argsort(keys, kind="stable")
    keys, positions = keys[order], block.positions[kept][order]
    distinct = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=distinct[1:])
    (starts,) = np.nonzero(distinct)
    # Whatever the order of equal keys, the least of their positions is the first in the text.
    first = np.minimum.reduceat(positions, starts) if len(starts) else positions
    return keys[starts], first


def _count_rows(offsets: Offsets, keys: NDArray[np.uint64]) -> None:
    """Note how many links each source has; the links are sorted."""
    sources = (keys >> _HIGH).astype(np.int64)
    ends = np.append(np.flatnonzero(np.diff(sources)), len(sources) - 1)[: len(sources)]
    offsets[sources[ends] + 1] = np.diff(ends, prepend=-1)


def _cut_ranges(starts: Offsets, most: int) -> NDArray[np.int64]:
    """Return the first node of every range but the first; a range has at most ``most`` in-links, or one node."""
    bounds: list[int] = []
    node, node_count = 0, len(starts) - 1
    while True:
        node = max(node + 1, int(np.searchsorted(starts, starts[node] + most, side="right")) - 1)
        if node >= node_count:
            return np.asarray(bounds, dtype=np.int64)
        bounds.append(node)


def _read_keys(path: Path, offsets: Offsets, most: int) -> Iterator[NDArray[np.uint64]]:
    """Yield every link as ``target << 32 | source``, at most ``most`` at a time."""
    link_count = int(offsets[-1])
    with path.open("rb") as stream:
        npy.read_magic(stream)
        npy.read_array_header_1_0(stream)
        for start in range(0, link_count, most):
            end = min(start + most, link_count)
            keys = np.fromfile(stream, dtype=np.uint32, count=end - start).astype(np.uint64)
            keys <<= _HIGH
            # Which source has which link? Offsets 0 3 3 7 say that node 0 has links 0-2, node 1 none, node 2 links 3-6.
            # Links 2-4 (start 2, end 5): one offset is not above link 2 and three are not above link 4, so they are of
            # nodes 0 up to 2. Their offsets 0 3 3 7, clipped to what was read, are 2 3 3 5: one link of node 0, none of
            # node 1, two of node 2, hence the sources 0 2 2.
            first, after = np.searchsorted(offsets, (start, end - 1), side="right")
            cut = np.clip(offsets[first - 1 : after + 1], start, end)
            keys |= np.repeat(np.arange(first - 1, after, dtype=np.uint32), cut[1:] - cut[:-1])
            yield keys


def _share_out(keys: NDArray[np.uint64], bounds: NDArray[np.int64], ranges: list[Path]) -> None:
    """Append links to the file of their target's range."""
    # Numbers of 16 bits are sorted by counting; more ranges than that only come of absurdly little memory.
    width = np.uint16 if len(ranges) <= 1 << 16 else np.int64
    numbers = np.searchsorted(bounds.astype(np.uint64) << _HIGH, keys, side="right").astype(width)
    keys = keys[np.argsort(numbers, kind="stable")]
    ends = np.cumsum(np.bincount(numbers, minlength=len(ranges)))
    for path, start, end in zip(ranges, np.concatenate([[0], ends[:-1]]), ends, strict=True):
        if end > start:
            with path.open("ab") as stream:
                stream.write(keys[start:end].data)


__all__ = ["EdgeBlock", "LinkGraph", "build_graph"]

MEMORY = 512 << 20
_OUT = ("offsets", "targets", "positions")
_IN = ("in_offsets", "in_sources", "in_degree")


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
        """Map the arrays of a folder into memory.

        Raises:
            ConfigError: an array is missing, or they do not belong together.
        """
        # A plain view of the mapped file: a memmap object costs ten times as much at every look-up.
        arrays = {name: np.asarray(map_array(folder / f"{name}.npy")) for name in (*_OUT, *_IN)}
        graph = cls(**arrays)
        graph._check_lengths(folder)
        return graph

    def _check_lengths(self, folder: Path) -> None:
        links = (len(self.targets), len(self.positions), len(self.in_sources))
        ends = (int(self.offsets[-1]), int(self.in_offsets[-1])) if self.offsets.size and self.in_offsets.size else ()
        nodes = (len(self.in_offsets) - 1, len(self.in_degree))
        if len({*links, *ends}) != 1 or {*nodes} != {self.node_count}:
            raise ConfigError(
                f"the link graph in {folder} is incomplete: offsets end at {ends} for {links} links, and there are "
                f"{nodes} nodes where {self.node_count} are expected; build the corpus anew"
            )

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
        """Return the character offset of the first link from one node to another, or -1 when there is none."""
        targets = self.targets_of(source)
        index = int(np.searchsorted(targets, target))
        if index == len(targets) or targets[index] != target:
            return -1
        return int(self.positions_of(source)[index])


def build_graph(
    folder: Path, node_count: int, blocks: Iterable[EdgeBlock], scratch: Path | None = None, memory: int = MEMORY
) -> LinkGraph:
    """Write a graph from blocks of links in node order; the same links give the same bytes, however they are cut.

    Self links are dropped; of several links between the same two nodes the first in the text is kept. The least memory
    is about 60 bytes for each link of the largest block and 20 bytes a node, whatever ``memory`` says.

    Args:
        folder: of the graph; made when it is missing. A build that fails leaves a folder that does not open.
        node_count: number of articles.
        blocks: all links of a node in one block, redirects followed, sources ascending from block to block.
        scratch: folder for 8 bytes a link while building; ``folder`` itself when not given.
        memory: bytes for the links under work.

    Returns:
        The graph as opened from the folder.

    Raises:
        ValueError: a block breaks the order, or names a node that does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    offsets, in_degree = write_out_links(folder, node_count, blocks)
    write_in_links(folder, offsets, in_degree, folder if scratch is None else scratch, memory)
    return LinkGraph.open(folder)
