"""An encoder without a model: a picture's mean colours as a point, and a record of all that was asked of it."""

import asyncio
import hashlib
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from pipelines.errors import RecordFailed


@dataclass
class FakeEncoder:
    """``gate`` is what it waits for before it answers; ``grid`` counts the parts along a side that it tells apart."""

    identity: str = "fake-encoder@1"
    name: str = "fake"
    gate: asyncio.Event | None = None
    grid: int = 4
    asked: list[str] = field(default_factory=list)
    """Digests and texts in the order in which they were encoded."""
    calls: int = 0

    async def encode_pictures(self, pictures):
        await self._note([picture.sha256 for picture in pictures])
        return self._stack([self._look(picture.path) for picture in pictures])

    async def encode_texts(self, texts):
        await self._note(texts)
        return self._stack([self._spread(text) for text in texts])

    async def _note(self, asked):
        self.calls += 1
        self.asked += asked
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()

    def _look(self, path):
        try:
            with Image.open(path) as opened:
                parts = opened.convert("RGB").resize((self.grid, self.grid), Image.Resampling.BOX)
        except (OSError, SyntaxError) as error:
            raise RecordFailed("picture-undecodable", path.name) from error
        return np.asarray(parts, dtype=np.float32).ravel() + 1.0

    def _spread(self, text):
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return np.frombuffer(digest * 2, dtype=np.uint8)[: 3 * self.grid**2].astype(np.float32) + 1.0

    def _stack(self, rows):
        stacked = np.array(rows, dtype=np.float32).reshape(len(rows), 3 * self.grid**2)
        return stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
