"""Requests to live services and to pages: one careful client.

A reply is whole, unpacked and bounded, or there is none. No redirect is followed, no cookie kept, and nothing of the
environment gets into a request. Where a guard is set, the connection is made to the very address that was checked.
"""

import asyncio
import errno
import io
import math
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, TypeVar
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from pipelines.addresses import Guard
from pipelines.backends.live_gates import LONGEST_WAIT, Gate, Gates
from pipelines.backends.live_sessions import make_session
from pipelines.backends.openai_errors import NobodyThere, NoReply, Silence, read_pause
from pipelines.backends.openai_http import Sessions
from pipelines.backends.unpacking import ACCEPTED, Bomb, Unpackable, unpack_body
from pipelines.errors import ConfigError, RateLimited, Unavailable

T = TypeVar("T")

ERROR_BYTES: Final = 1 << 16
"""Bytes of an error's body that are read."""
CONNECTIONS: Final = 256
"""At one time, to all hosts together: a process may commonly have 1,024 files open, and a reply is held in memory."""
_REDIRECTING = (301, 302, 303, 307, 308)
_ESCAPE = 0xDC00
_ESCAPED = re.compile("[\udc80-\udcff]")
"""How a byte that is no UTF-8 comes in a header (``surrogateescape``)."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class NoSuchHost(NobodyThere):
    """A name without an address, or a host that is not the one that it says it is."""


class TooLarge(NoReply):
    """A reply that is larger than allowed, packed or not; it will be the next time, too."""


class Busy(NoReply):
    """The service asks to slow down.

    Args:
        said: what it said.
        wait: seconds that it asks for, 0.0 if it names none.
    """

    def __init__(self, said: str, wait: float = 0.0) -> None:
        super().__init__(said)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class LiveManners:
    """How a service is asked.

    Attributes:
        rate: requests a second, at most.
        concurrency: requests in flight, at most.
        tries: requests in all for a call at which the service fails.
        timeout: seconds for a whole reply, however slowly it drips.
        reply_bytes: largest reply, unpacked.
        patience: seconds before a request is sent again, doubled each time.
        longest: seconds that a request waits where a host asks to be left alone; for longer, whoever asks is told.
    """

    rate: float = 5.0
    concurrency: int = 16
    tries: int = 4
    timeout: float = 60.0
    reply_bytes: int = 1 << 23
    patience: float = 1.0
    longest: float = LONGEST_WAIT


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """One request. What may hold a key is left out of its ``repr``."""

    url: str
    """Percent-encoded."""
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the address."""
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class LiveReply:
    """A whole reply, unpacked; the body of an error is cut at ``ERROR_BYTES``."""

    status: int
    headers: Mapping[str, str]
    """Found in any case of letters."""
    body: bytes

    @property
    def kind(self) -> str:
        """Media type without parameters, in lower case; empty where none is told."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def wait(self) -> float:
        """Seconds that the server asks to wait, 0.0 where it names none."""
        return read_pause(self.headers)

    @property
    def location(self) -> str:
        """Where a redirect leads, relative to the address that was asked; empty where there is none.

        Bytes that are no UTF-8 are percent-encoded, as browsers do.
        """
        to = self.headers.get("Location", "") if self.status in _REDIRECTING else ""
        return _ESCAPED.sub(lambda match: f"%{ord(match[0]) - _ESCAPE:02X}", to)

    @property
    def is_busy(self) -> bool:
        """Whether the server asks to slow down."""
        return self.status == 429 or (self.status == 503 and "Retry-After" in self.headers)


@dataclass(frozen=True, slots=True)
class LiveClient:
    """Sends requests, within its manners.

    Attributes:
        manners: towards each host.
        guard: who may be connected to; None where the addresses are the operator's own choice.
        gates: turns at each host.
        room: turns at all of them together.
        sessions: connections, an event loop's each.
    """

    manners: LiveManners
    guard: Guard | None
    gates: Gates = field(repr=False, compare=False)
    room: Gate = field(repr=False, compare=False)
    sessions: Sessions = field(repr=False, compare=False)

    async def send(self, request: LiveRequest) -> LiveReply:
        """Send a request once, in its turn, and return the whole reply, whatever its status.

        Raises:
            NoReply: if there is none: :class:`NobodyThere`, :class:`NoSuchHost`, :class:`Silence`, :class:`TooLarge`,
                or one that breaks off.
            Unavailable: if this machine can open no more connections.
            RateLimited: if the host wants to be left alone for long.
            ForbiddenAddress: if the guard refuses where the host leads to.
            ConfigError: if no guard is set and the certificate is not trusted: waiting would not help.
        """
        async with self.gates.find(_name_host(request.url)).enter(), self.room.enter():
            return await self._exchange(request)

    async def try_often(self, url: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return what an attempt returns, made again while there is no reply, with growing pauses.

        Args:
            url: whose host is left alone when it asks for that.
            attempt: raises :class:`NoReply` for what may go better the next time.

        Raises:
            NoReply: of the last attempt.
            RateLimited: if the host is busy all the time, or wants to be left alone for long.
        """
        gate, left = self.gates.find(_name_host(url)), self.manners.tries
        while True:
            left -= 1
            try:
                return await attempt()
            except (NoSuchHost, TooLarge):
                raise
            except Busy as busy:
                gate.hold(busy.wait)
                if not left or busy.wait > self.manners.longest:
                    raise RateLimited(str(busy), busy.wait) from None
            except NoReply:
                if not left:
                    raise
            await asyncio.sleep(self.manners.patience * 2.0 ** (self.manners.tries - left - 1))

    async def _exchange(self, request: LiveRequest) -> LiveReply:
        url = URL(request.url, encoded=True)
        if request.query:
            url = url.update_query(request.query)
        session = await self.sessions.open()
        headers = {"User-Agent": "synth", "Accept-Encoding": ACCEPTED, **request.headers}
        try:
            async with (
                asyncio.timeout(self.manners.timeout),
                session.request(
                    request.method,
                    url,
                    headers=headers,
                    data=io.BytesIO(request.body) if request.body else None,
                    allow_redirects=False,
                ) as response,
            ):
                return await self._read(response)
        except aiohttp.ClientConnectorCertificateError as error:
            raise self._distrust(request.url, error) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise _explain_connection(error) from None
        except TimeoutError:
            raise Silence(f"no whole reply in {self.manners.timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            # Some of these quote the address, which may hold a key.
            raise NoReply(f"no whole reply ({type(error).__name__})") from None

    def _distrust(self, url: str, error: aiohttp.ClientConnectorCertificateError) -> Exception:
        reason = getattr(error.certificate_error, "verify_message", "") or type(error.certificate_error).__name__
        said = f"{_name_host(url)}: its certificate is not trusted ({reason})"
        if self.guard is not None:
            return NoSuchHost(said)
        return ConfigError(f"{said}; name the file of its authority in SSL_CERT_FILE")

    async def _read(self, response: aiohttp.ClientResponse) -> LiveReply:
        if response.status >= 400:
            return LiveReply(response.status, response.headers, await self._read_error(response))
        raw = await _read_bounded(response, self.manners.reply_bytes)
        try:
            body = unpack_body(raw, response.headers.get("Content-Encoding", ""), self.manners.reply_bytes)
        except Bomb as error:
            raise TooLarge(str(error)) from None
        except Unpackable as error:
            raise NoReply(str(error)) from None
        return LiveReply(response.status, response.headers, body)

    async def _read_error(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the beginning of an error's body; nothing of one that cannot be unpacked."""
        raw = bytearray()
        async for chunk in response.content.iter_any():
            raw += chunk
            if len(raw) > ERROR_BYTES:
                break
        try:
            return unpack_body(bytes(raw[:ERROR_BYTES]), response.headers.get("Content-Encoding", ""), ERROR_BYTES)
        except Unpackable:
            return b""


def open_client(manners: LiveManners, guard: Guard | None = None, connections: int = CONNECTIONS) -> LiveClient:
    """Return a client; nothing is connected before the first request.

    Args:
        manners: towards each host.
        guard: who may be connected to; None where the addresses are the operator's own choice.
        connections: at one time, to all hosts together; to one there may be as many as its manners say.
    """
    gates = Gates(manners.rate, manners.concurrency, manners.longest)
    room = Gate("this machine", math.inf, max(connections, manners.concurrency))
    return LiveClient(manners, guard, gates, room, Sessions(partial(make_session, guard)))


def _name_host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


async def _read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    if (response.content_length or 0) > most:
        raise TooLarge(f"a reply of {response.content_length:,} bytes; allowed are {most:,}")
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            raise TooLarge(f"a reply of over {most:,} bytes")
    return bytes(body)


def _explain_connection(
    error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError,
) -> NobodyThere | Unavailable:
    cause = getattr(error, "os_error", None)
    if isinstance(cause, socket.gaierror):
        # The resolver's word for a name that is not there, and not for its own trouble.
        is_known = cause.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        return NoSuchHost("no such host") if is_known else NobodyThere(f"no look-up ({cause.strerror})")
    if isinstance(cause, OSError) and cause.errno in _EXHAUSTED:
        return Unavailable(f"this machine opens no more connections ({cause.strerror}); see ulimit -n, and run again")
    return NobodyThere(f"no connection ({getattr(cause, 'strerror', None) or type(error).__name__})")
