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
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import orjson

from pipelines.backends.protocols import QueryTimeout, SparqlRow
from pipelines.backends.sparql_http import HttpReply, NoReply, RequestLimits, Silence, fetch_reply
from pipelines.errors import ConfigError, RateLimited, Unavailable

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
        """Return every row; see :class:`pipelines.backends.protocols.Sparql`."""
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
