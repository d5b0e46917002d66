import io
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import clear_temps, make_temp_path
from pipelines.pictures import PictureSource, PictureStore, compute_phash, measure_distance, probe_picture
from pipelines.pixels import find_extension

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


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.fixture
def store(tmp_path):
    return PictureStore(tmp_path / "images")


@pytest.mark.parametrize(("kind", "extension"), FORMATS.items())
def test_the_extension_comes_from_the_magic_bytes(store, kind, extension):
    picture = store.add_bytes(encode(paint(), kind), SOURCE)
    assert picture.extension == extension
    assert store.path(picture.sha256, extension).name == f"{picture.sha256}.{extension}"
    assert store.path(picture.sha256, extension).parent.name == picture.sha256[:2]


def test_a_picture_keeps_its_size_and_source(store):
    picture = store.add_bytes(encode(paint(96, 64)), SOURCE)
    assert (picture.width, picture.height) == (96, 64)
    assert (picture.file, picture.author, picture.licence) == ("Kelm.jpg", "A. Orn", "CC BY 4.0")


def test_what_was_stored_is_read_back(store):
    data = encode(paint(), "PNG")
    assert store.read(store.add_bytes(data, SOURCE)) == data


def test_adding_twice_writes_once(store):
    data = encode(paint())
    picture = store.add_bytes(data, SOURCE)
    before = store.path(picture.sha256, "jpg").stat().st_mtime_ns
    assert store.add_bytes(data, SOURCE) == picture
    assert store.path(picture.sha256, "jpg").stat().st_mtime_ns == before
    assert [path.name for path in store.folder.rglob("*.*")] == [f"{picture.sha256}.jpg"]


def test_a_file_is_added_by_its_content(store, tmp_path):
    path = tmp_path / "wrong-name.gif"
    path.write_bytes(encode(paint(), "PNG"))
    assert store.add_file(path, SOURCE).extension == "png"


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


def test_a_changed_file_is_not_handed_out(store):
    picture = store.add_bytes(encode(paint()), SOURCE)
    store.path(picture.sha256, "jpg").write_bytes(encode(paint(seed=2)))
    with pytest.raises(CorruptInput, match="the file was changed"):
        store.read(picture)


def test_a_missing_file_is_not_handed_out(store):
    picture = store.add_bytes(encode(paint()), SOURCE)
    store.path(picture.sha256, "jpg").unlink()
    with pytest.raises(CorruptInput, match=r"Kelm\.jpg"):
        store.read(picture)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.995])
def test_a_truncated_picture_is_refused(store, kind, share):
    data = encode(paint(320, 240), kind)
    with pytest.raises(RecordFailed) as caught:
        store.add_bytes(data[: int(len(data) * share)], SOURCE)
    assert caught.value.error == "picture-undecodable"
    assert not list(store.folder.rglob("*.*"))


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"II*\x00tiff", b"<html>", b"%PDF-1.7"])
def test_a_format_that_is_not_allowed_is_refused(data):
    assert find_extension(data) == ""
    with pytest.raises(RecordFailed) as caught:
        probe_picture(data)
    assert caught.value.error == "picture-format"


@pytest.mark.parametrize("size", [(20_000, 20_000), (65_000, 1_600)])
def test_a_pixel_bomb_is_refused_before_it_is_decoded(size):
    bomb = bytearray(encode(Image.new("1", (8, 8)), "GIF"))
    bomb[6:10] = size[0].to_bytes(2, "little") + size[1].to_bytes(2, "little")
    with pytest.raises(RecordFailed) as caught:
        probe_picture(bytes(bomb))
    assert caught.value.error == "picture-too-large"


def test_a_missing_source_is_the_records_failure(store, tmp_path):
    with pytest.raises(RecordFailed) as caught:
        store.add_file(tmp_path / "absent.jpg", SOURCE)
    assert caught.value.error == "picture-missing"


@pytest.mark.parametrize(("orientation", "size"), [(1, (96, 64)), (3, (96, 64)), (6, (64, 96)), (8, (64, 96))])
def test_the_size_is_that_of_the_picture_as_displayed(orientation, size):
    probe = probe_picture(encode(paint(96, 64), exif=turned(orientation)))
    assert (probe.width, probe.height) == size


def test_a_turned_picture_hashes_as_it_is_displayed():
    upright = paint(96, 64)
    lying = upright.transpose(Image.Transpose.ROTATE_90)
    stored = compute_phash(encode(lying, "PNG", exif=turned(6)))
    assert measure_distance(stored, compute_phash(encode(upright, "PNG"))) <= 4


def test_a_resized_copy_has_a_near_hash_and_another_picture_a_far_one():
    original = compute_phash(encode(paint(640, 480), quality=95))
    copy = compute_phash(encode(paint(640, 480).resize((200, 150)), quality=70))
    assert len(original) == 16
    assert measure_distance(original, copy) <= 6
    assert measure_distance(original, compute_phash(encode(paint(640, 480, seed=9)))) >= 12


def test_the_hash_of_bytes_and_file_is_the_same(tmp_path):
    data = encode(paint())
    (tmp_path / "a.jpg").write_bytes(data)
    assert compute_phash(tmp_path / "a.jpg") == compute_phash(data)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "LA", "I;16", "CMYK"])
def test_every_colour_mode_can_be_hashed(mode):
    kind = "TIFF" if mode == "CMYK" else "PNG"
    image = paint().convert("L").convert(mode) if mode != "CMYK" else paint().convert("CMYK")
    assert len(compute_phash(encode(image, "JPEG" if kind == "TIFF" else kind))) == 16


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6))
def test_broken_bytes_are_stored_or_refused_and_nothing_else(kind, changes):
    data = bytearray(encode(paint(24, 16), kind, **({"exif": turned(6)} if kind != "GIF" else {})))
    for place, value in changes:
        data[place % len(data)] = value
    assert refuse_or_accept(bytes(data)) in ("", "picture-format", "picture-too-large", "picture-undecodable")


def refuse_or_accept(data):
    try:
        probe_picture(data)
    except RecordFailed as refusal:
        return refusal.error
    return ""
