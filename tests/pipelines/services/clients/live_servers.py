"""A server on loopback that speaks the protocols of live services, and misbehaves when told to."""

import gzip
import json
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from pipelines.services.addresses import Guard
from pipelines.services.clients.http import HttpClient

HOST = "pages.example.org"
OTHER = "other.example.org"
QUICK = HttpClient(rate=1000.0, concurrency=8, tries=3, timeout=5.0, reply_bytes=1 << 16, backoff=0.001)


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    """Bytes promised and not sent."""
    hang: float = 0.0
    """Seconds before the first byte."""
    hang_up: bool = False
    """Close the connection with no reply."""
    drip: float = 0.0
    """Seconds between bytes."""
    endless: bool = False
    """Send the body over and over, with no length told."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    def json(self):
        return json.loads(self.body)

    @property
    def parameters(self):
        """Of the address or of a form in the body."""
        return self.query or self.form

    @property
    def form(self):
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


Respond = Callable[[Asked], Answer]


@dataclass
class LiveServer:
    """What it answers, and what it was asked."""

    respond: Respond = lambda asked: Answer(404)
    faults: list[Answer] = field(default_factory=list)
    """Sent first, one a request."""
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, more):
        """Count a request that came, or is about to be answered."""
        with self.lock:
            self.in_flight += more
            self.most_in_flight = max(self.most_in_flight, self.in_flight)

    @property
    def url(self):
        """The operator's own address of it."""
        return f"http://127.0.0.1:{self.port}/api"

    def page(self, path="/page", host=HOST):
        """The address of a page under a public name."""
        return f"http://{host}:{self.port}{path}"


def say(value, status=200, **headers):
    """Return a JSON answer."""
    return Answer(status, json.dumps(value).encode(), headers={k.replace("_", "-"): v for k, v in headers.items()})


def show(html, **settings):
    """Return a page."""
    return Answer(body=html.encode(), kind="text/html; charset=utf-8", **settings)


def send_to(url, status=302):
    """Return a redirect."""
    return Answer(status, headers={"Location": url})


def make_bomb(kind="application/json", unpacked=1 << 24):
    """Return a small reply that unpacks to a large one."""
    return Answer(body=gzip.compress(b" " * unpacked), kind=kind, headers={"Content-Encoding": "gzip"})


ERROR_PAGE = Answer(body=b"<html><body>Something went wrong</body></html>", kind="text/html")
FAULTS = {
    "busy": Answer(429, b"{}"),
    "busy for a moment": Answer(429, b"{}", headers={"Retry-After": "0.01"}),
    "busy with a date": Answer(503, b"{}", headers={"Retry-After": "Sun, 22 Nov 2020 12:00:00 GMT"}),
    "internal error": Answer(500, b"oops"),
    "bad gateway": Answer(502, b"<html>", kind="text/html"),
    "hangs up": Answer(hang_up=True),
    "breaks off": Answer(body=b'{"organic": [', cut=100),
    "cut JSON": Answer(body=b'{"organic": ['),
    "unexpected JSON": Answer(body=b"[1, 2]"),
    "another object": Answer(body=b'{"hello": 1}'),
    "lone surrogate": Answer(body=b'{"organic": [{"title": "\\ud800"}]}'),
    "deep JSON": Answer(body=b"[" * 5000 + b"]" * 5000),
    "error page with 200": ERROR_PAGE,
    "no gzip": Answer(body=b'{"organic": []}', headers={"Content-Encoding": "gzip"}),
    "packed unasked": Answer(body=b"x", headers={"Content-Encoding": "br"}),
}
"""After each of these the next request may be answered."""


def make_guard(**names):
    """Return a guard to which this machine's loopback is open under public names, and to nobody else.

    Args:
        names: what else a name leads to, dots written as ``__``.
    """
    known = {HOST: ("127.0.0.1",), OTHER: ("127.0.0.1",)}
    known |= {name.replace("__", "."): places for name, places in names.items()}

    async def lookup(host, port):
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known[host]

    return Guard(lookup, lambda address: address == ip_address("127.0.0.1"), frozenset())


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """Say nothing of a client that hung up; it may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LiveHandler(BaseHTTPRequestHandler):
    """Answers for the ``LiveServer`` of its class."""

    protocol_version = "HTTP/1.1"
    live = LiveServer()

    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        self.answer(b"")

    do_HEAD = do_GET

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    do_PUT = do_POST

    def answer(self, body):
        live = self.live
        live.count(1)
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
        live.asked.append(asked)
        answer = live.faults.pop(0) if live.faults else live.respond(asked)
        # Not select(): a test process may have more files open than it takes.
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            gave_up = selector.select(answer.hang)
        # From the first byte on the client may be done with it, and send the next one.
        live.count(-1)
        if gave_up:
            self.close_connection = True
        else:
            self.write(answer)

    def write(self, answer):
        self.close_connection = True
        if answer.hang_up:
            return
        self.send_response(answer.status)
        told = {} if answer.endless else {"Content-Length": str(len(answer.body) + answer.cut)}
        kind = {"Content-Type": answer.kind} if answer.kind else {}
        for name, value in {**kind, **told, **answer.headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        step = 1 if answer.drip else max(1, len(answer.body))
        for place in range(0, len(answer.body), step):
            self.wfile.write(answer.body[place : place + step])
            time.sleep(answer.drip)
        while answer.endless:
            self.wfile.write(answer.body)


@contextmanager
def run_handler(server):
    """Run a server until the block ends, at its port, or at a free one if that is 0."""
    with LoopbackServer(("127.0.0.1", server.port), type("Handler", (LiveHandler,), {"live": server})) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.port = httpd.server_address[1]
        try:
            yield server
        finally:
            httpd.shutdown()
            thread.join()


@contextmanager
def run_live_server(respond=None, *faults):
    """Run a server until the block ends."""
    with run_handler(LiveServer(respond or (lambda asked: Answer(404)), list(faults))) as server:
        yield server
