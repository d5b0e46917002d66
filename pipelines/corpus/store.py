"""An open corpus: what every stage reads pages, facts, names, links, pictures and passages from."""

import sqlite3
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpus.images import place_inside
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.manifest import CorpusManifest, read_manifest
from pipelines.corpus.pagestore import PageStore
from pipelines.corpus.passages import Passage, open_passages, search_passages
from pipelines.corpus.records import CorpusImage, Fact, Page
from pipelines.corpus.tables import PAGES
from pipelines.corpus.titles import normalise_spaces
from pipelines.errors import ConfigError

__all__ = ["Corpus", "CorpusImage", "Fact", "Page", "Passage"]

KEPT_ROWS = 1 << 16
"""Articles whose rows are kept decoded, about 100 MB at most."""


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
        """Open a corpus.

        Raises:
            ConfigError: the folder holds no complete corpus, or one of another schema version.
        """
        return cls(folder, read_manifest(folder / "manifest.json"))

    @property
    def snapshot(self) -> str:
        """Date of the dump, ``YYYY-MM-DD``."""
        return self.manifest.snapshot

    @property
    def digest(self) -> str:
        """Names the content; the same input and options give the same digest anywhere."""
        return self.manifest.digest

    @cached_property
    def graph(self) -> LinkGraph:
        """The link graph, memory-mapped."""
        return LinkGraph.open(self.folder / "graph")

    def article_nodes(self) -> range:
        """Return all nodes."""
        return range(self.manifest.counts.articles)

    def page(self, node: int) -> Page:
        """Return an article's row.

        Raises:
            IndexError: there is no such node.
        """
        return self._page_of(node)

    def find(self, title: str) -> int | None:
        """Return the node of an exact title, redirects followed; underscores count as spaces."""
        return self._nodes_by_title.get(normalise_spaces(title))

    def text(self, node: int) -> str:
        """Return an article's wikitext."""
        return self._store.text(node)

    def facts(self, node: int) -> tuple[Fact, ...]:
        """Return an article's infobox facts in the order of the page."""
        return self._facts_of(node)

    def aliases(self, node: int) -> tuple[str, ...]:
        """Return all names of an article, its title included, sorted."""
        start, end = self._alias_offsets[node : node + 2]
        return tuple(self._aliases[1][row].as_py() for row in range(start, end))

    def nodes_of_type(self, type: str) -> NDArray[np.uint32]:
        """Return the nodes whose page has this type, ascending."""
        return self._nodes_by_type.get(type, np.empty(0, dtype=np.uint32))

    def image(self, file: str) -> CorpusImage | None:
        """Return a picture by its file name with spaces, or None when it is not at hand."""
        return self._images.get(file)

    def image_path(self, file: str) -> Path:
        """Return where a picture lies.

        Raises:
            ConfigError: there is no such picture, or its path leads outside the folder of pictures.
        """
        image = self.image(file)
        if image is None:
            raise ConfigError(f"no picture {file!r} in corpus {self.folder}; it has {len(self._images)}")
        path = place_inside((self.folder / self.manifest.images_dir).resolve(), image.path)
        if path is None:
            raise ConfigError(f"picture {file!r} at {image.path!r} lies outside {self.manifest.images_dir}")
        return path

    def search(self, query: str, k: int) -> list[Passage]:
        """Return the k best passages for a query, best first, in the same order every time."""
        return search_passages(self._passages, query, k)

    def close(self) -> None:
        """Close the search index; the rest closes with the object."""
        if "_passages" in self.__dict__:
            self._passages.close()
            del self.__dict__["_passages"]

    def _read_page(self, node: int) -> Page:
        return Page(*_take_row(self._pages, node))

    def _read_facts(self, node: int) -> tuple[Fact, ...]:
        start, end = self._fact_offsets[node : node + 2]
        return tuple(Fact(*_take_row(self._facts, row)) for row in range(start, end))

    @cached_property
    def _store(self) -> PageStore:
        return PageStore.open(self.folder / "store")

    @cached_property
    def _passages(self) -> sqlite3.Connection:
        return open_passages(self.folder / "search.db")

    @cached_property
    def _pages(self) -> Sequence[pa.Array]:
        return self._read_columns("pages")

    @cached_property
    def _facts(self) -> Sequence[pa.Array]:
        return self._read_columns("facts")

    @cached_property
    def _aliases(self) -> Sequence[pa.Array]:
        return self._read_columns("aliases")

    @cached_property
    def _fact_offsets(self) -> list[int]:
        return self._find_offsets(self._facts[0])

    @cached_property
    def _alias_offsets(self) -> list[int]:
        return self._find_offsets(self._aliases[0])

    @cached_property
    def _nodes_by_title(self) -> dict[str, int]:
        titles, nodes = self._read_columns("redirects")[:2]
        found = dict(zip(titles.to_pylist(), nodes.to_pylist(), strict=True))
        return found | {
            title: node for node, title in enumerate(self._pages[PAGES.get_field_index("title")].to_pylist())
        }

    @cached_property
    def _nodes_by_type(self) -> dict[str, NDArray[np.uint32]]:
        encoded = pc.dictionary_encode(self._pages[PAGES.get_field_index("type")])
        codes = encoded.indices.to_numpy()
        names = encoded.dictionary.to_pylist()
        return {name: np.flatnonzero(codes == code).astype(np.uint32) for code, name in enumerate(names)}

    @cached_property
    def _images(self) -> dict[str, CorpusImage]:
        rows = pq.read_table(self.folder / "images.parquet", memory_map=True).to_pylist()
        return {row["file"]: CorpusImage(**row | {"title": tuple(row["title"])}) for row in rows}

    def _read_columns(self, name: str) -> Sequence[pa.Array]:
        table = pq.read_table(self.folder / f"{name}.parquet", memory_map=True).combine_chunks()
        return [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in table.columns]

    def _find_offsets(self, nodes: pa.Array) -> list[int]:
        wanted = np.arange(self.manifest.counts.articles + 1)
        offsets: list[int] = np.searchsorted(nodes.to_numpy(), wanted).tolist()
        return offsets


def _take_row(columns: Sequence[pa.Array], row: int) -> list[Any]:
    if row < 0:
        raise IndexError(f"no row {row}")
    return [column[row].as_py() for column in columns]
