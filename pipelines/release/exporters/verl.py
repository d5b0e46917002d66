"""veRL 0.9.1's RL Parquet: pictures embedded, the same arguments of tools in every row, our rewards beside it.

A search by the question's picture can be replayed from the row: ``image_search`` is created with what it finds. The
tools themselves are the trainer's to serve; ``tools.yaml`` holds their schemas, in what veRL keeps of JSON schema.

veRL 0.9.1's multi-turn SFT reader: Parquet with plain messages, ``<image>`` where a picture is, pictures embedded.

There is no column ``tools``: as structures it is filled up with nulls that reach the prompt, as text it is refused; the
tools stand in the system message. Loss is on every message of the assistant.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.agent.dialects import ToolSpec, list_specs
from pipelines.errors import CorruptInput
from pipelines.release import rewards
from pipelines.release.exporters.base import (
    Exporter,
    ExportOptions,
    TableFiles,
    Written,
    check_tables,
    read_document,
    read_table,
)
from pipelines.release.exporters.conversations import (
    Conversation,
    ExportCounts,
    read_in_dialect,
    show_images,
    write_tools_in,
)
from pipelines.release.exporters.rules import (
    find_repeats,
    find_verl_faults,
    find_verl_sft_faults,
    find_verl_tool_faults,
)
from pipelines.release.exporters.tasks import PlainTables, RlTask, read_tasks
from pipelines.release.rows import ABILITY, DATA_SOURCE, EmbeddedImage, ReleasedMessage
from schemas.base import Nested

AGENT = "tool_agent"
REWARDS = "rewards.py"
TOOLS = "tools.yaml"
REPLAYED = "image_search"
SERVED = "synth_tools"
"""The module that a trainer puts on its path, with one class a tool."""
KEPT = ("type", "description", "enum")
"""What veRL keeps of a property."""

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
FOUND = pa.struct([("title", pa.string()), ("url", pa.string()), ("thumbnail", pa.binary())])
IDENTITY = pa.struct([("create_kwargs", pa.struct([("task_id", pa.string())]))])
REPLAY = pa.struct([("create_kwargs", pa.struct([("task_id", pa.string()), ("results", pa.list_(FOUND))]))])


def list_tools() -> tuple[ToolSpec, ...]:
    """Return the tools that every row has arguments for."""
    return list_specs(opencv=True, layout=True)


def make_schema() -> pa.Schema:
    """Return the Arrow schema of the file."""
    tools = [(spec.name, REPLAY if spec.name == REPLAYED else IDENTITY) for spec in list_tools()]
    extra = [
        ("index", pa.int64()),
        ("split", pa.string()),
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("answer", pa.string()),
        ("answer_type", pa.string()),
        ("candidate_answers", pa.string()),
        ("dialect", pa.string()),
        ("need_tools_kwargs", pa.bool_()),
        ("tools_kwargs", pa.struct(tools)),
    ]
    return pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", pa.list_(MESSAGE)),
            ("images", pa.list_(IMAGE)),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct(extra)),
            ("agent_name", pa.string()),
        ]
    )


def write_verl(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for veRL; see :class:`Exporter`."""
    rows_in = 0
    with PlainTables(folder, make_schema()) as tables:
        for task in read_tasks(release):
            rows_in += 1
            tables.write(task.split, make_row(task, options))
    shutil.copyfile(rewards.__file__, folder / REWARDS)
    (folder / TOOLS).write_text(render_tools(list_tools()), encoding="utf-8")
    notes = (
        f"data.train_files is one of {', '.join(f'{split}.parquet' for split in sorted(tables.rows))}",
        f"reward.custom_reward_function.path is {REWARDS}, its name compute_score; reward_kwargs say which",
        f"{TOOLS} names classes of a module {SERVED} that you serve; {REPLAYED} finds its results in create_kwargs",
    )
    return Written(rows_in, sum(tables.rows.values()), notes)


def make_row(task: RlTask, options: ExportOptions) -> dict[str, Any]:
    """Return a task as veRL reads it."""
    found = [
        {"title": each.title, "url": each.url, "thumbnail": each.thumbnail.content if each.thumbnail else None}
        for each in task.results
    ]
    arguments: dict[str, Any] = {spec.name: {"create_kwargs": {"task_id": task.id}} for spec in list_tools()}
    arguments[REPLAYED]["create_kwargs"]["results"] = found
    return {
        "data_source": DATA_SOURCE,
        "prompt": [{"role": "user", "content": task.prompt}],
        "images": [{"bytes": picture.content, "path": None} for picture in task.pictures],
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": task.answer},
        "extra_info": {
            "index": task.index,
            "split": task.split,
            "question_id": task.id,
            "question": task.question,
            "answer": task.answer,
            "answer_type": task.answer_type,
            # veRL hands extra_info to a reward function, and of reward_model the ground truth alone.
            "candidate_answers": json.dumps(task.accepted, ensure_ascii=False),
            "dialect": options.dialect,
            "need_tools_kwargs": True,
            "tools_kwargs": arguments,
        },
        "agent_name": AGENT,
    }


def render_tools(specs: Sequence[ToolSpec]) -> str:
    """Return veRL's tool configuration; JSON is YAML, and quotes what YAML would take for something else."""
    entries = [
        {
            "class_name": f"{SERVED}.{''.join(word.title() for word in spec.name.split('_'))}",
            "config": {"type": "native"},
            "tool_schema": flatten_schema(spec),
        }
        for spec in specs
    ]
    return json.dumps({"tools": entries}, indent=1, ensure_ascii=False) + "\n"


def flatten_schema(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool's schema with type, description and enum of each property; what is lost is said in words."""
    parameters: Mapping[str, Any] = spec.parameters
    properties = {name: _flatten_property(value) for name, value in parameters["properties"].items()}
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": {"type": "object", "properties": properties, "required": list(parameters.get("required", ()))},
    }
    return {"type": "function", "function": function}


def _flatten_property(value: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value[key] for key in KEPT if key in value}
    kept.setdefault("type", "string")
    told = [str(value.get("description", ""))]
    if "items" in value:
        told.append(f"a list of {value.get('minItems', 'some')} {value['items'].get('type', 'value')}s")
    if "default" in value:
        told.append(f"{json.dumps(value['default'])} unless given")
    told += [f"at {end} {value[key]}" for key, end in (("minimum", "least"), ("maximum", "most")) if key in value]
    return {**kept, "description": "; ".join(part for part in told if part)}


def check_verl(folder: Path) -> Iterator[str]:
    """Yield what veRL would drop or fail on in a folder."""
    tools = [spec.name for spec in list_tools()]
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        yield "there is no Parquet file"
    for path in paths:
        yield from _check_table(path, tools)
    if not (folder / REWARDS).is_file():
        yield f"{REWARDS} is missing; veRL has no reward for {DATA_SOURCE} of its own"
    yield from _check_tools(folder / TOOLS)


def _check_table(path: Path, tools: Sequence[str]) -> Iterator[str]:
    ids = []
    try:
        for number, row in enumerate(read_table(path), 1):
            ids.append(str((row.get("extra_info") or {}).get("question_id")))
            for fault in find_verl_faults(row, tools):
                yield f"{path.name} row {number}: {fault}"
    except CorruptInput as error:
        yield str(error)
    else:
        if not ids:
            yield f"{path.name}: holds no row"
    for fault in find_repeats(ids):
        yield f"{path.name}: {fault}"


def _check_tools(path: Path) -> Iterator[str]:
    try:
        document: Any = read_document(path)
        schemas = [entry["tool_schema"] for entry in document["tools"]]
    except (OSError, CorruptInput, KeyError, TypeError) as error:
        yield f"{TOOLS}: cannot be read: {error!r}"
        return
    for schema in schemas:
        for fault in find_verl_tool_faults(schema):
            yield f"{TOOLS}: {fault}"


VERL = Exporter("verl", "rl", write_verl, check_verl)


class VerlSftRow(Nested):
    """One conversation as veRL's ``MultiTurnSFTDataset`` reads it."""

    messages: tuple[ReleasedMessage, ...]
    images: tuple[EmbeddedImage, ...]
    synth: str
    """What no trainer reads, as a JSON object."""


def write_verl_sft(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release for veRL; see :class:`Exporter`."""
    tally = ExportCounts()
    with TableFiles(folder, VerlSftRow) as tables:
        for conversation in read_in_dialect(release, options.dialect):
            tables.write(conversation.split, make_row_verl_sft(conversation))
            tally.add(conversation)
    notes = ["a template that drops or adds thoughts by turn needs ignore_input_ids_mismatch"]
    notes += tally.explain_loss("veRL has no loss flag for a turn; they stand in the column synth")
    notes += tally.explain_length("data.max_length (1024 if it is not set)")
    return Written(tally.rows, sum(tables.rows.values()), tuple(notes))


def make_row_verl_sft(conversation: Conversation) -> VerlSftRow:
    """Return a conversation as a row."""
    system = write_tools_in(conversation)
    messages = [ReleasedMessage(role="system", content=system)] if system else []
    for exchange in conversation.exchanges:
        shown = show_images(len(exchange.shown.pictures), exchange.shown.text)
        messages += [
            ReleasedMessage(role="user", content=shown),
            ReleasedMessage(role="assistant", content=exchange.said.text),
        ]
    images = tuple(EmbeddedImage(bytes=each.content, path=each.name) for each in conversation.pictures)
    return VerlSftRow(messages=tuple(messages), images=images, synth=conversation.describe())


def check_verl_sft(folder: Path) -> Iterator[str]:
    """Yield what veRL would drop, shift or fail on in a folder."""
    yield from check_tables(folder, find_verl_sft_faults)


VERL_SFT = Exporter("verl-sft", "sft", write_verl_sft, check_verl_sft)
