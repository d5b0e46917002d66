"""A corpus with some pages changed or added, in memory: the ground of a planted defect.

Only those pages are read, by the functions that build a corpus; the rest comes from the base. What counts over pages
(in-degrees, link graph, names from link texts, facts, search) is as if the corpus had been built from the changed
pages, so that a check cannot tell an overlay from a corpus.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.bench.survey import (
    PASSAGES_A_PAGE,
    Reading,
    Survey,
    insert_passage,
    make_graph,
    read_page,
    tabulate_facts,
)
from pipelines.corpus.dump import RawPage
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.passages import PassageMemory
from pipelines.corpus.records import Fact, Page
from pipelines.corpus.store import Corpus
from pipelines.corpus.titles import normalise_spaces
from pipelines.errors import ConfigError
from pipelines.ids import digest_value
from pipelines.names import digest_aliases
from schemas.proofs import Evidence, Proof

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
        least, known = self.manifest.options.anchor_pages, self._survey
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
    "table_in_degree": -1,
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
