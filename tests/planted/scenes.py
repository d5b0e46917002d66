"""A corpus with some pages changed or added, in memory: the ground of a planted defect.

Only those pages are read, by the functions that build a corpus; the rest comes from the base. What counts over pages
(in-degrees, link graph, names from link texts, facts, search) is as if the corpus had been built from the changed
pages, so that a check cannot tell an overlay from a corpus.

What each page of a small corpus contributes to the tables of the whole: links, names, facts, passages.

An overlay changes a page or adds one, and everything that counts over pages changes with it: in-degrees, names that
are taken from link texts, the search index. Here stands what has to be taken off and added for one page.

A question in an overlay: how a defect is set up, and what the checks say of it.

Clean questions to plant defects in: what the pipeline itself accepts on small toy worlds, by both recipes.

A small BM25 of the bench's own: what one text search finds, without the index that the check asks.

D24: one field of an accepted question and its proof changed; whoever verifies the question must notice.

A demand that was lowered makes another claim, not a false one, and nobody can notice it from the row alone. So these
are not planted: the agreement that was demanded, changing facts allowed, a larger share of one answer, fewer results of
a search, near misses no longer looked for where there were none, shortcuts no longer looked for, another limit of hubs,
and another date of a dump that is not at hand. What verification does not speak for (seed, split, attempts, difficulty,
where a picture came from) is not planted either.
"""

import math
import re
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel

from pipelines.checks.examination import Claim, examine
from pipelines.checks.proofs import find_problems
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.corpus.build import build_corpus
from pipelines.corpus.dump import RawPage, Site, TitleRules, normalise_spaces, strip_qualifier
from pipelines.corpus.infobox import FieldValue, Infobox, read_infobox
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.manifest import ANCHOR_PAGES, PASSAGE_WORDS
from pipelines.corpus.scan import ARTICLE_PARTS, describe_article, find_bold_names, render_article
from pipelines.corpus.store import Corpus
from pipelines.corpus.tables import FACTS
from pipelines.corpus.texts import PassageIndex, split_passages
from pipelines.corpus.wikitext import find_links
from pipelines.errors import ConfigError
from pipelines.graph.proofs import make_question_id
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.ids import digest_value
from pipelines.names import digest_aliases, fold_name
from pipelines.run.assembly import Assembly
from pipelines.run.corpora import ensure_corpus, find_dump
from pipelines.run.progress import SilentReporter
from pipelines.run.runner import StageReport, run_stage, select_stages
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from schemas.corpus import Fact, Page
from schemas.datasets import Grounding
from schemas.proofs import Constraint, Evidence, Hop, NearMiss, Proof
from tests.planted.disguises import draw_sentence
from tests.planted.words import Pair, Vocabulary, invent_person, invent_title, invent_word

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
    for shown in sorted(infobox.fields, key=lambda shown: shown.start):
        for index, value in enumerate(shown.values):
            fact = Fact(
                0, shown.key, shown.start, shown.end, index, len(shown.values), value.text, value.iso, value.start,
                value.end, value.link_start, -1,
            )  # fmt: skip
            yield fact, _find_title(rules, value)


def _find_title(rules: TitleRules, value: FieldValue) -> str:
    target = rules.resolve(value.link) if value.link is not None else None
    return target.title if target is not None and target.namespace == 0 else ""


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


class Survey:
    """What is counted over all pages of a corpus, made once for all overlays of it.

    Meant for corpora of some thousand pages: every page's links are read, and all is held in memory.
    """

    def __init__(self, base: Corpus) -> None:
        self.base = base
        manifest = base.manifest
        self.rules = TitleRules(Site(manifest.dbname, manifest.base_url, manifest.language, "first-letter", ()))
        self.words = PASSAGE_WORDS
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


KEPT_SURVEYS = 16
_STAMP = "2000-01-01T00:00:00Z"
_UNKNOWN = -1


@lru_cache(maxsize=KEPT_SURVEYS)
def survey(base: Corpus) -> Survey:
    """Return what is counted over all pages of a corpus, made once."""
    return Survey(base)


class OverlayCorpus(Corpus):
    """A corpus over another one; nodes of the base keep their numbers, added pages follow."""

    def __init__(self, base: Corpus, edits: Mapping[int, str], added: Sequence[tuple[str, str]] = ()) -> None:
        """Read the changed pages.

        Args:
            base: a complete corpus of some thousand pages at most.
            edits: new wikitext by node.
            added: title and wikitext of new articles.

        Raises:
            ConfigError: a node does not exist, or a title is taken.
        """
        self.base, self._survey = base, survey(base)
        first = len(base.article_nodes())
        _check_pages(base, edits, added)
        counts = replace(base.manifest.counts, articles=first + len(added))
        digest = digest_value([base.digest, sorted(edits.items()), list(added)])
        super().__init__(base.folder, replace(base.manifest, counts=counts, digest=digest))
        self._added = {title: first + place for place, (title, _) in enumerate(added)}
        # A link to a page that did not exist leads somewhere now.
        waking = {node for title in self._added for node in self._survey.red.get(title, ())}
        self._texts = {node: base.text(node) for node in waking} | dict(edits)
        self._texts |= {first + place: text for place, (_, text) in enumerate(added)}
        self._titles_added = [title for title, _ in added]
        self._edited = frozenset(edits)
        self._read = {node: self._read_text(node) for node in sorted(self._texts)}

    def text(self, node: int) -> str:
        """Return an article's wikitext."""
        return self._texts[node] if node in self._texts else self.base.text(node)

    def find(self, title: str) -> int | None:
        """Return the node of an exact title, redirects followed."""
        plain = normalise_spaces(title)
        return self._added[plain] if plain in self._added else self.base.find(title)

    def aliases(self, node: int) -> tuple[str, ...]:
        """Return all names of an article, its title included, sorted."""
        return self._names[node] if node in self._names else self.base.aliases(node)

    def nodes_of_type(self, type: str) -> NDArray[np.uint32]:
        """Return the nodes whose page has this type, ascending."""
        kept = [node for node in self.base.nodes_of_type(type).tolist() if node not in self._read]
        found = [node for node, reading in self._read.items() if reading.described["type"] == type]
        return np.array(sorted((*kept, *found)), dtype=np.uint32)

    def read_fact_tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the facts of all pages as tables that part no node from its facts."""
        yield self._fact_table.select(list(columns))

    def close(self) -> None:
        """Let go of what is large; the base stays open."""
        super().close()
        for name in ("graph", "_fact_table"):
            self.__dict__.pop(name, None)
        self._page_of.cache_clear()
        self._facts_of.cache_clear()

    @cached_property
    def graph(self) -> LinkGraph:
        """The link graph of all pages."""
        sources, targets, positions = self._survey.edges
        kept = ~np.isin(sources, list(self._read))
        new = np.array(list(self._list_edges()), dtype=np.int64).reshape(-1, 3).T
        ends = [
            np.concatenate([old[kept], added]) for old, added in zip((sources, targets, positions), new, strict=True)
        ]
        return make_graph(len(self.article_nodes()), *ends)

    def _list_edges(self) -> Iterator[tuple[int, int, int]]:
        for node, reading in self._read.items():
            first: dict[int, int] = {}
            for link in reading.links:
                first.setdefault(self._find_node(link.title), link.start)
            yield from ((node, target, start) for target, start in first.items() if target not in (node, _UNKNOWN))

    def _find_node(self, title: str) -> int:
        return self._added[title] if title in self._added else self._survey.find(title)

    def _read_text(self, node: int) -> Reading:
        """Read a page as if it stood in the dump; a changed one has another revision."""
        if node < len(self.base.article_nodes()):
            page = self.base.page(node)
            revision = page.revision + (node in self._edited)
            raw = RawPage(page.page_id, 0, page.title, None, revision, page.timestamp, self._texts[node])
        else:
            place = node - len(self.base.article_nodes())
            number = self._survey.last_id + 1 + place
            raw = RawPage(number, 0, self._titles_added[place], None, number, _STAMP, self._texts[node])
        return read_page(self._survey.rules, raw, self._survey.words)

    def _read_page(self, node: int) -> Page:
        in_degree = int(self.graph.in_degree[node])
        if node not in self._read:
            return replace(self.base.page(node), in_degree=in_degree)
        described = {name: value for name, value in self._read[node].described.items() if name not in _NOT_OF_PAGES}
        if node >= len(self.base.article_nodes()):
            return Page(node=node, in_degree=in_degree, **described, **_NOTHING_KNOWN)
        before = self.base.page(node)
        written = described.pop("image")
        image = before.image if before.image_free else written or before.image
        return replace(before, in_degree=in_degree, image=image, **described)

    def _read_facts(self, node: int) -> tuple[Fact, ...]:
        if node not in self._read:
            return self.base.facts(node)
        return tuple(
            replace(fact, node=node, target=self._find_node(title) if title else _UNKNOWN)
            for fact, title in self._read[node].values
        )

    @cached_property
    def _fact_table(self) -> pa.Table:
        facts, offsets = self._survey.facts, self._survey.fact_offsets
        pieces, start = [], 0
        for node in self._read:
            end = int(offsets[min(node, len(offsets) - 1)])
            pieces += [facts.slice(start, end - start), tabulate_facts(self.facts(node))]
            start = int(offsets[min(node + 1, len(offsets) - 1)])
        return pa.concat_tables([*pieces, facts.slice(start)])

    @cached_property
    def _names(self) -> dict[int, tuple[str, ...]]:
        """Names of the nodes that changed pages lead to, or led to, and of those pages."""
        anchors, boxed = self._count_changes()
        touched = set(self._read) | set(anchors) | set(boxed)
        least, known = ANCHOR_PAGES, self._survey
        names = {}
        for node in touched:
            used, inside = Counter(known.anchors.get(node, ())), Counter(known.boxed.get(node, ()))
            used.update(anchors.get(node, {}))
            inside.update(boxed.get(node, {}))
            shown = [text for text in used | inside if used[text] >= least or inside[text] > 0]
            shown = [text for text in shown if any(map(str.isalpha, text))]
            reading = self._read.get(node)
            bold = reading.described["bold"] if reading else known.find_bold(node)
            title = reading.described["title"] if reading else self.base.page(node).title
            names[node] = tuple(sorted(known.name_node(title, bold, known.redirects.get(node, ()), shown)))
        return names

    def _count_changes(self) -> tuple[dict[int, Counter[str]], dict[int, Counter[str]]]:
        """Return how many pages more (or less) use a text for a link to a node, anywhere and in infobox values."""
        anchors: dict[int, Counter[str]] = {}
        boxed: dict[int, Counter[str]] = {}
        for node, reading in self._read.items():
            if node < len(self.base.article_nodes()):
                for title, text in self._survey.list_anchors(self._survey.links(node)):
                    _add(anchors, self._survey.find(title), text, -1)
                for target, text in self._survey.list_boxed(node):
                    _add(boxed, target, text, -1)
            for title, text in self._survey.list_anchors(reading.links):
                _add(anchors, self._find_node(title), text, 1)
            for target, text in {(self._find_node(title), text) for title, text in reading.boxed if text}:
                _add(boxed, target, text, 1)
        return anchors, boxed

    @cached_property
    def _passages(self) -> PassageMemory:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._survey.index.backup(connection)
        for node, reading in self._read.items():
            span = (node * PASSAGES_A_PAGE, (node + 1) * PASSAGES_A_PAGE)
            connection.execute("DELETE FROM passages WHERE rowid > ? AND rowid <= ?", span)
            for place, text in enumerate(reading.passages):
                insert_passage(connection, node, place, reading.described["title"], text)
        connection.commit()
        return PassageMemory(connection)


_NOT_OF_PAGES = ("title_hash", "bold")
_NOTHING_KNOWN: dict[str, Any] = {
    "qid": "",
    "sitelinks": -1,
    "statements": -1,
    "identifiers": -1,
    "classes": (),
    "image_free": False,
}


def _check_pages(base: Corpus, edits: Mapping[int, str], added: Sequence[tuple[str, str]]) -> None:
    count = len(base.article_nodes())
    unknown = [node for node in edits if not 0 <= node < count]
    taken = [title for title, _ in added if base.find(title) is not None]
    if unknown or taken or len({title for title, _ in added}) != len(added):
        raise ConfigError(
            f"overlay: edits of nodes {unknown} of {count}, added titles taken: {taken}; "
            "edits name existing nodes, and added titles are new and differ"
        )


def _add(counts: dict[int, Counter[str]], node: int, text: str, number: int) -> None:
    if node >= 0:
        counts.setdefault(node, Counter())[text] += number


def relocate(proof: Proof, overlay: Corpus) -> Proof:
    """Return a proof of the base as it is about an overlay: digest, in-degrees, names, and where its evidence stands.

    Evidence that a changed page no longer has stays as it was, so that the checks say so.
    """
    nodes = []
    for node in proof.nodes:
        number = overlay.find(node.title)
        nodes.append(node if number is None else node.model_copy(update={"in_degree": overlay.page(number).in_degree}))
    names = [name for node in nodes for name in _name_node(overlay, node.title)]
    moved = {
        "corpus": overlay.digest,
        "nodes": tuple(nodes),
        "hops": tuple(hop.model_copy(update={"evidence": _move(hop.evidence, overlay)}) for hop in proof.hops),
        "answer_evidence": _move(proof.answer_evidence, overlay),
        "corroboration": None if proof.corroboration is None else _move(proof.corroboration, overlay),
        "alias_digest": digest_aliases(names),
    }
    return proof.model_copy(update=moved)


def _name_node(corpus: Corpus, title: str) -> tuple[str, ...]:
    number = corpus.find(title)
    return (title,) if number is None else (title, *corpus.aliases(number))


def _move(evidence: Evidence, corpus: Corpus) -> Evidence:
    """Return evidence at the place where its text stands in the corpus's page: the same field, or the same sentence."""
    number = corpus.find(evidence.title)
    if number is None or corpus.page(number).revision == evidence.revision:
        return evidence
    text = corpus.text(number)
    starts = [fact.start for fact in corpus.facts(number) if fact.key == evidence.key] if evidence.key else []
    start = next((start for start in starts if text.startswith(evidence.text, start)), text.find(evidence.text))
    if start < 0:
        return evidence
    shift = start - evidence.start
    return evidence.model_copy(
        update={
            "revision": corpus.page(number).revision,
            "start": start,
            "end": evidence.end + shift,
            "link_start": evidence.link_start + shift if evidence.link_start >= 0 else -1,
        }
    )


K1, B = 1.2, 0.75
TITLE_WEIGHT = 2
ARTICLES_A_RANK = 100
"""Articles of a corpus for each place of a search that is looked at: a small corpus is searched less deep."""
CLEARLY = 3
"""How many times further down than the limit the page of a clean twin's answer must stand."""
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    """
    a an and are as at be but by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()
)


@dataclass(frozen=True, slots=True)
class _Bag:
    """A passage as counted words; those of the title count double."""

    node: int
    words: Counter[str]
    length: int


def rank_by_words(corpus: Corpus, query: str, node: int, text: str) -> int:
    """Return the place of an article among those found by the words of a query, 1 for the first.

    Args:
        corpus: all other articles.
        query: any words.
        node: the article that is looked for.
        text: its wikitext, in place of the corpus's.
    """
    bags = [*(bag for bag in _list_bags(corpus) if bag.node != node), *_cut(node, corpus.page(node).title, text)]
    wanted = set(_split(query)) - _COMMON
    frequency = {word: sum(word in bag.words for bag in bags) for word in wanted}
    mean = sum(bag.length for bag in bags) / len(bags)
    best: dict[int, float] = {}
    for bag in bags:
        score = _score(bag, frequency, len(bags), mean)
        best[bag.node] = max(score, best.get(bag.node, 0.0))
    own = best[node]
    return 1 + sum(score > own for score in best.values()) if own > 0 else len(best)


def is_far(corpus: Corpus, query: str, node: int, text: str, rank: int) -> bool:
    """Say whether an article is nowhere near those that a search for some words finds.

    Args:
        corpus: all other articles.
        query: any words.
        node: the article that must not be found.
        text: its wikitext, in place of the corpus's.
        rank: how many results may not hold it; 0 looks for nothing.
    """
    limit = max(1, min(rank, len(corpus.article_nodes()) // ARTICLES_A_RANK))
    return not rank or rank_by_words(corpus, query, node, text) > limit * CLEARLY


def _score(bag: _Bag, frequency: dict[str, int], count: int, mean: float) -> float:
    score = 0.0
    for word, pages in frequency.items():
        found = bag.words[word]
        if found:
            weight = math.log(1 + (count - pages + 0.5) / (pages + 0.5))
            score += weight * found * (K1 + 1) / (found + K1 * (1 - B + B * bag.length / mean))
    return score


@lru_cache(maxsize=16)
def _list_bags(corpus: Corpus) -> tuple[_Bag, ...]:
    return tuple(
        bag for node in corpus.article_nodes() for bag in _cut(node, corpus.page(node).title, corpus.text(node))
    )


def _cut(node: int, title: str, text: str) -> list[_Bag]:
    head = _split(title) * TITLE_WEIGHT
    bags = []
    for passage in split_passages(render_article(text, read_infobox(text))):
        words = _split(passage)
        bags.append(_Bag(node, Counter((*head, *words)), len(head) + len(words)))
    return bags


def _split(text: str) -> list[str]:
    return [fold_name(word) for word in _WORD.findall(text.lower())]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How large the worlds are, and how many seeds each recipe gets in one."""

    entities: int
    seeds: Mapping[str, int]
    passes: int = 1
    """Times that injection, which accepts few, asks each seed: every pass draws other facts and other chains."""


LARGE = PoolSize(450, {"paths": 200, "injection": 400}, passes=5)
SMALL = PoolSize(300, {"paths": 25, "injection": 130}, passes=2)
LAST = "groundings"
METHODS = ("paths", "injection")
SETTINGS = (
    "seeds.small_corpus.min_in_degree=1",
    "paths.per_seed=2",
    "rewrites.min_alone_first=2",
    "rewrites.min_alone=2",
    "groundings.min_answers=2",
    "injections.rounds=[1, 2, 3]",
    "injections.weights=[0.4, 0.4, 0.2]",
    "questions.max_answer_share=0.5",
    "runtime.workers=1",
)
"""Small worlds: fewer entities and answers than the recipe demands of a large one, all else as shipped."""
TRUSTING = ('questions.agreement="uncontradicted"', "rewrites.near_misses=0")
"""What is not known counts as right: no sentence need confirm an answer, and infoboxes are taken to be complete."""
Reports = tuple[tuple[StageReport, ...], ...]
"""Funnel by pass."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A small world and the questions that the pipeline accepts in it."""

    missing: float
    world: Path
    corpus: Corpus
    questions: tuple[Grounding, ...]
    """Of both recipes, those of the path recipe first."""
    reports: Mapping[str, Reports]
    """Funnels by method."""
    config: WorldConfig
    root: Path
    size: PoolSize
    first: tuple[Grounding, ...]
    """Questions of the first pass of each recipe."""

    @cached_property
    def ground(self) -> Indexes:
        """The world's corpus with what checks count by."""
        return Indexes(self.corpus)

    @cached_property
    def later(self) -> Corpus:
        """The same world a year on."""
        folder = self.root / "later"
        write_world(folder, self.config, later=True)
        dump = next(folder.glob("*-pages-articles-multistream.xml.bz2"))
        build_corpus(dump, self.root / "later-corpus" / "later")
        return Corpus.open(self.root / "later-corpus" / "later")

    def assemble(self, *settings: str) -> Assembly:
        """Return the parts of a run over the pool's corpus, with other settings."""
        config = make_config(read_recipe("demo"), [*_list_settings(self.config), *settings])
        return Assembly(config, Workspace(self.root / "workspace"), self.corpus)

    @cached_property
    def trusted(self) -> tuple[Grounding, ...]:
        """What the first pass of each recipe accepts of the same seeds where UNKNOWN refuses nothing."""
        workspace, found = Workspace(self.root / "workspace"), list[Grounding]()
        for method in METHODS:
            config = _configure(method, self.config, self.size, self.config.seed, TRUSTING)
            found += _run(config, Assembly(config, workspace, self.corpus))[0]
        return tuple(found)

    def find_method(self, question: Grounding) -> str:
        """Return the recipe that made a question: only the path recipe leaves the answer node without a descriptor."""
        return METHODS[bool(question.proof.descriptors[-1].strip())]

    @cached_property
    def steady(self) -> tuple[Grounding, ...]:
        """Questions whose answer a text search is far from finding, by the bench's own ranking.

        One at the edge is no clean twin: any page more or less moves it over.
        """
        return tuple(question for question in self.questions if self.is_hidden(question, question.text))

    def is_hidden(self, question: Grounding, text: str) -> bool:
        """Say whether a wording of a question is far from finding the page of its answer."""
        (number,) = locate_nodes(self.corpus, question.proof.nodes[-1:])
        rank = question.proof.thresholds.retrieval_rank
        return is_far(self.corpus, text, number, self.corpus.text(number), rank)

    def draw(self, rng: Random) -> Grounding:
        """Return one of the steady questions."""
        return rng.choice(self.steady)


@contextmanager
def open_pools(seed: int, missing: tuple[float, ...], size: PoolSize = LARGE) -> Iterator[tuple[Pool, ...]]:
    """Give a pool for each missing rate; what they keep on disk goes when they are no longer needed."""
    root = Path(tempfile.mkdtemp(prefix="synth-bench-"))
    pools: list[Pool] = []
    try:
        for number, rate in enumerate(missing):
            pools.append(make_pool(root / str(number), seed, rate, size))
        yield tuple(pools)
    finally:
        for pool in pools:
            pool.corpus.close()
        shutil.rmtree(root, ignore_errors=True)


def make_pool(root: Path, seed: int, missing: float, size: PoolSize = LARGE) -> Pool:
    """Generate a world under ``root``, run both recipes over it, and collect what they accept."""
    world, workspace = WorldConfig(size.entities, seed, missing), Workspace(root / "workspace")
    config = _configure(METHODS[0], world, size, seed)
    corpus, _ = ensure_corpus(config.corpus, workspace, SilentReporter(), 1)
    questions: list[Grounding] = []
    first: list[Grounding] = []
    reports: dict[str, Reports] = {}
    for method in METHODS:
        passes = []
        for number in range(size.passes if method == "injection" else 1):
            own = _configure(method, world, size, seed + number)
            passes.append(_run(own, Assembly(own, workspace, corpus)))
        first += passes[0][0]
        questions += {row.record_id: row for found, _ in passes for row in found}.values()
        reports[method] = tuple(funnel for _, funnel in passes)
    folder = find_dump(config.corpus, workspace, SilentReporter()).parent
    return Pool(missing, folder, corpus, tuple(questions), reports, world, root, size, tuple(first))


def _configure(method: str, world: WorldConfig, size: PoolSize, seed: int, settings: Sequence[str] = ()) -> RunConfig:
    limits = (f"seeds.limit={size.seeds[method]}", f'method="{method}"', f"seed={seed}")
    return make_config(read_recipe("demo"), [*_list_settings(world), *limits, *settings])


def _run(config: RunConfig, assembly: Assembly) -> tuple[list[Grounding], tuple[StageReport, ...]]:
    """Run a recipe up to its finished questions, which come by record id, and return its funnel too."""
    chosen, runtime = select_stages(assembly.plan_stages(), LAST, ()), config.runtime
    reports = tuple(
        run_stage(plan, assembly.corpus_entry, runtime.shard_rows, runtime.concurrency, SilentReporter())
        for plan in chosen
    )
    return sorted(read_parts(chosen[-1].folder, Grounding), key=lambda row: row.record_id), reports


def _list_settings(world: WorldConfig) -> list[str]:
    """Return the settings of a run over a generated world."""
    generated = {"entities": world.entities, "seed": world.seed, "missing": world.missing}
    return [*(f"corpus.generate.{key}={value}" for key, value in generated.items()), f"seed={world.seed}", *SETTINGS]


MAX_TOKENS = 6
MANY = 60
"""Pages that one plant may change."""
TRIES = 400
"""Clean questions looked at for one pair: most defects need a question of some kind."""


@dataclass(frozen=True, slots=True)
class Case:
    """A clean question with the pool it comes from."""

    pool: Pool
    question: Grounding
    numbers: tuple[int, ...]
    """Nodes of its path in the corpus."""

    @property
    def corpus(self) -> Corpus:
        """The world as the pipeline saw it."""
        return self.pool.corpus

    @property
    def claim(self) -> Claim:
        """The question as it was accepted."""
        return Claim(self.question.text, self.question.answer, self.question.proof)

    def find_subject(self, hop: Hop) -> int:
        """Return the node on whose page a hop is stated."""
        return self.numbers[hop.index if hop.backward else hop.index - 1]

    def find_object(self, hop: Hop) -> int:
        """Return the node that a hop's relation leads to."""
        return self.numbers[hop.index - 1 if hop.backward else hop.index]


@dataclass(frozen=True, slots=True)
class Scene:
    """A claim, and what the world looks like around it."""

    claim: Claim
    edits: Mapping[int, str] = field(default_factory=dict)
    added: Sequence[tuple[str, str]] = ()
    later: Mapping[int, str] | None = None
    """Pages as they are in another dump of the same wiki, where it differs; None when there is no other dump."""
    other: Corpus | None = None
    """The other dump itself, in place of ``later``."""


@dataclass(frozen=True, slots=True)
class Twins:
    """A clean scene, the same scene with a defect, and the codes that recognise it."""

    plant: str
    clean: Scene
    defective: Scene
    codes: tuple[str, ...]


def draw_case(pools: Sequence[Pool], rng: Random) -> Case:
    """Return a clean question: first a pool, so that every missing rate has its share.

    Raises:
        ConfigError: if no pool has a question to plant in.
    """
    steady = [pool for pool in pools if pool.steady]
    if not steady:
        raise ConfigError(
            f"bench planted: {len(pools)} worlds have no question that a text search is far from answering; "
            "take another seed or more pairs, which are planted in larger worlds"
        )
    pool = rng.choice(steady)
    question = pool.draw(rng)
    return Case(pool, question, tuple(locate_nodes(pool.corpus, question.proof.nodes)))


def judge(pool: Pool, scene: Scene) -> tuple[CheckResult, ...]:
    """Return everything that the checks find in a scene; nothing when they accept it."""
    with lay(pool, scene) as ground:
        claim = replace(scene.claim, proof=relocate(scene.claim.proof, ground.corpus))
        return examine(ground, claim, MAX_TOKENS, audit=True)


@contextmanager
def lay(pool: Pool, scene: Scene) -> Iterator[Indexes]:
    """Give the ground of a scene.

    What sentences state a relation by, and how frequent an answer is, is learnt from the whole wiki: a page more or
    less does not change it, and the base's is taken.
    """
    overlay = OverlayCorpus(pool.corpus, scene.edits, scene.added)
    later = scene.other if scene.later is None else OverlayCorpus(pool.corpus, scene.later)
    ground = Indexes(overlay, later)
    ground.__dict__["cues"], ground.__dict__["shares"] = pool.ground.cues, pool.ground.shares
    try:
        yield ground
    finally:
        overlay.close()


def make_pair(pool: Pool, twins: Twins) -> Pair:
    """Judge both twins."""
    clean, defective = judge(pool, twins.clean), judge(pool, twins.defective)
    returned = tuple(result.code for result in defective)
    return Pair(twins.plant, pick_result(clean, ()), pick_result(defective, twins.codes), twins.codes, returned)


def pick_result(found: Sequence[CheckResult], codes: Sequence[str]) -> CheckResult:
    """Return one of several findings: one with a wanted code, else an UNKNOWN, else any; a pass when there is none."""
    ranked = sorted(found, key=lambda result: (result.code not in codes, result.outcome != "UNKNOWN"))
    return ranked[0] if ranked else PASSED


def invent_name(corpus: Corpus, kind: str, words: Vocabulary, rng: Random) -> str:
    """Return a name that the wiki does not have."""
    while True:
        name = invent_person(words, rng) if kind == "person" else invent_title(words, rng).partition(" (")[0]
        if corpus.find(name) is None:
            return name
        name = f"{name} {invent_word(words, rng)}"


def find_facts(corpus: Corpus, node: int, key: str) -> tuple[Fact, ...]:
    """Return the values of a field of a page."""
    return tuple(fact for fact in corpus.facts(node) if fact.key == key)


def set_field(text: str, fact: Fact, value: str) -> str:
    """Return a page with the raw value of a fact's whole field replaced."""
    return text[: fact.field_start] + value + text[fact.field_end :]


def note_page(text: str) -> str:
    """Return a page with an editor's note that no reader sees."""
    return f"{text}\n<!-- checked -->"


def edit_elsewhere(case: Case, sentence: str, rng: Random) -> dict[int, str]:
    """Return an edit of an article off the path, which must not matter: a sentence more."""
    node = rng.choice([node for node in case.corpus.article_nodes() if node not in case.numbers])
    return {node: add_sentence(case.corpus.text(node), sentence)}


def add_sentence(text: str, sentence: str) -> str:
    """Return a page with a sentence more, at the end of its first section of prose."""
    infobox = read_infobox(text)
    start = infobox.end if infobox else 0
    place = text.find("\n\n", start + 2)
    place = len(text) if place < 0 else place
    return f"{text[:place]} {sentence}{text[place:]}"


def copy_infobox(case: Case, node: int, name: str, changes: Mapping[str, str]) -> str:
    """Return the article of an entity like another one: the same infobox but for some fields, and a lead sentence.

    Args:
        case: whose corpus has the model.
        node: the model.
        name: of the new entity.
        changes: raw values by key; an empty one leaves the field out.
    """
    corpus = case.corpus
    text = corpus.text(node)
    infobox = read_infobox(text)
    if infobox is None:
        raise AssertionError(f"{corpus.page(node).title} has no infobox; only nodes with facts are copied")
    box = text[infobox.start : infobox.end]
    for each in sorted(infobox.fields, key=lambda each: -each.start):
        if each.key in changes:
            box = box[: each.start - infobox.start] + changes[each.key] + box[each.end - infobox.start :]
    page = corpus.page(node)
    box = box.replace(page.title, name).replace(page.title.partition(" (")[0], name)
    noun = page.lead_type or page.type or "thing"
    return f"{box}\n'''{name}''' is {'an' if noun[0] in 'aeiou' else 'a'} {noun}."


UNVERIFIED = "unverified"
VERIFIED_FIELDS = ("record_id", "text", "answer", "proof")
RULES = (("proof", "thresholds"), ("proof", "hub_in_degree"), ("proof", "shortcuts_checked"))
"""What was demanded: changed only where the counts no longer go with it."""
UNORDERED = (("proof", "counts"),)
"""Where the order of the parts says nothing."""
FILLED: dict[str, Any] = {
    "unit": "m",
    "precision": "day",
    "constraints": (Constraint(node=1, relation="nothing", value="nothing"),),
    "redundant": (Constraint(node=1, relation="nothing", value="nothing"),),
    "near_misses": (NearMiss(node=1, page_id=1, title="Nothing", unknown=("type",), resolution="absent"),),
}
"""What stands in a field that was empty; a letter where nothing is said."""

Place = tuple[str | int, ...]


def plant_tampering(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D24: a number beside itself, a text with a letter changed, a part left out, repeated or put elsewhere.

    Both twins are verified after an edit of an article that the question does not rest on.
    """
    aside = draw_sentence("asides", words, rng).format(value=rng.choice(words.words))
    with lay(case.pool, Scene(case.claim, edit_elsewhere(case, aside, rng))) as ground:
        question = case.question.model_copy(update={"proof": relocate(case.question.proof, ground.corpus)})
        place, changed = _draw_change(question, rng)
        clean, bad = (verify(ground, row) for row in (question, change_at(question, place, changed)))
    return Pair(f"{'.'.join(map(str, place))} = {changed!r}"[:160], clean, bad, (UNVERIFIED,))


def _draw_change(row: Grounding, rng: Random) -> tuple[Place, Any]:
    """Return one change; a class of fields is drawn before a field, as a proof has many spans and one digest."""
    groups: dict[tuple[str, ...], list[tuple[Place, Any]]] = {}
    for place, changed in list_changes(row, rng):
        groups.setdefault(tuple(part for part in place if isinstance(part, str)), []).append((place, changed))
    return rng.choice(groups[rng.choice(sorted(groups))])


def verify(ground: Indexes, row: Grounding) -> CheckResult:
    """FAIL when a question, its id, its answer or its proof does not hold."""
    problems = find_problems(ground, Claim(row.text, row.answer, row.proof))
    sha256 = row.picture.sha256 if row.picture else ""
    if row.record_id != make_question_id(row.text, sha256, row.answer, row.proof):
        problems = [*problems, "id: the question, its picture, its answer or its path has changed"]
    return CheckResult("FAIL", UNVERIFIED, problems[0]) if problems else PASSED


def list_changes(row: Grounding, rng: Random) -> Iterator[tuple[Place, Any]]:
    """Yield a change of each field that verification speaks for, with the place of the field."""
    for name in VERIFIED_FIELDS:
        yield from _list_changes(getattr(row, name), (name,), rng)
    yield from ((("proof", *place), changed) for place, changed in _list_demands(row.proof, rng))
    if row.picture is not None:
        yield ("picture", "sha256"), _change_text(row.picture.sha256, rng)


def _list_changes(value: Any, place: Place, rng: Random) -> Iterator[tuple[Place, Any]]:
    if place[:2] in RULES:
        return
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _list_changes(getattr(value, name), (*place, name), rng)
    elif value is None or value in ("", ()):
        yield place, _fill(place, rng)
    elif isinstance(value, tuple):
        yield from ((place, changed) for changed in _change_parts(value, place not in UNORDERED))
        for number, part in enumerate(value):
            yield from _list_changes(part, (*place, number), rng)
    elif isinstance(value, bool):
        yield place, not value
    elif isinstance(value, int):
        yield place, value + rng.choice((-1, 1))
    elif isinstance(value, str):
        yield place, _change_text(value, rng)


def _list_demands(proof: Proof, rng: Random) -> Iterator[tuple[Place, Any]]:
    """Yield demands that the proof's own counts and look-ups no longer go with: lower ones, and higher ones."""
    limits = proof.thresholds
    yield ("thresholds", "alone_first"), limits.alone_first + rng.choice((-1, 1))
    if len(proof.hops) > 1:
        yield ("thresholds", "alone"), limits.alone + rng.choice((-1, 1))
    if limits.answers:
        yield ("thresholds", "answers"), rng.choice((0, limits.answers - 1, limits.answers + 1))
    if proof.near_misses:
        yield ("thresholds", "near_misses"), 0
    yield ("thresholds", "answer_share"), 0.0


def _fill(place: Place, rng: Random) -> Any:
    """Return what stands in a field that was empty."""
    name = place[-1]
    if name == "derivation":
        return rng.choice(("month", "year"))
    return FILLED.get(str(name), ("a",) if name in ("aliases", "unknown") else "a")


def _change_parts(parts: tuple[Any, ...], ordered: bool) -> Iterator[tuple[Any, ...]]:
    """Yield several parts with the last one left out, with it twice, and turned round."""
    if parts:
        yield parts[:-1]
        yield (*parts, parts[-1])
    if ordered and len(set(parts)) > 1:
        yield tuple(reversed(parts))


def _change_text(text: str, rng: Random) -> str:
    """Return a text with one letter or digit replaced by another one."""
    spots = [place for place, letter in enumerate(text) if letter.isalnum()] or [0]
    spot = rng.choice(spots)
    other = rng.choice([letter for letter in "abcdef0123456789" if letter != text[spot].casefold()])
    return text[:spot] + other + text[spot + 1 :]


def change_at(value: Any, place: Place, changed: Any) -> Any:
    """Return a record with the value at one place replaced, unvalidated, as a tampered file may have it."""
    if not place:
        return changed
    first, rest = place[0], place[1:]
    if isinstance(first, int):
        return (*value[:first], change_at(value[first], rest, changed), *value[first + 1 :])
    return value.model_copy(update={first: change_at(getattr(value, first), rest, changed)})
