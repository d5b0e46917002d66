"""Production works without the toy: its folder is deleted, and a recipe runs on a dump with a served model."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mock_openai import start_mock

ROOT = Path(__file__).parents[2]
FOLDERS = ("flows", "pipelines", "prompts", "schemas", "data_cards")


@pytest.fixture
def tree(tmp_path):
    """A copy of the product without the toy."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / "tree" / folder, ignore=shutil.ignore_patterns("__pycache__", "toy"))
    return tmp_path / "tree"


def run(tree, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "pipelines.cli.main", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_recipe_runs_to_its_end_without_the_toy(tree, demo, tmp_path):
    dump = next(demo.world.glob("*-multistream.xml.bz2"))
    with start_mock("--model", "mock") as url:
        ran = run(
            tree, "run", "--recipe", "opensearch-vl", "--workspace", str(tmp_path / "work"), "--limit", "20", "--json",
            "--until", "difficulty",
            *("--set", f"corpus.dump={dump}", "--set", "models.default.name=mock"),
            *("--set", f"models.default.base_url={url}", "--set", "groundings.ocr=[]"),
            *("--set", "models.evaluator.name=mock-2", "--set", f"models.evaluator.base_url={url}"),
            *("--set", "runtime.unscored=1.0"),
        )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr
    assert "pipelines.toy" not in ran.stderr
    stages = {stage["stage"]: stage for stage in json.loads(ran.stdout)["stages"]} if ran.returncode == 0 else {}
    assert not stages or stages["seeds"]["kept"] == 20


def test_without_models_a_recipe_stops_before_any_work_and_says_what_to_add(tree, demo, tmp_path):
    dump = next(demo.world.glob("*-multistream.xml.bz2"))
    ran = run(
        tree, "run", "--recipe", "vsearcher", "--workspace", str(tmp_path / "work"), "--set", f"corpus.dump={dump}"
    )
    assert ran.returncode == 2
    assert "[models.default]" in ran.stderr
    assert "--set models=scripted" in ran.stderr
    assert not (tmp_path / "work").exists()
