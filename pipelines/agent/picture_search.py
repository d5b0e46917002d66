"""Search by picture over the corpus: by perceptual hash, or with an encoder.

A hash stands for a whole picture: crops are not found, unless they leave nearly all of it. An encoder finds pictures
that show the like, and what the query was cut from.

Beside the corpus's own pictures both know those that a run fetched for its questions.

The encoder's index is made once for a corpus and an encoder: one embedding a usable picture, in a folder whose name is
their digest. It appears whole or not at all, and is mapped into memory, so that all processes of a host share it.
"""

import asyncio
import fcntl
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.agent.depicting import encode_readable
from pipelines.agent.observations import Thumbnails, credit_picture
from pipelines.checks.pictures import Copy
from pipelines.corpus.store import Corpus
from pipelines.corpus.tables import MappedTable, TableWriter
from pipelines.corpus.wikitext import lead_paragraph
from pipelines.errors import Damaged
from pipelines.files import drafting_folder, explain_os_error
from pipelines.ids import digest_value
from pipelines.pictures import PictureStore, compute_phash
from pipelines.services.protocols import ImageEncoder, ImageHit, PictureFile
from schemas.datasets import FetchedPicture, Picture

Found = tuple[str, str, float]
"""Title of a page, file name of the picture that was found on it, distance."""


@dataclass(frozen=True)
class FetchedPictures:
    """Pictures that the stage groundings fetched: their files are in no corpus. Safe from any thread.

    Attributes:
        key: of the rows, which decide what was fetched.
        read: returns what was fetched for each row.
        store: where they lie.
    """

    key: str
    read: Callable[[], Iterable[FetchedPicture]]
    store: PictureStore
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @cached_property
    def by_file(self) -> dict[str, tuple[Picture, tuple[str, ...]]]:
        """Each picture with the titles of the articles that show it, sorted, by file name in order."""
        titles = defaultdict[str, set[str]](set)
        pictures = {}
        for fetched in self.read():
            pictures[fetched.picture.file] = fetched.picture
            titles[fetched.picture.file].add(fetched.title)
        return {file: (pictures[file], tuple(sorted(titles[file]))) for file in sorted(pictures)}

    def open_index(self) -> "PictureIndex":
        """Return their perceptual hashes; the first call reads the rows, and others wait for it."""
        with self._lock:
            return self._index

    @cached_property
    def _index(self) -> "PictureIndex":
        hashes = np.array([int(picture.phash, 16) for picture, _ in self.by_file.values()], dtype=np.uint64)
        titles = tuple(titles for _, titles in self.by_file.values())
        return PictureIndex(hashes, tuple(self.by_file), titles, tuple(map(len, titles)))

    def list_usable(self) -> list[list["Usable"]]:
        """Return them as an index of embeddings is made of them, in chunks."""
        with self._lock:
            usable = [(file, titles, self.locate(picture)) for file, (picture, titles) in self.by_file.items()]
        return [usable[start : start + CHUNK] for start in range(0, len(usable), CHUNK)]

    def locate(self, picture: Picture) -> PictureFile:
        """Return a picture as a file."""
        return PictureFile(picture.sha256, self.store.path(picture.sha256, picture.extension))


async def make_hits(
    corpus: Corpus, found: Sequence[Found], thumbnails: Thumbnails | None, fetched: FetchedPictures | None = None
) -> tuple[ImageHit, ...]:
    """Return pages as hits, the first paragraph of each as its snippet."""
    return await asyncio.to_thread(lambda: tuple(_make_hit(corpus, one, thumbnails, fetched) for one in found))


def _make_hit(corpus: Corpus, found: Found, thumbnails: Thumbnails | None, fetched: FetchedPictures | None) -> ImageHit:
    title, file, distance = found
    node = corpus.find(title)
    snippet = "" if node is None else lead_paragraph(corpus.text(node))
    thumbnail = None
    if thumbnails is not None and fetched is not None and file in fetched.by_file:
        picture, _ = fetched.by_file[file]
        thumbnail = thumbnails.make(fetched.locate(picture).path, picture.sha256, credit_picture(picture))
    elif thumbnails is not None and (image := corpus.image(file)) is not None:
        thumbnail = thumbnails.make(corpus.image_path(file), image.sha256, credit_picture(image))
    return ImageHit(corpus.page_url(title), title, snippet, distance, thumbnail)


LOCAL_IMAGES_VERSION = 2


def _identify(thumbnails: Thumbnails | None, fetched: FetchedPictures | None) -> str:
    made = "" if thumbnails is None else f":{thumbnails.identity}"
    return made if fetched is None else f"{made}:{fetched.key}"


@dataclass(frozen=True, slots=True)
class PictureIndex:
    """The perceptual hashes of a corpus.

    Attributes:
        hashes: uint64, one a usable picture.
        files: file name of each.
        titles: titles of the articles that show each, those that lead with it first, sorted.
        leads: how many of them lead with it.
    """

    hashes: NDArray[np.uint64]
    files: tuple[str, ...]
    titles: tuple[tuple[str, ...], ...]
    leads: tuple[int, ...]


@lru_cache(maxsize=4)
def read_index(path: Path, digest: str) -> PictureIndex:
    """Read the hashes from ``images.parquet``; pictures without one (unusable) are left out."""
    rows = pq.read_table(path, columns=["file", "title", "shown", "phash"], filters=[("phash", "!=", "")]).to_pylist()
    usable = sorted(rows, key=lambda row: str(row["file"]))
    hashes = np.array([int(row["phash"], 16) for row in usable], dtype=np.uint64)
    files = tuple(row["file"] for row in usable)
    titles = tuple(_list_titles(row) for row in usable)
    return PictureIndex(hashes, files, titles, tuple(len(row["title"]) for row in usable))


def _list_titles(row: dict[str, Any]) -> tuple[str, ...]:
    return (*sorted(row["title"]), *sorted(row["shown"]))


@dataclass(frozen=True, slots=True)
class LocalImageSearch:
    """Finds the pages whose pictures look like the query picture, and the files that are copies of one.

    Attributes:
        corpus: the open corpus.
        max_distance: most bits of 64 in which two pictures' hashes may differ.
        thumbnails: makes the hits' thumbnails; without one they have none.
        fetched: pictures that are searched beside the corpus's.
    """

    corpus: Corpus
    max_distance: int = 10
    thumbnails: Thumbnails | None = None
    fetched: FetchedPictures | None = None

    @property
    def identity(self) -> str:
        made = _identify(self.thumbnails, self.fetched)
        return f"local-image-search@{LOCAL_IMAGES_VERSION}:{self.max_distance}:{self.corpus.digest}{made}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages, nearest picture first, equal distances by file name.

        Pages with the same picture: those that lead with it first, then by title.
        """
        phash = await asyncio.to_thread(compute_phash, picture.path)
        indexes = [read_index(self.corpus.table("images"), self.corpus.digest)]
        if self.fetched is not None:
            indexes.append(await asyncio.to_thread(self.fetched.open_index))
        shown: list[Found] = []
        for index in indexes:
            near, distances = self._find_near(index, phash)
            shown += [
                (title, index.files[place], float(distances[place])) for place in near for title in index.titles[place]
            ]
        nearest: dict[str, Found] = {}
        for found in sorted(shown, key=itemgetter(2)):
            nearest.setdefault(found[0], found)
        return await make_hits(self.corpus, list(nearest.values())[:count], self.thumbnails, self.fetched)

    def find_copies(self, phash: str, count: int = 20) -> tuple[Copy, ...]:
        """Return at most ``count`` files whose hash is near one (16 hex digits), nearest first, then by file name."""
        index = read_index(self.corpus.table("images"), self.corpus.digest)
        near, distances = self._find_near(index, phash)
        found = ((place, index.titles[place][: index.leads[place] or None]) for place in near[:count])
        return tuple(Copy(index.files[place], titles, int(distances[place])) for place, titles in found)

    def _find_near(self, index: PictureIndex, phash: str) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
        distances = np.bitwise_count(index.hashes ^ np.uint64(int(phash, 16)))
        near = np.flatnonzero(distances <= self.max_distance)
        return near[np.argsort(distances[near], kind="stable")], distances


VERSION = 3
CHUNK = 512
"""Pictures that are encoded and written together while the index is made."""
BLOCK = 16_384
"""Embeddings that are compared at once: some 50 MB."""
FIRST = 4
"""Pictures examined for each wanted page; more if pages share pictures."""
DIGITS = 6
"""Decimals of a distance: what is left of a 32-bit sum of products."""
_NOISE = 1e-5
"""How far a sum in 32 bits may be from the exact one."""
EMBEDDINGS = "embeddings.f32"
"""Rows of little-endian 32-bit floats."""
_PICTURES = pa.schema([("file", pa.string()), ("title", pa.list_(pa.string()))])


@dataclass(frozen=True, slots=True)
class ClipIndex:
    """Embeddings of a corpus's pictures with their titles.

    Attributes:
        embeddings: float32 of shape (n, d), rows of unit length, sorted by file name; memory-mapped.
        pictures: columns ``file`` and ``title``: the articles that show it, those that lead with it first.
    """

    embeddings: NDArray[np.float32]
    pictures: MappedTable

    def rank(self, query: NDArray[np.float32], count: int) -> list[tuple[float, str, tuple[str, ...]]]:
        """Return the nearest ``count`` pictures: distance, file, titles; equal distances in the order of the files."""
        scores = np.concatenate([block @ query for block in self._cut()] or [np.empty(0, np.float32)])
        count = min(count, len(scores))
        if not count:
            return []
        edge = np.partition(scores, len(scores) - count)[len(scores) - count]
        near = np.flatnonzero(scores >= edge - _NOISE)
        # A product's last digits depend on where in its block a row lies; like pictures must be like far.
        parts = (near[start : start + BLOCK] for start in range(0, len(near), BLOCK))
        exact = np.concatenate([(self.embeddings[part] * query).sum(axis=1, dtype=np.float64) for part in parts])
        distances = np.maximum(np.round(1.0 - exact, DIGITS), 0.0)
        best = np.argsort(distances, kind="stable")[:count]
        return [(float(distances[place]), *self._name(int(near[place]))) for place in best]

    def _cut(self) -> Iterator[NDArray[np.float32]]:
        return (self.embeddings[start : start + BLOCK] for start in range(0, len(self.embeddings), BLOCK))

    def _name(self, row: int) -> tuple[str, tuple[str, ...]]:
        file, titles = self.pictures.row(row)
        return file, tuple(titles)


@lru_cache(maxsize=4)
def open_index(folder: Path) -> ClipIndex:
    """Open a complete index."""
    pictures = MappedTable(folder, "pictures")
    if not len(pictures):
        return ClipIndex(np.empty((0, 0), dtype=np.float32), pictures)
    try:
        return ClipIndex(np.memmap(folder / EMBEDDINGS, "<f4", "r").reshape(len(pictures), -1), pictures)
    except (OSError, ValueError) as error:
        raise Damaged(folder / EMBEDDINGS, f"is not of {len(pictures)} pictures ({error})") from error


@dataclass(frozen=True, slots=True)
class ClipImageSearch:
    """Finds the pages whose pictures show what the query shows, a part of a picture included.

    Attributes:
        corpus: the open corpus.
        encoder: what makes embeddings, one that keeps them best.
        folder: derived folder of indexes.
        max_distance: largest distance (1 - cosine) of a hit; 1 leaves out what has nothing in common.
        thumbnails: makes the hits' thumbnails; without one they have none.
        fetched: pictures that are searched beside the corpus's.
    """

    corpus: Corpus
    encoder: ImageEncoder
    folder: Path
    max_distance: float = 1.0
    thumbnails: Thumbnails | None = None
    fetched: FetchedPictures | None = None

    @property
    def identity(self) -> str:
        made = _identify(self.thumbnails, self.fetched)
        index = f"{self.corpus.digest}:{self.encoder.identity}"
        return f"clip-image-search@{VERSION}:{self.max_distance:g}:{index}{made}"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages, nearest picture first, equal distances by file name.

        Pages with the same picture: those that lead with it first, then by title.

        The first search makes the index, which takes as long as encoding every picture of the corpus.
        """
        if count < 1:
            return ()
        (query,) = await self.encoder.encode_pictures([picture])
        indexes = [await self.prepare()]
        if self.fetched is not None:
            usable = await asyncio.to_thread(self.fetched.list_usable)
            indexes.append(await self._open([self.fetched.key], usable))
        nearest = await asyncio.to_thread(self._find_pages, indexes, query, count)
        return await make_hits(self.corpus, nearest, self.thumbnails, self.fetched)

    async def prepare(self) -> ClipIndex:
        """Return the index of the corpus, made first where it is missing."""
        return await self._open([], read_usable(self.corpus))

    async def _open(self, parts: list[str], chunks: Iterable[list["Usable"]]) -> ClipIndex:
        key = digest_value([VERSION, self.corpus.digest, self.encoder.identity, *parts])[:32]
        place = self.folder / key
        if not place.is_dir():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with (self.folder / f"{key}.lock").open("a") as lock:
                    await asyncio.to_thread(fcntl.flock, lock.fileno(), fcntl.LOCK_EX)
                    if not place.is_dir():
                        await self._make(place, chunks)
            except OSError as error:
                raise explain_os_error(error, f"index of pictures in {self.folder}") from error
        return open_index(place)

    def _find_pages(self, indexes: Sequence[ClipIndex], query: NDArray[np.float32], count: int) -> list[Found]:
        found = [page for index in indexes for page in self._find_in(index, query, count)]
        nearest: dict[str, Found] = {}
        for page in sorted(found, key=itemgetter(2)):
            nearest.setdefault(page[0], page)
        return list(nearest.values())[:count]

    def _find_in(self, index: ClipIndex, query: NDArray[np.float32], count: int) -> list[Found]:
        looked = FIRST * count
        while True:
            nearest: dict[str, Found] = {}
            for distance, file, titles in index.rank(query, looked):
                for title in titles if distance <= self.max_distance else ():
                    nearest.setdefault(title, (title, file, distance))
            if len(nearest) >= count or looked >= len(index.embeddings):
                return list(nearest.values())[:count]
            looked *= FIRST

    async def _make(self, place: Path, chunks: Iterable[list["Usable"]]) -> None:
        with (
            drafting_folder(place) as draft,
            (draft / EMBEDDINGS).open("wb") as target,
            TableWriter(draft, "pictures", _PICTURES, mapped=True) as table,
        ):
            for chunk in chunks:
                rows = await encode_readable(self.encoder, [picture for _, _, picture in chunk])
                for (file, titles, _), row in zip(chunk, rows, strict=True):
                    if row is not None:
                        target.write(row.astype("<f4").tobytes())
                        table.write_rows([(file, titles)])


Usable = tuple[str, tuple[str, ...], PictureFile]
"""File name, titles of the articles that show it, and where it lies."""


def read_usable(corpus: Corpus) -> Iterator[list[Usable]]:
    """Yield the corpus's pictures that are at hand, can be decoded and stand in an article, by file name, in chunks."""
    columns = ["file", "title", "shown", "path", "sha256", "phash"]
    held: list[Usable] = []
    with pq.ParquetFile(corpus.table("images")) as file:
        for batch in file.iter_batches(CHUNK, columns=columns):
            rows = [row for row in batch.to_pylist() if row["phash"] and row["path"] and (row["title"] or row["shown"])]
            held += [_locate(corpus, row) for row in rows]
            if len(held) >= CHUNK:
                yield held
                held = []
    if held:
        yield held


def _locate(corpus: Corpus, row: dict[str, Any]) -> Usable:
    return row["file"], _list_titles(row), PictureFile(row["sha256"], corpus.image_path(row["file"]))
