"""Recording around any backend: ask once, replay for ever.

A key covers the backend's identity and the exact request, so a changed prompt, picture, sampling setting or model is a
different key: a stale reply cannot be found.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from pipelines.backends.chat_keys import make_chat_key, write_reply
from pipelines.backends.metering import Price, Purse, count_usage
from pipelines.backends.protocols import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ImageHit,
    ImageSearch,
    PageNotFound,
    PageReader,
    PageText,
    PictureFile,
    QueryTimeout,
    Sparql,
    SparqlRow,
    TextHit,
    TextSearch,
)
from pipelines.backends.replies import ReplyStore
from pipelines.freshness import name_generation
from pipelines.ids import canonical_json, digest_value
from schemas.manifest import Usage


@dataclass(frozen=True, slots=True)
class RecordedChat:
    """A chat model whose replies are paid for once.

    ``fresh`` is the generation of its role (:mod:`pipelines.freshness`); a purse is asked before each request that is
    not recorded.
    """

    model: ChatModel
    store: ReplyStore
    price: Price = field(default_factory=Price)
    purse: Purse | None = None
    fresh: int = 0

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self.model.name

    @property
    def identity(self) -> str:
        """The wrapped model's identity, with the generation of its role."""
        return name_generation(self.model.identity, self.fresh)

    @property
    def reads_inputs(self) -> bool:
        """As the wrapped model."""
        return self.model.reads_inputs

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the recorded reply or ask the wrapped model.

        What it took is counted when the model answers, and only then: the reply itself is the same whether it was
        asked for now or long ago.

        Raises:
            BudgetSpent: if the reply is not recorded and the run has spent what it may.
        """

        async def ask() -> str:
            reply = await self.model.chat(request)
            self._count(reply)
            day = "" if self.reads_inputs else reply.day or datetime.now(UTC).date().isoformat()
            return write_reply([reply.text, reply.tokens_in, reply.tokens_out, reply.ended, day])

        permit = None if self.purse is None else self.purse.check
        text, cached = await self.store.recall(make_chat_key(self, request), self.identity, ask, permit)
        if cached:
            count_usage(Usage(cached_calls=1))
        return _read_chat(text)

    def _count(self, reply: ChatReply) -> None:
        usage = Usage(
            calls=1,
            retries=reply.retries,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            gpu_seconds=reply.gpu_seconds,
            cost=self.price.charge(reply.tokens_in, reply.tokens_out, reply.gpu_seconds),
        )
        count_usage(usage)
        if self.purse is not None:
            self.purse.add(usage)


def _read_chat(recorded: str) -> ChatReply:
    # Recordings of the first version have no day.
    text, tokens_in, tokens_out, ended, *day = json.loads(recorded)
    return ChatReply(text, tokens_in, tokens_out, ended, day=day[0] if day else "")


@dataclass(frozen=True, slots=True)
class RecordedTextSearch:
    """A text search whose results are asked for once."""

    search: TextSearch
    store: ReplyStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped search's identity."""
        return name_generation(self.search.identity, self.fresh)

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return recorded passages or search."""

        async def ask() -> str:
            return canonical_json([asdict(hit) for hit in await self.search.search_text(query, count)])

        key = digest_value([self.identity, "search_text", query, count])
        return tuple(TextHit(**hit) for hit in json.loads(await _recall_call(self.store, key, self.identity, ask)))


@dataclass(frozen=True, slots=True)
class RecordedImageSearch:
    """An image search whose results are asked for once per picture content."""

    search: ImageSearch
    store: ReplyStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped search's identity."""
        return name_generation(self.search.identity, self.fresh)

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return recorded pages or search; the key is the picture's sha256, never its path."""

        async def ask() -> str:
            return canonical_json([asdict(hit) for hit in await self.search.search_image(picture, count)])

        key = digest_value([self.identity, "search_image", picture.sha256, count])
        return tuple(ImageHit(**hit) for hit in json.loads(await _recall_call(self.store, key, self.identity, ask)))


@dataclass(frozen=True, slots=True)
class RecordedPages:
    """A page reader that reads each page once; a missing page is recorded as missing."""

    reader: PageReader
    store: ReplyStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped reader's identity."""
        return name_generation(self.reader.identity, self.fresh)

    async def read_page(self, url: str) -> PageText:
        """Return the recorded page or read it.

        Raises:
            PageNotFound: if there is no such page.
        """

        async def ask() -> str:
            try:
                return canonical_json(asdict(await self.reader.read_page(url)))
            except PageNotFound:
                return canonical_json(None)

        key = digest_value([self.identity, "read_page", url])
        page = json.loads(await _recall_call(self.store, key, self.identity, ask))
        if page is None:
            raise PageNotFound(url)
        return PageText(**page)


@dataclass(frozen=True, slots=True)
class RecordedSparql:
    """An endpoint that is asked each query once; of a query that can be divided a time-out is recorded, too."""

    endpoint: Sparql
    store: ReplyStore
    fresh: int = 0

    @property
    def identity(self) -> str:
        """The wrapped endpoint's identity."""
        return name_generation(self.endpoint.identity, self.fresh)

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return the recorded rows or ask for them.

        Raises:
            QueryTimeout: if no whole reply came, now or when it was recorded.
        """

        async def ask() -> str:
            try:
                return canonical_json([dict(row) for row in await self.endpoint.select(query, divisible)])
            except QueryTimeout as error:
                if not divisible:
                    raise
                return canonical_json({"timeout": str(error)})

        key = digest_value([self.identity, "select", query, divisible])
        rows = json.loads(await _recall_call(self.store, key, self.identity, ask))
        if isinstance(rows, dict):
            raise QueryTimeout(rows["timeout"])
        return tuple(rows)


async def _recall_call(store: ReplyStore, key: str, identity: str, ask: Callable[[], Awaitable[str]]) -> str:
    reply, cached = await store.recall(key, identity, ask)
    count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
    return reply
