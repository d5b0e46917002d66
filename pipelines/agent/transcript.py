"""The text protocols between the agent and its tools.

A turn of the model is ``<think>...</think>`` followed by exactly one ``<tool_call>{"name": ..., "arguments": {...}}
</tool_call>`` or one ``<answer>...</answer>``; a tool answers with ``<tool_response>...</tool_response>`` in a user
message. The tags are literal text, so a transcript means the same to every trainer that masks by role. Dialects have
other tags and tool names (:mod:`pipelines.agent.dialects`); a turn holds ours in all of them.

JSON written by models is parsed strictly, with one value per key. Native tool calls are converted to the text protocol,
and thoughts that a server separated from a reply are put back, so later code reads one kind of turn.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

from pipelines.agent.dialects import CALL, SYNTH, Dialect, ToolForm, UnsayableTurn, Values, drop_defaults
from pipelines.ids import canonical_json
from pipelines.services.protocols import ChatReply, Message, ToolCall
from schemas.datasets import Observation, RolloutImage, Step

MOST_DEEP = 32
"""Objects and lists within each other. How deep the interpreter reads depends on who calls it: a turn that was one for
the loop could be none for a check."""
_TOO_DEEP = f"it is deeper than {MOST_DEEP} objects and lists"


def read_strict_object(source: str) -> dict[str, object]:
    """Return a JSON object."""
    try:
        read = json.loads(
            source, object_pairs_hook=_make_object, parse_float=_parse_finite, parse_constant=_refuse_constant
        )
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if not isinstance(read, dict):
        raise ValueError(f"it is no object but {type(read).__name__}")
    if not _is_shallow(read, MOST_DEEP):
        raise ValueError(_TOO_DEEP)
    return read


def _is_shallow(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return made


def _parse_finite(literal: str) -> float:
    number = float(literal)
    if not isfinite(number):
        raise ValueError(f"{literal[:40]} is out of range")
    return number


def _refuse_constant(literal: str) -> float:
    raise ValueError(f"{literal} is no JSON number")


SURROGATE = re.compile("[\ud800-\udfff]")
MEDIA = "image|video|audio"
OWN_TAGS = "think|tools?|tool_calls?|tool_response|answer|response"
OTHER_TAGS = "reason|search|text_search|information|summary"
"""Of dialects, beside those that they share with us."""
TAGGED = r"<\s*(?:/\s*)?(?:{names})(?:\s[^<>]*|/\s*)?>"
CONTROL = (
    r"|</?\s*(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)\s*>"
    r"|<[|｜][^<>]*[|｜]>"
    r"|\[/?INST\]|<</?SYS>>"
)
TOKEN = re.compile(TAGGED.format(names=MEDIA) + CONTROL, re.IGNORECASE)
"""Media placeholders and the control tokens of common chat templates; no text may hold them."""
FOREIGN = re.compile(TAGGED.format(names=f"{MEDIA}|{OWN_TAGS}|{OTHER_TAGS}") + CONTROL, re.IGNORECASE)
"""These, and the tags of every dialect: what a page may not write, for it may be shown in any of them."""
_PASSES = 8
_NO_BEGINNING = str.maketrans("<[", "‹(")
SUMMARY = "\nSummary: "
"""Before the summary in the thought of a turn whose dialect has one."""
NOTHING = "(nothing)"
"""In place of a reply without text: many chat templates want one in each message."""


class BadTurn(ValueError):
    """A reply that is not a valid turn; the message says why."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A parsed turn: a thought and one call, or a thought and the answer."""

    thought: str
    tool: str = ""
    """Empty when the turn answers."""
    arguments: str = ""
    """Canonical JSON object; empty when the turn answers."""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The syntax of turns in a dialect.

    Attributes:
        tag: finds the dialect's tags and that of its responses, which no turn holds.
        shapes: names of the blocks of a turn.
        advice: description of a valid turn, for error messages.
        markup: what may not occur inside a block.
    """

    tag: re.Pattern[str]
    shapes: tuple[tuple[str, ...], ...]
    advice: str
    markup: re.Pattern[str]


@lru_cache(maxsize=32)
def _make_grammar(dialect: Dialect) -> Grammar:
    names = dict.fromkeys((dialect.think, *dialect.actions, dialect.response, "tool_response"))
    shapes: list[tuple[str, ...]] = [(dialect.think, action) for action in dialect.actions]
    if dialect.summary:
        names[dialect.summary] = None
        shapes.append((dialect.think, dialect.summary, dialect.answer))
    tag = re.compile(rf"</?(?:{'|'.join(names)})>")
    blocks = " or one ".join(f"<{action}>...</{action}>" for action in dialect.actions)
    markup = re.compile(TAGGED.format(names=f"{MEDIA}|{OWN_TAGS}|{'|'.join(names)}") + CONTROL, re.IGNORECASE)
    return Grammar(tag, tuple(shapes), f"<{dialect.think}>...</{dialect.think}> and then one {blocks}", markup)


def parse_turn(text: str, dialect: Dialect = SYNTH) -> Turn:
    """Return a model's reply as a turn; of native tool calls, the text that it was written down as.

    White space around the blocks is free, any other text outside them is not. An empty answer is a turn, an empty
    thought is none. A tool that the dialect does not have keeps its name, with ``?`` before it if one of ours has it.
    """
    if has_surrogate(text):
        raise BadTurn("the reply is no valid Unicode text")
    grammar = _make_grammar(dialect)
    names, inner = _split_blocks(text, grammar)
    if not inner[0]:
        raise BadTurn("the thought is empty")
    form = _find_tag_form(dialect, names[-1])
    for block in inner if form is None or not form.content else inner[:-1]:
        _refuse_markup(block, grammar)
    thought = inner[0] if len(inner) == 2 else inner[0] + SUMMARY + inner[1]
    if names[-1] == dialect.answer:
        return Turn(thought, answer=inner[-1])
    tool, values = _parse_tag_call(form, inner[-1]) if form else _parse_call(inner[-1], dialect, grammar)
    return Turn(thought, tool=tool, arguments=canonical_json(values))


def _split_blocks(text: str, grammar: Grammar) -> tuple[tuple[str, ...], list[str]]:
    marks = list(grammar.tag.finditer(text))
    tags = [mark[0] for mark in marks]
    names = tuple(tag.strip("</>") for tag in tags[::2])
    expected = [tag for name in names for tag in (f"<{name}>", f"</{name}>")]
    if names not in grammar.shapes or tags != expected:
        raise BadTurn(f"the tags are {' '.join(tags[:12]) or 'absent'}; a turn is {grammar.advice}")
    bounds = [0, *(edge for mark in marks for edge in mark.span()), len(text)]
    pieces = [text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    outside = "".join(pieces[::2])
    if outside.strip():
        raise BadTurn(f"there is text outside the blocks: {outside.strip()[:60]!r}; a turn is {grammar.advice}")
    return names, [piece.strip() for piece in pieces[1::2]]


def _find_tag_form(dialect: Dialect, name: str) -> ToolForm | None:
    return next((form for form in dialect.forms or () if form.tag == name), None)


def _parse_tag_call(form: ToolForm, inner: str) -> tuple[str, Values]:
    if not form.content:
        (name,) = form.fields
        return form.tool, form.read_values({name: inner})
    if inner != form.content:
        raise BadTurn(f"a call of this tool is <{form.tag}>{form.content}</{form.tag}>")
    return form.tool, form.read_values({})


def _parse_call(source: str, dialect: Dialect, grammar: Grammar) -> tuple[str, Values]:
    try:
        call = read_strict_object(source)
    except ValueError as error:
        raise BadTurn(f"the call is not a JSON object: {error}") from error
    if set(call) != {"name", "arguments"}:
        raise BadTurn('the call must be {"name": ..., "arguments": {...}} with these two keys')
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str) or not name.strip() or not isinstance(arguments, dict):
        raise BadTurn("name must be a non-empty string and arguments an object")
    canonical = canonical_json(arguments)
    if has_surrogate(name + canonical):
        raise BadTurn("the call holds an unpaired surrogate, which is no character")
    _refuse_markup(name, grammar)
    _refuse_markup(canonical, grammar)
    return dialect.read_call(name.strip(), arguments)


def has_surrogate(text: str) -> bool:
    """Whether a text holds half a surrogate pair, which is no character."""
    return SURROGATE.search(text) is not None


def _refuse_markup(text: str, grammar: Grammar) -> None:
    found = grammar.markup.search(text)
    if found is not None:
        raise BadTurn(f"{found[0][:60]!r} is a placeholder, control token or tag and may not stand inside a block")


def render_turn(turn: Turn, dialect: Dialect = SYNTH) -> str:
    """Return a turn as the text that :func:`parse_turn` reads back, as long as no part of it holds markup."""
    thought, summary = turn.thought, ""
    if dialect.summary and not turn.tool:
        before, mark, after = turn.thought.rpartition(SUMMARY)
        thought, summary = (before, f"{_render_block(dialect.summary, after)}\n") if mark else (after, "")
    action = _render_call(turn, dialect) if turn.tool else f"<{dialect.answer}>{turn.answer}</{dialect.answer}>"
    text = f"{_render_block(dialect.think, thought)}\n{summary}{action}"
    if dialect.forms is not None:
        _check_reading(turn, text, dialect)
    return text


def _render_call(turn: Turn, dialect: Dialect) -> str:
    name, values = dialect.write_call(turn.tool, json.loads(turn.arguments))
    form = dialect.find_form(turn.tool)
    if form is not None and form.tag:
        return f"<{form.tag}>{form.content or ' '.join(map(str, values.values()))}</{form.tag}>"
    return _render_block(CALL, json.dumps({"name": name, "arguments": values}, ensure_ascii=False))


def _render_block(name: str, inner: str) -> str:
    return f"<{name}>\n{inner}\n</{name}>"


def _check_reading(turn: Turn, text: str, dialect: Dialect) -> None:
    try:
        read = parse_turn(text, dialect)
    except BadTurn as error:
        raise UnsayableTurn(f"dialect {dialect.name}: {error}") from error
    if _weigh_turn(read) != _weigh_turn(turn):
        raise UnsayableTurn(f"dialect {dialect.name} would read {turn.tool or 'the answer'} as another turn")


def _weigh_turn(turn: Turn) -> tuple[str, ...]:
    values = canonical_json(drop_defaults(turn.tool, json.loads(turn.arguments))) if turn.tool else ""
    return turn.thought, turn.tool, values, turn.answer


def neutralise_markup(text: str) -> str:
    """Strip media placeholders, control tokens and the tags of all dialects from external text.

    Trainers count ``<image>`` and tokenise ``<|im_end|>`` anywhere in a text (LLaMA-Factory, issue 8440), and a page
    must not be able to speak as the model. Repeated, because a removal can join a new tag; if new tags keep appearing
    they were nested on purpose, and the text that they start is removed, too.
    """
    for _ in range(_PASSES):
        stripped = FOREIGN.sub("", text)
        if stripped == text:
            return text
        text = stripped
    return text.translate(_NO_BEGINNING)


def render_observation(observation: Observation, dialect: Dialect = SYNTH) -> str:
    """Return an observation as the text of a message; the class of an error or warning is its first line."""
    body = observation.text
    if observation.warning:
        body = f"warning: {observation.warning}\n{body}"
    if not observation.ok:
        body = f"error: {observation.error}\n{body}"
    return body if dialect.native else _render_block(dialect.response, body)


def read_observation(text: str, dialect: Dialect = SYNTH) -> str:
    """Return the inside of a rendered observation; other text comes back unchanged."""
    return text.removeprefix(f"<{dialect.response}>\n").removesuffix(f"\n</{dialect.response}>")


def render_messages(
    opening: Sequence[Message], steps: Sequence[Step], images: Sequence[RolloutImage], dialect: Dialect = SYNTH
) -> tuple[Message, ...]:
    """Return the messages that a model sees after some steps."""
    shas = {image.id: image.picture.sha256 for image in images}
    messages = list(opening)
    for number, step in enumerate(steps):
        messages += render_step(step, number, shas, dialect)
    return tuple(messages)


def render_step(step: Step, number: int, shas: Mapping[str, str], dialect: Dialect = SYNTH) -> tuple[Message, ...]:
    """Return the messages of one step."""
    observation = step.observation
    shown = tuple(shas[name] for name in observation.images) if observation is not None else ()
    if not dialect.native or not step.tool:
        said = Message("assistant", step.reply or NOTHING)
        return (
            (said,) if observation is None else (said, Message("user", render_observation(observation, dialect), shown))
        )
    # Some servers take no id but nine letters and digits.
    call_id = f"call{number:05d}"
    messages = [Message("assistant", step.thought, calls=(ToolCall(call_id, step.tool, step.arguments),))]
    if observation is not None:
        messages.append(Message("tool", render_observation(observation, dialect) or NOTHING, call_id=call_id))
    if observation is not None and shown:
        messages.append(Message("user", ", ".join(observation.images), shown))
    return tuple(messages)


def restore_thought(reply: ChatReply, dialect: Dialect) -> str:
    """Return a reply's text with its thought where the dialect has it.

    Servers with a parser of trains of thought give them apart, and templates of thinking models open the tag in the
    prompt, so that the reply begins within it. A reply that opens it itself, rightly or not, comes back unchanged.
    """
    opening, closing = f"<{dialect.think}>", f"</{dialect.think}>"
    if opening in reply.text:
        return reply.text
    if closing in reply.text:
        return f"{opening}\n{reply.text.lstrip()}"
    thought = clean_reasoning(reply)
    return f"{opening}\n{thought}\n{closing}\n{reply.text.lstrip()}" if thought else reply.text


def clean_reasoning(reply: ChatReply) -> str:
    """Return the train of thought that a server gave apart, without the tags that it talks about.

    It ends where the server says, so a tag in it, such as that of the answer to come, is none of the turn's.
    """
    return neutralise_markup(reply.reasoning).strip()


ADVICE = "a turn says what it makes of things, and then makes one tool call or gives <answer>...</answer>"
_THINK = re.compile(r"\A\s*(?:<think>)?(?P<thought>.*?)</think>", re.DOTALL)
"""Templates of thinking models open the tag in the prompt."""


def write_down(reply: ChatReply) -> str:
    """Return a reply as a turn of the text protocol.

    The thought is the train of thought that the server gives apart, else the text before the answer or the call.
    ``parse_turn`` decides whether it is a turn.
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
