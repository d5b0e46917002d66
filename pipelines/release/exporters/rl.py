"""Releases for veRL 0.9.1, rLLM, MMSearch-R1 and SenseNova-MARS.

veRL: Parquet with embedded pictures, the same arguments of tools in every row, and our rewards beside it.
``image_search`` is created with its results; ``tools.yaml`` names a class of ``synth_tools.py`` beside it, which asks
`synth serve-tools`.

rLLM: the folder that ``DatasetRegistry.register_dataset`` would leave, with ``RLLM_HOME`` at the export: an Arrow file
with pictures as bytes and, for veRL, a Parquet file with pictures wrapped.

MMSearch-R1: FVQA's Parquet layout with bare questions, and the cache of searches by picture that its tools replay: a
folder a question with ``meta.json`` (titles) and ``img_000.jpg`` and so on (thumbnails in the same order).

SenseNova-MARS: JSON lines with pictures as files, and a manifest whose file name decides what is trained on. It looks
for the annotation where the trainer was started: start it in the export, or rewrite root and annotation.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.agent.dialects import SYNTH, ToolSpec, list_specs
from pipelines.errors import ConfigError
from pipelines.release import rewards, synth_tools
from pipelines.release.exporters.base import (
    ExportedPicture,
    Exporter,
    ExportOptions,
    Row,
    Written,
    check_picture,
    open_arrow,
    open_lines,
    open_table,
    read_release,
    write_document,
    write_files,
)
from pipelines.release.rows import ABILITY, DATA_SOURCE, FoundPage, RlRow
from pipelines.release.scenes import LEAST_SIDE

HIGH = "_4k"
"""Ends the name of what holds questions of high resolution."""
STRING, BINARY = pa.string(), pa.binary()
IMAGES = pa.list_(pa.struct([("bytes", BINARY), ("path", STRING)]))


@dataclass(frozen=True, slots=True)
class RlTask:
    """One question to answer with tools."""

    row: RlRow
    split: str
    pictures: tuple[ExportedPicture, ...]
    thumbnails: tuple[ExportedPicture | None, ...]
    """Of the pages that a search by the question's picture finds, best first."""

    @property
    def answer(self) -> str:
        """The accepted answer that is shown."""
        return self.row.reward_model.ground_truth

    @property
    def candidate_answers(self) -> str:
        """The accepted answers as a JSON list: readers that ask for a list refuse a Parquet array."""
        return json.dumps(self.row.reward_model.candidate_answers, ensure_ascii=False)

    @property
    def replayed(self) -> list[tuple[FoundPage, ExportedPicture]]:
        """Found pages and their thumbnails, where they have one: for readers that keep both apart."""
        pairs = zip(self.row.image_search, self.thumbnails, strict=True)
        return [(found, thumbnail) for found, thumbnail in pairs if thumbnail is not None]


def read_tasks(release: Path) -> Iterator[RlTask]:
    """Yield the rows of an RL release; see :func:`read_release`."""
    for split, row in read_release(release, "rl", RlRow):
        pictures = tuple(check_picture(image, row.id) for image in row.images)
        shown = (found.thumbnail for found in row.image_search)
        yield RlTask(row, split, pictures, tuple(check_picture(each, row.id) if each else None for each in shown))


AGENT = "tool_agent"
REWARDS = "rewards.py"
TOOLS = "tools.yaml"
REPLAYED = "image_search"
CLIENT = "synth_tools.py"
"""The trainers' classes that ask `synth serve-tools`; a trainer puts the export on its path."""
KEPT = ("type", "description", "enum")
"""What veRL keeps of a property."""


def list_tools() -> tuple[ToolSpec, ...]:
    """Return the tools that every row for veRL has arguments for."""
    return list_specs(opencv=True, layout=True)


def make_verl_schema() -> pa.Schema:
    """Return the Arrow schema of veRL's file, without the Hub's features: a decoded Image would not keep its bytes."""
    found = pa.list_(pa.struct([("title", STRING), ("url", STRING), ("thumbnail", BINARY)]))
    identity = pa.struct([("create_kwargs", pa.struct([("task_id", STRING)]))])
    replay = pa.struct([("create_kwargs", pa.struct([("task_id", STRING), ("results", found)]))])
    texts = ("question_id", "question", "answer", "answer_type", "candidate_answers", "dialect")
    extra = [
        ("index", pa.int64()),
        ("split", STRING),
        *((name, STRING) for name in texts),
        ("need_tools_kwargs", pa.bool_()),
        (
            "tools_kwargs",
            pa.struct([(each.name, replay if each.name == REPLAYED else identity) for each in list_tools()]),
        ),
    ]
    return pa.schema(
        [
            ("data_source", STRING),
            ("prompt", pa.list_(pa.struct([("role", STRING), ("content", STRING)]))),
            ("images", IMAGES),
            ("ability", STRING),
            ("reward_model", pa.struct([("style", STRING), ("ground_truth", STRING)])),
            ("extra_info", pa.struct(extra)),
            ("agent_name", STRING),
        ]
    )


def write_verl(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for veRL; see :class:`Exporter`."""
    # The tools are offered in our words, so an answer has our tags unless a dialect is asked for.
    dialect = options.dialect or SYNTH.name
    rows = ((f"{task.split}.parquet", _make_verl_row(task, dialect)) for task in read_tasks(release))
    files = write_files(folder, open_table(make_verl_schema()), rows)
    _copy_modules(folder)
    # JSON is YAML, and quotes what YAML would take for something else.
    write_document(
        folder / TOOLS, {"tools": [_describe_tool(spec) for spec in list_tools()]}, indent=1, ensure_ascii=False
    )
    notes = (
        f"data.train_files is one of {', '.join(sorted(files))}",
        f"reward.custom_reward_function.path is {REWARDS}, its name compute_score; reward_kwargs say which; rows "
        f"name the dialect {dialect}, in whose tags it looks for the answer",
        f"rollout.multi_turn.tool_config_path is {TOOLS}; its classes are in {CLIENT}, so PYTHONPATH has this folder",
        "they ask `synth serve-tools --dialect synth` at the address SYNTH_TOOLS",
        "rollout.multi_turn.max_tool_response_length is 256 in veRL: a page takes 13000",
    )
    return Written(files.total(), notes)


def _copy_modules(folder: Path) -> None:
    for module, name in ((rewards, REWARDS), (synth_tools, CLIENT)):
        shutil.copyfile(str(module.__file__), folder / name)


def _make_verl_row(task: RlTask, dialect: str) -> Row:
    row, extra = task.row, task.row.extra_info
    found = [
        {"title": each.title, "url": each.url, "thumbnail": each.thumbnail and each.thumbnail.bytes}
        for each in row.image_search
    ]
    arguments: dict[str, Any] = {spec.name: {"create_kwargs": {"task_id": row.id}} for spec in list_tools()}
    arguments[REPLAYED]["create_kwargs"]["results"] = found
    return {
        "data_source": DATA_SOURCE,
        "prompt": [message.model_dump() for message in row.prompt],
        "images": [{"bytes": picture.content, "path": None} for picture in task.pictures],
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": task.answer},
        # veRL hands all of extra_info to a reward function, but only the ground truth of reward_model.
        "extra_info": {
            "index": extra.index,
            "split": task.split,
            "question_id": row.id,
            "question": extra.question,
            "answer": task.answer,
            "answer_type": extra.answer_type,
            "candidate_answers": task.candidate_answers,
            "dialect": dialect,
            "need_tools_kwargs": True,
            "tools_kwargs": arguments,
        },
        "agent_name": AGENT,
    }


def _describe_tool(spec: ToolSpec) -> Row:
    return {
        "class_name": f"{synth_tools.__name__.rpartition('.')[2]}.{synth_tools.VerlTool.__name__}",
        "config": {"type": "native", "server": synth_tools.ADDRESS},
        "tool_schema": flatten_schema(spec),
    }


def flatten_schema(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool's schema with type, description and enum of each property; the description has the rest."""
    parameters: Mapping[str, Any] = spec.parameters
    properties = {name: _flatten_property(value) for name, value in parameters["properties"].items()}
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": {"type": "object", "properties": properties, "required": list(parameters.get("required", ()))},
    }
    return {"type": "function", "function": function}


def _flatten_property(value: Row) -> dict[str, Any]:
    kept = {key: value[key] for key in KEPT if key in value}
    kept.setdefault("type", "string")
    told = [str(value.get("description", ""))]
    if "items" in value:
        told.append(f"a list of {value.get('minItems', 'some')} {value['items'].get('type', 'value')}s")
    if "default" in value:
        told.append(f"{json.dumps(value['default'])} unless given")
    told += [f"at {end} {value[key]}" for key, end in (("minimum", "least"), ("maximum", "most")) if key in value]
    return {**kept, "description": "; ".join(part for part in told if part)}


DATASETS = "datasets"
COMPANION = "_verl.parquet"
COLUMNS = [(name, STRING) for name in ("id", "question", "answer", "candidate_answers", "answer_type", "data_source")]
RLLM_SCHEMA = pa.schema([*COLUMNS, ("images", pa.list_(BINARY))])
COMPANION_SCHEMA = pa.schema(
    [
        ("prompt", pa.list_(pa.struct([("role", STRING), ("content", STRING)]))),
        ("reward_model", pa.struct([("style", STRING), ("ground_truth", STRING)])),
        ("extra_info", pa.struct([*COLUMNS, ("images", IMAGES)])),
    ]
)


def write_rllm(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for rLLM; see :class:`Exporter`."""
    name = options.name
    home = folder / DATASETS / name
    home.mkdir(parents=True)

    def read() -> Iterator[tuple[str, Row]]:
        for task in _order_tasks(release):
            row = _make_rllm_row(task)
            yield f"{task.split}.arrow", row
            yield f"{task.split}{COMPANION}", _make_companion(row)

    arrow, parquet = open_arrow(RLLM_SCHEMA), open_table(COMPANION_SCHEMA)
    files = write_files(home, lambda path: (arrow if path.suffix == ".arrow" else parquet)(path), read())
    splits = {
        file.removesuffix(".arrow"): {"path": f"{name}/{file}", "num_examples": rows, "fields": RLLM_SCHEMA.names}
        for file, rows in sorted(files.items())
        if file.endswith(".arrow")
    }
    metadata = {"source": DATA_SOURCE, "category": "multi-hop visual question answering"}
    registry = {"version": 2, "datasets": {name: {"metadata": metadata, "splits": splits}}}
    write_document(folder / DATASETS / "registry.json", registry, indent=2)
    _copy_modules(folder)
    loaded = " and ".join(f'DatasetRegistry.load_dataset("{name}", "{split}")' for split in splits)
    notes = (
        f"with RLLM_HOME at this folder: {loaded}",
        f"with PYTHONPATH at it, AgentTrainer(env_class=synth_tools.RllmEnvironment, ...) of {CLIENT} asks "
        "`synth serve-tools` at the address SYNTH_TOOLS",
    )
    return Written(files.total() // 2, notes)


def _order_tasks(release: Path) -> Iterator[RlTask]:
    # With pictures first: the first row decides whether a column is known to hold pictures.
    yield from (task for task in read_tasks(release) if task.pictures)
    yield from (task for task in read_tasks(release) if not task.pictures)


def _make_rllm_row(task: RlTask) -> Row:
    return {
        "id": task.row.id,
        "question": task.row.extra_info.question,
        "answer": task.answer,
        "candidate_answers": task.candidate_answers,
        "answer_type": task.row.extra_info.answer_type,
        "data_source": DATA_SOURCE,
        "images": [picture.content for picture in task.pictures],
    }


def _make_companion(row: Row) -> Row:
    # rLLM makes such a row for veRL, whose agent loop reads ``extra_info``.
    wrapped = {**row, "images": [{"bytes": image, "path": ""} for image in row["images"]]}
    model = {"style": "rule", "ground_truth": None}
    return {"prompt": [{"role": "user", "content": "placeholder"}], "reward_model": model, "extra_info": wrapped}


CACHE = "image_search_cache"
MMSEARCH_SOURCE = "mmsearch_r1"
"""Begins the name of a data source that has a reward."""
MMSEARCH_SCHEMA = pa.schema(
    [
        ("data_id", STRING),
        ("data_source", STRING),
        ("prompt", pa.list_(pa.struct([("content", STRING), ("role", STRING)]))),
        ("images", IMAGES),
        ("reward_model", pa.struct([("candidate_answers", STRING), ("ground_truth", STRING), ("style", STRING)])),
        ("image_urls", pa.list_(STRING)),
        ("extra_info", pa.struct([("index", pa.int64()), ("question_id", STRING), ("answer_type", STRING)])),
    ]
)


def write_mmsearch(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for MMSearch-R1; see :class:`Exporter`."""
    bare = 0

    def read() -> Iterator[tuple[str, Row]]:
        nonlocal bare
        for task in read_tasks(release):
            if len(task.pictures) != 1:
                count = f"{task.row.id} has {len(task.pictures)} pictures"
                raise ConfigError(f"export {release}: {count}; MMSearch-R1 takes one")
            bare += task.thumbnails.count(None)
            row = _make_mmsearch_row(task, options.name)
            _save_results(folder / CACHE / row["data_id"], task)
            yield f"{task.split}.parquet", row

    files = write_files(folder, open_table(MMSEARCH_SCHEMA), read())
    notes = [f"the cache of image searches is {CACHE}/<data_id>; image_urls are null, as in FVQA"]
    notes += [f"{bare} results without a thumbnail are left out of the cache"] if bare else []
    return Written(files.total(), tuple(notes))


def _make_mmsearch_row(task: RlTask, name: str) -> Row:
    extra = task.row.extra_info
    return {
        "data_id": f"{name}_{task.split}_{extra.index}",
        "data_source": f"{MMSEARCH_SOURCE}/{name}",
        "prompt": [{"content": extra.question, "role": "user"}],
        "images": [{"bytes": picture.content, "path": None} for picture in task.pictures],
        "reward_model": {"candidate_answers": task.candidate_answers, "ground_truth": task.answer, "style": "rule"},
        "image_urls": None,
        "extra_info": {"index": extra.index, "question_id": task.row.id, "answer_type": extra.answer_type},
    }


def _save_results(folder: Path, task: RlTask) -> None:
    folder.mkdir(parents=True)
    for number, (_, thumbnail) in enumerate(task.replayed):
        (folder / f"img_{number:03d}.{thumbnail.extension}").write_bytes(thumbnail.content)
    results = [{"title": found.title, "image_url": found.url} for found, _ in task.replayed]
    write_document(folder / "meta.json", {"search_results": results}, indent=1, ensure_ascii=False)


MARS_RESULTS = 5
"""``image_search_max_results``: later results are cut off."""


def write_mars(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an RL release for SenseNova-MARS; see :class:`Exporter`."""
    check_mars_name(options.name)
    left = 0

    def read() -> Iterator[tuple[str, Row]]:
        nonlocal left
        for task in read_tasks(release):
            row = _make_mars_row(task, folder)
            left += len(task.thumbnails) - len(row["image_search_title_list"])
            yield name_stratum(task.split, task.pictures[:1]), row

    files = write_files(folder, open_lines, read())
    write_manifests(folder, options.name, files)
    notes = ["start training in this folder, or write its path into root and annotation"]
    notes += ["input_template has no system prompt: put the one of your protocol there"]
    notes += [f"{left} results beyond {MARS_RESULTS} or without a thumbnail are left out"] if left else []
    return Written(files.total(), tuple(notes))


def name_stratum(split: str, pictures: Sequence[ExportedPicture]) -> str:
    """Return the annotation's file that a row belongs to: questions of high resolution stand in one of their own.

    SenseNova-MARS lists each source by itself, DeepEyes-4K and Visual-Probe beside FVQA (6.2).
    """
    high = any(max(picture.size) >= LEAST_SIDE for picture in pictures)
    return f"{split}{HIGH if high else ''}.jsonl"


def check_mars_name(name: str) -> None:
    """Refuse a dataset's name that says which split a file holds."""
    if "train" in name or "test" in name:
        raise ConfigError(f"export: the name {name!r} holds train or test, which its file names use for the split")


def write_manifests(folder: Path, name: str, rows: Mapping[str, int]) -> None:
    """Write a manifest a split over its annotations, whose lines ``rows`` counts by file."""
    splits: dict[str, dict[str, Row]] = {}
    for stratum, count in sorted((file.removesuffix(".jsonl"), count) for file, count in rows.items()):
        splits.setdefault(stratum.removesuffix(HIGH), {})[f"{name}_{stratum}"] = _make_mars_entry(stratum, count)
    for split, entries in splits.items():
        file = f"train_{name}.json" if split == "train" else f"test_{name}_{split}.json"
        write_document(folder / file, entries, indent=1)


def _make_mars_entry(stratum: str, rows: int) -> Row:
    arguments = {"system_prompt": "", "format_instruction": "", "add_image_path": False}
    return {
        "root": ".",
        "annotation": f"{stratum}.jsonl",
        "length": rows,
        "repeat_time": 1,
        # A judge and the format, as in its own training manifest (4.1), which must name one.
        "reward_fn": ["llm_score", "format_score"],
        "unused_reward_fn": [],
        "input_template": {"name": "general", "arguments": arguments},
        "comment": "made by synth; licences are in ATTRIBUTION.tsv",
    }


def _make_mars_row(task: RlTask, folder: Path) -> Row:
    results = task.replayed[:MARS_RESULTS]
    return {
        "index": task.row.id,
        "prompt": [message.model_dump() for message in task.row.prompt],
        "images": [picture.save(folder) for picture in task.pictures],
        "reward_model": task.row.reward_model.model_dump(mode="json"),
        "image_search_title_list": [found.title for found, _ in results],
        "image_search_thumbnail_list": [thumbnail.save(folder) for _, thumbnail in results],
        "image_search_summary": None,
    }


RL_EXPORTERS = (
    Exporter("verl", "rl", write_verl),
    Exporter("rllm", "rl", write_rllm),
    Exporter("mmsearch-r1", "rl", write_mmsearch),
    Exporter("mars", "rl", write_mars),
)
