"""What each page of a small corpus contributes to the tables of the whole: links, names, facts, passages.

An overlay changes a page or adds one, and everything that counts over pages changes with it: in-degrees, names that
are taken from link texts, the search index. Here stands what has to be taken off and added for one page.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpus.articles import describe_article, find_bold_names
from pipelines.corpus.dump import RawPage, Site
from pipelines.corpus.infobox import FieldValue, Infobox, read_infobox
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.parts import ARTICLE_PARTS
from pipelines.corpus.passages import split_passages
from pipelines.corpus.readable import render_article
from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.tables import FACTS
from pipelines.corpus.titles import TitleRules, strip_qualifier
from pipelines.corpus.wikitext import find_links

PASSAGES_A_PAGE = 1 << 20
"""Rows of the search index kept for a page, so that a page's passages stay in their place when their number changes."""
_DESCRIBED = ARTICLE_PARTS.names[1:]
_INDEX = """
CREATE VIRTUAL TABLE passages USING fts5(
    node UNINDEXED, title, text, tokenize = 'unicode61 remove_diacritics 2'
)
"""


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a page to an article of the wiki."""

    title: str
    """Normalised; there may be no such page."""
    anchor_text: str
    start: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A page as the builder reads it."""

    described: dict[str, Any]
    """Row of ``parts.ARTICLE_PARTS`` by column."""
    links: tuple[Link, ...]
    values: tuple[tuple[Fact, str], ...]
    """Facts of node 0 without target, each with the title that its value links to, or an empty one."""
    boxed: tuple[tuple[str, str], ...]
    """(title, text) of every infobox value that is one link."""
    passages: tuple[str, ...]


def read_links(rules: TitleRules, text: str) -> tuple[Link, ...]:
    """Return the links of a page to articles, in order."""
    found = []
    for link in find_links(text, rules.language):
        target = rules.resolve(link.target)
        if target is not None and target.namespace == 0:
            found.append(Link(target.title, link.anchor_text, link.start))
    return tuple(found)


def read_page(rules: TitleRules, page: RawPage, words: int) -> Reading:
    """Read a page; ``words`` is the length of a passage."""
    infobox = read_infobox(page.text)
    values = tuple(_list_values(rules, infobox)) if infobox else ()
    return Reading(
        described=dict(zip(_DESCRIBED, describe_article(page, infobox), strict=True)),
        links=read_links(rules, page.text),
        values=tuple((fact, title) for fact, title in values if fact.text),
        boxed=tuple({(title, fact.text): None for fact, title in values if title}),
        passages=tuple(split_passages(render_article(page.text, infobox), words)),
    )


def _list_values(rules: TitleRules, infobox: Infobox) -> Iterator[tuple[Fact, str]]:
    for field in sorted(infobox.fields, key=lambda field: field.start):
        for index, value in enumerate(field.values):
            fact = Fact(
                0, field.key, field.start, field.end, index, len(field.values), value.text, value.iso, value.start,
                value.end, value.link_start, -1,
            )  # fmt: skip
            yield fact, _find_title(rules, value)


def _find_title(rules: TitleRules, value: FieldValue) -> str:
    target = rules.resolve(value.link) if value.link is not None else None
    return target.title if target is not None and target.namespace == 0 else ""


class Survey:
    """What is counted over all pages of a corpus, made once for all overlays of it.

    Meant for corpora of some thousand pages: every page's links are read, and all is held in memory.
    """

    def __init__(self, base: Corpus) -> None:
        self.base = base
        manifest = base.manifest
        self.rules = TitleRules(Site(manifest.dbname, manifest.base_url, manifest.language, "first-letter", ()))
        self.words = manifest.options.passage_words
        self.last_id = max((base.page(node).page_id for node in base.article_nodes()), default=0)
        self._nodes: dict[str, int] = {}
        self.red: dict[str, set[int]] = defaultdict(set)
        """Pages that link to a title that is no page, by title."""
        self.anchors: dict[int, Counter[str]] = defaultdict(Counter)
        """How many pages use a text for a link to a node."""
        self.boxed: dict[int, Counter[str]] = defaultdict(Counter)
        """How many infobox values use it."""
        for node in base.article_nodes():
            self._add_page(node)

    def _add_page(self, node: int) -> None:
        for title, text in self.list_anchors(self.links(node)):
            target = self.find(title)
            if target >= 0:
                self.anchors[target][text] += 1
            else:
                self.red[title].add(node)
        for target, text in self.list_boxed(node):
            self.boxed[target][text] += 1

    def find(self, title: str) -> int:
        """Return the node of a normalised title, -1 for none."""
        if title not in self._nodes:
            found = self.base.find(title)
            self._nodes[title] = -1 if found is None else found
        return self._nodes[title]

    def links(self, node: int) -> tuple[Link, ...]:
        """Return the links of a page of the base."""
        return read_links(self.rules, self.base.text(node))

    def list_anchors(self, links: Iterable[Link]) -> list[tuple[str, str]]:
        """Return the different (title, text) of a page's links."""
        return list(dict.fromkeys((link.title, link.anchor_text) for link in links))

    def list_boxed(self, node: int) -> list[tuple[int, str]]:
        """Return the different (node, text) of a page's infobox values that are one link."""
        return list(dict.fromkeys((fact.target, fact.text) for fact in self.base.facts(node) if fact.target >= 0))

    @cached_property
    def redirects(self) -> dict[int, tuple[str, ...]]:
        """Titles of the redirects that lead to a node."""
        found: dict[int, list[str]] = defaultdict(list)
        for row in pq.read_table(self.base.folder / "redirects.parquet", columns=["title", "node"]).to_pylist():
            found[row["node"]].append(row["title"])
        return {node: tuple(titles) for node, titles in found.items()}

    def name_node(self, title: str, bold: Iterable[str], redirects: Iterable[str], anchors: Iterable[str]) -> set[str]:
        """Return the names of an article by the rules of ``corpus.aliases``."""
        longer = {strip_qualifier(title), *bold, *anchors}
        return {title, *redirects} | {name for name in longer if len(name) > 1}

    def find_bold(self, node: int) -> list[str]:
        """Return the names that a page's lead sets in bold."""
        return find_bold_names(self.base.text(node))

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Sources, targets and positions of all links of the graph, by source and target."""
        graph = self.base.graph
        sources = np.repeat(np.arange(graph.node_count), np.diff(graph.offsets).astype(np.int64))
        return sources, graph.targets.astype(np.int64), graph.positions.astype(np.int64)

    @cached_property
    def facts(self) -> pa.Table:
        """The table of facts, by node."""
        return pq.read_table(self.base.folder / "facts.parquet").cast(FACTS).combine_chunks()

    @cached_property
    def fact_offsets(self) -> NDArray[np.int64]:
        """Rows of node n in ``facts`` are those from ``[n]`` up to ``[n + 1]``."""
        nodes = self.facts["node"].to_numpy()
        return np.searchsorted(nodes, np.arange(len(self.base.article_nodes()) + 1))

    @cached_property
    def index(self) -> sqlite3.Connection:
        """The search index in memory, to be copied by overlays."""
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute(_INDEX)
        with sqlite3.connect(f"{(self.base.folder / 'search.db').resolve().as_uri()}?mode=ro", uri=True) as source:
            rows = source.execute("SELECT node, title, text FROM passages ORDER BY rowid").fetchall()
        source.close()
        places: Counter[int] = Counter()
        for node, title, text in rows:
            insert_passage(connection, node, places[node], title, text)
            places[node] += 1
        connection.commit()
        return connection


def insert_passage(connection: sqlite3.Connection, node: int, place: int, title: str, text: str) -> None:
    """Add a passage to an index in memory; its row number says its node and its place in the article."""
    row = (node * PASSAGES_A_PAGE + place + 1, node, title, text)
    connection.execute("INSERT INTO passages(rowid, node, title, text) VALUES (?, ?, ?, ?)", row)


def tabulate_facts(facts: Iterable[Fact]) -> pa.Table:
    """Return facts as a table with the columns of ``facts.parquet``."""
    rows = [tuple(getattr(fact, field.name) for field in fields(Fact)) for fact in facts]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(FACTS)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, FACTS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=FACTS)


def make_graph(
    count: int, sources: NDArray[np.int64], targets: NDArray[np.int64], positions: NDArray[np.int64]
) -> LinkGraph:
    """Return a graph from its links, each pair once, in any order."""
    order = np.lexsort((targets, sources))
    turned = np.lexsort((sources, targets))
    in_degree = np.bincount(targets, minlength=count)
    return LinkGraph(
        offsets=np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))]),
        targets=targets[order].astype(np.uint32),
        positions=positions[order].astype(np.uint32),
        in_offsets=np.concatenate([[0], np.cumsum(in_degree)]),
        in_sources=sources[turned].astype(np.uint32),
        in_degree=in_degree.astype(np.uint32),
    )
