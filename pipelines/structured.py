"""Structured replies: what a model said, held to one JSON object of one shape; all else is a bad reply with a name."""

import json
import re
from collections import Counter
from math import isfinite
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from pipelines.backends.protocols import ChatReply

ReplyT = TypeVar("ReplyT", bound=BaseModel)
LONGEST_REPLY = 1 << 18
"""Characters; several times what the longest reply to any of our prompts takes."""
LONGEST_TEXT = 4000
"""Characters of one text in a reply: a question, a descriptor, an answer."""
_LONGEST_PROBLEM = 500
_PROBLEMS = 5
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_REFUSAL = re.compile(
    r"\W*(?:(?:i am |i'm )?(?:very |so |truly )?sorry\b.{0,60}?\b(?:can't|cannot|can not|won't|unable|not able)\b"
    r"|(?:unfortunately,? |i apologi[sz]e,? (?:but )?)?i (?:can't|cannot|can not|won't|will not|am (?:un|not )able)\b"
    r".{0,40}?\b(?:help|assist|comply|provide|answer|fulfil|continue|generate|create|write|do (?:that|this))"
    r"|as an ai\b)",
    re.IGNORECASE | re.DOTALL,
)
"""How refusals begin that are put into the shape that was asked for."""
_OWN_WORDS = re.compile(r"\.(?:question|answer|descriptors\.\d+\.text)")
"""Places of a reply that a model words itself. Elsewhere it copies what it was given, and titles say anything."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class BadReply(ValueError):
    """A reply that cannot be used.

    Args:
        problem: what is wrong with it, in words that the model is told.
        code: a failed row's error, such as ``cut-reply``.
    """

    def __init__(self, problem: str, code: str = "unparseable-reply") -> None:
        super().__init__(problem.encode("utf-8", "replace").decode()[:_LONGEST_PROBLEM])
        self.code = code


def read_reply(said: ChatReply, model: type[ReplyT]) -> ReplyT:
    """Return what a reply says; one that was cut or refused says nothing, even if an object can be found in it.

    Raises:
        BadReply: if there is nothing that can be used.
    """
    if said.ended == "refused":
        raise BadReply("it refuses to answer", "refused-reply")
    if said.ended == "cut":
        raise BadReply("it was cut off before its end; be brief", "cut-reply")
    if not said.text.strip():
        raise BadReply("it is empty", "empty-reply")
    return parse_reply(said.text, model)


def parse_reply(text: str, model: type[ReplyT]) -> ReplyT:
    """Return the one JSON object of a reply as its model; a train of thought before it and text around it are ignored.

    Where several objects differ, or one is broken, no rule can tell the model's own from one that it quotes: then
    there is none. So nothing inside another object, or left over of one that was cut, is ever taken for the reply.

    Raises:
        BadReply: if there is no such object, it does not have the model's shape, or it holds what is no text.
    """
    if len(text) > LONGEST_REPLY:
        raise BadReply(f"it has {len(text):,} characters, allowed are {LONGEST_REPLY:,}")
    try:
        parsed = model.model_validate(_find_object(_skip_thought(text)), strict=False)
        _check_texts(parsed.model_dump(mode="python"))
        # An escaped half of a surrogate pair is valid JSON and no text: it could not be written to a file.
        parsed.model_dump_json()
    except RecursionError as error:
        raise BadReply("the JSON object is nested too deeply") from error
    except PydanticSerializationError as error:
        raise BadReply(f"the JSON object holds what is no text: {error}") from error
    except ValidationError as error:
        told = error.errors(include_url=False, include_context=False, include_input=False)[:_PROBLEMS]
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in told)
        raise BadReply(f"the JSON object does not fit: {problems}") from error
    return parsed


def _skip_thought(text: str) -> str:
    """Return what follows a train of thought, which servers without a reasoning parser leave in the reply.

    Raises:
        BadReply: if the thought has no end.
    """
    _, end, rest = text.rpartition(_THOUGHT_END)
    if not end and rest.lstrip().startswith(_THOUGHT):
        raise BadReply("its thinking has no end")
    return rest


def _find_object(text: str) -> dict[str, object]:
    found: dict[str, object] | None = None
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise BadReply(f"the JSON object is broken or incomplete ({error.msg})") from error
        except ValueError as error:
            raise BadReply(f"the JSON object cannot be read: {error}") from error
        if found is not None and value != found:
            raise BadReply("it holds several JSON objects that differ")
        found = value
        start = text.find("{", end)
    if found is None:
        raise BadReply("the reply holds no JSON object")
    return found


def _check_texts(value: object, place: str = "") -> None:
    """Hold a reply's texts to be some: short, no control characters, no refusal, and something in each by itself.

    A blank one in a list is one candidate of several, refused by the checks of candidates.

    Raises:
        BadReply: naming the first that is none.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            if not place and isinstance(part, str) and not part.strip():
                raise BadReply(f"the JSON object does not fit: {name} is blank", "empty-reply")
            _check_texts(part, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            _check_texts(part, f"{place}.{index}")
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise BadReply(
                f"the JSON object does not fit: {place[1:]} has {len(value):,} of {LONGEST_TEXT:,} characters"
            )
        if _CONTROL.search(value):
            raise BadReply(f"the JSON object does not fit: {place[1:]} holds control characters")
        if _OWN_WORDS.fullmatch(place) and _REFUSAL.match(value.replace("’", "'")):
            raise BadReply(f"{place[1:]} refuses to answer", "refused-reply")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _read_float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise ValueError(f"{digits[:20]} is too large a number")
    return value


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"key {twice[:40]!r} stands in it more than once")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, parse_constant=_refuse_constant, parse_float=_read_float)
