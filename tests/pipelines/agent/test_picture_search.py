"""Search by picture over a corpus: by perceptual hash, and with an encoder."""

import asyncio
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pipelines.agent.observations import Thumbnails
from pipelines.agent.picture_search import (
    ClipImageSearch,
    FetchedPictures,
    LocalImageSearch,
)
from pipelines.corpus.addresses import make_page_url
from pipelines.errors import Unavailable
from pipelines.pictures import PictureSource, PictureStore, compute_phash
from pipelines.services.protocols import PictureFile
from schemas.datasets import FetchedPicture
from tests.pipelines.services.clients.fake_encoder import FakeEncoder

BASE = "https://en.wikipedia.org/wiki/"
SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("title", pa.list_(pa.string())),
        ("shown", pa.list_(pa.string())),
        ("path", pa.string()),
        ("sha256", pa.string()),
        ("phash", pa.string()),
    ]
)
PHASH = "00ff00ff00ff00ff"


@dataclass
class FakeCorpus:
    folder: Path
    digest: str = "corpus-digest"

    @property
    def manifest(self):
        return SimpleNamespace(base_url=BASE)

    def page_url(self, title):
        return make_page_url(self.manifest.base_url, title)

    def table(self, name):
        return self.folder / f"{name}.parquet"

    def find(self, title):
        return None if title == "Unknown" else 0

    def text(self, node):
        return "'''Kelm Bridge''' is a bridge."

    def image_path(self, file):
        return self.folder / file

    def image(self, file):
        rights = {"author": f"author of {file}", "licence": "CC0", "licence_url": "u", "source_url": "s"}
        return None if file == "unknown.png" else SimpleNamespace(file=file, sha256=file, **rights)


def paint(path, seed):
    blocks = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(blocks).resize((320, 320), Image.Resampling.NEAREST).save(path)
    return PictureFile(hashlib.sha256(path.read_bytes()).hexdigest(), path)


def flip_bits(phash, count):
    return f"{int(phash, 16) ^ ((1 << count) - 1):016x}"


def write_rows(folder, rows, digest=""):
    """Write a table of (file, titles, phash, *others that show it) without files."""
    written = [
        {"file": f, "title": t, "shown": more, "path": f, "sha256": f, "phash": phash} for f, t, phash, *more in rows
    ]
    pq.write_table(pa.Table.from_pylist(written, schema=SCHEMA), folder / "images.parquet")
    return FakeCorpus(folder, digest or f"digest-of-{rows}")


def write_corpus(folder, rows, digest="corpus-digest"):
    """``rows``: (file, titles, seed, *others that show it), a seed of None for a file that is no picture."""
    folder.mkdir(exist_ok=True)
    written = []
    for file, titles, seed, *shown in sorted(rows, key=lambda row: row[0]):
        path = folder / file
        if seed is None:
            path.write_bytes(b"no picture")
        else:
            paint(path, seed)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        written.append(
            {"file": file, "title": titles, "shown": shown, "path": file, "sha256": sha256, "phash": "0" * 16}
        )
    pq.write_table(pa.Table.from_pylist(written, schema=SCHEMA), folder / "images.parquet")
    return FakeCorpus(folder, digest)


def find(search, picture, count=5):
    return [(hit.title, hit.distance) for hit in asyncio.run(search.search_image(picture, count))]


@pytest.fixture
def query(tmp_path):
    return paint(tmp_path / "q.png", 1)


@pytest.mark.parametrize(
    ("rows", "settings", "found"),
    [
        (
            [("c", ["Far"], 11), ("b", ["Near"], 4), ("a", ["Same"], 0)],
            {"max_distance": 10},
            [("Same", 0.0), ("Near", 4.0)],
        ),
        ([("c", ["Far"], 11)], {"max_distance": 11}, [("Far", 11.0)]),
        ([("b", ["B", "A"], 0), ("a", ["A"], 1)], {}, [("A", 0.0), ("B", 0.0)]),
        ([("a", ["C"], 0, "A", "B"), ("b", [], 3, "D")], {}, [("C", 0.0), ("A", 0.0), ("B", 0.0), ("D", 3.0)]),
        ([("a", ["A"], None, "B")], {}, []),
        ([], {}, []),
    ],
)
def test_pages_are_found_by_hash_each_once_and_nearest_first(tmp_path, query, rows, settings, found):
    phash = compute_phash(query.path)
    hashed = [
        (file, titles, "" if bits is None else flip_bits(phash, bits), *shown) for file, titles, bits, *shown in rows
    ]
    search = LocalImageSearch(write_rows(tmp_path, hashed), **settings)
    assert find(search, query) == found
    assert find(search, query, 1) == found[:1]


def test_hits_have_thumbnails_with_the_rights_of_the_nearest_picture_where_some_are_made(tmp_path, query):
    phash = compute_phash(query.path)
    paint(tmp_path / "b.png", 2)
    rows = [("q.png", ["A"], phash), ("b.png", ["A", "B"], flip_bits(phash, 2))]
    plain = LocalImageSearch(write_rows(tmp_path, [*rows, ("unknown.png", ["C"], flip_bits(phash, 3))]))
    search = replace(plain, thumbnails=Thumbnails(PictureStore(tmp_path / "store")))
    without, hits = (asyncio.run(each.search_image(query, 5)) for each in (plain, search))
    assert [hit.thumbnail for hit in without] == [None, None, None]
    assert [hit.thumbnail and (hit.title, hit.thumbnail.author, hit.thumbnail.width) for hit in hits] == [
        ("A", "author of q.png", 256),
        ("B", "author of b.png", 256),
        None,
    ]
    assert len({search.identity, plain.identity, replace(plain, max_distance=9).identity}) == 3
    (tmp_path / "b.png").unlink()
    fresh = replace(plain, thumbnails=Thumbnails(PictureStore(tmp_path / "store")))
    with pytest.raises(Unavailable, match=r"b\.png"):
        asyncio.run(fresh.search_image(query, 5))


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(
        tmp_path / "corpus",
        [("a.png", ["Kelm Bridge"], 1), ("b.png", ["Orsa Bridge", "Orsa"], 2), ("c.png", ["Pell Bridge"], 3)],
    )


@pytest.fixture
def search(corpus, tmp_path):
    return ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")


@pytest.mark.parametrize(
    ("rows", "settings", "count", "titles"),
    [
        (
            [("z.png", ["A"], 5), ("m.png", ["C", "B"], 5), ("b.png", ["D"], 5), ("other.png", ["E"], 6)],
            {},
            5,
            ["D", "B", "C", "A", "E"],
        ),
        ([*((f"{n:03}.png", ["Gallery"], 5) for n in range(60)), ("z.png", ["Last"], 2)], {}, 2, ["Gallery", "Last"]),
        ([("a.png", ["A"], 5), ("c.png", ["C"], 3)], {"max_distance": 0.0}, 5, ["A"]),
        ([("a.png", ["A"], 5), ("b.png", ["B"], None), ("c.png", [], 5)], {}, 5, ["A"]),
        ([("a.png", ["Unknown"], 5)], {}, 5, ["Unknown"]),
        ([("a.png", ["B"], 5, "C", "A"), ("b.png", [], 5, "D")], {}, 5, ["B", "A", "C", "D"]),
        ([], {}, 5, []),
    ],
)
def test_pages_come_by_distance_file_and_title(tmp_path, rows, settings, count, titles):
    corpus = write_corpus(tmp_path / "corpus", rows)
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived", **settings)
    assert [title for title, _ in find(search, paint(tmp_path / "query.png", 5), count)] == titles


def test_fetched_pictures_are_found_with_their_anchors_beside_the_corpus(corpus, tmp_path):
    store = PictureStore(tmp_path / "store")
    credit = PictureSource("Fetched.png", "A. Author", "CC0", "u", "s")
    picture = store.add_file(paint(tmp_path / "f.png", 9).path, credit)
    rows = [FetchedPicture(title=title, picture=picture) for title in ("Pell", "Orsa")]
    fetched = FetchedPictures("key", lambda: rows, store)
    thumbnails = Thumbnails(PictureStore(tmp_path / "thumbnails"))
    query, other = fetched.locate(picture), PictureFile("query", corpus.folder / "b.png")
    hashed = write_rows(tmp_path, [("b.png", ["Orsa"], compute_phash(paint(tmp_path / "b.png", 2).path))])
    for plain in (LocalImageSearch(hashed), ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")):
        search = replace(plain, fetched=fetched, thumbnails=thumbnails)
        hits = asyncio.run(search.search_image(query, 2))
        assert [(hit.title, hit.distance, hit.thumbnail.author) for hit in hits] == [
            ("Orsa", 0.0, "A. Author"),
            ("Pell", 0.0, "A. Author"),
        ]
        assert find(plain, query, 1) != find(search, query, 1)
        assert find(plain, other, 1) == find(search, other, 1) == [("Orsa", 0.0)]
        assert search.identity == f"{replace(plain, thumbnails=thumbnails).identity}:key"


def test_the_index_is_made_once_for_a_corpus_and_an_encoder(corpus, tmp_path):
    query = PictureFile("query", corpus.folder / "a.png")
    encoders = [FakeEncoder(), FakeEncoder(), FakeEncoder(identity="fake-encoder@2", grid=2)]
    hits = [find(ClipImageSearch(corpus, encoder, tmp_path / "derived"), query) for encoder in encoders]
    assert hits[0] == hits[1]
    assert [len(encoder.asked) for encoder in encoders] == [4, 1, 4]
    later = write_corpus(tmp_path / "later", [("a.png", ["Kelm Bridge"], 1)], "another-digest")
    search = ClipImageSearch(later, FakeEncoder(), tmp_path / "derived")
    assert [title for title, _ in find(search, query)] == ["Kelm Bridge"]
    assert search.identity == "clip-image-search@3:1:another-digest:fake-encoder@1"


def test_an_index_that_was_broken_off_is_made_anew_and_leaves_nothing_behind(corpus, tmp_path):
    class Away(FakeEncoder):
        async def encode_pictures(self, pictures):
            if len(pictures) > 1:
                raise Unavailable("away")
            return await super().encode_pictures(pictures)

    folder = tmp_path / "derived"
    query = PictureFile("query", corpus.folder / "a.png")
    with pytest.raises(Unavailable, match="away"):
        find(ClipImageSearch(corpus, Away(), folder), query)
    (lock,) = folder.iterdir()
    assert lock.suffix == ".lock"
    (folder / f".tmp-{lock.stem}-0badc0de").mkdir()
    assert find(ClipImageSearch(corpus, FakeEncoder(), folder), query, 1) == [("Kelm Bridge", 0.0)]
    assert sorted(path.name for path in folder.iterdir()) == [lock.stem, lock.name]
