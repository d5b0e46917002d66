import hashlib
import io
from urllib.parse import urlparse

import imagehash
import numpy as np
import pytest
from PIL import Image

from pipelines.toy.names import fold_accents
from pipelines.toy.pictures import (
    LICENCES,
    SIMPLE,
    draw_picture,
    paint_scene,
    plan_pictures,
    plan_second_pictures,
)
from pipelines.toy.textlayer import read_layer
from pipelines.toy.world import WorldConfig, build_world

ODD = WorldConfig(entities=150, seed=11, signs=0.3, simple=0.3)
PLAIN = WorldConfig(entities=150, seed=11, signs=0.0, simple=0.0)


@pytest.fixture(scope="module")
def opened(world_200):
    images = {}
    for row in world_200.image_rows():
        with Image.open(world_200.root / "images" / row["file"]) as picture:
            images[row["file"]] = (picture.size, picture.mode, imagehash.phash(picture))
    return images


@pytest.fixture(scope="module")
def odd():
    """Entities, and lead pictures of which many are odd."""
    entities = build_world(ODD).entities
    return entities, plan_pictures(entities, ODD)


@pytest.fixture(scope="module")
def views(world_200):
    """Rows of the truth by view."""
    rows = world_200.truth("pictures")
    return {view: [row for row in rows if row["view"] == view] for view in ("lead", "second")}


def decode(data):
    with Image.open(io.BytesIO(data)) as picture:
        return np.array(picture.convert("RGB"), dtype=int)


def test_rows_describe_the_files(world_200, opened):
    rows = world_200.image_rows()
    names = {path.name for path in (world_200.root / "images").iterdir()}
    assert {row["file"] for row in rows} | {"images.tsv"} == names
    for row in rows:
        data = (world_200.root / "images" / row["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["sha256"]
        assert opened[row["file"]][0] == (int(row["width"]), int(row["height"]))
        assert row["author"]
        assert urlparse(row["licence_url"]).scheme == urlparse(row["source_url"]).scheme == "https"
    assert {mode for _, mode, _ in opened.values()} == {"RGB", "P"}


def test_most_entities_have_a_good_picture_and_a_few_have_an_odd_one(world_200, views):
    rows = {row["file"]: row for row in world_200.image_rows()}
    leads = [rows[lead["file"]] for lead in views["lead"]]
    truth = world_200.truth("pictures")
    shares = {
        "with a picture": (len(leads) / 200, 0.8, 0.97),
        "small": (sum(min(int(row["width"]), int(row["height"])) < 512 for row in leads) / len(leads), 0.0, 0.12),
        "not free": (sum(row["licence"] not in LICENCES for row in leads) / len(leads), 0.0, 0.15),
        "sign": (sum(bool(lead["sign"]) for lead in views["lead"]) / len(leads), 0.0, 0.08),
        "simple": (sum(bool(lead["simple"]) for lead in views["lead"]) / len(leads), 0.0, 0.06),
        "second picture": (len(views["second"]) / len(leads), 0.2, 0.4),
        "own": (sum(row["depicts"] == [row["qid"]] for row in truth) / len(truth), 0.75, 0.95),
        "another": (sum(row["depicts"] not in ([], [row["qid"]]) for row in truth) / len(truth), 0.0, 0.05),
    }
    assert {name: share for name, (share, least, most) in shares.items() if not least < share < most} == {}
    assert all(row["sign"] is row["simple"] is None and row["free"] for row in views["second"])
    assert {file: row["depicts"].split() for file, row in rows.items()} == {
        row["file"]: row["depicts"] for row in truth
    }


def test_the_infobox_names_the_lead_picture_and_the_body_the_second_one(world_200, views):
    texts = world_200.texts()
    for row in views["lead"]:
        assert row["file"].replace("_", " ") in texts[row["title"]].partition("\n}}\n")[0]
    for row in views["second"]:
        assert f"\n[[File:{row['file'].replace('_', ' ')}|thumb|" in texts[row["title"]].partition("\n}}\n")[2]


def test_odd_pictures_leave_everything_else_as_it_is(odd):
    entities, pictures = odd
    plain = plan_pictures(build_world(PLAIN).entities, PLAIN)
    assert plain.keys() == pictures.keys()
    for number, picture in pictures.items():
        before = plain[number]
        assert (picture.size, picture.author, picture.licence) == (before.size, before.author, before.licence)
        if picture.simple is None:
            assert picture.file == before.file
        if picture.simple is None and not picture.sign:
            assert draw_picture(entities[number], picture, 11) == draw_picture(entities[number], before, 11)
    assert not any(picture.sign or picture.simple for picture in plain.values())
    assert plan_second_pictures(entities, pictures, ODD).keys() == plan_second_pictures(entities, plain, PLAIN).keys()


def test_a_sign_shows_the_name_where_the_layer_says_it_stands(odd):
    entities, pictures = odd
    signed = [picture for picture in pictures.values() if picture.sign]
    assert len(signed) > 20
    for picture in signed[:20]:
        entity = entities[picture.entity]
        assert picture.sign == fold_accents(entity.name)
        written = read_layer(draw_picture(entity, picture, 11))
        bare = np.array(paint_scene(entity, picture.size, 11), dtype=int)
        changed = abs(decode(draw_picture(entity, picture, 11)) - bare).sum(axis=2) > 60
        for left, top, right, bottom in (each.box for each in written):
            assert 0 <= left < right <= picture.size[0]
            assert 0 <= top < bottom <= picture.size[1]
            assert changed[int(top) : int(bottom), int(left) : int(right)].mean() > 0.5


def test_simple_pictures_are_of_each_kind_and_half_of_their_names_say_so(odd):
    _, pictures = odd
    simple = [picture for picture in pictures.values() if picture.simple]
    assert {picture.simple for picture in simple} == set(SIMPLE)
    told = [picture for picture in simple if picture.file.startswith("Flag of ")
            or picture.file.endswith((" logo.png", " location map.png", " text.png"))]  # fmt: skip
    assert 0.3 < len(told) / len(simple) < 0.7
