import json

import pytest

from pipelines.release.exporters.rules import (
    find_dataset_faults,
    find_llamafactory_faults,
    find_ms_swift_faults,
    find_trl_faults,
    find_verl_sft_faults,
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


def test_a_whole_sharegpt_row_has_no_fault():
    assert find_sharegpt() == []


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
        ("no json", "is no JSON"),
        ("<think>look</think>" + CALL, "the thought must be"),
        ("<think>\nlook\n</think>\n" + CALL, "the thought must be"),
        (THOUGHT + '{"name": "visit"}', "arguments are no object"),
        (THOUGHT + '{"name": "visit", "arguments": "{}"}', "encoded a second time"),
        (THOUGHT + '{"name": "visit", "arguments": []}', "arguments are no object"),
        (THOUGHT + '{"arguments": {}}', "no name"),
        (THOUGHT + f"[{CALL}, {CALL}]", "several calls"),
        (THOUGHT + '{"name": "visit", "arguments": {"x": NaN}}', "is no JSON"),
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


def test_a_whole_entry_has_no_fault():
    assert list(find_dataset_faults(make_entry(), always)) == []


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


def test_a_whole_ms_swift_row_has_no_fault():
    assert find_swift() == []


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
        ([("user", "a"), ("tool_call", "no json"), ("tool", "t"), ("assistant", "b")], "is no JSON"),
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


def test_a_whole_trl_row_has_no_fault():
    assert list(find_trl_faults(typed())) == []


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


def test_a_whole_verl_row_has_no_fault():
    assert list(find_verl_sft_faults(plain())) == []


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
