"""What is sent to ``/chat/completions``: JSON made with as little copying as pictures of some hundred kB allow."""

import asyncio
import base64
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import orjson

from pipelines.backends.protocols import ChatRequest, Message, ToolCall

Replies = Literal["schema", "json", "text"]
"""How a reply's shape is asked for: by JSON schema, as any JSON object, or not at all."""
KEPT_BYTES = 1 << 26
"""Encoded pictures that are kept at hand: attempts at one question show the same few."""

ReadPicture = Callable[[str], tuple[bytes, str]]
"""Returns the bytes and the media type of the picture of a sha256."""


@dataclass(frozen=True, slots=True)
class PictureParts:
    """Pictures as parts of a message, encoded once; the oldest give way when they are too many together.

    Attributes:
        read: where pictures come from; called in a thread.
        most: bytes kept.
    """

    read: ReadPicture
    most: int = KEPT_BYTES
    _kept: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def get(self, sha256: str) -> bytes:
        """Return the JSON of a part that shows the picture."""
        with self._lock:
            part = self._kept.get(sha256)
            if part is not None:
                self._kept.move_to_end(sha256)
                return part
        return await asyncio.to_thread(self._encode, sha256)

    def _encode(self, sha256: str) -> bytes:
        data, media_type = self.read(sha256)
        address = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
        part = orjson.dumps({"type": "image_url", "image_url": {"url": address}})
        with self._lock:
            self._kept[sha256] = part
            while sum(map(len, self._kept.values())) > self.most:
                self._kept.popitem(last=False)
        return part


async def make_body(name: str, request: ChatRequest, pictures: PictureParts, replies: Replies) -> bytes:
    """Return a request's body.

    Args:
        name: the model's name at the server.
        request: its inputs are not sent.
        pictures: encodes the pictures that messages show.
        replies: how the shape of its schema, if it has one, is asked for.
    """
    shown = {sha256: await pictures.get(sha256) for message in request.messages for sha256 in message.images}
    try:
        return orjson.dumps(_make_body(name, request, shown, replies))
    except orjson.JSONEncodeError:
        # Half of a surrogate pair is no text that could be sent. Looked for only here: texts that go out as they are
        # keep their UTF-8 from one turn of a conversation to the next.
        clean = tuple(_clean_message(message) for message in request.messages)
        return orjson.dumps(_make_body(name, replace(request, messages=clean), shown, replies))


def _make_body(name: str, request: ChatRequest, shown: Mapping[str, bytes], replies: Replies) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": name,
        "messages": [_render(message, shown) for message in request.messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": request.sample,
    }
    body |= _make_extras(request)
    if request.schema_json and replies == "schema":
        body["response_format"] = orjson.Fragment(_make_format(request.task, request.schema_json))
    elif request.schema_json and replies == "json":
        body["response_format"] = {"type": "json_object"}
    return body


def _make_extras(request: ChatRequest) -> dict[str, Any]:
    """Return what few requests have: a server that does not know a parameter must not see it without need."""
    extras: dict[str, Any] = {}
    if request.sampling.presence_penalty:
        extras["presence_penalty"] = request.sampling.presence_penalty
    if request.stop:
        extras["stop"] = list(request.stop)
    if request.tools:
        extras |= {"tools": orjson.Fragment(request.tools.encode()), "parallel_tool_calls": False}
    return extras


def _render(message: Message, shown: Mapping[str, bytes]) -> dict[str, Any]:
    if message.calls:
        calls = [_render_call(call) for call in message.calls]
        return {"role": message.role, "content": message.text, "tool_calls": calls}
    if message.call_id:
        return {"role": message.role, "content": message.text, "tool_call_id": message.call_id}
    if not message.images:
        return {"role": message.role, "content": message.text}
    parts = [orjson.Fragment(shown[sha256]) for sha256 in message.images]
    return {"role": message.role, "content": [*parts, {"type": "text", "text": message.text}]}


def _render_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _clean_message(message: Message) -> Message:
    calls = tuple(ToolCall(call.id, _clean(call.name), _clean(call.arguments)) for call in message.calls)
    return replace(message, text=_clean(message.text), calls=calls)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@lru_cache(maxsize=128)
def _make_format(task: str, schema_json: str) -> bytes:
    schema = {"name": task, "schema": orjson.loads(schema_json), "strict": False}
    return orjson.dumps({"type": "json_schema", "json_schema": schema})
