"""Page texts by node number, compressed one by one, and the passages of about 120 words that searches find.

Workers write a file of texts each; the store joins the files without copying them.
"""

import mmap
import os
import re
import shutil
from array import array
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.corpus.manifest import PASSAGE_WORDS
from pipelines.corpus.tables import map_array
from pipelines.errors import ConfigError

_BLOB = "texts.zst"
_SPANS = "spans.npy"
_LENGTHS = "lengths.npy"
_STARTS = "starts.npy"
_LEVEL = 3
_OPEN_BLOBS = 256
"""Files mapped at once: each map holds a descriptor, and a process may have 1,024."""


class PageStoreWriter:
    """Appends texts to one file, in the order of the nodes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._codec = pa.Codec("zstd", compression_level=_LEVEL)
        self._blob = (folder / _BLOB).open("wb")
        self._ends = array("q", [0])
        self._lengths = array("q")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        self._blob.close()
        if kind is None:
            ends = np.asarray(self._ends, dtype=np.int64)
            np.save(self._folder / _SPANS, np.stack([ends[:-1], ends[1:]], axis=1))
            np.save(self._folder / _LENGTHS, np.asarray(self._lengths, dtype=np.int64))

    def append(self, text: str) -> None:
        """Store a text."""
        source = text.encode("utf-8", "surrogatepass")
        packed = self._codec.compress(source, asbytes=True)
        self._blob.write(packed)
        self._ends.append(self._ends[-1] + len(packed))
        self._lengths.append(len(source))


def join_stores(folder: Path, parts: Iterable[tuple[Path, NDArray[np.bool_]]]) -> None:
    """Join what several writers left into one store; files are linked where the file system can."""
    folder.mkdir(parents=True, exist_ok=True)
    spans, lengths, starts = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)], [0]
    for number, (source, kept) in enumerate(parts):
        blob = folder / _name_blob(number)
        try:
            os.link(source / _BLOB, blob)
        except OSError:  # a file system without hard links
            shutil.copyfile(source / _BLOB, blob)
        spans.append(np.load(source / _SPANS)[kept] + starts[-1])
        lengths.append(np.load(source / _LENGTHS)[kept])
        starts.append(starts[-1] + blob.stat().st_size)
    np.save(folder / _SPANS, np.concatenate(spans))
    np.save(folder / _LENGTHS, np.concatenate(lengths))
    np.save(folder / _STARTS, np.asarray(starts, dtype=np.int64))


def _name_blob(number: int) -> str:
    return f"texts-{number:05}.zst"


class PageStore:
    """Reads texts by node; safe to share between threads."""

    def __init__(self, folder: Path, starts: list[int], spans: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        self._folder = folder
        self._starts = np.asarray(starts, dtype=np.int64)
        self._spans = spans
        self._lengths = lengths
        self._codec = pa.Codec("zstd")
        self._open_blob = lru_cache(maxsize=_OPEN_BLOBS)(self._map_blob)

    @classmethod
    def open(cls, folder: Path) -> "PageStore":
        """Map a store into memory."""
        starts = map_array(folder / _STARTS).tolist()
        missing = [name for name in map(_name_blob, range(len(starts) - 1)) if not (folder / name).is_file()]
        if missing:
            raise ConfigError(f"no {missing[0]} in {folder}; expected a page store of {len(starts) - 1} files")
        return cls(folder, starts, map_array(folder / _SPANS), map_array(folder / _LENGTHS))

    def __len__(self) -> int:
        return len(self._lengths)

    def text(self, node: int) -> str:
        """Return the text of a node."""
        if not 0 <= node < len(self):
            raise IndexError(f"no node {node} in a store of {len(self)}")
        start, end = (int(edge) for edge in self._spans[node])
        number = int(np.searchsorted(self._starts, start, side="right")) - 1
        base = int(self._starts[number])
        blob = self._open_blob(number)
        source: bytes = self._codec.decompress(blob[start - base : end - base], int(self._lengths[node]), asbytes=True)
        return source.decode("utf-8", "surrogatepass")

    def _map_blob(self, number: int) -> memoryview:
        path = self._folder / _name_blob(number)
        with path.open("rb") as stream:
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]* +(?=[^\W\d_a-z]|[\"'“‘(\d])")


def split_passages(text: str, words: int = PASSAGE_WORDS) -> Iterator[str]:
    """Yield pieces of about this many words: whole paragraphs, a long one cut between sentences, else words."""
    held: list[str] = []
    count = 0
    for paragraph in text.split("\n"):
        size = paragraph.count(" ") + 1
        if not paragraph:
            continue
        if held and count + size > words:
            yield "\n".join(held)
            held, count = [], 0
        if size > words + words // 2:
            yield from _cut_paragraph(paragraph, words)
            continue
        held.append(paragraph)
        count += size
    if held:
        yield "\n".join(held)


def _cut_paragraph(paragraph: str, words: int) -> Iterator[str]:
    start = count = 0
    ends = [match.end() for match in _SENTENCE.finditer(paragraph)] + [len(paragraph)]
    previous = 0
    for end in ends:
        size = paragraph.count(" ", previous, end)
        if previous > start and count + size > words:
            yield from _cut_words(paragraph[start:previous].strip(), words)
            start, count = previous, 0
        count, previous = count + size, end
    yield from _cut_words(paragraph[start:].strip(), words)


def _cut_words(text: str, words: int) -> Iterator[str]:
    pieces = text.split(" ")
    if len(pieces) <= words + words // 2:
        yield text
    else:
        yield from (" ".join(pieces[at : at + words]) for at in range(0, len(pieces), words))
