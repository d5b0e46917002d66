import io
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, RecordFailed
from pipelines.pictures import (
    MAX_ENLARGED_PIXELS,
    MAX_SIDE,
    encode_picture,
    measure_distance,
    open_pixels,
    open_scaled,
    probe_picture,
)
from tests.hostile_pictures import (
    ODD,
    SIDE,
    add_scans,
    claim_gif,
    draw,
    draw_lying,
    encode,
    make_chunk,
    make_png,
    make_segment,
    pack_rows,
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


@pytest.mark.parametrize("number", [0, 9, 65_535])
def test_an_orientation_that_means_nothing_turns_nothing(number):
    assert open_pixels(encode(draw(), exif=turn(number))).size == SIDE


@pytest.mark.parametrize(
    "exif", [b"", b"II*\0", b"II*\0\xff\xff\xff\xff\0\0", b"MM\0*\0\0\0\x08\xff\xff", b"nothing of it"]
)
def test_broken_exif_turns_nothing_and_refuses_nothing(exif):
    data = encode(draw())
    assert open_pixels(data[:2] + make_segment(0xE1, b"Exif\0\0" + exif) + data[2:]).size == SIDE


def test_sixteen_bit_colour_has_the_hash_of_its_eight_bit_copy():
    wide = probe_picture(make_png(SIDE, 16, 2, pack_rows(draw(), 3)))
    assert wide.phash == probe_picture(encode(draw(), "PNG")).phash


def test_a_palette_has_the_hash_of_the_colours_it_stands_for():
    noisy = Image.effect_noise(SIDE, 80).convert("P")
    assert probe_picture(encode(noisy, "GIF")).phash == probe_picture(encode(noisy.convert("RGB"), "PNG")).phash


@pytest.mark.parametrize(("depth", "mask"), [(2, 3), (4, 15)])
def test_the_clear_shade_of_narrow_grey_is_white(depth, mask):
    pixels = 8 // depth
    row = b"\0" + bytes([int("01" * 4, 2) if depth == 2 else 0x11]) * (64 // pixels)
    data = make_png((64, 64), depth, 0, zlib.compress(row * 64), make_chunk(b"tRNS", struct.pack(">H", 1)))
    assert open_pixels(data).getpixel((5, 5)) == (255, 255, 255)
    other = make_png((64, 64), depth, 0, zlib.compress(row * 64), make_chunk(b"tRNS", struct.pack(">H", mask)))
    assert open_pixels(other).getpixel((5, 5)) == (255 // mask,) * 3


def test_what_is_smaller_than_the_longest_side_stays_as_it_is():
    assert open_pixels(encode(draw((40, 30)), "PNG"), 64).size == (40, 30)


def test_half_clear_parts_are_mixed_with_white():
    half = draw().convert("RGBA")
    half.putalpha(128)
    assert differ(open_pixels(encode(half, "PNG")).getpixel((100, 100)), (227, 147, 147)) <= 1


def test_pixels_stay_what_they_are_without_metadata():
    image = Image.effect_noise((200, 150), 90).convert("RGB")
    for kind in ("JPEG", "PNG", "WEBP"):
        data = encode(image, kind, exif=turn(1), icc_profile=b"profile")
        assert open_pixels(data).tobytes() == Image.open(io.BytesIO(data)).convert("RGB").tobytes()


@pytest.mark.parametrize(("side", "error"), [(MAX_SIDE + 1, "picture-too-large"), (MAX_SIDE, "")])
def test_a_side_may_be_as_long_as_the_limit(side, error):
    data = encode(Image.new("L", (side, 20)), "PNG")
    assert (fail(data) if error else open_pixels(data, 64).width) == (error or 64)


@pytest.mark.parametrize("size", [(4_000, 200), (200, 4_000)])
def test_a_wide_jpeg_is_decoded_at_reduced_scale(size):
    data = encode(Image.effect_noise(size, 90).convert("RGB"), progressive=False)
    reduced = Image.open(io.BytesIO(data))
    reduced.draft("RGB", (size[0] // 8, size[1] // 8))
    assert open_pixels(data, 500).tobytes() == reduced.convert("RGB").tobytes()
    whole = open_pixels(data)
    whole.thumbnail((500, 500), reducing_gap=2.0)
    assert open_pixels(data, 500).tobytes() != whole.tobytes()


@pytest.mark.parametrize("side", [499, 500, 501, 1_000, 1_001, 4_000, 9_000])
def test_reduced_scale_is_never_smaller_than_asked_for(side):
    assert max(open_pixels(encode(draw((4_000, 90))), side).size) == min(side, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP"])
def test_what_can_only_be_decoded_whole_may_have_fewer_pixels(kind):
    data = encode(Image.new("1", (8_000, 7_000)).convert("L"), kind)
    assert fail(data) == "picture-too-large"


def draw_view(size, seed):
    """Draw a picture with detail of every size, as photographs have."""
    rng, (width, height) = np.random.default_rng(seed), size
    total = np.zeros((height, width))
    for cells in (4, 16, 64, 256):
        rough = Image.fromarray(rng.integers(0, 256, (max(1, cells * height // width), cells), dtype=np.uint8))
        total += np.asarray(rough.resize(size, Image.Resampling.BICUBIC), dtype=float) / cells**0.5
    return Image.fromarray(np.uint8((total - total.min()) / np.ptp(total) * 255)).convert("RGB")


@pytest.mark.parametrize("ratio", [1, 3, 8, 16])
@pytest.mark.parametrize("seed", range(2))
def test_a_copy_of_a_panorama_has_a_near_hash(ratio, seed):
    image = draw_view((1_600, 1_600 // ratio), seed)
    small = image.resize((800, 800 // ratio))
    hashes = [probe_picture(encode(shown, kind)).phash for shown in (image, small) for kind in ("JPEG", "PNG")]
    assert all(measure_distance(hashes[0], other) <= 4 for other in hashes[1:])


@pytest.mark.parametrize(("scans", "error"), [(20, ""), (64, "picture-too-large")])
def test_scans_are_counted(scans, error):
    data = add_scans(scans)
    assert (fail(data) if error else open_pixels(data).size) == (error or SIDE)


def test_what_follows_the_end_of_a_jpeg_is_not_counted_as_scans():
    assert open_pixels(encode(draw()) + add_scans(100)).size == SIDE


def test_a_gif_frame_beyond_the_screen_makes_the_picture_larger():
    data = claim_gif(4, 5)
    assert open_pixels(data).size == (8, 8)
    assert (probe_picture(data).width, probe_picture(data).height) == (8, 8)


@pytest.mark.parametrize("like", ["jpg", "png", "gif", "webp"])
def test_what_was_encoded_is_opened_again(like):
    image = draw((90, 60))
    again = open_pixels(encode_picture(image, like))
    assert again.size == image.size
    assert differ(again.getpixel((10, 10)), image.getpixel((10, 10))) <= (NEAR if like == "jpg" else 0)
    assert probe_picture(encode_picture(image, like)).extension == ("jpg" if like == "jpg" else "png")


def test_threads_see_what_one_thread_sees():
    data = [odd.build() for odd in ODD.values()] * 3
    with ThreadPoolExecutor(8) as pool:
        assert [one.tobytes() for one in pool.map(open_pixels, data)] == [open_pixels(one).tobytes() for one in data]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ODD)), st.integers(0, 2**32), st.integers(1, 8), st.booleans())
def test_broken_bytes_are_opened_or_refused_and_nothing_else(name, seed, changes, head):
    rng, data = random.Random(seed), bytearray(SMALL[name])
    for _ in range(changes):
        data[rng.randrange(min(len(data), 120) if head else len(data))] = rng.randrange(256)
    assert refuse_or_open(bytes(data)) in ("RGB", "picture-format", "picture-too-large", "picture-undecodable")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(ODD)), st.floats(0.0, 0.9))
def test_the_first_part_of_a_picture_is_refused(name, share):
    data = SMALL[name]
    if name not in ("jpeg with a film behind it", "animated gif"):
        assert fail(data[: int(len(data) * share)]) in ("picture-format", "picture-undecodable")


def test_a_copy_in_another_format_has_a_near_hash():
    image = Image.effect_noise((64, 64), 90).resize(SIDE).convert("RGB")
    hashes = [probe_picture(encode(image, kind)).phash for kind in KINDS]
    assert all(measure_distance(hashes[0], other) <= NEAR for other in islice(hashes, 1, None))


def test_a_picture_is_enlarged_as_far_as_its_pixels_allow():
    picture = open_scaled(draw_sign("", (400, 100)), 2.0)
    assert (picture.image.size, picture.width, picture.height) == ((800, 200), 400, 100)
    large = open_scaled(draw_sign("", (1200, 900)), 2.0)
    assert MAX_ENLARGED_PIXELS * 0.99 < large.image.width * large.image.height <= MAX_ENLARGED_PIXELS
    assert large.restore_box([(0, 0), large.image.size]) == (0.0, 0.0, 1200.0, 900.0)
    assert open_scaled(draw_sign("", (2000, 1500)), 2.0).image.size == (2000, 1500)
    assert open_scaled(draw_sign("", (2500, 2500)), 1.0).image.size == (2000, 2000)


def test_boxes_stay_inside_the_picture():
    picture = open_scaled(draw_sign("", (400, 100)), 2.0)
    assert picture.restore_box([(-5.0, 10.0), (900.0, 60.0)]) == (0.0, 5.0, 400.0, 30.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, 17.0, float("nan")])
def test_a_scale_out_of_range_is_refused(scale):
    with pytest.raises(ConfigError, match="scale"):
        open_scaled(draw_sign("", (400, 100)), scale)
