"""A SPARQL endpoint over HTTP (SPARQLWrapper): one query at a time, politely, and whole replies or none.

What the endpoint does, and what becomes of it:

- 429: ``RateLimited`` with the seconds of Retry-After.
- 403, or a text about the User-Agent or the robot policy: ``Unavailable`` at once; to ask again would lengthen the ban.
- 504 or silence, twice, at a query that the caller can divide: ``QueryTimeout``, as it may be the query's size.
- Any other 5xx, silence, refused or reset connections: asked again with back-off, then ``Unavailable``; that at once
  when Retry-After is longer than the longest back-off.
- 500 or 429 whose text names a time-out (Blazegraph, QLever); 200 with cut JSON, with something after the JSON, or with
  anything but JSON; a reply that is too slow or too large: ``QueryTimeout``.
- A redirect or any other 4xx: ``ConfigError``.

One SPARQL request over HTTP with an end: SPARQLWrapper builds it, a watchdog bounds the time, a count the size.

SPARQLWrapper's own opener bounds the silence of the socket only, reads the whole body of an error, loses the headers
of some, and follows redirects, which turn a POST into a GET without its query.
"""

import asyncio
import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Final, Self

import orjson
from SPARQLWrapper import GET, JSON, POST, SPARQLWrapper

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.protocols import QueryTimeout, SparqlRow

_CHUNK = 1 << 16
_ERROR_BYTES = 1 << 14
_LONGEST_GET = 2000


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may take."""

    silence: float = 70.0
    """Seconds without a byte; public services give up after 60."""
    deadline: float = 180.0
    """Seconds for the whole reply."""
    reply_bytes: int = 1 << 25


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back; the body of an error is cut at 16 KiB."""

    status: int
    headers: Message
    body: bytes

    @property
    def opening(self) -> str:
        """The first characters of the body on one line, for messages: what is not printable is left out."""
        text = self.body[:300].decode("utf-8", "replace")
        return " ".join("".join(char if char.isprintable() else " " for char in text).split())


class NoReply(Exception):
    """No reply began: refused, reset, or silent."""


class Silence(NoReply):
    """The endpoint took the query and sent nothing for as long as we listen."""


@dataclass(slots=True)
class Watchdog:
    """Cuts the connections it watches when their time is over."""

    seconds: float
    expired: bool = False
    sockets: list[socket.socket] = field(default_factory=list)
    timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        self.timer = threading.Timer(self.seconds, self._cut)
        self.timer.daemon = True
        self.timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def watch(self, sock: socket.socket) -> None:
        """Cut this connection, too; at once when the time was over before it stood."""
        self.sockets.append(sock)
        # In this order: whoever comes second, the timer or we, finds what the first one left.
        if self.expired:
            self._cut()

    def _cut(self) -> None:
        self.expired = True
        for sock in self.sockets:
            try:
                # Not SSLSocket's own method, which takes the TLS state from under the reading thread.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                continue  # closed already


def fetch_reply(endpoint: str, query: str, agent: str, limits: RequestLimits) -> HttpReply:
    """Send one query and return whatever HTTP reply came, whole.

    Raises:
        NoReply: if none began; Silence if nothing came after the query was sent.
        QueryTimeout: if it began and broke off, took too long, or was too large.
    """
    with Watchdog(limits.deadline) as watchdog:
        try:
            response = _open_reply(endpoint, query, agent, limits, watchdog)
        except urllib.error.HTTPError as error:
            with error:
                return HttpReply(error.code, error.headers, _read_error(error))
        except (OSError, http.client.HTTPException) as error:
            if watchdog.expired:
                raise QueryTimeout(f"{endpoint}: no reply in {limits.deadline:g} s") from error
            # A connection that takes too long comes wrapped in an URLError: that is the network, not the query.
            kind = Silence if isinstance(error, TimeoutError) else NoReply
            raise kind(f"{type(error).__name__}: {error}") from error
        with response:
            body = _read_body(response, endpoint, limits.reply_bytes, watchdog)
        return HttpReply(response.status, response.headers, body)


def _open_reply(
    endpoint: str, query: str, agent: str, limits: RequestLimits, watchdog: Watchdog
) -> http.client.HTTPResponse:
    wrapper = _BoundedWrapper(endpoint, agent, _make_opener(watchdog), limits.silence)
    wrapper.setQuery(query)
    wrapper.setMethod(POST if len(query) > _LONGEST_GET else GET)
    wrapper.setReturnFormat(JSON)
    wrapper.setOnlyConneg(True)  # no parameters beside the protocol's own, which a strict endpoint refuses
    response: http.client.HTTPResponse = wrapper.query().response
    return response


def _read_body(response: http.client.HTTPResponse, endpoint: str, most: int, watchdog: Watchdog) -> bytes:
    body = bytearray()
    try:
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > most:
                raise QueryTimeout(f"{endpoint}: reply of more than {most:,} bytes")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise QueryTimeout(f"{endpoint}: reply broke off after {len(body):,} bytes: {error}") from error
    if watchdog.expired:
        raise QueryTimeout(f"{endpoint}: {len(body):,} bytes came in {watchdog.seconds:g} s, and no end")
    return bytes(body)


def _read_error(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_ERROR_BYTES)
    except (OSError, ValueError, http.client.HTTPException):
        return b""


class _BoundedWrapper(SPARQLWrapper):
    """SPARQLWrapper with an opener of its own in place of the process's."""

    def __init__(self, endpoint: str, agent: str, opener: urllib.request.OpenerDirector, silence: float) -> None:
        super().__init__(endpoint, agent=agent)
        self._opener = opener
        self._silence = silence

    def _query(self) -> tuple[http.client.HTTPResponse, str]:
        return self._opener.open(self._createRequest(), timeout=self._silence), self.returnFormat


def _make_opener(watchdog: Watchdog) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_WatchedHttp(watchdog), _WatchedHttps(watchdog), _NoRedirect())


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> None:  # noqa: ANN401 - urllib's own signature
        """Let the redirect come out as the error that it is for a configured endpoint."""


class _WatchedHttp(urllib.request.HTTPHandler):
    def __init__(self, watchdog: Watchdog) -> None:
        super().__init__()
        self._watchdog = watchdog

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection that the watchdog knows."""
        return self.do_open(self._connect, request)

    def _connect(self, host: str, **settings: Any) -> http.client.HTTPConnection:  # noqa: ANN401
        return _WatchedConnection(self._watchdog, host, **settings)


class _WatchedHttps(urllib.request.HTTPSHandler):
    def __init__(self, watchdog: Watchdog) -> None:
        super().__init__()
        self._watchdog = watchdog

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open a connection that the watchdog knows."""
        return self.do_open(self._connect, request)

    def _connect(self, host: str, **settings: Any) -> http.client.HTTPSConnection:  # noqa: ANN401
        return _WatchedTlsConnection(self._watchdog, host, **settings)


class _WatchedConnection(http.client.HTTPConnection):
    def __init__(self, watchdog: Watchdog, host: str, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(host, **settings)
        self._watchdog = watchdog

    def connect(self) -> None:
        """Connect and hand the socket to the watchdog."""
        super().connect()
        self._watchdog.watch(self.sock)


class _WatchedTlsConnection(http.client.HTTPSConnection):
    def __init__(self, watchdog: Watchdog, host: str, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(host, **settings)
        self._watchdog = watchdog

    def connect(self) -> None:
        """Connect and hand the socket to the watchdog."""
        super().connect()
        self._watchdog.watch(self.sock)


LONGEST_BACKOFF: Final = 60.0
_JSON_TYPES: Final = ("application/sparql-results+json", "application/json")
_UNWANTED: Final = ("user-agent", "user agent", "robot policy", "banned")
_TIMED_OUT: Final = (b"TimeoutException", b"timed out", b"time limit")
_MOST_DIGITS: Final = 9
_TRIES_OF_HEAVY: Final = 2
"""Once may be chance; a gateway's time-out looks the same whether the query or the service is to blame."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How an endpoint is asked."""

    pause: float = 1.0
    """Seconds between two queries, from the end of one to the start of the next."""
    tries: int = 4
    """Requests in all when the endpoint fails."""
    backoff: float = 2.0
    """Seconds before the second try, doubled for each further one, up to a minute."""
    request: RequestLimits = field(default_factory=RequestLimits)


@dataclass(slots=True)
class _Turnstile:
    """Lets one query at a time through to an endpoint, whoever in this process asks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    last_end: float = 0.0


_TURNSTILES: Final[dict[str, _Turnstile]] = {}


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """An endpoint by its address."""

    endpoint: str
    agent: str
    """User-Agent; see :func:`name_agent`."""
    manners: Manners = field(default_factory=Manners)

    @property
    def identity(self) -> str:
        """The address: how it is asked decides no reply."""
        return f"sparql:{self.endpoint}"

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return every row; see :class:`pipelines.services.protocols.Sparql`."""
        cause, heavy = "", 0
        for attempt in range(self.manners.tries):
            try:
                reply = await asyncio.to_thread(self._take_turn, query)
            except NoReply as error:
                cause, wait, is_heavy = str(error), 0.0, isinstance(error, Silence)
            else:
                if reply.status < 500 or _names_timeout(reply):
                    return self._read(reply)
                cause, wait = f"HTTP {reply.status}: {reply.opening}", read_retry_after(reply.headers)
                is_heavy = reply.status == 504
            if wait > LONGEST_BACKOFF:
                raise Unavailable(f"{self.endpoint}: {cause}; it asks to wait {wait:,.0f} s: run again after that")
            heavy += is_heavy
            if divisible and heavy == _TRIES_OF_HEAVY:
                raise QueryTimeout(f"{self.endpoint}: {cause}, {heavy} times")
            if attempt + 1 < self.manners.tries:
                await asyncio.sleep(max(wait, min(self.manners.backoff * 2.0**attempt, LONGEST_BACKOFF)))
        raise Unavailable(f"{self.endpoint}: {cause}, {self.manners.tries} times; run again to go on")

    def _take_turn(self, query: str) -> HttpReply:
        """Send one query when no other is in flight and the pause is over."""
        turnstile = _TURNSTILES.setdefault(self.endpoint, _Turnstile())
        with turnstile.lock:
            time.sleep(max(0.0, turnstile.last_end + self.manners.pause - time.monotonic()))
            try:
                return fetch_reply(self.endpoint, query, self.agent, self.manners.request)
            finally:
                turnstile.last_end = time.monotonic()

    def _read(self, reply: HttpReply) -> tuple[SparqlRow, ...]:
        if reply.status != 200:
            raise self._explain_status(reply)
        kind = reply.headers.get_content_type()
        if kind not in _JSON_TYPES:
            if _names_ban(reply):
                raise self._explain_ban(reply)
            raise QueryTimeout(f"{self.endpoint}: {kind} in place of JSON: {reply.opening}")
        # Virtuoso's way of saying that the rows are not all.
        if reply.headers.get("X-SQL-State"):
            raise QueryTimeout(f"{self.endpoint}: partial results: {reply.headers.get('X-SQL-Message', '')}")
        try:
            return read_rows(reply.body)
        except ValueError as error:
            raise QueryTimeout(
                f"{self.endpoint}: {len(reply.body):,} bytes that are no whole reply: {error}"
            ) from error

    def _explain_status(self, reply: HttpReply) -> Exception:
        """Return the error that a status other than 200 stands for."""
        said = f"{self.endpoint}: HTTP {reply.status}: {reply.opening}"
        if reply.status == 403 or (reply.status == 429 and _names_ban(reply)):
            return self._explain_ban(reply)
        if reply.status == 429 and not _names_timeout(reply):
            return RateLimited(said, read_retry_after(reply.headers))
        if 300 <= reply.status < 400:
            return ConfigError(f"{said}; it moved to {reply.headers.get('Location', '?')}: name that address")
        if 400 <= reply.status < 500 and reply.status != 429:
            return ConfigError(f"{said}; expected a SPARQL 1.1 endpoint that takes plain SELECT queries")
        return QueryTimeout(said)

    def _explain_ban(self, reply: HttpReply) -> Unavailable:
        return Unavailable(
            f"{self.endpoint}: HTTP {reply.status}: {reply.opening or 'no text'}; it bans this address or refuses the "
            f"User-Agent {self.agent!r}. Nothing is asked again; a ban lasts 24 hours, so see to the contact first"
        )


def name_agent(contact: str) -> str:
    """Return the User-Agent ``synth/<version> (<contact>)``; operators block what does not say who asks."""
    try:
        release = version("synth")
    except PackageNotFoundError:  # run from a clone
        release = "0"
    return f"synth/{release} ({contact})"


def read_rows(body: bytes) -> tuple[SparqlRow, ...]:
    """Return the rows of a reply in the SPARQL 1.1 JSON results format.

    Raises:
        ValueError: the body is no JSON, ends early, goes on after its end, or has another shape.
    """
    reply = orjson.loads(body)
    try:
        bindings = reply["results"]["bindings"]
        rows = tuple({name: term["value"] for name, term in binding.items()} for binding in bindings)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no results of a SELECT query: {type(error).__name__} at {error}") from error
    if not all(isinstance(value, str) for row in rows for value in row.values()):
        raise ValueError("a value is no text")
    return rows


def read_retry_after(headers: Message | Mapping[str, str]) -> float:
    """Return the seconds that Retry-After asks to wait, 0.0 when it is absent or unreadable.

    A date is held against the reply's own Date, so that a wrong clock here does not matter.
    """
    value = (headers.get("Retry-After") or "").strip()
    if value.isascii() and value.isdecimal():
        return float(value) if len(value) <= _MOST_DIGITS else float(10**_MOST_DIGITS)
    until, now = _read_date(value), _read_date(headers.get("Date") or "")
    if until is None:
        return 0.0
    return max(0.0, until.timestamp() - (time.time() if now is None else now.timestamp()))


def _read_date(value: str) -> datetime | None:
    try:
        return parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _names_ban(reply: HttpReply) -> bool:
    return any(word in reply.opening.lower() for word in _UNWANTED)


def _names_timeout(reply: HttpReply) -> bool:
    """Say whether an error is about this query's size and not about us; one that says when to come back is not."""
    named = any(word in reply.body for word in _TIMED_OUT)
    return reply.status in (429, 500) and named and not reply.headers.get("Retry-After")
