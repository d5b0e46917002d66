"""The cascade keeps exactly the rollouts that a scripted teacher made without a vice, and names each vice it finds."""

import asyncio
import shutil
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from pipelines.agent.loop import Agent, run_rollout
from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import EXPECTED, UNKNOWN, ScriptedTeacher, Vices, list_vices
from schemas.base import Rejection
from schemas.datasets import Enhancement, Rollout, Trajectory
from schemas.reasons import TrajectoryReason

pytestmark = pytest.mark.slow

VICES = Vices(**dict.fromkeys(EXPECTED, 0.05), crop_first=0.25)
ORDER = list(EXPECTED)
ATTEMPTS = 4


@dataclass(frozen=True)
class Played:
    """A rollout with what its teacher was to do wrong, drawn before it began."""

    rollout: Rollout
    vice: str


@pytest.fixture(scope="module")
def questions(demo) -> list[Enhancement]:
    return [row for row in demo.rows("selections", Enhancement) if row.picture is not None]


@pytest.fixture(scope="module")
def agent(demo, demo_corpus, tmp_path_factory) -> Agent:
    """The demo's agent, with its pictures in a workspace of its own."""
    workspace = Workspace(tmp_path_factory.mktemp("accepted"))
    shutil.copytree(demo.root / "images", workspace.root / "images")
    assembly = Assembly(demo.config, workspace, demo_corpus)
    yield assembly.make_agent()
    assembly.close()


@pytest.fixture(scope="module", params=["first", "second", "third"])
def played(request, agent, questions) -> list[Played]:
    """Every attempt of one teacher at every question; teachers with different names draw different vices."""
    return asyncio.run(play(agent, questions, request.param))


async def play(agent: Agent, questions: list[Enhancement], name: str) -> list[Played]:
    vicious, found = replace(agent, model=ScriptedTeacher(name, VICES)), []
    for question in questions:
        for attempt in range(ATTEMPTS):
            oracle = make_oracle(question, attempt)
            (vice,) = list_vices(oracle, name, VICES) & EXPECTED.keys() or {""}
            found.append(Played(await run_rollout(vicious, question, oracle), vice))
    return found


def expect_reason(each: Played) -> TrajectoryReason | None:
    """Return the code of a rollout from its vice alone; where the corpus does not lead on, a teacher says so."""
    lost = each.rollout.answer == UNKNOWN
    if not each.vice:
        return "no-answer" if lost else None
    late = ORDER.index(each.vice) > ORDER.index("give_up")
    return "no-answer" if lost and late else EXPECTED[each.vice]


@pytest.fixture(scope="module")
def judged(played) -> dict[str, Trajectory | Rejection]:
    async def judge() -> list[Trajectory | Rejection]:
        stage = Trajectories()
        found = [await stage(each.rollout) for each in played]
        return [row if isinstance(row, Rejection) else row[0] for row in found]

    return {row.record_id: row for row in asyncio.run(judge())}


def test_the_accepted_set_is_the_one_computed_from_the_vices(played, judged):
    kept = {name for name, row in judged.items() if isinstance(row, Trajectory)}
    assert kept == {each.rollout.record_id for each in played if expect_reason(each) is None}
    assert len(kept) > len(played) / 4


def test_every_rejection_names_the_vice_first(played, judged):
    wrong = [
        (each.vice, row.reason, row.detail)
        for each in played
        if isinstance(row := judged[each.rollout.record_id], Rejection) and row.reason != expect_reason(each)
    ]
    assert wrong == []


def test_every_rollout_ends_as_one_row(played, judged):
    assert list(judged) == [each.rollout.record_id for each in played]


def test_most_vices_come_about(played):
    assert len(Counter(each.vice for each in played if each.vice)) >= len(EXPECTED) - 3
