"""Recording around an OCR engine: each picture is read once at each scale."""

import hashlib
import json
from dataclasses import asdict, dataclass

from pipelines.backends.metering import count_usage
from pipelines.backends.protocols import Ocr, TextBlock
from pipelines.backends.replies import ReplyStore
from pipelines.freshness import name_generation
from pipelines.ids import canonical_json, digest_value
from schemas.manifest import Usage


@dataclass(frozen=True, slots=True)
class RecordedOcr:
    """An engine whose readings are kept; the key is the picture's sha256. A picture it failed on is asked again."""

    ocr: Ocr
    store: ReplyStore
    fresh: int = 0

    @property
    def name(self) -> str:
        """The wrapped engine's name."""
        return self.ocr.name

    @property
    def identity(self) -> str:
        """The wrapped engine's identity."""
        return name_generation(self.ocr.identity, self.fresh)

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the recorded blocks or have the picture read.

        Raises:
            RecordFailed, ServiceError: as the wrapped engine.
        """

        async def ask() -> str:
            return canonical_json([asdict(block) for block in await self.ocr.read_text(data, scale)])

        key = digest_value([self.identity, "read_text", hashlib.sha256(data).hexdigest(), scale])
        reply, cached = await self.store.recall(key, self.identity, ask)
        count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
        return tuple(_read_block(**block) for block in json.loads(reply))


def _read_block(text: str, label: str, box: list[float], confidence: float) -> TextBlock:
    left, top, right, bottom = box
    return TextBlock(text, label, (left, top, right, bottom), confidence)
