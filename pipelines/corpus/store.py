"""An open corpus: pages, facts, names, links, pictures and passages for every stage.

A picture of an entity is compared with one short line: its name, then what its article says it is. A CLIP text encoder
reads 77 tokens, two of them its own marks, and drops the rest, so the name comes first.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpus.addresses import make_page_url, parse_page_url
from pipelines.corpus.articles import PageOrigin, read_origins
from pipelines.corpus.dump import hash_title, normalise_spaces, strip_qualifier
from pipelines.corpus.images import place_inside
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.manifest import CorpusManifest, read_manifest
from pipelines.corpus.numbering import TitleIndex, open_titles
from pipelines.corpus.passages import Passage, PassageIndex
from pipelines.corpus.statements import STATEMENTS
from pipelines.corpus.tables import IMAGES, PAGES, GroupedTable, MappedTable, cut_groups, merge_groups
from pipelines.corpus.texts import PageStore
from pipelines.corpus.wikitext import WikiLink, find_links, lead_paragraph, split_sentences
from pipelines.errors import ConfigError
from schemas.corpus import CorpusImage, Fact, Page

__all__ = ["Corpus", "CorpusImage", "Fact", "Page", "Passage"]

_CLASSES = PAGES.get_field_index("classes")
_IMAGE_LISTS = [IMAGES.get_field_index(name) for name in ("title", "depicts", "shown")]
_NO_PLACE: dict[str, Any] = dict.fromkeys(("field_start", "field_end", "start", "end", "link_start"), -1)
KEPT_ROWS = 1 << 16
"""Articles whose rows are kept decoded, about 100 MB at most."""
FACT_ROWS = 1 << 17
"""Facts read together when all are read."""


class Corpus:
    """A complete corpus folder, opened for reading; tables are read when first asked for."""

    def __init__(self, folder: Path, manifest: CorpusManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        # Queries come back to the same articles thousands of times, and a row costs more to decode than to keep.
        self._page_of = lru_cache(maxsize=KEPT_ROWS)(self._read_page)
        self._facts_of = lru_cache(maxsize=KEPT_ROWS)(self._read_facts)

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """Open a corpus."""
        manifest = read_manifest(folder / "manifest.json")
        manifest.check_sizes(folder)
        return cls(folder, manifest)

    def table(self, name: str) -> Path:
        """Return the path of ``<name>.parquet``."""
        return self.folder / f"{name}.parquet"

    @property
    def snapshot(self) -> str:
        """Date of the dump, ``YYYY-MM-DD``."""
        return self.manifest.snapshot

    @property
    def digest(self) -> str:
        """Digest of the content: the same input gives the same digest on every machine."""
        return self.manifest.digest

    @cached_property
    def graph(self) -> LinkGraph:
        """The link graph, memory-mapped."""
        return LinkGraph.open(self.folder / "graph")

    def article_nodes(self) -> range:
        """Return all nodes."""
        return range(self.manifest.counts.articles)

    def page(self, node: int) -> Page:
        """Return an article's row."""
        return self._page_of(node)

    def find(self, title: str) -> int | None:
        """Return the node of an exact title, redirects followed; underscores count as spaces."""
        plain = normalise_spaces(title)
        node = int(self._titles.find(np.array([hash_title(plain)], dtype=np.uint64))[0])
        return node if node >= 0 and plain in self.aliases(node) else None

    def text(self, node: int) -> str:
        """Return an article's wikitext."""
        return self._store.text(node)

    def origin(self, node: int) -> PageOrigin | None:
        """Return what is known of the page of an article of the news; None in a wiki."""
        return self._origins[node] if self._origins else None

    def page_url(self, title: str) -> str:
        """Return a page's address: that of an article of the news, else the wiki's with the title appended."""
        node = self.find(title) if self._origins else None
        return make_page_url(self.manifest.base_url, title) if node is None else self._origins[node].url

    def find_url(self, url: str) -> int | None:
        """Return the node of the page at an address, or None if this corpus has no such page."""
        if self._origins:
            return self._nodes_by_url.get(url.partition("#")[0])
        title = parse_page_url(self.manifest.base_url, url)
        return None if title is None else self.find(title)

    def links(self, node: int) -> list[WikiLink]:
        """Return every link of an article's wikitext in order, read by the rules of the corpus's language."""
        return find_links(self.text(node), self.manifest.language)

    def facts(self, node: int) -> tuple[Fact, ...]:
        """Return an article's infobox facts in the order of the page, then the statements on what it lacks, by key."""
        return self._facts_of(node)

    def read_fact_tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the facts of all articles in node order, some thousand articles at a time, none cut in two."""
        with ExitStack() as stack:
            boxes, statements = (
                cut_groups(_read_batches(stack.enter_context(pq.ParquetFile(self.table(name))), columns), "node")
                for name in ("facts", "statements")
            )
            yield from merge_groups(boxes, statements, "node")

    def aliases(self, node: int) -> tuple[str, ...]:
        """Return all names of an article, its title included, sorted."""
        return tuple(self._aliases.table.value(row, "alias") for row in self._aliases.rows(node))

    def nodes_of_type(self, type: str) -> NDArray[np.uint32]:
        """Return the nodes whose page has this type, ascending."""
        return self._nodes_by_type.get(type, np.empty(0, dtype=np.uint32))

    @property
    def types(self) -> frozenset[str]:
        """The types that articles have."""
        return frozenset(self._nodes_by_type)

    def image(self, file: str) -> CorpusImage | None:
        """Return a picture by its file name with spaces, or None."""
        images = self._images
        row = bisect_left(range(len(images)), file, key=lambda number: images.value(number, "file"))
        if row == len(images) or images.value(row, "file") != file:
            return None
        values = images.row(row)
        for place in _IMAGE_LISTS:
            values[place] = tuple(values[place])
        return CorpusImage(*values)

    def image_path(self, file: str) -> Path:
        """Return where a picture lies."""
        image = self.image(file)
        if image is None:
            raise ConfigError(f"corpus {self.folder} has no local picture {file!r}")
        path = place_inside((self.folder / self.manifest.images_dir).resolve(), image.path)
        if path is None:
            raise ConfigError(f"picture {file!r} at {image.path!r} lies outside {self.manifest.images_dir}")
        return path

    def search(self, query: str, k: int, pages: int | None = None) -> list[Passage]:
        """Return the k best passages for a query, best first, in the same order every time.

        With ``pages`` only the best passage of each article, and of no more articles than so many.
        """
        return self._passages.search(query, k, pages)

    def rank_nodes(self, query: str, k: int) -> list[int]:
        """Return the node of each of the k best passages for a query, best first."""
        return self._passages.rank_nodes(query, k)

    def find_phrases(self, phrases: Iterable[str], limit: int) -> tuple[int, ...] | None:
        """Return the nodes whose text or infobox holds one of some phrases, case and diacritics aside, ascending.

        None when more than ``limit`` passages hold one, or its words stand nearly everywhere: no name does.
        """
        return self._passages.find_phrases(phrases, limit)

    def close(self) -> None:
        """Close the search index; the rest closes with the object."""
        self.__dict__.pop("_passages", None)

    def _read_page(self, node: int) -> Page:
        row = self._pages.row(node)
        row[_CLASSES] = tuple(row[_CLASSES])
        return Page(*row)

    def _read_facts(self, node: int) -> tuple[Fact, ...]:
        boxed = (Fact(*row) for row in self._facts.table.rows(self._facts.rows(node)))
        rows = self._statements.table.rows(self._statements.rows(node))
        stated = (Fact(**_NO_PLACE | dict(zip(STATEMENTS.names, row, strict=True))) for row in rows)
        return (*boxed, *stated)

    @cached_property
    def _store(self) -> PageStore:
        return PageStore.open(self.folder / "store")

    @cached_property
    def _passages(self) -> PassageIndex:
        return PassageIndex.open(self.folder / "search")

    @cached_property
    def _titles(self) -> TitleIndex:
        return open_titles(self.folder)

    @cached_property
    def _pages(self) -> MappedTable:
        return MappedTable(self.folder, "pages")

    @cached_property
    def _facts(self) -> GroupedTable:
        return GroupedTable(self.folder, "facts")

    @cached_property
    def _statements(self) -> GroupedTable:
        return GroupedTable(self.folder, "statements")

    @cached_property
    def _aliases(self) -> GroupedTable:
        return GroupedTable(self.folder, "aliases")

    @cached_property
    def _nodes_by_type(self) -> dict[str, NDArray[np.uint32]]:
        encoded = pc.dictionary_encode(self._pages.column("type").combine_chunks())
        codes = encoded.indices.to_numpy()
        names = encoded.dictionary.to_pylist()
        order = np.argsort(codes, kind="stable").astype(np.uint32)
        edges = np.searchsorted(codes[order], np.arange(len(names) + 1))
        return {name: order[edges[code] : edges[code + 1]] for code, name in enumerate(names)}

    @cached_property
    def _origins(self) -> tuple[PageOrigin, ...]:
        path = self.folder / "articles.parquet"
        return read_origins(self.table("articles")) if path.is_file() else ()

    @cached_property
    def _nodes_by_url(self) -> dict[str, int]:
        return {origin.url: node for node, origin in enumerate(self._origins)}

    @cached_property
    def _images(self) -> MappedTable:
        return MappedTable(self.folder, "images")


def _read_batches(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.Table]:
    for batch in file.iter_batches(FACT_ROWS, columns=list(columns)):
        yield pa.Table.from_batches([batch]).select(list(columns))


VERSION = 1
"""Of the wording: another one, and every embedding of a description is another."""
MAX_PIECES = 75
KEPT_DESCRIPTIONS = 1 << 14
_LEAD_CHARACTERS = 2_000
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?=(?:an?|the|one)\s)")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)")
_NESTING = 3
_RUN = re.compile(r"[a-z]+|[^\sa-z]", re.IGNORECASE)
_LETTERS_PER_PIECE = 3


@lru_cache(maxsize=KEPT_DESCRIPTIONS)
def describe_entity(corpus: Corpus, node: int) -> str:
    """Return an entity's name, its type unless the rest says it, and what the first sentence of its article says it is.

    "Kelm Bridge, a suspension bridge over the Orsa"; when no phrase such as "is a" is found, the first sentence
    is taken whole. The same article gives the same line.
    """
    page = corpus.page(node)
    name = strip_qualifier(page.title)
    says = _read_first_sentence(corpus.text(node))
    match = _SAYS_WHAT.search(says)
    what = says[match.end() :] if match else says
    what = what.rstrip(" .")
    shown = f"{name} {what}".casefold()
    parts = [name, page.type if page.type.casefold() not in shown else "", what if what != name else ""]
    return cut_pieces(", ".join(part for part in parts if part), MAX_PIECES)


def count_pieces(text: str) -> int:
    """Return about how many tokens an encoder of the CLIP family makes of a text, names being rarer than words.

    Three letters are held to be one, each digit and mark is one, and a letter beyond ASCII as many as its bytes in
    UTF-8. Most texts have fewer.
    """
    runs = _RUN.findall(text)
    return sum(-(-len(run) // _LETTERS_PER_PIECE) if run.isascii() else len(run.encode()) for run in runs)


def cut_pieces(text: str, limit: int) -> str:
    """Return the first words of a text, as many as have ``limit`` pieces together; the first word always."""
    kept: list[str] = []
    pieces = 0
    for word in text.split():
        pieces += count_pieces(word)
        if kept and pieces > limit:
            break
        kept.append(word)
    return " ".join(kept).rstrip(",;:")


def _read_first_sentence(wikitext: str) -> str:
    lead = lead_paragraph(wikitext)[:_LEAD_CHARACTERS]
    for _ in range(_NESTING):
        lead, count = _PARENTHESIS.subn("", lead)
        if not count:
            break
    spans = split_sentences(lead)
    return " ".join(lead[slice(*spans[0])].split()) if spans else ""
