"""``synth prune`` on a workspace in which three configurations were run: one released, one dropped, one current."""

import shutil

import pytest

from pipelines.run.workspace import Workspace
from tests.chaos.driving import SMALL, call_here, copy_workspace, digest_files, list_settings, share_small_run

RELEASED = (*list_settings(SMALL), "--limit", 60)
DROPPED = (*list_settings(SMALL), "--limit", 25, "--set", "seed=10", "--until", "groundings")
CURRENT = (*list_settings(SMALL), "--limit", 60, "--set", "paths.per_seed=2", "--until", "rewrites")
ELSEWHERE = (*list_settings(SMALL), "--set", "corpus.generate.entities=80", "--until", "seeds")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """The small run, then two others that released nothing; the last one is current."""
    root = copy_workspace(share_small_run(tmp_path_factory.getbasetemp())[0], tmp_path_factory.mktemp("prune") / "work")
    with pytest.MonkeyPatch.context():
        for settings in (ELSEWHERE, DROPPED, CURRENT):
            run(root, *settings)
    return root


def run(root, *settings):
    from pipelines.cli.main import main

    with pytest.raises(SystemExit) as ending:
        main(["run", "--workspace", str(root), *map(str, settings)])
    assert ending.value.code == 0


@pytest.fixture
def work(crowded, tmp_path):
    return copy_workspace(crowded, tmp_path / "work")


def prune(capsys, root, *more):
    capsys.readouterr()
    return call_here(capsys, "prune", "--workspace", root, "--json", *more)


def list_goers(outcome):
    return {(found["kind"], found["name"]): found["number"] for found in outcome.document if found["goes"]}


def test_a_look_changes_nothing_and_says_what_would_go_and_why(work, capsys):
    before = digest_files(work, "**/*")
    shown = call_here(capsys, "prune", "--workspace", work)
    assert shown.code == 0
    assert digest_files(work, "**/*") == before
    assert "no current configuration and no release" in " ".join(shown.out.split())
    assert "nothing is changed yet" in shown.out
    print(shown.out)
    print(prune(capsys, work).document)
