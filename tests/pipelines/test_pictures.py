import io
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.pictures import (
    MAX_ENLARGED_PIXELS,
    PictureSource,
    PictureStore,
    compute_phash,
    measure_distance,
    open_pixels,
    open_scaled,
    read_header,
    shrink_picture,
)
from tests.hostile_pictures import (
    HOSTILE,
    ODD,
    SIDE,
    draw,
    draw_lying,
    encode,
    make_segment,
    turn,
)
from tests.pipelines.services.clients.signs import draw_sign

NEAR = 6
"""Difference of a sample that JPEG and WebP may make."""
KINDS = {"JPEG": "jpg", "PNG": "png", "GIF": "gif", "WEBP": "webp"}
SMALL = {name: odd.build() for name, odd in ODD.items()}


def differ(first, second):
    return max(abs(one - other) for one, other in zip(first, second, strict=True))


def fail(data, max_side=0):
    with pytest.raises(RecordFailed) as caught:
        open_pixels(data, max_side)
    return caught.value.error


def refuse_or_open(data):
    try:
        return open_pixels(data, 64).mode
    except RecordFailed as refusal:
        return refusal.error


@pytest.mark.parametrize("name", ODD)
def test_an_odd_picture_is_seen_as_a_page_shows_it(name):
    odd = ODD[name]
    shown = open_pixels(odd.build())
    assert (shown.mode, shown.size) == ("RGB", odd.size)
    assert differ(shown.getpixel((100, 100)), odd.seen) <= NEAR
    assert shown.info == {}


@pytest.mark.parametrize("name", ODD)
def test_a_shrunken_picture_shows_the_same(name):
    odd = ODD[name]
    shown = open_pixels(odd.build(), 64)
    assert shown.size == (64, 52)
    assert differ(shown.getpixel((10, 10)), odd.seen) <= NEAR


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_every_orientation_is_applied(kind, orientation):
    undo = [None, None, 0, 3, 1, 5, 2, 6, 4]
    turned = undo[orientation]
    stored = draw() if turned is None else draw().transpose(Image.Transpose(turned))
    upright = open_pixels(encode(stored, kind, exif=turn(orientation), **({} if kind == "PNG" else {"quality": 95})))
    assert upright.size == SIDE
    for place in ((100, 100), (500, 100), (100, 400), (500, 400)):
        assert differ(upright.getpixel(place), draw().getpixel(place)) <= 2 * NEAR


def test_an_orientation_in_xmp_counts_where_exif_has_none():
    xmp = b'http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation="6"/>'
    data = encode(draw_lying())
    assert open_pixels(data[:2] + make_segment(0xE1, xmp) + data[2:]).size == SIDE
    upright = encode(draw(), exif=turn(1))
    assert open_pixels(upright[:2] + make_segment(0xE1, xmp) + upright[2:]).size == SIDE


@pytest.mark.parametrize(
    "exif", [b"", b"II*\0", b"II*\0\xff\xff\xff\xff\0\0", b"MM\0*\0\0\0\x08\xff\xff", b"nothing of it"]
)
def test_broken_exif_turns_nothing_and_refuses_nothing(exif):
    data = encode(draw())
    assert open_pixels(data[:2] + make_segment(0xE1, b"Exif\0\0" + exif) + data[2:]).size == SIDE


@pytest.mark.parametrize("size", [(4_000, 200), (200, 4_000)])
def test_a_wide_jpeg_is_decoded_at_reduced_scale(size):
    data = encode(Image.effect_noise(size, 90).convert("RGB"), progressive=False)
    reduced = Image.open(io.BytesIO(data))
    reduced.draft("RGB", (size[0] // 8, size[1] // 8))
    assert open_pixels(data, 500).tobytes() == reduced.convert("RGB").tobytes()
    whole = open_pixels(data)
    whole.thumbnail((500, 500), reducing_gap=2.0)
    assert open_pixels(data, 500).tobytes() != whole.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP"])
def test_what_can_only_be_decoded_whole_may_have_fewer_pixels(kind):
    data = encode(Image.new("1", (8_000, 7_000)).convert("L"), kind)
    assert fail(data) == "picture-too-large"


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ODD)), st.integers(0, 2**32), st.integers(1, 8), st.booleans())
def test_broken_bytes_are_opened_or_refused_and_nothing_else(name, seed, changes, head):
    rng, data = random.Random(seed), bytearray(SMALL[name])
    for _ in range(changes):
        data[rng.randrange(min(len(data), 120) if head else len(data))] = rng.randrange(256)
    assert refuse_or_open(bytes(data)) in ("RGB", "picture-format", "picture-too-large", "picture-undecodable")


def test_a_picture_is_enlarged_as_far_as_its_pixels_allow():
    picture = open_scaled(draw_sign("", (400, 100)), 2.0)
    assert (picture.image.size, picture.width, picture.height) == ((800, 200), 400, 100)
    large = open_scaled(draw_sign("", (1200, 900)), 2.0)
    assert MAX_ENLARGED_PIXELS * 0.99 < large.image.width * large.image.height <= MAX_ENLARGED_PIXELS
    assert large.restore_box([(0, 0), large.image.size]) == (0.0, 0.0, 1200.0, 900.0)
    assert open_scaled(draw_sign("", (2000, 1500)), 2.0).image.size == (2000, 1500)
    assert open_scaled(draw_sign("", (2500, 2500)), 1.0).image.size == (2000, 2000)


SOURCE = PictureSource("Kelm.jpg", "A. Orn", "CC BY 4.0", "https://licence.example", "https://source.example")


def paint(width=96, height=64, seed=1):
    rng = random.Random(seed)
    image = Image.new("RGB", (width, height))
    for _ in range(12):
        left, top = rng.randrange(width), rng.randrange(height)
        colour = tuple(rng.randrange(256) for _ in range(3))
        image.paste(colour, (left, top, left + width // 3, top + height // 3))
    return image


@pytest.fixture
def store(tmp_path):
    return PictureStore(tmp_path / "images")


@pytest.mark.parametrize(("kind", "extension"), KINDS.items())
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


def test_a_picture_that_cannot_be_written_leaves_nothing_and_says_where(store):
    store.folder.write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match=re.escape(str(store.folder))):
        store.add_bytes(encode(paint()), SOURCE)
    assert store.folder.is_file()


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
    with pytest.raises(CorruptInput, match="and a row needs it"):
        store.load(picture.sha256)


def test_a_resized_copy_has_a_near_hash_and_another_picture_a_far_one():
    original = compute_phash(encode(paint(640, 480), quality=95))
    copy = compute_phash(encode(paint(640, 480).resize((200, 150)), quality=70))
    assert len(original) == 16
    assert measure_distance(original, copy) <= 6
    assert measure_distance(original, compute_phash(encode(paint(640, 480, seed=9)))) >= 12


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(("pixels", "size"), [(5000, 0), (0, 2000), (9000, 1500), (1, 0)])
def test_a_picture_is_scaled_down_to_pixels_and_bytes_in_its_shape(kind, pixels, size):
    noise = Image.effect_noise((300, 200), 90).convert("RGB")
    small = shrink_picture(encode(noise, kind), pixels, size)
    header = read_header(small)
    assert not pixels or header.width * header.height <= pixels
    assert not size or len(small) <= size
    assert header.height == 1 or header.width / header.height == pytest.approx(1.5, rel=0.1)
    assert small == shrink_picture(encode(noise, kind), pixels, size)
