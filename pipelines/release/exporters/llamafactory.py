"""LLaMA-Factory 0.9.5: sharegpt lines, pictures as files, ``dataset_info.json`` beside them.

``tags`` is left out of ``dataset_info.json`` on purpose: where it stands, every tag that it does not name is none, and
rows with calls vanish with a warning. The format ``openai`` loses the thoughts of turns with calls: never written.
"""

import json
from collections.abc import Iterator, Mapping
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
    read_document,
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
)
from pipelines.release.exporters.rules import find_dataset_faults, find_llamafactory_faults, name_as_default

DATASETS = "dataset_info.json"
FILLED_IN = ("content", "idx")
"""What its templates fill in: ``{{idx}}`` inside a user's message becomes the turn's number."""
LEAD = 64
"""Bytes within which a JSON file's first character is looked for."""
COLUMNS = {"messages": "conversations", "images": "images", "system": "system", "tools": "tools"}


def write_llamafactory(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for LLaMA-Factory; see :class:`Exporter`."""
    tally = ExportCounts()
    with LineFiles(folder) as lines:
        for conversation in read_in_dialect(release, options.dialect):
            lines.write(conversation.split, make_row(conversation, folder, options))
            tally.add(conversation)
    entries = {
        f"{options.title}_{split}": {"file_name": f"{split}.jsonl", "formatting": "sharegpt", "columns": COLUMNS}
        for split in sorted(lines.rows)
    }
    (folder / DATASETS).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    notes = [f"dataset_dir is this folder; dataset is one of {', '.join(entries)}"]
    notes += tally.explain_loss("LLaMA-Factory has no loss flag for a turn; they stand in the column synth")
    notes += tally.explain_silence("the template qwen3_vl trains an empty thought in them; take qwen3_vl_nothink")
    notes += tally.explain_length("cutoff_len (2048 if it is not set, and what is longer is cut without a word)")
    return Written(tally.rows, sum(lines.rows.values()), tuple(notes))


def make_row(conversation: Conversation, folder: Path, options: ExportOptions) -> dict[str, Any]:
    """Return a conversation as a line, its pictures written to ``folder``."""
    system, tools = leave_tools_out(conversation, options)
    native = bool(tools)
    turns: list[dict[str, str]] = []
    asked = True
    for exchange in conversation.exchanges:
        turns += [_make_shown(exchange, asked), _make_said(exchange, native)]
        asked = turns[-1]["from"] != "function_call"
    return {
        "conversations": turns,
        "images": [save_picture(folder, picture) for picture in conversation.pictures],
        "system": system,
        "tools": tools,
        "synth": conversation.describe(),
    }


def _make_shown(exchange: Exchange, asked: bool) -> dict[str, str]:
    """Return what the model is shown: a user's message where no call of the reader's kind came before."""
    shown = exchange.shown
    if asked or shown.told is None:
        return {"from": "human", "value": show_images(len(shown.pictures), defuse(shown.text, FILLED_IN))}
    return {"from": "observation", "value": show_images(len(shown.pictures), shown.told)}


def _make_said(exchange: Exchange, native: bool) -> dict[str, str]:
    said = exchange.said
    if native and said.call:
        return {"from": "function_call", "value": write_native(said)}
    return {"from": "gpt", "value": write_native(said) if native else said.text}


def check_llamafactory(folder: Path) -> Iterator[str]:
    """Yield what LLaMA-Factory would drop, shift or fail on in a folder."""
    path = folder / DATASETS
    if not path.is_file():
        yield f"{DATASETS} is missing"
        return
    try:
        document: Any = read_document(path)
    except CorruptInput as error:
        yield str(error)
        return
    faults = list(find_dataset_faults(document, lambda name: (folder / name).is_file()))
    yield from faults
    if faults:
        return
    pictures = PictureFiles(folder)
    for entry in document.values():
        yield from _check_rows(entry, pictures)


def _check_rows(entry: Mapping[str, Any], pictures: PictureFiles) -> Iterator[str]:
    name, number = entry["file_name"], 0
    unit = "line" if name.endswith(".jsonl") else "row"
    try:
        for number, row in enumerate(_read_rows(pictures.folder / name), 1):
            named = name_as_default(row, entry)
            faults = chain(find_llamafactory_faults(named, pictures.exists), pictures.find_faults(named["images"]))
            for fault in faults:
                yield f"{name} {unit} {number}: {fault}"
    except CorruptInput as error:
        yield str(error)
        return
    if not number:
        yield f"{name}: holds no row"


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; ``.json`` may be one array or lines.

    Raises:
        CorruptInput: if it is neither, or of another kind.
    """
    if path.suffix == ".json" and _holds_array(path):
        rows = read_document(path)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise CorruptInput(f"{path}: is no array of objects")
        yield from rows
    elif path.suffix in (".json", ".jsonl"):
        yield from read_lines(path)
    else:
        raise CorruptInput(f"{path}: is not held to the rules; only .json and .jsonl are")


def _holds_array(path: Path) -> bool:
    with path.open("rb") as source:
        return source.read(LEAD).lstrip().startswith(b"[")


LLAMAFACTORY = Exporter("llamafactory", "sft", write_llamafactory, check_llamafactory)
