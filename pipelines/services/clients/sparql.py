"""A SPARQL 1.1 endpoint over HTTP: one query at a time, a pause after each, and whole replies or none.

The endpoint's replies mean:

- 429: ``RateLimited`` with the seconds of Retry-After.
- 403, or a text about the User-Agent or the robot policy: ``Unavailable`` at once; a retry would lengthen the ban.
- 504 or silence, twice, for a query that the caller can divide: ``QueryTimeout``; it may be too large.
- Any other 5xx, silence, refused or reset connections: retried with back-off, then ``Unavailable``; at once when
  Retry-After is longer than the longest back-off.
- 500 or 429 whose text names a time-out (Blazegraph, QLever); 200 with cut JSON, with something after the JSON, or with
  anything but JSON; a reply that is too slow or too large: ``QueryTimeout``.
- A redirect or any other 4xx: ``ConfigError``.
"""

import asyncio
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import orjson

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.clients.http import (
    CutOff,
    HttpClient,
    HttpReply,
    HttpRequest,
    NoReply,
    RateLimiter,
    Silence,
    TooLarge,
    redact,
)
from pipelines.services.protocols import QueryTimeout, SparqlRow
from pipelines.services.traffic import Waiting

if TYPE_CHECKING:
    from pipelines.services.clients.turns import Turns

_LONGEST_GET: Final = 2000
"""Characters of a query up to which it is sent by GET."""
LONGEST_BACKOFF: Final = 60.0
_JSON_TYPES: Final = ("application/sparql-results+json", "application/json")
_UNWANTED: Final = ("user-agent", "user agent", "robot policy", "banned")
_TIMED_OUT: Final = (b"TimeoutException", b"timed out", b"time limit")
_TRIES_OF_HEAVY: Final = 2
"""A gateway's time-out does not show whether query or service is to blame; once may be chance."""


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """A SPARQL endpoint, its contact and limits, and the client that sends one query at a time."""

    endpoint: str
    """The address."""
    contact: str = ""
    pause: float = 1.0
    """Seconds between two queries."""
    tries: int = 4
    backoff: float = 2.0
    deadline: float = 180.0
    """Seconds for a whole reply; the Wikidata Query Service ends a query after 60."""
    reply_bytes: int = 1 << 25
    turns: "Turns | None" = field(default=None, repr=False, compare=False)
    """Where the processes of a run agree on whose turn it is."""
    client: HttpClient = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        client = HttpClient(
            tries=self.tries,
            timeout=self.deadline,
            reply_bytes=self.reply_bytes,
            backoff=self.backoff,
            shared=RateLimiter(self.endpoint, pause=self.pause, turns=self.turns),
        )
        object.__setattr__(self, "client", client)

    @property
    def identity(self) -> str:
        """The address: contact and limits decide no reply."""
        return f"sparql:{self.endpoint}"

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return every row; see :class:`pipelines.services.protocols.Sparql`."""
        with Waiting() as waiting:
            return await self._select(query, divisible, waiting)

    async def _select(self, query: str, divisible: bool, waiting: Waiting) -> tuple[SparqlRow, ...]:
        cause, heavy, tries = "", 0, self.client.tries
        for attempt in range(tries):
            try:
                reply = await self.client.send(self._make_request(query))
            except (CutOff, TooLarge) as error:
                raise QueryTimeout(f"{self.endpoint}: {error}") from error
            except NoReply as error:
                cause, wait, is_heavy = str(error), 0.0, isinstance(error, Silence)
            else:
                if reply.status < 500 or _names_timeout(reply):
                    return self._read(reply)
                cause, wait = f"HTTP {reply.status}: {_quote(reply)}", reply.wait
                is_heavy = reply.status == 504
            if wait > LONGEST_BACKOFF:
                raise Unavailable(
                    f"{self.endpoint}: {cause}; the server asks to wait {wait:,.0f} s: run again after that"
                )
            heavy += is_heavy
            if divisible and heavy == _TRIES_OF_HEAVY:
                raise QueryTimeout(f"{self.endpoint}: {cause}, {heavy} times")
            if attempt + 1 < tries:
                waiting.note(self.endpoint, cause)
                await asyncio.sleep(max(wait, min(self.client.backoff * 2.0**attempt, LONGEST_BACKOFF)))
        raise Unavailable(f"{self.endpoint}: {cause}, {tries} times; run again to continue")

    def _make_request(self, query: str) -> HttpRequest:
        """Return the request; strict endpoints refuse parameters other than ``query``."""
        headers = {"User-Agent": name_agent(self.contact), "Accept": ", ".join(_JSON_TYPES)}
        if len(query) <= _LONGEST_GET:
            return HttpRequest(f"{self.endpoint}?{urlencode({'query': query})}", headers=headers)
        headers |= {"Content-Type": "application/x-www-form-urlencoded"}
        return HttpRequest(self.endpoint, "POST", headers, body=urlencode({"query": query}).encode())

    def _read(self, reply: HttpReply) -> tuple[SparqlRow, ...]:
        if _names_ban(reply):
            agent = name_agent(self.contact)
            raise Unavailable(
                f"{self.endpoint}: HTTP {reply.status}: {_quote(reply) or 'no text'}; it bans this address or refuses "
                f"the User-Agent {agent!r}. No retry follows; a ban lasts 24 hours, so check the contact first"
            )
        if reply.status != 200:
            raise self._explain(reply)
        if reply.kind not in _JSON_TYPES:
            raise QueryTimeout(f"{self.endpoint}: {reply.kind} in place of JSON: {_quote(reply)}")
        # Virtuoso sends partial results with this header.
        if reply.headers.get("X-SQL-State"):
            raise QueryTimeout(f"{self.endpoint}: partial results: {reply.headers.get('X-SQL-Message', '')}")
        try:
            return read_rows(reply.body)
        except ValueError as error:
            size = f"{len(reply.body):,} bytes"
            raise QueryTimeout(f"{self.endpoint}: {size} that are no complete reply: {error}") from error

    def _explain(self, reply: HttpReply) -> Exception:
        said = f"{self.endpoint}: HTTP {reply.status}: {_quote(reply)}"
        if reply.status == 429 and not _names_timeout(reply):
            return RateLimited(said, reply.wait)
        if 300 <= reply.status < 400:
            return ConfigError(f"{said}; it moved to {reply.headers.get('Location', '?')}: name that address")
        if 400 <= reply.status < 500 and reply.status != 429:
            return ConfigError(f"{said}; expected a SPARQL 1.1 endpoint that takes plain SELECT queries")
        return QueryTimeout(said)


def name_agent(contact: str) -> str:
    """Return the User-Agent ``synth/<version> (<contact>)``; operators block clients without a contact."""
    try:
        release = version("synth")
    except PackageNotFoundError:  # run from a clone
        release = "0"
    return f"synth/{release} ({contact})"


def read_rows(body: bytes) -> tuple[SparqlRow, ...]:
    """Return the rows of a reply in the SPARQL 1.1 JSON results format; raises ValueError for any other body."""
    reply = orjson.loads(body)
    try:
        bindings = reply["results"]["bindings"]
        rows = tuple({name: term["value"] for name, term in binding.items()} for binding in bindings)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no results of a SELECT query: {type(error).__name__} at {error}") from error
    if not all(isinstance(value, str) for row in rows for value in row.values()):
        raise ValueError("a value is not text")
    return rows


def _quote(reply: HttpReply) -> str:
    return redact(reply.body, "", 300)


def _names_ban(reply: HttpReply) -> bool:
    """Return whether the endpoint refuses the client, by status or by a text in place of JSON."""
    may_be = reply.status == 429 or (reply.status == 200 and reply.kind not in _JSON_TYPES)
    return reply.status == 403 or (may_be and any(word in _quote(reply).lower() for word in _UNWANTED))


def _names_timeout(reply: HttpReply) -> bool:
    """Return whether an error concerns this query's size; one with a Retry-After does not."""
    named = any(word in reply.body for word in _TIMED_OUT)
    return reply.status in (429, 500) and named and not reply.headers.get("Retry-After")
