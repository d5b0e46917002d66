"""veRL 0.9.1's multi-turn SFT reader: Parquet with plain messages, ``<image>`` where a picture is, pictures embedded.

There is no column ``tools``: as structures it is filled up with nulls that reach the prompt, as text it is refused; the
tools stand in the system message. Loss is on every message of the assistant.
"""

from collections.abc import Iterator
from pathlib import Path

from pipelines.release.exporters.conversations import Conversation
from pipelines.release.exporters.files import TableFiles, check_tables
from pipelines.release.exporters.rewriting import read_in_dialect
from pipelines.release.exporters.sft_rules import find_verl_sft_faults
from pipelines.release.exporters.shapes import Exporter, ExportOptions, Written
from pipelines.release.exporters.tallies import Tally
from pipelines.release.exporters.wording import show_images, write_tools_in
from pipelines.release.rows import EmbeddedImage
from pipelines.release.transcript import Message
from schemas.base import Nested


class VerlSftRow(Nested):
    """One conversation as veRL's ``MultiTurnSFTDataset`` reads it."""

    messages: tuple[Message, ...]
    images: tuple[EmbeddedImage, ...]
    synth: str
    """What no trainer reads, as a JSON object."""


def write_verl_sft(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for veRL; see :class:`Exporter`."""
    tally = Tally()
    with TableFiles(folder, VerlSftRow) as tables:
        for conversation in read_in_dialect(release, options.dialect):
            tables.write(conversation.split, make_row(conversation))
            tally.add(conversation)
    notes = ["a template that drops or adds thoughts by turn needs ignore_input_ids_mismatch"]
    notes += tally.explain_loss("veRL has no loss flag for a turn; they stand in the column synth")
    notes += tally.explain_length("data.max_length (1024 if it is not set)")
    return Written(tally.rows, sum(tables.rows.values()), tuple(notes))


def make_row(conversation: Conversation) -> VerlSftRow:
    """Return a conversation as a row."""
    system = write_tools_in(conversation)
    messages = [Message(role="system", content=system)] if system else []
    for exchange in conversation.exchanges:
        shown = show_images(len(exchange.shown.pictures), exchange.shown.text)
        messages += [Message(role="user", content=shown), Message(role="assistant", content=exchange.said.text)]
    images = tuple(EmbeddedImage(bytes=each.content, path=each.name) for each in conversation.pictures)
    return VerlSftRow(messages=tuple(messages), images=images, synth=conversation.describe())


def check_verl_sft(folder: Path) -> Iterator[str]:
    """Yield what veRL would drop, shift or fail on in a folder."""
    yield from check_tables(folder, find_verl_sft_faults)


VERL_SFT = Exporter("verl-sft", "sft", write_verl_sft, check_verl_sft)
