"""Faults of a conversation that somebody else wrote for training: its turns, calls, placeholders and last answer."""

import json
import re
from collections.abc import Iterator, Sequence

from pipelines.agent.transcript import TOKEN, read_strict_object
from pipelines.checks.foreign import SHORT, SHOWN, Fault, find_answer_leak, find_encoding_fault, find_gap, type_foreign
from pipelines.corpus.layouts import PLACEHOLDER, ForeignQuestion, Message
from pipelines.names import fold_name

_KINDS = {
    "user": "user human",
    "assistant": "assistant gpt model bot",
    "call": "function_call tool_call",
    "observation": "observation tool tool_response function ipython",
    "system": "system developer",
}
_KIND_OF = {role: kind for kind, roles in _KINDS.items() for role in roles.split()}
_AFTER = {
    "": ("user",),
    "user": ("assistant", "call"),
    "assistant": ("user", "observation", "call"),
    "call": ("observation", "user", "call"),
    "observation": ("assistant", "call", "observation"),
}
"""What may follow a turn of each kind; a model's reply may be two turns, its thought and its call."""
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([^"]{1,80})"')
_PAIRED = ("think", "tool_call", "tool_response", "answer", "response")
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_INSIDE = re.compile(r"<(tool_call|tool_response|information)>.*?</\1>", re.DOTALL)


def find_dialogue_faults(question: ForeignQuestion) -> Iterator[Fault]:
    """Yield what is wrong with a row's texts: all of a conversation, placeholders and tokens of any other row."""
    yield from _find_media_faults(question)
    if token := next(filter(None, map(_find_token, question.texts)), ""):
        yield Fault("control-token", token)
    if not is_conversation(question):
        return
    turns = question.messages
    yield from _find_order_faults(turns)
    for turn in turns:
        yield from _find_turn_faults(turn)
    said = say_last(turns)
    if said and question.answers and _differs(question, said):
        yield Fault("other-final-answer", f"{said[-SHOWN:]!r} does not say {question.answers[0][:SHOWN]!r}")


def is_conversation(question: ForeignQuestion) -> bool:
    """Say whether a row has turns of a model; a prompt alone is no conversation."""
    return any(_KIND_OF.get(turn.role) != "user" and _KIND_OF.get(turn.role) != "system" for turn in question.messages)


def say_last(turns: Sequence[Message]) -> str:
    """Return what a conversation ends with, without thought and calls; empty unless the model has the last word."""
    if not turns or _KIND_OF.get(turns[-1].role) != "assistant":
        return ""
    return _INSIDE.sub("", _THOUGHT.sub("", turns[-1].text)).strip()


def list_tools(question: ForeignQuestion) -> tuple[str, ...]:
    """Return the names of the tools that a conversation calls, each once."""
    calls = [call for turn in question.messages for call in _CALL.findall(turn.text)]
    calls += [turn.text for turn in question.messages if _KIND_OF.get(turn.role) == "call"]
    return tuple(dict.fromkeys(name for call in calls for name in _NAME.findall(call)))


def is_supported(question: ForeignQuestion) -> bool | None:
    """Return whether tool replies support a conversation's answer, or None if that cannot be decided.

    Only names count: numbers are computed, and what a picture shows no page needs to say.
    """
    seen = [turn.text for turn in question.messages if _is_observation(turn)]
    name = type_foreign(question.answers[0]) if question.answers else None
    if not seen or name is None or name.type != "name" or len(name.surface.split()) > SHORT:
        return None
    return any(fold_name(form) in fold_name(" ".join(seen)) for form in question.answers)


def _is_observation(turn: Message) -> bool:
    return _KIND_OF.get(turn.role) == "observation" or "<tool_response>" in turn.text


def _find_media_faults(question: ForeignQuestion) -> Iterator[Fault]:
    inside = sum(len(turn.pictures) for turn in question.messages)
    told = sum(text.count(PLACEHOLDER) for text in question.texts)
    wanted = len(question.pictures) - inside
    if (told or question.placeholders) and told != wanted:
        yield Fault("placeholder-mismatch", f"{told} {PLACEHOLDER} for {wanted} pictures")


def _find_token(text: str) -> str:
    found = TOKEN.search(text.replace(PLACEHOLDER, ""))
    return found[0] if found else ""


def _find_order_faults(turns: Sequence[Message]) -> Iterator[Fault]:
    kinds = [_KIND_OF.get(turn.role, turn.role) for turn in turns]
    strange = [kind for kind in kinds if kind not in _KINDS]
    spoken = kinds[1:] if kinds[0] == "system" else kinds
    if strange:
        yield Fault("roles-out-of-order", f"a role {strange[0]!r}")
    else:
        before = ""
        for kind in spoken:
            if kind not in _AFTER[before]:
                yield Fault("roles-out-of-order", f"{kind} after {before or 'nothing'}")
                break
            before = kind
    if not say_last(turns):
        yield Fault("missing-answer-turn", f"its last turn, of {turns[-1].role}, answers nothing")


def _find_turn_faults(turn: Message) -> Iterator[Fault]:
    kind = _KIND_OF.get(turn.role, "")
    if not turn.text.strip() and not turn.pictures and kind != "assistant":
        yield Fault("empty-turn", turn.role)
    if kind == "call" and (wrong := _find_bad_call(_THOUGHT.sub("", turn.text))):
        yield Fault("bad-tool-call", wrong)
    if kind != "assistant":
        return
    if wrong := next(filter(None, map(_find_bad_call, _CALL.findall(turn.text))), ""):
        yield Fault("bad-tool-call", wrong)
    for tag in _PAIRED:
        if turn.text.count(f"<{tag}>") != turn.text.count(f"</{tag}>"):
            yield Fault("unpaired-tag", f"<{tag}>")
    own = _INSIDE.sub("", turn.text)
    if broken := find_encoding_fault(own):
        yield Fault("encoding", broken)
    if gap := find_gap(re.sub(r"</?\w+>", "", own)):
        yield Fault("unfilled-template", gap)


def _find_bad_call(text: str) -> str:
    bare = text.replace("<tool_call>", "").replace("</tool_call>", "").strip()
    if bare.startswith("<function="):
        return ""
    try:
        calls = json.loads(bare) if bare.startswith("[") else [read_strict_object(bare)]
    except (ValueError, RecursionError) as error:
        return f"{bare[:SHOWN]!r}: {error}"
    for call in calls:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
            return f"{bare[:SHOWN]!r} has no name"
        if not isinstance(call.get("arguments", call.get("parameters")), dict):
            return f"{bare[:SHOWN]!r} has no object of arguments"
    return ""


def _differs(question: ForeignQuestion, said: str) -> bool:
    return not any(answer in said for answer in question.answers) and not find_answer_leak(
        said.replace("\n", " "), question.answers
    )
