"""VSearcher on a small generated world: chains and trees, released at the shares of their rounds."""

from collections import Counter
from pathlib import Path

import pytest

from pipelines.corpus.store import Corpus
from pipelines.graph.query import Indexes
from pipelines.release.making import read_proofs
from pipelines.release.rows import ProofRow
from pipelines.release.verify import find_question_problems
from pipelines.run.workspace import Workspace
from tests.chaos.driving import call_here, list_settings

pytestmark = pytest.mark.slow

SMALL = (
    "corpus.generate.entities=1500",
    'groundings.ocr=["layer"]',
    "injections.rounds=[1,2]",
    "injections.weights=[0.5,0.5]",
    "injections.draws=[0.2,0.8]",
    "injections.trees=1.0",
    "rollouts.splits=[]",
    "seeds.limit=400",
)
"""One round and two instead of one, three and five: a world of seconds has few longer questions."""


def change_quote(row: ProofRow, letters: int) -> ProofRow:
    """Return a row whose quotes are cut to some letters, spans that still stand on their pages; none for 0."""
    branches = []
    for branch in row.proof.branches:
        quote = branch.quote
        if quote is not None:
            end = {"end": quote.start + letters, "text": quote.text[:letters]}
            quote = quote.model_copy(update=end) if letters else None
        branches.append(branch.model_copy(update={"quote": quote}))
    return row.model_copy(update={"proof": row.proof.model_copy(update={"branches": tuple(branches)})})


def test_questions_are_released_at_the_shares_of_their_rounds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    arguments = ("--recipe", "vsearcher", "--set", "models=scripted", "--workspace", workspace, *list_settings(SMALL))
    ended = call_here(capsys, "run", *arguments, "--json")
    assert ended.code == 0, ended.err
    folder = next(Path(made["path"]) for made in ended.document["releases"] if made["dataset"] == "vqa")
    rounds = Counter(row.proof.rounds for row in read_proofs(folder))
    assert set(rounds) == {1, 2}
    assert abs(rounds[1] / rounds.total() - 0.5) <= 0.1
    rows = [row for row in read_proofs(folder) if any(branch.quote for branch in row.proof.branches)]
    assert rows
    ground = Indexes(Corpus.open(workspace / "corpus" / Workspace(workspace).read_latest()["corpus"]))
    for row in rows[:3]:
        assert find_question_problems(ground, row) == []
        for cut in (12, 0):
            found = find_question_problems(ground, change_quote(row, cut))
            assert any("the sentence that states it is" in problem for problem in found), found
    assert call_here(capsys, "verify", folder, "--workspace", workspace).code == 0
