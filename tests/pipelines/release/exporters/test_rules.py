"""Rows, entries and folders that trainers load whole, and each trap in which they would not."""

import copy
from functools import partial

import pytest

from pipelines.release.exporters import rules
from pipelines.release.exporters.rules import find_companion_faults, find_faults, find_manifest_faults, find_rllm_faults
from tests.pipelines.release.exporters.pictures import draw_png

THOUGHT = "<think>\nlook\n</think>\n\n"
CALL = '{"name": "visit", "arguments": {"url": "u"}}'
TOOLS = '[{"type": "function", "function": {"name": "visit", "parameters": {}}}]'
FILES = {f"images/{name}.png" for name in "abc"} | {"train.jsonl"}
PNG = draw_png(40, 20)
IMAGE = {"bytes": PNG, "path": "a.png"}
BARE = {"bytes": PNG, "path": None}
DEEP = "[" * 100_000


def turn(who, value):
    return {"from": who, "value": value}


def said(role, content):
    return {"role": role, "content": content} | ({"loss": True} if role in ("assistant", "tool_call") else {})


def text(content):
    return {"type": "text", "text": content}


def asked(content):
    return {"role": "user", "content": content}


PLACE = {"type": "image", "text": None}
PICTURES = {"images": ["images/a.png", "images/b.png"], "tools": TOOLS}
RLLM = {"id": "a", "question": "When?", "answer": "1204", "candidate_answers": '["1204"]', "images": [PNG]}
MANIFEST = {
    "root": ".",
    "annotation": "train.jsonl",
    "length": 2,
    "repeat_time": 1,
    "reward_fn": ["llm_score", "format_score"],
    "unused_reward_fn": [],
    "input_template": {"name": "general", "arguments": {}},
}
GOOD = {
    "sharegpt": {
        "conversations": [
            turn("human", "<image>\nWhen?"),
            turn("function_call", THOUGHT + CALL),
            turn("observation", "<image>\nIn 1201 {{idx}}."),
            turn("gpt", THOUGHT + "<answer>1201</answer>"),
        ],
        "system": "Use tools.",
        **PICTURES,
    },
    "swift": {
        "messages": [
            said("system", "Use tools."),
            said("user", "<image>\nWhen?"),
            said("assistant", THOUGHT),
            said("tool_call", CALL),
            said("tool_response", "<image>\nIn 1201."),
            said("assistant", THOUGHT + "<answer>1201</answer>"),
        ],
        **PICTURES,
    },
    "datasets": {"synth": {"file_name": "train.jsonl", "formatting": "sharegpt", "columns": rules.COLUMNS}},
    "trl": {
        "messages": [
            {"role": "system", "content": [text("Use tools.")]},
            {"role": "user", "content": [PLACE, text("When?")]},
            {"role": "assistant", "content": [text("1201")]},
        ],
        "images": [IMAGE],
    },
    "verl-sft": {
        "messages": [said("system", "Use tools."), said("user", "<image>\nWhen?"), said("assistant", "1201")],
        "images": [IMAGE],
    },
    "verl": {
        "data_source": "synth",
        "prompt": [asked("<image>\nWhen?")],
        "images": [BARE],
        "reward_model": {"style": "rule", "ground_truth": "1204"},
        "extra_info": {
            "index": 0,
            "candidate_answers": '["1204", "AD 1204"]',
            "need_tools_kwargs": True,
            "tools_kwargs": {name: {"create_kwargs": {"task_id": "a"}} for name in ("image_search", "visit")},
        },
        "agent_name": "tool_agent",
    },
    "rllm": RLLM,
    "companion": {"prompt": [asked("placeholder")], "extra_info": {**RLLM, "images": [{"bytes": PNG, "path": ""}]}},
    "mmsearch": {
        "data_source": "mmsearch_r1/kelm",
        "prompt": [asked("When?")],
        "images": [BARE],
        "reward_model": {"candidate_answers": '["1204"]', "ground_truth": "1204", "style": "rule"},
        "extra_info": {"index": 0},
    },
    "cache": {"search_results": [{"title": "a"}, {"title": "b"}]},
    "manifest": MANIFEST,
    "mars": {
        "index": "a",
        "prompt": [asked("<image>\nWhen?")],
        "images": ["images/a.png"],
        "reward_model": {"style": "rule", "ground_truth": "1204"},
        "image_search_title_list": ["b", "c"],
        "image_search_thumbnail_list": ["images/b.png", "images/c.png"],
    },
}
FIND = {
    "sharegpt": partial(find_faults, rules.SharegptRow, exists=FILES.__contains__),
    "swift": partial(find_faults, rules.SwiftRow, exists=FILES.__contains__),
    "datasets": partial(find_faults, rules.DatasetInfo, exists=FILES.__contains__),
    "trl": partial(find_faults, rules.LoadedTrlRow),
    "verl-sft": partial(find_faults, rules.LoadedVerlSftRow),
    "verl": partial(find_faults, rules.LoadedVerlRow, tools=("image_search", "visit")),
    "rllm": lambda row: find_rllm_faults(row, RLLM),
    "companion": lambda row: find_companion_faults(row, RLLM),
    "mmsearch": partial(find_faults, rules.LoadedMmsearchRow),
    "cache": partial(find_faults, rules.CacheMeta, files=["img_001.jpg", "img_000.png"]),
    "manifest": lambda entry: find_manifest_faults("train_kelm.json", {"kelm": entry}, {"train.jsonl": 2}),
    "mars": partial(find_faults, rules.LoadedMarsRow, exists=FILES.__contains__),
}
TURNS, MESSAGES = "conversations", "messages"
TRAPS = [
    *(("sharegpt", TURNS, value, "conversations") for value in (None, [], "text", [{"from": "human"}], [3], ...)),
    ("sharegpt", TURNS, [turn("gpt", "a"), turn("human", "b")], "turn 0 is from 'gpt'"),
    ("sharegpt", TURNS, [turn("human", "a"), turn("gpt", "b"), turn("observation", "c")], "3 turns"),
    ("sharegpt", TURNS, [turn("human", "a"), turn("tool", "b")], "turn 1 is from 'tool'"),
    ("sharegpt", TURNS, [turn("observation", "a"), turn("gpt", "b")], "without a call"),
    ("sharegpt", TURNS, [turn("system", "s"), turn("human", "a"), turn("gpt", "b")], "place of the column"),
    ("sharegpt", "images", [], "2 placeholders for 0 pictures"),
    ("sharegpt", "images", ["images/a.png"] * 3, "2 placeholders for 3 pictures"),
    ("sharegpt", "conversations.2.value", "<image>\nsee <image>", "3 placeholders for 2"),
    *(
        (reader, f"{place}.{field}", f"<image>\n{value}", fault)
        for reader, places, field in (
            ("sharegpt", ("conversations.0", "conversations.2"), "value"),
            ("swift", ("messages.1", "messages.4"), "content"),
            ("verl-sft", ("messages.1",), "content"),
        )
        for place in places
        for value, fault in (
            ("a <video> b", "holds <video>"),
            ("a <audio> b", "holds <audio>"),
            ("<|im_end|>", "control token"),
            ("</s>", "control token"),
            ("[INST]", "control token"),
            ("\ud800", "unicode"),
            ("a </tool_call>", "only the model may write"),
            ("a <think>", "only the model may write"),
            ("</tool_response>", "only the model may write"),
            ("<tool_response>a</tool_response>b</tool_response>", "only the model may write"),
        )
    ),
    ("sharegpt", "conversations.0.value", "<image>\n{{idx}}", "{{idx}}"),
    *(
        ("sharegpt", "conversations.1.value", value, fault)
        for value, fault in (
            ("no json", "is not JSON"),
            ("<think>look</think>" + CALL, "the thought must be"),
            ("<think>\nlook\n</think>\n" + CALL, "the thought must be"),
            (THOUGHT + '{"name": "visit"}', "not an object"),
            (THOUGHT + '{"name": "visit", "arguments": "{}"}', "not an object"),
            (THOUGHT + '{"name": "visit", "arguments": []}', "not an object"),
            (THOUGHT + '{"arguments": {}}', "no name"),
            (THOUGHT + f"[{CALL}, {CALL}]", "several calls"),
            (THOUGHT + '{"name": "visit", "arguments": {"x": NaN}}', "is not JSON"),
            (f"<tool_call>\n{CALL}\n</tool_call><tool_call>\n{CALL}\n</tool_call>", "several calls"),
        )
    ),
    *(
        (reader, "tools", value, "tools")
        for reader in ("sharegpt", "swift")
        for value in ("no json", "{}", '["visit"]', '[{"function": {}}]', [{"name": "visit"}], DEEP)
    ),
    *(
        ("sharegpt", "images.0", name, "leads out")
        for name in ("/etc/passwd", "../a.png", "images/../../a.png", "~/a.png")
    ),
    ("sharegpt", "images.0", "images/z.png", "'images/z.png' is missing"),
    ("sharegpt", "images", [{"bytes": "x"}], "images.0"),
    ("sharegpt", "system", "<image>", "system"),
    ("datasets", "synth.tags", {"role_tag": "from"}, "synth.tags"),
    ("datasets", "synth.formatting", "openai", "synth.formatting"),
    ("datasets", "synth.file_name", "train.csv", "synth.file_name"),
    ("datasets", "synth.file_name", None, "synth.file_name"),
    ("datasets", "synth.file_name", "other.jsonl", "is missing"),
    ("datasets", "synth.columns", {"messages": "conversations"}, "is not read"),
    ("datasets", "synth", 3, "synth"),
    *(
        ("swift", MESSAGES, [said(*pair) for pair in pairs], fault)
        for pairs, fault in (
            ([("human", "a"), ("assistant", "b")], "messages.0.role"),
            ([("user", "a"), ("system", "s"), ("assistant", "b")], "after the beginning"),
            ([("assistant", "a")], "the user must begin"),
            ([("user", "a")], "the assistant must end"),
            ([("user", "a"), ("tool_call", CALL), ("assistant", "b")], "has no reply"),
            ([("user", "a"), ("tool_call", CALL), ("tool_call", CALL), ("tool", "t"), ("assistant", "b")], "merged"),
            ([("user", "a"), ("tool", "t"), ("assistant", "b")], "without a call"),
            ([("user", "a"), ("assistant", "b"), ("assistant", "c")], "both of assistant"),
            ([("user", "a"), ("tool_call", "no json"), ("tool", "t"), ("assistant", "b")], "is not JSON"),
            ([("user", "a"), ("assistant", "so <think>\nx\n</think>")], "the thought must be"),
            ([("user", "{{QUERY}}"), ("assistant", "b")], "fills in"),
            ([("user", "q"), ("tool_call", CALL), ("tool", "{{SYSTEM}}"), ("assistant", "b")], "fills in"),
            ([("user", "a"), ("assistant", "<image>")], "pictures stand in"),
        )
    ),
    ("swift", "images", ["images/a.png"], "2 placeholders for 1"),
    ("swift", "messages.2.loss", 1.0, "messages.2.loss"),
    ("swift", "messages.2.loss", ..., "loss is missing"),
    ("swift", "messages.1.loss", True, "has a loss"),
    *((reader, MESSAGES, value, "messages") for reader in ("swift", "trl", "verl-sft") for value in (None, [], [3])),
    ("trl", "messages.1.content", "<image>When?", "messages.1.content"),
    ("trl", "messages.1.content", [], "messages.1.content"),
    ("trl", "messages.0.content", [PLACE], "only those of user"),
    ("trl", "messages.1.content.0", PLACE | {"image": "x"}, "messages.1.content.0.image"),
    ("trl", "messages.1.content.1", text("<image>"), "as text"),
    ("trl", "messages.1.content.1.type", "video", "messages.1.content.1.type"),
    ("trl", "messages.1.content.1", text(None), "either a text"),
    ("trl", "messages.1.content.1", text("</tool_call>"), "only the model"),
    ("trl", "messages.2", ..., "must alternate"),
    ("verl-sft", "images", [], "1 placeholders for 0"),
    ("trl", "images", [IMAGE, IMAGE], "1 placeholders for 2"),
    *((reader, "tools", TOOLS, "tools") for reader in ("trl", "verl-sft")),
    *((reader, "images", value, "images") for reader in ("trl", "verl-sft") for value in (None, ["a.png"])),
    *((reader, "images.0.bytes", None, "images.0.bytes") for reader in ("trl", "verl-sft")),
    ("verl-sft", "messages.1.role", "tool", "pictures stand in"),
    ("verl-sft", "messages.2.content", "<image>", "pictures stand in"),
    ("verl", "prompt.0.content", "When?", "0 placeholders for 1 pictures"),
    ("verl", "prompt.0.content", "<image> <video>", "holds <video>"),
    ("verl", "prompt.0.content", [{"type": "image"}], "prompt.0.content"),
    ("verl", "prompt.0.role", "tool", "prompt.0.role"),
    *(
        (reader, "prompt", value, "prompt")
        for reader in ("verl", "mmsearch", "mars", "companion")
        for value in ("When?", [])
    ),
    *((reader, "images.0", {"bytes": None, "path": "/a.png"}, "images.0.path") for reader in ("verl", "mmsearch")),
    ("verl", "images.0", PNG, "images.0"),
    ("verl", "images.0.bytes", b"no picture", "is not a PNG"),
    ("verl", "images.0.bytes", draw_png(2, 401), "factor of 200"),
    ("verl", "images", ..., "images"),
    *(("verl", "reward_model.ground_truth", value, "ground_truth") for value in (1204, ["1204"], " ")),
    ("verl", "reward_model.style", "model", "reward_model.style"),
    ("verl", "reward_model", None, "reward_model"),
    ("verl", "data_source", "", "is blank"),
    ("verl", "agent_name", ..., "agent_name"),
    ("verl", "agent_name", "best_agent", "agent_name"),
    ("verl", "extra_info", None, "extra_info"),
    ("verl", "extra_info.index", "0", "extra_info.index"),
    *(("verl", "extra_info.candidate_answers", value, "candidate_answers") for value in (["1204"], "1204", DEEP)),
    ("verl", "extra_info.candidate_answers", '["1300"]', "is not among"),
    ("verl", "extra_info.need_tools_kwargs", False, "need_tools_kwargs"),
    ("verl", "extra_info.tools_kwargs.visit", ..., "every row must have"),
    ("verl", "extra_info.tools_kwargs.visit", None, "tools_kwargs.visit"),
    ("verl", "extra_info.tools_kwargs.visit.create_kwargs", {}, "create_kwargs"),
    ("verl", "extra_info.tools_kwargs.visit.create_kwargs.task_id", None, "is null"),
    ("rllm", "extra", "x", "other columns are lost"),
    ("rllm", "answer", ..., "other columns are lost"),
    ("rllm", "answer", 1204, "answer"),
    ("rllm", "id", "", "is blank"),
    ("rllm", "question", None, "question"),
    ("rllm", "question", "What <image> is it?", "holds <image>"),
    ("rllm", "question", "What <|im_end|> is it?", "control token"),
    ("rllm", "candidate_answers", ["1204"], "candidate_answers"),
    ("rllm", "images", None, "images"),
    ("rllm", "images.0", "/a.png", "images.0"),
    ("rllm", "images.0", b"x", "is not a PNG"),
    ("companion", "extra_info.images.0.path", None, "not the row"),
    ("companion", "extra_info.id", "b", "not the row"),
    ("mmsearch", "prompt.0.content", "<image> When?", "holds <image>"),
    ("mmsearch", "prompt.0.role", "system", "prompt.0.role"),
    ("mmsearch", "prompt", [asked("a")] * 2, "prompt"),
    ("mmsearch", "images", [BARE] * 2, "images"),
    ("mmsearch", "images", [], "images"),
    ("mmsearch", "reward_model.candidate_answers", None, "candidate_answers"),
    ("mmsearch", "data_source", "synth", "data_source"),
    ("mmsearch", "extra_info.index", None, "extra_info.index"),
    ("cache", "search_results", ..., "search_results"),
    ("cache", "search_results.0.title", ..., "no title"),
    ("cache", "search_results.0", ..., "for 1 titles"),
    ("manifest", "annotation", "data/train.jsonl", "does not exist"),
    ("manifest", "length", 3, "length is 3 for 2 lines"),
    ("manifest", "root", "", "root"),
    ("manifest", "repeat_time", 0.5, "repeat_time"),
    ("manifest", "reward_fn", [], "reward_fn"),
    ("manifest", "reward_fn", ["my_score"], "reward_fn"),
    ("manifest", "unused_reward_fn", ..., "unused_reward_fn"),
    ("manifest", "input_template", {"name": "general"}, "input_template"),
    ("mars", "prompt.0.content", "When?", "0 placeholders for 1 pictures"),
    ("mars", "prompt.0.role", "system", "two are an error"),
    ("mars", "images", ["images/z.png"], "is missing"),
    ("mars", "images", ["images/../a.png"], "leads out of the folder"),
    ("mars", "reward_model.ground_truth", None, "ground_truth"),
    ("mars", "image_search_title_list", ["b"], "1 titles for 2 thumbnails"),
    ("mars", "image_search_title_list", ["b"] * 6, "image_search_title_list"),
    ("mars", "image_search_thumbnail_list", None, "image_search_thumbnail_list"),
    ("mars", "index", ..., "index"),
]


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


@pytest.mark.parametrize("reader", GOOD)
def test_what_a_reader_loads_whole_has_no_fault_and_each_trap_has_one(reader):
    assert list(FIND[reader](GOOD[reader])) == []
    for path, value, fault in (trap[1:] for trap in TRAPS if trap[0] == reader):
        faults = list(FIND[reader](spoil(GOOD[reader], path, value)))
        assert any(fault in one for one in faults), (path, str(value)[:80], faults)
        assert max(map(len, faults)) < 400, "a fault quotes no more than a little of a row"


@pytest.mark.parametrize(
    ("reader", "path", "value"),
    [
        *(
            ("sharegpt", "conversations.1.value", value)
            for value in (CALL, THOUGHT + CALL, f"so\n<tool_call>\n{CALL}\n</tool_call>")
        ),
        ("sharegpt", "conversations.2.value", "<image>\n<tool_response>t</tool_response>\n"),
        *(("sharegpt", "tools", value) for value in ("", None, '[{"name": "visit"}]')),
    ],
)
def test_other_forms_that_a_reader_loads_have_no_fault(reader, path, value):
    assert list(FIND[reader](spoil(GOOD[reader], path, value))) == []


def test_rows_may_have_several_pictures_or_none():
    for count in (0, 2):
        row = spoil(GOOD["verl"], "prompt.0.content", "<image>" * count + "\nWhen?")
        assert list(FIND["verl"](row | {"images": [BARE] * count})) == []


def test_ms_swift_makes_a_placeholder_of_a_tag_only_in_rows_without_pictures():
    row = {"messages": [said("user", "<img>a.png</img>"), said("assistant", "b")], "images": []}
    assert "becomes a placeholder" in " ".join(FIND["swift"](row))


def test_pictures_are_only_known_to_rllm_when_the_first_row_has_some():
    first = spoil(RLLM, "images", [])
    assert any("not known as pictures" in fault for fault in find_rllm_faults(RLLM, first))
    assert list(find_rllm_faults(first, RLLM)) == []


def test_a_manifest_says_in_its_name_whether_it_is_trained_on():
    for name in ("kelm.json", "test_on_train.json"):
        assert any("either train or test" in fault for fault in find_manifest_faults(name, {"a": MANIFEST}, {}))
    entry = MANIFEST | {"reward_fn": []}
    assert list(find_manifest_faults("test_kelm.json", {"kelm": entry}, {"train.jsonl": 2})) == []
    assert list(rules.find_repeats(["0", "1", "0"])) == ["id: '0' stands for more than one row"]


@pytest.mark.parametrize("value", [None, [], {}, 3, {"prompt": [3]}, {"extra_info": 3, "images": [None]}])
def test_values_of_any_shape_have_faults_and_break_nothing(value):
    for reader, find in FIND.items():
        if reader not in ("rllm", "companion") or isinstance(value, dict):
            assert list(find(value)), reader
