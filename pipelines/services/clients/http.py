"""The HTTP client of all services: whole bounded replies, rate limits, retries, and a guard of addresses.

It follows no redirect, keeps no cookie, and takes nothing from the environment (proxies, netrc). With a guard, the
connection goes to the very address that the guard checked.
"""

import asyncio
import errno
import html
import io
import math
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.addresses import ForbiddenAddress, Guard
from pipelines.services.traffic import Waiting

if TYPE_CHECKING:
    from pipelines.services.clients.turns import Turns

T = TypeVar("T")

ACCEPTED: Final = "gzip"
"""Default ``Accept-Encoding``."""
CONNECTIONS: Final = 256
"""Open connections of a client at a time; a process may commonly have 1,024 files open."""
ERROR_BYTES: Final = 1 << 18
"""Bytes of an error's body that are read; some servers quote the request before their error code."""
LONGEST_WAIT: Final = 60.0
"""Default longest pause in seconds that a request waits at a service's wish."""
RATE = 5.0
"""Requests a second to each host: slow for a service, and polite to a site whose pages are read."""
_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 4.0
"""Shorter than vLLM's 5 s: a request on a connection that the server is closing is lost."""
_LARGE = 1 << 20
"""Bytes of a body from which aiohttp wants a stream."""
_MOST_HOSTS = 4096
_REDIRECTING = (301, 302, 303, 307, 308)
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_MOST_SECONDS = 1e9


class NoReply(Exception):
    """No whole reply came; a retry may help."""


class Silence(NoReply):
    """No whole reply came within the time limit."""


class NoConnection(NoReply):
    """No connection could be made: the request was never sent."""


class NoSuchHost(NoConnection):
    """The host name has no address. A retry does not help."""


class CutOff(NoReply):
    """The reply began and broke off."""


class TooLarge(NoReply):
    """The reply is larger than allowed, packed or unpacked. A retry does not help."""


class Busy(NoReply):
    """The service asks for fewer requests; ``wait`` is the pause in seconds that it names, 0.0 for none."""

    def __init__(self, said: str, wait: float = 0.0) -> None:
        super().__init__(said)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; ``query`` is added to the percent-encoded ``url``. Its ``repr`` shows only what holds no key."""

    url: str
    method: Literal["GET", "HEAD", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply, unpacked; the body of an error is cut at ``ERROR_BYTES``."""

    status: int
    headers: Mapping[str, str]
    """Found in any case of letters."""
    body: bytes

    @property
    def kind(self) -> str:
        """Media type without parameters, in lower case; empty if the reply names none."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def wait(self) -> float:
        """Seconds that the server asks to wait, 0.0 if it names none or no readable number or date.

        A date is compared with the reply's own ``Date``, so that a wrong clock here does not matter. Hosted services
        write fractions of seconds; ``Retry-After-Ms`` is Azure's.
        """
        for name, unit in (("Retry-After-Ms", 1e-3), ("Retry-After", 1.0)):
            if _SECONDS.fullmatch(value := self.headers.get(name, "").strip()):
                return min(float(value), _MOST_SECONDS) * unit
        until, now = (_read_date(self.headers.get(name, "")) for name in ("Retry-After", "Date"))
        return 0.0 if until is None else max(0.0, (until - (now or datetime.now(UTC))).total_seconds())

    @property
    def location(self) -> str:
        """Target of a redirect, relative to the address of the request; empty if the reply is no redirect.

        Bytes that are not UTF-8 are percent-encoded, as browsers do.
        """
        target = self.headers.get("Location", "") if self.status in _REDIRECTING else ""
        # Such bytes come as lone surrogates in a header (``surrogateescape``).
        return re.sub("[\udc80-\udcff]", lambda match: f"%{ord(match[0]) - 0xDC00:02X}", target)

    @property
    def is_busy(self) -> bool:
        """Whether the server asks for fewer requests."""
        return self.status == 429 or (self.status == 503 and "Retry-After" in self.headers)


def _read_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def redact(body: bytes, key: str | Sequence[str], most: int = ERROR_BYTES) -> str:
    """Return at most ``most`` characters of a body on one line, without the keys (empty for none) in any encoding."""
    text = body.decode("utf-8", "replace")
    for each in filter(None, (key,) if isinstance(key, str) else key):
        text = _compile_key(each).sub("...", text)
    # Cut last, so that no part of a key is left at the end.
    return " ".join("".join(char if char.isprintable() else " " for char in text[:most]).split())


def read_key(place: str, variable: str) -> str:
    """Return the API key from its environment variable; empty if no variable is named.

    Raises:
        ConfigError: if the variable is not set, or its value cannot be sent in a header. The key is not quoted.
    """
    key = os.environ.get(variable, "").strip(" ") if variable else ""
    if variable and not key:
        raise ConfigError(f"{place}: environment variable {variable} is not set; it holds the key")
    if not (key.isascii() and key.isprintable()):
        # An invalid header value would be quoted in the client's error.
        raise ConfigError(f"{place}: environment variable {variable} must be printable ASCII")
    return key


@lru_cache(maxsize=16)
def _compile_key(key: str) -> re.Pattern[str]:
    """Return a pattern of a key, each letter plain or escaped as in addresses, JSON and HTML."""
    letters = []
    for char in key:
        code = ord(char)
        forms = [char, f"%{code:02x}", f"\\{char}", f"\\u{code:04x}", html.escape(char), f"&#{code};", f"&#x{code:x};"]
        forms += "+" if char == " " else ""
        letters.append(f"(?:{'|'.join(map(re.escape, dict.fromkeys(forms)))})")
    return re.compile("".join(letters), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpSession:
    """An aiohttp session for each event loop, closed when its loop ends.

    The guard decides which addresses may be connected to; None if all addresses come from the configuration.
    """

    guard: Guard | None = None
    _by_loop: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncIterator[aiohttp.ClientSession]]] = (
        field(default_factory=dict, repr=False, compare=False)
    )

    async def fetch(self, request: HttpRequest, seconds: float, most: int) -> HttpReply:
        """Send a request and return the whole reply, whatever its status.

        Args:
            request: to be sent.
            seconds: for the whole reply, even if it trickles in.
            most: bytes of the reply, packed and unpacked.

        Raises:
            NoReply: no whole HTTP reply, by subclass. Messages never quote the address, which may hold a key.
            Unavailable: if this machine can open no more connections.
            ForbiddenAddress: if the guard refuses the address of the host.
        """
        url = URL(request.url, encoded=True)
        if request.query:
            url = url.update_query(request.query)
        headers = {"User-Agent": "synth", "Accept-Encoding": ACCEPTED, **request.headers}
        data = io.BytesIO(request.body) if len(request.body) > _LARGE else request.body or None
        has_begun = False
        try:
            async with asyncio.timeout(seconds):
                session = await self._open()
                async with session.request(
                    request.method, url, headers=headers, data=data, allow_redirects=False
                ) as response:
                    has_begun = True
                    return await _read_reply(response, most)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise _explain_connection(error) from None
        except TimeoutError:
            raise (CutOff if has_begun else Silence)(f"no complete reply in {seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise (CutOff if has_begun else NoReply)(f"no complete reply ({type(error).__name__})") from None

    async def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            # asyncio.run closes the generators that were started in its loop, and this one closes the session.
            life = self._live(loop)
            self._by_loop[loop] = (await anext(life), life)
        return self._by_loop[loop][0]

    async def _live(self, loop: asyncio.AbstractEventLoop) -> AsyncIterator[aiohttp.ClientSession]:
        settings: dict[str, Any] = {"keepalive_timeout": _IDLE_SECONDS}
        if self.guard is not None:
            resolver = _GuardedResolver(self.guard)
            settings = {"force_close": True, "resolver": resolver, "socket_factory": resolver.open_socket}
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, use_dns_cache=False, **settings),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            trust_env=False,
        )
        try:
            yield session
        finally:
            self._by_loop.pop(loop, None)
            await session.close()


class _GuardedResolver(AbstractResolver):
    """Resolves names to the numeric addresses that the guard allows, so that no name is looked up twice."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host."""
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

    def open_socket(self, place: Any) -> socket.socket:  # noqa: ANN401 - aiohttp's own tuple
        """Return a socket for an address after a last check of it."""
        family, kind, protocol, _, address = place
        try:
            self._guard.check(str(address[0]))
        except ForbiddenAddress as error:
            # aiohttp handles only the errors of sockets.
            raise PermissionError(errno.EACCES, str(error)) from error
        return socket.socket(family=family, type=kind, proto=protocol)

    async def close(self) -> None:
        """Nothing is kept open."""


async def _read_reply(response: aiohttp.ClientResponse, most: int) -> HttpReply:
    """Return a whole reply; aiohttp unpacks it piece by piece, so little more than the bound is ever held."""
    is_error = response.status >= 400
    bound, body = min(most, ERROR_BYTES) if is_error else most, bytearray()
    if (response.content_length or 0) > most and not is_error and response.method != "HEAD":
        raise TooLarge(f"a reply of {response.content_length:,} bytes; allowed are {most:,}")
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > bound:
                break
    except aiohttp.ClientError as error:
        if not is_error:
            raise CutOff(f"no complete reply ({type(error).__name__})") from None
    if len(body) > bound and not is_error:
        raise TooLarge(f"a reply of at least {len(body):,} bytes; allowed are {most:,}")
    return HttpReply(response.status, response.headers, bytes(body[:bound]))


def _explain_connection(
    error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError,
) -> NoConnection | Unavailable:
    cause = getattr(error, "os_error", None)
    if isinstance(cause, socket.gaierror):
        is_unknown = cause.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
        return NoSuchHost("no such host") if is_unknown else NoConnection(f"no look-up ({cause.strerror})")
    if isinstance(cause, OSError) and cause.errno in _EXHAUSTED:
        return Unavailable(f"this machine opens no more connections ({cause.strerror}); see ulimit -n, and run again")
    return NoConnection(f"no connection ({getattr(cause, 'strerror', None) or type(error).__name__})")


@dataclass(slots=True, eq=False)
class RateLimiter:
    """Limits requests to one service: in flight, a second, and none while the service asks for a pause.

    Attributes:
        name: the service's, for messages.
        rate: requests a second; infinity for no limit.
        concurrency: requests in flight.
        longest: seconds that a request waits if the service asks for a pause; it fails at longer ones.
        pause: seconds from the end of a request to the start of the next.
        in_flight: requests that were sent or wait for their turn.
        turns: where the processes of a run agree on whose turn it is; None for this process alone.
    """

    name: str
    rate: float = math.inf
    concurrency: int = 1
    longest: float = LONGEST_WAIT
    pause: float = 0.0
    in_flight: int = 0
    turns: "Turns | None" = field(default=None, repr=False)
    _next_at: float = 0.0
    _held_until: float = 0.0
    _places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @property
    def is_idle(self) -> bool:
        """Whether no request is in flight or waits, and none would have to wait."""
        return not self.in_flight and max(self._next_at, self._held_until) < time.monotonic()

    def hold(self, seconds: float) -> None:
        """Send no request for so many seconds."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)
        if self.turns is not None and seconds > 0.0:
            self.turns.hold(self.name, seconds)

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Wait for a turn; the block is the request.

        Raises:
            RateLimited: if the service asks for a pause longer than ``longest``.
        """
        # A semaphore belongs to one event loop; a process runs several, one after the other.
        places = self._places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.concurrency))
        self.in_flight += 1
        try:
            async with places, self._take_place():
                await self._wait_turn()
                try:
                    yield
                finally:
                    self._next_at = max(self._next_at, time.monotonic() + self.pause)
        finally:
            self.in_flight -= 1

    @asynccontextmanager
    async def _take_place(self) -> AsyncIterator[None]:
        """Wait for a place among the requests in flight of all processes; the pause begins when it is left."""
        if self.turns is None:
            yield
            return
        place = await self.turns.take_place(self.name, self.concurrency)
        try:
            yield
        finally:
            self.turns.leave(self.name, place, self.pause)

    async def _wait_turn(self) -> None:
        while True:
            now = time.monotonic()
            if (held := self._held_until - now) > self.longest:
                raise RateLimited(f"{self.name} asked for a pause of {held:.0f} s more", held)
            turn = max(now, self._next_at, self._held_until)
            self._next_at = turn + 1.0 / self.rate
            await asyncio.sleep(turn - now)
            # A reply to another request may have asked for a pause meanwhile.
            if time.monotonic() >= self._held_until:
                break
        if self.turns is not None:
            await self._wait_shared(self.turns)

    async def _wait_shared(self, turns: "Turns") -> None:
        """Wait for this process's turn among all of the run."""
        while True:
            wait, held = await turns.reserve(self.name, 1.0 / self.rate, self.longest)
            if held > self.longest:
                raise RateLimited(f"{self.name} asked for a pause of {held:.0f} s more", held)
            if wait <= 0.0:
                return
            await asyncio.sleep(wait)
            if await turns.read_hold(self.name) <= 0.0:
                return


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Sends requests to services within their limits.

    Attributes:
        rate: requests a second to each host.
        concurrency: requests in flight at each host.
        tries: requests in all for one call.
        timeout: seconds for a whole reply, even if it trickles in.
        reply_bytes: largest reply, unpacked.
        backoff: seconds before the first retry, doubled for each further one.
        longest: seconds that a request waits if a host asks for a pause; it fails at longer ones.
        guard: which addresses may be connected to; None if all addresses come from the configuration.
        connections: open at a time to all hosts together.
        shared: one limiter for all hosts in place of one for each.
        turns: where the processes of a run agree on whose turn it is at each host.
    """

    rate: float = RATE
    concurrency: int = 16
    tries: int = 4
    timeout: float = 60.0
    reply_bytes: int = 1 << 23
    backoff: float = 1.0
    longest: float = LONGEST_WAIT
    guard: Guard | None = field(default=None, repr=False)
    connections: int = CONNECTIONS
    shared: RateLimiter | None = field(default=None, repr=False, compare=False)
    turns: "Turns | None" = field(default=None, repr=False, compare=False)
    session: HttpSession = field(init=False, repr=False, compare=False)
    limiters: dict[str, RateLimiter] = field(init=False, default_factory=dict, repr=False, compare=False)
    _all: RateLimiter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "session", HttpSession(self.guard))
        most = max(self.connections, self.concurrency)
        object.__setattr__(self, "_all", RateLimiter("this machine", concurrency=most))

    async def send(self, request: HttpRequest) -> HttpReply:
        """Send a request once, in its turn, and return the whole reply, whatever its status.

        Raises:
            RateLimited: if the host asks for a pause longer than ``longest``; others as :meth:`HttpSession.fetch`.
        """
        async with self.find_limiter(request.url).enter(), self._all.enter():
            return await self.session.fetch(request, self.timeout, self.reply_bytes)

    async def retry(self, url: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an attempt at a host, made again with growing pauses while it raises :class:`NoReply`.

        Raises:
            NoReply: of the last attempt; NoSuchHost and TooLarge at once.
            RateLimited: if the host is busy at the last attempt, or asks for a long pause.
        """
        limiter = self.find_limiter(url)
        with Waiting() as waiting:
            for left in reversed(range(self.tries)):
                try:
                    return await attempt()
                except (NoSuchHost, TooLarge):
                    raise
                except Busy as busy:
                    limiter.hold(busy.wait)
                    if not left or busy.wait > self.longest:
                        raise RateLimited(str(busy), busy.wait) from None
                    waiting.note(name_host(url), busy)
                except RateLimited as error:
                    limiter.hold(error.retry_after)
                    raise
                except NoReply as error:
                    if not left:
                        raise
                    waiting.note(name_host(url), error)
                await asyncio.sleep(self.backoff * 2.0 ** (self.tries - left - 1))
        raise ValueError(f"tries is {self.tries}; expected 1 or more")

    def find_limiter(self, url: str) -> RateLimiter:
        """Return the limiter of an address's host; idle limiters are dropped when there are too many."""
        if self.shared is not None:
            return self.shared
        host = name_host(url)
        if len(self.limiters) >= _MOST_HOSTS and host not in self.limiters:
            for idle in [name for name, limiter in self.limiters.items() if limiter.is_idle]:
                del self.limiters[idle]
        limits = (self.rate, self.concurrency, self.longest)
        return self.limiters.setdefault(host, RateLimiter(host, *limits, turns=self.turns))


def name_host(url: str) -> str:
    """Return host and port of an address, without user and password."""
    return urlsplit(url).netloc.rpartition("@")[2]
