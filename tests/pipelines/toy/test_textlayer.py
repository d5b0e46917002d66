import asyncio
import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import ConfigError, RecordFailed
from pipelines.toy.textlayer import LayerOcr, WrittenText, encode_layered, read_layer
from tests.pipelines.services.clients.signs import draw_sign

NOISE = Image.effect_noise((40, 30), 50).convert("RGB")
BOX = (1.0, 2.5, 30.0, 20.0)
KELMOR = (WrittenText("Kelmor", BOX),)
FORMATS = ["JPEG", "PNG"]
PIECES = st.builds(
    WrittenText,
    st.text(st.characters(exclude_categories=("Cs",)), max_size=30),
    st.tuples(*[st.floats(0, 1e4, allow_nan=False)] * 4),
)


def encode_plain(picture, kind):
    target = io.BytesIO()
    picture.save(target, kind)
    return target.getvalue()


def show(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


@given(st.sampled_from(FORMATS), st.lists(PIECES, max_size=4))
def test_what_was_written_is_read_and_the_pixels_stay(kind, pieces):
    written = encode_layered(NOISE, kind, pieces)
    assert read_layer(written) == tuple(pieces)
    assert show(written).tobytes() == show(encode_plain(NOISE, kind)).tobytes()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_picture_without_a_layer_or_encoded_anew_has_none_which_is_not_an_empty_one(kind):
    assert read_layer(encode_plain(NOISE, kind)) is None
    assert read_layer(encode_layered(NOISE, kind, [])) == ()
    shown = show(encode_layered(NOISE, kind, KELMOR))
    assert read_layer(encode_plain(Image.frombytes("RGB", shown.size, shown.tobytes()), kind)) is None


def test_more_text_than_a_comment_holds_is_refused_and_not_cut():
    long = [WrittenText("x" * 70_000, BOX)]
    with pytest.raises(ConfigError, match="comment holds"):
        encode_layered(NOISE, "JPEG", long)
    assert read_layer(encode_layered(NOISE, "PNG", long)) == tuple(long)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[", b"[1]", b'[{"text": "a"}]', b'[{"text": "a", "box": [1, 2, 3]}]', b"\xff\xfe",
    ],
)  # fmt: skip
def test_a_layer_of_another_form_fails_and_reads_as_nothing_never(body):
    layer, data = b"synth-text\0" + body, encode_plain(NOISE, "PNG")
    chunk = struct.pack(">I", len(layer)) + b"tEXt" + layer + struct.pack(">I", zlib.crc32(b"tEXt" + layer))
    jpeg = encode_plain(NOISE, "JPEG")
    comment = b"\xff\xfe" + struct.pack(">H", len(layer) + 2) + layer
    for broken in (data[:33] + chunk + data[33:], jpeg[:20] + comment + jpeg[20:]):
        with pytest.raises(RecordFailed, match="text-layer"):
            read_layer(broken)


def test_the_engine_refuses_a_picture_without_a_layer():
    with pytest.raises(RecordFailed, match="no-text-layer"):
        asyncio.run(LayerOcr().read_text(draw_sign()))
