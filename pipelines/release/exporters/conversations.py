"""The rows of an SFT release taken apart: who said what, which pictures were shown when, what is trained on.

Shards are read a few rows at a time, so memory does not grow with a release. Nothing is believed that was not checked:
the files against the manifest, a picture against the name its content gives it, placeholders against pictures.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.agent.dialects import CALL, Dialect, find_dialect, translate_tools
from pipelines.agent.transcript import BadTurn, parse_turn
from pipelines.errors import ConfigError, CorruptInput, GateNotMet
from pipelines.release.exporters.embedded import ShownPicture, check_picture
from pipelines.release.exporters.reading import read_release
from pipelines.release.rows import SftRow
from pipelines.release.transcript import PLACEHOLDER, check_messages

SHOWN = re.compile(rf"(?P<marks>(?:{PLACEHOLDER})*)\n?(?P<text>.*)", re.DOTALL)
THINK, RESPONSE = "think", "tool_response"
OPENED, CLOSED = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model is shown before a turn: the question, or what a tool replied."""

    text: str
    """Without placeholders, in the row's protocol."""
    pictures: tuple[ShownPicture, ...]
    """In reading order, before the text."""
    told: str | None = None
    """The inside of the tags that a tool's reply stands in; None for the question and where there are none."""


@dataclass(frozen=True, slots=True)
class Said:
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
    """The call as ``{"name": ..., "arguments": {...}}`` in the dialect's words; empty for answers, for turns that are
    none, and in dialects whose calls are no such JSON."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One message of the user and the assistant's reply."""

    shown: Shown
    said: Said


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
    def pictures(self) -> tuple[ShownPicture, ...]:
        """Every picture in reading order; one that is shown twice stands here twice."""
        return tuple(picture for exchange in self.exchanges for picture in exchange.shown.pictures)

    @property
    def masked(self) -> int:
        """How many turns of the assistant are not trained on."""
        return sum(not exchange.said.loss for exchange in self.exchanges)

    def describe(self) -> str:
        """Return what no trainer reads but people ask for, as one JSON object."""
        facts = self.row.model_dump(mode="json", exclude={"images", "messages", "tools", "dialect", "loss"})
        loss = [exchange.said.loss for exchange in self.exchanges]
        return json.dumps(
            {**facts, "split": self.split, "dialect": self.dialect.name, "loss": loss}, ensure_ascii=False
        )


def read_conversations(release: Path) -> Iterator[Conversation]:
    """Yield the rows of an SFT release; see :func:`read_release` for their order and the errors.

    Raises:
        CorruptInput: if the parts of a row do not belong together.
    """
    for split, row in read_release(release, "sft", SftRow):
        yield take_apart(row, split)


def take_apart(row: SftRow, split: str) -> Conversation:
    """Return a row as a conversation.

    Raises:
        CorruptInput: if messages, loss flags, tools and pictures do not belong together.
    """
    try:
        check_messages(row.messages, len(row.images), row.id)
        dialect = find_dialect(row.dialect)
        tools = translate_tools(row.tools, dialect)
    except (GateNotMet, ConfigError, ValueError, TypeError, KeyError) as error:
        raise CorruptInput(f"row {row.id}: {error}") from error
    users = [message.content for message in row.messages if message.role == "user"]
    replies = [message.content for message in row.messages if message.role == "assistant"]
    if len(row.loss) != len(replies):
        raise CorruptInput(f"row {row.id}: {len(row.loss)} loss flags for {len(replies)} turns; there must be one each")
    pictures = iter([check_picture(image, row.id) for image in row.images])
    shown = [_read_shown(user, number, pictures, row.id) for number, user in enumerate(users)]
    if next(pictures, None) is not None:
        raise CorruptInput(f"row {row.id}: a picture stands in a message that is not the user's")
    said = [read_said(reply, loss, dialect) for reply, loss in zip(replies, row.loss, strict=True)]
    told = [replace(each, told=_read_told(each.text, dialect)) if number else each for number, each in enumerate(shown)]
    system = "".join(message.content for message in row.messages if message.role == "system")
    return Conversation(row, split, system, dialect, tools, tuple(map(Exchange, told, said)))


def _read_shown(content: str, number: int, pictures: Iterator[ShownPicture], where: str) -> Shown:
    found = SHOWN.fullmatch(content)
    if found is None or PLACEHOLDER in found["text"]:
        raise CorruptInput(f"{where}: message {number} of the user has a placeholder after its beginning")
    shown = tuple(next(pictures) for _ in range(found["marks"].count(PLACEHOLDER)))
    return Shown(found["text"] if shown else content, shown)


def _read_told(text: str, dialect: Dialect) -> str | None:
    for tag in (dialect.response, RESPONSE):
        before, after = f"<{tag}>\n", f"\n</{tag}>"
        if text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)]
    return None


def read_said(text: str, loss: bool, dialect: Dialect) -> Said:
    """Return a turn of the assistant with its thought and its call, where they have the common tags."""
    try:
        parse_turn(text, dialect)
    except BadTurn:
        return Said(text, loss, rest=text)
    thought, closed, rest = text.strip().partition("</think>")
    if not thought.startswith("<think>") or not closed:
        return Said(text, loss, rest=text)
    rest = rest.strip()
    return Said(text, loss, thought.removeprefix("<think>").strip(), rest, _read_call(rest))


def _read_call(rest: str) -> str:
    """Return a call in the one form that every trainer reads; empty where there is none."""
    if not (rest.startswith(OPENED) and rest.endswith(CLOSED)):
        return ""
    call = json.loads(rest[len(OPENED) : -len(CLOSED)])
    return json.dumps({"name": call["name"], "arguments": call["arguments"]}, ensure_ascii=False)
