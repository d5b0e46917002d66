import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, RecordFailed
from pipelines.toy.textlayer import WrittenText, read_layer, write_layer

BOX = (1.0, 2.5, 30.0, 20.0)
FORMATS = ["JPEG", "PNG"]
PIECES = st.builds(
    WrittenText,
    st.text(st.characters(exclude_categories=("Cs",)), max_size=30),
    st.tuples(*[st.floats(0, 1e4, allow_nan=False)] * 4),
)


def encode(kind, **settings):
    target = io.BytesIO()
    Image.effect_noise((40, 30), 50).convert("RGB").save(target, kind, **settings)
    return target.getvalue()


def show(data):
    return Image.open(io.BytesIO(data)).convert("RGB").tobytes()


DRAWN = {kind: encode(kind) for kind in FORMATS}


@given(st.sampled_from(FORMATS), st.lists(PIECES, max_size=4))
def test_what_was_written_is_read_and_the_pixels_stay(kind, pieces):
    written = write_layer(DRAWN[kind], pieces)
    assert read_layer(written) == tuple(pieces)
    assert show(written) == show(DRAWN[kind])


@pytest.mark.parametrize("kind", FORMATS)
def test_a_picture_without_a_layer_has_none_which_is_not_an_empty_one(kind):
    assert read_layer(DRAWN[kind]) is None
    assert read_layer(write_layer(DRAWN[kind], [])) == ()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_second_layer_takes_the_place_of_the_first(kind):
    first = write_layer(DRAWN[kind], [WrittenText("Kelmor", BOX)])
    assert write_layer(first, [WrittenText("Vessig", BOX)]) == write_layer(DRAWN[kind], [WrittenText("Vessig", BOX)])


@pytest.mark.parametrize("kind", FORMATS)
def test_a_picture_that_is_encoded_anew_has_no_layer(kind):
    written = write_layer(DRAWN[kind], [WrittenText("Kelmor", BOX)])
    target = io.BytesIO()
    opened = Image.open(io.BytesIO(written))
    Image.frombytes("RGB", opened.size, show(written)).save(target, kind)
    assert read_layer(target.getvalue()) is None


def test_orientation_and_other_comments_of_a_jpeg_stay():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encode("JPEG", exif=exif, comment=b"by hand")
    opened = Image.open(io.BytesIO(write_layer(data, [WrittenText("Kelmor", BOX)])))
    assert opened.getexif()[0x0112] == 6
    assert b"by hand" in write_layer(data, [])


@pytest.mark.parametrize("data", [b"", b"GIF89a....", b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"<svg/>"])
def test_only_jpeg_and_png_take_a_layer(data):
    assert read_layer(data) is None
    with pytest.raises(ConfigError, match="neither JPEG nor PNG"):
        write_layer(data, [])


def test_more_text_than_a_comment_holds_is_refused_and_not_cut():
    with pytest.raises(ConfigError, match="comment holds"):
        write_layer(DRAWN["JPEG"], [WrittenText("x" * 70_000, BOX)])
    assert read_layer(write_layer(DRAWN["PNG"], [WrittenText("x" * 70_000, BOX)]))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[", b"{}", b"[1]", b'[{"text": 1, "box": [1, 2, 3, 4]}]', b'[{"text": "a", "box": [1, 2, 3]}]',
        b'[{"text": "a", "box": [1, 2, 3, "4"]}]', b'[{"text": "a", "box": [1, 2, 3, true]}]', b"\xff\xfe",
    ],
)  # fmt: skip
def test_a_layer_of_another_form_fails_and_reads_as_nothing_never(body):
    layer = b"synth-text\0" + body
    data = DRAWN["PNG"]
    chunk = struct.pack(">I", len(layer)) + b"tEXt" + layer + struct.pack(">I", zlib.crc32(b"tEXt" + layer))
    with pytest.raises(RecordFailed, match="text-layer"):
        read_layer(data[:33] + chunk + data[33:])


@given(st.sampled_from(FORMATS), st.data())
def test_a_layer_is_found_or_not_in_any_broken_file(kind, data):
    written = write_layer(DRAWN[kind], [WrittenText("Kelmor", BOX)])
    cut = data.draw(st.integers(0, len(written)))
    assert read_layer(written[:cut]) in (None, (WrittenText("Kelmor", BOX),))


def test_a_file_of_chunks_alone_ends_soon():
    empty = struct.pack(">I", 0) + b"teST" + struct.pack(">I", 0)
    assert read_layer(b"\x89PNG\r\n\x1a\n" + empty * 200_000) is None
