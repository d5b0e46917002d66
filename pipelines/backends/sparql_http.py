"""One SPARQL request over HTTP with an end: SPARQLWrapper builds it, a watchdog bounds the time, a count the size.

SPARQLWrapper's own opener bounds the silence of the socket only, reads the whole body of an error, loses the headers
of some, and follows redirects, which turn a POST into a GET without its query.
"""

import http.client
import socket
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from email.message import Message
from types import TracebackType
from typing import Any, Self

from SPARQLWrapper import GET, JSON, POST, SPARQLWrapper

from pipelines.backends.protocols import QueryTimeout

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
