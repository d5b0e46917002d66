import json
import warnings
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
import yaml

from pipelines.errors import CorruptInput, GateNotMet
from pipelines.release import guessing, publish, rewards
from pipelines.release.manifest import check_release_files, read_release_manifest
from pipelines.release.publish import publish_releases
from schemas.datasets import SearchResult
from tests.pipelines.release.builders import (
    BASE,
    make_context,
    make_material,
    make_picture,
    make_question,
    make_trajectory,
    run_stage,
)


@pytest.fixture
def published(tmp_path, material, context):
    return {release.dataset: release for release in publish_releases(tmp_path, *material, context)}


def read_tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_rows_of_each_dataset_have_their_layout(published):
    assert {name: release.rows for name, release in published.items()} == {"sft": 4, "rl": 2, "vqa": 7}
    rows = {name: pq.read_table(release.path / "data").to_pylist() for name, release in published.items()}
    for row in rows["sft"]:
        turns = [message["role"] for message in row["messages"]]
        assert turns == ["system"] + ["user", "assistant"] * (len(turns) // 2)
        assert sum(message["content"].count("<image>") for message in row["messages"]) == len(row["images"]) == 2
        assert all(image["path"].count("/") == 0 and image["bytes"] for image in row["images"])
        assert json.loads(row["tools"])
    row = rows["rl"][0]
    assert row["data_source"] == "synth"
    assert row["prompt"][0]["content"].startswith("<image>\n")
    assert row["reward_model"]["ground_truth"] in row["reward_model"]["candidate_answers"]
    row = next(row for row in rows["vqa"] if row["id"].endswith("7"))
    assert [link["relation"] for link in row["chain"]] == ["architect", "birth place", "founded"]
    assert (row["r_chain"], row["r_alone"], row["n_img"]) == ([1, 1], [6], 8)


def test_a_question_without_picture_is_released_as_text_and_only_where_it_has_rows(tmp_path, context):
    question = make_question(1, None, "eval")
    (release,) = publish_releases(tmp_path, [question], [], run_stage([question], []), context)
    (row,) = pq.read_table(release.path / "data").to_pylist()
    assert (release.dataset, row["image"]) == ("vqa", None)


def test_two_workspaces_publish_the_same_bytes(tmp_path, context):
    trees = []
    for name in ("a", "b"):
        publish_releases(tmp_path / name, *make_material(tmp_path / name), context)
        trees.append(read_tree(tmp_path / name / "releases"))
    assert trees[0] == trees[1]


def test_publishing_again_gives_the_same_version_and_touches_nothing(tmp_path, material, context, published):
    before = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "releases").glob("*/*/**/*"))}
    again = publish_releases(tmp_path, *material, context)
    assert {release.version for release in again} == {release.version for release in published.values()}
    assert {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "releases").glob("*/*/**/*"))} == before


def test_one_changed_answer_makes_another_version(tmp_path, material, context, published):
    questions, trajectories, entries = material
    answer = questions[0].answer.model_copy(update={"surface": "in 1201"})
    changed = [questions[0].model_copy(update={"answer": answer}), *questions[1:]]
    again = {
        release.dataset: release for release in publish_releases(tmp_path, changed, trajectories, entries, context)
    }
    assert again["sft"].version != published["sft"].version
    assert again["rl"].version == published["rl"].version


@pytest.mark.parametrize(
    ("spoil", "reason"), [(lambda path: path.write_bytes(b"other"), "was changed"), (Path.unlink, "No such file")]
)
def test_a_picture_that_changed_or_is_gone_is_refused_and_nothing_is_left(tmp_path, material, context, spoil, reason):
    picture = material[0][0].picture
    spoil(tmp_path / "images" / picture.sha256[:2] / f"{picture.sha256}.png")
    with pytest.raises(CorruptInput, match=reason):
        publish_releases(tmp_path, *material, context)
    assert not list((tmp_path / "releases" / "sft").iterdir())


def test_a_gate_that_one_dataset_breaks_leaves_nothing_of_the_others(tmp_path, material, context, monkeypatch):
    """Seven questions of vqa are judged, and no fewer, so that sft and rl come before it and meet theirs."""
    questions, trajectories, entries = material
    same = {question.split: question.answer for question in questions}
    questions = [question.model_copy(update={"answer": same[question.split]}) for question in questions]
    for name, value in {"LEAST_ASKING": 7, "ONE_ANSWER": 0.2}.items():
        monkeypatch.setattr(guessing, name, value)
    with pytest.raises(GateNotMet, match=r"one answer of an attribute: 0\.\d+ of 7 questions"):
        publish_releases(tmp_path, questions, trajectories, entries, context)
    assert not list((tmp_path / "releases").rglob("manifest.json"))


def test_a_folder_with_another_content_stops_publishing_until_it_is_moved_away(tmp_path, material, context, published):
    folder = published["sft"].path
    before, manifest = read_tree(folder), json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"content": "0" * 64}))
    with pytest.raises(GateNotMet, match=f"{folder}: its version is that of another content; move the folder away"):
        publish_releases(tmp_path, *material, context)
    folder.rename(tmp_path / "away")
    publish_releases(tmp_path, *material, context)
    assert read_tree(folder) == before


def test_the_manifest_names_every_file_and_no_path_of_this_machine(tmp_path, published):
    for release in published.values():
        assert all(str(tmp_path).encode() not in content for content in read_tree(release.path).values())
        manifest = check_release_files(release.path)
        assert manifest.rows == release.rows
        names = {path.relative_to(release.path).as_posix() for path in release.path.rglob("*") if path.is_file()}
        assert names == {entry.name for entry in manifest.files} | {"manifest.json"}
        (release.path / "data" / "extra.parquet").write_bytes(b"")
        with pytest.raises(GateNotMet, match="not in the manifest"):
            check_release_files(release.path)


def test_files_are_sorted_by_picture_with_a_page_index_and_small_row_groups(published):
    rows = pq.read_table(published["vqa"].path / "data" / "train-00000-of-00001.parquet").to_pylist()
    keys = [(row["image"]["path"], row["id"]) for row in rows]
    assert keys == sorted(keys)
    path = published["rl"].path / "data" / "train-00000-of-00001.parquet"
    column = pq.read_metadata(path).row_group(0).column(0)
    assert column.has_offset_index
    assert column.compression == "ZSTD"


def test_shards_respect_the_limit_and_lose_nothing(tmp_path, material, monkeypatch):
    monkeypatch.setattr(publish, "SHARD_BYTES", 400)
    releases = publish_releases(tmp_path, *material, make_context())
    rl = next(release for release in releases if release.dataset == "rl")
    names = sorted(path.name for path in (rl.path / "data").iterdir())
    assert names == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    found = duckdb.sql(
        f"select count(*), list(extra_info.index order by extra_info.index) from '{rl.path}/data/*.parquet'"
    )
    assert found.fetchall() == [(2, [0, 1])]


@pytest.mark.parametrize("dataset", ["sft", "rl", "vqa"])
@pytest.mark.parametrize("source", ["files", "folder"])
def test_the_datasets_library_decodes_the_pictures(tmp_path, published, dataset, source, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from datasets import load_dataset

        folder = str(published[dataset].path)
        where = {"path": "parquet", "data_files": f"{folder}/data/train-*.parquet"}
        where = where if source == "files" else {"path": folder}
        rows = load_dataset(**where, split="train", cache_dir=str(tmp_path / "cache"))
        picture = rows[0]["image"] if dataset == "vqa" else rows[0]["images"][0]
    assert picture.size == (64, 48)
    assert len(rows) == published[dataset].rows - (dataset == "vqa")


def test_the_cards_front_matter_says_what_the_manifest_says(published):
    for release in published.values():
        front = yaml.safe_load((release.path / "README.md").read_text().split("---\n")[1])
        splits = {split["name"]: split["num_examples"] for split in front["dataset_info"][0]["splits"]}
        assert splits == {split.name: split.rows for split in read_release_manifest(release.path).splits}
        assert front["license"] == "cc-by-sa-4.0"


def test_rl_data_come_with_their_rewards_and_nothing_else_does(published):
    shipped = {name: (release.path / "rewards.py").is_file() for name, release in published.items()}
    assert shipped == {"sft": False, "rl": True, "vqa": False}
    assert (published["rl"].path / "rewards.py").read_text() == Path(rewards.__file__).read_text()


def test_rl_rows_show_what_a_search_by_the_picture_finds_with_thumbnails_of_their_own_bytes(tmp_path, context):
    thumbnail = make_picture(tmp_path, 30)
    found = (
        SearchResult(url=f"{BASE}Kelm_Bridge_1", title="Kelm <image> Bridge", thumbnail=thumbnail),
        SearchResult(url=f"{BASE}Other", title="Other"),
    )
    question = make_question(1, make_picture(tmp_path, 1), "rl", found=found)
    released = publish_releases(tmp_path, [question], [], run_stage([question], []), context)
    folder = next(release.path for release in released if release.dataset == "rl")
    (row,) = pq.read_table(folder / "data").to_pylist()
    assert [page["title"] for page in row["image_search"]] == ["Kelm  Bridge", "Other"]
    assert row["image_search"][0]["thumbnail"]["path"] == f"{thumbnail.sha256}.png"
    assert row["image_search"][1]["thumbnail"] is None
    assert f"{thumbnail.sha256}\tscaled down" in (folder / "ATTRIBUTION.tsv").read_text()


def test_native_calls_are_published_as_text_that_says_how_to_call(tmp_path, context):
    question = make_question(1, make_picture(tmp_path, 1))
    trajectory = make_trajectory(1, question, dialect="native", system="Use the functions.")
    entries = run_stage([question], [trajectory])
    told = context.model_copy(update={"system": "Write <tool_call> around a call."})
    released = publish_releases(tmp_path, [question], [trajectory], entries, told)
    (row,) = pq.read_table(next(each.path for each in released if each.dataset == "sft") / "data").to_pylist()
    assert (row["dialect"], row["messages"][0]["content"]) == ("synth", "Write <tool_call> around a call.")
    assert row["messages"][3]["content"].startswith("<tool_response>")
