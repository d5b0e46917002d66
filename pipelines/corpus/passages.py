"""The full-text index: passages of about 120 words in SQLite FTS5, found by BM25."""

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSAGE_WORDS = 120
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


def split_passages(text: str, words: int = PASSAGE_WORDS) -> Iterator[str]:
    """Yield pieces of about this many words: whole paragraphs together, a long paragraph cut between words."""
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
        """Give a connection that nobody else uses."""
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


class PassageMemory(PassageIndex):
    """An index in memory, where there is one connection: searches take turns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    @contextmanager
    def borrow(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, once nobody else uses it."""
        with self._lock:
            yield self._connection

    def close(self) -> None:
        """Close the connection; it may not be in use."""
        self._connection.close()


def search_passages(connection: sqlite3.Connection, query: str, k: int) -> list[Passage]:
    """Return the k best passages for the words of a query, any of which may match; operators have no meaning.

    Order is by score, then by place in the index, so it is the same every time.
    """
    tokens = list(dict.fromkeys(_TOKEN.findall(query.lower())))
    # Words that are everywhere decide nothing and cost a scan of every passage.
    tokens = [token for token in tokens if token not in _EVERYWHERE] or tokens
    if not tokens or k <= 0:
        return []
    expression = " OR ".join(f'"{token}"' for token in tokens)
    rows = connection.execute(_SEARCH, (expression, k))
    return [Passage(node, title, text, -score) for node, title, text, score in rows]


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


def _cut_paragraph(paragraph: str, words: int) -> Iterator[str]:
    all_words = paragraph.split(" ")
    for start in range(0, len(all_words), words):
        yield " ".join(all_words[start : start + words])
