"""rLLM's data folder, as its ``DatasetRegistry.register_dataset`` would leave it: it only has to be loaded.

``RLLM_HOME`` is the export. Rows are an Arrow file with pictures as bytes and, for veRL, a Parquet file with pictures
wrapped.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.errors import ConfigError, CorruptInput
from pipelines.release.exporters.base import Exporter, ExportOptions, Written, read_table
from pipelines.release.exporters.rules import (
    PLACEHOLDER_PROMPT,
    find_companion_faults,
    find_registry_faults,
    find_repeats,
    find_rllm_faults,
)
from pipelines.release.exporters.tasks import PlainTables, RlTask, read_tasks
from pipelines.release.rows import DATA_SOURCE

DATASETS = "datasets"
REGISTRY = "registry.json"
COMPANION = "_verl"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

COLUMNS: list[tuple[str, pa.DataType]] = [
    ("id", pa.string()),
    ("question", pa.string()),
    ("answer", pa.string()),
    ("candidate_answers", pa.string()),
    ("answer_type", pa.string()),
    ("data_source", pa.string()),
]
SCHEMA = pa.schema([*COLUMNS, ("images", pa.list_(pa.binary()))])
WRAPPED = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
COMPANION_SCHEMA = pa.schema(
    [
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([*COLUMNS, ("images", WRAPPED)])),
    ]
)


def name_folder(options: ExportOptions) -> str:
    """Return the dataset's name, which is a folder's.

    Raises:
        ConfigError: if it could be none.
    """
    if not NAME.fullmatch(options.title):
        raise ConfigError(
            f"export: the name {options.title!r} names files and datasets; it takes letters, digits, . _ and -"
        )
    return options.title


def write_rllm(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for rLLM; see :class:`Exporter`."""
    name, rows_in = name_folder(options), 0
    home = folder / DATASETS / name
    home.mkdir(parents=True)
    with ArrowFiles(home) as tables, PlainTables(home, COMPANION_SCHEMA, COMPANION) as companions:
        for task in order_tasks(release):
            rows_in += 1
            row = make_row(task)
            tables.write(task.split, row)
            companions.write(task.split, make_companion(row))
    splits = {
        split: {"path": f"{name}/{split}.arrow", "num_examples": rows, "fields": SCHEMA.names}
        for split, rows in sorted(tables.rows.items())
    }
    metadata = {"source": DATA_SOURCE, "category": "multi-hop visual question answering"}
    registry = {"version": 2, "datasets": {name: {"metadata": metadata, "splits": splits}}}
    (folder / DATASETS / REGISTRY).write_text(json.dumps(registry, indent=2) + "\n", encoding="utf-8")
    loaded = " and ".join(f'DatasetRegistry.load_dataset("{name}", "{split}")' for split in splits)
    return Written(rows_in, sum(tables.rows.values()), (f"with RLLM_HOME at this folder: {loaded}",))


def order_tasks(release: Path) -> Iterator[RlTask]:
    """Yield tasks with pictures first: the first row decides whether a column is known to hold pictures."""
    yield from (task for task in read_tasks(release) if task.pictures)
    yield from (task for task in read_tasks(release) if not task.pictures)


def make_row(task: RlTask) -> dict[str, Any]:
    """Return a task as rLLM reads it: the same columns in every row, one type each."""
    return {
        "id": task.id,
        "question": task.question,
        "answer": task.answer,
        "candidate_answers": json.dumps(task.accepted, ensure_ascii=False),
        "answer_type": task.answer_type,
        "data_source": DATA_SOURCE,
        "images": [picture.content for picture in task.pictures],
    }


def make_companion(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row that rLLM makes for veRL, whose agent loop reads ``extra_info``."""
    wrapped = {**row, "images": [{"bytes": image, "path": ""} for image in row["images"]]}
    return {
        "prompt": PLACEHOLDER_PROMPT,
        "reward_model": {"style": "rule", "ground_truth": None},
        "extra_info": wrapped,
    }


class ArrowFiles:
    """Arrow files of an export, one a split, a batch a row."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, int] = {}
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "ArrowFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, split: str, row: dict[str, Any]) -> None:
        """Append a row to the split's file."""
        if split not in self._writers:
            sink = self._stack.enter_context(pa.OSFile(str(self.folder / f"{split}.arrow"), "wb"))
            self._writers[split] = self._stack.enter_context(pa.ipc.new_file(sink, SCHEMA))
        self._writers[split].write_batch(pa.RecordBatch.from_pylist([row], schema=SCHEMA))
        self.rows[split] = self.rows.get(split, 0) + 1


def read_arrow(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of an Arrow file.

    Raises:
        CorruptInput: if it cannot be read.
    """
    try:
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield from reader.get_batch(number).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise CorruptInput(f"{path}: an Arrow file cannot be read: {error}") from error


def check_rllm(folder: Path) -> Iterator[str]:
    """Yield what rLLM would lose or not find in a folder."""
    home = folder / DATASETS
    try:
        registry = json.loads((home / REGISTRY).read_text(encoding="utf-8"))
        paths = {path.relative_to(home).as_posix(): path for path in sorted(home.glob("*/*.arrow"))}
        tables = {name: _survey(path) for name, path in paths.items()}
    except (OSError, ValueError, CorruptInput) as error:
        yield f"{DATASETS}: cannot be read: {error}"
        return
    counts = {name: len(ids) for name, (ids, _) in tables.items()}
    yield from find_registry_faults(registry, counts, {name: fields for name, (_, fields) in tables.items()})
    yield from find_repeats(list(chain.from_iterable(ids for ids, _ in tables.values())))
    for path in paths.values():
        yield from _check_rows(path)


def _survey(path: Path) -> tuple[list[str], list[str]]:
    ids: list[str] = []
    fields: list[str] = []
    for row in read_arrow(path):
        ids.append(str(row.get("id")))
        fields = fields or list(row)
    return ids, fields


def _check_rows(path: Path) -> Iterator[str]:
    companion = path.with_name(f"{path.stem}{COMPANION}.parquet")
    if not companion.is_file():
        yield f"{companion.name} is missing; veRL is given no file"
        return
    first: dict[str, Any] | None = None
    pairs: Iterable[tuple[Any, Any]] = zip_longest(read_arrow(path), read_table(companion))
    for number, (row, other) in enumerate(pairs, 1):
        if row is None or other is None:
            yield f"{path.name} and {companion.name}: have another number of rows"
            return
        first = row if first is None else first
        for fault in chain(find_rllm_faults(row, first), find_companion_faults(other, row)):
            yield f"{path.name} row {number}: {fault}"


RLLM = Exporter("rllm", "rl", write_rllm, check_rllm)
