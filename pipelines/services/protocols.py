"""Protocols of the services that stages and the agent use. Frozen dataclasses in and out, no vendor types.

Recorded replies are found by a backend's ``identity`` and the request, so backends that may reply differently must have
different identities.
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
    call_id: str = ""
    """Id of the call that a ``tool`` message answers."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A native tool call as received; ``arguments`` are a JSON object if the call is valid."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings as they are asked for; None leaves one to the server.

    ``temperature`` 0.0 is greedy; ``max_tokens`` bounds the reply.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    presence_penalty: float | None = None

    def list_asked(self) -> dict[str, float | int]:
        """Return what is asked for by name, as it was set."""
        settings = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "presence_penalty": self.presence_penalty,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def describe(self) -> dict[str, float]:
        """Return what is asked for by name, as a manifest has it."""
        return {name: float(value) for name, value in self.list_asked().items()}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    Attributes:
        inputs: the typed values that the messages were rendered from, perhaps with the reference answer. Scripted
            models answer from them; adapters to real models send only the messages.
        schema_json: JSON schema of the reply, empty for free text.
        sample: number of one of several independent samples.
        tools: native tools, a JSON array of function schemas; empty for none.
        stop: texts at which the reply ends, without them.
    """

    task: str
    prompt: str
    messages: tuple[Message, ...]
    inputs: BaseModel
    sampling: Sampling = field(default_factory=Sampling)
    schema_json: str = ""
    sample: int = 0
    tools: str = ""
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply with what it took.

    Attributes:
        gpu_seconds: the request's share of the time of the GPUs behind the model.
        day: of the first reply, UTC, as ``2026-11-22``; empty for scripted players.
        reasoning: if the server returns it apart from the text.
        seconds: that the reply took when it was first made.
        key: under which it is recorded; empty if it is not.
        served: the model that the server says has replied, and its fingerprint if it gives one; empty if it says none.
    """

    text: str
    tokens_in: int
    tokens_out: int
    ended: Ending = "whole"
    gpu_seconds: float = 0.0
    retries: int = 0
    day: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    seconds: float = 0.0
    key: str = field(default="", compare=False)
    served: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class TextHit:
    """One passage found by a text search."""

    url: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class ImageHit:
    """One page found by an image search.

    ``distance`` is 0 for the same picture; ``thumbnail`` is a small copy of the found one in the workspace's image
    store.
    """

    url: str
    title: str
    snippet: str
    distance: float
    thumbnail: Picture | None = None


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
    """A piece of text that was read in a picture.

    Its label is ``text`` unless the engine names another kind. The box is left, top, right, bottom in pixels of the
    picture as displayed, at its own size; the confidence is in 0..1.
    """

    text: str
    label: str
    box: tuple[float, float, float, float]
    confidence: float


class PageNotFound(LookupError):
    """The reader has no such page: a result, not a failure of the service."""


class QueryTimeout(ServiceError):
    """No whole reply came within the limits of time and size; a smaller query may help."""


class Backend(Protocol):
    """Anything whose replies can be recorded."""

    @property
    def identity(self) -> str:
        """All that decides a reply except the request, such as endpoint, model, revision, precision or index digest."""


class ChatModel(Backend, Protocol):
    """A chat model, with or without pictures."""

    @property
    def name(self) -> str:
        """Model name as manifests and rows show it."""

    @property
    def reads_inputs(self) -> bool:
        """Whether ``ChatRequest.inputs`` decides the reply (scripted and template models) or only the messages."""

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply.

        Raises:
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached.
        """


class TextSearch(Backend, Protocol):
    """Full-text search."""

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` passages, best first."""


class ImageSearch(Backend, Protocol):
    """Search by picture."""

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        """Return at most ``count`` pages that show a like picture, nearest first; empty when nothing is near."""


class Ocr(Backend, Protocol):
    """Reading the text in a picture."""

    @property
    def name(self) -> str:
        """Short name, as rows and cards show it."""

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the text in reading order, empty if there is none.

        The picture file's bytes are enlarged by ``scale`` before they are read; boxes stay those of the picture itself.

        Raises:
            RecordFailed: if the picture cannot be decoded.
            ServiceError: if the engine is unavailable.
        """


class ImageEncoder(Backend, Protocol):
    """Embeds pictures and texts into one space, in which a picture is near a text that describes it."""

    @property
    def name(self) -> str:
        """Model name as rows and cards show it."""

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> NDArray[np.float32]:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            RecordFailed: if one cannot be decoded; the message names it.
        """

    async def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length a text, of shape (n, d), in the order given."""


class PageReader(Backend, Protocol):
    """Reading one page by URL."""

    async def read_page(self, url: str) -> PageText:
        """Return the page.

        Raises:
            PageNotFound: if there is no such page, or it cannot be read.
            ForbiddenAddress: by live readers, if it or its redirect is not of the public web.
            RateLimited, Unavailable, ConfigError: if a service behind it, or this machine's network, is unavailable.
        """


class Sparql(Backend, Protocol):
    """SELECT queries in plain SPARQL 1.1."""

    async def select(self, query: str, divisible: bool = False) -> tuple[SparqlRow, ...]:
        """Return every row, never a part of them.

        The query is a SELECT with its prefixes. ``divisible``: the caller can ask for less, so a time-out may be
        recorded.

        Raises:
            QueryTimeout: if no complete reply came.
            RateLimited: if the service asks to slow down.
            Unavailable: if the service cannot be reached or refuses the client.
            ConfigError: if the address is no endpoint, or the endpoint does not take the query.
        """
