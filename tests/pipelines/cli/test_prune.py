"""``synth prune`` on a workspace with a release, a configuration that was dropped, and one that is current."""

import json
import os
import shutil

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.run.workspace import Workspace
from tests.chaos.driving import call_here, copy_workspace, digest_files

DROPPED = {"seeds": {"limit": 24}, "seed": 11}
CURRENT = {"seeds": {"limit": 12}}


def change(config, changes):
    """Return a configuration with some keys otherwise."""
    sections = {
        name: getattr(config, name).model_copy(update=value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    return config.model_copy(update=sections)


@pytest.fixture(scope="module")
def crowded(demo, tmp_path_factory):
    root = copy_workspace(demo.root, tmp_path_factory.mktemp("prune") / "work")
    run_recipe(change(demo.config, DROPPED), root, "questions", ())
    run_recipe(change(demo.config, CURRENT), root, "questions", ())
    return root


@pytest.fixture
def work(crowded, tmp_path):
    return copy_workspace(crowded, tmp_path / "work")


def prune(capsys, root, *more):
    capsys.readouterr()
    outcome = call_here(capsys, "prune", "--workspace", root, "--json", *more)
    assert outcome.code == 0, outcome.err
    return {found["kind"]: found["paths"] for found in outcome.document}


def make_old(path):
    """Let a file or folder be older than the note of the last run."""
    os.utime(path, (1, 1))
    return path


def list_stages(root):
    return {path.parent.name + "/" + path.name for path in root.glob("stages/*/*")}


def test_a_look_changes_nothing_and_says_what_would_go_and_why(work, capsys):
    before = digest_files(work, "stages/**/*")
    shown = call_here(capsys, "prune", "--workspace", work)
    assert shown.code == 0
    assert digest_files(work, "stages/**/*") == before
    assert "no run and no release uses this key" in " ".join(shown.out.split())
    assert "nothing is changed yet" in shown.out


def test_what_goes_is_the_dropped_configuration_and_all_else_works_as_before(work, demo, capsys):
    stages = list_stages(work)
    pictures = digest_files(work, "images/**/*")
    gone = prune(capsys, work, "--yes")
    assert list_stages(demo.root) <= list_stages(work) < stages
    assert {"seeds", "paths", "questions"} == gone.keys() - {"logs"}
    assert digest_files(work, "images/**/*") == pictures
    assert not prune(capsys, work, "--yes")
    for changes, until in ((CURRENT, "questions"), ({}, "")):
        again = run_recipe(change(demo.config, changes), work, until, ())
        assert "Nothing to do" in again.summarise()
    assert call_here(capsys, "verify", "--workspace", work).code == 0


def test_what_is_younger_than_the_last_run_stays(work, capsys):
    folder = work / "stages" / "rollouts" / ("f" * 16)
    folder.mkdir(parents=True)
    log = work / "logs" / "new.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("x")
    prune(capsys, work, "--yes")
    assert folder.is_dir()
    assert log.is_file()
    for path in (folder, log):
        make_old(path)
    assert prune(capsys, work, "--yes").keys() == {"rollouts", "logs"}
    assert not folder.exists()


def test_corpora_that_nothing_is_made_from_go_and_worlds_with_them(work, demo, capsys):
    name = Workspace(work).read_latest()["corpus"]
    corpus = copy_workspace(work / "corpus" / name, work / "corpus" / "toywiki-old")
    manifest = corpus / "manifest.json"
    cited, idle = work / "worlds" / "cited", work / "worlds" / "idle"
    (idle / "images").mkdir(parents=True)
    cited.mkdir()
    dump = next(path for path in demo.world.glob("*-pages-articles*.xml*") if "-index" not in path.name)
    shutil.copy(dump, cited)
    told = json.loads(manifest.read_bytes())
    inputs = [entry | ({"sha256": "0" * 64} if entry["role"] == "dump" else {}) for entry in told["inputs"]]
    manifest.write_text(json.dumps(told | {"inputs": inputs, "images_dir": "../../worlds/idle/images"}))
    for path in (corpus, cited, idle):
        make_old(path)
    gone = prune(capsys, work, "--yes")
    assert len(gone["corpora"]) == len(gone["worlds"]) == 1
    assert {path.name for path in work.glob("corpus/*")} == {name}
    assert {path.name for path in work.glob("worlds/*")} == {"cited"}


def test_a_workspace_under_way_is_left_alone(work, capsys):
    stages = list_stages(work)
    with Workspace(work).claim():
        outcome = call_here(capsys, "prune", "--workspace", work, "--yes")
    assert outcome.code == 3
    assert "another run holds it" in outcome.err
    assert list_stages(work) == stages
