"""What a reply of ``/chat/completions`` says: one choice, how it ended and what it took."""

import json

import orjson
from pydantic import BaseModel, Field, ValidationError

from pipelines.backends.openai_errors import NoReply, redact
from pipelines.backends.protocols import ChatReply, Ending

_GLIMPSE = 60
"""Characters of a reply that is none which are quoted."""
_WHOLE = ("stop", "eos_token", "stop_sequence")
"""Reasons to finish that servers give for a reply that came to its own end."""


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


def read_completion(body: bytes, key: str) -> ChatReply:
    """Return a completion's first choice.

    Args:
        body: what the server sent.
        key: what is never quoted of it, empty for none.

    Raises:
        NoReply: if the body is no completion.
    """
    try:
        completion = _Completion.model_validate(_read_json(body))
    except (ValueError, RecursionError) as error:
        kind = "no completion" if isinstance(error, ValidationError) else "no JSON"
        # The error holds the body, and a body may hold the key.
        raise NoReply(f"{kind} but {redact(body, key)[:_GLIMPSE]!r}") from None
    return _take_choice(completion)


def _read_json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        # Half of a surrogate pair can be written in JSON, and some servers do.
        return json.loads(body)


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
