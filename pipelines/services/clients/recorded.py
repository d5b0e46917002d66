"""Recording around services: each request is sent once and its reply replayed from then on.

A key covers the service's identity and the exact request. A changed prompt, picture, sampling setting or model gives a
different key, so a stale reply cannot be found.
"""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, astuple, dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from pipelines.ids import canonical_json, digest_value
from pipelines.services.addresses import ForbiddenAddress
from pipelines.services.clients.replies import ReplyStore, name_epoch
from pipelines.services.metering import Budget, Price, add_waited, count_usage
from pipelines.services.protocols import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ImageHit,
    PageNotFound,
    PageText,
    PictureFile,
    QueryTimeout,
    SparqlRow,
    TextBlock,
    TextHit,
    ToolCall,
)
from pipelines.services.renewal import find_renewal
from pipelines.services.traffic import following_request
from schemas.datasets import Picture
from schemas.manifest import RoleUsage, Usage


def make_chat_key(model: ChatModel, request: ChatRequest) -> str:
    """Return the key of a chat request (64 hex digits): the sha256 of its JSON.

    Task and inputs count only for models that read them.
    """
    value = {
        "identity": model.identity,
        "inputs": request.inputs.model_dump(mode="json") if model.reads_inputs else None,
        "messages": request.messages,
        "sample": request.sample,
        "sampling": request.sampling.list_asked(),
        "schema": request.schema_json,
        "stop": request.stop,
        "task": request.task if model.reads_inputs else "",
        "tools": request.tools,
    }
    try:
        return hashlib.sha256(orjson.dumps(value)).hexdigest()
    except orjson.JSONEncodeError:
        # A broken reply that a repair request quotes may hold a lone surrogate.
        return hashlib.sha256(json.dumps(value, default=asdict).encode()).hexdigest()


def write_reply(value: list[object]) -> str:
    """Return a reply as canonical JSON, in ASCII if it holds lone surrogates, which SQLite refuses."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class RecordedChat:
    """A chat model whose replies are recorded, so that each is paid for once.

    ``epoch`` is the cache epoch of its ``role``; usage is counted by role. The budget is checked before each request
    that is not recorded.
    """

    model: ChatModel
    store: ReplyStore
    price: Price = field(default_factory=Price)
    budget: Budget | None = None
    epoch: int = 0
    role: str = ""

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self.model.name

    @property
    def identity(self) -> str:
        """The wrapped model's identity, in the epoch of its role."""
        return name_epoch(self.model.identity, self.epoch)

    @property
    def reads_inputs(self) -> bool:
        """As the wrapped model."""
        return self.model.reads_inputs

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the recorded reply or request one.

        A new reply counts in usage and budget. The time and day of its first making go to the open stopwatch each time.

        Raises:
            BudgetSpent: if the reply is not recorded and the run has spent what it may.
        """

        async def ask() -> str:
            since = time.monotonic()
            with following_request():
                reply = await self.model.chat(request)
            cost, discount = self.price.charge(reply.tokens_in, reply.tokens_out, reply.gpu_seconds)
            usage = Usage(
                calls=1,
                retries=reply.retries,
                tokens_in=reply.tokens_in,
                tokens_out=reply.tokens_out,
                gpu_seconds=reply.gpu_seconds,
                cost=cost,
                discount=discount,
            )
            count_usage(self._name_role(usage))
            if self.budget is not None:
                self.budget.add(usage)
            if self.reads_inputs:
                return _write_chat(reply, 0.0, "")
            return _write_chat(reply, reply.seconds or time.monotonic() - since, reply.day or _name_day())

        permit = None if self.budget is None else self.budget.check
        key = make_chat_key(self, request)
        if (before := find_renewal()) is not None:
            await self.store.retire(key, before)
        text, cached = await self.store.recall(key, self.identity, ask, permit)
        reply = _read_chat(text, key)
        # Who replied counts on each use, so that a stage that is made again from recordings says it, too.
        served = {f"{self.name}: {reply.served}": 1} if reply.served else {}
        if cached or served:
            count_usage(self._name_role(Usage(cached_calls=int(cached), served=served)))
        add_waited(reply.seconds, reply.day)
        return reply

    def _name_role(self, usage: Usage) -> Usage:
        """Return usage that also says in which role the model had it."""
        part = RoleUsage(
            calls=usage.calls,
            cached_calls=usage.cached_calls,
            tokens=usage.tokens_in + usage.tokens_out,
            cost=usage.cost,
        )
        return usage.model_copy(update={"roles": {f"{self.role}: {self.name}": part}}) if self.role else usage


def _name_day() -> str:
    return datetime.now(UTC).date().isoformat()


def _write_chat(reply: ChatReply, seconds: float, day: str) -> str:
    """Return a reply as a JSON list."""
    taken = [reply.tokens_in, reply.tokens_out, reply.ended, day, round(seconds * 1000.0)]
    return write_reply([reply.text, *taken, [astuple(call) for call in reply.calls], reply.reasoning, reply.served])


def _read_chat(recorded: str, key: str) -> ChatReply:
    text, tokens_in, tokens_out, ended, day, milliseconds, calls, reasoning, served = json.loads(recorded)
    made, seconds = tuple(ToolCall(*call) for call in calls), milliseconds / 1000.0
    return ChatReply(text, tokens_in, tokens_out, ended, 0.0, 0, day, made, reasoning, seconds, key, served)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A service other than a model, of any kind, whose replies are recorded.

    With ``live``, the time and day of each reply are recorded, too. Failures are not, but for those that are results.
    """

    service: Any
    store: ReplyStore
    epoch: int = 0
    live: bool = False

    @property
    def name(self) -> str:
        """The wrapped service's name."""
        return str(self.service.name)

    @property
    def identity(self) -> str:
        """The wrapped service's identity in its epoch."""
        return name_epoch(self.service.identity, self.epoch)

    async def recall(self, call: Sequence[object], ask: Callable[[], Awaitable[object]]) -> Any:  # noqa: ANN401 - JSON
        """Return the recorded reply to a call, or request and record it; both are JSON values."""

        async def answer() -> str:
            since = time.monotonic()
            with following_request():
                reply = await ask()
            if not self.live:
                return canonical_json(reply)
            seconds = round(time.monotonic() - since, 3)
            return canonical_json({"seconds": seconds, "day": _name_day(), "reply": reply})

        key = digest_value([self.identity, *call])
        recorded, cached = await self.store.recall(key, self.identity, answer)
        count_usage(Usage(cached_calls=1) if cached else Usage(calls=1))
        reply = json.loads(recorded)
        if not self.live:
            return reply
        add_waited(reply["seconds"], reply["day"])
        return reply["reply"]

    async def _recall_all(self, call: Sequence[object], ask: Callable[[], Awaitable[Sequence[Any]]]) -> list[Any]:
        """Return recorded records as dicts, or request and record them; ``ask`` returns dataclasses."""

        async def answer() -> object:
            return [asdict(each) for each in await ask()]

        found: list[Any] = await self.recall(call, answer)
        return found

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return recorded passages or search."""
        call = ["search_text", query, count]
        hits = await self._recall_all(call, lambda: self.service.search_text(query, count))
        return tuple(TextHit(**hit) for hit in hits)

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return recorded pages or search; the key is the picture's sha256, never its path."""
        call = ["search_image", picture.sha256, count]
        hits = await self._recall_all(call, lambda: self.service.search_image(picture, count))
        shown = [Picture.model_validate(hit["thumbnail"]) if hit.get("thumbnail") else None for hit in hits]
        return tuple(ImageHit(**hit | {"thumbnail": small}) for hit, small in zip(hits, shown, strict=True))

    async def read_page(self, url: str) -> PageText:
        """Return the recorded page or read it.

        Raises:
            PageNotFound: if there is no such page.
            ForbiddenAddress: if it, or where it leads to, may not be read, now or when it was recorded.
        """

        async def ask() -> object:
            try:
                return asdict(await self.service.read_page(url))
            except PageNotFound:
                return None
            except ForbiddenAddress as error:
                return {"forbidden": str(error)}

        page = await self.recall(["read_page", url], ask)
        if page is None:
            raise PageNotFound(url)
        if "forbidden" in page:
            raise ForbiddenAddress(page["forbidden"])
        return PageText(**page)

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return the recorded rows or ask for them; time-outs of divisible queries are recorded, too.

        Raises:
            QueryTimeout: if no complete reply came, now or when it was recorded.
        """

        async def ask() -> object:
            try:
                return [dict(row) for row in await self.service.select(query, divisible)]
            except QueryTimeout as error:
                if not divisible:
                    raise
                return {"timeout": str(error)}

        rows = await self.recall(["select", query, divisible], ask)
        if isinstance(rows, dict):
            raise QueryTimeout(rows["timeout"])
        return tuple(rows)

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the recorded blocks or read the picture, once at each scale.

        Raises:
            RecordFailed, ServiceError: as the wrapped engine.
        """
        call = ["read_text", hashlib.sha256(data).hexdigest(), scale]
        blocks = await self._recall_all(call, lambda: self.service.read_text(data, scale))
        return tuple(TextBlock(**block | {"box": tuple(block["box"])}) for block in blocks)
