"""TRL 1.16.0: Parquet with typed content parts; pictures embedded, and only in the user's messages.

With plain text, TRL puts all pictures before the first question; in a tool's message it neither counts nor fills them.
Its collator never passes tools to the template, so they stand in the system message.
"""

from collections.abc import Iterator
from pathlib import Path

from pipelines.release.exporters.base import Exporter, ExportOptions, TableFiles, Written, check_tables
from pipelines.release.exporters.conversations import (
    Conversation,
    ExportCounts,
    ShownMessage,
    read_in_dialect,
    write_tools_in,
)
from pipelines.release.exporters.rules import find_trl_faults
from pipelines.release.rows import EmbeddedImage
from schemas.base import Nested


class MessagePart(Nested):
    """A piece of a message: text, or the place of the next picture."""

    type: str
    text: str | None


class TypedMessage(Nested):
    """A message in pieces."""

    role: str
    content: tuple[MessagePart, ...]


class TrlRow(Nested):
    """One conversation as TRL's data loaders read it."""

    messages: tuple[TypedMessage, ...]
    images: tuple[EmbeddedImage, ...]
    synth: str
    """What no trainer reads, as a JSON object."""


def write_trl(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for TRL; see :class:`Exporter`."""
    tally = ExportCounts()
    with TableFiles(folder, TrlRow) as tables:
        for conversation in read_in_dialect(release, options.dialect):
            tables.write(conversation.split, make_row(conversation))
            tally.add(conversation)
    notes = [
        "without assistant_only_loss, TRL trains on every token; with it, transformers must be 5.18 or newer and the "
        "chat template needs generation marks"
    ]
    notes += tally.explain_loss("TRL has no loss flag for a turn; they stand in the column synth")
    notes += tally.explain_length("max_length (1024 if it is not set)")
    return Written(tally.rows, sum(tables.rows.values()), tuple(notes))


def make_row(conversation: Conversation) -> TrlRow:
    """Return a conversation as a row."""
    system = write_tools_in(conversation)
    messages = [_say("system", system)] if system else []
    for exchange in conversation.exchanges:
        messages += [_show(exchange.shown), _say("assistant", exchange.said.text)]
    images = tuple(EmbeddedImage(bytes=each.content, path=each.name) for each in conversation.pictures)
    return TrlRow(messages=tuple(messages), images=images, synth=conversation.describe())


def _say(role: str, text: str) -> TypedMessage:
    return TypedMessage(role=role, content=(MessagePart(type="text", text=text),))


def _show(shown: ShownMessage) -> TypedMessage:
    places = tuple(MessagePart(type="image", text=None) for _ in shown.pictures)
    return TypedMessage(role="user", content=(*places, MessagePart(type="text", text=shown.text)))


def check_trl(folder: Path) -> Iterator[str]:
    """Yield what TRL would drop, shift or fail on in a folder."""
    yield from check_tables(folder, find_trl_faults)


TRL = Exporter("trl", "sft", write_trl, check_trl)
