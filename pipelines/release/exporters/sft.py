"""SFT releases for LLaMA-Factory 0.9.5, ms-swift 4.6.0, TRL 1.16.0 and veRL 0.9.1's multi-turn SFT reader.

LLaMA-Factory: sharegpt lines, pictures as files, ``dataset_info.json`` without ``tags``: where given, every tag that
they leave out is None, and rows with calls vanish with a warning. The format ``openai`` loses thoughts.

ms-swift: lines with the roles tool_call and tool_response and a loss flag on every turn; a thought before a call is a
message of its own. Fewer ``<image>`` than pictures would silently move a thumbnail to the question.

TRL: Parquet with typed content parts and embedded pictures; plain text would put all pictures first. Its
collator does not pass tools to the template, so they stand in the system message.

veRL: Parquet with plain messages and embedded pictures. A column ``tools`` is filled up with nulls as structures and
refused as text, so they stand in the system message.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipelines.errors import CorruptInput
from pipelines.release.exporters.base import (
    Exporter,
    ExportOptions,
    PictureFiles,
    Row,
    SplitFiles,
    Written,
    check_rows,
    check_tables,
    open_lines,
    open_table,
    read_document,
    read_lines,
    write_document,
)
from pipelines.release.exporters.conversations import Conversation, Exchange, ModelTurn, read_in_dialect
from pipelines.release.exporters.rules import (
    COLUMNS,
    IN_LLAMAFACTORY,
    IN_MS_SWIFT,
    DatasetInfo,
    LoadedTrlRow,
    LoadedVerlSftRow,
    SharegptRow,
    SwiftRow,
    find_faults,
)
from pipelines.release.rows import EmbeddedImage, RowMessage, make_release_schema, show_pictures
from schemas.base import Nested

DATASET_INFO = "dataset_info.json"
LISTED = "(listed at the end of this message)"
"""Replaces the tools' schemas in the system message where a reader adds them from their own column."""
ROWS_IN_GROUP = 32


@dataclass(slots=True)
class ExportCounts:
    """Counts over the conversations of one export, for its notes."""

    rows: int = 0
    masked: int = 0
    """Turns of the assistant that are not to be trained on."""
    silent: int = 0
    """Turns without a thought in think tags."""
    longest: int = 0
    """Tokens of the longest conversation, as the release counts them."""

    def explain_loss(self, reader: str) -> list[str]:
        """Return a note on loss flags, if there are any; the reader has none."""
        why = f"{reader} has no loss flag for a turn; they stand in the column synth"
        return [f"{self.masked} turns are trained on although the release says not to: {why}"] if self.masked else []

    def explain_length(self, what: str) -> list[str]:
        """Return a note on the length that a reader must be set to, if it is known."""
        told = f"{what} must hold the longest conversation, {self.longest:,} tokens as the release counts them"
        return [told] if self.longest else []


def _write_rows(
    release: Path, dialect: str, files: SplitFiles, make_row: Callable[[Conversation], Row]
) -> ExportCounts:
    counts = ExportCounts()
    with files:
        for conversation in read_in_dialect(release, dialect):
            files.write(conversation.split, make_row(conversation))
            counts.rows += 1
            counts.masked += sum(not exchange.said.loss for exchange in conversation.exchanges)
            counts.silent += sum(not exchange.said.thought for exchange in conversation.exchanges)
            counts.longest = max(counts.longest, conversation.row.tokens)
    return counts


def _write_thought(said: ModelTurn) -> str:
    """Return a thought as templates of the Qwen family write it; LLaMA-Factory knows a thought by exactly that."""
    return f"<think>\n{said.thought}\n</think>\n\n" if said.thought else ""


def _write_native(said: ModelTurn) -> str:
    return _write_thought(said) + (said.call or said.rest)


def _defuse(text: str, variable: re.Pattern[str]) -> str:
    """Put a space into ``{{name}}``, which the reader's template would fill in."""
    return variable.sub(lambda found: found[0].replace("{{", "{ {"), text)


def _leave_tools_out(conversation: Conversation, options: ExportOptions) -> tuple[str, str]:
    """Return the system message and the tools' column: schemas are in the column in native form, else in the message.

    The model sees them once either way.
    """
    if options.calls == "text" or not conversation.native:
        return write_tools_in(conversation), ""
    return conversation.system.replace(conversation.tools, LISTED), conversation.tools


def write_tools_in(conversation: Conversation) -> str:
    """Return the system message with the tools' schemas in it, for readers that have no other place for them."""
    if not conversation.tools or conversation.tools in conversation.system:
        return conversation.system
    return f"{conversation.system}\n\nThe tools, as JSON schemas:\n{conversation.tools}".lstrip()


def write_llamafactory(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for LLaMA-Factory; see :class:`Exporter`."""

    def make_row(conversation: Conversation) -> Row:
        system, tools = _leave_tools_out(conversation, options)
        turns: list[dict[str, str]] = []
        for exchange in conversation.exchanges:
            answers = bool(turns) and turns[-1]["from"] == "function_call"
            turns += [_make_human(exchange, answers), _make_gpt(exchange.said, bool(tools))]
        return {
            "conversations": turns,
            "images": [picture.save(folder) for picture in conversation.pictures],
            "system": system,
            "tools": tools,
            "synth": conversation.describe(),
        }

    files = SplitFiles(folder, ".jsonl", open_lines)
    counts = _write_rows(release, options.dialect, files, make_row)
    entries = {
        f"{options.name}_{split}": {"file_name": f"{split}.jsonl", "formatting": "sharegpt", "columns": COLUMNS}
        for split in sorted(files.rows)
    }
    write_document(folder / DATASET_INFO, entries, indent=1)
    notes = [f"dataset_dir is this folder; dataset is one of {', '.join(entries)}"]
    notes += counts.explain_loss("LLaMA-Factory")
    if counts.silent:
        why = "the template qwen3_vl trains an empty thought in them; take qwen3_vl_nothink"
        notes.append(f"{counts.silent} turns have no thought: {why}")
    notes += counts.explain_length("cutoff_len (2048 if it is not set; longer rows are cut silently)")
    return Written(counts.rows, files.total, tuple(notes))


def _make_human(exchange: Exchange, answers: bool) -> dict[str, str]:
    """Return the message shown to the model: an observation where it answers a native call."""
    shown = exchange.shown
    if answers and shown.told is not None:
        return {"from": "observation", "value": show_pictures(len(shown.pictures), shown.told)}
    return {"from": "human", "value": show_pictures(len(shown.pictures), _defuse(shown.text, IN_LLAMAFACTORY))}


def _make_gpt(said: ModelTurn, native: bool) -> dict[str, str]:
    if native and said.call:
        return {"from": "function_call", "value": _write_native(said)}
    return {"from": "gpt", "value": _write_native(said) if native else said.text}


def check_llamafactory(folder: Path) -> Iterator[str]:
    """Yield what LLaMA-Factory would drop, shift or fail on in a folder."""
    path = folder / DATASET_INFO
    if not path.is_file():
        yield f"{DATASET_INFO} is missing"
        return
    try:
        document: Any = read_document(path)
    except CorruptInput as error:
        yield str(error)
        return
    if faults := list(find_faults(DatasetInfo, document, exists=lambda name: (folder / name).is_file())):
        yield from (f"{DATASET_INFO}: {fault}" for fault in faults)
        return
    for entry in document.values():
        yield from _check_lines(folder / entry["file_name"], SharegptRow, PictureFiles(folder))


def _check_lines(path: Path, model: type[BaseModel], pictures: PictureFiles) -> Iterator[str]:
    """Yield the faults of a file of JSON lines and of the pictures that it names."""

    def find(row: Row) -> Iterator[str]:
        return chain(find_faults(model, row, exists=pictures.exists), pictures.find_faults(row.get("images")))

    yield from check_rows(path.name, "line", read_lines(path), find)


def write_ms_swift(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for ms-swift; see :class:`Exporter`."""

    def make_row(conversation: Conversation) -> Row:
        system, tools = _leave_tools_out(conversation, options)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        for exchange in conversation.exchanges:
            answers = bool(messages) and messages[-1]["role"] == "tool_call"
            messages += [_make_user(exchange, answers), *_make_assistant(exchange.said, bool(tools))]
        images = [picture.save(folder) for picture in conversation.pictures]
        if not images:
            messages = [{**each, "content": each["content"].replace("<img>", "< img>")} for each in messages]
        row = {"messages": messages, "images": images, "synth": conversation.describe()}
        return {**row, "tools": tools} if tools else row

    files = SplitFiles(folder, ".jsonl", open_lines)
    counts = _write_rows(release, options.dialect, files, make_row)
    names = ", ".join(f"{split}.jsonl" for split in sorted(files.rows))
    notes = [f"ROOT_IMAGE_DIR must name this folder; dataset is one of {names}; agent_template is hermes"]
    notes += counts.explain_length("max_length")
    return Written(counts.rows, files.total, tuple(notes))


def _make_user(exchange: Exchange, answers: bool) -> dict[str, Any]:
    shown = exchange.shown
    role, text = ("tool_response", shown.told) if answers and shown.told is not None else ("user", shown.text)
    return {"role": role, "content": show_pictures(len(shown.pictures), _defuse(text, IN_MS_SWIFT))}


def _make_assistant(said: ModelTurn, native: bool) -> list[dict[str, Any]]:
    if not native or not said.call:
        text = _write_native(said) if native else said.text
        return [{"role": "assistant", "content": text, "loss": said.loss}]
    thought = {"role": "assistant", "content": _write_thought(said), "loss": said.loss}
    call = {"role": "tool_call", "content": said.call, "loss": said.loss}
    return [thought, call] if said.thought else [call]


def check_ms_swift(folder: Path) -> Iterator[str]:
    """Yield what ms-swift would drop, shift or fail on in a folder."""
    paths, pictures = sorted(folder.glob("*.jsonl")), PictureFiles(folder)
    if not paths:
        yield "there is no .jsonl file"
    for path in paths:
        yield from _check_lines(path, SwiftRow, pictures)


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
    """Facts that no trainer reads, as a JSON object."""


class VerlSftRow(Nested):
    """One conversation as veRL's ``MultiTurnSFTDataset`` reads it."""

    messages: tuple[RowMessage, ...]
    images: tuple[EmbeddedImage, ...]
    synth: str
    """Facts that no trainer reads, as a JSON object."""


Say = Callable[[str, str, int], Row]


def _write_tables(
    release: Path, folder: Path, dialect: str, model: type[TrlRow | VerlSftRow], say: Say
) -> tuple[ExportCounts, int]:
    """Write conversations with embedded pictures; ``say`` makes a message of role, text and number of pictures."""

    def make_row(conversation: Conversation) -> Row:
        system = write_tools_in(conversation)
        messages = [say("system", system, 0)] if system else []
        for exchange in conversation.exchanges:
            messages.append(say("user", exchange.shown.text, len(exchange.shown.pictures)))
            messages.append(say("assistant", exchange.said.text, 0))
        images = [{"bytes": each.content, "path": each.name} for each in conversation.pictures]
        return {"messages": messages, "images": images, "synth": conversation.describe()}

    files = SplitFiles(folder, ".parquet", open_table(make_release_schema(model)), ROWS_IN_GROUP)
    return _write_rows(release, dialect, files, make_row), files.total


def write_trl(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for TRL; see :class:`Exporter`."""

    def say(role: str, text: str, pictures: int) -> Row:
        places: Sequence[Row] = [{"type": "image", "text": None}] * pictures
        return {"role": role, "content": [*places, {"type": "text", "text": text}]}

    counts, rows = _write_tables(release, folder, options.dialect, TrlRow, say)
    notes = [
        "without assistant_only_loss, TRL trains on every token; with it, transformers must be 5.18 or newer and the "
        "chat template needs generation marks"
    ]
    notes += counts.explain_loss("TRL")
    notes += counts.explain_length("max_length (1024 if it is not set)")
    return Written(counts.rows, rows, tuple(notes))


def write_verl_sft(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for veRL; see :class:`Exporter`."""

    def say(role: str, text: str, pictures: int) -> Row:
        return {"role": role, "content": show_pictures(pictures, text)}

    counts, rows = _write_tables(release, folder, options.dialect, VerlSftRow, say)
    notes = ["a template that drops or adds thoughts by turn needs ignore_input_ids_mismatch"]
    notes += counts.explain_loss("veRL")
    notes += counts.explain_length("data.max_length (1024 if it is not set)")
    return Written(counts.rows, rows, tuple(notes))


SFT_EXPORTERS = (
    Exporter("llamafactory", "sft", write_llamafactory, check_llamafactory),
    Exporter("ms-swift", "sft", write_ms_swift, check_ms_swift),
    Exporter("trl", "sft", write_trl, lambda folder: check_tables(folder, partial(find_faults, LoadedTrlRow))),
    Exporter(
        "verl-sft", "sft", write_verl_sft, lambda folder: check_tables(folder, partial(find_faults, LoadedVerlSftRow))
    ),
)
