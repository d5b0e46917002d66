"""aiohttp on a short lead: bounded replies, no redirects, nothing of the environment in its requests."""

import asyncio
import io
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp

from pipelines.backends.openai_errors import NobodyThere, NoReply
from pipelines.errors import ConfigError

MAX_REPLY = 16 << 20
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 4.0
"""vLLM's server hangs up after 5: a request on a connection that is just being closed is lost."""
_LARGE = 1 << 20
"""Bytes of a body beyond which aiohttp wants to send it in parts."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply, unpacked."""

    status: int
    headers: Mapping[str, str]
    """Found in any case of letters."""
    body: bytes


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session, and what closes it when its loop ends."""

    session: aiohttp.ClientSession
    life: AsyncIterator[aiohttp.ClientSession]


@dataclass(frozen=True, slots=True)
class Sessions:
    """One session for each event loop, for as long as the loop lives.

    Connections belong to a loop, and nobody says when it ends. But a loop closes the generators that were started in
    it, and the session lives in one.
    """

    make: Callable[[], aiohttp.ClientSession]
    by_loop: dict[asyncio.AbstractEventLoop, _Kept] = field(default_factory=dict)

    async def open(self) -> aiohttp.ClientSession:
        """Return the running loop's session."""
        loop = asyncio.get_running_loop()
        kept = self.by_loop.get(loop)
        if kept is None:
            life = self._live(loop)
            # No other task runs before the generator's first yield.
            kept = self.by_loop[loop] = _Kept(await anext(life), life)
        return kept.session

    async def _live(self, loop: asyncio.AbstractEventLoop) -> AsyncIterator[aiohttp.ClientSession]:
        session = self.make()
        try:
            yield session
        finally:
            self.by_loop.pop(loop, None)
            await session.close()


def make_session(key: str) -> aiohttp.ClientSession:
    """Return a session that sends this key and nothing that it finds around it.

    Args:
        key: sent as a bearer token.
    """
    # Bounds on requests in flight are the pool's.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS)
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "synth",
    }
    return aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        trust_env=False,
        auto_decompress=False,
    )


async def post_bounded(session: aiohttp.ClientSession, url: str, body: bytes) -> HttpReply:
    """Send a request and return the whole reply, whatever its status.

    Raises:
        NobodyThere: if nobody listens at the address.
        NoReply: if the reply breaks off, is larger than allowed, packed or not, or is no HTTP.
        ConfigError: if its certificate is not trusted: waiting would not help.
    """
    data = io.BytesIO(body) if len(body) > _LARGE else body
    try:
        async with session.post(url, data=data, allow_redirects=False) as response:
            raw = await _read_bounded(response)
            packing = response.headers.get("Content-Encoding", "identity").lower()
            return HttpReply(response.status, response.headers, raw if packing == "identity" else _unpack(raw, packing))
    except aiohttp.ClientConnectorCertificateError as error:
        reason = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        raise ConfigError(
            f"{url}: its certificate is not trusted ({reason}); name the file of its authority in SSL_CERT_FILE"
        ) from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NobodyThere(f"no connection ({_name(error)})") from None
    except (aiohttp.ClientError, OSError) as error:
        raise NoReply(f"no whole reply ({_name(error)})") from None


def _name(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    length = response.content_length
    if length is not None and length <= MAX_REPLY:
        return await response.read()
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_REPLY:
            raise NoReply(_say_too_large())
    return bytes(body)


def _unpack(raw: bytes, packing: str) -> bytes:
    if packing not in _WINDOWS:
        raise NoReply("a reply packed in a way that was not asked for")
    unpacker = zlib.decompressobj(_WINDOWS[packing])
    try:
        body = unpacker.decompress(raw, MAX_REPLY + 1)
    except zlib.error as error:
        raise NoReply(f"a reply that cannot be unpacked ({error})") from None
    if len(body) > MAX_REPLY:
        raise NoReply(_say_too_large())
    if not unpacker.eof:
        raise NoReply("a packed reply that breaks off")
    return body


def _say_too_large() -> str:
    return f"a reply of over {MAX_REPLY:,} bytes"
