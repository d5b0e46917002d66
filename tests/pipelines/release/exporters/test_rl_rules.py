import copy
import json

import pytest

from pipelines.release.exporters.rules import (
    find_companion_faults,
    find_registry_faults,
    find_repeats,
    find_rllm_faults,
    find_verl_faults,
    find_verl_tool_faults,
)
from tests.pipelines.release.exporters.pictures import draw_png

TOOLS = ("image_search", "visit")
PNG = draw_png(40, 30)


def make_verl():
    return {
        "data_source": "synth",
        "prompt": [{"role": "user", "content": "<image>\nWhen?"}],
        "images": [{"bytes": PNG, "path": None}],
        "ability": "vqa",
        "reward_model": {"style": "rule", "ground_truth": "1204"},
        "extra_info": {
            "index": 0,
            "candidate_answers": '["1204", "AD 1204"]',
            "need_tools_kwargs": True,
            "tools_kwargs": {name: {"create_kwargs": {"task_id": "a"}} for name in TOOLS},
        },
        "agent_name": "tool_agent",
    }


def make_rllm():
    return {"id": "a", "question": "When?", "answer": "1204", "candidate_answers": '["1204"]', "images": [PNG]}


def spoil(row, path, value):
    """Return a copy of a row with another value at a dotted path; ``...`` as value removes it."""
    row = copy.deepcopy(row)
    *way, last = path.split(".")
    place = row
    for key in way:
        place = place[int(key) if isinstance(place, list) else key]
    last = int(last) if isinstance(place, list) else last
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return row


def test_a_row_that_veRL_loads_has_no_fault():
    assert list(find_verl_faults(make_verl(), TOOLS)) == []


def test_several_pictures_and_none_are_as_good_as_one():
    row = spoil(make_verl(), "prompt.0.content", "When?")
    assert list(find_verl_faults(spoil(row, "images", []), TOOLS)) == []
    row = spoil(make_verl(), "prompt.0.content", "<image><image>\nWhen?")
    assert list(find_verl_faults(spoil(row, "images", make_verl()["images"] * 2), TOOLS)) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("prompt.0.content", "When?", "0 placeholders for 1 pictures"),
        ("prompt.0.content", "<image><image> When?", "2 placeholders for 1 pictures"),
        ("prompt.0.content", "<image> <video>", "holds <video>"),
        ("prompt.0.content", "<image> <audio>", "holds <audio>"),
        ("prompt.0.content", "<image> <|im_end|>", "control token"),
        ("prompt.0.content", "<image> \ud800", "surrogate"),
        ("prompt.0.content", [{"type": "image"}], "not text"),
        ("prompt.0.role", "tool", "no role of a chat"),
        ("prompt", "When?", "not a list of messages"),
        ("prompt", [], "not a list of messages"),
        ("images.0", {"bytes": None, "path": "/a.png"}, "path that is null"),
        ("images.0", {"bytes": None, "path": None}, "has no bytes"),
        ("images.0", "/a.png", "struct of bytes"),
        ("images.0", PNG, "struct of bytes"),
        ("images.0.bytes", b"no picture", "is no PNG"),
        ("images.0.bytes", draw_png(2, 401), "factor of 200"),
        ("images", PNG, "not a list"),
        ("images", ..., "not a list"),
        ("reward_model.ground_truth", 1204, "text in every row"),
        ("reward_model.ground_truth", ["1204"], "text in every row"),
        ("reward_model.ground_truth", " ", "text in every row"),
        ("reward_model.style", "model", "it is rule"),
        ("reward_model", None, "not a struct"),
        ("data_source", "", "not a name"),
        ("agent_name", ..., "agent_name: is None"),
        ("agent_name", "best_agent", "it is one of"),
        ("extra_info", None, "struct with an index"),
        ("extra_info.index", "0", "struct with an index"),
        ("extra_info.candidate_answers", ["1204"], "list of texts as JSON"),
        ("extra_info.candidate_answers", "1204", "list of texts as JSON"),
        ("extra_info.candidate_answers", '["1300"]', "is not among them"),
        ("extra_info.candidate_answers", "[" * 100_000, "list of texts as JSON"),
        ("extra_info.need_tools_kwargs", False, "need_tools_kwargs is true"),
        ("extra_info.tools_kwargs", {}, "empty struct"),
        ("extra_info.tools_kwargs.visit", ..., "every row has"),
        ("extra_info.tools_kwargs.visit", None, "its create_kwargs has fields"),
        ("extra_info.tools_kwargs.visit", {"create_kwargs": {}}, "its create_kwargs has fields"),
        ("extra_info.tools_kwargs.visit.create_kwargs.task_id", None, "no nulls"),
        ("extra_info.interaction_kwargs", {}, "empty struct"),
    ],
)
def test_each_trap_of_veRL_is_a_fault(path, value, fault):
    faults = list(find_verl_faults(spoil(make_verl(), path, value), TOOLS))
    assert any(fault in one for one in faults), faults


@pytest.mark.parametrize(
    "lost", [{"default": "img_1"}, {"items": {"type": "number"}}, {"minItems": 4}, {"properties": {}}, {"type": ...}]
)
def test_what_veRL_leaves_out_of_a_tools_schema_is_a_fault(lost):
    kept = {"type": "string", "description": "d", "enum": ["a"]}
    tool = {
        "type": "function",
        "function": {"name": "crop", "parameters": {"type": "object", "properties": {"x": kept}}},
    }
    assert list(find_verl_tool_faults(tool)) == []
    changed = {key: value for key, value in (kept | lost).items() if value is not ...}
    tool["function"]["parameters"]["properties"]["x"] = changed
    assert any("of x veRL drops" in fault for fault in find_verl_tool_faults(tool))


@pytest.mark.parametrize("tool", [None, {}, {"function": {"name": "a"}}, {"function": {"parameters": {}}}])
def test_a_tool_without_properties_is_a_fault(tool):
    assert list(find_verl_tool_faults(tool))


def test_a_row_that_rllm_loads_has_no_fault():
    assert list(find_rllm_faults(make_rllm(), make_rllm())) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("extra", "x", "other columns are lost"),
        ("answer", ..., "other columns are lost"),
        ("answer", 1204, "text in every row"),
        ("id", "", "text in every row"),
        ("question", None, "text in every row"),
        ("question", "What <image> is it?", "stands for a picture"),
        ("question", "What <|im_end|> is it?", "control token"),
        ("candidate_answers", ["1204"], "list of texts as JSON"),
        ("images", None, "not a list of bytes"),
        ("images", ["/a.png"], "not a list of bytes"),
        ("images.0", b"x", "is no PNG"),
        ("images.0", draw_png(401, 2), "factor of 200"),
        ("answer", {}, "empty struct"),
    ],
)
def test_each_trap_of_rllm_is_a_fault(path, value, fault):
    faults = list(find_rllm_faults(spoil(make_rllm(), path, value), make_rllm()))
    assert any(fault in one for one in faults), faults


def test_pictures_are_only_known_when_the_first_row_has_some():
    first = spoil(make_rllm(), "images", [])
    assert any("not known as pictures" in fault for fault in find_rllm_faults(make_rllm(), first))
    assert list(find_rllm_faults(first, make_rllm())) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("extra_info.images.0", PNG, "not the row"),
        ("extra_info.images.0.path", None, "not the row"),
        ("extra_info.id", "b", "not the row"),
        ("prompt", [{"role": "user", "content": "When?"}], "rLLM puts a placeholder"),
    ],
)
def test_the_row_for_veRL_is_rllms_own_with_wrapped_pictures(path, value, fault):
    companion = {
        "prompt": [{"role": "user", "content": "placeholder"}],
        "extra_info": {**make_rllm(), "images": [{"bytes": PNG, "path": ""}]},
    }
    assert list(find_companion_faults(companion, make_rllm())) == []
    assert any(fault in one for one in find_companion_faults(spoil(companion, path, value), make_rllm()))


def make_registry():
    split = {"path": "kelm/train.arrow", "num_examples": 2, "fields": ["id", "images"]}
    return {"version": 2, "datasets": {"kelm": {"metadata": {}, "splits": {"train": split}}}}


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("version", 1, "not of version 2"),
        ("datasets", [], "not of version 2"),
        ("datasets.kelm.metadata", ..., "needs metadata and splits"),
        ("datasets.kelm.splits", {}, "needs metadata and splits"),
        ("datasets.kelm.splits.train.path", "/abs/train.arrow", "is not there"),
        ("datasets.kelm.splits.train.path", None, "is not there"),
        ("datasets.kelm.splits.train.num_examples", 3, "the file has others"),
        ("datasets.kelm.splits.train.fields", ["id"], "the file has others"),
    ],
)
def test_each_trap_of_the_registry_is_a_fault(path, value, fault):
    files = {"kelm/train.arrow": (2, ["id", "images"])}
    assert list(find_registry_faults(make_registry(), files)) == []
    faults = list(find_registry_faults(spoil(make_registry(), path, value), files))
    assert any(fault in one for one in faults), faults


def test_ids_that_stand_for_two_rows_are_told():
    assert list(find_repeats(["a", "b"])) == []
    assert len(list(find_repeats(["0", "1", "0"]))) == 1


@pytest.mark.parametrize(
    "row", [{}, {"prompt": None}, {"extra_info": 3, "images": [None]}, json.loads('{"prompt": [3]}')]
)
def test_rows_of_any_shape_are_judged_and_break_nothing(row):
    assert list(find_verl_faults(row, TOOLS))
    assert list(find_rllm_faults(row, make_rllm()))
