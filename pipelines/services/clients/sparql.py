"""A SPARQL 1.1 endpoint through SPARQLWrapper: one query at a time, a pause after each, and whole replies or none.

A reply that is not whole, or whose text names a time-out, is a ``QueryTimeout``: a smaller query may help. 429 means to
wait, a ban or a redirect stops the run. What else goes wrong is tried again and then ``Unavailable``.
"""

import asyncio
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError

import orjson
from multidict import CIMultiDict

from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.clients.http import Busy, HttpClient, HttpReply, NoReply, RateLimiter, Silence, redact
from pipelines.services.protocols import QueryTimeout, SparqlRow

if TYPE_CHECKING:
    from pipelines.services.clients.turns import Turns

_UNWANTED: Final = ("user-agent", "user agent", "robot policy", "banned")
_TIMED_OUT: Final = (b"TimeoutException", b"timed out", b"time limit")


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """A SPARQL endpoint, its contact and limits."""

    endpoint: str
    """The address."""
    contact: str = ""
    pause: float = 1.0
    """Seconds between two queries."""
    tries: int = 4
    backoff: float = 2.0
    deadline: float = 180.0
    """Seconds without a byte of a reply; the Wikidata Query Service ends a query after 60."""
    reply_bytes: int = 1 << 25
    turns: "Turns | None" = field(default=None, repr=False, compare=False)
    """Where the processes of a run agree on whose turn it is."""
    client: HttpClient = field(init=False, repr=False, compare=False)
    """Of its limits and its tries; SPARQLWrapper sends the requests."""

    def __post_init__(self) -> None:
        limiter = RateLimiter(self.endpoint, pause=self.pause, turns=self.turns)
        object.__setattr__(self, "client", HttpClient(tries=self.tries, backoff=self.backoff, shared=limiter))

    @property
    def identity(self) -> str:
        """The address: contact and limits decide no reply."""
        return f"sparql:{self.endpoint}"

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return every row; see :class:`pipelines.services.protocols.Sparql`."""

        async def attempt() -> tuple[SparqlRow, ...]:
            async with self.client.find_limiter(self.endpoint).enter():
                reply = await asyncio.to_thread(self._ask, query)
            return self._read(reply)

        try:
            return await self.client.retry(self.endpoint, attempt)
        except NoReply as error:
            said = f"{self.endpoint}: {error}, {self.tries} times"
            # A gateway's time-out does not show whether query or service is to blame.
            if divisible and isinstance(error, Silence):
                raise QueryTimeout(said) from error
            raise Unavailable(f"{said}; run again to continue") from error

    def _ask(self, query: str) -> HttpReply:
        """Return a reply, whatever its status."""
        # Brings rdflib, which takes half a second.
        from SPARQLWrapper import JSON, POST, SPARQLWrapper
        from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

        endpoint, most = self.endpoint, self.reply_bytes
        wrapper = SPARQLWrapper(endpoint, returnFormat=JSON, agent=name_agent(self.contact))
        wrapper.setMethod(POST)
        # Strict endpoints refuse parameters other than the query.
        wrapper.setOnlyConneg(True)
        wrapper.setTimeout(max(1, round(self.deadline)))
        wrapper.setQuery(query)
        try:
            with wrapper.query().response as response:
                body = response.read(most + 1)
        except HTTPError as error:
            with error:
                return HttpReply(error.code, CIMultiDict(error.headers), error.read(most))
        except SPARQLWrapperException as error:
            # Made of urllib's, whose text it has read.
            refused = error.__context__
            if not isinstance(refused, HTTPError):
                raise
            with refused:
                return HttpReply(refused.code, CIMultiDict(refused.headers), str(error).encode())
        except OSError as error:
            is_silent = isinstance(getattr(error, "reason", error), TimeoutError)
            raise (Silence if is_silent else NoReply)(f"no reply ({error})") from error
        except HTTPException as error:
            raise QueryTimeout(f"{endpoint}: no complete reply ({error!r})") from error
        if len(body) > most:
            raise QueryTimeout(f"{endpoint}: more than {most:,} bytes")
        if response.geturl() != endpoint:
            raise ConfigError(f"{endpoint}: it moved to {response.geturl()}: name that address")
        return HttpReply(response.status, CIMultiDict(response.headers), body)

    def _read(self, reply: HttpReply) -> tuple[SparqlRow, ...]:
        status, said = reply.status, f"HTTP {reply.status}: {redact(reply.body, '', 300)}"
        place = f"{self.endpoint}: {said}"
        unwanted = status in (200, 429) and any(word in said.lower() for word in _UNWANTED)
        if status == 403 or (unwanted and not reply.body.startswith(b"{")):
            raise Unavailable(
                f"{place}; it bans this address or refuses the User-Agent {name_agent(self.contact)!r}. No "
                "retry follows; a ban lasts 24 hours, so check the contact first"
            )
        # Of this query's size, unless it says when to come back.
        too_large = status in (429, 500) and any(word in reply.body for word in _TIMED_OUT)
        if too_large and not reply.headers.get("Retry-After"):
            raise QueryTimeout(place)
        if status == 429:
            raise RateLimited(place, reply.wait)
        if 300 <= status < 500:
            raise ConfigError(f"{place}; expected a SPARQL 1.1 endpoint that takes plain SELECT queries")
        if status >= 500:
            raise Busy(said, reply.wait) if reply.wait else (Silence if status == 504 else NoReply)(said)
        # Virtuoso sends partial results with this header.
        if status != 200 or reply.headers.get("X-SQL-State"):
            raise QueryTimeout(place)
        try:
            return read_rows(reply.body)
        except ValueError as error:
            size = f"{len(reply.body):,} bytes"
            raise QueryTimeout(f"{self.endpoint}: {size} that are no complete reply: {error}") from error


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
