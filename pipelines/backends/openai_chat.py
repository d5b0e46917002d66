"""Chat with any server that speaks OpenAI's ``/chat/completions`` (vLLM's among them), by OpenAI's own client.

Only the messages of a request are sent; its inputs stay here. What a reply says is not judged here: one that was cut
or refused is marked as such, and ``pipelines.prompting`` decides.
"""

import asyncio
import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from pydantic import BaseModel, Field, ValidationError

from pipelines.backends.image_metadata import read_wait
from pipelines.backends.openai_errors import NoReply, Refusal, redact
from pipelines.backends.openai_http import Clients, make_client
from pipelines.backends.protocols import ChatReply, ChatRequest, Ending, Message
from pipelines.errors import ConfigError, SynthError, Unavailable

VERSION = 1
_GLIMPSE = 60
"""Characters of a reply that is none which are quoted."""
_WHOLE = ("stop", "eos_token", "stop_sequence")
"""Reasons to finish that servers give for a reply that came to its own end."""

ReadPicture = Callable[[str], tuple[bytes, str]]
"""Returns the bytes and the media type of the picture of a sha256."""


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


def refuse_picture(sha256: str) -> tuple[bytes, str]:
    """Stand in for a picture store where there is none.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(f"picture {sha256}: this model was built without a picture store")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A model behind an OpenAI-compatible address.

    Attributes:
        name: the model's name at the server; rows and manifests show it, too.
        base_url: address that ``/chat/completions`` is appended to.
        api_key_env: name of the environment variable that holds the key, empty for a server that wants none. The key
            is read when a connection is made and kept nowhere else.
        revision: what tells two models of one name apart.
        timeout: seconds for a whole reply.
        read_picture: where pictures come from; called in a thread.
        connections: most requests under way at once.
        tries: how often a request is sent that got no whole reply.
        patience: seconds before it is sent again, doubled each time.

    Raises:
        ConfigError: if the address is none, or the variable is not set or holds what can be no key.
    """

    name: str
    base_url: str
    api_key_env: str = ""
    revision: str = ""
    timeout: float = 120.0
    read_picture: ReadPicture = field(default=refuse_picture, repr=False)
    connections: int = 64
    tries: int = 3
    patience: float = 2.0
    clients: Clients = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_address(self.name, self.base_url)
        self._read_key()
        object.__setattr__(self, "clients", Clients(self._make_client))

    @property
    def identity(self) -> str:
        """Name and revision; without a revision the address takes its place.

        Whoever names a revision vouches for it wherever the model is served, so a server that moves to another host
        costs nothing again. Without one, only the address can tell two models of one name apart.
        """
        return f"openai@{VERSION}:{self.name}:{self.revision or self.base_url}"

    @property
    def reads_inputs(self) -> bool:
        """Never: the messages are all that is sent."""
        return False

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the reply, whatever it says; one without text is empty.

        Raises:
            RateLimited: if the service asks to slow down.
            Unavailable: if no whole reply came in any of the tries, or nothing is left on the account.
            ConfigError: if the service knows no such model, key or parameter; no other record would fare better.
            RecordFailed: if it refuses this very prompt: too long, or not to its liking.
        """
        body = await self._make_body(request)
        said = ""
        for attempt in range(self.tries):
            if attempt:
                await asyncio.sleep(self.patience * 2 ** (attempt - 1))
            try:
                return self._read_reply(await self._post(body))
            except NoReply as error:
                said = str(error)
        raise Unavailable(f"{self._place}: {said}, {self.tries} times; run again later")

    @property
    def _place(self) -> str:
        return f"{self.base_url}, model {self.name}"

    @property
    def _hidden(self) -> str:
        return self._read_key() if self.api_key_env else ""

    def _read_key(self) -> str:
        if not self.api_key_env:
            return "none"
        key = os.environ.get(self.api_key_env, "")
        if not key:
            raise ConfigError(
                f"model {self.name}: environment variable {self.api_key_env} is not set; it holds the key"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            # A key that is no header's value would be quoted in the client's error.
            raise ConfigError(
                f"model {self.name}: environment variable {self.api_key_env} holds white space or no ASCII"
            )
        return key

    async def _make_body(self, request: ChatRequest) -> dict[str, Any]:
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [await self._render(message) for message in request.messages],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": request.sample,
        }
        if request.schema_json:
            schema = {"name": request.task, "schema": json.loads(request.schema_json), "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    async def _render(self, message: Message) -> dict[str, Any]:
        if not message.images:
            return {"role": message.role, "content": message.text}
        parts: list[dict[str, Any]] = []
        for sha256 in message.images:
            data, media_type = await asyncio.to_thread(self.read_picture, sha256)
            address = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": address}})
        return {"role": message.role, "content": [*parts, {"type": "text", "text": message.text}]}

    def _make_client(self) -> AsyncOpenAI:
        return make_client(self.base_url, self._read_key(), self.timeout, self.connections)

    async def _post(self, body: dict[str, Any]) -> bytes:
        try:
            async with asyncio.timeout(self.timeout), self.clients.open() as client:
                reply = await client.chat.completions.with_raw_response.create(**body)
                content: bytes = reply.content
                return content
        except TimeoutError as error:
            raise NoReply(f"no whole reply in {self.timeout:g} s") from error
        except APIConnectionError as error:
            cause = redact(str(error.__cause__).encode(), self._hidden)
            raise NoReply(f"no whole reply ({type(error.__cause__).__name__}: {cause})") from None
        except APIStatusError as error:
            # What the server said may quote the key: nothing of it goes on beside what is quoted here.
            raise self._explain(error) from None

    def _explain(self, error: APIStatusError) -> SynthError | NoReply:
        """Return what a reply that is no success means."""
        response = error.response
        text = redact(response.content, self._hidden)
        return Refusal(self._place, error.status_code, read_wait(response.headers), text, self.api_key_env).explain()

    def _read_reply(self, body: bytes) -> ChatReply:
        """Return a completion's first choice.

        Raises:
            NoReply: if the body is no completion.
        """
        try:
            completion = _Completion.model_validate(json.loads(body))
        except (ValueError, RecursionError) as error:
            kind = "no completion" if isinstance(error, ValidationError) else "no JSON"
            # The error holds the body, and a body may hold the key.
            raise NoReply(f"{kind} but {redact(body, self._hidden)[:_GLIMPSE]!r}") from None
        return _take_choice(completion)


def _check_address(name: str, url: str) -> None:
    try:
        address = urlsplit(url)
        served = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        # Half an IPv6 address, or a port that is none.
        served = False
    if "@" in url or "?" in url or "#" in url:
        raise ConfigError(f"model {name}: base_url has a user, password or parameters; give the address alone")
    if not served:
        raise ConfigError(f"model {name}: base_url {url!r}; expected such as http://127.0.0.1:8000/v1")


def _take_choice(completion: _Completion) -> ChatReply:
    """Return a completion's first choice, empty where it has none."""
    usage = completion.usage or _Usage()
    if not completion.choices:
        return ChatReply("", usage.prompt_tokens, usage.completion_tokens)
    choice = completion.choices[0]
    # Half of a surrogate pair can be written in JSON and nowhere else.
    text = (choice.message.content or choice.message.refusal or "").encode("utf-8", "replace").decode()
    return ChatReply(text, usage.prompt_tokens, usage.completion_tokens, _read_ending(choice))


def _read_ending(choice: _Choice) -> Ending:
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return "refused"
    # A reason nobody knows is no reason to believe that nothing is missing.
    return "whole" if choice.finish_reason in _WHOLE else "cut"
