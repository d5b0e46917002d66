"""Exports of RL releases, read as their trainers read them."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError
from pipelines.release import rewards
from pipelines.release.exporters.base import ExportOptions
from pipelines.release.exporters.registry import export_release
from pipelines.release.exporters.rl import read_tasks
from pipelines.release.publish import publish_releases
from tests.pipelines.release.builders import make_context, make_picture, make_question, run_stage
from tests.pipelines.release.exporters.rl_releases import HOSTILE, publish_rl

READERS = ("verl", "rllm", "mmsearch-r1", "mars")
NAMED = ExportOptions(name="kelm")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return publish_rl(tmp_path_factory.mktemp("rl"))


@pytest.fixture(scope="module")
def tasks(release):
    return {task.row.id: task for task in read_tasks(release)}


@pytest.fixture(scope="module")
def exports(release, tmp_path_factory):
    root = tmp_path_factory.mktemp("exports")
    for to in READERS:
        export_release(release, root / to, to, NAMED)
    return root


def read_tree(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def read_arrow(path):
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all().to_pylist()


# Reading a release.


def test_a_release_is_read_whole_with_its_thumbnails(tasks):
    assert len(tasks) == len(HOSTILE)
    for task in tasks.values():
        assert [len(task.pictures), len(task.thumbnails), len(task.replayed)] == [1, 3, 2]
        assert hashlib.sha256(task.pictures[0].content).hexdigest() == task.pictures[0].sha256


# All readers.


@pytest.mark.parametrize("to", READERS)
def test_the_same_release_gives_the_same_export(release, exports, tmp_path, to):
    report = export_release(release, tmp_path / "again", to, NAMED)
    assert report.rows == len(HOSTILE)
    assert read_tree(tmp_path / "again") == read_tree(exports / to)


# veRL.


def test_veRL_gets_each_row_with_the_same_fields_and_its_own_results(exports, tasks):
    rows = pq.read_table(exports / "verl" / "train.parquet").to_pylist()
    assert {row["extra_info"]["question_id"] for row in rows} == set(tasks)
    for row in rows:
        task = tasks[row["extra_info"]["question_id"]]
        assert row["images"] == [{"bytes": task.pictures[0].content, "path": None}]
        assert row["prompt"] == [{"role": "user", "content": f"<image>\n{task.row.extra_info.question}"}]
        assert json.loads(row["extra_info"]["candidate_answers"]) == list(task.row.reward_model.candidate_answers)
        found = row["extra_info"]["tools_kwargs"]["image_search"]["create_kwargs"]["results"]
        assert [one["title"] for one in found] == [one.title for one in task.row.image_search]
        assert [one["thumbnail"] for one in found] == [one.content if one else None for one in task.thumbnails]


def test_the_rewards_that_are_shipped_are_the_ones_that_are_tested(exports):
    assert (exports / "verl" / "rewards.py").read_bytes() == Path(rewards.__file__).read_bytes()


@pytest.mark.parametrize(("dialect", "tag"), [("", "answer"), ("opensearch-vl", "response")])
def test_the_reward_reads_the_tags_of_the_tools_or_of_the_dialect_that_is_asked_for(release, tmp_path, dialect, tag):
    export_release(release, tmp_path / "out", "verl", ExportOptions(dialect=dialect))
    row = pq.read_table(tmp_path / "out" / "train.parquet").to_pylist()[0]
    solution = f"<think>a</think><{tag}>{row['reward_model']['ground_truth']}</{tag}>"
    score = rewards.compute_score("synth", solution, row["reward_model"]["ground_truth"], row["extra_info"])
    assert score["score"] == 1.0


# rLLM.


def test_rllm_gets_rows_that_its_registry_knows(exports, tasks):
    home = exports / "rllm" / "datasets"
    registry = json.loads((home / "registry.json").read_text())
    told = registry["datasets"]["kelm"]["splits"]["train"]
    rows = read_arrow(home / told["path"])
    assert (told["num_examples"], told["fields"]) == (len(tasks), list(rows[0]))
    for row in rows:
        task = tasks[row["id"]]
        assert (row["question"], row["answer"]) == (task.row.extra_info.question, task.answer)
        assert row["images"] == [picture.content for picture in task.pictures]
    companions = pq.read_table(home / "kelm" / "train_verl.parquet").to_pylist()
    assert [one["extra_info"]["id"] for one in companions] == [row["id"] for row in rows]
    assert all(one["extra_info"]["images"][0]["path"] == "" for one in companions)


def test_rows_with_pictures_come_first_for_rllm(tmp_path):
    changes = [{}, {"picture": None, "found": ()}, {}]
    release = publish_mixed(tmp_path, changes)
    export_release(release, tmp_path / "out", "rllm", NAMED)
    rows = read_arrow(tmp_path / "out" / "datasets" / "kelm" / "train.arrow")
    assert [len(row["images"]) for row in rows] == [1, 1, 0]


def publish_mixed(root, changes):
    """Publish questions that differ in the given ways."""
    questions = [
        make_question(number, **({"picture": make_picture(root, number), "split": "rl"} | change))
        for number, change in enumerate(changes, 1)
    ]
    published = publish_releases(root, questions, [], run_stage(questions, []), make_context())
    return next(one.path for one in published if one.dataset == "rl")


# MMSearch-R1.


def test_mmsearch_r1_gets_bare_questions_and_a_cache_in_order(exports, tasks):
    folder = exports / "mmsearch-r1"
    rows = pq.read_table(folder / "train.parquet").to_pylist()
    assert {row["extra_info"]["question_id"] for row in rows} == set(tasks)
    for row in rows:
        task = tasks[row["extra_info"]["question_id"]]
        assert row["prompt"] == [{"content": task.row.extra_info.question, "role": "user"}]
        cache = folder / "image_search_cache" / row["data_id"]
        results = json.loads((cache / "meta.json").read_text())["search_results"]
        assert [one["title"] for one in results] == [found.title for found, _ in task.replayed]
        for number, (_, thumbnail) in enumerate(task.replayed):
            stored = cache / f"img_{number:03d}.{thumbnail.extension}"
            assert hashlib.sha256(stored.read_bytes()).hexdigest() == thumbnail.sha256


# SenseNova-MARS.


def test_mars_gets_a_manifest_that_counts_its_lines(exports, tasks):
    folder = exports / "mars"
    manifest = json.loads((folder / "train_kelm.json").read_text())
    entry = manifest["kelm_train"]
    lines = (folder / entry["annotation"]).read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line.strip()]
    assert entry["length"] == len(rows) == len(tasks)
    for row in rows:
        task = tasks[row["index"]]
        assert row["image_search_title_list"] == [found.title for found, _ in task.replayed]
        names = [*row["images"], *row["image_search_thumbnail_list"]]
        expected = [*task.pictures, *(thumbnail for _, thumbnail in task.replayed)]
        assert [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names] == [
            picture.sha256 for picture in expected
        ]


@pytest.mark.parametrize("name", ["trained", "latest"])
def test_a_name_that_says_train_or_test_is_refused_for_mars(release, tmp_path, name):
    with pytest.raises(ConfigError, match="holds train or test"):
        export_release(release, tmp_path / "out", "mars", ExportOptions(name=name))
