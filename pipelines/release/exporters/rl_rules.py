"""What veRL and rLLM drop, shift or fail on in RL data, as rules over plain dictionaries.

Nothing is imported but the standard library, ``text_rules`` and ``picture_rules``, so that the three files can be taken
along. Read from, and run against, veRL 0.9.1 and the registry of rLLM 1f81bd8 (version 2). Each function yields what is
wrong, in words; a row without a fault is loaded whole.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipelines.release.exporters.picture_rules import find_picture_faults
from pipelines.release.exporters.text_rules import IMAGE, find_count_faults, find_text_faults, shorten

AGENTS = ("tool_agent", "single_turn_agent")
"""Agent loops that veRL registers itself; another name is an assertion."""
PLACEHOLDER_PROMPT = [{"role": "user", "content": "placeholder"}]
"""What rLLM puts where veRL wants a prompt."""


def find_prompt_faults(prompt: object) -> Iterator[str]:
    """Yield what is wrong with a prompt: a list of messages whose content is text."""
    if not isinstance(prompt, list) or not prompt:
        yield f"prompt: is {shorten(prompt)}, not a list of messages"
        return
    for number, message in enumerate(prompt):
        if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
            yield f"prompt: message {number} is {shorten(message)}, which has no role of a chat"
            continue
        # Placeholders in a list of parts are not counted, so the pictures are said to be too many.
        yield from find_text_faults(message.get("content"), f"prompt: message {number}")


def find_struct_faults(value: object, where: str) -> Iterator[str]:
    """Yield structs without fields, which Parquet cannot hold."""
    if value == {}:
        yield f"{where}: is an empty struct, which Parquet cannot hold"
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from find_struct_faults(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value[:1]:
            yield from find_struct_faults(inner, where)


def find_truth_faults(reward_model: object) -> Iterator[str]:
    """Yield what is wrong with a rule reward: its ground truth is text, of one type in the whole file."""
    if not isinstance(reward_model, dict):
        yield f"reward_model: is {shorten(reward_model)}, not a struct"
        return
    truth = reward_model.get("ground_truth")
    if not isinstance(truth, str) or not truth.strip():
        yield f"reward_model.ground_truth: is {shorten(truth)}; it is text in every row"
    if reward_model.get("style") != "rule":
        yield f"reward_model.style: is {shorten(reward_model.get('style'))}; it is rule"


def find_embedded_faults(images: object) -> Iterator[str]:
    """Yield what is wrong with pictures as veRL opens them: ``{"bytes": ..., "path": None}`` of whole files."""
    if not isinstance(images, list):
        yield f"images: is {shorten(images)}, not a list"
        return
    for number, image in enumerate(images):
        where = f"images: picture {number}"
        if not isinstance(image, dict) or set(image) != {"bytes", "path"} or image["path"] is not None:
            yield f"{where} is {shorten(image)}; it is a struct of bytes and of a path that is null"
        else:
            yield from find_picture_faults(image["bytes"], where)


def find_answers_faults(text: object, truth: object, where: str) -> Iterator[str]:
    """Yield what is wrong with candidate answers: a list as JSON text, the ground truth among them.

    As a list they come out of Parquet as an array, which reward managers that ask for ``list`` refuse.
    """
    try:
        values = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        yield f"{where}: is {shorten(text)}; it is a list of texts as JSON"
    elif truth not in values:
        yield f"{where}: the ground truth is not among them"


def find_verl_faults(row: Mapping[str, Any], tools: Sequence[str]) -> Iterator[str]:
    """Yield what veRL would drop or fail on in one row.

    With ``filter_overlong_prompts``, its default, a row that raises is dropped as too long, with one printed line.

    Args:
        row: as Parquet gives it.
        tools: names of the tools that the file's rows have arguments for, the same in every row.
    """
    yield from find_prompt_faults(row.get("prompt"))
    yield from find_embedded_faults(row.get("images"))
    yield from find_count_faults(list_texts(row.get("prompt")), count(row.get("images")))
    yield from find_truth_faults(row.get("reward_model"))
    if not isinstance(row.get("data_source"), str) or not row["data_source"]:
        yield f"data_source: is {shorten(row.get('data_source'))}, not a name"
    if row.get("agent_name") not in AGENTS:
        yield f"agent_name: is {shorten(row.get('agent_name'))}; it is one of {', '.join(AGENTS)}"
    for name, value in row.items():
        yield from find_struct_faults(value, name)
    extra = row.get("extra_info")
    if not isinstance(extra, dict) or not isinstance(extra.get("index"), int):
        yield f"extra_info: is {shorten(extra)}; it is a struct with an index"
        return
    truth = row["reward_model"].get("ground_truth") if isinstance(row.get("reward_model"), dict) else None
    yield from find_answers_faults(extra.get("candidate_answers"), truth, "extra_info.candidate_answers")
    yield from find_tools_kwargs_faults(extra, tools)


def find_tools_kwargs_faults(extra: Mapping[str, Any], tools: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with a row's arguments of tools.

    Rows with other keys are joined to one struct whose missing fields are null, and ``None.get`` of a tool that a row
    does not name becomes the tool's reply: the same keys in every row, and nothing null.
    """
    arguments = extra.get("tools_kwargs")
    if extra.get("need_tools_kwargs") is not True or not isinstance(arguments, dict):
        yield "extra_info: need_tools_kwargs is true, and tools_kwargs has the arguments of every tool"
        return
    if sorted(arguments) != sorted(tools):
        yield f"extra_info.tools_kwargs: has {sorted(arguments)}; every row has {sorted(tools)}"
    for name, value in arguments.items():
        created = value.get("create_kwargs") if isinstance(value, dict) else None
        if not isinstance(created, dict) or not created or None in created.values():
            yield f"extra_info.tools_kwargs.{name}: is {shorten(value)}; its create_kwargs has fields and no nulls"


def find_verl_tool_faults(schema: object) -> Iterator[str]:
    """Yield what veRL leaves out of a tool's schema: of a property it keeps type, description and enum alone."""
    function = schema.get("function") if isinstance(schema, dict) else None
    parameters = function.get("parameters") if isinstance(function, dict) else None
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(function, dict) or not isinstance(properties, dict):
        yield f"tool: is {shorten(schema)}; it is a function with parameters that have properties"
        return
    for name, value in properties.items():
        lost = sorted(set(value) - {"type", "description", "enum"})
        if lost or "type" not in value:
            yield f"tool {function.get('name')}: of {name} veRL drops {', '.join(lost) or 'everything: it has no type'}"


def find_registry_faults(
    registry: object, counts: Mapping[str, int], fields: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield what is wrong with rLLM's ``registry.json``.

    Args:
        registry: the document.
        counts: rows of each file, by its path relative to the folder of ``registry.json``.
        fields: columns of each.
    """
    datasets = registry.get("datasets") if isinstance(registry, dict) else None
    if not isinstance(registry, dict) or registry.get("version") != 2 or not isinstance(datasets, dict):
        yield "registry: is not of version 2; an older one is taken for a table of absolute paths and rewritten"
        return
    for name, entry in datasets.items():
        splits = entry.get("splits") if isinstance(entry, dict) else None
        if not isinstance(splits, dict) or not isinstance(entry.get("metadata"), dict) or not splits:
            yield f"registry: {name} needs metadata and splits"
            continue
        for split, told in splits.items():
            where = f"registry: {name} {split}"
            path = told.get("path") if isinstance(told, dict) else None
            if not isinstance(path, str) or path not in counts:
                yield f"{where}: the file {shorten(path)} is not there; it would be found missing and be None"
            elif told.get("num_examples") != counts[path] or list(told.get("fields", ())) != list(fields[path]):
                yield f"{where}: says {told.get('num_examples')} rows of {told.get('fields')}; the file has others"


def find_rllm_faults(row: Mapping[str, Any], first: Mapping[str, Any]) -> Iterator[str]:
    """Yield what rLLM would lose of one row, or of the file when it is registered again.

    Args:
        row: as the Arrow file gives it.
        first: the file's first row, which alone decides columns, and whether pictures are known as such.
    """
    if list(row) != list(first):
        yield f"row: has {list(row)}; the first one has {list(first)}, and other columns are lost"
    for name in ("id", "question", "answer"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            yield f"{name}: is {shorten(row.get(name))}; it is text in every row"
    yield from find_text_faults(row.get("question"), "question")
    if IMAGE in str(row.get("question")):
        yield f"question: holds {IMAGE}, which stands for a picture wherever a prompt is made of it"
    yield from find_answers_faults(row.get("candidate_answers"), row.get("answer"), "candidate_answers")
    images = row.get("images")
    if not isinstance(images, list) or not all(isinstance(image, bytes) for image in images):
        yield f"images: is {shorten(images)}, not a list of bytes"
        return
    if images and not first.get("images"):
        yield "images: the first row has none, so these are not known as pictures when the rows are registered again"
    for number, image in enumerate(images):
        yield from find_picture_faults(image, f"images: picture {number}")
    for name, value in row.items():
        yield from find_struct_faults(value, name)


def find_companion_faults(companion: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Yield where rLLM's row for veRL is not its own row with wrapped pictures."""
    wrapped = {**row, "images": [{"bytes": image, "path": ""} for image in row.get("images") or ()]}
    if companion.get("extra_info") != wrapped:
        yield "extra_info: is not the row with its pictures as bytes and an empty path"
    if companion.get("prompt") != PLACEHOLDER_PROMPT:
        yield f"prompt: is {shorten(companion.get('prompt'))}; rLLM puts a placeholder there"


def find_repeats(ids: Sequence[str]) -> Iterator[str]:
    """Yield ids that stand for more than one row, whatever their split: nobody checks, and results are joined by id."""
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            yield f"id: {shorten(name)} stands for more than one row"
        seen.add(name)


def list_texts(prompt: object) -> list[str]:
    """Return the messages' contents that are text."""
    messages = prompt if isinstance(prompt, list) else []
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    return [content for content in contents if isinstance(content, str)]


def count(values: object) -> int:
    """Return how many elements a list has; 0 for what is none."""
    return len(values) if isinstance(values, list) else 0
