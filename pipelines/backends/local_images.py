"""Search by picture over the corpus: nearest perceptual hashes.

A hash stands for a whole picture, so that crops are not found, but for those that leave nearly all of it. Windows of
every picture would have to be hashed as well, and a crop of any size and place fits none of them closely enough; crops
are found by an encoder (:mod:`pipelines.backends.clip_images`).
"""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.agent.results import Thumbnails
from pipelines.backends.corpus_hits import make_hits
from pipelines.backends.protocols import ImageHit, PictureFile
from pipelines.checks.likeness import Copy
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
    """Finds the pages whose pictures look like the query picture, and the files that are copies of one.

    Attributes:
        corpus: the open corpus.
        max_distance: most bits of 64 in which two pictures' hashes may differ.
        thumbnails: makes the hits' thumbnails; without one they have none.
    """

    corpus: Corpus
    max_distance: int = 10
    thumbnails: Thumbnails | None = None

    @property
    def identity(self) -> str:
        """Name, version, distance and corpus digest, and how thumbnails are made if they are."""
        made = "" if self.thumbnails is None else f":{self.thumbnails.identity}"
        return f"local-image-search@{VERSION}:{self.max_distance}:{self.corpus.digest}{made}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages, nearest picture first, equal distances by file name and title.

        Raises:
            RecordFailed: if the query picture cannot be decoded, as :func:`pipelines.pictures.compute_phash` says.
            Unavailable: if a thumbnail cannot be made of a picture that is not at hand any more, or cannot be written.
        """
        index = read_index(self.corpus.folder / "images.parquet", self.corpus.digest)
        query = np.uint64(int(await asyncio.to_thread(compute_phash, picture.path), 16))
        distances = np.bitwise_count(index.hashes ^ query)
        near = np.flatnonzero(distances <= self.max_distance)
        nearest: dict[str, int] = {}
        for place in near[np.argsort(distances[near], kind="stable")]:
            for title in index.titles[place]:
                nearest.setdefault(title, int(place))
        best = list(nearest.items())[:count]
        found = [(title, index.files[place], float(distances[place])) for title, place in best]
        return await make_hits(self.corpus, found, self.thumbnails)

    def has_pictures(self) -> bool:
        """Say whether anything can be found at all: whether a picture of the corpus has a hash."""
        return bool(read_index(self.corpus.folder / "images.parquet", self.corpus.digest).files)

    def find_copies(self, phash: str, count: int = 5) -> tuple[Copy, ...]:
        """Return at most ``count`` files whose hash is near one (16 hex digits), nearest first, then by file name.

        Raises:
            LookupError: if no picture of the corpus has a hash.
        """
        index = read_index(self.corpus.folder / "images.parquet", self.corpus.digest)
        if not index.files:
            raise LookupError(
                f"corpus {self.corpus.folder.name}: no picture has a perceptual hash; none can be compared"
            )
        distances = np.bitwise_count(index.hashes ^ np.uint64(int(phash, 16)))
        near = np.flatnonzero(distances <= self.max_distance)
        order = near[np.argsort(distances[near], kind="stable")][:count]
        return tuple(Copy(index.files[place], index.titles[place], int(distances[place])) for place in order)
