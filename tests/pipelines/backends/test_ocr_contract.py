"""What every OCR engine keeps to, whatever reads."""

import asyncio

import pytest

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.clients.ocr import RapidOcr
from pipelines.services.clients.recorded import RecordedOcr
from pipelines.services.clients.replies import open_replies
from pipelines.toy.textlayer import LayerOcr
from tests.pipelines.backends.signs import draw_sign

SIGN = draw_sign(layered=True)
PLAIN = draw_sign("", layered=True)
LETTERS = (60.0, 30.0, 330.0, 80.0)
"""Where the letters stand, with some room."""
MAKERS = {
    "rapidocr": RapidOcr,
    "layer": LayerOcr,
}


@pytest.fixture(scope="module")
def kept():
    """Engines by name: their models are loaded once."""
    return {}


@pytest.fixture
def store(tmp_path):
    opened = open_replies(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=[*MAKERS, "recorded"])
def engine(request, store, kept):
    """An engine of each kind."""
    if request.param == "recorded":
        return RecordedOcr(LayerOcr(), store)
    return kept.setdefault(request.param, MAKERS[request.param]())


def read(engine, data, scale=1.0):
    return asyncio.run(engine.read_text(data, scale))


@pytest.mark.slow
def test_the_text_of_a_sign_is_read_with_its_place_at_both_scales(engine):
    for scale in (1.0, 2.0):
        blocks = read(engine, SIGN, scale)
        assert "".join(block.text for block in blocks).replace(" ", "") == "KelmorBridge"
        left, top, right, bottom = (
            min(block.box[0] for block in blocks), min(block.box[1] for block in blocks),
            max(block.box[2] for block in blocks), max(block.box[3] for block in blocks),
        )  # fmt: skip
        assert (left, top, right, bottom) == pytest.approx(LETTERS, abs=25)
        assert all(0.0 < block.confidence <= 1.0 and block.label for block in blocks)
        assert 0.0 <= left < right <= 420.0
        assert 0.0 <= top < bottom <= 120.0


def test_a_picture_without_text_reads_as_nothing(engine):
    assert read(engine, PLAIN) == ()


def test_what_is_no_picture_fails_the_record_and_nothing_else(engine):
    for data in (b"", b"no picture", SIGN[:40]):
        with pytest.raises(RecordFailed):
            read(engine, data)


@pytest.mark.slow
def test_the_same_picture_is_read_the_same_also_beside_others_and_in_another_loop(engine):
    async def read_at_once():
        return await asyncio.gather(*(engine.read_text(data) for data in (SIGN, PLAIN, SIGN)))

    alone = read(engine, SIGN)
    assert asyncio.run(read_at_once()) == [alone, (), alone]


def test_an_engine_has_a_name_and_an_identity_that_says_more(engine):
    assert engine.name
    assert engine.identity.startswith(engine.name)
    assert len(engine.identity) > len(engine.name)


@pytest.mark.parametrize("scale", [0.0, -1.0, 17.0, float("nan")])
def test_a_scale_that_is_none_is_refused(engine, scale):
    if engine.name == "layer":
        pytest.skip("a layer has no scale")
    with pytest.raises(ConfigError, match="scale"):
        read(engine, SIGN, scale)
