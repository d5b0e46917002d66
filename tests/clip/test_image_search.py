"""The corpus's search by picture with a real, if tiny, CLIP of random weights: what it sees, it sees by its pixels."""

import asyncio

import numpy as np
import pytest
from PIL import Image

from pipelines.agent.picture_search import ClipImageSearch
from pipelines.services.clients.encoder import CachedEncoder
from tests.clip.models import make_encoder, name_picture
from tests.pipelines.agent.test_picture_search import paint, write_corpus

TITLES = [f"Bridge {number:02}" for number in range(40)]


@pytest.fixture
def search(tiny, tmp_path):
    encoder = make_encoder(tiny.config, tiny.weights, device="cpu", batch=16)
    cached = CachedEncoder(encoder, tmp_path / "embeddings")
    corpus = write_corpus(tmp_path / "corpus", [(f"{title}.png", [title], n) for n, title in enumerate(TITLES)])
    yield ClipImageSearch(corpus, cached, tmp_path / "indexes")
    cached.close()
    encoder.close()


def find(search, query):
    (hit,) = asyncio.run(search.search_image(query, 1))
    return hit


def test_every_picture_of_a_corpus_finds_itself_at_no_distance(search):
    for title in TITLES:
        hit = find(search, name_picture(search.corpus.folder / f"{title}.png"))
        assert (hit.title, hit.distance) == (title, pytest.approx(0.0, abs=1e-5))


def test_a_smaller_copy_of_another_format_is_found(search, tmp_path):
    with Image.open(search.corpus.folder / "Bridge 07.png") as opened:
        opened.resize((200, 200)).save(tmp_path / "copy.jpg", quality=80)
    hit = find(search, name_picture(tmp_path / "copy.jpg"))
    assert (hit.title, hit.distance < 0.02) == ("Bridge 07", True)


def test_a_crop_is_found_by_the_picture_it_was_cut_from(search, tmp_path):
    found = []
    for number, title in enumerate(TITLES):
        path = tmp_path / f"crop-{number}.png"
        with Image.open(search.corpus.folder / f"{title}.png") as opened:
            opened.crop((8, 8, 312, 312)).save(path)
        found.append(find(search, name_picture(path)).title == title)
    assert np.mean(found) >= 0.9


def test_a_picture_of_something_else_lies_farther(search, tmp_path):
    near = find(search, name_picture(search.corpus.folder / "Bridge 00.png")).distance
    assert find(search, paint(tmp_path / "other.png", 999)).distance > near
