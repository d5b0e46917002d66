"""veRL's own dataset, tool registry and reward loader over our RL export."""

import hashlib
import io
import json

import pytest
from PIL import Image

from pipelines.release.exporters.registry import export_release
from pipelines.release.exporters.rl import flatten_schema, list_tools, read_tasks
from tests.pipelines.release.exporters.rl_releases import HOSTILE, publish_rl

pytestmark = pytest.mark.consumers
CALL = '<think>a</think><tool_call>{"name": "visit", "arguments": {"url": "u"}}</tool_call>'
REPLY = "<|im_end|>\n<|im_start|>user\n<tool_response>\nKelm.\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
VERSION = "0.9.1"
ANSWERS = ("1201", "AD 1202", "Ostrava")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    root = tmp_path_factory.mktemp("verl")
    release = publish_rl(root)
    report = export_release(release, root / "out", "verl")
    assert report.rows == len(HOSTILE)
    return root / "out", {task.row.id: task for task in read_tasks(release)}


def load(drive, folder, filters=True):
    said = [f"{CALL}{REPLY}<think>b</think><answer>{answer}</answer><|im_end|>" for answer in ANSWERS]
    return drive("verl", "load_verl_rl.py", folder, "train.parquet", str(filters).lower(), json.dumps(said))


@pytest.fixture(scope="module", params=[True, False], ids=["filtering", "not-filtering"])
def loaded(request, drive, exported):
    return load(drive, exported[0], filters=request.param)


def hash_pixels(content):
    return hashlib.sha256(Image.open(io.BytesIO(content)).convert("RGB").tobytes()).hexdigest()


def test_it_is_the_veRL_that_the_rules_were_read_from(loaded):
    assert loaded["version"] == VERSION


def test_every_row_is_loaded_once(loaded, exported):
    ids = [row["question_id"] for row in loaded["rows"]]
    assert loaded["loaded"] == len(HOSTILE)
    assert sorted(ids) == sorted(exported[1])


def test_every_picture_is_the_bytes_that_were_released(loaded, exported, note):
    for row in loaded["rows"]:
        pictures = exported[1][row["question_id"]].pictures
        assert row["files"] == [picture.sha256 for picture in pictures]
        assert row["pixels"] == [hash_pixels(picture.content) for picture in pictures]
        assert row["pads"] > 0
    counted = {"pictures equal": sum(len(row["pixels"]) for row in loaded["rows"]), "hostile pages": len(HOSTILE)}
    rows = {"rows in": len(exported[1]), "rows out": loaded["loaded"]}
    note(export="verl", loader=loaded["version"], **rows, **counted)


def test_hostile_questions_are_in_the_prompt_as_they_are_and_change_nothing_else(loaded, exported):
    for row in loaded["rows"]:
        task = exported[1][row["question_id"]]
        shown = "<|vision_start|><|image_pad|><|vision_end|>\n" + task.row.extra_info.question
        assert row["prompt"] == f"<|im_start|>user\n{shown}<|im_end|>\n<|im_start|>assistant\n"


def test_every_row_creates_every_tool_and_replays_its_own_results(loaded, exported):
    for row in loaded["rows"]:
        task = exported[1][row["question_id"]]
        assert all("task_id" in created for created in row["created"].values())
        assert row["results"] == [
            {"title": found.title, "thumbnail": shown.sha256 if shown else ""}
            for found, shown in zip(task.row.image_search, task.thumbnails, strict=True)
        ]


def test_the_tools_schemas_reach_the_prompt_whole(loaded):
    assert loaded["schemas"] == [flatten_schema(spec) for spec in list_tools()]


def test_the_reward_that_is_shipped_scores_by_the_rows_own_truth_and_its_other_names(loaded, exported):
    assert not loaded["is_async"]
    for row in loaded["rows"]:
        accepted = exported[1][row["question_id"]].row.reward_model.candidate_answers
        assert row["truth"] == accepted[0]
        assert row["scores"] == [float(answer in accepted) for answer in ANSWERS]


def test_rows_make_a_batch(loaded):
    assert {"raw_prompt", "tools_kwargs", "reward_model", "agent_name", "data_source"} <= set(loaded["collated"])
