"""Measures full-text search beside SQLite's FTS5: ``python -m tests.benchmarks.search 2000000`` takes other sizes.

A generated world lies among passages of distinct text, drawn by Zipf's law from its words and a long tail of invented
ones. A query is a sentence of the world without the name of the page it stands on; that page is to be found.
"""

import asyncio
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from pipelines.corpus.build import build_corpus
from pipelines.corpus.infobox import read_infobox
from pipelines.corpus.manifest import PASSAGE_WORDS
from pipelines.corpus.passages import PassageIndex, PassageRow, write_passages
from pipelines.corpus.scan import render_article
from pipelines.corpus.search import PASSAGES_A_PAGE
from pipelines.corpus.store import Corpus
from pipelines.corpus.texts import split_passages
from pipelines.graph.prose import list_prose
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.benchmarks.measured import Measured

SIZES = (150_000, 600_000)
HOPS, PAGES = 150, 10
WORDS = 300_000
BLOCK = 10_000
ENTITIES = 600
THREADS = 2
AT_ONCE = 8
BEAT = 0.002
_EVERYWHERE = frozenset(
    "a an and are as at be but by did do does for from had has have he her his how in is it its of on or she that the"
    " their they this to was were what when where which who whom whose why will with".split()
)


@dataclass(frozen=True, slots=True)
class Sought:
    """A query, and the node whose page is to be found."""

    query: str
    node: int


def build_world(scratch: Path) -> tuple[list[PassageRow], list[Sought]]:
    """Return the passages of a generated world, and a query for each of some links in its prose."""
    write_world(scratch / "world", WorldConfig(entities=ENTITIES))
    (dump,) = (scratch / "world").glob("*-pages-articles*.xml.bz2")
    build_corpus(dump, scratch / "corpora" / "world")
    corpus = Corpus.open(scratch / "corpora" / "world")
    rows, sought = [], []
    for node in corpus.article_nodes():
        text, title = corpus.text(node), corpus.page(node).title
        rows += [(node, title, piece) for piece in split_passages(render_article(text, read_infobox(text)))]
        links = [link.start for link in corpus.links(node)]
        for sentence in () if corpus.page(node).is_list else list_prose(corpus, node):
            if any(sentence.start <= link < sentence.end for link in links):
                sought.append(Sought(sentence.text.replace(title, " "), node))
    return rows, Random(1).sample(sought, HOPS)


def draw_passages(world: Sequence[PassageRow], count: int) -> Iterator[PassageRow]:
    """Yield so many passages, those of the world strewn among them."""
    counted = Counter(word for _, _, text in world for word in text.split())
    tail = (f"{number * 2_654_435_761 % (1 << 32):08x}".translate(_LETTERS) for number in range(WORDS))
    words = np.array([*(word for word, _ in counted.most_common()), *tail], dtype=object)[:WORDS]
    draws = np.random.default_rng(1)
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    left, every = iter(world), max(count // len(world), 1)
    for number in range(count):
        if number % BLOCK == 0:
            drawn = np.searchsorted(shares, draws.random((BLOCK, PASSAGE_WORDS)) * shares[-1])
        if number % every == 0 and (row := next(left, None)) is not None:
            yield row
        else:
            text = " ".join(words[drawn[number % BLOCK]])
            yield len(world) + number // 4, f"{words[-1 - number // 4 % BLOCK]} {number // 4}", text


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def write_fts(path: Path, passages: Sequence[PassageRow]) -> None:
    """Index passages as the corpus did before tantivy."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        columns = "node UNINDEXED, title, text, tokenize = 'unicode61 remove_diacritics 2'"
        connection.execute(f"CREATE VIRTUAL TABLE passages USING fts5({columns})")
        connection.execute("INSERT INTO passages(passages, rank) VALUES ('automerge', 0)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO passages(node, title, text) VALUES (?, ?, ?)", passages)
        connection.execute("INSERT INTO passages(passages) VALUES ('optimize')")
        connection.execute("COMMIT")


def search_fts(connection: sqlite3.Connection, query: str, k: int) -> list[int]:
    """Return the nodes of the k best passages as the corpus found them before tantivy; long queries as phrases too."""
    words = ["".join(filter(str.isalnum, word)) for word in query.lower().split()]
    words = [word for word in words if word]
    tokens = [word for word in dict.fromkeys(words) if word not in _EVERYWHERE] or words
    matches = [" OR ".join(f'"{token}"' for token in tokens)]
    if len(words) >= 6:
        matches.insert(0, f'{{text}} : "{" ".join(words)}"')
    sql = """SELECT node, title, text, bm25(passages, 0.0, 2.0, 1.0) AS score
             FROM passages WHERE passages MATCH ? ORDER BY score, rowid LIMIT ?"""
    return [int(node) for match in matches for node, *_ in connection.execute(sql, (match, k))][:k]


def measure_size(scratch: Path, world: tuple[list[PassageRow], list[Sought]], count: int) -> list[Measured]:
    """Build both indexes of so many passages and ask both the same."""
    rows, sought = world
    wanted = PAGES * PASSAGES_A_PAGE
    passages = list(draw_passages(rows, count))
    built = [
        _time(lambda: write_passages(scratch / "search", passages, THREADS)),
        _time(lambda: write_fts(scratch / "search.db", passages)),
    ]
    index, fts = PassageIndex.open(scratch / "search"), sqlite3.connect(scratch / "search.db")
    asked = [
        _ask(sought, lambda query: [found.node for found in index.search(query, wanted, PAGES)]),
        _ask(sought, lambda query: search_fts(fts, query, wanted)),
    ]
    fts.close()
    size = sum(file.stat().st_size for file in (scratch / "search").iterdir())
    size_before = (scratch / "search.db").stat().st_size
    idle, busy = (asyncio.run(watch_loop(index, some, wanted)) for some in ([], sought))
    (ours, found), (theirs, found_before) = asked
    what = f"{count:,} passages"
    return [
        Measured(f"{what}: processor time a query, tantivy and FTS5", f"{ours * 1000:.2f} and {theirs * 1000:.1f} ms"),
        Measured("index", f"{size / 1e6:,.0f} and {size_before / 1e6:,.0f} MB"),
        Measured(
            f"processor time of the build with {THREADS} threads",
            f"{built[0][1]:.0f} and {built[1][1]:.0f} s",
        ),
        Measured("seconds of the build", f"{built[0][0]:.0f} and {built[1][0]:.0f} s"),
        Measured(
            f"gold page in the first {PAGES} of {HOPS} text hops", f"{found} and {found_before}", f"{found_before}"
        ),
        Measured(f"longest gap on the loop, {AT_ONCE} searches at once", f"{busy * 1000:.0f} ms", "200 ms"),
        Measured("the same with none", f"{idle * 1000:.0f} ms"),
    ]


def _time(call: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and processor seconds of a call."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def _ask(sought: Sequence[Sought], search: Callable[[str], list[int]]) -> tuple[float, int]:
    """Return the processor seconds a query, and how many find their page among the first."""
    search(sought[0].query)
    started = time.process_time()
    results = [search(each.query) for each in sought]
    spent = (time.process_time() - started) / len(sought)
    hit = (each.node in islice(dict.fromkeys(nodes), PAGES) for each, nodes in zip(sought, results, strict=True))
    return spent, sum(hit)


async def watch_loop(index: PassageIndex, sought: Sequence[Sought], wanted: int) -> float:
    """Return the longest time between two turns of the event loop while searches run, or of one second without."""
    gaps = []

    async def beat() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(BEAT)
            gaps.append(time.perf_counter() - started - BEAT)

    async def ask(some: Sequence[Sought]) -> None:
        for each in some:
            await asyncio.to_thread(index.search, each.query, wanted, PAGES)
            await asyncio.to_thread(index.find_phrases, [" ".join(each.query.split()[:2])], 1000)

    beating = asyncio.create_task(beat())
    await asyncio.gather(*(ask(sought[start::AT_ONCE]) for start in range(AT_ONCE)))
    if not sought:
        await asyncio.sleep(1)
    beating.cancel()
    return max(gaps, default=0.0)


def measure(scratch: Path, sizes: Sequence[int] = SIZES) -> list[Measured]:
    """Measure each size; a million passages take about four gigabytes of disk and one of memory."""
    world = build_world(scratch)
    measured = []
    for count in sizes:
        with TemporaryDirectory(dir=scratch) as folder:
            measured += measure_size(Path(folder), world, count)
    return measured


def main() -> None:
    """Measure the sizes given and print the table."""
    with TemporaryDirectory(prefix="synth-bench-") as scratch:
        for size in map(int, sys.argv[1:] or SIZES):
            for entry in measure(Path(scratch) / str(size), [size]):
                sys.stdout.write(f"| {entry.what} | {entry.value} | {entry.budget} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
