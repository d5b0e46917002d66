"""A SPARQL 1.1 endpoint on loopback: Oxigraph behind a live server, with faults on demand."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyoxigraph import QueryResultsFormat, RdfFormat, Store

from tests.pipelines.services.clients import live_servers

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
    "JSON without results": Answer(change=say('{"head": {"vars": []}, "boolean": true}')),
    "partial content": Answer(206, change=cut(0.5)),
    "partial results of Virtuoso": Answer(headers={"X-SQL-State": "S1TAT", "X-SQL-Message": "Anytime"}),
    "an empty body": Answer(change=say("")),
    "a body beyond the limit": Answer(change=lambda body: body + b" " * 200_000),
}


@dataclass
class SparqlServer(live_servers.LiveServer):
    """A running endpoint; ``script`` says what becomes of the next requests, and when it is over they are answered."""

    store: Store = field(default_factory=Store)
    script: list = field(default_factory=list)
    always: Answer | Callable[[str], Answer] | None = None
    """Given when the script is over, in place of true replies; or says by the query what is given."""

    def __post_init__(self):
        self.respond = self.serve

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sparql"

    @property
    def queries(self) -> list[str]:
        return [asked.parameters["query"] for asked in self.asked]

    def serve(self, asked):
        query = asked.parameters["query"]
        if self.script:
            answer = self.script.pop(0)
        else:
            answer = self.always(query) if callable(self.always) else self.always or Answer()
        body = answer.change(self.store.query(query).serialize(format=QueryResultsFormat.JSON))
        wire = {"cut": answer.short, "hang": answer.hold, "hang_up": answer.hang_up}
        return live_servers.Answer(answer.status, body, answer.kind, answer.headers, **wire)


def load_store(turtle: str, munge: bool = False) -> Store:
    """Load Turtle; ``munge`` puts the counts on the item, as the query service does with a dump."""
    store = Store()
    # Wikidata's language tags have subtags that are too long for the standard.
    store.load(turtle.encode(), RdfFormat.TURTLE, lenient=True)
    if munge:
        store.update(MUNGE)
    return store


@contextmanager
def serve_sparql(store: Store, *script: Answer, always: Answer | Callable[[str], Answer] | None = None):
    with live_servers.run_handler(SparqlServer(store=store, script=list(script), always=always)) as server:
        yield server


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
