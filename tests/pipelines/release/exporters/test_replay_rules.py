import pytest

from pipelines.release.exporters.rules import (
    find_cache_faults,
    find_manifest_faults,
    find_mars_faults,
    find_mmsearch_faults,
)
from tests.pipelines.release.exporters.pictures import draw_png
from tests.pipelines.release.exporters.test_rl_rules import spoil

PNG = draw_png(40, 30)
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


def test_a_row_that_mmsearch_r1_loads_has_no_fault():
    assert list(find_mmsearch_faults(make_mmsearch())) == []


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("prompt.0.content", "<image> When?", "look for a second picture"),
        ("prompt.0.role", "system", "only the first one is read"),
        ("prompt", [{"content": "a", "role": "user"}] * 2, "has 2 messages"),
        ("prompt", None, "not a list of messages"),
        ("images", [], "the reader's prompt shows one"),
        ("images", [{"bytes": PNG, "path": None}] * 2, "the reader's prompt shows one"),
        ("images.0.bytes", b"x", "is no PNG"),
        ("images.0", {"bytes": None, "path": "a.png"}, "path that is null"),
        ("reward_model.candidate_answers", ["1204"], "list of texts as JSON"),
        ("reward_model.candidate_answers", None, "list of texts as JSON"),
        ("reward_model.ground_truth", ["1204"], "text in every row"),
        ("reward_model", None, "not a struct"),
        ("data_source", "synth", "without mmsearch_r1"),
        ("extra_info", ..., "its index is read"),
        ("extra_info.index", None, "its index is read"),
    ],
)
def test_each_trap_of_mmsearch_r1_is_a_fault(path, value, fault):
    faults = list(find_mmsearch_faults(spoil(make_mmsearch(), path, value)))
    assert any(fault in one for one in faults), faults


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


def make_entry():
    return {
        "root": ".",
        "annotation": "train.jsonl",
        "length": 2,
        "repeat_time": 1,
        "reward_fn": ["llm_score", "format_score"],
        "unused_reward_fn": [],
        "input_template": {"name": "general", "arguments": {}},
    }


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
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
    ],
)
def test_each_trap_of_the_manifest_is_a_fault(path, value, fault):
    assert list(find_manifest_faults("train_kelm.json", {"kelm": make_entry()}, {"train.jsonl": 2})) == []
    entry = spoil(make_entry(), path, value)
    faults = list(find_manifest_faults("train_kelm.json", {"kelm": entry}, {"train.jsonl": 2}))
    assert any(fault in one for one in faults), faults


@pytest.mark.parametrize("name", ["kelm.json", "test_on_train.json"])
def test_the_manifests_name_says_either_train_or_test(name):
    assert any("either train or test" in fault for fault in find_manifest_faults(name, {"a": make_entry()}, {}))


@pytest.mark.parametrize("manifest", [None, [], {}, {"kelm": 3}])
def test_a_manifest_of_another_shape_is_a_fault(manifest):
    assert list(find_manifest_faults("train.json", manifest, {}))


def test_a_test_manifest_may_have_no_reward():
    entry = spoil(make_entry(), "reward_fn", [])
    assert list(find_manifest_faults("test_kelm.json", {"kelm": entry}, {"train.jsonl": 2})) == []


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


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
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
    ],
)
def test_each_trap_of_mars_is_a_fault(path, value, fault):
    assert list(find_mars_faults(make_mars(), FILES.__contains__)) == []
    faults = list(find_mars_faults(spoil(make_mars(), path, value), FILES.__contains__))
    assert any(fault in one for one in faults), faults


def test_results_that_mars_would_cut_off_are_a_fault():
    row = {**make_mars(), "image_search_title_list": ["b"] * 6, "image_search_thumbnail_list": ["images/b.png"] * 6}
    assert any("is cut off" in fault for fault in find_mars_faults(row, FILES.__contains__))
