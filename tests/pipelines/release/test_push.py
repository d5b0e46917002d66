import json
import shutil
import warnings
from pathlib import Path

import huggingface_hub
import pyarrow.parquet as pq
import pytest
import yaml

from pipelines.errors import ConfigError, GateNotMet, Unavailable
from pipelines.release.publish import publish_releases
from pipelines.release.push import PushOptions, plan_push
from tests.chaos.driving import call_here
from tests.pipelines.release.builders import make_context
from tests.pipelines.release.hub import FakeHub, push_release

REPO = "org/name"


@pytest.fixture
def releases(tmp_path, material, context):
    return {release.dataset: release.path for release in publish_releases(tmp_path, *material, context)}


@pytest.fixture
def folder(releases):
    return releases["rl"]


@pytest.fixture
def make_hub(tmp_path):
    return lambda files=None, **settings: FakeHub(tmp_path / "downloads", files, **settings)


def make_version(tmp_path, material, name, **changes):
    """Publish the material elsewhere with other settings: another version of each dataset."""
    shutil.copytree(tmp_path / "images", tmp_path / name / "images")
    made = publish_releases(tmp_path / name, *material, make_context(**changes))
    return {release.dataset: release.path for release in made}


@pytest.fixture
def later(tmp_path, material):
    """The same rows with the tools described otherwise."""
    return make_version(tmp_path, material, "later", tools='[{"name": "visit"}, {"name": "crop"}]')


def read_card(hub):
    _, front, body = hub.files["README.md"].decode().split("---\n", 2)
    return yaml.safe_load(front), body


def list_placed(folder, dataset):
    return {f"data/{dataset}/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*") if path.is_file()}


def test_a_push_is_one_commit_and_a_tag(folder, make_hub):
    hub = make_hub()
    receipt = push_release(folder, REPO, hub)
    assert len(hub.messages) == 1
    assert hub.tags == {receipt.tag: receipt.commit}
    assert receipt.tag == f"v{folder.name}"
    assert hub.files.keys() == list_placed(folder, "rl") | {".gitattributes", "README.md", "data/synth.json"}
    assert hub.private


def test_a_push_that_died_before_its_tag_is_tagged_by_the_next(folder, make_hub):
    hub = make_hub()
    first = push_release(folder, REPO, hub)
    hub.tags.clear()
    assert push_release(folder, REPO, hub).commit == first.commit
    assert hub.tags == {first.tag: first.commit}
    assert len(hub.messages) == 1


def test_a_new_version_sends_what_changed_and_removes_what_is_gone(releases, later, make_hub):
    hub = make_hub()
    push_release(releases["sft"], REPO, hub)
    old = dict(hub.files)
    hub.change(**{"notes.md": b"mine"})
    plan = plan_push(later["sft"], REPO, hub)
    push_release(later["sft"], REPO, hub)
    same = {path for path in hub.files if old.get(path) == hub.files[path]}
    assert "data/sft/proofs/train-00000-of-00001.parquet" in same
    assert set(hub.sent) == hub.files.keys() - same - {"notes.md"}
    assert {change.path for change in plan.changes} == set(hub.sent)
    assert {change.state for change in plan.changes} == {"changed"}
    assert hub.files["notes.md"] == b"mine"
    assert len(hub.tags) == 2


def test_a_viewer_previews_every_config_and_split_of_several_datasets_in_one_repository(
    releases, make_hub, tmp_path, monkeypatch
):
    hub = make_hub()
    for dataset in ("sft", "rl", "vqa"):
        push_release(releases[dataset], REPO, hub)
    front, body = read_card(hub)
    names = [entry["config_name"] for entry in front["configs"]]
    assert names == ["sft", "sft-proofs", "rl", "rl-proofs", "vqa", "vqa-proofs"]
    assert [entry.get("default", False) for entry in front["configs"]] == [True, *[False] * 5]
    assert {"reinforcement-learning", "image-text-to-text"} <= set(front["task_categories"])
    assert all(f"Load it by name: `{dataset}`" in body for dataset in releases)
    assert set(hub.tags) == {f"v{path.name}" for path in releases.values()}
    told = {
        entry["config_name"]: {split["name"]: split for split in entry["splits"]} for entry in front["dataset_info"]
    }
    clone = str(hub.write(tmp_path / "clone"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset

        assert get_dataset_config_names(clone) == names
        for entry in front["configs"]:
            config, files = entry["config_name"], {each["split"]: each["path"] for each in entry["data_files"]}
            assert set(get_dataset_split_names(clone, config)) == set(files)
            for split, pattern in files.items():
                rows = list(load_dataset(clone, config, split=split, streaming=True).take(100))
                count = sum(pq.read_metadata(path).num_rows for path in Path(clone).glob(pattern))
                assert len(rows) == count > 0
                if config in told:
                    assert told[config][split]["num_examples"] == count
                    pictures = rows[0].get("images") or [rows[0]["image"]]
                    assert {picture.size for picture in pictures} == {(64, 48)}
        assert len(load_dataset(clone, split="train", cache_dir=str(tmp_path / "cache"))) == 4


SHARD = "data/sft/data/train-00000-of-00001.parquet"
ARRANGEMENTS = {
    "code and a licence": ({"LICENSE": b"MIT", "src/train.py": b"pass\n"}, (), {}, ""),
    "data in the same folders": (
        {"data/train.parquet": b"theirs", "data/sft/data/train-00007-of-00008.parquet": b"theirs"}, (), {}, "",
    ),
    "other datasets of ours": ({}, ("rl", "vqa"), {}, ""),
    "an older push, with other files since": ({}, ("sft",), {"data/sft/a.md": b"a"}, ""),
    "large files and how they are kept": (
        {".gitattributes": b"*.bin filter=lfs\n", "old/maps.parquet": b"theirs", "a.bin": b"\0"}, (), {}, "",
    ),
    "a file where ours would go": ({SHARD: b"theirs"}, (), {}, f"{SHARD} is not as a push left it"),
    "a card of others": ({"README.md": b"# Maps"}, (), {}, "README.md is not as a push left it"),
    "a file of ours that was edited": (
        {}, ("sft",), {"data/sft/quality.md": b"better"}, "data/sft/quality.md is not as a push left it",
    ),
    "a record that is none": ({"data/synth.json": b"[1]"}, (), {}, "no list of files that a push"),
}  # fmt: skip
"""What others keep in a repository, datasets of ours there, edits by others since, and what a refusal says."""


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_a_push_into_a_foreign_repository_loses_nothing(name, releases, later, make_hub):
    files, pushed, edits, refused = ARRANGEMENTS[name]
    hub = make_hub(files)
    for dataset in pushed:
        push_release(releases[dataset], REPO, hub)
    hub.change(**edits)
    before, commits = dict(hub.files), len(hub.messages)
    if refused:
        with pytest.raises(ConfigError, match=refused):
            push_release(later["sft"], REPO, hub)
        assert (hub.files, len(hub.messages)) == (before, commits)
        return
    push_release(later["sft"], REPO, hub)
    own = list_placed(later["sft"], "sft") | {"README.md", "data/synth.json"}
    assert {path: hub.files.get(path) for path in before if path not in own} == {
        path: content for path, content in before.items() if path not in own
    }
    configs = {entry["config_name"] for entry in read_card(hub)[0]["configs"]}
    assert configs == {config for dataset in (*pushed, "sft") for config in (dataset, f"{dataset}-proofs")}


def test_replace_overwrites_what_stands_in_the_way_and_nothing_else(folder, make_hub):
    files = {"maps.csv": b"1", "data/rl/quality.md": b"theirs", "data/rl/more.md": b"theirs"}
    hub = make_hub(files)
    plan = plan_push(folder, REPO, hub, PushOptions(replace=True))
    assert len(plan.replaced) == 1
    push_release(folder, REPO, hub, PushOptions(replace=True))
    assert hub.files["data/rl/quality.md"] == (folder / "quality.md").read_bytes()
    assert (hub.files["maps.csv"], hub.files["data/rl/more.md"]) == (b"1", b"theirs")


def test_a_pull_request_leaves_the_main_branch_and_is_tagged_once_merged(folder, make_hub):
    hub = make_hub({"notes.md": b"mine"})
    receipt = push_release(folder, REPO, hub, PushOptions(pull_request=True))
    assert (receipt.tag, receipt.url, hub.tags) == ("", "https://hub.example/pr/1", {})
    assert hub.files.keys() == {".gitattributes", "notes.md"}
    hub.change(**hub.trees["refs/pr/1"])
    assert push_release(folder, REPO, hub).tag == f"v{folder.name}"
    assert hub.tags == {f"v{folder.name}": hub.head}


def test_invented_data_are_made_public_only_on_purpose(folder, make_hub):
    with pytest.raises(ConfigError, match=r"is invented; scripted players were its writer.*--toy"):
        push_release(folder, REPO, make_hub({}, private=False))
    new = make_hub()
    with pytest.raises(ConfigError, match="--toy"):
        push_release(folder, REPO, new, PushOptions(public=True))
    assert not new.head
    push_release(folder, REPO, new, PushOptions(public=True, toy=True))
    assert not new.private


def test_a_file_lost_on_the_way_is_noticed_and_not_tagged(folder, make_hub):
    hub = make_hub(lose="README.md")
    with pytest.raises(GateNotMet, match=r"README\.md is missing"):
        push_release(folder, REPO, hub)
    assert not hub.tags


def test_a_hub_that_refuses_is_away_not_broken(folder, make_hub):
    with pytest.raises(Unavailable, match="run the same command again"):
        push_release(folder, REPO, make_hub(fail=True))


def test_a_tag_never_moves(folder, make_hub):
    hub = make_hub({})
    hub.tags[f"v{folder.name}"] = hub.head
    with pytest.raises(ConfigError, match="never moves"):
        push_release(folder, REPO, hub)
    assert not hub.messages


def test_a_changed_folder_is_not_pushed(folder, make_hub):
    path = folder / "README.md"
    path.chmod(0o644)
    path.write_text("changed")
    hub = make_hub()
    with pytest.raises(GateNotMet, match="has changed"):
        push_release(folder, REPO, hub)
    assert not hub.messages


@pytest.fixture
def hub_at_home(make_hub, monkeypatch):
    hub = make_hub({"notes.md": b"mine"})
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    return hub


def test_the_command_shows_a_plan_and_sends_nothing_without_leave(folder, hub_at_home, capsys):
    dry = call_here(capsys, "push", folder, "--repo", REPO, "--dry-run")
    asked = call_here(capsys, "push", folder, "--repo", REPO)
    assert (dry.code, asked.code) == (0, 2)
    assert "--yes" in asked.err
    for shown in (dry.out, asked.out):
        assert "private repository https://hub.example/datasets/org/name" in " ".join(shown.split())
        assert "data/rl/proofs" in shown
        assert "2 others in the repository stay" in shown
    assert not hub_at_home.messages
    assert json.loads(call_here(capsys, "push", folder, "--repo", REPO, "--dry-run", "--json").out)["kept"] == 2


def test_the_command_pushes_several_releases_into_one_repository(releases, hub_at_home, capsys):
    both = (releases["sft"], releases["rl"], "--repo", REPO)
    planned = call_here(capsys, "push", *both, "--json")
    assert planned.code == 2
    assert [plan["dataset"] for plan in json.loads(planned.out)] == ["sft", "rl"]
    assert not hub_at_home.messages
    sent = call_here(capsys, "push", *both, "--yes", "--json")
    assert [receipt["tag"] for receipt in json.loads(sent.out)] == [f"v{releases[name].name}" for name in ("sft", "rl")]
    front, _ = read_card(hub_at_home)
    assert [entry["config_name"] for entry in front["configs"]] == ["sft", "sft-proofs", "rl", "rl-proofs"]
    assert hub_at_home.files["notes.md"] == b"mine"
    assert call_here(capsys, "push", *both).out.count("Nothing to send") == 2
