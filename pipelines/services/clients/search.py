"""Text search by services with the protocol of Serper or SerpApi, and the base of all services with a key."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson

from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.services.clients.http import (
    Busy,
    HttpClient,
    HttpReply,
    HttpRequest,
    NoReply,
    NoSuchHost,
    TooLarge,
    read_key,
    redact,
)
from pipelines.services.protocols import TextHit

T = TypeVar("T")

_QUOTED = 300
_LOOKED = 4000
"""Characters of a reply's body that are searched and quoted."""
_JSON = ("application/json", "text/json")
_THEIR_FAULT = (408, 409, 425)
_REFUSED = (400, 413, 414, 422)
_NO_MONEY = (
    "not enough credit",
    "run out of searches",
    "insufficient balance",
    "insufficientbalance",
    "insufficient_quota",
    "exceeded your current quota",
)
_NO_KEY = ("api key not valid", "api_key_invalid", "invalid api key", "missing api key", "api key expired")


@dataclass(frozen=True, slots=True)
class Service:
    """A service with a key: the base of the live tools.

    Attributes:
        url: address; it appears in messages and identities, so it holds no secret.
        key_env: environment variable of the key, empty for none.
        setting: configuration key of the address, for messages.
    """

    protocol: str
    url: str
    key_env: str
    client: HttpClient = field(default_factory=HttpClient, repr=False, compare=False)
    setting: str = field(default="", compare=False)

    @property
    def place(self) -> str:
        """The service's name in messages."""
        return f"{self.protocol} at {self.url}"

    def read_key(self) -> str:
        """Return the key from its variable, empty if none is named; raises ConfigError if it is missing or invalid."""
        return read_key(self.place, self.key_env)

    async def ask(self, request: HttpRequest, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Send a request, with retries, and return the result of ``read``, which takes the JSON object of the reply.

        Raises:
            RateLimited: if the service asks to slow down, repeatedly or for long.
            Unavailable: if there is no reply after all tries, or nothing left on the account.
            ConfigError: if the service refuses the key, or is no such service.
            RecordFailed: ``search-refused`` if it refuses this one request.
        """

        async def attempt() -> T:
            return read(self.read_json(await self.client.send(request)))

        try:
            return await self.client.retry(self.url, attempt)
        except NoReply as error:
            raise self.give_up(error) from None

    def give_up(self, error: NoReply) -> Unavailable:
        """Return the error of a service without a reply after all tries."""
        times = "" if isinstance(error, (NoSuchHost, TooLarge)) else f", {self.client.tries} times"
        return Unavailable(f"{self.place}: {error}{times}; see {self.setting}, or run again later")

    def read_json(self, reply: HttpReply) -> Mapping[str, Any]:
        """Return the JSON object of a reply.

        Raises:
            NoReply: if the body is something else, such as an error page.
            SynthError: as :meth:`explain`, for a status other than 200.
        """
        if reply.status != 200:
            raise self.explain(reply)
        if reply.kind not in _JSON and not reply.kind.endswith("+json"):
            raise NoReply(f"expected JSON, got {reply.kind or 'no content type'}: {self.quote(reply)[:80]!r}")
        try:
            read = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            raise NoReply(f"broken JSON: {self.quote(reply)[:80]!r}") from None
        if not isinstance(read, dict):
            raise NoReply(f"unexpected JSON: {self.quote(reply)[:80]!r}")
        return read

    def explain(self, reply: HttpReply) -> Exception:
        """Return the error that a status other than 200 stands for."""
        status, said = reply.status, self.quote(reply)
        folded, quoted = said.lower(), f"HTTP {reply.status}: {said[:_QUOTED]}"
        if self.is_out_of_money(reply):
            return Unavailable(f"{self.place}: nothing left on the account ({quoted})")
        if reply.is_busy:
            return Busy(f"{self.place}: HTTP {status}", reply.wait)
        if status >= 500 or status in _THEIR_FAULT:
            return NoReply(quoted)
        if status in (401, 403) or (status == 400 and any(words in folded for words in _NO_KEY)):
            variable = self.key_env or f"no variable; name one as {self.setting.replace('urls', 'key_envs')}"
            return ConfigError(f"{self.place}: rejects the key of {variable} ({quoted})")
        if 300 <= status < 400:
            to = self.redact(reply.headers.get("Location", "?").encode("utf-8", "replace"))[:200]
            return ConfigError(f"{self.place} has moved to {to!r}; set that address as {self.setting}")
        if status in _REFUSED:
            return RecordFailed("search-refused", f"{self.place}: {quoted}")
        return ConfigError(f"{self.place}: no such service ({quoted}); see {self.setting}")

    def is_out_of_money(self, reply: HttpReply) -> bool:
        """Return whether a refusal says that nothing is left on the account."""
        folded = self.quote(reply).lower()
        return reply.status == 402 or (400 <= reply.status < 500 and any(words in folded for words in _NO_MONEY))

    def quote(self, reply: HttpReply) -> str:
        """Return the beginning of a reply's body on one line, without the key."""
        return self.redact(reply.body)

    def redact(self, said: bytes) -> str:
        """Return a text on one line, without the key in any encoding."""
        return redact(said, os.environ.get(self.key_env, "").strip() if self.key_env else "", _LOOKED)


def list_entries(reply: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return a list of objects in a reply, empty if it is missing; anything else raises :class:`NoReply`."""
    found = [] if reply.get(name) is None else reply[name]
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise NoReply(f"unexpected reply: {name} is not a list of objects")
    return found


def find_entry(reply: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in a reply, empty if it is missing; anything else raises :class:`NoReply`."""
    found = {} if reply.get(name) is None else reply[name]
    if not isinstance(found, dict):
        raise NoReply(f"unexpected reply: {name} is not an object")
    return found


def read_text(entry: Mapping[str, Any], *names: str) -> str:
    """Return the first of several values that is not blank, on one line, or ""."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    return ""


VERSION: Final = 1
LONGEST_QUERY: Final = 2048
"""Most characters of a query."""
_MOST_RESULTS = 100
_NOTHING_FOUND = "hasn't returned any results"
_MOST_FACTS = 20


@dataclass(frozen=True, slots=True)
class LiveSearch(Service):
    """A text search with the protocol ``serper`` or ``serpapi``.

    Serper takes ``POST {"q", "num"}`` with ``X-API-KEY``; SerpApi takes ``GET ?engine=google&q=&num=&api_key=``.
    """

    setting: str = "live.urls.search"

    @property
    def identity(self) -> str:
        """Protocol, version and address."""
        return f"{self.protocol}@{VERSION}:{self.url}"

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` results: the engine's own answer first, then pages in its order.

        Raises as :meth:`Service.ask`.
        """
        # Models may write lone surrogates.
        words = " ".join(query.encode("utf-8", "replace").decode("utf-8").split())[:LONGEST_QUERY]
        if not words or count < 1:
            return ()
        make, read = _PROTOCOLS[self.protocol]
        request = make(self, words, min(count, _MOST_RESULTS))
        found = await self.ask(request, lambda reply: read(self, reply))
        # A hit without an address cannot be visited or cited.
        pages: dict[str, TextHit] = {}
        for hit in found:
            if hit.url.startswith(("https://", "http://")):
                pages.setdefault(hit.url, hit)
        return tuple(pages.values())[:count]


def make_serpapi(service: Service, parameters: Mapping[str, str]) -> HttpRequest:
    """Return a request to SerpApi, which takes the key as a parameter."""
    key = service.read_key()
    query = {**parameters, "output": "json"} | ({"api_key": key} if key else {})
    return HttpRequest(service.url, headers={"Accept": "application/json"}, query=query)


def make_post(service: Service, header: str, body: bytes) -> HttpRequest:
    """Return a request with a JSON body and the key in a header."""
    key = service.read_key()
    headers = {"Content-Type": "application/json", "Accept": "application/json"} | ({header: key} if key else {})
    return HttpRequest(service.url, "POST", headers, body=body)


def _ask_serper(service: Service, words: str, count: int) -> HttpRequest:
    return make_post(service, "X-API-KEY", orjson.dumps({"q": words, "num": count}))


def _ask_serpapi(service: Service, words: str, count: int) -> HttpRequest:
    return make_serpapi(service, {"engine": "google", "q": words, "num": str(count)})


def _read_serper(_service: Service, reply: Mapping[str, Any]) -> list[TextHit]:
    if not any(name in reply for name in ("organic", "searchParameters", "knowledgeGraph", "answerBox")):
        raise NoReply(f"unexpected reply: {sorted(reply)[:8]}; expected organic results")
    answer, subject = find_entry(reply, "answerBox"), find_entry(reply, "knowledgeGraph")
    facts = _join_facts(read_text(subject, "description"), find_entry(subject, "attributes"))
    return [
        TextHit(read_text(answer, "link"), read_text(answer, "title"), read_text(answer, "answer", "snippet")),
        TextHit(read_text(subject, "descriptionLink", "website"), read_text(subject, "title"), facts),
        *map(_read_result, list_entries(reply, "organic")),
    ]


def _read_serpapi(service: Service, reply: Mapping[str, Any]) -> list[TextHit]:
    check_serpapi(service, reply)
    answer, subject = find_entry(reply, "answer_box"), find_entry(reply, "knowledge_graph")
    address = read_text(find_entry(subject, "source"), "link") or read_text(subject, "website")
    return [
        TextHit(read_text(answer, "link"), read_text(answer, "title"), read_text(answer, "answer", "snippet")),
        TextHit(address, read_text(subject, "title"), read_text(subject, "description")),
        *map(_read_result, list_entries(reply, "organic_results")),
    ]


def check_serpapi(service: Service, reply: Mapping[str, Any]) -> None:
    """Raise :class:`NoReply` for an error of SerpApi, except that nothing was found."""
    said = read_text(reply, "error")
    if said and _NOTHING_FOUND not in said:
        raise NoReply(f"error {service.redact(said.encode())[:200]!r}")
    if not said and "search_metadata" not in reply and "search_parameters" not in reply:
        raise NoReply(f"unexpected reply: {sorted(reply)[:8]}; expected search_metadata")


def _read_result(entry: Mapping[str, Any]) -> TextHit:
    return TextHit(read_text(entry, "link"), read_text(entry, "title"), read_text(entry, "snippet"))


def _join_facts(description: str, facts: Mapping[str, Any]) -> str:
    """Return a subject's description with its facts as ``Key: value``."""
    said = [f"{name}: {read_text(facts, name)}" for name in list(facts)[:_MOST_FACTS] if read_text(facts, name)]
    return "; ".join(part for part in (description, *said) if part)


_PROTOCOLS: Final = {"serper": (_ask_serper, _read_serper), "serpapi": (_ask_serpapi, _read_serpapi)}
