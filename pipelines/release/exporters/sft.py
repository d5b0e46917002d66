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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.release.exporters.base import (
    Exporter,
    ExportOptions,
    OpenFile,
    Row,
    Written,
    open_lines,
    open_table,
    write_document,
    write_files,
)
from pipelines.release.exporters.conversations import Conversation, ModelTurn, read_in_dialect
from pipelines.release.rows import EmbeddedImage, RowMessage, make_release_schema, show_pictures
from schemas.base import Nested

LISTED = "(listed at the end of this message)"
"""Replaces the tools' schemas in the system message where a reader adds them from their own column."""
COLUMNS = {"messages": "conversations", "images": "images", "system": "system", "tools": "tools"}
"""Of LLaMA-Factory, which reads no column that is not named."""
IN_LLAMAFACTORY = re.compile(r"\{\{(?:content|idx)\}\}")
IN_MS_SWIFT = re.compile(r"\{\{(?:SYSTEM|QUERY|RESPONSE|ROUND[01])\}\}")
"""Variables of a reader's template, which it fills in wherever they stand."""


@dataclass(slots=True)
class ExportCounts:
    """Counts over the conversations of one export, for its notes."""

    files: Counter[str] = field(default_factory=Counter)
    """Rows by file."""
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
    release: Path,
    folder: Path,
    dialect: str,
    opening: OpenFile,
    make_row: Callable[[Conversation], Row],
    place: Callable[[Conversation], str] = lambda conversation: f"{conversation.split}.jsonl",
) -> ExportCounts:
    counts = ExportCounts()

    def read() -> Iterator[tuple[str, Row]]:
        for conversation in read_in_dialect(release, dialect):
            counts.masked += sum(not exchange.said.loss for exchange in conversation.exchanges)
            counts.silent += sum(not exchange.said.thought for exchange in conversation.exchanges)
            counts.longest = max(counts.longest, conversation.row.tokens)
            yield place(conversation), make_row(conversation)

    counts.files = write_files(folder, opening, read())
    return counts


def _write_thought(said: ModelTurn) -> str:
    # Templates of the Qwen family write it so; LLaMA-Factory knows a thought by exactly that.
    return f"<think>\n{said.thought}\n</think>\n\n" if said.thought else ""


def _defuse(text: str, variable: re.Pattern[str]) -> str:
    # The reader's template would fill in ``{{name}}``.
    return variable.sub(lambda found: found[0].replace("{{", "{ {"), text)


def _leave_tools_out(conversation: Conversation, options: ExportOptions) -> tuple[str, str]:
    # The model sees the schemas once, in one of the two.
    if options.calls == "text" or not conversation.native:
        return _write_tools_in(conversation), ""
    return conversation.system.replace(conversation.tools, LISTED), conversation.tools


def _write_tools_in(conversation: Conversation) -> str:
    if not conversation.tools or conversation.tools in conversation.system:
        return conversation.system
    return f"{conversation.system}\n\nThe tools, as JSON schemas:\n{conversation.tools}".lstrip()


def write_llamafactory(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for LLaMA-Factory; see :class:`Exporter`."""

    def make_row(conversation: Conversation) -> Row:
        system, tools = _leave_tools_out(conversation, options)
        turns: list[dict[str, str]] = []
        for exchange in conversation.exchanges:
            called = bool(turns) and turns[-1]["from"] == "function_call"
            reply, count = exchange.shown.told if called else None, len(exchange.shown.pictures)
            text = _defuse(exchange.shown.text, IN_LLAMAFACTORY) if reply is None else reply
            turns.append({"from": "human" if reply is None else "observation", "value": show_pictures(count, text)})
            said, native = exchange.said, bool(tools)
            speaker = "function_call" if native and said.call else "gpt"
            value = _write_thought(said) + (said.call or said.rest) if native else said.text
            turns.append({"from": speaker, "value": value})
        return {
            "conversations": turns,
            "images": [picture.save(folder) for picture in conversation.pictures],
            "system": system,
            "tools": tools,
            "synth": conversation.describe(),
        }

    counts = _write_rows(release, folder, options.dialect, open_lines, make_row)
    entries = {
        f"{options.name}_{Path(file).stem}": {"file_name": file, "formatting": "sharegpt", "columns": COLUMNS}
        for file in sorted(counts.files)
    }
    write_document(folder / "dataset_info.json", entries, indent=1)
    notes = [f"dataset_dir is this folder; dataset is one of {', '.join(entries)}"]
    notes += counts.explain_loss("LLaMA-Factory")
    if counts.silent:
        why = "the template qwen3_vl trains an empty thought in them; take qwen3_vl_nothink"
        notes.append(f"{counts.silent} turns have no thought: {why}")
    notes += counts.explain_length("cutoff_len (2048 if it is not set; longer rows are cut silently)")
    return Written(counts.files.total(), tuple(notes))


def write_ms_swift(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for ms-swift; see :class:`Exporter`."""

    def make_row(conversation: Conversation) -> Row:
        system, tools = _leave_tools_out(conversation, options)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
        for exchange in conversation.exchanges:
            called = bool(messages) and messages[-1]["role"] == "tool_call"
            reply, count = exchange.shown.told if called else None, len(exchange.shown.pictures)
            text = _defuse(exchange.shown.text if reply is None else reply, IN_MS_SWIFT)
            role = "user" if reply is None else "tool_response"
            messages.append({"role": role, "content": show_pictures(count, text)})
            messages += _say_to_ms_swift(exchange.said, bool(tools))
        images = [picture.save(folder) for picture in conversation.pictures]
        if not images:
            # In a row without pictures it reads <img> as a placeholder.
            messages = [{**each, "content": each["content"].replace("<img>", "< img>")} for each in messages]
        row = {"messages": messages, "images": images, "synth": conversation.describe()}
        return {**row, "tools": tools} if tools else row

    counts = _write_rows(release, folder, options.dialect, open_lines, make_row)
    names = ", ".join(sorted(counts.files))
    notes = [f"ROOT_IMAGE_DIR must name this folder; dataset is one of {names}; agent_template is hermes"]
    notes += counts.explain_length("max_length")
    return Written(counts.files.total(), tuple(notes))


def _say_to_ms_swift(said: ModelTurn, native: bool) -> list[dict[str, Any]]:
    thought = _write_thought(said)
    parts = [("assistant", thought + said.rest if native else said.text)]
    if native and said.call:
        parts = [("assistant", thought), ("tool_call", said.call)] if thought else [("tool_call", said.call)]
    return [{"role": role, "content": content, "loss": said.loss} for role, content in parts]


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


def _list_messages(conversation: Conversation, system: str, say: Callable[[str, str, int], Row]) -> list[Row]:
    messages = [say("system", system, 0)] if system else []
    for exchange in conversation.exchanges:
        messages.append(say("user", exchange.shown.text, len(exchange.shown.pictures)))
        messages.append(say("assistant", exchange.said.text, 0))
    return messages


def _say_plainly(role: str, text: str, pictures: int) -> Row:
    return {"role": role, "content": show_pictures(pictures, text)}


def _say_in_parts(role: str, text: str, pictures: int) -> Row:
    places: Sequence[Row] = [{"type": "image", "text": None}] * pictures
    return {"role": role, "content": [*places, {"type": "text", "text": text}]}


def _write_table(
    release: Path, folder: Path, dialect: str, model: type[TrlRow | VerlSftRow], say: Callable[[str, str, int], Row]
) -> ExportCounts:
    def make_row(conversation: Conversation) -> Row:
        messages = _list_messages(conversation, _write_tools_in(conversation), say)
        images = [{"bytes": each.content, "path": each.name} for each in conversation.pictures]
        return {"messages": messages, "images": images, "synth": conversation.describe()}

    opening = open_table(make_release_schema(model))
    return _write_rows(release, folder, dialect, opening, make_row, lambda each: f"{each.split}.parquet")


def write_trl(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for TRL; see :class:`Exporter`."""
    counts = _write_table(release, folder, options.dialect, TrlRow, _say_in_parts)
    notes = [
        "without assistant_only_loss, TRL trains on every token; with it, transformers must be 5.18 or newer and the "
        "chat template needs generation marks"
    ]
    notes += counts.explain_loss("TRL")
    notes += counts.explain_length("max_length (1024 if it is not set)")
    return Written(counts.files.total(), tuple(notes))


def write_verl_sft(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for veRL; see :class:`Exporter`."""
    counts = _write_table(release, folder, options.dialect, VerlSftRow, _say_plainly)
    notes = ["a template that drops or adds thoughts by turn needs ignore_input_ids_mismatch"]
    notes += counts.explain_loss("veRL")
    notes += counts.explain_length("data.max_length (1024 if it is not set)")
    return Written(counts.files.total(), tuple(notes))


SFT_EXPORTERS = (
    Exporter("llamafactory", "sft", write_llamafactory),
    Exporter("ms-swift", "sft", write_ms_swift),
    Exporter("trl", "sft", write_trl),
    Exporter("verl-sft", "sft", write_verl_sft),
)
