"""A SPARQL 1.1 endpoint on loopback: Oxigraph behind the standard library's server, with faults on demand."""

import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from pyoxigraph import QueryResultsFormat, RdfFormat, Store

PREFIXES = """\
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix schema: <http://schema.org/> .
"""
MUNGE = """\
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX schema: <http://schema.org/>
INSERT { ?item ?count ?number } WHERE {
  ?data schema:about ?item ; ?count ?number
  FILTER(?count IN (wikibase:sitelinks, wikibase:statements, wikibase:identifiers))
}
"""
STACK_TRACE = b"\njava.util.concurrent.TimeoutException\n\tat com.bigdata.rdf.sail.webapp.BigdataServlet"
SPARQL_JSON = "application/sparql-results+json"


@dataclass(frozen=True)
class Answer:
    """What the server sends: a fault, or the true reply changed."""

    status: int = 200
    kind: str = SPARQL_JSON
    headers: dict = field(default_factory=dict)
    change: Callable[[bytes], bytes] = lambda body: body
    drip: float = 0.0
    """Seconds between two bytes of the body."""
    hold: float = 0.0
    """Seconds before anything is sent."""
    short: int = 0
    """Bytes that Content-Length announces and that never come."""
    hang_up: bool = False


def say(text: str) -> Callable[[bytes], bytes]:
    return lambda body: text.encode()


def cut(share: float) -> Callable[[bytes], bytes]:
    return lambda body: body[: int(len(body) * share)]


FAULTS = {
    "429": Answer(429, "text/plain", {"Retry-After": "1"}, say("Too Many Requests")),
    "429 that is a time-out": Answer(
        429, "application/json", change=say('{"exception": "Operation timed out. Last operation: Sort"}')
    ),
    "500": Answer(500, "text/plain", change=say("Internal error")),
    "500 that is a time-out": Answer(500, "text/plain", change=lambda body: STACK_TRACE),
    "502": Answer(502, "text/html", change=say("<h1>Bad gateway</h1>")),
    "503": Answer(503, "text/plain", {"Retry-After": "0"}, say("Service unavailable")),
    "504": Answer(504, "text/html", change=say("upstream request timeout")),
    "silence": Answer(hold=4.0),
    "no reply": Answer(hang_up=True),
    "truncated JSON": Answer(change=cut(0.6)),
    "truncated under its announced length": Answer(change=cut(0.6), short=500),
    "a stack trace after part of the JSON": Answer(change=lambda body: cut(0.8)(body) + STACK_TRACE),
    "a stack trace after the whole JSON": Answer(change=lambda body: body + STACK_TRACE),
    "text with 200": Answer(kind="text/plain", change=say("Query deadline is expired")),
    "a page with 200": Answer(kind="text/html", change=say("<html>Please wait</html>")),
    "a wrong content type": Answer(kind="application/sparql-results+xml", change=say("<sparql/>")),
    "JSON as text": Answer(kind="text/plain"),
    "JSON without results": Answer(change=say('{"head": {"vars": []}, "boolean": true}')),
    "partial content": Answer(206, change=cut(0.5)),
    "partial results of Virtuoso": Answer(headers={"X-SQL-State": "S1TAT", "X-SQL-Message": "Anytime"}),
    "slow drip": Answer(drip=0.01),
    "an empty body": Answer(change=say("")),
    "a body beyond the limit": Answer(change=lambda body: body + b" " * 200_000),
}


@dataclass(frozen=True)
class Request:
    query: str
    method: str
    agent: str
    accept: str
    parameters: list[str]
    time: float


@dataclass
class SparqlServer:
    """A running endpoint; ``script`` says what becomes of the next requests, and when it is over they are answered."""

    store: Store
    script: list = field(default_factory=list)
    always: Answer | Callable[[str], Answer] | None = None
    """Given when the script is over, in place of true replies; or says by the query what is given."""
    requests: list = field(default_factory=list)
    most_in_flight: int = 0
    in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sparql"

    @property
    def queries(self) -> list[str]:
        return [request.query for request in self.requests]

    def begin(self, request: Request) -> Answer:
        with self.lock:
            self.requests.append(request)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if self.script:
                return self.script.pop(0)
            return self.always(request.query) if callable(self.always) else self.always or Answer()

    def end(self) -> None:
        with self.lock:
            self.in_flight -= 1


def load_store(turtle: str, munge: bool = False) -> Store:
    """Load Turtle; ``munge`` puts the counts on the item, as the query service does with a dump."""
    store = Store()
    # Wikidata's language tags have subtags that are too long for the standard.
    store.load(turtle.encode(), RdfFormat.TURTLE, lenient=True)
    if munge:
        store.update(MUNGE)
    return store


class Handler(BaseHTTPRequestHandler):
    state: SparqlServer

    def do_GET(self) -> None:
        self.reply(parse_qs(urlsplit(self.path).query))

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.reply(parse_qs(form))

    def reply(self, form: dict[str, list[str]]) -> None:
        headers, (query,) = self.headers, form["query"]
        request = Request(query, self.command, headers["User-Agent"], headers["Accept"], list(form), time.monotonic())
        answer = self.state.begin(request)
        self.counted = True
        try:
            self.send(answer, query)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self.uncount()

    def uncount(self) -> None:
        if self.counted:
            self.counted = False
            self.state.end()

    def send(self, answer: Answer, query: str) -> None:
        if select.select([self.connection], [], [], answer.hold)[0]:
            raise ConnectionResetError("the client gave up")
        if answer.hang_up:
            raise ConnectionResetError("as the script wants it")
        body = answer.change(self.state.store.query(query).serialize(format=QueryResultsFormat.JSON))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + answer.short))
        if not answer.drip:
            # Before the client can have it all and ask again, which a busy machine may let happen first.
            self.uncount()
            self.end_headers()
            self.wfile.write(body)
            return
        self.end_headers()
        for byte in body:
            self.wfile.write(bytes([byte]))
            time.sleep(answer.drip)

    def log_message(self, *message: object) -> None:
        """Say nothing."""


@contextmanager
def serve_sparql(
    store: Store, *script: Answer, always: Answer | Callable[[str], Answer] | None = None
) -> Iterator[SparqlServer]:
    state = SparqlServer(store, list(script), always)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("BoundHandler", (Handler,), {"state": state})) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def describe_item(
    number: int,
    sitelinks: int,
    statements: int,
    classes: tuple[str, ...] = ("Q100",),
    identifiers: int = 2,
    title: str = "",
) -> str:
    """Turtle of an item as the query service has it, with its English article."""
    title = title or f"Page {number}"
    types = " ; ".join(f"wdt:P31 wd:{qid}" for qid in classes)
    return (
        f"wd:Q{number} {types} ; wikibase:sitelinks {sitelinks} ; wikibase:statements {statements} ; "
        f"wikibase:identifiers {identifiers} .\n"
        f"<https://en.wikipedia.org/wiki/Page_{number}> schema:about wd:Q{number} ; "
        f'schema:isPartOf <https://en.wikipedia.org/> ; schema:name "{title}"@en .\n'
        f"<https://de.wikipedia.org/wiki/Seite_{number}> schema:about wd:Q{number} ; "
        f'schema:isPartOf <https://de.wikipedia.org/> ; schema:name "Seite {number}"@de .\n'
    )
