"""The key of a chat request: the sha256 of its canonical JSON, made in microseconds because every request needs one.

The bytes are those of :func:`pipelines.ids.canonical_json`; orjson writes texts alike and is used for them alone, since
it writes some floats otherwise. What a request could not have when the first replies were recorded is left out where it
is empty, so that those are still found.
"""

import hashlib
import json
from dataclasses import asdict
from functools import lru_cache

import orjson

from pipelines.backends.protocols import ChatModel, ChatRequest, Message, Sampling
from pipelines.ids import canonical_json

REMEMBERED = 256
"""Schemas, identities and samplings whose JSON is kept: a stage has a handful of them for millions of requests."""


def make_chat_key(model: ChatModel, request: ChatRequest) -> str:
    """Return the key of a chat request (64 hex digits); inputs count only where they decide the reply."""
    inputs, task = "null", '""'
    if model.reads_inputs:
        inputs, task = canonical_json(request.inputs), _write_text(request.task)
    stop = f'"stop":{canonical_json(request.stop)},' if request.stop else ""
    tools = f',"tools":{_write_text(request.tools)}' if request.tools else ""
    before = f'{{"identity":{_write_text(model.identity)},"inputs":{inputs},"messages":['
    after = (
        f'],"sample":{request.sample},"sampling":{_write_sampling(request.sampling)},'
        f'"schema":{_write_text(request.schema_json)},{stop}"task":{task}{tools}}}'
    )
    digest = hashlib.sha256(_encode(before))
    # Piece by piece, in bytes: texts of a conversation keep their UTF-8 once it was made, and nothing large is copied.
    for number, message in enumerate(request.messages):
        digest.update(b"," if number else b"")
        digest.update(_write_message(message))
    digest.update(_encode(after))
    return digest.hexdigest()


def _encode(text: str) -> bytes:
    # A broken reply that is quoted back in a repair may hold half a surrogate pair: it is a request like any other.
    return text.encode("utf-8", "surrogatepass")


def write_reply(value: list[object]) -> str:
    """Return a reply as canonical JSON; one that is no valid Unicode is written in ASCII, for SQLite takes no other."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, separators=(",", ":"))


def _write_message(message: Message) -> bytes:
    fields: dict[str, object] = {"images": message.images, "role": message.role, "text": message.text}
    if message.calls or message.call_id:
        calls = [asdict(call) for call in message.calls]
        fields = {"call_id": message.call_id, "calls": calls, **fields}
    try:
        return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return _encode(canonical_json(fields))


@lru_cache(maxsize=REMEMBERED)
def _write_text(text: str) -> str:
    return canonical_json(text)


@lru_cache(maxsize=REMEMBERED)
def _write_sampling(sampling: Sampling) -> str:
    settings = asdict(sampling)
    if not sampling.presence_penalty:
        del settings["presence_penalty"]
    return canonical_json(settings)
