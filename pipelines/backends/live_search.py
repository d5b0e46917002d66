"""Text search by services that speak the protocol of Serper or of SerpApi: Google's results as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from pipelines.backends.live_http import LiveManners, LiveRequest, open_client
from pipelines.backends.live_service import Service, find_entry, list_entries, read_text
from pipelines.backends.openai_errors import NoReply
from pipelines.backends.protocols import TextHit

VERSION: Final = 1
LONGEST_QUERY: Final = 2048
"""Characters of a query that are sent; search engines read far fewer."""
_MOST_RESULTS = 100
_NOTHING_FOUND = "hasn't returned any results"
_MOST_FACTS = 20


@dataclass(frozen=True, slots=True)
class SerperSearch:
    """A service that takes ``POST {"q", "num"}`` with ``X-API-KEY`` and answers with ``organic`` results.

    Attributes:
        url: address.
        key_env: environment variable that holds the key; empty for none.
        manners: towards the service.
    """

    url: str
    key_env: str
    manners: LiveManners = field(default_factory=LiveManners)
    service: Service = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "service", _make_service("Serper", self.url, self.key_env, self.manners))

    @property
    def identity(self) -> str:
        """Protocol, version and address."""
        return f"serper@{VERSION}:{self.url}"

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` results: what the engine answers itself first, then the pages in its order.

        Raises:
            RateLimited, Unavailable, ConfigError, RecordFailed: as :meth:`Service.ask`.
        """
        asked = _cut_query(query)
        if not asked or count < 1:
            return ()
        key = self.service.read_key()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        body = orjson.dumps({"q": asked, "num": min(count, _MOST_RESULTS)})
        request = LiveRequest(self.url, "POST", headers | ({"X-API-KEY": key} if key else {}), body=body)
        return await self.service.ask(request, lambda reply: self._read(self.service.read_json(reply), count))

    def _read(self, reply: Mapping[str, Any], count: int) -> tuple[TextHit, ...]:
        if not any(name in reply for name in ("organic", "searchParameters", "knowledgeGraph", "answerBox")):
            raise NoReply(f"a reply of another form: {sorted(reply)[:8]}; expected organic results")
        answer, subject = find_entry(reply, "answerBox"), find_entry(reply, "knowledgeGraph")
        facts = find_entry(subject, "attributes")
        hits = [
            TextHit(read_text(answer, "link"), read_text(answer, "title"), read_text(answer, "answer", "snippet")),
            TextHit(
                read_text(subject, "descriptionLink", "website"),
                read_text(subject, "title"),
                _join_facts(read_text(subject, "description"), facts),
            ),
            *(_read_result(entry) for entry in list_entries(reply, "organic")),
        ]
        return _keep_hits(hits, count)


@dataclass(frozen=True, slots=True)
class SerpApiSearch:
    """A service that takes ``GET ?engine=google&q=&num=&api_key=`` and answers with ``organic_results``.

    Attributes:
        url: address.
        key_env: environment variable that holds the key; empty for none.
        manners: towards the service.
    """

    url: str
    key_env: str
    manners: LiveManners = field(default_factory=LiveManners)
    service: Service = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "service", _make_service("SerpApi", self.url, self.key_env, self.manners))

    @property
    def identity(self) -> str:
        """Protocol, version and address."""
        return f"serpapi@{VERSION}:{self.url}"

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` results; see :meth:`SerperSearch.search_text`."""
        asked = _cut_query(query)
        if not asked or count < 1:
            return ()
        key = self.service.read_key()
        parameters = {"engine": "google", "output": "json", "q": asked, "num": str(min(count, _MOST_RESULTS))}
        request = LiveRequest(
            self.url, headers={"Accept": "application/json"}, query=parameters | ({"api_key": key} if key else {})
        )
        return await self.service.ask(request, lambda reply: self._read(self.service.read_json(reply), count))

    def _read(self, reply: Mapping[str, Any], count: int) -> tuple[TextHit, ...]:
        check_serpapi(self.service, reply)
        answer, subject = find_entry(reply, "answer_box"), find_entry(reply, "knowledge_graph")
        source = find_entry(subject, "source")
        hits = [
            TextHit(read_text(answer, "link"), read_text(answer, "title"), read_text(answer, "answer", "snippet")),
            TextHit(
                read_text(source, "link") or read_text(subject, "website"),
                read_text(subject, "title"),
                read_text(subject, "description"),
            ),
            *(_read_result(entry) for entry in list_entries(reply, "organic_results")),
        ]
        return _keep_hits(hits, count)


def check_serpapi(service: Service, reply: Mapping[str, Any]) -> None:
    """Refuse a reply of SerpApi that reports an error; that nothing was found is none.

    Raises:
        NoReply: with what it says; asking again may help.
    """
    said = read_text(reply, "error")
    if said and _NOTHING_FOUND not in said:
        raise NoReply(f"error {service.redact(said.encode())[:200]!r}")
    if not said and "search_metadata" not in reply and "search_parameters" not in reply:
        raise NoReply(f"a reply of another form: {sorted(reply)[:8]}; expected search_metadata")


def _make_service(name: str, url: str, key_env: str, manners: LiveManners) -> Service:
    return Service(name, url, key_env, open_client(manners), "live.search_url")


def _cut_query(query: str) -> str:
    """Return a query on one line as it can be sent: models write lone surrogates, too."""
    return " ".join(query.encode("utf-8", "replace").decode("utf-8").split())[:LONGEST_QUERY]


def _read_result(entry: Mapping[str, Any]) -> TextHit:
    return TextHit(read_text(entry, "link"), read_text(entry, "title"), read_text(entry, "snippet"))


def _join_facts(description: str, facts: Mapping[str, Any]) -> str:
    """Return a subject's description with its facts as ``Key: value``."""
    said = [f"{name}: {read_text(facts, name)}" for name in list(facts)[:_MOST_FACTS] if read_text(facts, name)]
    return "; ".join(part for part in (description, *said) if part)


def _keep_hits(hits: list[TextHit], count: int) -> tuple[TextHit, ...]:
    return tuple(_list_pages(hits))[:count]


def _list_pages(hits: list[TextHit]) -> Iterator[TextHit]:
    """Yield those that lead to a page, a page once: what leads nowhere cannot be visited or cited."""
    seen: set[str] = set()
    for hit in hits:
        if hit.url.startswith(("https://", "http://")) and hit.url not in seen:
            seen.add(hit.url)
            yield hit
