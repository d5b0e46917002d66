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

from pipelines.config.settings import SparqlConfig
from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.services.clients.http import HttpReply, RateLimiter, redact
from pipelines.services.protocols import QueryTimeout, SparqlRow
from pipelines.services.traffic import Waiting

if TYPE_CHECKING:
    from pipelines.services.clients.turns import Turns

LONGEST_BACKOFF: Final = 60.0
_UNWANTED: Final = ("user-agent", "user agent", "robot policy", "banned")
_TIMED_OUT: Final = (b"TimeoutException", b"timed out", b"time limit")
_TRIES_OF_HEAVY: Final = 2
"""A gateway's time-out does not show whether query or service is to blame; once may be chance."""


@dataclass(frozen=True, slots=True)
class SparqlEndpoint:
    """A SPARQL endpoint, its contact and limits."""

    settings: SparqlConfig
    turns: "Turns | None" = field(default=None, repr=False, compare=False)
    """Where the processes of a run agree on whose turn it is."""
    limiter: RateLimiter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        limiter = RateLimiter(self.settings.endpoint, pause=self.settings.pause, turns=self.turns)
        object.__setattr__(self, "limiter", limiter)

    @property
    def identity(self) -> str:
        """The address: contact and limits decide no reply."""
        return f"sparql:{self.settings.endpoint}"

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return every row; see :class:`pipelines.services.protocols.Sparql`."""
        endpoint, cause, heavy, tries = self.settings.endpoint, "", 0, self.settings.tries
        with Waiting() as waiting:
            for attempt in range(tries):
                try:
                    async with self.limiter.enter():
                        reply = await asyncio.to_thread(self._ask, query)
                except OSError as error:
                    cause, wait, is_heavy = f"no reply ({error})", 0.0, isinstance(error, TimeoutError)
                else:
                    if reply.status < 500 or _names_timeout(reply):
                        return self._read(reply)
                    cause, wait, is_heavy = f"HTTP {reply.status}: {_quote(reply)}", reply.wait, reply.status == 504
                if wait > LONGEST_BACKOFF:
                    raise Unavailable(f"{endpoint}: {cause}; it asks to wait {wait:,.0f} s: run again after that")
                heavy += is_heavy
                if divisible and heavy == _TRIES_OF_HEAVY:
                    raise QueryTimeout(f"{endpoint}: {cause}, {heavy} times")
                if attempt + 1 < tries:
                    waiting.note(endpoint, cause)
                    await asyncio.sleep(max(wait, min(self.settings.backoff * 2.0**attempt, LONGEST_BACKOFF)))
        raise Unavailable(f"{endpoint}: {cause}, {tries} times; run again to continue")

    def _ask(self, query: str) -> HttpReply:
        """Return a reply, whatever its status; an OSError where there was none."""
        # Brings rdflib, which takes half a second.
        from SPARQLWrapper import JSON, POST, SPARQLWrapper
        from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

        wrapper = SPARQLWrapper(self.settings.endpoint, returnFormat=JSON, agent=name_agent(self.settings.contact))
        wrapper.setMethod(POST)
        # Strict endpoints refuse parameters other than the query.
        wrapper.setOnlyConneg(True)
        wrapper.setTimeout(max(1, round(self.settings.deadline)))
        wrapper.setQuery(query)
        try:
            response = wrapper.query().response
            body = response.read(self.settings.reply_bytes + 1)
        except HTTPError as error:
            return HttpReply(error.code, error.headers, error.read(self.settings.reply_bytes))
        except SPARQLWrapperException as error:
            # Made of urllib's error, whose text it has read.
            status = error.__context__
            if not isinstance(status, HTTPError):
                raise
            return HttpReply(status.code, status.headers, str(error).encode())
        except HTTPException as error:
            raise QueryTimeout(f"{self.settings.endpoint}: no complete reply ({error!r})") from error
        if len(body) > self.settings.reply_bytes:
            raise QueryTimeout(f"{self.settings.endpoint}: more than {self.settings.reply_bytes:,} bytes")
        if response.geturl() != self.settings.endpoint:
            raise ConfigError(f"{self.settings.endpoint}: it moved to {response.geturl()}: name that address")
        return HttpReply(response.status, response.headers, body)

    def _read(self, reply: HttpReply) -> tuple[SparqlRow, ...]:
        endpoint, said = self.settings.endpoint, f"HTTP {reply.status}: {_quote(reply)}"
        unwanted = any(word in said.lower() for word in _UNWANTED)
        if reply.status == 403 or (reply.status in (200, 429) and unwanted and not reply.body.startswith(b"{")):
            raise Unavailable(
                f"{endpoint}: {said}; it bans this address or refuses the User-Agent "
                f"{name_agent(self.settings.contact)!r}. No retry follows; a ban lasts 24 hours, so check the contact"
            )
        if reply.status == 429 and not _names_timeout(reply):
            raise RateLimited(f"{endpoint}: {said}", reply.wait)
        if 300 <= reply.status < 500 and reply.status != 429:
            raise ConfigError(f"{endpoint}: {said}; expected a SPARQL 1.1 endpoint that takes plain SELECT queries")
        # Virtuoso sends partial results with this header.
        if reply.status != 200 or reply.headers.get("X-SQL-State"):
            raise QueryTimeout(f"{endpoint}: {said}")
        try:
            return read_rows(reply.body)
        except ValueError as error:
            raise QueryTimeout(f"{endpoint}: {len(reply.body):,} bytes that are no complete reply: {error}") from error


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


def _names_timeout(reply: HttpReply) -> bool:
    """Return whether an error concerns this query's size; one with a Retry-After does not."""
    named = any(word in reply.body for word in _TIMED_OUT)
    return reply.status in (429, 500) and named and not reply.headers.get("Retry-After")
