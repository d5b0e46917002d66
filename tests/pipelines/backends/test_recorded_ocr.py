import asyncio
from dataclasses import dataclass

import pytest

from pipelines.errors import RecordFailed
from pipelines.services.clients.recorded import RecordedOcr
from pipelines.services.clients.replies import open_replies
from pipelines.services.metering import open_meter
from pipelines.services.protocols import TextBlock
from tests.pipelines.services.clients.signs import draw_sign

SIGN = draw_sign()


@dataclass
class CountingOcr:
    """Says how often it was asked."""

    count: int = 0
    name: str = "counting"
    identity: str = "counting@1"
    refuses: bool = False

    async def read_text(self, data, scale=1.0):
        self.count += 1
        if self.refuses:
            raise RecordFailed("ocr-failed", "no")
        return (TextBlock(f"Kelmor {self.count}", "title", (1.0, 2.0, 3.5, 4.0), 0.25),)


@pytest.fixture
def store(tmp_path):
    opened = open_replies(tmp_path)
    yield opened
    opened.close()


def test_a_picture_is_read_once_at_each_scale(store):
    counting = CountingOcr()
    recorded = RecordedOcr(counting, store)
    with open_meter() as meter:
        first = asyncio.run(recorded.read_text(SIGN))
        assert asyncio.run(recorded.read_text(SIGN)) == first
        assert asyncio.run(recorded.read_text(SIGN, 2.0)) != first
    assert counting.count == 2
    assert (meter.usage.calls, meter.usage.cached_calls) == (2, 1)
    assert first == (TextBlock("Kelmor 1", "title", (1.0, 2.0, 3.5, 4.0), 0.25),)


def test_another_engine_or_generation_reads_again(store):
    counting = CountingOcr()
    for ocr in (RecordedOcr(counting, store), RecordedOcr(CountingOcr(identity="counting@2"), store)):
        asyncio.run(ocr.read_text(SIGN))
    again = RecordedOcr(counting, store, epoch=1)
    asyncio.run(again.read_text(SIGN))
    assert counting.count == 2
    assert again.identity != counting.identity
    assert again.name == "counting"


def test_a_failure_is_not_recorded(store):
    counting = CountingOcr(refuses=True)
    recorded = RecordedOcr(counting, store)
    with pytest.raises(RecordFailed):
        asyncio.run(recorded.read_text(SIGN))
    counting.refuses = False
    assert asyncio.run(recorded.read_text(SIGN))
