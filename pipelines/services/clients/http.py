"""What a refusal by a server of ``/chat/completions`` means: wait, ask again, stop the run, or fail one record.

aiohttp on a short lead: bounded replies, no redirects, nothing of the environment in its requests.

Requests to live services and to pages: one careful client.

A reply is whole, unpacked and bounded, or there is none. No redirect is followed, no cookie kept, and nothing of the
environment gets into a request. Where a guard is set, the connection is made to the very address that was checked.

Turns at a service: so many requests in flight, so many a second, and none while it wants to be left alone.

Shards may have an event loop each, in threads: all that changes here does so under a lock, and nothing is awaited
under it.

Connections to live services and to pages; guarded ones are made to the very address that was checked.

Unpacking a reply's body, up to a bound: a few kilobytes can be packed gigabytes.
"""

import asyncio
import errno
import io
import json
import math
import re
import socket
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError, Unavailable
from pipelines.services.addresses import ForbiddenAddress, Guard
from pipelines.services.image_metadata import read_wait

SEARCHED = 1 << 18
"""Characters of a refusal that are looked through: servers put its code behind the request that they quote."""
_QUOTED = 300
_THEIR_FAULT = (408, 409, 425)
_NO_MONEY = ("insufficient_quota", "exceeded your current quota")
_RECORDS_FAULT = {
    "context length": "prompt-too-long",
    "context_length": "prompt-too-long",
    "maximum model length": "prompt-too-long",
    "max model length": "prompt-too-long",
    "max_tokens must be at least 1": "prompt-too-long",
    "string_above_max_length": "prompt-too-long",
    "content_filter": "prompt-refused",
    "content_policy": "prompt-refused",
    "content management policy": "prompt-refused",
    "invalid_image": "picture-refused",
    "image_parse_error": "picture-refused",
    "cannot identify image": "picture-refused",
    "aspect ratio": "picture-refused",
    "must be larger than factor": "picture-refused",
}
"""What a refusal says when another record would have been answered, and the failed row's error."""
_TOO_MANY_TOKENS = re.compile(r"max_(?:completion_)?tokens\b[^{}]{0,200}?\btoo large\b")
"""No shorter prompt helps; the same message goes on to speak of the context length."""
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")
_OTHER_NAME = "max_completion_tokens"


_FORMAT = re.compile(r"response_format|guided|json_schema|json schema|json_object|structured.?output|grammar")
"""What a refusal names when it is the format of the reply that a server does not take."""
_TOOLS = re.compile(
    r"parallel_tool_calls|tool[ _-]?(?:choice|use)\b|function.call"
    r"|\btools?\b[^{}]{0,80}\b(?:support|param)|support\w* tools?\b"
)
_STOP = re.compile(
    r"\b(?:not|un)[ -]?(?:support|permit|allow|known|recogni)[^{}]{0,80}\bstop\b"
    r"|\bstop\b[^{}]{0,80}\b(?:not|un)[ -]?(?:support|permit|allow|known|recogni)"
)
_EXTRAS = (
    (
        _TOOLS,
        "the server takes no native tool calls: give rollouts another dialect than native, or start vLLM with "
        "--enable-auto-tool-choice and --tool-call-parser",
    ),
    (
        _STOP,
        'the server takes no stop, which rollouts send in every dialect but native: set dialect = "native" for them',
    ),
)
"""What a refusal names when it is what only rollouts send, and what to do."""
_ADVICE = {
    "schema": 'the server takes no JSON schema: set replies = "json" or "text" for this model',
    "json": 'the server forces no JSON: set replies = "text" for this model',
}


class NoReply(Exception):
    """No whole reply; asking again may help."""


class Silence(NoReply):
    """None in the time that it may take."""


class NobodyThere(NoReply):
    """No connection: the request was never sent."""


def read_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait, 0.0 where it names none.

    Args:
        headers: of a reply, found in any case of letters. ``Retry-After`` may be a date, and hosted services write
            fractions into it; ``Retry-After-Ms`` is Azure's.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if _SECONDS.fullmatch(value := headers.get(name, "").strip()):
            return float(value) * unit
    return read_wait(headers)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that is no success.

    Attributes:
        place: address and model, as messages name them.
        status: of the reply.
        wait: seconds that the server asks for, 0 if it names none.
        text: its body on one line, without the key.
        variable: name of the environment variable that holds the key, empty for none.
        forced: how the reply's shape was asked for, ``schema`` or ``json``; empty for not at all.
    """

    place: str
    status: int
    wait: float
    text: str
    variable: str
    forced: str = ""

    @property
    def said(self) -> str:
        """The status and the beginning of the body, to be quoted."""
        return f"HTTP {self.status}: {self.text[:_QUOTED]}"

    def explain(self) -> SynthError | NoReply:
        """Return what it means."""
        folded = self.text.lower()
        if self.status == 402 or (self.status == 429 and any(words in folded for words in _NO_MONEY)):
            return Unavailable(f"{self.place}: nothing left on the account ({self.said})")
        if self.status == 429 or (self.status == 503 and self.wait):
            return RateLimited(f"{self.place}: HTTP {self.status}", self.wait)
        if self.status >= 500 or self.status in _THEIR_FAULT:
            return NoReply(self.said)
        if self.status in (401, 403):
            variable = self.variable or "no variable; name one as api_key_env"
            return ConfigError(f"{self.place}: does not take the key of {variable} ({self.said})")
        return self._blame(folded)

    def _blame(self, folded: str) -> SynthError:
        """Return whose fault a refused request is: this record's alone, or the configuration's."""
        advice = "see name, base_url and sampling"
        if self.status == 413:
            return RecordFailed("prompt-too-long", f"{self.place}: {self.said}")
        if self.status in (400, 422):
            blamed = [fault for words, fault in _RECORDS_FAULT.items() if words in folded]
            if _TOO_MANY_TOKENS.search(folded):
                advice = "lower max_tokens in sampling"
            elif blamed:
                return RecordFailed(blamed[0], f"{self.place}: {self.said}")
            elif self.forced in _ADVICE and _FORMAT.search(folded):
                advice = _ADVICE[self.forced]
            elif _OTHER_NAME in folded and "max_tokens" in folded:
                advice = f"the model wants {_OTHER_NAME}, which is never sent: name one, or a gateway, for max_tokens"
        advice = next((told for words, told in _EXTRAS if words.search(folded)), advice)
        return ConfigError(f"{self.place}: does not take the request ({self.said}); {advice}")


def redact(body: bytes, key: str) -> str:
    """Return the beginning of a body on one line, without the key, plain or as JSON writes it.

    Args:
        body: what a server sent.
        key: empty for none.
    """
    text = body.decode("utf-8", "replace")
    for form in _list_forms(key):
        text = text.replace(form, "...")
    # Cut last, so that no part of a key is left at the end.
    return " ".join("".join(char if char.isprintable() else " " for char in text[:SEARCHED]).split())


def _list_forms(key: str) -> list[str]:
    escaped = json.dumps(key)[1:-1]
    return sorted({key, escaped, escaped.replace("/", "\\/")} - {""}, key=len, reverse=True)


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
            raw = await _read_bounded_openai_http(response)
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


async def _read_bounded_openai_http(response: aiohttp.ClientResponse) -> bytes:
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


LONGEST_WAIT: Final = 60.0
"""Seconds that a request waits where a service asks to be left alone, if nothing else is said."""
_MOST_GATES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A request that waits for a place, woken in its own loop."""

    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]

    def wake(self) -> bool:
        """Let it in; return False if its loop is gone."""
        try:
            self.loop.call_soon_threadsafe(self._let_in)
        except RuntimeError:
            return False
        return True

    def _let_in(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


@dataclass(slots=True, eq=False)
class Gate:
    """Turns at one service.

    Attributes:
        name: of the service, for messages.
        rate: requests a second, at most.
        concurrency: requests in flight, at most.
        longest: seconds that a request waits where the service asks to be left alone; for longer, whoever asks is told.
        in_flight: how many there are.
    """

    name: str
    rate: float
    concurrency: int
    longest: float = LONGEST_WAIT
    in_flight: int = 0
    _next_at: float = 0.0
    """On the monotonic clock, as the next."""
    _held_until: float = 0.0
    _waiters: deque[_Waiter] = field(default_factory=deque, repr=False)
    _granted: set[_Waiter] = field(default_factory=set, repr=False)
    """Those that have a place and have not been told yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_idle(self) -> bool:
        """Whether nobody asks or waits, and nobody would have to."""
        return not self.in_flight and max(self._next_at, self._held_until) < time.monotonic()

    def hold(self, seconds: float) -> None:
        """Let nobody in for so many seconds: the service said so, and it meant all who ask."""
        with self._lock:
            self._held_until = max(self._held_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Wait for a turn; the block is the request.

        Raises:
            RateLimited: if the service wants to be left alone for longer than a request waits.
        """
        await self._take_place()
        try:
            await self._wait_turn()
            yield
        finally:
            self._give_place()

    async def _take_place(self) -> None:
        with self._lock:
            if self.in_flight < self.concurrency:
                self.in_flight += 1
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            self._waiters.append(waiter)
        try:
            await waiter.woken
        except asyncio.CancelledError:
            self._leave(waiter)
            raise
        with self._lock:
            self._granted.discard(waiter)

    def _leave(self, waiter: _Waiter) -> None:
        """Take out a waiter that was cancelled; a place that it had just got goes to the next."""
        with self._lock:
            if waiter not in self._granted:
                self._waiters.remove(waiter)
                return
            self._granted.discard(waiter)
        self._give_place()

    def _give_place(self) -> None:
        with self._lock:
            while self._waiters:
                waiter = self._waiters.popleft()
                if waiter.wake():
                    self._granted.add(waiter)
                    return
            self.in_flight -= 1

    async def _wait_turn(self) -> None:
        while True:
            await asyncio.sleep(self._draw_wait())
            # Somebody else may have been told to wait in the meantime.
            if time.monotonic() >= self._held_until:
                return

    def _draw_wait(self) -> float:
        with self._lock:
            now = time.monotonic()
            held = self._held_until - now
            if held > self.longest:
                raise RateLimited(f"{self.name} asked to be left alone for {held:.0f} s more", held)
            turn = max(now, self._next_at, self._held_until)
            self._next_at = turn + 1.0 / self.rate
            return turn - now


@dataclass(frozen=True, slots=True)
class Gates:
    """A gate a host; those that nobody needs are forgotten.

    Attributes:
        rate: requests a second at each, at most.
        concurrency: requests in flight at each, at most.
        longest: seconds that a request waits for one that asks to be left alone.
    """

    rate: float
    concurrency: int
    longest: float = LONGEST_WAIT
    by_host: OrderedDict[str, Gate] = field(default_factory=OrderedDict, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def find(self, host: str) -> Gate:
        """Return a host's gate."""
        with self.lock:
            gate = self.by_host.setdefault(host, Gate(host, self.rate, self.concurrency, self.longest))
            self.by_host.move_to_end(host)
            if len(self.by_host) > _MOST_GATES:
                self._forget()
            return gate

    def _forget(self) -> None:
        """Drop the gate that was asked for the longest time ago, if it is idle."""
        oldest = next(iter(self.by_host))
        if self.by_host[oldest].is_idle:
            del self.by_host[oldest]
        else:
            self.by_host.move_to_end(oldest)


_LIVE_SESSIONS_CONNECT_SECONDS = 20.0
_LIVE_SESSIONS_IDLE_SECONDS = 4.0


def make_session_live_sessions(guard: Guard | None) -> aiohttp.ClientSession:
    """Return a session without cookies, proxies, and anything else that it might find around it.

    Args:
        guard: who may be connected to; None for anybody.
    """
    settings: dict[str, Any] = {"limit": 0, "use_dns_cache": False}
    if guard is None:
        connector = aiohttp.TCPConnector(**settings, keepalive_timeout=_LIVE_SESSIONS_IDLE_SECONDS)
    else:
        connector = aiohttp.TCPConnector(
            **settings, force_close=True, resolver=_GuardedResolver(guard), socket_factory=_make_socket_factory(guard)
        )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_LIVE_SESSIONS_CONNECT_SECONDS),
        trust_env=False,
        auto_decompress=False,
    )


class _GuardedResolver(AbstractResolver):
    """Resolves names to addresses that the guard lets pass."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses to connect to, in numbers, so that nobody looks them up again."""
        return [
            ResolveResult(
                hostname=host,
                host=place,
                port=port,
                family=socket.AF_INET6 if ":" in place else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for place in await self._guard.resolve(host, port)
        ]

    async def close(self) -> None:
        """Nothing is kept open."""


def _make_socket_factory(guard: Guard) -> Callable[[Any], socket.socket]:
    """Return what makes a socket for an address that is about to be connected to: the last place to refuse it."""

    def open_socket(place: Any) -> socket.socket:  # noqa: ANN401 - aiohttp's own tuple
        family, kind, protocol, _, address = place
        try:
            guard.check(str(address[0]))
        except ForbiddenAddress as error:
            # What connects understands errors of sockets alone.
            raise PermissionError(errno.EACCES, str(error)) from error
        return socket.socket(family=family, type=kind, proto=protocol)

    return open_socket


ACCEPTED: Final = "gzip, deflate"
"""What is asked for, as ``Accept-Encoding`` has it."""
_MOST_MEMBERS = 256
"""Of a gzip file; what follows one is copied each time, so that a million empty ones would take minutes."""
_UNPACKING_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Unpackable(ValueError):
    """A body that is packed in another way, broken, cut off, or too large."""


class Bomb(Unpackable):
    """A body that unpacks to more than allowed."""


def unpack_body(raw: bytes, packing: str, most: int) -> bytes:
    """Return what a body holds.

    Args:
        raw: as it came.
        packing: value of ``Content-Encoding``, empty for none.
        most: bytes of the result, at most.

    Raises:
        Unpackable: if it cannot be unpacked to its end; Bomb if that is beyond the bound.
    """
    name = packing.strip().lower()
    if name in ("", "identity"):
        return raw
    if name not in _UNPACKING_WINDOWS:
        raise Unpackable(f"a reply packed as {name[:40]!r}; asked for was {ACCEPTED}")
    if not raw:
        return raw
    body = bytearray()
    rest = raw
    # A gzip file may have several members, each of which ends.
    for _ in range(_MOST_MEMBERS):
        unpacker = _open_unpacker(name, rest)
        try:
            body += unpacker.decompress(rest, most + 1 - len(body))
        except zlib.error as error:
            raise Unpackable(f"a reply that cannot be unpacked ({error})") from None
        if len(body) > most:
            raise Bomb(f"a packed reply of over {most:,} bytes")
        if not unpacker.eof:
            raise Unpackable("a packed reply that breaks off")
        rest = unpacker.unused_data if name != "deflate" else b""
        if not rest:
            return bytes(body)
    raise Bomb(f"a packed reply of over {_MOST_MEMBERS} parts")


def _open_unpacker(name: str, raw: bytes) -> "zlib._Decompress":
    """Return an unpacker; some servers send ``deflate`` without the header that it should have."""
    has_header = len(raw) > 1 and raw[0] & 0x0F == 8 and (raw[0] << 8 | raw[1]) % 31 == 0
    return zlib.decompressobj(_UNPACKING_WINDOWS[name] if name != "deflate" or has_header else -zlib.MAX_WBITS)


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
    return LiveClient(manners, guard, gates, room, Sessions(partial(make_session_live_sessions, guard)))


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
