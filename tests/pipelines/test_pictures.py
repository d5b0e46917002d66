import io
import random
import re

import pytest
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import clear_temps, make_temp_path
from pipelines.pictures import PictureSource, PictureStore, compute_phash, measure_distance
from tests.hostile_pictures import HOSTILE, ODD

SOURCE = PictureSource("Kelm.jpg", "A. Orn", "CC BY 4.0", "https://licence.example", "https://source.example")
FORMATS = {"JPEG": "jpg", "PNG": "png", "GIF": "gif", "WEBP": "webp"}


def paint(width=96, height=64, seed=1):
    rng = random.Random(seed)
    image = Image.new("RGB", (width, height))
    for _ in range(12):
        left, top = rng.randrange(width), rng.randrange(height)
        colour = tuple(rng.randrange(256) for _ in range(3))
        image.paste(colour, (left, top, left + width // 3, top + height // 3))
    return image


def encode(image, kind="JPEG", **options):
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


@pytest.fixture
def store(tmp_path):
    return PictureStore(tmp_path / "images")


@pytest.mark.parametrize(("kind", "extension"), FORMATS.items())
def test_the_extension_comes_from_the_magic_bytes(store, kind, extension):
    picture = store.add_bytes(encode(paint(), kind), SOURCE)
    assert picture.extension == extension
    assert store.path(picture.sha256, extension).name == f"{picture.sha256}.{extension}"
    assert store.path(picture.sha256, extension).parent.name == picture.sha256[:2]
    assert (picture.width, picture.height) == (96, 64)
    assert (picture.file, picture.author, picture.licence) == ("Kelm.jpg", "A. Orn", "CC BY 4.0")


def test_a_file_is_added_by_its_content_and_a_missing_one_is_the_records_failure(store, tmp_path):
    data = encode(paint(), "PNG")
    (tmp_path / "wrong-name.gif").write_bytes(data)
    picture = store.add_file(tmp_path / "wrong-name.gif", SOURCE)
    assert (picture.extension, store.read(picture)) == ("png", data)
    assert compute_phash(tmp_path / "wrong-name.gif") == compute_phash(data) == picture.phash
    with pytest.raises(RecordFailed, match="picture-missing"):
        store.add_file(tmp_path / "absent.jpg", SOURCE)


@pytest.mark.parametrize("name", [name for name, hostile in HOSTILE.items() if hostile.error])
def test_the_store_refuses_a_hostile_picture_and_keeps_nothing_of_it(store, name):
    with pytest.raises(RecordFailed) as caught:
        store.add_bytes(HOSTILE[name].build(), SOURCE)
    assert caught.value.error == HOSTILE[name].error
    assert not list(store.folder.rglob("*.*"))


@pytest.mark.parametrize("name", [*ODD, *(name for name, hostile in HOSTILE.items() if not hostile.error)])
def test_the_store_keeps_an_odd_but_healthy_picture_as_it_is(store, name):
    odd = ODD.get(name) or HOSTILE[name]
    data = odd.build()
    picture = store.add_bytes(data, SOURCE)
    assert (picture.width, picture.height) == odd.size
    assert store.read(picture) == data


def test_adding_twice_writes_once(store):
    data = encode(paint())
    picture = store.add_bytes(data, SOURCE)
    before = store.path(picture.sha256, "jpg").stat().st_mtime_ns
    assert store.add_bytes(data, SOURCE) == picture
    assert store.path(picture.sha256, "jpg").stat().st_mtime_ns == before
    assert [path.name for path in store.folder.rglob("*.*")] == [f"{picture.sha256}.jpg"]


def test_a_picture_that_cannot_be_written_leaves_nothing_and_says_where(store):
    store.folder.write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match=re.escape(str(store.folder))):
        store.add_bytes(encode(paint()), SOURCE)
    assert store.folder.is_file()


def test_what_an_interrupted_write_left_is_cleared_and_no_picture(store):
    picture = store.add_bytes(encode(paint()), SOURCE)
    path = store.path(picture.sha256, "jpg")
    make_temp_path(path).write_bytes(b"half")
    clear_temps(path.parent)
    assert [left.name for left in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 5000])
def test_a_damaged_stored_file_is_repaired(store, damage):
    data = encode(paint())
    picture = store.add_bytes(data, SOURCE)
    store.path(picture.sha256, "jpg").write_bytes(damage)
    store.add_bytes(data, SOURCE)
    assert store.read(picture) == data


def test_a_changed_or_missing_file_is_not_returned(store):
    picture = store.add_bytes(encode(paint()), SOURCE)
    store.path(picture.sha256, "jpg").write_bytes(encode(paint(seed=2)))
    for read in (lambda: store.read(picture), lambda: store.load(picture.sha256)):
        with pytest.raises(CorruptInput, match="the file was changed"):
            read()
    store.path(picture.sha256, "jpg").unlink()
    with pytest.raises(CorruptInput, match=r"Kelm\.jpg"):
        store.read(picture)
    with pytest.raises(CorruptInput, match="bring it back"):
        store.load(picture.sha256)


def test_a_resized_copy_has_a_near_hash_and_another_picture_a_far_one():
    original = compute_phash(encode(paint(640, 480), quality=95))
    copy = compute_phash(encode(paint(640, 480).resize((200, 150)), quality=70))
    assert len(original) == 16
    assert measure_distance(original, copy) <= 6
    assert measure_distance(original, compute_phash(encode(paint(640, 480, seed=9)))) >= 12
