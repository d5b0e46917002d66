"""A whole run that is kept apart from a benchmark: what overlaps is refused before the teacher is paid, and named."""

import json
import shutil

import pytest

from pipelines.cli.commands import compare_releases, run_recipe, verify_releases
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.progress import Reporter
from schemas.datasets import Enhancement
from tests.conftest import SETTINGS


def run(demo, folder, benchmark):
    named = f'releases.benchmarks=[{{name="MMSearch", path=["{benchmark}"]}}]'
    config = make_config(read_recipe("demo"), [f"corpus.world={demo.world}", *SETTINGS, named])
    return run_recipe(config, folder, "", ())


@pytest.mark.slow
def test_what_overlaps_with_a_benchmark_reaches_no_teacher_and_no_release(demo, tmp_path):
    asked = demo.rows("selections", Enhancement)
    copied = next(row for row in asked if row.split == "sft")
    told = next(row for row in asked if row.proof.nodes[-1].title not in (n.title for n in copied.proof.nodes))
    rows = [
        {"sample_id": "m1", "query": copied.text, "query_image": None, "gt_answer": "else", "area": "news"},
        {"sample_id": "m2", "query": f"What is there to know of {told.proof.nodes[-1].title}?", "query_image": None,
         "gt_answer": told.answer.surface, "area": "news"},
    ]  # fmt: skip
    benchmark = tmp_path / "end2end.jsonl"
    benchmark.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shutil.copytree(demo.root, tmp_path / "ws", ignore=shutil.ignore_patterns("releases"))
    result = run(demo, tmp_path / "ws", benchmark).as_dict()
    stages = {stage["stage"]: stage for stage in result["stages"]}
    refused = stages["selections"]["rejected"]
    assert refused["benchmark-question"] >= 1
    assert refused["benchmark-fact"] >= 1
    assert not stages["groundings"]["ran"]
    for release in result["releases"]:
        folder = tmp_path / "ws" / "releases" / release["dataset"] / release["version"]
        manifest = json.loads((folder / "manifest.json").read_text())
        (entry,) = manifest["benchmarks"]
        assert (entry["name"], entry["layouts"], entry["questions"]) == ("MMSearch", ["columns"], 2)
        assert entry["hits"]["benchmark-question"] >= 1
        assert entry["hits"]["benchmark-fact"] >= 1
        for text in ((folder / "README.md").read_text(), (folder / "quality.md").read_text()):
            assert "not checked: LiveVQA" in text
            assert entry["digest"] in text
            assert str(tmp_path) not in text
    reports = verify_releases(None, None, None, tmp_path / "ws", Reporter())
    for report in compare_releases(reports, None, tmp_path / "ws", [benchmark]):
        assert report.passed, report.problems
    before = verify_releases(None, None, None, demo.root, Reporter())
    shared = [p for report in compare_releases(before, None, demo.root, [benchmark]) for p in report.problems]
    assert {problem.where for problem in shared} >= {copied.record_id}
    assert any("benchmark-question of " in problem.what and "end2end.jsonl m1" in problem.what for problem in shared)
    again = run(demo, tmp_path / "ws", benchmark).as_dict()
    assert not any(stage["ran"] for stage in again["stages"])
    benchmark.write_text(json.dumps(rows[0]) + "\n")
    changed = {stage["stage"]: stage for stage in run(demo, tmp_path / "ws", benchmark).as_dict()["stages"]}
    assert changed["selections"]["ran"]
    assert "benchmark-fact" not in changed["selections"]["rejected"]


def test_a_benchmark_that_is_not_there_stops_the_run_before_anything_is_made(demo, tmp_path):
    with pytest.raises(ConfigError, match=r"releases\.benchmarks MMSearch.*no such file"):
        run(demo, tmp_path / "ws", tmp_path / "gone.jsonl")
    assert not (tmp_path / "ws" / "stages").exists()
