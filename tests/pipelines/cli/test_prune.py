"""``synth prune`` on a workspace with a release, a configuration that was dropped, and one that is current."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.run.pruning import find_leftovers, find_living
from pipelines.run.underway import place_progress
from pipelines.run.workspace import Workspace
from pipelines.services.clients.replies import ADDRESS, FILE
from tests.chaos.driving import call_here, copy_workspace, digest_files
from tests.conftest import SETTINGS
from tests.pipelines.run.test_heartbeat import make_process

DROPPED = {"seeds": {"limit": 24}, "seed": 11}
CURRENT = {"seeds": {"limit": 12}}


def change(config, changes):
    """Return a configuration with some keys otherwise."""
    sections = {
        name: getattr(config, name).model_copy(update=value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    return config.model_copy(update=sections)


def list_arguments(demo, changes):
    """Return the options of the command line that make the same configuration."""
    flat = {
        f"{name}.{key}": inner
        for name, value in changes.items()
        if isinstance(value, dict)
        for key, inner in value.items()
    }
    flat |= {name: value for name, value in changes.items() if not isinstance(value, dict)}
    settings = [f"corpus.world={demo.world}", *SETTINGS, *(f"{key}={value}" for key, value in flat.items())]
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture(scope="module")
def crowded(demo, tmp_path_factory):
    root = copy_workspace(demo.root, tmp_path_factory.mktemp("prune") / "work")
    run_recipe(change(demo.config, DROPPED), root, "groundings", ())
    run_recipe(change(demo.config, CURRENT), root, "rewrites", ())
    return root


@pytest.fixture
def work(crowded, tmp_path):
    return copy_workspace(crowded, tmp_path / "work")


def prune(capsys, root, *more):
    capsys.readouterr()
    outcome = call_here(capsys, "prune", "--workspace", root, "--json", *more)
    assert outcome.code == 0, outcome.err
    return {(found["kind"], found["name"]): found for found in outcome.document}


def make_old(path):
    """Let a file or folder be older than the note of the last run."""
    os.utime(path, (1, 1))
    return path


def list_stages(root):
    return {path.parent.name + "/" + path.name for path in root.glob("stages/*/*")}


def count_rows(root, table):
    with closing(sqlite3.connect(root / "replies" / FILE)) as store:
        return store.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_a_look_changes_nothing_and_says_what_would_go_and_why(work, capsys):
    before = digest_files(work, "stages/**/*") | digest_files(work, "images/**/*")
    shown = call_here(capsys, "prune", "--workspace", work)
    assert shown.code == 0
    assert digest_files(work, "stages/**/*") | digest_files(work, "images/**/*") == before
    assert "no current configuration and no release cites this key" in " ".join(shown.out.split())
    assert "nothing is changed yet" in shown.out


def test_what_goes_is_the_dropped_configuration_and_all_else_works_as_before(work, demo, capsys):
    pictures, stages, replies = len(list(work.glob("images/*/*"))), list_stages(work), count_rows(work, "replies")
    gone = prune(capsys, work, "--yes")
    assert list_stages(demo.root) <= list_stages(work) < stages
    assert {"seeds", "paths", "questions", "rewrites", "groundings"} == {n for k, n in gone if k == "stages"}
    assert 0 < gone["pictures", "pictures"]["number"] == pictures - len(list(work.glob("images/*/*")))
    assert not gone["replies", "replies"]["goes"]
    assert count_rows(work, "replies") == replies
    assert not list(work.glob(".tmp-*"))
    assert not prune(capsys, work, "--yes")
    asks = count_rows(work, "asks")
    for changes, until in ((CURRENT, "rewrites"), ({}, "")):
        again = run_recipe(change(demo.config, changes), work, until, ())
        assert "Nothing to do" in again.summarise()
    assert call_here(capsys, "verify", "--workspace", work).code == 0
    made = run_recipe(change(demo.config, DROPPED), work, "groundings", ())
    assert {report.stage for report in made.stages if report.ran} >= {"questions", "groundings"}
    assert count_rows(work, "asks") == asks, "recorded replies were kept, and none is paid twice"


def test_replies_that_only_dropped_stages_used_go_if_they_are_named(work, demo, capsys):
    replies = count_rows(work, "replies")
    gone = prune(capsys, work, "--yes", "--replies")["replies", "replies"]
    assert gone["goes"]
    assert 0 < gone["number"] == replies - count_rows(work, "replies")
    shutil.rmtree(next(work.glob("stages/rewrites/*")).parent)
    asks = count_rows(work, "asks")
    run_recipe(change(demo.config, CURRENT), work, "rewrites", ())
    assert count_rows(work, "asks") == asks, "what a living stage has used is still recorded"


def test_replies_stay_while_a_stage_is_unfinished(work, capsys):
    latest = Workspace(work).read_latest()
    (work / "stages" / "rewrites" / latest["rewrites"] / "manifest.json").unlink()
    found = prune(capsys, work, "--yes", "--replies")["replies", "replies"]
    assert not found["goes"]
    assert "is not finished" in found["why"]


def test_a_configuration_that_is_named_stays(work, demo, capsys):
    gone = prune(capsys, work, "--yes", "--replies", *list_arguments(demo, DROPPED))
    # Groundings looks at pictures that it then does not take: no row ever cites them.
    assert gone.keys() <= {("pictures", "pictures"), ("logs", "logs")}
    again = run_recipe(change(demo.config, DROPPED), work, "groundings", ())
    assert "Nothing to do" in again.summarise()


def test_what_is_younger_than_the_last_run_stays(work, capsys):
    folder = work / "stages" / "rollouts" / ("f" * 16)
    folder.mkdir(parents=True)
    prune(capsys, work, "--yes")
    assert folder.is_dir()
    make_old(folder)
    assert prune(capsys, work, "--yes").keys() == {("stages", "rollouts")}
    assert not folder.exists()


def test_corpora_go_only_if_named_and_worlds_with_them(work, demo, capsys):
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
    make_old(corpus)
    for world in (cited, idle):
        make_old(world)
    seen = prune(capsys, work)
    assert not seen["corpora", "corpora"]["goes"]
    assert ("worlds", "worlds") not in seen
    gone = prune(capsys, work, "--yes", "--corpora")
    assert gone["corpora", "corpora"]["number"] == gone["worlds", "worlds"]["number"] == 1
    assert {path.name for path in work.glob("corpus/*")} == {name}
    assert {path.name for path in work.glob("worlds/*")} == {"cited"}


def test_what_a_killed_pruning_left_is_removed(work, capsys):
    half = work / "stages" / "seeds" / f".tmp-{'e' * 16}-12345678"
    half.mkdir()
    prune(capsys, work)
    assert not half.exists()


def test_old_logs_go(work, capsys):
    logs = work / "logs"
    logs.mkdir(exist_ok=True)
    for log in ("old.log", "new.log"):
        (logs / log).write_text("x")
    make_old(logs / "old.log")
    make_process(Workspace(work), "killed", run="r0")
    (killed,) = (make_old(path) for path in place_progress(Workspace(work)).iterdir())
    assert prune(capsys, work, "--yes")["logs", "logs"]["number"] >= 2
    assert not (logs / "old.log").exists()
    assert (logs / "new.log").is_file()
    assert not killed.exists()


@pytest.mark.parametrize("noted", [False, True])
def test_pictures_stay_while_the_replies_that_may_name_them_are_not_here(noted, work, capsys):
    if noted:
        (work / "replies" / ADDRESS).write_text("postgresql://127.0.0.1:1/none\n")
        found = find_leftovers(Workspace(work), find_living(Workspace(work)))
        assert [each.goes for each in found if each.kind == "pictures"] == [False]
        return
    shutil.rmtree(work / "replies")
    pictures = sorted(work.glob("images/*/*"))
    found = prune(capsys, work, "--yes")["pictures", "pictures"]
    assert not found["goes"]
    assert "are not here" in found["why"]
    assert sorted(work.glob("images/*/*")) == pictures


def test_a_workspace_under_way_is_left_alone(work, capsys):
    stages = list_stages(work)
    with Workspace(work).claim():
        outcome = call_here(capsys, "prune", "--workspace", work, "--yes")
    assert outcome.code == 3
    assert "another run holds it" in outcome.err
    assert list_stages(work) == stages


def test_no_workspace_is_our_mistake(tmp_path, capsys):
    assert call_here(capsys, "prune", "--workspace", tmp_path / "none").code == 2
    assert not (tmp_path / "none").exists()
