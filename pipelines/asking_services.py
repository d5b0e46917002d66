"""Asking a server one thing, on a short lead: a bounded answer in a bounded time, and the key cut out of it."""

import asyncio
import binascii
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from pipelines.backends.openai_errors import redact

MAX_REPLY = 1 << 20
QUOTED = 160
"""Characters of an answer that a finding quotes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; status 0 where nothing whole came, and then ``text`` says what came."""

    status: int
    text: str
    milliseconds: float = 0.0

    def quote(self) -> str:
        """Return the beginning of it for a reader."""
        return f"HTTP {self.status}: {self.text[:QUOTED]}" if self.status else self.text


@dataclass(frozen=True, slots=True)
class Line:
    """An open line to one service."""

    session: aiohttp.ClientSession
    key: str = field(repr=False)
    patience: float

    async def send(self, url: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Return the answer to a GET, or to a POST of a JSON body; whatever goes wrong is an answer, too."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        started = time.monotonic()
        try:
            async with (
                asyncio.timeout(self.patience),
                self.session.request(
                    "GET" if body is None else "POST", url, json=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                text = redact(await _read_bounded(response), self.key)
                return Answer(response.status, text, (time.monotonic() - started) * 1000)
        except TimeoutError:
            return Answer(0, f"no answer in {self.patience:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(0, f"no answer ({type(error).__name__}: {redact(str(error).encode(), self.key)[:QUOTED]})")


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > MAX_REPLY:
            raise ValueError(f"a reply of over {MAX_REPLY:,} bytes")
    return bytes(body)


def make_png(side: int = 8) -> bytes:
    """Return a small green picture."""
    rows = (b"\0" + b"\x30\xa0\x30" * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", binascii.crc32(kind + data))
        for kind, data in chunks
    )
