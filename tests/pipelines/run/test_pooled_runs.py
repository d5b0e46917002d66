"""Whole runs with questions from outside: beside walked ones by share, and alone."""

import json
import shutil
from collections import Counter

import pytest

from pipelines.cli.commands import run_recipe, verify_releases
from pipelines.config.loading import make_config, read_recipe
from pipelines.graph.proofs import NO_PROOF
from pipelines.run.progress import Reporter
from pipelines.run.workspace import Workspace
from schemas.datasets import Enhancement, Grounding, Trajectory
from tests.conftest import SETTINGS, DemoRun

WANTED = 24


@pytest.fixture(scope="module")
def pool(demo, tmp_path_factory):
    """A file of questions about dates on the page of what a picture shows, none worded like the others."""
    entities = {row["qid"]: row for row in demo.truth("entities")}
    pictures = {row["qid"]: row["file"] for row in demo.truth("pictures") if row["view"] == "lead" and row["free"]}
    rows = {}
    for fact in demo.truth("facts"):
        entity, dated = entities[fact["subject_qid"]], fact["value_kind"] == "date" and fact["shown"]
        if dated and fact["subject_qid"] in pictures and entity["title"] not in rows and len(rows) < WANTED:
            marks = "qwertyuiopasdfghjklzxcvb"[len(rows)] * 3
            text = (
                f"For collection {marks}: on which day was the {fact['relation']} of the {entity['noun']} shown here?"
            )
            rows[entity["title"]] = {
                "id": str(len(rows)), "question": text, "answer": fact["value"], "entity": entity["title"],
                "image": pictures[fact["subject_qid"]],
            }  # fmt: skip
    path = tmp_path_factory.mktemp("pool") / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows.values(), {"question": "Why?", "answer": "x"}]))
    return path


def run(demo, folder, pool, *settings):
    """Run over the demo's corpus and stages; only what the pool changes is made anew."""
    shutil.copytree(demo.root, folder, ignore=shutil.ignore_patterns("releases"))
    columns = ", ".join(f'{name}="{name}"' for name in ("id", "question", "answer", "image", "entity"))
    said = 'name="elsewhere", licence="CC0", source="https://pool.example/", split="sft"'
    where = f'path="{pool}", images="{demo.world / "images"}", columns={{{columns}}}, {settings[0]}'
    named = [f"corpus.world={demo.world}", *SETTINGS, *settings[1:], f"pools=[{{{said}, {where}}}]"]
    config = make_config(read_recipe("demo"), named)
    return run_recipe(config, folder, "", ())


@pytest.mark.slow
def test_pools_merged_by_share_are_released_beside_proved_rows_and_told_apart(demo, pool, tmp_path):
    result = run(demo, tmp_path / "ws", pool, "share=0.1").as_dict()
    stages = {stage["stage"]: stage for stage in result["stages"]}
    assert stages["pools"]["rows_in"] == WANTED + 1
    assert stages["pools"]["rejected"] == {"no-picture": 1}
    walked = stages["groundings"]["rows_out"]
    wanted = round(0.1 * walked / 0.9)
    assert stages["mixtures"]["kept"] == walked + wanted
    assert stages["mixtures"]["rejected"] == {"over-share": WANTED - wanted}
    assert all(not each["ran"] for each in result["stages"] if each["stage"] in ("paths", "groundings"))
    outside, proved = Counter(), Counter()
    for report in verify_releases(None, None, None, tmp_path / "ws", Reporter()):
        assert report.passed, report.problems
        outside[report.dataset], proved[report.dataset] = report.unproved, report.rows
    assert proved["vqa"] > 0
    assert outside["vqa"] > 0
    assert outside["sft"] > 0


def test_a_run_of_pools_alone_reaches_releases_that_verify_and_prove_nothing(demo, pool, tmp_path):
    result = run(demo, tmp_path / "ws", pool, "share=0.0", 'method="pools"').as_dict()
    assert [stage["stage"] for stage in result["stages"]][:4] == ["corpus", "pools", "mixtures", "difficulty"]
    demo_run = DemoRun(tmp_path)
    latest = Workspace(tmp_path / "ws").read_latest()
    assert "groundings" not in latest
    (tmp_path / "workspace").symlink_to(tmp_path / "ws")
    for row in demo_run.rows("mixtures", Grounding):
        assert (row.proof, row.split, row.domain) == (NO_PROOF, "sft", "pool/elsewhere")
    kept = demo_run.rows("enhancements", Enhancement)
    assert {row.standing for row in kept} <= {"unproved", "solved"}
    accepted = demo_run.rows("trajectories", Trajectory)
    assert accepted
    assert all(row.left_out == ("memory-jump", "path-not-covered") and row.path == () for row in accepted)
    reports = verify_releases(None, None, None, tmp_path / "ws", Reporter())
    assert {report.dataset for report in reports} == {"sft", "vqa"}
    for report in reports:
        assert report.passed, report.problems
        assert report.rows == 0 < report.unproved
        assert report.describe().startswith("0/0 proved rows verify; ")
