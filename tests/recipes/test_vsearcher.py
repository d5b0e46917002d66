"""VSearcher on a small generated world: chains and trees, released at the shares of their rounds."""

from collections import Counter
from pathlib import Path

import pytest

from pipelines.release.making import read_proofs
from tests.chaos.driving import call_here, list_settings

pytestmark = pytest.mark.slow

SMALL = (
    "corpus.generate.entities=1500",
    'groundings.ocr=["layer"]',
    "injections.rounds=[1,2]",
    "injections.weights=[0.5,0.5]",
    "injections.draws=[0.2,0.8]",
    "injections.trees=1.0",
    "releases.rounds_tolerance=0.1",
    "rollouts.splits=[]",
    "seeds.limit=400",
)
"""One round and two instead of one, three and five: a world of seconds has few longer questions."""


def test_questions_are_released_at_the_shares_of_their_rounds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    arguments = ("--recipe", "vsearcher", "--models", "scripted", "--workspace", workspace, *list_settings(SMALL))
    ended = call_here(capsys, "run", *arguments, "--json")
    assert ended.code == 0, ended.err
    folder = next(Path(made["path"]) for made in ended.document["releases"] if made["dataset"] == "vqa")
    rounds = Counter(row.proof.rounds for row in read_proofs(folder))
    assert set(rounds) == {1, 2}
    assert abs(rounds[1] / rounds.total() - 0.5) <= 0.1
    assert any(row.proof.branches for row in read_proofs(folder))
    assert call_here(capsys, "verify", folder, "--workspace", workspace).code == 0
