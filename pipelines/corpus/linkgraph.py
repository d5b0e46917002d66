"""The link graph on disk: compressed sparse rows as memory-mapped numpy arrays, out-links and in-links."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.arrays import map_array
from pipelines.corpus.graphbuild import EdgeBlock, write_in_links, write_out_links
from pipelines.errors import ConfigError

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
