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
from pipelines.agent.picture_search import ClipImageSearch, open_index
from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from pipelines.services.protocols import PictureFile
from tests.pipelines.services.clients.fake_encoder import FakeEncoder

BASE = "https://en.wikipedia.org/wiki/"
SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("title", pa.list_(pa.string())),
        ("path", pa.string()),
        ("sha256", pa.string()),
        ("phash", pa.string()),
    ]
)


@dataclass
class FakeCorpus:
    folder: Path
    digest: str = "corpus-digest"

    @property
    def manifest(self):
        return SimpleNamespace(base_url=BASE)

    def find(self, title):
        return None if title == "Unknown" else 0

    def text(self, node):
        return "'''Kelm Bridge''' is a bridge."

    def image_path(self, file):
        return self.folder / file


def paint(path, seed):
    blocks = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(blocks).resize((320, 320), Image.Resampling.NEAREST).save(path)
    return PictureFile(hashlib.sha256(path.read_bytes()).hexdigest(), path)


def write_corpus(folder, rows, digest="corpus-digest"):
    """``rows``: (file, titles, seed), a seed of None for a file that is no picture."""
    folder.mkdir(exist_ok=True)
    written = []
    for file, titles, seed in sorted(rows, key=lambda row: row[0]):
        path = folder / file
        if seed is None:
            path.write_bytes(b"no picture")
        else:
            paint(path, seed)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        written.append({"file": file, "title": titles, "path": file, "sha256": sha256, "phash": "0" * 16})
    pq.write_table(pa.Table.from_pylist(written, schema=SCHEMA), folder / "images.parquet")
    return FakeCorpus(folder, digest)


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(
        tmp_path / "corpus",
        [("a.png", ["Kelm Bridge"], 1), ("b.png", ["Orsa Bridge", "Orsa"], 2), ("c.png", ["Pell Bridge"], 3)],
    )


@pytest.fixture
def search(corpus, tmp_path):
    return ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")


def find(search, picture, count=5):
    return [(hit.title, hit.distance) for hit in asyncio.run(search.search_image(picture, count))]


def test_the_same_picture_is_found_first_at_no_distance(search, corpus):
    hits = find(search, PictureFile("query", corpus.folder / "b.png"))
    assert hits[:2] == [("Orsa", 0.0), ("Orsa Bridge", 0.0)]
    assert [distance for _, distance in hits] == sorted(distance for _, distance in hits)
    assert {title for title, _ in hits[2:]} == {"Kelm Bridge", "Pell Bridge"}


def test_a_hit_has_address_title_and_lead(search, corpus):
    (hit,) = asyncio.run(search.search_image(PictureFile("query", corpus.folder / "a.png"), 1))
    assert (hit.url, hit.title, hit.snippet) == (
        f"{BASE}Kelm_Bridge",
        "Kelm Bridge",
        "Kelm Bridge is a bridge.",
    )


def test_a_crop_finds_what_it_was_cut_from(search, corpus, tmp_path):
    with Image.open(corpus.folder / "c.png") as whole:
        whole.crop((10, 10, 310, 310)).save(tmp_path / "crop.png")
    assert find(search, PictureFile("crop", tmp_path / "crop.png"), 1)[0][0] == "Pell Bridge"


def test_distance_is_one_less_the_cosine(search, corpus):
    pictures = [PictureFile("", corpus.folder / file) for file in ("a.png", "c.png")]
    first, second = asyncio.run(FakeEncoder().encode_pictures(pictures))
    hits = dict(find(search, pictures[0]))
    assert hits["Pell Bridge"] == pytest.approx(1.0 - float(first @ second), abs=2e-6)


def test_equal_distances_stand_in_the_order_of_files_and_titles(tmp_path):
    rows = [(f"{name}.png", titles, 5) for name, titles in (("z", ["A"]), ("m", ["C", "B"]), ("b", ["D"]))]
    corpus = write_corpus(tmp_path / "corpus", [*rows, ("other.png", ["E"], 6)])
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")
    hits = find(search, PictureFile("query", corpus.folder / "z.png"))
    assert [title for title, _ in hits] == ["D", "B", "C", "A", "E"]


def test_no_more_pages_are_returned_than_asked_for(search, corpus):
    query = PictureFile("query", corpus.folder / "b.png")
    assert [len(find(search, query, count)) for count in (0, 1, 2, 3, 9)] == [0, 1, 2, 3, 4]


def test_pages_behind_many_pictures_of_one_page_are_found(tmp_path):
    rows = [(f"{number:03}.png", ["Gallery"], 1) for number in range(60)]
    corpus = write_corpus(tmp_path / "corpus", [*rows, ("last.png", ["Kelm Bridge"], 2)])
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")
    hits = find(search, PictureFile("query", corpus.folder / "000.png"), 2)
    assert [title for title, _ in hits] == ["Gallery", "Kelm Bridge"]


def test_what_is_farther_than_allowed_is_left_out(corpus, tmp_path):
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived", max_distance=0.0)
    assert [title for title, _ in find(search, PictureFile("query", corpus.folder / "a.png"))] == ["Kelm Bridge"]


def test_a_title_without_a_page_has_no_snippet(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", [("a.png", ["Unknown"], 1)])
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")
    (hit,) = asyncio.run(search.search_image(PictureFile("query", corpus.folder / "a.png"), 1))
    assert hit.snippet == ""


def test_unusable_pictures_are_left_out(tmp_path):
    corpus = write_corpus(
        tmp_path / "corpus",
        [("a.png", ["A"], 1), ("b.png", ["B"], None), ("c.png", ["C"], 3), ("d.png", [], 1), ("e.png", ["E"], 5)],
    )
    rows = pq.read_table(corpus.folder / "images.parquet").to_pylist()
    rows[4] |= {"phash": ""}
    rows.append({"file": "f.png", "title": ["F"], "path": "", "sha256": "", "phash": ""})
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), corpus.folder / "images.parquet")
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")
    assert {title for title, _ in find(search, PictureFile("query", corpus.folder / "a.png"))} == {"A", "C"}


def test_a_corpus_without_pictures_finds_nothing(tmp_path):
    corpus = write_corpus(tmp_path / "corpus", [])
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived")
    assert find(search, paint(tmp_path / "query.png", 1)) == []


def test_a_query_that_is_no_picture_is_refused(search, tmp_path):
    (tmp_path / "query.png").write_bytes(b"none")
    with pytest.raises(RecordFailed, match=r"query\.png"):
        find(search, PictureFile("query", tmp_path / "query.png"))


def test_the_index_is_made_once_and_found_by_the_next_run(corpus, tmp_path):
    query = PictureFile("query", corpus.folder / "a.png")
    encoders = [FakeEncoder(), FakeEncoder()]
    hits = [find(ClipImageSearch(corpus, encoder, tmp_path / "derived"), query) for encoder in encoders]
    assert hits[0] == hits[1]
    assert encoders[1].asked == ["query"]


@pytest.mark.parametrize("changed", ["corpus", "encoder"])
def test_another_corpus_or_encoder_has_another_index(corpus, tmp_path, changed):
    query = PictureFile("query", corpus.folder / "a.png")
    find(ClipImageSearch(corpus, FakeEncoder(), tmp_path / "derived"), query)
    if changed == "corpus":
        later = write_corpus(tmp_path / "later", [("a.png", ["Kelm Bridge"], 1)], "another-digest")
        search = ClipImageSearch(later, FakeEncoder(), tmp_path / "derived")
        assert [title for title, _ in find(search, query)] == ["Kelm Bridge"]
    else:
        encoder = FakeEncoder(identity="fake-encoder@2", grid=2)
        find(ClipImageSearch(corpus, encoder, tmp_path / "derived"), query)
        assert len(encoder.asked) == 5


def test_searches_at_once_make_the_index_once(corpus, tmp_path):
    encoder = FakeEncoder()
    searches = [ClipImageSearch(corpus, encoder, tmp_path / "derived") for _ in range(2)]
    query = PictureFile("query", corpus.folder / "a.png")

    async def ask():
        return await asyncio.gather(*(search.search_image(query, 3) for search in searches * 5))

    hits = asyncio.run(ask())
    assert all(each == hits[0] for each in hits)
    assert len([asked for asked in encoder.asked if asked != "query"]) == 4


def test_an_index_that_was_broken_off_is_made_anew_and_nothing_stays_behind(corpus, tmp_path):
    class Away(FakeEncoder):
        async def encode_pictures(self, pictures):
            if len(pictures) > 1:
                raise Unavailable("away")
            return await super().encode_pictures(pictures)

    folder = tmp_path / "derived"
    query = PictureFile("query", corpus.folder / "a.png")
    with pytest.raises(Unavailable, match="away"):
        find(ClipImageSearch(corpus, Away(), folder), query)
    assert [path.suffix for path in folder.iterdir()] == [".lock"]
    (lock,) = folder.iterdir()
    (folder / f".tmp-{lock.stem}-0badc0de").mkdir()
    assert find(ClipImageSearch(corpus, FakeEncoder(), folder), query, 1) == [("Kelm Bridge", 0.0)]
    assert sorted(path.name for path in folder.iterdir()) == [lock.stem, lock.name]


def test_an_index_whose_parts_differ_in_length_is_refused(search, corpus):
    asyncio.run(search.prepare())
    (place,) = [path for path in search.folder.iterdir() if path.is_dir()]
    np.save(place / "embeddings.npy", np.zeros((2, 48), dtype=np.float32))
    open_index.cache_clear()
    with pytest.raises(CorruptInput, match="2 embeddings of 3 pictures"):
        asyncio.run(search.prepare())


def test_a_folder_that_cannot_be_made_is_a_setting_to_change(corpus, tmp_path):
    (tmp_path / "file").write_text("in the way")
    search = ClipImageSearch(corpus, FakeEncoder(), tmp_path / "file" / "derived")
    with pytest.raises(ConfigError, match="not a folder"):
        asyncio.run(search.prepare())


def test_identity_names_corpus_and_encoder(search):
    assert search.identity == "clip-image-search@1:1:corpus-digest:fake-encoder@1"


def test_hits_have_thumbnails_of_the_nearest_picture_where_some_are_made(search, corpus, tmp_path):
    class Pictured(FakeCorpus):
        def image(self, file):
            rights = {"author": f"author of {file}", "licence": "CC0", "licence_url": "u", "source_url": "s"}
            return SimpleNamespace(file=file, sha256=file, **rights)

    pictured = Pictured(corpus.folder, corpus.digest)
    shown = replace(search, corpus=pictured, thumbnails=Thumbnails(PictureStore(tmp_path / "store")))
    hits = asyncio.run(shown.search_image(PictureFile("query", corpus.folder / "b.png"), 2))
    assert [(hit.title, hit.thumbnail.author) for hit in hits] == [
        ("Orsa", "author of b.png"),
        ("Orsa Bridge", "author of b.png"),
    ]
    assert hits[0].thumbnail == hits[1].thumbnail
    assert shown.identity != search.identity
