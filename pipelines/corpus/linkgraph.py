"""The link graph on disk: compressed sparse rows as memory-mapped numpy arrays, out-links and in-links."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import ConfigError

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
            ConfigError: an array is missing.
        """
        arrays = {}
        for name in (*_OUT, *_IN):
            path = folder / f"{name}.npy"
            if not path.is_file():
                raise ConfigError(f"no {path.name} in {folder}; expected a link graph with {', '.join((*_OUT, *_IN))}")
            # An empty file cannot be mapped.
            arrays[name] = np.load(path, mmap_mode="r" if path.stat().st_size > 256 else None)
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
        """Return the character offset of the first link from one node to another, or -1 when there is none."""
        targets = self.targets_of(source)
        index = int(np.searchsorted(targets, target))
        if index == len(targets) or targets[index] != target:
            return -1
        return int(self.positions_of(source)[index])


def write_graph(
    folder: Path,
    node_count: int,
    sources: NDArray[np.integer],
    targets: NDArray[np.integer],
    positions: NDArray[np.integer],
) -> LinkGraph:
    """Write a graph from parallel arrays of links in any order.

    Self links are dropped; of several links between the same two nodes the first in the text is kept.

    Returns:
        The graph as opened from the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = sources != targets
    sources, targets, positions = sources[kept], targets[kept], positions[kept]
    order = np.lexsort((positions, targets, sources))
    sources, targets, positions = sources[order], targets[order], positions[order]
    first = np.ones(len(sources), dtype=bool)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    sources, targets, positions = sources[first], targets[first], positions[first]
    by_target = np.argsort(targets, kind="stable")
    in_degree = np.bincount(targets, minlength=node_count) if len(targets) else np.zeros(node_count)
    arrays: dict[str, NDArray[np.generic]] = {
        "offsets": _count_offsets(sources, node_count),
        "targets": targets.astype(np.uint32),
        "positions": positions.astype(np.uint32),
        "in_offsets": _count_offsets(targets, node_count),
        "in_sources": sources[by_target].astype(np.uint32),
        "in_degree": in_degree.astype(np.uint32),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return LinkGraph.open(folder)


def _count_offsets(nodes: NDArray[np.integer], node_count: int) -> NDArray[np.int64]:
    offsets = np.zeros(node_count + 1, dtype=np.int64)
    if len(nodes):
        np.cumsum(np.bincount(nodes, minlength=node_count), out=offsets[1:])
    return offsets
