"""The key of a chat request: the sha256 of its canonical JSON, made in microseconds because every request needs one.

The bytes are those of :func:`pipelines.ids.canonical_json`; orjson writes texts alike and is used for them alone, since
it writes some floats otherwise.
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
    messages = ",".join([_write_message(message) for message in request.messages])
    text = (
        f'{{"identity":{_write_text(model.identity)},"inputs":{inputs},"messages":[{messages}],'
        f'"sample":{request.sample},"sampling":{_write_sampling(request.sampling)},'
        f'"schema":{_write_text(request.schema_json)},"task":{task}}}'
    )
    # A broken reply that is quoted back in a repair may hold half a surrogate pair: it is a request like any other.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_reply(value: list[str | int]) -> str:
    """Return a reply as canonical JSON; one that is no valid Unicode is written in ASCII, for SQLite takes no other."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, separators=(",", ":"))


def _write_message(message: Message) -> str:
    fields = {"images": message.images, "role": message.role, "text": message.text}
    try:
        return orjson.dumps(fields).decode()
    except orjson.JSONEncodeError:
        return canonical_json(fields)


@lru_cache(maxsize=REMEMBERED)
def _write_text(text: str) -> str:
    return canonical_json(text)


@lru_cache(maxsize=REMEMBERED)
def _write_sampling(sampling: Sampling) -> str:
    return canonical_json(asdict(sampling))
