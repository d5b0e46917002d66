import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pipelines.agent.observations import Thumbnails
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.errors import RecordFailed, Unavailable
from pipelines.pictures import PictureStore, compute_phash
from pipelines.services.protocols import PictureFile

BASE = "https://en.wikipedia.org/wiki/"


@dataclass
class FakeCorpus:
    folder: Path
    digest: str
    manifest: SimpleNamespace

    def find(self, title):
        return 0

    def text(self, node):
        return "'''Kelm Bridge''' is a bridge."


def paint(path, seed):
    blocks = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(blocks).resize((640, 480), Image.Resampling.BICUBIC).save(path)
    return path


def flip_bits(phash, count):
    return f"{int(phash, 16) ^ ((1 << count) - 1):016x}"


@pytest.fixture
def search(tmp_path):
    """Answers over an index of (file, titles, phash); returns titles with distances."""

    def search_rows(rows, query, count=5, max_distance=10):
        columns = {"file": [r[0] for r in rows], "title": [r[1] for r in rows], "phash": [r[2] for r in rows]}
        schema = pa.schema([("file", pa.string()), ("title", pa.list_(pa.string())), ("phash", pa.string())])
        pq.write_table(pa.table(columns, schema=schema), tmp_path / "images.parquet")
        corpus = FakeCorpus(tmp_path, f"digest-of-{rows}", SimpleNamespace(base_url=BASE))
        hits = asyncio.run(LocalImageSearch(corpus, max_distance).search_image(PictureFile("s", query), count))
        return [(hit.title, hit.distance) for hit in hits]

    return search_rows


def test_the_nearest_picture_comes_first_and_far_ones_not_at_all(search, tmp_path):
    query = paint(tmp_path / "q.png", 1)
    phash = compute_phash(query)
    rows = [("c", ["Far"], flip_bits(phash, 11)), ("b", ["Near"], flip_bits(phash, 4)), ("a", ["Same"], phash)]
    assert search(rows, query) == [("Same", 0.0), ("Near", 4.0)]
    assert search(rows, query, max_distance=11)[-1] == ("Far", 11.0)


def test_every_page_that_shows_the_picture_is_a_hit_once(search, tmp_path):
    query = paint(tmp_path / "q.png", 1)
    phash = compute_phash(query)
    rows = [("b", ["B", "A"], phash), ("a", ["A"], flip_bits(phash, 1))]
    assert search(rows, query) == [("A", 0.0), ("B", 0.0)]
    assert search(rows, query, count=1) == [("A", 0.0)]


def test_unusable_pictures_and_an_empty_index_find_nothing(search, tmp_path):
    query = paint(tmp_path / "q.png", 1)
    assert search([("a", ["A"], "")], query) == []
    assert search([], query) == []


def test_a_smaller_copy_is_found_and_another_picture_is_not(search, tmp_path):
    original, other = paint(tmp_path / "a.png", 1), paint(tmp_path / "b.png", 2)
    small = tmp_path / "small.jpg"
    Image.open(original).resize((320, 240)).save(small, quality=60)
    rows = [("a.png", ["A"], compute_phash(original)), ("b.png", ["B"], compute_phash(other))]
    assert [title for title, _ in search(rows, small)] == ["A"]


def test_a_query_that_is_no_picture_fails_as_a_record(search, tmp_path):
    (tmp_path / "q.png").write_bytes(b"not a picture")
    with pytest.raises(RecordFailed):
        search([("a", ["A"], "0" * 16)], tmp_path / "q.png")


def test_identity_covers_distance_and_corpus(tmp_path):
    corpus = FakeCorpus(tmp_path, "digest", SimpleNamespace(base_url=BASE))
    assert LocalImageSearch(corpus, 10).identity == "local-image-search@1:10:digest"
    assert LocalImageSearch(corpus, 9).identity != LocalImageSearch(corpus, 10).identity


@pytest.fixture
def finder(tmp_path):
    """Builds a search over (file, titles, phash)."""

    def make(rows, max_distance=10):
        columns = {"file": [r[0] for r in rows], "title": [r[1] for r in rows], "phash": [r[2] for r in rows]}
        schema = pa.schema([("file", pa.string()), ("title", pa.list_(pa.string())), ("phash", pa.string())])
        pq.write_table(pa.table(columns, schema=schema), tmp_path / "images.parquet")
        return LocalImageSearch(FakeCorpus(tmp_path, f"copies-of-{rows}", SimpleNamespace(base_url=BASE)), max_distance)

    return make


def test_copies_come_by_file_nearest_first_up_to_the_limit(finder):
    phash = "00ff00ff00ff00ff"
    rows = [("c", ["C"], flip_bits(phash, 11)), ("b", ["B", "A"], flip_bits(phash, 10)), ("a", ["A"], phash)]
    search = finder([*rows, ("d", ["D"], flip_bits(phash, 10))])
    found = [(copy.file, copy.titles, copy.distance) for copy in search.find_copies(phash)]
    assert found == [("a", ("A",), 0), ("b", ("A", "B"), 10), ("d", ("D",), 10)]
    assert [copy.file for copy in search.find_copies(phash, count=2)] == ["a", "b"]


def test_an_index_without_hashes_says_so_instead_of_finding_no_copy(finder):
    for rows in ([], [("a", ["A"], "")]):
        with pytest.raises(LookupError, match="no picture has a perceptual hash"):
            finder(rows).find_copies("0" * 16)


def test_hits_have_thumbnails_with_the_rights_of_the_nearest_picture_where_some_are_made(tmp_path):
    class Pictured(FakeCorpus):
        def image(self, file):
            rights = {"author": f"author of {file}", "licence": "CC0", "licence_url": "u", "source_url": "s"}
            return SimpleNamespace(file=file, sha256=file, **rights) if file != "c.png" else None

        def image_path(self, file):
            return tmp_path / file

    query = paint(tmp_path / "a.png", 1)
    phash = compute_phash(query)
    paint(tmp_path / "b.png", 2)
    columns = {
        "file": ["a.png", "b.png", "c.png"],
        "title": [["A"], ["A", "B"], ["C"]],
        "phash": [phash, flip_bits(phash, 2), flip_bits(phash, 3)],
    }
    pq.write_table(pa.table(columns), tmp_path / "images.parquet")
    plain = LocalImageSearch(Pictured(tmp_path, "pictured", SimpleNamespace(base_url=BASE)))
    search = replace(plain, thumbnails=Thumbnails(PictureStore(tmp_path / "store")))
    without, hits = (asyncio.run(each.search_image(PictureFile("s", query), 5)) for each in (plain, search))
    assert [hit.thumbnail for hit in without] == [None, None, None]
    assert [hit.thumbnail and (hit.title, hit.thumbnail.author, hit.thumbnail.width) for hit in hits] == [
        ("A", "author of a.png", 256),
        ("B", "author of b.png", 256),
        None,
    ]
    assert search.identity != plain.identity
    (tmp_path / "b.png").unlink()
    fresh = replace(plain, thumbnails=Thumbnails(PictureStore(tmp_path / "store")))
    with pytest.raises(Unavailable, match=r"b\.png"):
        asyncio.run(fresh.search_image(PictureFile("s", query), 5))
