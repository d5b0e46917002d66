"""How the scripted teacher hears and speaks a dialect: turns as text, or as native tool calls."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pipelines.agent.dialects import find_dialect
from pipelines.agent.toolforms import UnsayableTurn
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_observation, render_turn
from pipelines.backends.protocols import ChatReply, Message, ToolCall
from pipelines.ids import canonical_json

NO_TURN = Turn("")


def split_turns(messages: Sequence[Message]) -> Iterator[tuple[Message, tuple[Message, ...]]]:
    """Yield what was said and the messages that came back, from the first turn on."""
    places = [place for place, message in enumerate(messages) if message.role == "assistant"]
    for place, end in pairwise((*places, len(messages))):
        yield messages[place], tuple(messages[place + 1 : end])


def hear_turn(said: Message, dialect: str) -> Turn:
    """Return an own turn as it was said; one that is none, and ended nothing, calls no tool."""
    if said.calls:
        call = said.calls[0]
        return Turn(said.text, call.name, canonical_json(json.loads(call.arguments)))
    try:
        return parse_turn(said.text, find_dialect(dialect))
    except BadTurn:
        return NO_TURN


def hear_observation(heard: Sequence[Message], dialect: str) -> str:
    """Return the inside of what came back; a message that only shows pictures says nothing."""
    spoken = find_dialect(dialect)
    texts = [message.text for message in heard if message.role == "tool"] or [message.text for message in heard]
    return "\n".join(read_observation(text, spoken) for text in texts)


def can_read_pages(dialect: str) -> bool:
    """Say whether a dialect has the tool that opens a page."""
    return find_dialect(dialect).offers("visit")


def can_say(tool: str, arguments: Mapping[str, object], dialect: str) -> bool:
    """Say whether a dialect has words for a call."""
    try:
        render_turn(Turn("So.", tool, canonical_json(arguments)), find_dialect(dialect))
    except UnsayableTurn:
        return False
    return True


def say_turn(turn: Turn, dialect: str) -> ChatReply:
    """Return a turn as a reply; a script reads no tokens, so none are counted.

    Raises:
        UnsayableTurn: if the dialect has no words for it.
    """
    spoken = find_dialect(dialect)
    if not spoken.native:
        return ChatReply(render_turn(turn, spoken), 0, 0)
    if turn.tool:
        return ChatReply(turn.thought, 0, 0, calls=(ToolCall("call", turn.tool, turn.arguments),))
    return ChatReply(f"{turn.thought}\n<{spoken.answer}>{turn.answer}</{spoken.answer}>", 0, 0)


def say_twice(said: ChatReply) -> ChatReply:
    """Return a reply that is two turns at once."""
    if said.calls:
        again = ToolCall(f"{said.calls[0].id}-again", said.calls[0].name, said.calls[0].arguments)
        return ChatReply(said.text, 0, 0, calls=(*said.calls, again), reasoning=said.reasoning)
    return ChatReply(f"{said.text}\n{said.text}", 0, 0, reasoning=said.reasoning)


def leave_open(said: ChatReply, choice: int) -> ChatReply:
    """Return a reply without the end of its thought, without that of its action, or broken off in the middle.

    Args:
        said: a whole reply.
        choice: which of the three; of a native call the arguments break off.
    """
    if said.calls:
        call = said.calls[0]
        half = call.arguments[: len(call.arguments) // 2]
        return ChatReply(said.text, 0, 0, calls=(ToolCall(call.id, call.name, half),), reasoning=said.reasoning)
    text = said.text
    closing = [place for place in range(len(text)) if text.startswith("</", place)]
    first = text[closing[0] : text.index(">", closing[0]) + 1]
    if choice == 0:
        return ChatReply(text.replace(first, "", 1), 0, 0, reasoning=said.reasoning)
    if choice == 1 or len(closing) == 1:
        return ChatReply(text[: closing[-1]], 0, 0, reasoning=said.reasoning)
    return ChatReply(text[: closing[0] + len(first) + 8], 0, 0, reasoning=said.reasoning)
