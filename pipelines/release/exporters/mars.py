"""SenseNova-MARS's manifest: JSON lines with pictures as files, and a search by picture replayed from each line.

The manifest's file name decides what is trained on. Its annotation is looked for where the trainer was started, so all
paths are relative to the export and training starts there, or root and annotation are rewritten.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import ConfigError, CorruptInput
from pipelines.release.exporters.files import EXPORT, LineFiles, save_picture
from pipelines.release.exporters.reading import read_document, read_lines
from pipelines.release.exporters.replay_rules import MARS_RESULTS, find_manifest_faults, find_mars_faults
from pipelines.release.exporters.rllm import name_folder
from pipelines.release.exporters.shapes import Exporter, ExportOptions, Written
from pipelines.release.exporters.tasks import TRAIN, RlTask, read_tasks

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
