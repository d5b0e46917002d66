"""Native tool calls, written down in the text protocol: everything after the reply reads one kind of turn."""

import json
import re

from pipelines.agent.strict_json import read_strict_object
from pipelines.agent.thinking import clean_reasoning
from pipelines.agent.transcript import BadTurn
from pipelines.backends.protocols import ChatReply, ToolCall

ADVICE = "a turn says what it makes of things, and then makes one tool call or gives <answer>...</answer>"
_THINK = re.compile(r"\A\s*(?:<think>)?(?P<thought>.*?)</think>", re.DOTALL)
"""Templates of thinking models open the tag in the prompt."""


def write_down(reply: ChatReply) -> str:
    """Return a reply as a turn of the text protocol.

    The thought is the train of thought that the server gives apart, else the text before the answer or the call.
    ``parse_turn`` decides whether it is a turn.

    Raises:
        BadTurn: if there are several calls, or neither a call nor an answer.
    """
    if len(reply.calls) > 1:
        raise BadTurn(f"there are {len(reply.calls)} tool calls; {ADVICE}")
    said = _THINK.match(reply.text)
    spoken = reply.text[said.end() :] if said else reply.text
    if reply.calls:
        thought, action = spoken, _write_call(reply.calls[0])
    else:
        thought, tag, answer = spoken.partition("<answer>")
        action = (tag + answer).strip()
        if not action.endswith("</answer>"):
            raise BadTurn(f"there is neither a tool call nor an answer in its tags; {ADVICE}")
    thought = clean_reasoning(reply) or (said["thought"].strip() if said else "") or thought.strip()
    return f"<think>\n{thought}\n</think>\n{action}"


def show_reply(reply: ChatReply) -> str:
    """Return a reply that is no turn as text, with all that came."""
    calls = [f"<tool_call>\n{json.dumps([call.name, call.arguments])}\n</tool_call>" for call in reply.calls]
    thought = [f"<think>\n{reply.reasoning}\n</think>"] if reply.reasoning else []
    return "\n".join([*thought, *([reply.text] if reply.text else []), *calls])


def _write_call(call: ToolCall) -> str:
    try:
        # Some servers give none as an empty text.
        arguments = read_strict_object(call.arguments) if call.arguments.strip() else {}
    except ValueError as error:
        raise BadTurn(f"the call's arguments are not a JSON object: {error}") from error
    written = json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{written}\n</tool_call>"
