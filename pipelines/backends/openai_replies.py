"""What a reply of ``/chat/completions`` says: one choice, how it ended and what it took."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
from pydantic import BaseModel, Field, ValidationError

from pipelines.backends.openai_errors import NoReply, redact
from pipelines.backends.protocols import ChatReply, Ending, ToolCall

_GLIMPSE = 60
"""Characters of a reply that is none which are quoted."""
_WHOLE = ("stop", "eos_token", "stop_sequence", "tool_calls")
"""Reasons to finish that servers give for a reply that came to its own end."""


class _Function(BaseModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function | None = None


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    """The train of thought, as DeepSeek, vLLM before 0.11 and SGLang call it."""
    reasoning: Any = None
    """The same, as vLLM and OpenRouter call it; what is no text is none."""


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
    said = choice.message
    return ChatReply(
        _clean(said.content or said.refusal),
        usage.prompt_tokens,
        usage.completion_tokens,
        _read_ending(choice),
        calls=tuple(_read_call(call) for call in said.tool_calls or ()),
        reasoning=_clean(said.reasoning_content or said.reasoning),
    )


def _read_call(call: _Call) -> ToolCall:
    """Return a call as it came; what it lacks is empty, for the agent to refuse."""
    function = call.function or _Function()
    arguments = function.arguments
    text = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else arguments
    return ToolCall(_clean(call.id), _clean(function.name), _clean(text))


def _clean(text: object) -> str:
    # Half of a surrogate pair can be written in JSON and nowhere else.
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


def cut_at_stop(reply: ChatReply, stop: Sequence[str]) -> ChatReply:
    """Return a reply up to the first of the texts that end it: some servers leave that text in, others know none.

    What follows it was not asked for, so a reply that was cut after it is whole.
    """
    found = [place for text in stop if (place := reply.text.find(text)) >= 0]
    if not found:
        return reply
    ended: Ending = "whole" if reply.ended == "cut" else reply.ended
    return replace(reply, text=reply.text[: min(found)], ended=ended)


def _read_ending(choice: _Choice) -> Ending:
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return "refused"
    # A reason nobody knows is no reason to believe that nothing is missing.
    return "whole" if choice.finish_reason in _WHOLE else "cut"
