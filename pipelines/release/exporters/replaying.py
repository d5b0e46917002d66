"""SenseNova-MARS's manifest: JSON lines with pictures as files, and a search by picture replayed from each line.

The manifest's file name decides what is trained on. Its annotation is looked for where the trainer was started, so all
paths are relative to the export and training starts there, or root and annotation are rewritten.

MMSearch-R1's Parquet (FVQA's layout) and the cache of searches by picture that its tools replay.

Its dataset class puts its own prompt with one placeholder before the bare question. The cache has a folder a question:
``meta.json`` with the titles, ``img_000.jpg`` and so on with the thumbnails in the same order.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.errors import ConfigError, CorruptInput
from pipelines.release.exporters.base import (
    EXPORT,
    Exporter,
    ExportOptions,
    LineFiles,
    Written,
    read_document,
    read_lines,
    read_table,
    save_picture,
)
from pipelines.release.exporters.rllm import name_folder
from pipelines.release.exporters.rules import (
    MARS_RESULTS,
    MMSEARCH_SOURCE,
    find_cache_faults,
    find_manifest_faults,
    find_mars_faults,
    find_mmsearch_faults,
    find_repeats,
)
from pipelines.release.exporters.tasks import TRAIN, PlainTables, RlTask, read_tasks

ROOT = "."
REWARDS = ["llm_score", "format_score"]
"""As its own training manifest has them (4.1): a judge and the format."""


def write_mars(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for SenseNova-MARS; see :class:`Exporter`."""
    name, rows_in, left = name_folder(options), 0, 0
    if "train" in name or "test" in name:
        raise ConfigError(f"export: the name {name!r} stands in a file name that must say train or test by itself")
    with LineFiles(folder) as lines:
        for task in read_tasks(release):
            rows_in += 1
            row = make_row(task, folder)
            lines.write(task.split, row)
            left += len(task.results) - len(row["image_search_title_list"])
    for split, rows in sorted(lines.rows.items()):
        document = json.dumps({f"{name}_{split}": make_entry(split, rows)}, indent=1)
        (folder / name_manifest(name, split)).write_text(document + "\n", encoding="utf-8")
    notes = ["start training in this folder, or write its path into root and annotation"]
    notes += ["input_template has no system prompt: put the one of your protocol there"]
    notes += [f"{left} results beyond {MARS_RESULTS} or without a thumbnail are left out"] if left else []
    return Written(rows_in, sum(lines.rows.values()), tuple(notes))


def name_manifest(name: str, split: str) -> str:
    """Return a split's manifest: its name holds train for the one that is trained on, and test for all others."""
    return f"train_{name}.json" if split == TRAIN else f"test_{name}_{split}.json"


def make_entry(split: str, rows: int) -> dict[str, Any]:
    """Return a manifest's entry."""
    arguments = {"system_prompt": "", "format_instruction": "", "add_image_path": False}
    return {
        "root": ROOT,
        "annotation": f"{split}.jsonl",
        "length": rows,
        "repeat_time": 1,
        "reward_fn": REWARDS,
        "unused_reward_fn": [],
        "input_template": {"name": "general", "arguments": arguments},
        "comment": "made by synth; licences are in ATTRIBUTION.tsv",
    }


def make_row(task: RlTask, folder: Path) -> dict[str, Any]:
    """Return a task as a line, its pictures and thumbnails written to ``folder``."""
    found = task.replayed[:MARS_RESULTS]
    return {
        "index": task.id,
        "prompt": [{"role": "user", "content": task.prompt}],
        "images": [save_picture(folder, picture) for picture in task.pictures],
        "reward_model": {"style": "rule", "ground_truth": task.answer, "candidate_answers": list(task.accepted)},
        "image_search_title_list": [each.title for each in found],
        "image_search_thumbnail_list": [save_picture(folder, each.thumbnail) for each in found if each.thumbnail],
        "image_search_summary": None,
    }


def check_mars(folder: Path) -> Iterator[str]:
    """Yield what SenseNova-MARS would shift or fail on in a folder."""
    manifests = [path for path in sorted(folder.glob("*.json")) if path.name != EXPORT]
    if not manifests:
        yield "there is no manifest"
    try:
        counts = {path.name: sum(1 for _ in read_lines(path)) for path in sorted(folder.glob("*.jsonl"))}
    except CorruptInput as error:
        yield str(error)
        return
    for path in manifests:
        try:
            document: Any = read_document(path)
        except CorruptInput as error:
            yield str(error)
            continue
        yield from find_manifest_faults(path.name, document, counts)
    yield from (f"{name}: holds no row" for name, rows in counts.items() if not rows)
    for name in counts:
        for number, row in enumerate(read_lines(folder / name), 1):
            for fault in find_mars_faults(row, lambda file: (folder / file).is_file()):
                yield f"{name} line {number}: {fault}"


MARS = Exporter("mars", "rl", write_mars, check_mars)


CACHE = "image_search_cache"
META = "meta.json"
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
MODEL = pa.struct([("candidate_answers", pa.string()), ("ground_truth", pa.string()), ("style", pa.string())])
EXTRA = pa.struct([("index", pa.int64()), ("question_id", pa.string()), ("answer_type", pa.string())])
SCHEMA = pa.schema(
    [
        ("data_id", pa.string()),
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("content", pa.string()), ("role", pa.string())]))),
        ("images", pa.list_(IMAGE)),
        ("reward_model", MODEL),
        ("image_urls", pa.list_(pa.string())),
        ("extra_info", EXTRA),
    ]
)


def write_mmsearch(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for MMSearch-R1; see :class:`Exporter`."""
    name, rows_in, bare = name_folder(options), 0, 0
    with PlainTables(folder, SCHEMA) as tables:
        for task in read_tasks(release):
            rows_in += 1
            row = make_row_mmsearch_r1(task, name)
            tables.write(task.split, row)
            _save_results(folder / CACHE / row["data_id"], task)
            bare += len(task.results) - len(task.replayed)
    notes = [f"the cache of image searches is {CACHE}/<data_id>; image_urls are null, as in FVQA"]
    notes += [f"{bare} results without a thumbnail are left out of the cache"] if bare else []
    return Written(rows_in, sum(tables.rows.values()), tuple(notes))


def make_row_mmsearch_r1(task: RlTask, name: str) -> dict[str, Any]:
    """Return a task as MMSearch-R1 reads it."""
    return {
        "data_id": f"{name}_{task.split}_{task.index}",
        "data_source": f"{MMSEARCH_SOURCE}/{name}",
        "prompt": [{"content": task.question, "role": "user"}],
        "images": [{"bytes": picture.content, "path": None} for picture in task.pictures],
        "reward_model": {
            "candidate_answers": json.dumps(task.accepted, ensure_ascii=False),
            "ground_truth": task.answer,
            "style": "rule",
        },
        "image_urls": None,
        "extra_info": {"index": task.index, "question_id": task.id, "answer_type": task.answer_type},
    }


def _save_results(folder: Path, task: RlTask) -> None:
    """Write what a search by the picture finds: titles and thumbnails that belong together, in one order."""
    folder.mkdir(parents=True)
    results = []
    for number, found in enumerate(task.replayed):
        if found.thumbnail is not None:
            (folder / f"img_{number:03d}.{found.thumbnail.extension}").write_bytes(found.thumbnail.content)
            results.append({"title": found.title, "image_url": found.url})
    meta = json.dumps({"search_results": results}, indent=1, ensure_ascii=False)
    (folder / META).write_text(meta + "\n", encoding="utf-8")


def check_mmsearch(folder: Path) -> Iterator[str]:
    """Yield what MMSearch-R1 would drop, shift or fail on in a folder."""
    ids: list[str] = []
    paths = sorted(folder.glob("*.parquet"))
    if not paths:
        yield "there is no Parquet file"
    for path in paths:
        try:
            for number, row in enumerate(read_table(path), 1):
                ids.append(str(row.get("data_id")))
                for fault in find_mmsearch_faults(row):
                    yield f"{path.name} row {number}: {fault}"
        except CorruptInput as error:
            yield str(error)
    if paths and not ids:
        yield "there is no row"
    yield from find_repeats(ids)
    for name in ids:
        for fault in _check_cache(folder / CACHE / name):
            yield f"{CACHE}/{name}: {fault}"


def _check_cache(folder: Path) -> Iterator[str]:
    if folder.parent.name != CACHE or folder.name in ("", "..", "."):
        yield "is no folder's name"
        return
    try:
        meta: Any = read_document(folder / META)
    except (OSError, CorruptInput) as error:
        yield f"{META}: cannot be read, and the search is an error: {error}"
        return
    yield from find_cache_faults(meta, [path.name for path in folder.iterdir() if path.name != META])


MMSEARCH_R1 = Exporter("mmsearch-r1", "rl", write_mmsearch, check_mmsearch)
