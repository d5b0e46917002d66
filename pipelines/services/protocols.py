"""Protocols of the services that stages and the agent use. Frozen dataclasses in and out, no vendor types.

Every backend has an ``identity``: everything that decides its replies beside the request (endpoint, model, revision,
index digest). A recorded reply is found by identity and request, so two backends that could answer differently must
have different identities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from pipelines.errors import ServiceError
from schemas.datasets import Picture

ChatRole = Literal["system", "user", "assistant", "tool"]
Ending = Literal["whole", "cut", "refused"]
"""How a reply ended: complete, cut at a limit, or refused by the model or a filter."""
SparqlRow = Mapping[str, str]
"""One solution: variable to lexical value, IRIs whole, without datatype and language; unbound variables are absent."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; ``images`` are sha256 names in the workspace's image store, shown before the text."""

    role: ChatRole
    text: str
    images: tuple[str, ...] = ()
    calls: tuple["ToolCall", ...] = ()
    """Native tool calls of an assistant's message."""
    call_id: str = ""
    """Of a ``tool`` message: the call it answers."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A native tool call as received."""

    id: str
    name: str
    arguments: str
    """As received; a JSON object if the model made a valid call."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings. ``temperature`` 0.0 is greedy; ``max_tokens`` bounds the reply."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 2048
    presence_penalty: float = 0.0

    def describe(self) -> dict[str, float]:
        """Return the settings by name; settings added later are left out at their default."""
        settings = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": float(self.max_tokens)}
        return settings | ({"presence_penalty": self.presence_penalty} if self.presence_penalty else {})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    ``inputs`` are the typed values the messages were rendered from. ``templates`` and ``scripted`` answer from them;
    adapters to real models send ``messages`` and never look at ``inputs``, which may hold the reference answer.
    """

    task: str
    prompt: str
    messages: tuple[Message, ...]
    inputs: BaseModel
    sampling: Sampling = field(default_factory=Sampling)
    schema_json: str = ""
    """JSON schema the reply should follow, empty for free text."""
    sample: int = 0
    """Which of several independent samples this is; part of the request's identity."""
    tools: str = ""
    """Native tools on offer, a JSON array of function schemas; empty for none."""
    stop: tuple[str, ...] = ()
    """Texts at which the reply ends; they are not part of it."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply with what it took."""

    text: str
    tokens_in: int
    tokens_out: int
    ended: Ending = "whole"
    gpu_seconds: float = 0.0
    """This request's share of the time of the GPUs behind the model."""
    retries: int = 0
    """Number of retries before this reply."""
    day: str = ""
    """Day of the first reply, UTC, as ``2026-11-22``; empty for scripted players."""
    calls: tuple[ToolCall, ...] = ()
    """Native tool calls."""
    reasoning: str = ""
    """The reasoning, if the server returns it apart from the text."""
    seconds: float = 0.0
    """Seconds that the reply took when it was first made."""


@dataclass(frozen=True, slots=True)
class TextHit:
    """One passage found by a text search."""

    url: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class ImageHit:
    """One page found by an image search; ``distance`` is 0 for the same picture, larger for less alike."""

    url: str
    title: str
    snippet: str
    distance: float
    thumbnail: Picture | None = None
    """Small copy of the picture that was found, in the workspace's image store."""


@dataclass(frozen=True, slots=True)
class PageText:
    """A page as a reader returns it: plain text, infobox rendered as ``Key: value`` lines before the prose."""

    url: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture on disk under its content's name."""

    sha256: str
    path: Path


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A piece of text that was read in a picture."""

    text: str
    label: str
    """Kind of block: ``text``, ``title`` and so on; ``text`` if the engine does not say."""
    box: tuple[float, float, float, float]
    """Left, top, right, bottom in pixels of the picture as displayed, at its own size."""
    confidence: float
    """0..1."""


class PageNotFound(LookupError):
    """The reader has no such page. An answer about the world, not a failure of the service."""


class QueryTimeout(ServiceError):
    """No whole reply came within the limits of time and size; a smaller query may help."""


class ChatModel(Protocol):
    """A chat model, with or without pictures."""

    @property
    def name(self) -> str:
        """Model name as manifests and rows show it."""

    @property
    def identity(self) -> str:
        """All that decides the reply beside the request."""

    @property
    def reads_inputs(self) -> bool:
        """Whether ``ChatRequest.inputs`` decides the reply (scripted and template models) or only the messages."""

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply.

        Raises:
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached.
        """


class TextSearch(Protocol):
    """Full-text search."""

    @property
    def identity(self) -> str:
        """Index digest or endpoint."""

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` passages, best first."""


class ImageSearch(Protocol):
    """Search by picture."""

    @property
    def identity(self) -> str:
        """Index digest or endpoint."""

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages that show a like picture, nearest first; empty when nothing is near."""


class Ocr(Protocol):
    """Reading the text in a picture."""

    @property
    def name(self) -> str:
        """Short name, as rows and cards show it."""

    @property
    def identity(self) -> str:
        """Engine, version, models and settings."""

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return what can be read, in reading order; empty when there is nothing.

        Args:
            data: a picture file's bytes.
            scale: factor by which the picture is enlarged before it is read; boxes stay those of the picture itself.

        Raises:
            RecordFailed: if the picture cannot be decoded.
            ServiceError: if the engine is away.
        """


class ImageEncoder(Protocol):
    """Embeds pictures and texts into one space, in which a picture is near a text that describes it."""

    @property
    def name(self) -> str:
        """Model name as rows and cards show it."""

    @property
    def identity(self) -> str:
        """Architecture, weights and precision: all that decides an embedding."""

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> NDArray[np.float32]:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            RecordFailed: if one cannot be decoded; the message names it.
        """

    async def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length a text, of shape (n, d), in the order given."""


class PageReader(Protocol):
    """Reading one page by URL."""

    @property
    def identity(self) -> str:
        """Corpus digest or endpoint."""

    async def read_page(self, url: str) -> PageText:
        """Return the page.

        Raises:
            PageNotFound: if there is no such page, or none that can be read.
            ForbiddenAddress: by live readers, if it or what it leads to is not of the public web
                (:mod:`pipelines.services.addresses`).
            RateLimited, Unavailable, ConfigError: if a service behind it, or this machine's network, is away.
        """


class Sparql(Protocol):
    """SELECT queries in plain SPARQL 1.1."""

    @property
    def identity(self) -> str:
        """Endpoint."""

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return every row, never a part of them.

        Args:
            query: a SELECT query with its prefixes.
            divisible: whether the caller can ask for less, so that a time-out may be recorded like a reply.

        Raises:
            QueryTimeout: if no complete reply came.
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached or does not want us.
            ConfigError: if the address is no endpoint, or the endpoint does not take the query.
        """
