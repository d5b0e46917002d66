"""The exam: questions of many rounds, apart from a release that models train on."""

import json
from pathlib import Path

import pytest

from pipelines.checks.sets import mark_question
from pipelines.release.making import read_apart, read_proofs
from tests.chaos.driving import Outcome, call_here, list_settings

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]
SMALL = (
    "corpus.generate.entities=900",
    'groundings.ocr=["layer"]',
    "injections.rounds=[2]",
    "seeds.limit=60",
)
"""Two rounds instead of ten: a world of seconds has no longer questions."""


def run_exam(capsys: Capture, workspace: Path, *settings: str) -> Outcome:
    chosen = list_settings((*SMALL, *settings))
    return call_here(
        capsys, "run", "--recipe", "exam", "--set", "models=scripted", "--workspace", workspace, *chosen, "--json"
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exam") / "workspace"


def test_it_releases_its_own_dataset_and_leaves_out_what_another_release_holds(capsys: Capture, shared: Path) -> None:
    first = run_exam(capsys, shared)
    assert first.code == 0, first.err
    (release,) = first.document["releases"]
    assert release["dataset"] == "exam"
    folder = Path(release["path"])
    assert all(row.proof.rounds == 2 for row in read_proofs(folder))
    assert call_here(capsys, "verify", folder, "--workspace", shared).code == 0
    told = call_here(capsys, "verify", folder, "--workspace", shared, "--apart-from", folder)
    assert told.code == 1
    assert f"0/{release['rows']}" in told.out
    second = run_exam(capsys, shared, f"releases.apart_from={json.dumps([str(folder)])}")
    mine = read_apart([folder])
    for made in second.document["releases"] if second.code == 0 else ():
        assert not any(mine & mark_question(row.proof, row.answer) for row in read_proofs(Path(made["path"])))


def test_a_run_without_rows_does_not_end_well(capsys: Capture, tmp_path: Path) -> None:
    ended = run_exam(capsys, tmp_path / "workspace", "rewrites.min_alone_first=100000")
    assert ended.code == 1
    assert "nothing was released" in ended.err
