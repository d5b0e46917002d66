"""Page texts by node number, compressed one by one, and the full-text index over them.

Workers write a file of texts each; the store joins the files without copying them. The index holds passages of about
120 words in SQLite FTS5, ranked by BM25.
"""

import mmap
import os
import re
import shutil
import sqlite3
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
    """Join what several writers left into one store; files are linked where the file system can.

    Args:
        folder: of the store.
        parts: the folder of each writer, and which of its texts are kept; the kept texts are the nodes, in order.
    """
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
        """Map a store into memory.

        Raises:
            ConfigError: a file of the store is missing.
        """
        starts = map_array(folder / _STARTS).tolist()
        missing = [name for name in map(_name_blob, range(len(starts) - 1)) if not (folder / name).is_file()]
        if missing:
            raise ConfigError(f"no {missing[0]} in {folder}; expected a page store of {len(starts) - 1} files")
        return cls(folder, starts, map_array(folder / _SPANS), map_array(folder / _LENGTHS))

    def __len__(self) -> int:
        return len(self._lengths)

    def text(self, node: int) -> str:
        """Return the text of a node.

        Raises:
            IndexError: there is no such node.
        """
        if not 0 <= node < len(self):
            raise IndexError(f"no node {node} in a store of {len(self)}")
        start, end = (int(edge) for edge in self._spans[node])
        number = int(np.searchsorted(self._starts, start, side="right")) - 1
        base = int(self._starts[number])
        packed = self._open_blob(number)[start - base : end - base]
        source: bytes = self._codec.decompress(packed, int(self._lengths[node]), asbytes=True)
        return source.decode("utf-8", "surrogatepass")

    def _map_blob(self, number: int) -> memoryview:
        with (self._folder / _name_blob(number)).open("rb") as stream:
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))


_EVERYWHERE_LIST = """
a an and are as at be but by did do does for from had has have he her his how in is it its of on or she that the their
they this to was were what when where which who whom whose why will with
"""
_EVERYWHERE = frozenset(_EVERYWHERE_LIST.split())
_TOKEN = re.compile(r"\w+")
_SCHEMA = """
CREATE VIRTUAL TABLE passages USING fts5(
    node UNINDEXED, title, text, tokenize = 'unicode61 remove_diacritics 2'
)
"""
_SEARCH = """
SELECT node, title, text, bm25(passages, 0.0, 2.0, 1.0) AS score
FROM passages WHERE passages MATCH ? ORDER BY score, rowid LIMIT ?
"""
_PHRASES = "SELECT node FROM passages WHERE passages MATCH ? LIMIT ?"


@dataclass(frozen=True, slots=True)
class Passage:
    """A found piece of an article."""

    node: int
    title: str
    text: str
    score: float
    """BM25 with the sign turned: higher is better."""


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
    """Yield a text, in pieces if it is far longer than this many words: a table, or a list in one line."""
    pieces = text.split(" ")
    if len(pieces) <= words + words // 2:
        yield text
    else:
        yield from (" ".join(pieces[at : at + words]) for at in range(0, len(pieces), words))


def write_passages(path: Path, passages: Iterable[tuple[int, str, str]]) -> int:
    """Index passages given as (node, title, text) and return their number."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_SCHEMA)
        connection.execute("INSERT INTO passages(passages, rank) VALUES ('automerge', 0)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO passages(node, title, text) VALUES (?, ?, ?)", passages)
        connection.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        connection.execute("COMMIT")
        (count,) = connection.execute("SELECT count(*) FROM passages").fetchone()
    connection.close()
    return int(count)


class PassageIndex:
    """An index that is open for reading, with a connection for each search that is under way.

    Threads that share a connection wait for each other, and some of them with the interpreter's lock in hand.
    """

    def __init__(self, path: Path) -> None:
        self._address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        self._idle: list[sqlite3.Connection] = []

    @contextmanager
    def borrow(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that no other thread uses."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = sqlite3.connect(self._address, uri=True, check_same_thread=False)
        try:
            yield connection
        finally:
            self._idle.append(connection)

    def close(self) -> None:
        """Close the connections; none may be in use."""
        while self._idle:
            self._idle.pop().close()


QUOTED_WORDS = 6
"""From so many words on, a query may be a quotation."""


def search_passages(connection: sqlite3.Connection, query: str, k: int) -> list[Passage]:
    """Return the k best passages for the words of a query, any of which may match; operators have no meaning.

    A passage that holds a long query word for word comes first. Order is by score, then by place in the index, so it is
    the same every time.
    """
    words = _TOKEN.findall(query.lower())
    tokens = list(dict.fromkeys(words))
    # Words that are everywhere decide nothing and cost a scan of every passage.
    tokens = [token for token in tokens if token not in _EVERYWHERE] or tokens
    if not tokens or k <= 0:
        return []
    expressions = [" OR ".join(f'"{token}"' for token in tokens)]
    if len(words) >= QUOTED_WORDS:
        expressions.insert(0, f'{{text}} : "{" ".join(words)}"')
    found: dict[tuple[int, str], Passage] = {}
    for expression in expressions:
        for node, title, text, score in connection.execute(_SEARCH, (expression, k)):
            found.setdefault((node, text), Passage(node, title, text, -score))
    return list(found.values())[:k]


def find_phrases(connection: sqlite3.Connection, phrases: Iterable[str], limit: int) -> tuple[int, ...] | None:
    """Return the nodes with a passage that holds one of some phrases word for word, ascending.

    Case and diacritics do not matter, and neither do marks between the words. A phrase that is cut by the end of a
    passage is not found; titles are not looked at.

    Args:
        connection: borrowed from a :class:`PassageIndex`.
        phrases: without a word in it a phrase is left out.
        limit: passages read at most.

    Returns:
        None when there are more passages than the limit.
    """
    quoted = dict.fromkeys(" ".join(_TOKEN.findall(phrase.lower())) for phrase in phrases)
    expression = " OR ".join(f'"{phrase}"' for phrase in quoted if phrase)
    if not expression:
        return ()
    found = [int(node) for (node,) in connection.execute(_PHRASES, (f"{{text}} : ({expression})", limit + 1))]
    return None if len(found) > limit else tuple(sorted(set(found)))
