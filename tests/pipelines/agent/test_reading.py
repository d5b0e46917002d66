import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.pictures import Reader, measure_area
from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.services.protocols import TextBlock
from tests.pipelines.services.clients.signs import draw_sign

SIGN = draw_sign(size=(400, 100))
BOX = (0.0, 0.0, 200.0, 50.0)


@dataclass
class FakeOcr:
    """Reads what it is told, at each scale."""

    lines: dict = field(default_factory=dict)
    name: str = "fake"
    error: Exception | None = None
    asked: list = field(default_factory=list)

    @property
    def identity(self):
        return f"{self.name}@1"

    async def read_text(self, data, scale=1.0):
        self.asked.append(scale)
        if self.error is not None:
            raise self.error
        return tuple(TextBlock(text, "text", box, 0.9) for text, box in self.lines.get(scale, ()))


def read(*engines, **settings):
    return asyncio.run(Reader(engines, **settings).read(SIGN))


def test_every_engine_reads_at_every_scale_and_each_line_counts_once():
    first = FakeOcr({1.0: [("Kelmor Bridge", BOX)], 2.0: [("KELMOR BRIDGE", BOX), ("1875", BOX)]}, "first")
    second = FakeOcr({1.0: [("kelmor  bridge", BOX), ("Exit\n\nClosed", BOX)]}, "second")
    reading = read(first, second)
    assert reading.lines == ("Kelmor Bridge", "1875", "Exit", "Closed")
    assert reading.engines == ("first", "second")
    assert first.asked == second.asked == [1.0, 2.0]


def test_boxes_that_lie_on_one_another_cover_their_area_once():
    boxes = [("one", BOX), ("two", BOX), ("three", (100.0, 0.0, 300.0, 50.0))]
    assert read(FakeOcr({1.0: boxes})).area == pytest.approx(0.375, abs=0.005)


def test_a_picture_without_text_has_no_area_and_single_letters_are_none():
    assert read(FakeOcr()).area == 0.0
    reading = read(FakeOcr({1.0: [("1", BOX), ("o.", BOX)]}))
    assert (reading.lines, reading.area) == (("1", "o."), 0.0)


def test_what_is_no_picture_is_not_even_given_to_an_engine():
    engine = FakeOcr()
    with pytest.raises(RecordFailed, match="picture-format"):
        asyncio.run(Reader((engine,)).read(b"no picture"))
    assert engine.asked == []


@pytest.mark.parametrize(
    ("size", "scales", "asked"),
    [
        ((660, 512), (1.0, 2.0), [1.0, 2.0]),
        ((1280, 960), (1.0, 2.0), [1.0]),
        ((2600, 2000), (1.0, 2.0), [1.0]),
        ((2600, 2000), (2.0, 1.0), [2.0]),
        ((1280, 960), (1.0, 0.5), [1.0, 0.5]),
        ((400, 100), (1.0, 1.2), [1.0, 1.2]),
    ],
)
def test_a_picture_that_cannot_be_enlarged_is_not_read_twice(size, scales, asked):
    engine = FakeOcr()
    asyncio.run(Reader((engine,), scales).read(draw_sign("", size)))
    assert engine.asked == asked


@pytest.mark.parametrize("error", [RecordFailed("ocr-timeout", "slow"), Unavailable("away")])
def test_a_reading_is_whole_or_there_is_none(error):
    with pytest.raises(type(error)):
        read(FakeOcr({1.0: [("Kelmor", BOX)]}, "first"), FakeOcr(name="second", error=error))


@pytest.mark.parametrize(("engines", "scales"), [((), (1.0,)), ((FakeOcr(),), ()), ((FakeOcr(), FakeOcr()), (1.0,))])
def test_no_engine_no_scale_or_an_engine_twice_is_refused(engines, scales):
    with pytest.raises(ConfigError, match="OCR engines"):
        Reader(engines, scales)


def test_the_identity_tells_engines_and_scales():
    assert Reader((FakeOcr(), FakeOcr(name="other"))).identity == "fake@1+other@1@1,2"
    assert Reader((FakeOcr(),), (1.0,)).identity != Reader((FakeOcr(),)).identity


@given(st.lists(st.tuples(*[st.floats(-1e3, 1e3, allow_nan=False)] * 4), max_size=8))
def test_an_area_is_a_share_whatever_the_boxes(boxes):
    assert 0.0 <= measure_area([TextBlock("a", "text", box, 1.0) for box in boxes], (400, 100)) <= 1.0
