"""Asking a server one thing, on a short lead: a bounded answer in a bounded time, and the key cut out of it."""

import asyncio
import binascii
import json
import re
import ssl
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from pipelines.backends.openai_errors import Refusal, redact
from pipelines.errors import RateLimited

MAX_REPLY = 1 << 20
QUOTED = 160
"""Characters of an answer that a finding quotes."""
_LOOKED: Final = 4000
"""Characters of a page in which words are looked for."""
_TAG = re.compile(r"<(script|style)\b[^<>]*>.*?</\1\s*>|<[^<>]*(?:>|$)", re.IGNORECASE | re.DOTALL)
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")
"""What OpenSSL calls a reply that is no handshake."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; status 0 where nothing whole came, and then ``text`` says what came."""

    status: int
    text: str
    milliseconds: float = 0.0
    advice: str = ""
    """What to do where nothing whole came, if the cause says so."""

    @property
    def is_busy(self) -> bool:
        """Whether the server asks for patience; an account with nothing left is not that."""
        return self.status == 429 and isinstance(Refusal("", 429, 0.0, self.text, "").explain(), RateLimited)

    @property
    def is_refusal(self) -> bool:
        """Whether the server understood the request and does not take it."""
        return 400 <= self.status < 500 and self.status not in (408, 409, 425, 429)

    @property
    def is_cut(self) -> bool:
        """Whether a completion ended at the limit of its tokens."""
        return bool(json.loads(self.text)["choices"][0].get("finish_reason") == "length")

    def quote(self) -> str:
        """Return the beginning of it for a reader, a page without its tags."""
        if not self.status:
            return self.text
        said = _strip_tags(self.text[:_LOOKED])[:QUOTED]
        return f"HTTP {self.status}: {said}" if said else f"HTTP {self.status}"

    def read_completion(self) -> str | None:
        """Return the text of a completion, or None where it is none."""
        if self.status != 200:
            return None
        try:
            message = json.loads(self.text)["choices"][0]["message"]
            return str(message.get("content") or "")
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return None


def _strip_tags(text: str) -> str:
    return " ".join(_TAG.sub(" ", text).split()) if text.startswith("<") else text


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
            said, advice = _explain(error)
            return Answer(0, redact(said.encode(), self.key)[:QUOTED], advice=advice)


def _explain(error: Exception) -> tuple[str, str]:
    """Return in words why nothing whole came, and what to do if that is plain."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {error.host}:{error.port} is not trusted", "see SSL_CERT_FILE, or base_url"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _explain_connection(f"{error.host}:{error.port}", error)
    if isinstance(error, aiohttp.InvalidURL):
        return f"{error} is no address", "see base_url"
    if isinstance(error, aiohttp.ClientResponseError):
        return "no answer: it speaks no HTTP", "see base_url"
    if isinstance(error, (aiohttp.ClientError, OSError)):
        return "the connection ended before a whole answer came", ""
    return f"no answer: {error}", ""


def _explain_connection(place: str, error: aiohttp.ClientConnectorError) -> tuple[str, str]:
    cause = error.os_error
    if isinstance(cause, ConnectionRefusedError):
        return f"nothing listens at {place}", ""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no address is known of {error.host}", "see base_url"
    if isinstance(cause, ssl.SSLError):
        if cause.reason in _NO_TLS:
            return f"{place} speaks no TLS", "say http:// in base_url"
        reason = (cause.reason or "unknown cause").replace("_", " ").lower()
        return f"no TLS connection to {place}: {reason}", "see base_url"
    return f"no connection to {place}: {cause.strerror or cause}", ""


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
