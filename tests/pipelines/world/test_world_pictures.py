import hashlib
import itertools
from urllib.parse import urlparse

import imagehash
import pytest
from PIL import Image

from pipelines.world.pictures import LICENCES


@pytest.fixture(scope="module")
def opened(world_200):
    images = {}
    for row in world_200.image_rows():
        with Image.open(world_200.root / "images" / row["file"]) as picture:
            images[row["file"]] = (picture.size, picture.mode, imagehash.phash(picture))
    return images


def test_rows_describe_the_files(world_200, opened):
    rows = world_200.image_rows()
    assert {row["file"] for row in rows} | {"images.tsv"} == {
        path.name for path in (world_200.root / "images").iterdir()
    }
    for row in rows:
        data = (world_200.root / "images" / row["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["sha256"]
        assert opened[row["file"]][0] == (int(row["width"]), int(row["height"]))


def test_every_picture_has_author_licence_and_source(world_200):
    for row in world_200.image_rows():
        assert row["author"]
        assert row["licence"]
        assert urlparse(row["licence_url"]).scheme == urlparse(row["source_url"]).scheme == "https"


def test_most_entities_have_a_good_picture_and_a_few_have_a_bad_one(world_200):
    rows = world_200.image_rows()
    small = [row for row in rows if min(int(row["width"]), int(row["height"])) < 512]
    unfree = [row for row in rows if row["licence"] not in LICENCES]
    assert 0.8 * 200 < len(rows) < 0.97 * 200
    assert 0 < len(small) < 0.12 * len(rows)
    assert 0 < len(unfree) < 0.15 * len(rows)


def test_some_pictures_are_palette_pngs(opened):
    assert {mode for _, mode, _ in opened.values()} == {"RGB", "P"}


def test_pictures_of_different_entities_differ(opened):
    hashes = [phash for _, _, phash in opened.values()]
    close = [1 for one, other in itertools.combinations(hashes, 2) if one - other < 6]
    assert len(close) == 0


def test_the_infobox_names_the_picture(world_200):
    texts = world_200.texts()
    for row in world_200.image_rows():
        assert row["file"].replace("_", " ") in texts[row["depicts_title"]]
