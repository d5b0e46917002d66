"""Rows, entries and folders that trainers load, and each trap in which they would not."""

import copy
import json

import pytest

from pipelines.release.exporters.rules import (
    find_cache_faults,
    find_companion_faults,
    find_dataset_faults,
    find_llamafactory_faults,
    find_manifest_faults,
    find_mars_faults,
    find_mmsearch_faults,
    find_ms_swift_faults,
    find_registry_faults,
    find_repeats,
    find_rllm_faults,
    find_trl_faults,
    find_verl_faults,
    find_verl_sft_faults,
    find_verl_tool_faults,
)
from tests.pipelines.release.exporters.pictures import draw_png

THOUGHT = "<think>\nlook\n</think>\n\n"
CALL = '{"name": "visit", "arguments": {"url": "u"}}'
TOOLS = '[{"type": "function", "function": {"name": "visit", "parameters": {}}}]'


def always(name):
    return True


def sharegpt(*turns, **changes):
    told = turns or (
        ("human", "<image>\nWhen?"),
        ("function_call", THOUGHT + CALL),
        ("observation", "<image>\nIn 1201."),
        ("gpt", THOUGHT + "<answer>1201</answer>"),
    )
    row = {
        "conversations": [{"from": who, "value": value} for who, value in told],
        "images": ["images/a.png", "images/b.png"],
        "system": "Use tools.",
        "tools": TOOLS,
    }
    return row | changes


def find_sharegpt(*turns, exists=always, **changes):
    return list(find_llamafactory_faults(sharegpt(*turns, **changes), exists))


def replace_turn(place, value):
    turns = [(turn["from"], turn["value"]) for turn in sharegpt()["conversations"]]
    turns[place] = (turns[place][0], value)
    return turns


@pytest.mark.parametrize(
    ("turns", "fault"),
    [
        ([("gpt", "a"), ("human", "b")], "turn 0: is from 'gpt'"),
        ([("human", "a"), ("function_call", CALL), ("function_call", CALL), ("gpt", "b")], "turn 2: is from"),
        ([("human", "a"), ("gpt", "b"), ("observation", "c")], "3 turns"),
        ([("human", "a"), ("tool", "b")], "turn 1: is from 'tool'"),
        ([("observation", "a"), ("gpt", "b")], "observation of nothing"),
        ([("system", "s"), ("human", "a"), ("gpt", "b")], "wins over the column"),
    ],
)
def test_turns_out_of_order_would_drop_the_row(turns, fault):
    assert any(fault in found for found in find_sharegpt(*turns, images=[]))


@pytest.mark.parametrize(
    "conversations", [None, [], "text", [{"from": "human"}], [{"from": "human", "value": None}], [3]]
)
def test_conversations_that_are_none_are_a_fault(conversations):
    assert find_sharegpt(conversations=conversations) == ["conversations: is no list of turns with from and value"]


@pytest.mark.parametrize("images", [[], ["images/a.png"], ["images/a.png"] * 3])
def test_placeholders_that_are_not_the_pictures_would_end_the_job(images):
    assert find_sharegpt(images=images) == [
        f"images: 2 placeholders for {len(images)} pictures; there must be one each"
    ]


def test_a_placeholder_in_what_a_page_says_is_counted():
    assert any("3 placeholders for 2" in fault for fault in find_sharegpt(*replace_turn(2, "<image>\nsee <image>")))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a <video> b", "holds <video>"),
        ("a <audio> b", "holds <audio>"),
        ("<|im_end|>", "control token"),
        ("</s>", "control token"),
        ("[INST]", "control token"),
        ("\ud800", "unpaired surrogate"),
        ("a </tool_call>", "only the model may write"),
        ("a <think>", "only the model may write"),
        ("</tool_response>", "only the model may write"),
    ],
)
@pytest.mark.parametrize("place", [0, 2])
def test_text_that_a_reader_would_take_for_something_else_is_a_fault(text, fault, place):
    assert any(fault in found for found in find_sharegpt(*replace_turn(place, f"<image>\n{text}")))


def test_a_variable_of_the_template_is_a_fault_where_it_is_filled_in():
    assert any("{{idx}}" in fault for fault in find_sharegpt(*replace_turn(0, "<image>\n{{idx}}")))
    assert find_sharegpt(*replace_turn(2, "<image>\n{{idx}}")) == []


WRAPPINGS = ["<tool_response>\nt\n</tool_response>", "<image>\n<tool_response>t</tool_response>\n"]


@pytest.mark.parametrize("told", WRAPPINGS)
def test_a_replys_own_wrapping_is_no_fault_in_a_humans_turn(told):
    images = ["images/a.png"] * (1 + told.count("<image>"))
    turns = [("human", "<image> q"), ("gpt", "a"), ("human", told), ("gpt", "b")]
    assert find_sharegpt(*turns, images=images) == []
    turns[2] = ("human", told.replace("t\n", "t</tool_response>\n").replace(">t<", "><think>t<"))
    assert any("only the model may write" in fault for fault in find_sharegpt(*turns, images=images))


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("no json", "is not JSON"),
        ("<think>look</think>" + CALL, "the thought must be"),
        ("<think>\nlook\n</think>\n" + CALL, "the thought must be"),
        (THOUGHT + '{"name": "visit"}', "arguments are no object"),
        (THOUGHT + '{"name": "visit", "arguments": "{}"}', "encoded a second time"),
        (THOUGHT + '{"name": "visit", "arguments": []}', "arguments are no object"),
        (THOUGHT + '{"arguments": {}}', "no name"),
        (THOUGHT + f"[{CALL}, {CALL}]", "several calls"),
        (THOUGHT + '{"name": "visit", "arguments": {"x": NaN}}', "is not JSON"),
        (f"<tool_call>\n{CALL}\n</tool_call><tool_call>\n{CALL}\n</tool_call>", "several calls"),
    ],
)
def test_a_call_that_would_fail_or_be_encoded_twice_is_a_fault(value, fault):
    assert any(fault in found for found in find_sharegpt(*replace_turn(1, value)))


@pytest.mark.parametrize("value", [CALL, THOUGHT + CALL, f"so\n<tool_call>\n{CALL}\n</tool_call>"])
def test_the_three_forms_of_a_call_are_none(value):
    assert find_sharegpt(*replace_turn(1, value)) == []


@pytest.mark.parametrize(
    "tools", ["no json", "{}", '["visit"]', '[{"function": {}}]', [{"name": "visit"}], "[" * 100_000]
)
def test_tools_that_are_no_json_array_of_schemas_are_a_fault(tools):
    assert len(find_sharegpt(tools=tools)) == 1


@pytest.mark.parametrize("tools", ["", None, '[{"name": "visit"}]'])
def test_tools_may_be_absent_or_bare(tools):
    assert find_sharegpt(tools=tools) == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.png", "images/../../a.png", "~/a.png"])
def test_a_picture_outside_the_folder_is_a_fault(name):
    assert any("leads out" in fault for fault in find_sharegpt(images=[name, "images/b.png"]))


def test_a_missing_picture_is_a_fault():
    assert find_sharegpt(exists=lambda name: name != "images/b.png") == ["images: 'images/b.png' is missing"]


def test_pictures_that_are_no_paths_are_a_fault():
    assert any("not a list of paths" in fault for fault in find_sharegpt(images=[{"bytes": "x"}]))


def test_a_placeholder_in_the_system_message_is_a_fault():
    assert any(fault.startswith("system:") for fault in find_sharegpt(system="<image>"))


def make_entry(**changes):
    columns = {"messages": "conversations", "images": "images", "system": "system", "tools": "tools"}
    return {"synth": {"file_name": "train.jsonl", "formatting": "sharegpt", "columns": columns} | changes}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tags": {"role_tag": "from", "content_tag": "value", "user_tag": "human"}}, "tags leaves out"),
        ({"formatting": "openai"}, "loses the content"),
        ({"formatting": "alpaca"}, "need sharegpt"),
        ({"file_name": "train.txtx"}, "file_name"),
        ({"file_name": None}, "file_name"),
        ({"columns": {"messages": "conversations", "images": "images", "system": "system"}}, "no tools"),
        ({"columns": None}, "no messages"),
    ],
)
def test_an_entry_that_loses_rows_or_columns_is_a_fault(changes, fault):
    assert any(fault in found for found in find_dataset_faults(make_entry(**changes), always))


def test_an_entrys_missing_file_is_a_fault():
    assert any("is missing" in fault for fault in find_dataset_faults(make_entry(), lambda name: False))


@pytest.mark.parametrize("document", [None, [], {}, {"synth": 3}])
def test_a_document_without_entries_is_a_fault(document):
    assert len(list(find_dataset_faults(document, always))) == 1


def swift(*messages, **changes):
    told = messages or (
        ("system", "Use tools."),
        ("user", "<image>\nWhen?"),
        ("assistant", THOUGHT),
        ("tool_call", CALL),
        ("tool_response", "<image>\nIn 1201."),
        ("assistant", THOUGHT + "<answer>1201</answer>"),
    )
    rows = [{"role": role, "content": content} for role, content in told]
    rows = [row | ({"loss": True} if row["role"] in ("assistant", "tool_call") else {}) for row in rows]
    return {"messages": rows, "images": ["images/a.png", "images/b.png"], "tools": TOOLS} | changes


def find_swift(*messages, exists=always, **changes):
    return list(find_ms_swift_faults(swift(*messages, **changes), exists))


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([("human", "a"), ("assistant", "b")], "role 'human'"),
        ([("user", "a"), ("system", "s"), ("assistant", "b")], "after the beginning"),
        ([("assistant", "a")], "the first must be the user's"),
        ([("user", "a")], "the last is of user"),
        ([("user", "a"), ("tool_call", CALL)], "the last is of tool_call"),
        ([("user", "a"), ("tool_call", CALL), ("assistant", "b")], "has no reply"),
        ([("user", "a"), ("tool_call", CALL), ("tool_call", CALL), ("tool", "t"), ("assistant", "b")], "one a turn"),
        ([("user", "a"), ("tool", "t"), ("assistant", "b")], "without a call"),
        ([("user", "a"), ("user", "b"), ("assistant", "c")], "both of user"),
        ([("user", "a"), ("assistant", "b"), ("assistant", "c")], "both of assistant"),
        ([("user", "a"), ("tool_call", "no json"), ("tool", "t"), ("assistant", "b")], "is not JSON"),
        ([("user", "a"), ("assistant", "so <think>\nx\n</think>")], "the thought must be"),
        ([("user", "{{QUERY}}"), ("assistant", "b")], "fills in"),
        ([("user", "q"), ("tool_call", CALL), ("tool", "{{SYSTEM}}"), ("assistant", "b")], "fills in"),
        ([("user", "<img>a.png</img>"), ("assistant", "b")], "becomes a placeholder"),
        ([("user", "<|im_end|>"), ("assistant", "b")], "control token"),
    ],
)
def test_messages_that_ms_swift_would_merge_shift_or_fail_on_are_a_fault(messages, fault):
    assert any(fault in found for found in find_swift(*messages, images=[]))


@pytest.mark.parametrize("images", [[], ["images/a.png"], ["images/a.png"] * 3])
def test_ms_swift_would_move_a_picture_without_a_placeholder_to_the_question(images):
    assert any("2 placeholders for" in fault for fault in find_swift(images=images))


def test_a_placeholder_where_no_picture_may_stand_is_a_fault():
    assert any("pictures stand in" in fault for fault in find_swift(("user", "a"), ("assistant", "<image>")))


def test_a_loss_that_is_no_flag_or_not_the_models_is_a_fault():
    row = swift()
    row["messages"][2]["loss"] = 1.0
    row["messages"][1]["loss"] = True
    faults = list(find_ms_swift_faults(row, always))
    assert [fault.partition(":")[0] for fault in faults] == ["message 1 (user)", "message 2 (assistant)"]


@pytest.mark.parametrize("messages", [None, [], [{"role": "user"}], [{"role": "user", "content": None}]])
def test_messages_that_are_none_are_a_fault(messages):
    assert len(find_swift(messages=messages)) == 1
    assert len(list(find_verl_sft_faults({"messages": messages, "images": []}))) == 1


PNG = draw_png(40, 20)


def image(data=PNG):
    return {"bytes": data, "path": "a.png"}


def text(content):
    return {"type": "text", "text": content}


PLACE = {"type": "image", "text": None}


def typed(**changes):
    messages = [
        {"role": "system", "content": [text("Use tools.")]},
        {"role": "user", "content": [PLACE, text("When?")]},
        {"role": "assistant", "content": [text("1201")]},
    ]
    return {"messages": messages, "images": [image()]} | changes


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"messages": None}, "no list of messages"),
        ({"messages": [{"role": "user", "content": "<image>When?"}]}, "plain text"),
        ({"messages": [{"role": "user", "content": []}]}, "no list of parts"),
        ({"messages": [{"role": "tool", "content": [PLACE]}]}, "only those of user"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "text": None, "image": "x"}]}]}, "already"),
        ({"messages": [{"role": "user", "content": [text("<image>")]}]}, "as text"),
        ({"messages": [{"role": "user", "content": [{"type": "video", "text": None}]}]}, "of type 'video'"),
        ({"messages": [{"role": "user", "content": [text(None)]}]}, "not text"),
        ({"messages": [{"role": "user", "content": [text("</tool_call>")]}]}, "only the model"),
        ({"messages": [{"role": "user", "content": [text("q")]}], "images": []}, "take turns"),
        ({"images": []}, "1 placeholders for 0"),
        ({"images": [image(), image()]}, "1 placeholders for 2"),
        ({"images": [image(None)]}, "has no bytes"),
        ({"images": ["a.png"]}, "has no bytes"),
        ({"images": None}, "not a list"),
        ({"tools": TOOLS}, "not passed to the template"),
    ],
)
def test_rows_that_trl_would_shift_or_fail_on_are_a_fault(changes, fault):
    assert any(fault in found for found in find_trl_faults(typed(**changes)))


def plain(*messages, **changes):
    told = messages or (("system", "Use tools."), ("user", "<image>\nWhen?"), ("assistant", "1201"))
    return {"messages": [{"role": who, "content": what} for who, what in told], "images": [image()]} | changes


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (plain(("user", "q <image>"), ("tool", "t"), ("assistant", "a")), "take turns"),
        (plain(("user", "q")), "take turns"),
        (plain(("user", "q"), ("assistant", "<image>")), "pictures stand in"),
        (plain(("user", "<image> <video>"), ("assistant", "a")), "holds <video>"),
        (plain(images=[]), "1 placeholders for 0"),
        (plain(images=[{"bytes": None, "path": "a.png"}]), "has no bytes"),
        (plain(tools=TOOLS), "as text they are refused"),
        (plain(tools=[]), "fill up with nulls"),
    ],
)
def test_rows_that_verl_would_shift_or_fail_on_are_a_fault(row, fault):
    assert any(fault in found for found in find_verl_sft_faults(row))


def test_faults_quote_no_more_than_a_little_of_a_row():
    row = sharegpt(*replace_turn(1, "x" * 1_000_000))
    assert max(map(len, find_llamafactory_faults(row, always))) < 300
    assert json.dumps(row)


SERVED = ("image_search", "visit")


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
            "tools_kwargs": {name: {"create_kwargs": {"task_id": "a"}} for name in SERVED},
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


def test_several_pictures_and_none_are_as_good_as_one():
    row = spoil(make_verl(), "prompt.0.content", "When?")
    assert list(find_verl_faults(spoil(row, "images", []), SERVED)) == []
    row = spoil(make_verl(), "prompt.0.content", "<image><image>\nWhen?")
    assert list(find_verl_faults(spoil(row, "images", make_verl()["images"] * 2), SERVED)) == []


VERL_TRAPS = [
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
    ("images.0.bytes", b"no picture", "is not a PNG"),
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
]


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


RLLM_TRAPS = [
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
    ("images.0", b"x", "is not a PNG"),
    ("images.0", draw_png(401, 2), "factor of 200"),
    ("answer", {}, "empty struct"),
]


def test_pictures_are_only_known_when_the_first_row_has_some():
    first = spoil(make_rllm(), "images", [])
    assert any("not known as pictures" in fault for fault in find_rllm_faults(make_rllm(), first))
    assert list(find_rllm_faults(first, make_rllm())) == []


def make_companion():
    return {
        "prompt": [{"role": "user", "content": "placeholder"}],
        "extra_info": {**make_rllm(), "images": [{"bytes": PNG, "path": ""}]},
    }


COMPANION_TRAPS = [
    ("extra_info.images.0", PNG, "not the row"),
    ("extra_info.images.0.path", None, "not the row"),
    ("extra_info.id", "b", "not the row"),
    ("prompt", [{"role": "user", "content": "When?"}], "rLLM puts a placeholder"),
]


def make_registry():
    split = {"path": "kelm/train.arrow", "num_examples": 2, "fields": ["id", "images"]}
    return {"version": 2, "datasets": {"kelm": {"metadata": {}, "splits": {"train": split}}}}


REGISTRY_TRAPS = [
    ("version", 1, "not of version 2"),
    ("datasets", [], "not of version 2"),
    ("datasets.kelm.metadata", ..., "needs metadata and splits"),
    ("datasets.kelm.splits", {}, "needs metadata and splits"),
    ("datasets.kelm.splits.train.path", "/abs/train.arrow", "is not there"),
    ("datasets.kelm.splits.train.path", None, "is not there"),
    ("datasets.kelm.splits.train.num_examples", 3, "the file has others"),
    ("datasets.kelm.splits.train.fields", ["id"], "the file has others"),
]


def test_ids_that_stand_for_two_rows_are_told():
    assert list(find_repeats(["a", "b"])) == []
    assert len(list(find_repeats(["0", "1", "0"]))) == 1


@pytest.mark.parametrize(
    "row", [{}, {"prompt": None}, {"extra_info": 3, "images": [None]}, json.loads('{"prompt": [3]}')]
)
def test_rows_of_any_shape_are_judged_and_break_nothing(row):
    assert list(find_verl_faults(row, SERVED))
    assert list(find_rllm_faults(row, make_rllm()))


FILES = {"images/a.png", "images/b.png", "images/c.png"}


def make_mmsearch():
    return {
        "data_id": "kelm_train_0",
        "data_source": "mmsearch_r1/kelm",
        "prompt": [{"content": "When?", "role": "user"}],
        "images": [{"bytes": PNG, "path": None}],
        "reward_model": {"candidate_answers": '["1204"]', "ground_truth": "1204", "style": "rule"},
        "image_urls": None,
        "extra_info": {"index": 0},
    }


MMSEARCH_TRAPS = [
    ("prompt.0.content", "<image> When?", "look for a second picture"),
    ("prompt.0.role", "system", "only the first one is read"),
    ("prompt", [{"content": "a", "role": "user"}] * 2, "has 2 messages"),
    ("prompt", None, "not a list of messages"),
    ("images", [], "the reader's prompt shows one"),
    ("images", [{"bytes": PNG, "path": None}] * 2, "the reader's prompt shows one"),
    ("images.0.bytes", b"x", "is not a PNG"),
    ("images.0", {"bytes": None, "path": "a.png"}, "path that is null"),
    ("reward_model.candidate_answers", ["1204"], "list of texts as JSON"),
    ("reward_model.candidate_answers", None, "list of texts as JSON"),
    ("reward_model.ground_truth", ["1204"], "text in every row"),
    ("reward_model", None, "not a struct"),
    ("data_source", "synth", "without mmsearch_r1"),
    ("extra_info", ..., "its index is read"),
    ("extra_info.index", None, "its index is read"),
]


@pytest.mark.parametrize(
    ("meta", "files"),
    [
        (None, []),
        ({"search_results": [{"image_url": "u"}]}, ["img_000.png"]),
        ({"search_results": [{"title": "a"}]}, []),
        ({"search_results": [{"title": "a"}, {"title": "b"}]}, ["img_000.png", "img_002.png"]),
        ({"search_results": []}, ["img_000.png"]),
    ],
)
def test_titles_and_thumbnails_of_the_cache_belong_together(meta, files):
    assert list(find_cache_faults(meta, files))


def test_a_cache_in_order_has_no_fault():
    meta = {"search_results": [{"title": "a"}, {"title": "b"}]}
    assert list(find_cache_faults(meta, ["img_001.jpg", "img_000.png"])) == []
    assert list(find_cache_faults({"search_results": []}, [])) == []


def make_manifest_entry():
    return {
        "root": ".",
        "annotation": "train.jsonl",
        "length": 2,
        "repeat_time": 1,
        "reward_fn": ["llm_score", "format_score"],
        "unused_reward_fn": [],
        "input_template": {"name": "general", "arguments": {}},
    }


MANIFEST_TRAPS = [
    ("annotation", "data/train.jsonl", "is not there"),
    ("length", 3, "length is 3 for 2 lines"),
    ("root", "", "without a root"),
    ("root", ..., "without a root"),
    ("repeat_time", 0.5, "left out at random"),
    ("reward_fn", [], "reward_fn is []"),
    ("reward_fn", ["my_score"], "it lists some of"),
    ("reward_fn", ..., "it lists some of"),
    ("unused_reward_fn", ..., "unused_reward_fn is required"),
    ("input_template", ..., "input_template is required"),
    ("input_template", {"name": "general"}, "input_template is required"),
]


@pytest.mark.parametrize("name", ["kelm.json", "test_on_train.json"])
def test_the_manifests_name_says_either_train_or_test(name):
    assert any(
        "either train or test" in fault for fault in find_manifest_faults(name, {"a": make_manifest_entry()}, {})
    )


@pytest.mark.parametrize("manifest", [None, [], {}, {"kelm": 3}])
def test_a_manifest_of_another_shape_is_a_fault(manifest):
    assert list(find_manifest_faults("train.json", manifest, {}))


def make_mars():
    return {
        "index": "a",
        "prompt": [{"role": "user", "content": "<image>\nWhen?"}],
        "images": ["images/a.png"],
        "reward_model": {"ground_truth": "1204"},
        "image_search_title_list": ["b", "c"],
        "image_search_thumbnail_list": ["images/b.png", "images/c.png"],
        "image_search_summary": None,
    }


MARS_TRAPS = [
    ("prompt.0.content", "When?", "0 placeholders for 1 pictures"),
    ("prompt.0.content", "<image> <video> When?", "holds <video>"),
    ("prompt.0.role", "system", "two are an error"),
    ("prompt", "When?", "not a list of messages"),
    ("images", ["images/z.png"], "is missing"),
    ("images", ["/images/a.png"], "leads out of the folder"),
    ("images", ["images/../a.png"], "leads out of the folder"),
    ("images", "images/a.png", "not a list of paths"),
    ("reward_model.ground_truth", None, "text in every row"),
    ("reward_model", ..., "text in every row"),
    ("image_search_title_list", ["b"], "1 titles for 2 thumbnails"),
    ("image_search_thumbnail_list", ["images/z.png", "images/c.png"], "is missing"),
    ("image_search_thumbnail_list", None, "not a list of paths"),
    ("index", ..., "index: is missing"),
]

READERS = {
    "sharegpt": (sharegpt, lambda row: find_llamafactory_faults(row, always), []),
    "dataset_info": (make_entry, lambda document: find_dataset_faults(document, always), []),
    "ms-swift": (swift, lambda row: find_ms_swift_faults(row, always), []),
    "trl": (typed, find_trl_faults, []),
    "verl-sft": (plain, find_verl_sft_faults, []),
    "verl": (make_verl, lambda row: find_verl_faults(row, SERVED), VERL_TRAPS),
    "rllm": (make_rllm, lambda row: find_rllm_faults(row, make_rllm()), RLLM_TRAPS),
    "companion": (make_companion, lambda row: find_companion_faults(row, make_rllm()), COMPANION_TRAPS),
    "registry": (
        make_registry,
        lambda document: find_registry_faults(document, {"kelm/train.arrow": (2, ["id", "images"])}),
        REGISTRY_TRAPS,
    ),
    "mmsearch-r1": (make_mmsearch, find_mmsearch_faults, MMSEARCH_TRAPS),
    "manifest": (
        make_manifest_entry,
        lambda entry: find_manifest_faults("train_kelm.json", {"kelm": entry}, {"train.jsonl": 2}),
        MANIFEST_TRAPS,
    ),
    "mars": (make_mars, lambda row: find_mars_faults(row, FILES.__contains__), MARS_TRAPS),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_a_reader_loads_whole_has_no_fault(reader):
    make, find, _ = READERS[reader]
    assert list(find(make())) == []


@pytest.mark.parametrize(
    ("reader", "path", "value", "fault"),
    [(reader, *trap) for reader, (_, _, traps) in READERS.items() for trap in traps],
)
def test_each_trap_of_a_reader_is_a_fault(reader, path, value, fault):
    make, find, _ = READERS[reader]
    faults = list(find(spoil(make(), path, value)))
    assert any(fault in one for one in faults), faults


def test_results_that_mars_would_cut_off_are_a_fault():
    row = make_mars() | {"image_search_title_list": ["b"] * 6, "image_search_thumbnail_list": ["images/b.png"] * 6}
    assert any("6 results" in fault for fault in find_mars_faults(row, FILES.__contains__))


def test_a_test_manifest_may_have_no_reward():
    entry = make_manifest_entry() | {"reward_fn": []}
    assert list(find_manifest_faults("test_kelm.json", {"kelm": entry}, {"train.jsonl": 2})) == []
