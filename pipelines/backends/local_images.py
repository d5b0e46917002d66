"""Search by picture over the corpus: nearest perceptual hashes."""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.backends.local_pages import make_page_url
from pipelines.backends.protocols import ImageHit, PictureFile
from pipelines.corpus.plaintext import lead_paragraph
from pipelines.corpus.store import Corpus
from pipelines.pictures import compute_phash

VERSION = 1


@dataclass(frozen=True, slots=True)
class PictureIndex:
    """The perceptual hashes of a corpus.

    Attributes:
        hashes: uint64, one a usable picture.
        files: file name of each.
        titles: titles of the articles that show each, sorted.
    """

    hashes: NDArray[np.uint64]
    files: tuple[str, ...]
    titles: tuple[tuple[str, ...], ...]


@lru_cache(maxsize=4)
def read_index(path: Path, digest: str) -> PictureIndex:
    """Read the hashes from ``images.parquet``; pictures without one (unusable) are left out.

    Args:
        path: the Parquet file, with columns ``file``, ``title`` (list) and ``phash`` (16 hex digits, or empty).
        digest: the corpus's, so that a corpus built anew in the same place is read anew.
    """
    rows = pq.read_table(path, columns=["file", "title", "phash"], filters=[("phash", "!=", "")]).to_pylist()
    usable = sorted(rows, key=lambda row: str(row["file"]))
    hashes = np.array([int(row["phash"], 16) for row in usable], dtype=np.uint64)
    files = tuple(row["file"] for row in usable)
    return PictureIndex(hashes, files, tuple(tuple(sorted(row["title"])) for row in usable))


@dataclass(frozen=True, slots=True)
class LocalImageSearch:
    """Finds the pages whose pictures look like the query picture.

    Attributes:
        corpus: the open corpus.
        max_distance: most bits of 64 in which two pictures' hashes may differ.
    """

    corpus: Corpus
    max_distance: int = 10

    @property
    def identity(self) -> str:
        """Name, version, distance and corpus digest."""
        return f"local-image-search@{VERSION}:{self.max_distance}:{self.corpus.digest}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages, nearest picture first, equal distances by file name and title.

        Raises:
            RecordFailed: if the query picture cannot be decoded, as :func:`pipelines.pictures.compute_phash` says.
        """
        index = read_index(self.corpus.folder / "images.parquet", self.corpus.digest)
        query = np.uint64(int(await asyncio.to_thread(compute_phash, picture.path), 16))
        distances = np.bitwise_count(index.hashes ^ query)
        near = np.flatnonzero(distances <= self.max_distance)
        nearest: dict[str, int] = {}
        for place in near[np.argsort(distances[near], kind="stable")]:
            for title in index.titles[place]:
                nearest.setdefault(title, int(distances[place]))
        return tuple(self._make_hit(title, distance) for title, distance in list(nearest.items())[:count])

    def _make_hit(self, title: str, distance: int) -> ImageHit:
        node = self.corpus.find(title)
        snippet = "" if node is None else lead_paragraph(self.corpus.text(node))
        return ImageHit(make_page_url(self.corpus.manifest.base_url, title), title, snippet, float(distance))
