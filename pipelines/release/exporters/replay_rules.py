"""What MMSearch-R1 and SenseNova-MARS drop, shift or fail on; both replay a search by picture from the data.

Rules over plain dictionaries, read from the two projects' own dataset classes. Nothing is imported but the standard
library, ``rl_rules``, ``text_rules`` and ``picture_rules``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.release.exporters.rl_rules import (
    count,
    find_answers_faults,
    find_embedded_faults,
    find_prompt_faults,
    find_truth_faults,
    list_texts,
)
from pipelines.release.exporters.text_rules import IMAGE, find_count_faults, find_file_faults, shorten

MARS_REWARDS = ("f1_score", "llm_score", "llm_score_allow_no_answer_tag", "em_score", "em_score_mcq", "format_score")
MARS_RESULTS = 5
"""``image_search_max_results``: what comes after is cut off."""
MMSEARCH_SOURCE = "mmsearch_r1"


def find_mmsearch_faults(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what MMSearch-R1 would drop or fail on in one row.

    Its dataset class puts its own first prompt, which ends with a placeholder, before the question: one picture a row
    and no placeholder in it.
    """
    yield from find_prompt_faults(row.get("prompt"))
    yield from find_embedded_faults(row.get("images"))
    yield from find_truth_faults(row.get("reward_model"))
    texts = list_texts(row.get("prompt"))
    if len(texts) != 1 or row["prompt"][0].get("role") != "user":
        yield f"prompt: has {len(texts)} messages; only the first one is read, and it is the question"
    if any(IMAGE in text for text in texts):
        yield f"prompt: holds {IMAGE}; the reader adds one and would look for a second picture"
    if count(row.get("images")) != 1:
        yield f"images: {count(row.get('images'))} pictures; the reader's prompt shows one"
    if MMSEARCH_SOURCE not in str(row.get("data_source")):
        yield f"data_source: is {shorten(row.get('data_source'))}; without {MMSEARCH_SOURCE} there is no reward"
    model = row.get("reward_model")
    if isinstance(model, dict):
        answers, truth = model.get("candidate_answers"), model.get("ground_truth")
        yield from find_answers_faults(answers, truth, "reward_model.candidate_answers")
    extra = row.get("extra_info")
    if not isinstance(extra, dict) or not isinstance(extra.get("index"), int):
        yield f"extra_info: is {shorten(extra)}; its index is read"


def find_cache_faults(meta: object, files: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with one folder of the image-search cache.

    Args:
        meta: its ``meta.json``.
        files: names of the other files in it; the n-th result's thumbnail is ``img_00n``.
    """
    results = meta.get("search_results") if isinstance(meta, dict) else None
    if not isinstance(results, list) or not all(isinstance(found, dict) and "title" in found for found in results):
        yield f"meta.json: is {shorten(meta)}; it has search_results with a title each"
        return
    stems = sorted(name.partition(".")[0] for name in files)
    if stems != [f"img_{number:03d}" for number in range(len(results))]:
        yield f"thumbnails: are {shorten(stems)} for {len(results)} titles; there is one for each, in order"


def find_manifest_faults(name: str, manifest: object, lines: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with a manifest of SenseNova-MARS.

    Args:
        name: the manifest's file name, which alone says whether it is trained on.
        manifest: the document.
        lines: lines that are not blank of each annotation file, by its path as the manifest has it.
    """
    if ("train" in name) == ("test" in name):
        yield f"{name}: the name has to hold either train or test; with both it is trained on"
    if not isinstance(manifest, dict) or not manifest:
        yield f"{name}: is {shorten(manifest)}, not a table of datasets"
        return
    for title, entry in manifest.items():
        if not isinstance(entry, dict):
            yield f"{name}: {title} is {shorten(entry)}, not an entry"
            continue
        yield from find_entry_faults(f"{name}: {title}", entry, lines, "train" in name)


def find_entry_faults(where: str, entry: Mapping[str, Any], lines: Mapping[str, int], train: bool) -> Iterator[str]:
    """Yield what is wrong with one dataset of a MARS manifest."""
    if entry.get("annotation") not in lines:
        yield f"{where}: the annotation {shorten(entry.get('annotation'))} is not there; it is not looked for in root"
    elif entry.get("length") != lines[entry["annotation"]]:
        yield f"{where}: length is {entry.get('length')} for {lines[entry['annotation']]} lines; loading stops there"
    if not isinstance(entry.get("root"), str) or not entry["root"]:
        yield f"{where}: without a root thumbnails are looked for where the trainer was started"
    if not isinstance(entry.get("repeat_time"), int | float) or entry["repeat_time"] < 1:
        yield f"{where}: repeat_time is {shorten(entry.get('repeat_time'))}; below 1 rows are left out at random"
    rewards = entry.get("reward_fn")
    if not isinstance(rewards, list) or (train and not rewards) or not set(rewards) <= set(MARS_REWARDS):
        yield f"{where}: reward_fn is {shorten(rewards)}; it lists some of {', '.join(MARS_REWARDS)}"
    if not isinstance(entry.get("unused_reward_fn"), list):
        yield f"{where}: unused_reward_fn is required"
    template = entry.get("input_template")
    if not isinstance(template, dict) or not isinstance(template.get("arguments"), dict) or "name" not in template:
        yield f"{where}: input_template is required, with name and arguments"


def find_mars_faults(row: Mapping[str, Any], exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield what SenseNova-MARS would shift or fail on in one row.

    Args:
        row: one line.
        exists: whether a file of that path relative to the root is there.
    """
    yield from find_prompt_faults(row.get("prompt"))
    prompt = row.get("prompt")
    if isinstance(prompt, list) and any(isinstance(one, dict) and one.get("role") == "system" for one in prompt):
        yield "prompt: has a system message; the manifest's system prompt is put in, and two are an error"
    yield from find_file_faults(row.get("images"), exists)
    yield from find_count_faults(list_texts(prompt), count(row.get("images")))
    model = row.get("reward_model")
    truth = model.get("ground_truth") if isinstance(model, dict) else None
    if not isinstance(truth, str) or not truth.strip():
        yield f"reward_model.ground_truth: is {shorten(truth)}; it is text in every row"
    titles, thumbnails = row.get("image_search_title_list"), row.get("image_search_thumbnail_list")
    yield from find_file_faults(thumbnails, exists)
    if not isinstance(titles, list) or not isinstance(thumbnails, list) or len(titles) != len(thumbnails):
        yield f"image search: {count(titles)} titles for {count(thumbnails)} thumbnails; there is one for each"
    elif len(titles) > MARS_RESULTS:
        yield f"image search: {len(titles)} results; what comes after {MARS_RESULTS} is cut off"
    if "index" not in row:
        yield "index: is missing; the row's name would be its place after repeats"
