"""Page texts, compressed one by one in a single file, found by node number."""

import mmap
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.errors import ConfigError

_BLOB = "texts.zst"
_OFFSETS = "offsets.npy"
_LENGTHS = "lengths.npy"
_LEVEL = 3


class PageStoreWriter:
    """Appends texts in any order; ``close`` says which of them become nodes, and in which order."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._codec = pa.Codec("zstd", compression_level=_LEVEL)
        self._blob = (folder / _BLOB).open("wb")
        self._offsets = [0]
        self._lengths: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blob.close()

    def append(self, text: str) -> int:
        """Store a text and return its slot."""
        source = text.encode("utf-8", "surrogatepass")
        packed = self._codec.compress(source, asbytes=True)
        self._blob.write(packed)
        self._offsets.append(self._offsets[-1] + len(packed))
        self._lengths.append(len(source))
        return len(self._lengths) - 1

    def close(self, slots: Sequence[int] | None = None) -> None:
        """Finish the store.

        Args:
            slots: the slot of each node, in node order; by default every slot in order of arrival.
        """
        self._blob.close()
        chosen = np.arange(len(self._lengths)) if slots is None else np.asarray(slots, dtype=np.int64)
        starts = np.asarray(self._offsets, dtype=np.int64)
        np.save(self._folder / _OFFSETS, np.stack([starts[chosen], starts[chosen + 1]], axis=1))
        np.save(self._folder / _LENGTHS, np.asarray(self._lengths, dtype=np.int64)[chosen])


class PageStore:
    """Reads texts by node; safe to share between threads."""

    def __init__(self, blob: mmap.mmap | bytes, offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        self._blob = memoryview(blob)
        self._offsets = offsets
        self._lengths = lengths
        self._codec = pa.Codec("zstd")

    @classmethod
    def open(cls, folder: Path) -> "PageStore":
        """Map a store into memory.

        Raises:
            ConfigError: a file of the store is missing.
        """
        for name in (_BLOB, _OFFSETS, _LENGTHS):
            if not (folder / name).is_file():
                raise ConfigError(f"no {name} in {folder}; expected a page store")
        with (folder / _BLOB).open("rb") as stream:
            is_empty = (folder / _BLOB).stat().st_size == 0
            blob = b"" if is_empty else mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return cls(blob, np.load(folder / _OFFSETS), np.load(folder / _LENGTHS))

    def __len__(self) -> int:
        return len(self._lengths)

    def text(self, node: int) -> str:
        """Return the text of a node.

        Raises:
            IndexError: there is no such node.
        """
        if not 0 <= node < len(self):
            raise IndexError(f"no node {node} in a store of {len(self)}")
        start, end = self._offsets[node]
        packed = self._blob[int(start) : int(end)]
        source: bytes = self._codec.decompress(packed, int(self._lengths[node]), asbytes=True)
        return source.decode("utf-8", "surrogatepass")
