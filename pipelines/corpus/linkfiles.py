"""Links between articles that do not fit memory: files of neighbouring sources, each sorted on its own."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Links = NDArray[np.uint64]
"""Pairs of nodes, ``source << 32 | target``."""

_FILES = 256
_HELD_LINKS = 1 << 21
_MERGED_LINKS = 1 << 24
_TO_BITS = np.uint64(32)


class LinkFiles:
    """Links on disk, each file those of a range of sources.

    Args:
        folder: for the files.
        nodes: number of articles.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        step = max(1, -(-nodes // _FILES))
        self._borders = (np.arange(step, max(nodes, 1), step, dtype=np.uint64)) << _TO_BITS
        self._paths = [folder / f"tablelinks-{number:03d}.links" for number in range(len(self._borders) + 1)]
        self._held: list[Links] = []
        self._held_links = 0
        for path in self._paths:
            path.write_bytes(b"")

    def add(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Add links between nodes, in any order and any number of times."""
        self._held.append((sources.astype(np.uint64) << _TO_BITS) | targets.astype(np.uint64))
        self._held_links += len(sources)
        if self._held_links >= _HELD_LINKS:
            self._flush()

    def sort(self) -> list[Path]:
        """Sort each file, drop what is twice, and return arrays that numpy can load."""
        self._flush()
        sorted_paths = []
        for path in self._paths:
            links = _merge(path)
            np.save(path.with_suffix(".npy"), links)
            path.unlink()
            sorted_paths.append(path.with_suffix(".npy"))
        return sorted_paths

    def _flush(self) -> None:
        links = _sort(self._held)
        self._held, self._held_links = [], 0
        for path, part in zip(self._paths, np.split(links, np.searchsorted(links, self._borders)), strict=True):
            if len(part):
                with path.open("ab") as file:
                    part.tofile(file)


def _merge(path: Path) -> Links:
    """Return the distinct links of a file; links that are there many times take no more memory than once."""
    links = np.empty(0, dtype=np.uint64)
    with path.open("rb") as file:
        while len(part := np.fromfile(file, dtype=np.uint64, count=_MERGED_LINKS)):
            links = _sort([links, part])
    return links


def _sort(parts: list[Links]) -> Links:
    """Return the distinct links of all parts; ``np.unique`` puts them in a hash table first, which is slower."""
    links = np.concatenate([np.empty(0, dtype=np.uint64), *parts])
    links.sort()
    is_first = np.ones(len(links), dtype=np.bool_)
    np.not_equal(links[1:], links[:-1], out=is_first[1:])
    return links[is_first]


def split_links(links: Links) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sources and targets."""
    return (links >> _TO_BITS).astype(np.int64), (links & np.uint64((1 << 32) - 1)).astype(np.int64)
