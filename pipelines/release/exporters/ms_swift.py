"""ms-swift 4.6.0: lines with the roles tool_call and tool_response, a loss flag on every turn, pictures as files.

A thought before a call is an assistant's message of its own. Fewer ``<image>`` than pictures would move a search's
thumbnail to the question without a word, so placeholders are counted here. ``{{SYSTEM}}``, ``{{QUERY}}`` and
``{{ROUND0}}`` are filled in wherever they stand, in what a page said, too; they are given a space.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from pipelines.errors import CorruptInput
from pipelines.release.exporters.base import (
    Exporter,
    ExportOptions,
    LineFiles,
    PictureFiles,
    Written,
    read_lines,
    save_picture,
)
from pipelines.release.exporters.conversations import (
    Conversation,
    Exchange,
    ExportCounts,
    defuse,
    leave_tools_out,
    read_in_dialect,
    show_images,
    write_native,
    write_thought,
)
from pipelines.release.exporters.rules import find_ms_swift_faults

FILLED_IN = ("SYSTEM", "QUERY", "RESPONSE", "ROUND0", "ROUND1")


def write_ms_swift(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for ms-swift; see :class:`Exporter`."""
    tally = ExportCounts()
    with LineFiles(folder) as lines:
        for conversation in read_in_dialect(release, options.dialect):
            lines.write(conversation.split, make_row(conversation, folder, options))
            tally.add(conversation)
    files = ", ".join(f"{split}.jsonl" for split in sorted(lines.rows))
    notes = [f"ROOT_IMAGE_DIR must name this folder; dataset is one of {files}; agent_template is hermes"]
    notes += tally.explain_length("max_length")
    return Written(tally.rows, sum(lines.rows.values()), tuple(notes))


def make_row(conversation: Conversation, folder: Path, options: ExportOptions) -> dict[str, Any]:
    """Return a conversation as a line, its pictures written to ``folder``."""
    system, tools = leave_tools_out(conversation, options)
    native = bool(tools)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    asked = True
    for exchange in conversation.exchanges:
        messages += [_make_shown(exchange, asked), *_make_said(exchange, native)]
        asked = messages[-1]["role"] != "tool_call"
    images = [save_picture(folder, picture) for picture in conversation.pictures]
    if not images:
        messages = [{**message, "content": message["content"].replace("<img>", "< img>")} for message in messages]
    row = {
        "messages": messages,
        "images": images,
        "synth": conversation.describe(),
    }
    return {**row, "tools": tools} if tools else row


def _make_shown(exchange: Exchange, asked: bool) -> dict[str, Any]:
    shown = exchange.shown
    told = shown.text if asked or shown.told is None else shown.told
    content = show_images(len(shown.pictures), defuse(told, FILLED_IN))
    return {"role": "user" if asked or shown.told is None else "tool_response", "content": content}


def _make_said(exchange: Exchange, native: bool) -> list[dict[str, Any]]:
    said = exchange.said
    if not native:
        return [{"role": "assistant", "content": said.text, "loss": said.loss}]
    if not said.call:
        return [{"role": "assistant", "content": write_native(said), "loss": said.loss}]
    thought = [{"role": "assistant", "content": write_thought(said), "loss": said.loss}] if said.thought else []
    return [*thought, {"role": "tool_call", "content": said.call, "loss": said.loss}]


def check_ms_swift(folder: Path) -> Iterator[str]:
    """Yield what ms-swift would drop, shift or fail on in a folder."""
    paths, pictures = sorted(folder.glob("*.jsonl")), PictureFiles(folder)
    if not paths:
        yield "there is no .jsonl file"
    for path in paths:
        yield from _check_lines(path, pictures)


def _check_lines(path: Path, pictures: PictureFiles) -> Iterator[str]:
    number = 0
    try:
        for number, row in enumerate(read_lines(path), 1):
            for fault in chain(find_ms_swift_faults(row, pictures.exists), pictures.find_faults(row.get("images"))):
                yield f"{path.name} line {number}: {fault}"
    except CorruptInput as error:
        yield str(error)
        return
    if not number:
        yield f"{path.name}: holds no row"


MS_SWIFT = Exporter("ms-swift", "sft", write_ms_swift, check_ms_swift)
