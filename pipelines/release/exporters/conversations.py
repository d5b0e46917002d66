"""The rows of an SFT release as conversations, and conversations rewritten in another dialect.

Placeholders are checked against pictures, and pictures against the names that their content gives them. A dialect
changes tags, tool names, the tools' schemas, the system message, and the unit of a call's box.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pipelines.agent.dialects import (
    BOX_EDGES,
    CALL,
    FULL_BOX,
    Dialect,
    UnsayableTurn,
    find_dialect,
    list_arguments,
    render_system,
    restore_tools,
    translate_tools,
)
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, render_turn
from pipelines.errors import ConfigError
from pipelines.ids import canonical_json
from pipelines.release.exporters.base import ExportedPicture, check_picture, read_release
from pipelines.release.rows import PLACEHOLDER, SftRow, strip_tokens

THINK, RESPONSE = "think", "tool_response"
OPENED, CLOSED = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class Prompted:
    """What the model is shown before a turn: the question, or what a tool replied."""

    text: str
    """Without placeholders, in the row's protocol."""
    pictures: tuple[ExportedPicture, ...]
    """In reading order, before the text."""
    told: str | None = None
    """The inside of the tags of a tool's reply; None for the question and replies without tags."""


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One turn of the assistant."""

    text: str
    """As the teacher wrote it."""
    loss: bool
    """Whether it is trained on."""
    thought: str = ""
    """The inside of its think tags."""
    rest: str = ""
    """What follows the thought: a call or an answer with its tags; the whole text where there is no thought."""
    call: str = ""
    """The call as ``{"name": ..., "arguments": {...}}`` in the dialect's words; empty for answers, malformed turns and
    dialects whose calls have another form."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message of the user and the assistant's reply."""

    shown: Prompted
    said: ModelTurn


@dataclass(frozen=True, slots=True)
class Conversation:
    """One trajectory."""

    row: SftRow
    split: str
    system: str
    dialect: Dialect
    tools: str
    """JSON array of the tools' schemas, as the dialect offers them."""
    exchanges: tuple[Exchange, ...]

    @property
    def native(self) -> bool:
        """Whether every call that is trained on is JSON in tool_call tags, with its reply in tool_response tags."""
        if (self.dialect.think, self.dialect.response) != (THINK, RESPONSE) or self.dialect.actions[0] != CALL:
            return False
        pairs = zip(self.exchanges, self.exchanges[1:], strict=False)
        return all(here.said.call and after.shown.told is not None for here, after in pairs if here.said.loss)

    @property
    def pictures(self) -> tuple[ExportedPicture, ...]:
        """Every picture in reading order, once for each time that it is shown."""
        return tuple(picture for exchange in self.exchanges for picture in exchange.shown.pictures)

    def describe(self) -> str:
        """Return the row's facts that no trainer reads, as one JSON object."""
        facts = self.row.model_dump(mode="json", exclude={"images", "messages", "tools", "dialect", "loss"})
        loss = [exchange.said.loss for exchange in self.exchanges]
        return json.dumps(
            {**facts, "split": self.split, "dialect": self.dialect.name, "loss": loss}, ensure_ascii=False
        )


def read_conversations(release: Path) -> Iterator[Conversation]:
    """Yield the rows of an SFT release; see :func:`read_release` for their order and the errors."""
    for split, row in read_release(release, "sft", SftRow):
        yield take_apart(row, split)


def take_apart(row: SftRow, split: str) -> Conversation:
    """Return a row as a conversation."""
    dialect = find_dialect(row.dialect)
    tools = translate_tools(restore_tools(row.tools, dialect), dialect)
    users = [message.content for message in row.messages if message.role == "user"]
    replies = [message.content for message in row.messages if message.role == "assistant"]
    pictures = iter([check_picture(image, row.id) for image in row.images])
    shown = [_read_shown(user, pictures) for user in users]
    said = [read_said(reply, loss, dialect) for reply, loss in zip(replies, row.loss, strict=True)]
    told = [replace(each, told=_read_told(each.text, dialect)) if number else each for number, each in enumerate(shown)]
    system = "".join(message.content for message in row.messages if message.role == "system")
    return Conversation(row, split, system, dialect, tools, tuple(map(Exchange, told, said)))


def _read_shown(content: str, pictures: Iterator[ExportedPicture]) -> Prompted:
    text = content
    while text.startswith(PLACEHOLDER):
        text = text.removeprefix(PLACEHOLDER)
    count = (len(content) - len(text)) // len(PLACEHOLDER)
    return Prompted(text.removeprefix("\n") if count else content, tuple(islice(pictures, count)))


def _read_told(text: str, dialect: Dialect) -> str | None:
    for tag in (dialect.response, RESPONSE):
        before, after = f"<{tag}>\n", f"\n</{tag}>"
        if text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)]
    return None


def read_said(text: str, loss: bool, dialect: Dialect) -> ModelTurn:
    """Return a turn of the assistant with its thought and its call, where they have the common tags."""
    try:
        parse_turn(text, dialect)
    except BadTurn:
        return ModelTurn(text, loss, rest=text)
    thought, closed, rest = text.strip().partition("</think>")
    if not thought.startswith("<think>") or not closed:
        return ModelTurn(text, loss, rest=text)
    rest = rest.strip()
    return ModelTurn(text, loss, thought.removeprefix("<think>").strip(), rest, _read_call(rest))


def _read_call(rest: str) -> str:
    if not (rest.startswith(OPENED) and rest.endswith(CLOSED)):
        return ""
    call = json.loads(rest[len(OPENED) : -len(CLOSED)])
    return json.dumps({"name": call["name"], "arguments": call["arguments"]}, ensure_ascii=False)


def restate_turn(turn: Turn, dialect: Dialect, sizes: Mapping[str, tuple[int, int]]) -> Turn:
    """Return a turn with its box in the dialect's unit, pixels or thousandths, so that it cuts the same pixels.

    Other turns, a malformed box, or one in a picture that is not in ``sizes`` are not changed.
    """
    form = dialect.find_form(turn.tool)
    if form is None:
        return turn
    values = {"unit": "normalised", **json.loads(turn.arguments)}
    wanted = "pixels" if form.boxes == "corner" else values["unit"] if "unit" in form.fields.values() else "normalised"
    size = sizes.get(str(values.get("image", list_arguments(turn.tool).get("image"))))
    box = _read_box(values.get("box"))
    if wanted == values["unit"] or size is None or box is None:
        return turn
    sides = (size[0], size[1], size[0], size[1])
    # Cropping rounds to whole pixels.
    if wanted == "pixels":
        restated: list[float] = [round(edge * (side / FULL_BOX)) for edge, side in zip(box, sides, strict=True)]
    else:
        parts = [round(FULL_BOX * round(edge) / side, 3) for edge, side in zip(box, sides, strict=True)]
        restated = [min(part, FULL_BOX) for part in parts]
    return Turn(turn.thought, turn.tool, canonical_json({**values, "box": restated, "unit": wanted}))


def _read_box(value: object) -> list[float] | None:
    if not isinstance(value, list) or len(value) != BOX_EDGES:
        return None
    edges = [edge for edge in value if isinstance(edge, int | float) and not isinstance(edge, bool)]
    return edges if len(edges) == BOX_EDGES else None


CALLS = 30
"""Tool calls that the system message allows where the dialect names no limit."""
SHOWN_REASONS = 3
"""Reasons that a message lists, the most frequent first."""


def read_in_dialect(release: Path, name: str) -> Iterator[Conversation]:
    """Yield the rows of an SFT release in a dialect; with an empty name, as they are."""
    dialect = find_dialect(name) if name else None
    rows, first, unsayable = 0, "", Counter[str]()
    for conversation in read_conversations(release):
        rows += 1
        try:
            rewritten = rewrite_conversation(conversation, dialect) if dialect else conversation
        except UnsayableTurn as error:
            unsayable[str(error)] += 1
            first = first or conversation.row.id
            continue
        if not unsayable:
            yield rewritten
    if unsayable:
        reasons = "; ".join(f"{count:,} as {reason}" for reason, count in unsayable.most_common(SHOWN_REASONS))
        raise ConfigError(
            f"export {release}: {unsayable.total():,} of {rows:,} rows cannot be expressed in {name}, first row "
            f"{first}: {reasons}; leave the dialect as it is, choose another, or make rollouts in it (rollouts.dialect)"
        )


def rewrite_conversation(conversation: Conversation, dialect: Dialect) -> Conversation:
    """Return a conversation in another dialect; a malformed turn is not changed."""
    if dialect is conversation.dialect:
        return conversation
    # A picture's number is its place in reading order.
    pictures = conversation.pictures if dialect.forms is not None else ()
    sizes = {f"img_{number}": each.size for number, each in enumerate(pictures, 1)}
    exchanges = tuple(
        Exchange(_rewrite_shown(each.shown, dialect), _rewrite_said(each.said, conversation.dialect, dialect, sizes))
        for each in conversation.exchanges
    )
    calls = max(dialect.calls or CALLS, len(exchanges) - 1)
    ours = restore_tools(conversation.row.tools, conversation.dialect)
    system = strip_tokens(render_system(dialect, ours, calls))
    tools = translate_tools(ours, dialect)
    return replace(conversation, system=system, dialect=dialect, tools=tools, exchanges=exchanges)


def _rewrite_shown(shown: Prompted, dialect: Dialect) -> Prompted:
    if shown.told is None:
        return shown
    tag = RESPONSE if dialect.native else dialect.response
    return replace(shown, text=f"<{tag}>\n{shown.told}\n</{tag}>")


def _rewrite_said(
    said: ModelTurn, source: Dialect, dialect: Dialect, sizes: Mapping[str, tuple[int, int]]
) -> ModelTurn:
    try:
        turn = parse_turn(said.text, source)
    except BadTurn:
        return said
    return read_said(render_turn(restate_turn(turn, dialect, sizes), dialect), said.loss, dialect)
