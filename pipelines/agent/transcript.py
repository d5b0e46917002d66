"""The text protocol between the agent and its tools.

A turn of the model is ``<think>...</think>`` followed by exactly one ``<tool_call>{"name": ..., "arguments": {...}}
</tool_call>`` or one ``<answer>...</answer>``; a tool answers with ``<tool_response>...</tool_response>`` in a user
message. The tags are literal text, so a transcript means the same to every trainer that masks by role.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from pipelines.backends.protocols import Message
from pipelines.ids import canonical_json
from schemas.rollouts import Observation, RolloutImage, Step

TAG = re.compile(r"</?(?:think|tool_call|tool_response|answer)>")
SURROGATE = re.compile("[\ud800-\udfff]")
CALL_TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
ANSWER_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
SHAPE = "<think>...</think> and then one <tool_call>...</tool_call> or one <answer>...</answer>"
MEDIA = "image|video|audio"
OWN_TAGS = "think|tools?|tool_calls?|tool_response|answer|response"
TAGGED = r"<\s*/?\s*(?:{names})(?:\s[^<>]*)?/?\s*>"
CONTROL = (
    r"|</?\s*(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)\s*>"
    r"|<[|｜][^<>]*[|｜]>"
    r"|\[/?INST\]|<</?SYS>>"
)
TOKEN = re.compile(TAGGED.format(names=MEDIA) + CONTROL, re.IGNORECASE)
"""Media placeholders and the control tokens of common chat templates: nobody may write them."""
MARKUP = re.compile(TAGGED.format(names=f"{MEDIA}|{OWN_TAGS}") + CONTROL, re.IGNORECASE)
"""These, and our own tags, which only the assistant and the system message may write."""


class BadTurn(ValueError):
    """A reply that is no turn; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A parsed turn: a thought and one call, or a thought and the answer."""

    thought: str
    tool: str = ""
    """Empty when the turn answers."""
    arguments: str = ""
    """Canonical JSON object; empty when the turn answers."""
    answer: str = ""


def parse_turn(text: str) -> Turn:
    """Return a model's reply as a turn.

    White space around the blocks is free, any other text outside them is not. An empty answer is a turn, an empty
    thought is none.

    Raises:
        BadTurn: if tags are missing, unclosed, repeated or out of order, or the call is no JSON object of the form.
    """
    if _has_surrogate(text):
        raise BadTurn("the reply is no valid Unicode text")
    marks = list(TAG.finditer(text))
    tags = tuple(mark[0] for mark in marks)
    if tags not in (CALL_TAGS, ANSWER_TAGS):
        raise BadTurn(f"the tags are {' '.join(tags) or 'absent'}; a turn is {SHAPE}")
    ends = [mark.end() for mark in marks]
    outside = text[: marks[0].start()] + text[ends[1] : marks[2].start()] + text[ends[3] :]
    if outside.strip():
        raise BadTurn(f"there is text outside the blocks: {outside.strip()[:60]!r}; a turn is {SHAPE}")
    thought = text[ends[0] : marks[1].start()].strip()
    if not thought:
        raise BadTurn("the thought is empty")
    inner = text[ends[2] : marks[3].start()].strip()
    _refuse_markup(thought)
    _refuse_markup(inner)
    if tags == ANSWER_TAGS:
        return Turn(thought, answer=inner)
    name, arguments = _parse_call(inner)
    return Turn(thought, tool=name, arguments=arguments)


def _parse_call(source: str) -> tuple[str, str]:
    try:
        call = json.loads(
            source, object_pairs_hook=_make_object, parse_float=_parse_finite, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise BadTurn(f"the call is not JSON: {error}") from error
    if not isinstance(call, dict) or set(call) != {"name", "arguments"}:
        raise BadTurn('the call must be {"name": ..., "arguments": {...}} with these two keys')
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str) or not name.strip() or not isinstance(arguments, dict):
        raise BadTurn("name must be a non-empty string and arguments an object")
    canonical = canonical_json(arguments)
    if _has_surrogate(name + canonical):
        raise BadTurn("the call holds an unpaired surrogate, which is no character")
    _refuse_markup(name)
    _refuse_markup(canonical)
    return name.strip(), canonical


def _has_surrogate(text: str) -> bool:
    return SURROGATE.search(text) is not None


def _refuse_markup(text: str) -> None:
    """A placeholder or control token in a turn would be counted or tokenised as one by every trainer."""
    found = MARKUP.search(text)
    if found is not None:
        raise BadTurn(f"{found[0]!r} is a placeholder, control token or tag and may not stand inside a block")


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return made


def _parse_finite(literal: str) -> float:
    number = float(literal)
    if not isfinite(number):
        raise ValueError(f"{literal} is out of range")
    return number


def _refuse_constant(literal: str) -> float:
    raise ValueError(f"{literal} is no JSON number")


def render_turn(turn: Turn) -> str:
    """Return a turn as the text that :func:`parse_turn` reads back, as long as no part of it holds markup."""
    thought = f"<think>\n{turn.thought}\n</think>\n"
    if not turn.tool:
        return f"{thought}<answer>{turn.answer}</answer>"
    call = json.dumps({"name": turn.tool, "arguments": json.loads(turn.arguments)}, ensure_ascii=False)
    return f"{thought}<tool_call>\n{call}\n</tool_call>"


def neutralise_markup(text: str) -> str:
    """Strip media placeholders, control tokens and our own tags from text that came from outside.

    Trainers count ``<image>`` and tokenise ``<|im_end|>`` wherever they stand (LLaMA-Factory, issue 8440), and a page
    must not be able to speak as the model. Repeated until nothing is left, because removal can join a new tag.
    """
    stripped = MARKUP.sub("", text)
    while stripped != text:
        text, stripped = stripped, MARKUP.sub("", stripped)
    return text


def render_observation(observation: Observation) -> str:
    """Return an observation as the text of a user message; the class of an error or warning is its first line."""
    body = observation.text
    if observation.warning:
        body = f"warning: {observation.warning}\n{body}"
    if not observation.ok:
        body = f"error: {observation.error}\n{body}"
    return f"<tool_response>\n{body}\n</tool_response>"


def read_observation(text: str) -> str:
    """Return the inside of a rendered observation; text that is none comes back unchanged."""
    return text.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")


def render_messages(
    opening: Sequence[Message], steps: Sequence[Step], images: Sequence[RolloutImage]
) -> tuple[Message, ...]:
    """Return the messages that a model sees after some steps.

    Args:
        opening: system message and the question with ``img_1``.
        steps: what happened so far; replies go in as they came.
        images: every picture of the rollout; an observation's message shows the ones it produced.
    """
    shas = {image.id: image.picture.sha256 for image in images}
    messages = list(opening)
    for step in steps:
        messages.append(Message("assistant", step.reply))
        if step.observation is not None:
            shown = tuple(shas[name] for name in step.observation.images)
            messages.append(Message("user", render_observation(step.observation), shown))
    return tuple(messages)
